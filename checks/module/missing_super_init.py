"""TL101 missing-super-init."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchlint.check import (
    Applicability,
    Check,
    ClassInfo,
    Fix,
    FunctionInfo,
    ModuleClass,
    Report,
    Severity,
    is_super_call,
    module_class,
    on,
)
from torchlint.source.edits import insert_first, replace, safe

from .common import (
    REACHED_ANOTHER_WAY,
    cooperates,
    first_super_init,
    heading,
    is_abstract,
    is_empty,
    is_module_class,
    only_raises,
    reaches_module_init,
)


class MissingSuperInit(Check):
    """A module's `__init__` never reaches `nn.Module.__init__`, so that it has no tables for its layers.

    The first `self.layer = nn.Linear(...)` raises "cannot assign module before Module.__init__() call"; without a
    layer, calling the module raises `AttributeError: object has no attribute '_backward_hooks'`.

    ## Why

    `nn.Module.__init__` makes the dictionaries in which parameters, buffers, submodules and hooks are registered.
    `super(nn.Module, self).__init__()` is the same fault in disguise: it starts looking *after* `nn.Module`. So is
    `super(Net).__init__()` without self.

    ## Bad

        class Net(nn.Module):
            def __init__(self, width):
                self.fc = nn.Linear(width, 2)

    ## Good

        class Net(nn.Module):
            def __init__(self, width):
                super().__init__()
                self.fc = nn.Linear(width, 2)

    ## Known limits

    A call in any branch, or in a helper that `__init__` calls through `self`, counts. A class with a base that can't
    be found is believed to be initialised by the methods it may inherit. The fix is left out where the base's
    `__init__` needs arguments that this one doesn't have.
    """

    code = "TL101"
    name = "missing-super-init"
    severity = Severity.ERROR
    fixable = Applicability.SAFE
    failures = ("T-D1",)
    mentions = ("__init__", "dataclass", "Module")

    @on(ModuleClass)
    def check(self, cls: ClassInfo, report: Report) -> None:
        init = cls.methods.get("__init__")
        if _is_ordinary(cls, init) or cls.method("__new__") is not None:
            return
        if init is None:
            self._generated_or_inherited(cls, report)
            return
        wrong, reached = _calls_of_base_init(cls, init)
        source = cls.module.source
        for call in wrong:
            if not reached:
                given = call.func.value.args if isinstance(call.func, ast.Attribute) else []  # type: ignore[attr-defined]
                why = "starts looking behind nn.Module" if len(given) > 1 else "without self is bound to no object"
                report(
                    call,
                    f"{ast.unparse(call.func.value)} {why}, so {cls.name} is never initialised as a module; write "  # type: ignore[attr-defined]
                    "super().__init__().",
                    fix=safe("Call super().__init__()", replace(source, call, "super().__init__()")),
                )
                return
        blocking = _blocking_mixin(cls, init)
        if blocking is not None:
            call, mixin = blocking
            report(
                call,
                f"super().__init__() runs {mixin.name}.__init__, which doesn't call super().__init__() itself, so "
                f"nn.Module.__init__ is never reached and {cls.name} can hold no layers.",
                help=f"Call super().__init__() in {mixin.name}.__init__, or nn.Module.__init__(self) here.",
            )
            return
        if reached or _is_stub(cls, init.node) or not _is_closed(cls, init):
            return
        if not _is_used_as_module(cls) or _is_initialised_beside_another(cls):
            return
        report(heading(source, init.node), _message(cls), fix=_call_first(cls, init))

    def _generated_or_inherited(self, cls: ClassInfo, report: Report) -> None:
        """Classes without an ``__init__`` of their own: dataclasses, and those that inherit a mixin's."""
        source = cls.module.source
        if _is_dataclass(cls):
            post_init = cls.method("__post_init__")
            if (post_init is None or not _calls_of_base_init(cls, post_init)[1]) and _is_used_as_module(cls):
                report(
                    heading(source, cls.node),
                    f"The __init__ that @dataclass writes for {cls.name} never calls super().__init__(), so its "
                    "first layer can't be assigned.",
                    help="Write __init__ by hand, or call super().__init__() before any field is set.",
                )
            return
        mixin = _uncooperative_first_base(cls)
        if mixin is not None:
            report(
                heading(source, cls.node),
                f"{cls.name} gets its __init__ from {mixin.name}, which doesn't call super().__init__(), so "
                "nn.Module.__init__ never runs.",
                help=f"Call super().__init__() in {mixin.name}.__init__, or put nn.Module first among the bases.",
            )


def _is_ordinary(cls: ClassInfo, init: FunctionInfo | None) -> bool:
    """Whether a class does as most do: a module is its first base, and its ``__init__``, if any, calls super's."""
    if len(cls.node.bases) > 1 and not is_module_class(cls.node.bases[0], cls):
        return False
    return not _is_dataclass(cls) if init is None else first_super_init(init) is not None


def _message(cls: ClassInfo) -> str:
    first = _first_registered(cls)
    if first:
        return (
            f"{cls.name}.__init__ never calls super().__init__(): self.{first} = ... will raise "
            '"cannot assign module before Module.__init__() call".'
        )
    return (
        f"{cls.name}.__init__ never calls super().__init__(): calling, moving or printing the module will raise "
        "AttributeError."
    )


def _first_registered(cls: ClassInfo) -> str | None:
    """The first attribute that ``__init__`` sets to a module or a parameter."""
    instances = cls.module.instances
    for name in cls.written_attributes:
        for use in cls.writes(name):
            if use.value is None or use.method.name != "__init__":
                continue
            if any(made.kind in ("module", "parameter") for made in instances.makes(use.value, use.scope)):
                return name
    return None


def _is_used_as_module(cls: ClassInfo) -> bool:
    """Whether anything that nn.Module does is asked of the class: registering layers, or being called."""
    if _first_registered(cls) or any(_registrations(cls)):
        return True
    if _is_dataclass(cls):
        return cls.method("forward") is not None or any(
            any(made.kind == "module class" for made in cls.module.instances.makes(field.annotation, cls.scope))
            for field in cls.node.body
            if isinstance(field, ast.AnnAssign)
        )
    return cls.method("__call__") is None


def _registrations(cls: ClassInfo) -> Iterator[ast.Call]:
    for call, _ in cls.module.instances.registrations(cls):
        if not isinstance(call.func, ast.Name):
            yield call


def _is_initialised_beside_another(cls: ClassInfo) -> bool:
    """Whether subclasses run this ``__init__`` by name beside another base's, as if it were a mixin's."""
    for other in cls.subclasses:
        inits = [call for call, _ in other.scope.all_calls("__init__") if isinstance(call.func, ast.Attribute)]
        bases = [other.module.definition(call.func.value, other.scope) for call in inits]  # type: ignore[attr-defined]
        if any(base is cls for base in bases) and len(bases) > 1:
            return True
    return False


def _calls_of_base_init(cls: ClassInfo, start: FunctionInfo) -> tuple[list[ast.Call], bool]:
    """Calls of ``super(nn.Module, self).__init__`` in a method and its helpers, and whether a right one is there."""
    wrong: list[ast.Call] = []
    for function in cls.self_calls(start):
        for call, scope in function.scope.all_calls("__init__"):
            if not isinstance(call.func, ast.Attribute):
                continue
            answer = reaches_module_init(call.func.value, function.module, scope)
            if answer:
                return wrong, True
            if answer is None:
                wrong.append(call)
    return wrong, False


def _uncooperative_first_base(cls: ClassInfo) -> ClassInfo | None:
    """The class that is no module, stands before the first module among the bases, and keeps ``__init__`` to itself."""
    for base in cls.bases:
        if not isinstance(base, ClassInfo) or base.is_module is not False or not base.resolved:
            return None
        init = base.method("__init__")
        if init is not None and init.cls is not None:
            if cooperates(init) or is_empty(init.node) or "abc.abstractmethod" in init.decorators:
                return None
            return init.cls
    return None


def _blocking_mixin(cls: ClassInfo, init: FunctionInfo) -> tuple[ast.Call, ClassInfo] | None:
    """The only call of a base's ``__init__``, through super(), and the mixin in which it ends."""
    calls = [call for function in cls.self_calls(init) for call, _ in function.scope.all_calls("__init__")]
    if len(calls) != 1 or not isinstance(calls[0].func, ast.Attribute):
        return None
    base = calls[0].func.value
    if (
        not isinstance(base, ast.Call)
        or not is_super_call(base)
        or not any(c is calls[0] for c, _ in init.scope.all_calls("__init__"))
    ):
        return None
    if base.args and cls.module.definition(base.args[0], cls.scope.parent) is not cls:
        return None
    mixin = _uncooperative_first_base(cls)
    return None if mixin is None or not _is_closed(cls, init) else (calls[0], mixin)


def _is_stub(cls: ClassInfo, init: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    if only_raises(init):
        return True
    if not is_empty(init):
        return False
    if any(isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant) and s.value.value is ... for s in init.body):
        return True
    forward = cls.methods.get("forward")
    return is_abstract(cls) or forward is None or is_empty(forward.node) or only_raises(forward.node)


def _is_closed(cls: ClassInfo, init: FunctionInfo) -> bool:
    """Whether nothing that ``__init__`` does could initialise the module in a way that isn't seen."""
    for function in cls.self_calls(init):
        calls = {id(call.func) for call, _ in function.scope.all_calls("__init__")}
        bare = {id(s.value) for s in ast.walk(function.node) if isinstance(s, ast.Expr)}
        for node in ast.walk(function.node):
            if isinstance(node, ast.Attribute) and node.attr in REACHED_ANOTHER_WAY:
                if node.attr == "__class__" or id(node) in calls or id(node) in bare:
                    continue
                return False
            if isinstance(node, ast.Call) and not _is_innocent(cls, function, node):
                return False
    return True


def _is_innocent(cls: ClassInfo, function: FunctionInfo, call: ast.Call) -> bool:
    """Whether a call can't be what initialises self."""
    me = function.scope.self_name
    func = call.func
    if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id == me:
        return cls.method(func.attr) is not None or all(_is_known(base) for base in cls.mro)
    if not any(isinstance(a, ast.Name) and a.id == me for a in (*call.args, *(k.value for k in call.keywords))):
        return True
    if isinstance(func, ast.Attribute) and func.attr == "__init__":
        return True
    name = function.module.qualname(func, function.scope)
    return name is not None and name.partition(".")[0] in ("builtins", "torch")


def _is_known(base: ClassInfo | str | None) -> bool:
    """Whether a base is one whose methods don't initialise nn.Module behind the scenes."""
    if isinstance(base, str):
        return module_class(base) is not None or base.partition(".")[0] in ("abc", "builtins", "typing")
    return base is not None


def _is_dataclass(cls: ClassInfo) -> bool:
    for decorator in cls.node.decorator_list:
        call = decorator if isinstance(decorator, ast.Call) else None
        name = cls.module.dotted(call.func if call else decorator, cls.scope.parent)
        if name == "dataclasses.dataclass":
            return not any(
                k.arg == "init" and isinstance(k.value, ast.Constant) and not k.value.value
                for k in (call.keywords if call else ())
            )
    return False


# ---------------------------------------------------------------------------------------------------- the fix


def _call_first(cls: ClassInfo, init: FunctionInfo) -> Fix | None:
    given = _arguments_for_base(cls, init)
    source = cls.module.source
    if given is None:
        return None
    bare = next((n for n in ast.walk(init.node) if isinstance(n, ast.Expr) and _is_bare_super_init(n.value)), None)
    if bare is not None:
        return safe("Call super().__init__()", replace(source, bare.value, f"super().__init__({given})"))
    return safe("Call super().__init__() first", insert_first(source, init.node, f"super().__init__({given})"))


def _is_bare_super_init(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "__init__" and is_super_call(node.value)


def _arguments_for_base(cls: ClassInfo, init: FunctionInfo) -> str | None:
    """What to pass on: the base's required arguments, by the names under which this ``__init__`` gets them."""
    own = {argument.arg for argument in init.parameters}
    needed: list[str] = []
    for base in cls.mro[1:]:
        if isinstance(base, ClassInfo):
            if base.is_module is False:
                return None
            inherited = base.methods.get("__init__")
            if inherited is None:
                continue
            needed = list(_required(inherited))
            break
        if base is None:
            return None
        needed = list(_required_by_external(base))
        break
    return ", ".join(needed) if all(name.partition("=")[0] in own for name in needed) else None


def _required(init: FunctionInfo) -> Iterator[str]:
    arguments = init.node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    for argument in positional[1 : len(positional) - len(arguments.defaults)]:
        yield argument.arg
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if default is None:
            yield f"{argument.arg}={argument.arg}"


def _required_by_external(qualname: str) -> Iterator[str]:
    if qualname.startswith("transformers."):
        yield "config"
        return
    spec = module_class(qualname)
    if spec is not None and spec.name != "torch.nn.Module":
        for argument in spec.signature.arguments:
            if argument.required:
                yield argument.name if argument.kind == "positional" else f"{argument.name}={argument.name}"
