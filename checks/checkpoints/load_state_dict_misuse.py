"""TL707 load-state-dict-misuse."""

from __future__ import annotations

import ast

from torchlint.check import (
    Applicability,
    Call,
    Check,
    ClassInfo,
    Event,
    ModeChange,
    Module,
    ModuleCall,
    Report,
    Scope,
    Severity,
    StateDict,
    Symbol,
    Trace,
    Value,
    module_class,
    on,
)
from torchlint.source.edits import name_for, replace_statement, safe, surround

from .common import argument, is_constant, is_path

_REPORT_ATTRIBUTES = frozenset({"missing_keys", "unexpected_keys", "count", "index", "_asdict", "_fields", "_replace"})
_LOADS = frozenset({"torch.load", "torch.serialization.load"})
_MODULE_ONLY = frozenset({"eval", "train", "parameters", "named_parameters", "forward", "cuda", "to", "cpu", "half"})


class LoadStateDictMisuse(Check):
    """`load_state_dict` is taken for something that gives a model, reads a file, or is called on a class.

    ## Why

    `model.load_state_dict(state)` changes the model in place and returns a report of the keys that didn't match. It
    takes a dict: the file is read by torch.load, which gives that dict and not a model.

    ## Bad

        model = model.load_state_dict(torch.load("model.pt"))
        model.eval()

    ## Good

        model.load_state_dict(torch.load("model.pt"))
        model.eval()

    ## Known limits

    A report that is bound to another name is left alone, unless that name is then used as a model. A class with a
    load_state_dict of its own is left alone.
    """

    code = "TL707"
    name = "load-state-dict-misuse"
    severity = Severity.ERROR
    fixable = Applicability.SAFE
    failures = ("L-12",)
    calls = ("load_state_dict", "load")

    @on(Module)
    def check(self, module: Module, report: Report) -> None:
        """What the spelling alone tells."""
        for call, scope in module.scope.all_calls("load_state_dict"):
            func = call.func
            parent = scope.parents.get(call)
            if not isinstance(func, ast.Attribute) or not _is_suspect(module, call, func, parent, scope):
                continue
            if _has_its_own(module, func.value, scope):
                continue
            self._rebound(module, call, func, parent, scope, report)
            if isinstance(parent, ast.Attribute) and parent.attr not in _REPORT_ATTRIBUTES:
                report(
                    call,
                    f"load_state_dict returns a report of the keys, which has no {parent.attr}; "
                    f"call {parent.attr} on the model, in a statement of its own.",
                )
            self._given_a_path(module, call, func, scope, report)
            if _on_a_class(module, func.value, scope) and len(call.args) == 1 and not _has_keyword(call, "state_dict"):
                text = module.source.segment(func.value)
                report(
                    func,
                    f"{text} is the class: load_state_dict needs an instance and raises here; "
                    f"write model = {text}(...) and model.load_state_dict(...).",
                )
        for scope in module.scope.walk():
            for node in scope.of_type(ast.Assign):
                self._overwritten(module, node, scope, report)  # type: ignore[arg-type]

    def _rebound(
        self, module: Module, call: ast.Call, func: ast.Attribute, parent: ast.AST | None, scope: Scope, report: Report
    ) -> None:
        """``model = model.load_state_dict(...)``."""
        receiver = ast.unparse(func.value)
        if not isinstance(parent, ast.Assign) or receiver not in [ast.unparse(target) for target in parent.targets]:
            return
        source = module.source
        only = len(parent.targets) == 1
        report(
            parent,
            f"load_state_dict changes {receiver} in place and returns a report of the keys, to which {receiver} is "
            "bound now; drop the assignment.",
            fix=safe("Drop the assignment", replace_statement(source, parent, source.segment(call)) if only else None),
        )

    def _given_a_path(self, module: Module, call: ast.Call, func: ast.Attribute, scope: Scope, report: Report) -> None:
        """``model.load_state_dict("model.pt")``."""
        given = argument(call, 0, "state_dict")
        if given is None or not is_path(module, given, scope):
            return
        name = name_for(module.source, "torch.load", call)
        report(
            given,
            "load_state_dict takes a state dict, not the name of a file, and raises; read the file with torch.load.",
            fix=safe(
                "Read the file",
                surround(module.source, given, f"{name.spelling}(", ', map_location="cpu")'),
                name.edits,
            )
            if name is not None
            else None,
        )

    def _overwritten(self, module: Module, node: ast.Assign, scope: Scope, report: Report) -> None:
        """``model.load_state_dict = torch.load(...)``."""
        for target in node.targets:
            if (
                isinstance(target, ast.Attribute)
                and target.attr == "load_state_dict"
                and isinstance(node.value, ast.Call)
                and module.qualname(node.value.func, scope) in _LOADS
            ):
                text = module.source.segment(target)
                report(
                    node,
                    f"This replaces the method {text} and loads nothing; call {text}(...).",
                )

    @on(Trace)
    def used(self, trace: Trace, report: Report) -> None:
        """A key report, or a state dict, that is called or switched to eval as if it were the model."""
        reports: dict[ast.AST, Call] = {}
        dicts: dict[ast.AST, Call] = {}
        saved: set[object] = set()
        told: set[ast.AST] = set()
        event: Event
        for event in trace.root.events():
            if isinstance(event, Call):
                if event.name == "torch.nn.Module.load_state_dict" and event.result is not None:
                    reports[event.node] = event
                elif event.name == "torch.save" and len(event.arguments) > 1 and _is_state(event.arguments[0]):
                    saved.add(_path_key(event.arguments[1]))
                elif event.name in _LOADS and event.result is not None and _gives_dict(event, saved):
                    dicts[event.node] = event
            target = _used_as_module(event)
            if target is None or target.origin != "result" or target.node is None or target.node in told:
                continue
            for table, what in ((reports, "the key report"), (dicts, "the state dict")):
                made = table.get(target.node)
                if made is None or made.frame.module is not report.module:
                    continue
                told.add(target.node)
                if table is reports:
                    parent = made.frame.scope.parents.get(made.node)
                    message = "load_state_dict returns a report of the keys, and that is used as the model later; "
                    report(parent if isinstance(parent, ast.Assign) else made.node, message + "keep the model itself.")
                else:
                    report(
                        made.node,
                        f"torch.load gives {what} here, a dict, and it is used as a model later; build the model and "
                        "give it the dict with load_state_dict.",
                    )


def _is_suspect(module: Module, call: ast.Call, func: ast.Attribute, parent: ast.AST | None, scope: Scope) -> bool:
    """Whether a call's own spelling may be at fault: only then it matters what it is called on."""
    if isinstance(parent, (ast.Assign, ast.Attribute)):
        return True
    given = argument(call, 0, "state_dict")
    return (given is not None and is_path(module, given, scope)) or _on_a_class(module, func.value, scope)


def _used_as_module(event: Event) -> Symbol | None:
    used: Value | None = None
    if isinstance(event, (ModeChange, ModuleCall)):
        used = event.target
    elif isinstance(event, Call) and event.name.rpartition(".")[2] in _MODULE_ONLY:
        used = event.receiver
    return used if isinstance(used, Symbol) else None


def _is_state(value: Value) -> bool:
    return isinstance(value, StateDict)


def _path_key(value: Value) -> object:
    """The same for the same file name: the string, or the unknown value itself."""
    return getattr(value, "value", value)


def _gives_dict(load: Call, saved: set[object]) -> bool:
    node = load.node
    if isinstance(node, ast.Call) and is_constant(argument(node, 3, "weights_only"), True):
        return True
    return bool(load.arguments) and _path_key(load.arguments[0]) in saved


def _has_its_own(module: Module, receiver: ast.expr, scope: Scope) -> bool:
    """Whether the receiver is an instance of a class of the project that defines load_state_dict."""
    if isinstance(receiver, ast.Name) and receiver.id == scope.self_name:
        cls = module.class_of(scope)
        return cls is not None and cls.method("load_state_dict") is not None
    return any(
        made.cls is not None and made.cls.method("load_state_dict") is not None
        for made in module.instances.makes(receiver, scope)
    )


def _on_a_class(module: Module, receiver: ast.expr, scope: Scope) -> bool:
    found = module.definition(receiver, scope)
    if isinstance(found, ClassInfo):
        return found.is_module is True
    name = module.qualname(receiver, scope)
    return name is not None and module_class(name) is not None


def _has_keyword(call: ast.Call, name: str) -> bool:
    return any(keyword.arg == name for keyword in call.keywords)
