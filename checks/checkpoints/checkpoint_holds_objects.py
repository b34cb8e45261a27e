"""TL702 checkpoint-holds-objects."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from torchlint.check import (
    Array,
    Bound,
    Call,
    Check,
    Class,
    ClassInfo,
    Event,
    External,
    Function,
    FunctionInfo,
    Loader,
    Module,
    Object,
    Optimizer,
    Partial,
    Report,
    Scaler,
    Scheduler,
    Severity,
    Symbol,
    Trace,
    UnknownCall,
    Value,
    on,
    operations,
)

from .common import saved, written

_REFUSED = {
    "argparse.Namespace": ("an argparse.Namespace", "vars({})"),
    "types.SimpleNamespace": ("a SimpleNamespace", "vars({})"),
    "collections.defaultdict": ("a defaultdict", "dict({})"),
    "collections.deque": ("a deque", "list({})"),
    "collections.ChainMap": ("a ChainMap", "dict({})"),
    "collections.UserDict": ("a UserDict", "dict({})"),
    "builtins.frozenset": ("a frozenset", "set({})"),
    "builtins.range": ("a range", "list({})"),
    "builtins.slice": ("a slice", "its bounds"),
    "pathlib.Path": ("a Path", "str({})"),
    "pathlib.PurePath": ("a Path", "str({})"),
    "pathlib.PosixPath": ("a Path", "str({})"),
    "pathlib.WindowsPath": ("a Path", "str({})"),
    "pathlib.Path.cwd": ("a Path", "str({})"),
    "pathlib.Path.home": ("a Path", "str({})"),
    "datetime.datetime": ("a datetime", "{}.isoformat()"),
    "datetime.datetime.now": ("a datetime", "{}.isoformat()"),
    "datetime.datetime.utcnow": ("a datetime", "{}.isoformat()"),
    "datetime.datetime.today": ("a datetime", "{}.isoformat()"),
    "datetime.datetime.strptime": ("a datetime", "{}.isoformat()"),
    "datetime.datetime.fromtimestamp": ("a datetime", "{}.isoformat()"),
    "datetime.date": ("a date", "{}.isoformat()"),
    "datetime.date.today": ("a date", "{}.isoformat()"),
    "datetime.timedelta": ("a timedelta", "{}.total_seconds()"),
    "decimal.Decimal": ("a Decimal", "float({})"),
    "fractions.Fraction": ("a Fraction", "float({})"),
    "uuid.uuid4": ("a UUID", "str({})"),
    "uuid.uuid1": ("a UUID", "str({})"),
    "re.compile": ("a compiled pattern", "its pattern"),
    "array.array": ("an array", "list({})"),
    "easydict.EasyDict": ("an EasyDict", "dict({})"),
    "ml_collections.ConfigDict": ("a ConfigDict", "{}.to_dict()"),
    "yacs.config.CfgNode": ("a CfgNode", "{}.dump()"),
    "omegaconf.OmegaConf.create": ("a config object of omegaconf", "OmegaConf.to_container({})"),
    "omegaconf.OmegaConf.load": ("a config object of omegaconf", "OmegaConf.to_container({})"),
    "omegaconf.OmegaConf.merge": ("a config object of omegaconf", "OmegaConf.to_container({})"),
    "omegaconf.OmegaConf.from_cli": ("a config object of omegaconf", "OmegaConf.to_container({})"),
    "omegaconf.DictConfig": ("a config object of omegaconf", "OmegaConf.to_container({})"),
}
"""Types that torch.load (2.13, weights_only=True) refuses in a file, and what to save instead; each was tried."""

_PATH_METHODS = frozenset({"resolve", "absolute", "expanduser", "joinpath", "with_suffix", "with_name"})
_PLAIN_NUMPY = frozenset(
    {
        *("ndim", "shape", "isscalar", "seed", "save", "savez", "savetxt", "array2string", "set_printoptions"),
        *("get_printoptions", "can_cast", "iterable", "unravel_index", "broadcast_shapes", "shares_memory", "size"),
    }
)
"""Functions of numpy that give Python's own numbers, tuples and strings."""
_DRAWS = {
    **dict.fromkeys(("rand", "randn", "random", "random_sample", "standard_normal"), 1),
    **dict.fromkeys(("uniform", "normal", "randint", "beta", "binomial"), 3),
    **dict.fromkeys(("exponential", "poisson"), 2),
}
"""Functions of numpy.random that give Python's own number when they get fewer arguments than this."""
_ENUMS = ("enum.Enum", "enum.IntEnum", "enum.StrEnum", "enum.Flag", "enum.IntFlag")

_NAMING = "safe_globals"
"""Part of the names of what tells torch.load of further types."""

Described = tuple[str, str]
"""What is held, and what to save instead (``{}`` stands for it)."""


class CheckpointHoldsObjects(Check):
    """A checkpoint dict holds objects that torch.load refuses: the file can't be read back without weights_only=False.

    ## Why

    Since torch 2.6 torch.load builds only tensors and plain containers, unless it is told otherwise. A numpy scalar
    from `np.mean`, the argparse Namespace or a Path among the values is enough for "Weights only load failed", at the
    time when the checkpoint is needed.

    ## Bad

        torch.save({"model": model.state_dict(), "args": args, "best": np.mean(scores)}, path)

    ## Good

        torch.save({"model": model.state_dict(), "args": vars(args), "best": float(np.mean(scores))}, path)

    ## Known limits

    Plain values, OrderedDict, Counter, set, torch.Size, dtypes and devices are fine and left alone, as is a file that
    names its types with `torch.serialization.safe_globals` or add_safe_globals, or loads with a function of the
    project that does. What isn't known is left alone.
    """

    code = "TL702"
    name = "checkpoint-holds-objects"
    severity = Severity.WARNING
    failures = ("T-G2",)
    mentions = ("save",)

    @on(Trace)
    def check(self, trace: Trace, report: Report) -> None:
        """Look at what the dicts hold that are saved."""
        if _names_types(report.module):
            return
        makers: dict[ast.AST, str] = {}
        saves: list[Call] = []
        event: Event
        for event in trace.root.events(again=True):
            if isinstance(event, Call):
                if event.name == "torch.save" and event.frame.module is report.module:
                    saves.append(event)
                else:
                    makers[event.node] = _made_by(event)
            elif isinstance(event, UnknownCall):
                makers[event.node] = _made_by_method(event, makers)
        for call in saves:
            found = [
                (key, described)
                for key, value in saved(call)
                if key is not None and (described := _refused(call, key, value, makers)) is not None
            ]
            if found:
                _tell(call, found, report)


def _names_types(module: Module) -> bool:
    """Whether the file, or the project's own ``load`` that it calls, names the types that a file may hold."""
    if _NAMING in module.source.text:
        return True
    if "load" not in module.source.text:
        return False
    own = (module.definition(call.func, scope) for call, scope in module.scope.all_calls("load"))
    return any(isinstance(load, FunctionInfo) and _NAMING in load.module.source.text for load in own)


def _tell(call: Call, found: list[tuple[str, Described]], report: Report) -> None:
    parts, instead = [], []
    for key, (what, better) in found:
        expression = written(call, key)
        text = call.module.source.segment(expression) if expression is not None else "..."
        parts.append(f'"{key}" is {what}' if key else f"it holds {what}")
        instead.append(better.format(text))
    report(
        call.node.func if isinstance(call.node, ast.Call) else call.node,
        f"torch.load will refuse this checkpoint: {_listed(parts)}; save {_listed(instead)} instead.",
    )


def _listed(parts: Iterable[str]) -> str:
    *some, last = dict.fromkeys(parts)
    return f"{', '.join(some)} and {last}" if some else last


def _maker(value: Value, makers: dict[ast.AST, str]) -> str:
    """The name of the function or class whose result a value is, empty where it is no result of a call."""
    if isinstance(value, Symbol) and value.origin != "result":
        return ""
    return makers.get(value.node, "?") if value.node is not None else "?"


def _made_by(call: Call) -> str:
    """The name of what made a value; empty where that doesn't tell what it is."""
    name = call.name
    if name.startswith("numpy."):
        tail = name.rpartition(".")[2]
        given = len(call.arguments)
        drawn = name.startswith("numpy.random.") and "size" not in call.keywords and given < _DRAWS.get(tail, 0)
        return "" if tail in _PLAIN_NUMPY or drawn else name
    return name


def _made_by_method(call: UnknownCall, makers: dict[ast.AST, str]) -> str:
    callee = call.callee
    if isinstance(callee, External):
        return callee.qualname
    if isinstance(callee, Bound):
        owner, method = callee.receiver, callee.method
    elif isinstance(callee, Symbol) and callee.of is not None:
        owner, method = callee.of, callee.name.rpartition(".")[2]
    else:
        return ""
    made = _maker(owner, makers)
    if method in _PATH_METHODS and made.startswith("pathlib."):
        return "pathlib.Path"
    return "argparse.Namespace" if method == "parse_args" and made.startswith("argparse.") else ""


def _refused(call: Call, key: str, value: Value, makers: dict[ast.AST, str]) -> Described | None:
    """What torch.load refuses about a value, or None."""
    if isinstance(value, Array):
        return None if _maker(value, makers) == "" else ("a numpy value", "float({0}), {0}.tolist() or a tensor")
    if isinstance(value, (Optimizer, Scheduler, Scaler)):
        return f"the {value!r}".partition("(")[0] + " itself", "{}.state_dict()"
    if isinstance(value, Loader):
        return "a DataLoader", "what it is built from"
    if isinstance(value, Object):
        if value.is_module or value.cls is None:
            return None
        return f"an instance of {value.cls.name}", "its fields in a dict"
    if isinstance(value, (Function, Partial)):
        return "a function", "its name"
    if isinstance(value, Class):
        return "a class", "its name"
    if isinstance(value, External):
        if value.qualname == "torch.__version__":
            return "torch's own version type", "str({})"
        return ("a function", "its name") if operations.function(value.qualname) is not None else None
    if isinstance(value, Symbol):
        return _unknown(call, value, makers) or _enum(call, key)
    return _enum(call, key)


def _unknown(call: Call, value: Symbol, makers: dict[ast.AST, str]) -> Described | None:
    name = _maker(value, makers) or value.annotation or ""
    if value.origin == "attribute" and value.of is not None and value.name.endswith(".parent"):
        name = "pathlib.Path" if _maker(value.of, makers).startswith("pathlib.") else name
    found = _REFUSED.get(name)
    if found is not None or not value.annotation:
        return found
    if value.annotation in ("numpy.ndarray", "numpy.float64", "numpy.float32", "numpy.generic"):
        return "a numpy value", "{0}.tolist() or a tensor"
    declared = call.module.project.definition(value.annotation, call.module)
    if isinstance(declared, ClassInfo) and declared.resolved and not declared.is_module:
        return f"an instance of {declared.name}", "its fields in a dict"
    return None


def _enum(call: Call, key: str) -> Described | None:
    """``Mode.TRAIN``: the interpreter sees its value only."""
    expression = written(call, key)
    if not isinstance(expression, ast.Attribute):
        return None
    owner = call.module.definition(expression.value, call.frame.scope)
    if isinstance(owner, ClassInfo) and any(base in _ENUMS for base in owner.mro):
        return f"a member of {owner.name}", "{}.value"
    return None
