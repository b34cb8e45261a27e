"""What several rules about modules share: places to report at, and how classes are put together."""

from __future__ import annotations

import ast
import re

from torchlint.check import ClassInfo, Position
from torchlint.source.file import SourceFile

_HEADING = re.compile(r"(?:async\s+)?(?:def|class)\s+\w+")


def heading(
    source: SourceFile, node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
) -> tuple[Position, Position]:
    """The ``class Name`` or ``def name`` of a definition: its body would be too much to point at."""
    start = source.position(node.lineno, node.col_offset)
    line = source.lines[start.row - 1]
    found = _HEADING.match(line, start.column - 1)
    return start, Position(start.row, (found.end() if found else len(line)) + 1)


def is_docstring(statement: ast.stmt) -> bool:
    """Whether a statement is a bare string."""
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def is_empty(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a body does nothing: docstring, ``pass``, ``...``, a bare ``return``."""
    return all(
        is_docstring(s)
        or isinstance(s, ast.Pass)
        or (isinstance(s, ast.Return) and s.value is None)
        or (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant) and s.value.value is ...)
        for s in function.body
    )


def only_raises(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a body surely ends by raising."""
    return isinstance(function.body[-1], ast.Raise)


def is_abstract(cls: ClassInfo) -> bool:
    """Whether a class says of itself that it is only to be derived from."""
    for base in cls.node.bases:
        if cls.module.qualname(base, cls.scope.parent) in ("abc.ABC", "typing.Protocol", "typing_extensions.Protocol"):
            return True
    if any(
        k.arg == "metaclass" and cls.module.qualname(k.value, cls.scope.parent) == "abc.ABCMeta"
        for k in cls.node.keywords
    ):
        return True
    return any("abc.abstractmethod" in m.decorators for m in cls.methods.values())
