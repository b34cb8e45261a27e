"""TL705 strict-false-unchecked."""

from __future__ import annotations

import ast

from torchlint.check import Call, Check, Module, Report, Scope, Severity, Symbol, Value, is_super_call, on

from .common import FILE, PARAMETER, argument, bindings, constant_of, is_constant, origins


class StrictFalseUnchecked(Check):
    """`load_state_dict(strict=False)` is called and its report of missing and unexpected keys is thrown away.

    ## Why

    `strict=False` loads the keys that match and says nothing of the others. When every key has a prefix (`module.`,
    `model.`, `_orig_mod.`) none matches: the model keeps its random weights and the program runs on. The only sign is
    the report that the call returns.

    ## Bad

        model.load_state_dict(checkpoint["state_dict"], strict=False)

    ## Good

        missing, unexpected = model.load_state_dict(checkpoint["state_dict"], strict=False)
        if missing:
            raise KeyError(f"not in the checkpoint: {missing}")

    ## Known limits

    A report that is bound to a name which is read anywhere, returned, or passed on counts as checked, and so does a
    function that compares the keys itself (it has variables for missing or unexpected keys), fills in the model's own
    state dict, or says in a comment right above why loading isn't strict. A state dict that comes
    straight from another module, or is written out key by key, was read from no file and is left alone. A class whose
    own load_state_dict returns nothing reports in its own way.
    """

    code = "TL705"
    name = "strict-false-unchecked"
    severity = Severity.WARNING
    failures = ("T-D6", "L-12")
    calls = ("load_state_dict",)

    @on(Module)
    def check(self, module: Module, report: Report) -> None:
        """Look at what becomes of each report."""
        for call, scope in module.scope.all_calls("load_state_dict"):
            if not isinstance(call.func, ast.Attribute):
                continue
            strict = argument(call, 1, "strict")
            if strict is None or not is_constant(constant_of(module, strict, scope), False):
                continue
            if _reports_itself(module, call.func.value, scope) or not _dropped(scope, call):
                continue
            if origins(module, scope, call, "state_dict") & {FILE, PARAMETER} and not _is_on_purpose(
                module, scope, call
            ):
                _tell(call.func, report)

    @on(Call)
    def loaded(self, call: Call, report: Report) -> None:
        """Checkpoints that were read by whoever calls the function."""
        node = call.node
        if call.name != "torch.nn.Module.load_state_dict" or not isinstance(node, ast.Call) or not call.arguments:
            return
        module, scope = call.module, call.frame.scope
        strict = argument(node, 1, "strict")
        if strict is None or not is_constant(constant_of(module, strict, scope), False) or not _is_loaded(call):
            return
        if isinstance(node.func, ast.Attribute) and _dropped(scope, node) and not _is_on_purpose(module, scope, node):
            _tell(node.func, report)


_METHOD = "load_state_dict"


def _tell(func: ast.expr, report: Report) -> None:
    report(
        func,
        "With strict=False a checkpoint whose keys don't match loads nothing, silently; "
        "check the missing and unexpected keys that load_state_dict returns.",
    )


def _is_loaded(call: Call) -> bool:
    """Whether the state dict is, or is a part of, what a call with load in its name gave."""
    value: Value | None = call.arguments[0]
    while isinstance(value, Symbol):
        made = value.node
        if isinstance(made, ast.Call) and "load" in ast.unparse(made.func).rpartition(".")[2]:
            return True
        value = value.of if value.origin in ("attribute", "element", "result") else None
    return False


def _reports_itself(module: Module, receiver: ast.expr, scope: Scope) -> bool:
    """Whether the receiver's class has a load_state_dict of its own that returns nothing."""
    cls = module.class_of(scope)
    if cls is None:
        return False
    if isinstance(receiver, ast.Name) and receiver.id == scope.self_name:
        method = cls.method(_METHOD)
    elif is_super_call(receiver):
        method = next((up.methods[_METHOD] for up in cls.ancestors() if _METHOD in up.methods), None)
    else:
        return False
    return method is not None and not any(node.value is not None for node in method.scope.of_type(ast.Return))  # type: ignore[attr-defined]


def _dropped(scope: Scope, call: ast.Call) -> bool:
    """Whether the report is not bound, or bound to names that nothing reads."""
    parent = scope.parents.get(call)
    if isinstance(parent, ast.Expr):
        return True
    if not isinstance(parent, ast.Assign) or len(parent.targets) != 1:
        return False
    target = parent.targets[0]
    parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
    names = [part.id for part in parts if isinstance(part, ast.Name)]
    receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
    if len(names) != len(parts) or (isinstance(receiver, ast.Name) and receiver.id in names):
        return False  # kept on an object, or bound to the model's own name: that is TL707
    return not any(
        isinstance(node, ast.Name) and node.id in names and isinstance(node.ctx, ast.Load)
        for node in ast.walk(scope.node)
    )


def _is_on_purpose(module: Module, scope: Scope, call: ast.Call) -> bool:
    """Whether the function finds out which keys don't match, has made them match, or says why they needn't."""
    if any("missing" in name or "unexpected" in name for name in scope.stores):
        return True
    return _has_the_models_keys(scope, call) or _says_why(module, call)


def _has_the_models_keys(scope: Scope, call: ast.Call) -> bool:
    """Whether what is loaded is the model's own state dict, filled: ``fill(loaded, model.state_dict())``."""
    given = argument(call, 0, "state_dict")
    receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
    if not isinstance(given, ast.Name) or receiver is None:
        return False
    model = scope.self_name if is_super_call(receiver) else ast.unparse(receiver)
    values = bindings(scope, given.id)
    return bool(values) and all(value is not None and _asks_for_state(value, model) for value in values)


def _asks_for_state(value: ast.expr, model: str | None) -> bool:
    own = [value, *(value.args if isinstance(value, ast.Call) else ())]
    return any(
        isinstance(part, ast.Call)
        and isinstance(part.func, ast.Attribute)
        and part.func.attr == "state_dict"
        and ast.unparse(part.func.value) == model
        for part in own
    )


def _says_why(module: Module, call: ast.Call) -> bool:
    """Whether a comment right above, or behind the call, speaks of it."""
    rows = module.source.lines[max(call.lineno - 4, 0) : call.end_lineno]
    comments = [row.partition("#")[2] for row in rows]
    return any("strict" in comment for comment in comments)
