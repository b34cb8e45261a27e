"""Methods that are named where they were meant to be called: ``model.eval`` as a statement of its own.

The rule about them tells them; rules about what is missing (a zero_grad, an eval, a no_grad) leave the place to it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchlint.program.index import Scope, last_name
from torchlint.program.module import Module

METHODS = frozenset({"eval", "train", "step", "zero_grad", "backward"})
MODES = frozenset({"torch.no_grad", "torch.inference_mode", "torch.enable_grad"})

_MODE_NAMES = frozenset(mode.rpartition(".")[2] for mode in MODES)


class Uncalled:
    """One such place.

    ``name`` is the method's, or the mode's (``no_grad``). ``node`` is the attribute, what a ``with`` enters without
    calling it, or a call of a mode that stands alone (``is_called``) and so encloses nothing.
    """

    __slots__ = ("is_called", "is_entered", "name", "node", "scope")

    def __init__(
        self, node: ast.expr, name: str, scope: Scope, is_entered: bool = False, is_called: bool = False
    ) -> None:
        self.node = node
        self.name = name
        self.scope = scope
        self.is_entered = is_entered
        self.is_called = is_called


def find_uncalled(module: Module) -> Iterator[Uncalled]:
    """All such places of a file."""
    for scope in module.scope.walk():
        for statement in scope.of_type(ast.Expr):
            node = statement.value  # type: ignore[attr-defined]
            if node.attr in METHODS and module.dotted(node, scope) is None:
                yield Uncalled(node, node.attr, scope)
        for entered in _entered(scope):
            if isinstance(entered, (ast.Name, ast.Attribute)):
                name = module.qualname(entered, scope) if last_name(entered) in _MODE_NAMES else None
                if name in MODES:
                    yield Uncalled(entered, last_name(entered), scope, is_entered=True)
        if not _MODE_NAMES.isdisjoint(scope.calls):
            for call in _standing_alone(scope):
                if module.qualname(call.func, scope) in MODES:
                    yield Uncalled(call, last_name(call.func), scope, is_called=True)


def _entered(scope: Scope) -> list[ast.expr]:
    """What the with statements of a scope enter."""
    statements = (*scope.of_type(ast.With), *scope.of_type(ast.AsyncWith))
    return [item.context_expr for statement in statements for item in statement.items]  # type: ignore[attr-defined]


def _standing_alone(scope: Scope) -> Iterator[ast.Call]:
    """Calls of modes that are statements of their own."""
    usual = {id(node) for node in _entered(scope)}
    usual |= {id(node) for child in scope.children for node in getattr(child.node, "decorator_list", ())}
    for name in sorted(_MODE_NAMES & scope.calls.keys()):
        for call in scope.calls[name]:
            if id(call) not in usual and isinstance(scope.parents.get(call), ast.Expr):
                yield call
