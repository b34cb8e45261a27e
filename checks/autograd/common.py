"""What the rules on autograd share."""

from __future__ import annotations

import ast

from torchlint.check import Backward, Event, Fix, InPlaceChange, Module, Scope
from torchlint.source.edits import name_for, safe, wrap_statements
from torchlint.source.layout import place_of

GRAD_OFF = frozenset({"torch.no_grad", "torch.inference_mode"})


def changed_expression(change: InPlaceChange) -> ast.AST:
    """The expression whose memory an in-place change writes to."""
    node = change.node
    if isinstance(node, ast.AugAssign):
        return node.target
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and change.how == "method":
        return node.func.value
    return node


def under_no_grad(event: Event) -> Fix | None:
    """The event's statement put under ``with torch.no_grad():``, together with its neighbours of the same kind."""
    source = event.module.source
    statements = _changes_of_leaves_around(event)
    name = name_for(source, "torch.no_grad", statements[0])
    if name is None:
        return None
    return safe("with torch.no_grad():", name.edits, wrap_statements(source, statements, f"with {name.spelling}():"))


def _changes_of_leaves_around(event: Event) -> list[ast.stmt]:
    """The neighbouring statements, the event's among them, that each change a leaf: one block will do for them all."""
    place = place_of(event.module.source, event.statement)
    changes = [e.statement for e in event.block.events(InPlaceChange) if e.frame is event.frame and is_leaf_change(e)]
    if place is None:
        return [event.statement]
    first = last = place.index
    while first and any(statement is place.suite[first - 1] for statement in changes):
        first -= 1
    while last + 1 < len(place.suite) and any(statement is place.suite[last + 1] for statement in changes):
        last += 1
    return place.suite[first : last + 1]


def is_leaf_change(change: InPlaceChange) -> bool:
    """Whether an in-place change is one that torch refuses while autograd records."""
    return bool(change.leaf and change.requires_grad and not change.through_data)


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
