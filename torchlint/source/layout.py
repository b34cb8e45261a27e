"""Where a statement stands on the page: its suite, its indentation, what shares its line.

``ast`` tells where nodes are but not what lies between them. Between two neighbouring nodes there are only brackets,
commas, keywords, comments and line ends, never a string, so the gap can be read character by character without a
tokenizer.
"""

from __future__ import annotations

import ast
import enum
import io
import re
import tokenize
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from torchlint.finding import Position
from torchlint.source.file import SourceFile

DEFAULT_UNIT = "    "
_BLANK = " \t\f"


class Standing(enum.Enum):
    """What precedes a statement on its line."""

    OWN_LINE = enum.auto()  # nothing but indentation
    AFTER_SEMICOLON = enum.auto()
    AFTER_COLON = enum.auto()  # the suite starts on its header's line: ``if x: y``


@dataclass(frozen=True, slots=True)
class Place:
    """A statement within the suite that holds it; ``owner`` is the node whose suite it is."""

    owner: ast.AST
    suite: list[ast.stmt]
    index: int

    @property
    def statement(self) -> ast.stmt:
        return self.suite[self.index]

    @property
    def previous(self) -> ast.stmt | None:
        return self.suite[self.index - 1] if self.index else None

    @property
    def next(self) -> ast.stmt | None:
        return self.suite[self.index + 1] if self.index + 1 < len(self.suite) else None


def suites(node: ast.AST) -> Iterator[tuple[ast.AST, list[ast.stmt]]]:
    """The suites a module or statement holds, each with its owner (itself, an except handler or a match case)."""
    for name in ("body", "orelse", "finalbody"):
        suite = getattr(node, name, None)
        if isinstance(suite, list) and suite:
            yield node, suite
    for owner in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        yield owner, owner.body


def first_row(statement: ast.stmt) -> int:
    """The row of a statement's first decorator, or of itself."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(decorator.lineno for decorator in decorators)])


def path_to(source: SourceFile, node: ast.AST) -> list[Place]:
    """The statements around a node, outermost first; the last is the node itself or the statement it is part of.

    Empty when the node isn't in this file's tree.
    """
    row, column = getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
    path: list[Place] = []
    holder: ast.AST | None = source.tree
    while holder is not None:
        place = next(filter(None, (_child_at(*held, row, column) for held in suites(holder))), None)
        if place is None:
            break
        path.append(place)
        holder = None if place.statement is node else place.statement
    if isinstance(node, ast.stmt) and (not path or path[-1].statement is not node):
        return []
    return path


def _child_at(owner: ast.AST, suite: list[ast.stmt], row: int, column: int) -> Place | None:
    index = bisect_right(suite, (row, column), key=_end)
    if index == len(suite):
        return None
    statement = suite[index]
    decorated = first_row(statement) != statement.lineno
    start = (first_row(statement), 0) if decorated else (statement.lineno, statement.col_offset)
    return Place(owner, suite, index) if start <= (row, column) else None


def _end(statement: ast.stmt) -> tuple[int, int]:
    return statement.end_lineno or statement.lineno, statement.end_col_offset or 0


def place_of(source: SourceFile, node: ast.AST) -> Place | None:
    """The innermost statement that a node is, or is part of."""
    path = path_to(source, node)
    return path[-1] if path else None


def start_of(source: SourceFile, statement: ast.stmt) -> Position:
    """A statement's first character, the ``@`` of its first decorator included."""
    row = first_row(statement)
    if row != statement.lineno:
        return Position(row, len(indent_of_row(source, row)) + 1)
    return source.position(statement.lineno, statement.col_offset)


def end_of(source: SourceFile, node: ast.AST) -> Position:
    """Just past a node's last character."""
    return source.span(node)[1]


def standing(source: SourceFile, statement: ast.stmt) -> Standing | None:
    """What precedes a statement on its line; None where it can't be moved about: an ``elif``, a line continued with
    a backslash in the middle of nowhere."""
    start = start_of(source, statement)
    line = source.lines[start.row - 1]
    before = line[: start.column - 1].rstrip(_BLANK)
    if before.endswith(";"):
        return Standing.AFTER_SEMICOLON
    if before.endswith(":"):
        return Standing.AFTER_COLON
    if before or (isinstance(statement, ast.If) and line.startswith("elif", start.column - 1)):
        return None
    if start.row > 1:
        above = source.lines[start.row - 2]
        if above.endswith("\\") and not above.lstrip(_BLANK).startswith("#"):
            return None
    return Standing.OWN_LINE


def indent_of_row(source: SourceFile, row: int) -> str:
    """The white space a row begins with."""
    line = source.lines[row - 1]
    return line[: len(line) - len(line.lstrip(_BLANK))]


def _owner_indent(source: SourceFile, owner: ast.AST) -> str | None:
    """The indentation of the line a suite's header stands on; None for the module, which has no header."""
    anchor = getattr(owner, "pattern", owner)  # a match case has no position of its own
    row = getattr(anchor, "lineno", None)
    return None if row is None else indent_of_row(source, row)


def _standing_indent(source: SourceFile, suite: Sequence[ast.stmt]) -> str | None:
    for statement in suite:
        if standing(source, statement) is Standing.OWN_LINE:
            return indent_of_row(source, first_row(statement))
    return None


def suite_indent(source: SourceFile, place: Place) -> str:
    """The indentation of the statements of a suite, or what it would be were a one-line suite opened."""
    found = _standing_indent(source, place.suite)
    if found is not None:
        return found
    outer = _owner_indent(source, place.owner)
    return "" if outer is None else outer + indent_unit(source, place.statement)


def indent_unit(source: SourceFile, near: ast.AST) -> str:
    """What one level of indentation is in this file: the nearest example around a node, else the file's first."""
    around = ((place.owner, place.suite) for place in reversed(path_to(source, near)))
    found = _first_unit(source, around)
    if found is not None:
        return found
    if source.tree not in _units:
        _units[source.tree] = _first_unit(source, _all_suites(source.tree)) or DEFAULT_UNIT
    return _units[source.tree]


_units: WeakKeyDictionary[ast.Module, str] = WeakKeyDictionary()


def _first_unit(source: SourceFile, held: Iterable[tuple[ast.AST, list[ast.stmt]]]) -> str | None:
    for owner, suite in held:
        outer = _owner_indent(source, owner)
        if outer is not None:
            inner = _standing_indent(source, suite)
            if inner is not None and inner != outer and inner.startswith(outer):
                return inner[len(outer) :]
    return None


def _all_suites(node: ast.AST) -> Iterator[tuple[ast.AST, list[ast.stmt]]]:
    for owner, suite in suites(node):
        yield owner, suite
        for statement in suite:
            yield from _all_suites(statement)


def marks(source: SourceFile, start: Position, end: Position) -> Iterator[tuple[str, Position]]:
    """The characters of a gap between nodes, without white space, comments and line continuations."""
    for row in range(start.row, end.row + 1):
        line = source.lines[row - 1]
        first = start.column - 1 if row == start.row else 0
        last = end.column - 1 if row == end.row else len(line)
        for column in range(first, last):
            if line[column] == "#":
                break
            if line[column] not in " \t\f\\":
                yield line[column], Position(row, column + 1)


def after(position: Position, characters: int = 1) -> Position:
    """The place some characters further along the same row."""
    return Position(position.row, position.column + characters)


def end_of_row(source: SourceFile, row: int) -> Position:
    """Just past a row's last character."""
    return Position(row, len(source.lines[row - 1]) + 1)


def last_row(source: SourceFile, place: Place) -> int:
    """The last row that belongs to a statement: comments after a block, as deep as the block, are part of it."""
    statement = place.statement
    row = statement.end_lineno or statement.lineno
    if not any(True for _ in suites(statement)):
        return row
    depth = len(suite_indent(source, place).expandtabs())
    for below in range(row + 1, len(source.lines) + 1):
        line = source.lines[below - 1].strip(_BLANK)
        if line and not (line.startswith("#") and len(indent_of_row(source, below).expandtabs()) > depth):
            break
        if line:
            row = below
    return row


def string_rows(source: SourceFile, statements: Sequence[ast.stmt]) -> set[int]:
    """The rows that begin inside a string literal, where white space is content."""
    rows: set[int] = set()
    todo: list[ast.AST] = list(statements)
    while todo:
        node = todo.pop()
        is_string = isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))
        if is_string or type(node).__name__ in ("JoinedStr", "TemplateStr"):
            rows.update(_rows_within_literals(source, node))
        else:
            todo.extend(ast.iter_child_nodes(node))
    return rows


def comments_between(source: SourceFile, start: Position, end: Position) -> list[str]:
    """The comments in a statement's text, given where it starts and where its last row ends."""
    text = source.text[source.offset(start) : source.offset(end)]
    lines = iter([f"{line}\n" for line in re.split("\r\n|\r|\n", text)])
    try:
        tokens = list(tokenize.generate_tokens(lambda: next(lines, "")))
    except (tokenize.TokenError, SyntaxError):
        return []
    return [token.string for token in tokens if token.type == tokenize.COMMENT]


def _rows_within_literals(source: SourceFile, node: ast.AST) -> set[int]:
    start, end = source.span(node)
    if start.row == end.row:
        return set()
    rows: set[int] = set()
    opened: list[int] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(f"({source.segment(node)})").readline):
            kind = tokenize.tok_name[token.type]
            if kind.endswith("STRING_START"):  # f-strings are several tokens since Python 3.12
                opened.append(token.start[0])
            elif kind.endswith("STRING_END"):
                rows.update(range(opened.pop() + 1, token.end[0] + 1))
            elif kind == "STRING":
                rows.update(range(token.start[0] + 1, token.end[0] + 1))
    except (tokenize.TokenError, SyntaxError, IndexError):
        return set(range(start.row + 1, end.row + 1))
    return {row + start.row - 1 for row in rows}
