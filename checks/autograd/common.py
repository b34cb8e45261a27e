"""What the rules on autograd share."""

from __future__ import annotations

import ast

from torchlint.check import Backward, Event, Fix, InPlaceChange, Module, Scope
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


RECORDING = frozenset({"__init__", "forward", "reset_parameters", "training_step"})
"""Methods that run while autograd records, unless somebody takes pains."""


def is_recording(event: Event) -> bool:
    """Whether autograd records where an event happens.

    Where the mode is a caller's that wasn't seen (``event.grad`` is None), something must speak for it: a backward in
    the same trace, a method that torch calls while recording, or such a caller in the file; and no caller in the file
    may be one that switches it off.
    """
    if event.grad is not None:
        return event.grad
    root = next(event.block.enclosing("root"))
    if next(root.events(Backward), None) is not None:
        return True
    return _recording_callers(event.module, event.frame.scope, 4, set()) is True


def _recording_callers(module: Module, scope: Scope, levels: int, seen: set[Scope]) -> bool | None:
    """True: it is called while recording; False: somewhere not; None: nothing tells."""
    if not scope.is_function:
        return True
    if scope in seen or not levels:
        return None
    seen.add(scope)
    answer: bool | None = None
    if scope.owner is not None and scope.name in RECORDING:
        answer = True
    for call, caller in module.scope.all_calls(scope.name):
        if caller is scope:
            continue
        if _grad_is_off(module, caller, call):
            return False
        above = _recording_callers(module, caller, levels - 1, seen)
        if above is False:
            return False
        answer = answer or above
    return answer


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
