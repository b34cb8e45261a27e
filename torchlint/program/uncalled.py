"""Methods that are named where they were meant to be called: ``model.eval`` as a statement of its own.

The rule about them tells them; rules about what is missing (a zero_grad, an eval, a no_grad) leave the place to it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchlint.program.index import Scope
from torchlint.program.module import Module

METHODS = frozenset({"eval", "train", "step", "zero_grad", "backward"})
MODES = frozenset({"torch.no_grad", "torch.inference_mode", "torch.enable_grad"})

_SUSPECT = re.compile(
    r"^[^#\n]*\.(?:eval|train|step|zero_grad|backward)[ \t]*(?:[;#].*)?$"
    r"|^[ \t]*(?:async[ \t]+)?with\b[^#\n]*\b(?:no_grad|inference_mode|enable_grad)[ \t]*(?:[:,]|as\b)"
    r"|(?:^|[;:])[ \t]*[\w.]*\b(?:no_grad|inference_mode|enable_grad)\([^()\n]*\)[ \t]*(?:[;#].*)?$",
    re.MULTILINE,
)
_STOPS = {
    **{f".{name}": re.compile(rf"\.{name}[ \t]*(?:[;#].*)?$", re.MULTILINE) for name in sorted(METHODS)},
    **{
        name: re.compile(rf"{name}(?:[ \t]*(?:[:,]|as\b)|\([^()\n]*\)[ \t]*(?:[;#].*)?$)", re.MULTILINE)
        for name in sorted(mode.rpartition(".")[2] for mode in MODES)
    },
}


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
    """All such places of a file; most files are passed over by a look at their text."""
    if not _is_suspect(module.source.text):
        return
    for node, scope in _statements(module):
        if isinstance(node, (ast.With, ast.AsyncWith)):
            for item in node.items:
                name = module.qualname(item.context_expr, scope)
                if name in MODES:
                    yield Uncalled(item.context_expr, name.rpartition(".")[2], scope, is_entered=True)
        elif isinstance(node.value, ast.Attribute):
            if node.value.attr in METHODS and module.dotted(node.value, scope) is None:
                yield Uncalled(node.value, node.value.attr, scope)
        elif isinstance(node.value, ast.Call):
            name = module.qualname(node.value.func, scope)
            if name in MODES:
                yield Uncalled(node.value, name.rpartition(".")[2], scope, is_called=True)


def _is_suspect(text: str) -> bool:
    """Whether a line of the text matches; only lines that a faster search stops at are matched."""
    return any(
        word in text and any(_SUSPECT.search(_line(text, found)) for found in search.finditer(text))
        for word, search in _STOPS.items()
    )


def _line(text: str, found: re.Match[str]) -> str:
    end = text.find("\n", found.end())
    return text[text.rfind("\n", 0, found.start()) + 1 : end if end >= 0 else len(text)]


def _statements(module: Module) -> Iterator[tuple[ast.Expr | ast.With | ast.AsyncWith, Scope]]:
    """Expression and with statements of the file, each with its scope."""
    for scope in module.scope.walk():
        if isinstance(scope.node, ast.Lambda):
            continue
        pending: list[ast.stmt] = list(scope.node.body)
        while pending:
            node = pending.pop()
            if isinstance(node, (ast.Expr, ast.With, ast.AsyncWith)):
                yield node, scope
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                continue
            for field in ("body", "orelse", "finalbody"):
                pending += getattr(node, field, ())
            for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
                pending += part.body
