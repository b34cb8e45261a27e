"""What the rules on autograd share."""

from __future__ import annotations

import ast

from torchlint.check import Event, Fix, InPlaceChange, Module, Scope
from torchlint.source.edits import name_for, safe, wrap_statements

GRAD_OFF = frozenset({"torch.no_grad", "torch.inference_mode"})


def spelled(node: ast.AST) -> str:
    """The user's own words for an expression, shortened."""
    text = ast.unparse(node) if isinstance(node, ast.expr) else ""
    return text if len(text) <= 60 else f"{text[:57]}..."


def changed_expression(change: InPlaceChange) -> ast.AST:
    """The expression whose memory an in-place change writes to."""
    node = change.node
    if isinstance(node, ast.AugAssign):
        return node.target
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and change.how == "method":
        return node.func.value
    return node


def under_no_grad(event: Event) -> Fix | None:
    """The event's statement put under ``with torch.no_grad():``."""
    source = event.module.source
    statement = event.statement
    name = name_for(source, "torch.no_grad", statement)
    if name is None:
        return None
    return safe("with torch.no_grad():", name.edits, wrap_statements(source, [statement], f"with {name.spelling}():"))


def only_called_without_grad(event: Event) -> bool:
    """Whether the function that an event stands in is called in its file under no_grad or inference_mode.

    Asked where the grad mode is the caller's (``event.grad`` is None): a helper of such a caller is no fault.
    """
    module = event.module
    scope: Scope | None = event.frame.scope
    return event.grad is None and scope is not None and _called_without_grad(module, scope, 3, set())


def _called_without_grad(module: Module, scope: Scope, levels: int, seen: set[Scope]) -> bool:
    if not scope.is_function or scope in seen or not levels:
        return False
    seen.add(scope)
    for call, caller in module.scope.all_calls(scope.name):
        if caller is scope:
            continue
        if _grad_is_off(module, caller, call) or _called_without_grad(module, caller, levels - 1, seen):
            return True
    return False


def _grad_is_off(module: Module, scope: Scope, node: ast.AST) -> bool:
    if scope.is_function:
        info = module.function(scope)
        if any(name in GRAD_OFF for name in info.decorators):
            return True
    block = scope.enclosing(node, ast.With, ast.AsyncWith)
    while block is not None:
        for item in block.items:  # type: ignore[attr-defined]
            context = item.context_expr
            name = module.qualname(context.func if isinstance(context, ast.Call) else context, scope)
            if name in GRAD_OFF or name == "torch.set_grad_enabled":
                return True
        block = scope.enclosing(block, ast.With, ast.AsyncWith)
    return False
