"""The other half of saving a state dict: where the same file loads it, the model is built first."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchlint.check import Fix, Module, Object, Scope, Value
from torchlint.source.edits import Edits, append, belongs, replace_statement, unsafe


def saved_as_state(module: Module, expression: ast.expr, key: str | None, value: Value) -> Fix | None:
    """Save ``model.state_dict()``, and give it to ``load_state_dict`` where the file takes the model out again.

    None when it is taken out in a way that can't be written so.
    """
    edits: list[Edits | None] = [append(module.source, expression, ".state_dict()")]
    for taken, scope in _taken_out(module, key):
        parent = scope.parents.get(taken)
        if not _is_loaded(parent, taken):
            edits.append(_built_and_loaded(module, parent, taken, value))
    return unsafe("Save the state dict", *edits)


def _is_loaded(parent: ast.AST | None, taken: ast.expr) -> bool:
    """Whether what was taken out goes into ``load_state_dict``, or nowhere."""
    if isinstance(parent, ast.Expr):
        return True
    func = parent.func if isinstance(parent, ast.Call) and taken in parent.args else None
    return isinstance(func, ast.Attribute) and func.attr == "load_state_dict"


def _built_and_loaded(module: Module, parent: ast.AST | None, taken: ast.expr, value: Value) -> Edits | None:
    """``net = checkpoint["net"]`` -> ``net = Net(4)`` and ``net.load_state_dict(checkpoint["net"])``."""
    source, made = module.source, value.node
    if not isinstance(parent, ast.Assign) or len(parent.targets) != 1 or parent.value is not taken:
        return None
    if not isinstance(value, Object) or not isinstance(made, ast.Call) or not belongs(source, made):
        return None
    target = parent.targets[0]
    names = {node.id for node in ast.walk(made) if isinstance(node, ast.Name)}
    text = source.segment(made)
    if (
        not isinstance(target, (ast.Name, ast.Attribute))
        or "\n" in text
        or any(n not in module.bindings for n in names)
    ):
        return None
    model = source.segment(target)
    return replace_statement(source, parent, f"{model} = {text}\n{model}.load_state_dict({source.segment(taken)})")


def _taken_out(module: Module, key: str | None) -> Iterator[tuple[ast.expr, Scope]]:
    """The expressions of the file that hold what was saved (under the key), loaded again."""
    for call, scope in module.scope.all_calls("load"):
        if module.qualname(call.func, scope) != "torch.load":
            continue
        if key is None:
            yield call, scope
            continue
        assigned = scope.parents.get(call)
        names = (
            {t.id for t in assigned.targets if isinstance(t, ast.Name)} if isinstance(assigned, ast.Assign) else set()
        )
        for node in ast.walk(scope.node):
            if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and node.slice.value == key:
                held = node.value
                if held is call or (isinstance(held, ast.Name) and held.id in names):
                    yield node, scope
