"""The smallest text edits that change a program, made from ``ast`` nodes.

Every function is pure: it reads a :class:`SourceFile` and returns the edits that do what it says, leaving comments,
blank lines, line ends, tabs and everything else untouched. It returns None where that can't be done with confidence
(a statement in the middle of a continued line, a node that Python places wrongly inside an f-string), and :func:`safe`
and :func:`unsafe` pass that on, so a check writes

    report(call, message, fix=safe("dim=1", add_argument(source, call, "dim=1")))

Text given for statements is written flush left with four spaces a level and newlines as ``\\n``; it comes out at the
place's indentation, in the file's own unit and line ends. Rows are those of the source's text, also in notebooks.
"""

from __future__ import annotations

import ast
import itertools
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Literal

from torchlint.finding import Applicability, Edit, Fix, Position
from torchlint.source.file import SourceFile
from torchlint.source.imports import Name, add_import, name_for
from torchlint.source.layout import (
    DEFAULT_UNIT,
    Place,
    Standing,
    after,
    comments_between,
    end_of,
    end_of_row,
    indent_of_row,
    indent_unit,
    last_row,
    marks,
    place_of,
    standing,
    start_of,
    string_rows,
    suite_indent,
)

__all__ = [
    "Edits",
    "Name",
    "add_argument",
    "add_decorator",
    "add_element",
    "add_import",
    "append",
    "belongs",
    "delete_statement",
    "insert_first",
    "insert_last",
    "insert_statement_after",
    "insert_statement_before",
    "insert_text",
    "move_statement",
    "move_statements",
    "name_for",
    "remove_argument",
    "rename_attribute",
    "replace",
    "replace_callee",
    "replace_statement",
    "safe",
    "set_argument",
    "statement_of",
    "surround",
    "unsafe",
    "wrap_statements",
]

Edits = tuple[Edit, ...]

_PRIMARIES = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)
_WORDS_BEFORE_GROUPS = frozenset(
    {
        *("and", "as", "assert", "await", "case", "elif", "else", "for", "from", "if", "in", "is", "lambda", "not"),
        *("or", "raise", "return", "while", "with", "yield"),
    }
)
_VERBATIM = "\0"  # marks a line of statement text that begins inside a string: it must not be indented
_WORD = re.compile(r"\w+$")


# ---------------------------------------------------------------------------------------------------- whole fixes


def safe(message: str, *parts: Edits | None) -> Fix | None:
    """A fix that never changes what a correct program computes; None when one of its parts is."""
    return _fix(message, Applicability.SAFE, parts)


def unsafe(message: str, *parts: Edits | None) -> Fix | None:
    """A fix that changes a model's architecture or its training; None when one of its parts is."""
    return _fix(message, Applicability.UNSAFE, parts)


def _fix(message: str, applicability: Applicability, parts: Iterable[Edits | None]) -> Fix | None:
    edits: set[Edit] = set()
    for part in parts:
        if part is None:
            return None
        edits.update(part)
    ordered = sorted(edits, key=lambda edit: (edit.start, edit.end))
    overlapping = any(before.end > behind.start for before, behind in itertools.pairwise(ordered))
    if not ordered or overlapping:
        return None
    return Fix(message, applicability, tuple(ordered))


# ---------------------------------------------------------------------------------------------------- expressions


def replace(source: SourceFile, node: ast.expr, text: str) -> Edits | None:
    """Write something else for an expression; the caller adds the parentheses that the new text needs."""
    if _misplaced(source, node):
        return None
    start, end = source.span(node)
    if _holds_the_calls_parentheses(source, node):
        start, end = after(start), after(end, -1)
    return (Edit(start, end, text),)


def replace_callee(source: SourceFile, call: ast.Call, text: str) -> Edits | None:
    """Call something else with the same arguments: ``torch.range(3)`` -> ``torch.arange(3)``."""
    return replace(source, call.func, text)


def rename_attribute(source: SourceFile, attribute: ast.Attribute, name: str) -> Edits | None:
    """Write another name behind the dot: ``x.view`` -> ``x.reshape``."""
    end = end_of(source, attribute)
    if _misplaced(source, attribute) or not source.segment(attribute).endswith(attribute.attr):
        return None  # the second: an identifier that Python normalizes is spelt differently in the file
    return (Edit(after(end, -len(attribute.attr)), end, name),)


def insert_text(position: Position, text: str) -> Edits:
    """Insert text at a position."""
    return (Edit(position, position, text),)


def surround(source: SourceFile, node: ast.expr, before: str, behind: str) -> Edits | None:
    """Put text around an expression: ``x`` -> ``torch.sqrt(x)``; a tuple or generator remains one."""
    if _misplaced(source, node):
        return None
    start, end = source.span(node)
    if isinstance(node, ast.Tuple) and node.elts and not _in_parentheses(source, node):
        before, behind = f"{before}(", f"){behind}"
    if _holds_the_calls_parentheses(source, node):
        return (*insert_text(after(start), f"{before}("), *insert_text(after(end, -1), f"){behind}"))
    return (*insert_text(start, before), *insert_text(end, behind))


def append(source: SourceFile, node: ast.expr, text: str) -> Edits | None:
    """Put a method call or subscript behind an expression: ``a + b`` -> ``(a + b).detach()``."""
    if _misplaced(source, node):
        return None
    end = end_of(source, node)
    is_string = isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))
    if isinstance(node, _PRIMARIES) or is_string or _is_bracketed(source, node):
        return insert_text(end, text)
    if _holds_the_calls_parentheses(source, node):
        return surround(source, node, "", text)
    grouped = _group_around(source, node)
    if grouped is not None:
        return insert_text(grouped, text)
    if isinstance(node, ast.Tuple):
        return surround(source, node, "", text)
    return surround(source, node, "(", f"){text}")


def _group_around(source: SourceFile, node: ast.expr) -> Position | None:
    """Just past the parentheses that already group an expression (not a call's), when they stand on its rows."""
    start, end = source.span(node)
    before = source.lines[start.row - 1][: start.column - 1].rstrip()
    line = source.lines[end.row - 1]
    behind = line[end.column - 1 :]
    closing = behind.lstrip()
    if not before.endswith("(") or not closing.startswith(")"):
        return None
    if _callable_before(before[:-1]):
        return None
    return Position(end.row, len(line) - len(closing) + 2)


def _callable_before(text: str) -> bool:
    """Whether a parenthesis behind this text opens a call's arguments (or a subscriptable's), not a group."""
    text = text.rstrip()
    word = _WORD.search(text)
    if word is not None:
        return word[0] not in _WORDS_BEFORE_GROUPS
    return text.endswith((")", "]", "}", '"', "'"))


def _is_bracketed(source: SourceFile, node: ast.expr) -> bool:
    """Whether an expression's own brackets make it one that a dot can follow."""
    if isinstance(node, ast.Tuple):
        return not node.elts or _in_parentheses(source, node)
    if isinstance(node, ast.GeneratorExp):
        return not _holds_the_calls_parentheses(source, node)
    return isinstance(node, (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp))


def _holds_the_calls_parentheses(source: SourceFile, node: ast.expr | ast.keyword) -> bool:
    """Whether the parentheses of ``f(x for x in y)`` count as the generator's, as they do to ``ast``."""
    if not isinstance(node, ast.GeneratorExp):
        return False
    start = source.span(node)[0]
    return _callable_before(source.lines[start.row - 1][: start.column - 1])


def _misplaced(source: SourceFile, node: ast.expr) -> bool:
    """Whether ``ast`` may say a wrong place for a node: before Python 3.12 it does so within f-strings."""
    if sys.version_info >= (3, 12):
        return False
    statement = statement_of(source, node)
    if statement is None:
        return True
    return any(
        child is node
        for string in ast.walk(statement)
        if isinstance(string, ast.JoinedStr)
        for child in ast.walk(string)
        if child is not string
    )


# ---------------------------------------------------------------------------------------------------- arguments


def add_argument(source: SourceFile, call: ast.Call, text: str) -> Edits | None:
    """Add an argument to a call: ``dim=1`` behind all others, ``x`` behind the positional ones."""
    if _misplaced(source, call):
        return None
    is_keyword = re.match(r"\s*(\w+\s*=(?!=)|\*\*)", text) is not None
    arguments = _arguments(source, call)
    if not is_keyword and any(isinstance(argument, ast.keyword) for argument in arguments):
        if any(isinstance(argument, ast.expr) for argument in arguments[len(call.args) :]):
            return None  # f(x=1, *rest): nothing can be put behind ``rest`` and in front of ``x``
        if not call.args:
            return insert_text(_opening(source, call), f"{text}, ")
        return insert_text(_outer_end(source, call, arguments, len(call.args) - 1), f", {text}")
    if not arguments:
        return insert_text(_opening(source, call), text)
    if len(arguments) == 1 and _holds_the_calls_parentheses(source, arguments[0]):
        start, end = source.span(arguments[0])
        return (*insert_text(after(start), "("), *insert_text(after(end, -1), f"), {text}"))
    return _add_last(source, call, arguments, text)


def _add_last(source: SourceFile, call: ast.Call, arguments: Sequence[ast.expr | ast.keyword], text: str) -> Edits:
    end = _outer_end(source, call, arguments, len(arguments) - 1)
    return _add_behind(source, arguments[-1], end, after(end_of(source, call), -1), text)


def _add_behind(source: SourceFile, last: ast.AST, end: Position, close: Position, text: str) -> Edits:
    """Add an item behind the last one, which ends at ``end`` and may have a comma of its own before ``close``."""
    comma = next((place for mark, place in marks(source, end, close) if mark == ","), None)
    if comma is None:
        return insert_text(end, f", {text}")
    if comma.row == close.row:
        return insert_text(after(comma), f" {text}")
    indent = indent_of_row(source, source.span(last)[0].row)
    return insert_text(end_of_row(source, comma.row), f"{source.newline}{indent}{text},")


def set_argument(source: SourceFile, call: ast.Call, keyword: str, text: str) -> Edits | None:
    """Give a keyword argument a value, whether the call has it or not: ``bias=True`` -> ``bias=False``."""
    for argument in call.keywords:
        if argument.arg == keyword:
            return replace(source, argument.value, text)
    return add_argument(source, call, f"{keyword}={text}")


def add_element(source: SourceFile, node: ast.expr, text: str) -> Edits | None:
    """Add an element to a tuple, list or set as it is written; of any other expression, make a tuple with it in front.

    ``return x`` -> ``return x, None``; the caller knows that a comma may stand there.
    """
    if _misplaced(source, node):
        return None
    close = end_of(source, node)
    if not isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return insert_text(close, f", {text}")
    if not isinstance(node, ast.Tuple) or not node.elts or _in_parentheses(source, node):
        close = after(close, -1)
    if not node.elts:
        return insert_text(close, f"{text}," if isinstance(node, ast.Tuple) else text)
    end = end_of(source, node.elts[-1])
    for mark, place in marks(source, end, close):
        if mark == ",":
            break
        end = after(place)
    return _add_behind(source, node.elts[-1], end, close, text)


def _in_parentheses(source: SourceFile, node: ast.Tuple) -> bool:
    """Whether a tuple has parentheses of its own, rather than a first element that has: ``(a, b)``, ``(a), b``."""
    first = node.elts[0]
    start, end = source.span(first)
    opened = sum(mark == "(" for mark, _ in marks(source, source.span(node)[0], start))
    stop = source.span(node.elts[1])[0] if len(node.elts) > 1 else end_of(source, node)
    closed = 0
    for mark, _ in marks(source, end, stop):
        if mark == ",":
            break
        closed += mark == ")"
    return opened > closed


def remove_argument(source: SourceFile, call: ast.Call, argument: ast.expr | ast.keyword) -> Edits | None:
    """Take an argument out of a call, with its comma and, where it has lines to itself, those lines."""
    arguments = _arguments(source, call)
    index = next((index for index, other in enumerate(arguments) if other is argument), None)
    if index is None or _misplaced(source, call):
        return None
    opening, close = _opening(source, call), after(end_of(source, call), -1)
    if len(arguments) == 1:
        return (Edit(opening, close, ""),)
    start, end = _outer_start(source, call, arguments, index), _outer_end(source, call, arguments, index)
    own_rows = _rows_of_its_own(source, start, end)
    if own_rows is not None:
        return (own_rows,)
    if index + 1 < len(arguments):
        return (Edit(start, _outer_start(source, call, arguments, index + 1), ""),)
    return (Edit(_outer_end(source, call, arguments, index - 1), end, ""),)


def _rows_of_its_own(source: SourceFile, start: Position, end: Position) -> Edit | None:
    """The deletion of an argument's rows when nothing else than its comma and a comment stands on them."""
    rest = source.lines[end.row - 1][end.column - 1 :].strip()
    if source.lines[start.row - 1][: start.column - 1].strip() or not re.match(r",\s*(#.*)?$", rest):
        return None
    return Edit(Position(start.row, 1), Position(end.row + 1, 1), "")


def _arguments(source: SourceFile, call: ast.Call) -> list[ast.expr | ast.keyword]:
    return sorted([*call.args, *call.keywords], key=lambda argument: (argument.lineno, argument.col_offset))


def _opening(source: SourceFile, call: ast.Call) -> Position:
    """Just past a call's opening parenthesis."""
    arguments = _arguments(source, call)
    stop = source.span(arguments[0])[0] if arguments else end_of(source, call)
    if arguments and _holds_the_calls_parentheses(source, arguments[0]):
        stop = after(stop)
    found = next(place for mark, place in marks(source, end_of(source, call.func), stop) if mark == "(")
    return after(found)


def _outer_start(
    source: SourceFile, call: ast.Call, arguments: Sequence[ast.expr | ast.keyword], index: int
) -> Position:
    """Where an argument starts, the parentheses around it included."""
    gap_start = end_of(source, arguments[index - 1]) if index else _opening(source, call)
    start = source.span(arguments[index])[0]
    return next((place for mark, place in marks(source, gap_start, start) if mark == "("), start)


def _outer_end(source: SourceFile, call: ast.Call, arguments: Sequence[ast.expr | ast.keyword], index: int) -> Position:
    """Where an argument ends, the parentheses around it included."""
    end = end_of(source, arguments[index])
    following = arguments[index + 1 : index + 2]
    gap_end = source.span(following[0])[0] if following else after(end_of(source, call), -1)
    closing = end
    for mark, place in marks(source, end, gap_end):
        if mark == ",":
            break
        if mark == ")":
            closing = after(place)
    return closing


# ---------------------------------------------------------------------------------------------------- statements


def statement_of(source: SourceFile, node: ast.AST) -> ast.stmt | None:
    """The innermost statement that a node is, or is part of."""
    place = place_of(source, node)
    return place.statement if place else None


def belongs(source: SourceFile, node: ast.AST | None) -> bool:
    """Whether a node is part of this file: a value may have been made in another one."""
    statement = None if node is None or not hasattr(node, "lineno") else statement_of(source, node)
    return statement is not None and any(child is node for child in ast.walk(statement))


def insert_statement_before(source: SourceFile, statement: ast.stmt, text: str) -> Edits | None:
    """Put statements in front of one, in the same suite."""
    place = place_of(source, statement)
    stands = standing(source, statement) if place else None
    if place is None or stands is None:
        return None
    start = start_of(source, statement)
    if stands is not Standing.OWN_LINE and _is_simple(text):
        return insert_text(start, f"{_on_one_line(text)}; ")
    indent = suite_indent(source, place)
    block = _at_indent(source, place, text) + source.newline + indent
    if stands is Standing.OWN_LINE:
        return insert_text(start, block)
    return _break_line(source, place, block)


def insert_statement_after(source: SourceFile, statement: ast.stmt, text: str) -> Edits | None:
    """Put statements behind one, in the same suite; behind its comment, and behind the whole of a block."""
    place = place_of(source, statement)
    stands = standing(source, statement) if place else None
    if place is None or stands is None:
        return None
    end = end_of(source, statement)
    follower = standing(source, place.next) if place.next else Standing.OWN_LINE
    if follower is None:
        return None
    shares_line = stands is not Standing.OWN_LINE or follower is not Standing.OWN_LINE
    if shares_line and _is_simple(text):
        return insert_text(end, f"; {_on_one_line(text)}")
    indent = suite_indent(source, place)
    block = source.newline + indent + _at_indent(source, place, text)
    if follower is Standing.OWN_LINE:
        opened = _open_suite(source, place) if stands is not Standing.OWN_LINE else ()
        if opened is None:
            return None
        return (*opened, *insert_text(end_of_row(source, last_row(source, place)), block))
    following = Place(place.owner, place.suite, place.index + 1)
    return _break_line(source, following, block[len(source.newline + indent) :] + source.newline + indent)


def insert_first(source: SourceFile, owner: ast.AST, text: str) -> Edits | None:
    """Put statements at the start of the body of a function, class, loop or module; behind its docstring."""
    body: list[ast.stmt] = owner.body  # type: ignore[attr-defined]
    has_docstring = isinstance(owner, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and (
        isinstance(body[0], ast.Expr)
        and isinstance(body[0].value, ast.Constant)
        and isinstance(body[0].value.value, str)
    )
    if has_docstring:
        return insert_statement_after(source, body[0], text)
    return insert_statement_before(source, body[0], text)


def insert_last(source: SourceFile, owner: ast.AST, text: str) -> Edits | None:
    """Put statements at the end of the body of a function, class, loop or module."""
    body: list[ast.stmt] = owner.body  # type: ignore[attr-defined]
    return insert_statement_after(source, body[-1], text)


def replace_statement(source: SourceFile, statement: ast.stmt, text: str) -> Edits | None:
    """Write other statements for one; what shares its line and its trailing comment stay."""
    place = place_of(source, statement)
    stands = standing(source, statement) if place else None
    if place is None or stands is None:
        return None
    if "\n" in text and (stands is not Standing.OWN_LINE or _next_shares_line(source, place)):
        if not _is_simple(text):
            return None
        return (Edit(start_of(source, statement), end_of(source, statement), _on_one_line(text)),)
    return (Edit(start_of(source, statement), end_of(source, statement), _at_indent(source, place, text)),)


def delete_statement(source: SourceFile, statement: ast.stmt) -> Edits | None:
    """Take a statement away with its lines and the comment behind it; ``pass`` stays where a suite would be empty."""
    place = place_of(source, statement)
    stands = standing(source, statement) if place else None
    if place is None or stands is None:
        return None
    start, end = start_of(source, statement), end_of(source, statement)
    if len(place.suite) == 1 and not isinstance(place.owner, ast.Module):
        return (Edit(start, end, "pass"),)
    if place.next is not None and _next_shares_line(source, place):
        return (Edit(start, start_of(source, place.next), ""),)
    if stands is not Standing.OWN_LINE:
        return (Edit(end_of(source, place.previous), end, ""),) if place.previous else None
    first, last = _with_blank_lines(source, place, start.row, end.row)
    return (Edit(Position(first, 1), Position(last + 1, 1), ""),)


def delete_definition(source: SourceFile, definition: ast.FunctionDef | ast.AsyncFunctionDef) -> Edits | None:
    """Take a function away, with its lines; the comments in it stay where it stood, each on a line of its own."""
    place = place_of(source, definition)
    start, end = start_of(source, definition), end_of_row(source, definition.end_lineno or definition.lineno)
    comments = comments_between(source, start, end)
    if not comments or place is None or standing(source, definition) is not Standing.OWN_LINE:
        return delete_statement(source, definition)
    if len(place.suite) == 1 or (place.next is not None and _next_shares_line(source, place)):
        return delete_statement(source, definition)
    return (Edit(start, end, _at_indent(source, place, "\n".join(comments))),)


def _with_blank_lines(source: SourceFile, place: Place, first: int, last: int) -> tuple[int, int]:
    """The rows that go with a statement: of blank lines on both of its sides, those on one side, the fewer ones."""
    if place.next is None:
        return first, last
    above, below = first, last
    while place.previous is not None and above > 1 and _is_blank(source, above - 1, first):
        above -= 1
    while _is_blank(source, below + 1, last):
        below += 1
    if place.previous is None or below - last < first - above:
        return first, below
    return (above, last) if below > last else (first, last)


def _is_blank(source: SourceFile, row: int, other: int) -> bool:
    """Whether a row is blank, and in the same cell as another."""
    return row < len(source.lines) and not source.lines[row - 1].strip() and _same_cell(source, row, other)


def _same_cell(source: SourceFile, row: int, other: int) -> bool:
    cell, other_cell = source.cell(row), source.cell(other)
    return cell is None or other_cell is None or cell[0] == other_cell[0]


def move_statement(
    source: SourceFile, statement: ast.stmt, where: Literal["before", "after"], other: ast.stmt
) -> Edits | None:
    """Take a statement, with the comment behind it, to the front or the back of another one, in any suite."""
    return move_statements(source, [statement], where, other)


def move_statements(
    source: SourceFile, statements: Sequence[ast.stmt], where: Literal["before", "after"], other: ast.stmt
) -> Edits | None:
    """Take statements, in this order, to the front or the back of another one; not all of their suite."""
    places = [place_of(source, statement) for statement in statements]
    if where == "after" and None not in places and statements[-1].end_lineno == other.end_lineno:
        return _taken_out(source, [place for place in places if place], other)
    deletions = [delete_statement(source, statement) for statement in statements]
    insert = insert_statement_before if where == "before" else insert_statement_after
    text = "\n".join(_movable_text(source, place) for place in places if place)
    insertion = insert(source, other, text)
    if None in places or None in deletions or insertion is None:
        return None
    return (*(edit for deletion in deletions if deletion for edit in deletion), *insertion)


def _taken_out(source: SourceFile, places: Sequence[Place], block: ast.stmt) -> Edits | None:
    """Take the last statements of a block out of it: they stay where they are and lose its indentation."""
    first, target = places[0], place_of(source, block)
    in_order = all(a.suite is b.suite and a.index + 1 == b.index for a, b in itertools.pairwise(places))
    if not in_order or target is None or not first.index or places[-1].next is not None:
        return None
    if any(standing(source, place.statement) is not Standing.OWN_LINE for place in places):
        return None
    inner, outer = suite_indent(source, first), suite_indent(source, target)
    kept = string_rows(source, [place.statement for place in places])
    edits: list[Edit] = []
    for row in range(start_of(source, first.statement).row, last_row(source, places[-1]) + 1):
        if row not in kept and source.lines[row - 1].startswith(inner):
            edits.append(Edit(Position(row, 1), Position(row, len(inner) + 1), outer))
    return tuple(edits)


def _movable_text(source: SourceFile, place: Place) -> str:
    """A statement flush left, four spaces a level and with newlines as ``\\n``, as the other functions take it."""
    statement = place.statement
    start, end = start_of(source, statement), end_of(source, statement)
    alone = standing(source, statement) is Standing.OWN_LINE and not _next_shares_line(source, place)
    stop = end_of_row(source, end.row) if alone else end
    inside_strings = string_rows(source, [statement])
    indent, unit = suite_indent(source, place), indent_unit(source, statement)
    rows = [source.lines[start.row - 1][start.column - 1 : stop.column - 1 if start.row == stop.row else None]]
    for row in range(start.row + 1, stop.row + 1):
        line = source.lines[row - 1][: stop.column - 1 if row == stop.row else None]
        rows.append(_VERBATIM + line if row in inside_strings else _unit_to_default(line.removeprefix(indent), unit))
    return "\n".join(rows).rstrip()


def wrap_statements(source: SourceFile, statements: Sequence[ast.stmt], header: str) -> Edits | None:
    """Put neighbouring statements of one suite under a header such as ``with torch.no_grad():``."""
    first, last = place_of(source, statements[0]), place_of(source, statements[-1])
    if (
        first is None
        or last is None
        or first.suite is not last.suite
        or last.index - first.index + 1 != len(statements)
    ):
        return None
    stands = standing(source, first.statement)
    if stands is None:
        return None
    unit = indent_unit(source, first.statement)
    indent = suite_indent(source, first)
    opening = header + source.newline + indent + unit
    start = start_of(source, first.statement)
    opened = insert_text(start, opening) if stands is Standing.OWN_LINE else _break_line(source, first, opening)
    if opened is None:
        return None
    closed: Edits | None = ()
    if last.next is not None and _next_shares_line(source, last):
        closed = _break_gap(source, Place(last.owner, last.suite, last.index + 1), "")
    if closed is None:
        return None
    return (*opened, *_indented_rows(source, statements, start.row + 1, last_row(source, last), indent, unit), *closed)


def _indented_rows(
    source: SourceFile, statements: Sequence[ast.stmt], first: int, last: int, indent: str, unit: str
) -> Edits:
    kept = string_rows(source, statements)
    edits: list[Edit] = []
    for row in range(first, last + 1):
        line = source.lines[row - 1]
        code = line.strip()
        if row in kept or not code or (code.startswith("#") and not line.startswith(indent)):
            continue
        edits += insert_text(Position(row, len(indent_of_row(source, row)) + 1), unit)
    return tuple(edits)


def add_decorator(
    source: SourceFile,
    function: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef,
    text: str,
    *,
    outermost: bool = False,
) -> Edits | None:
    """Decorate a function or class: ``torch.no_grad()``, directly above its ``def`` or above all other decorators."""
    if standing(source, function) is not Standing.OWN_LINE:
        return None
    place = start_of(source, function) if outermost else source.position(function.lineno, function.col_offset)
    indent = indent_of_row(source, place.row)
    return insert_text(place, f"@{text.removeprefix('@')}{source.newline}{indent}")


# ---------------------------------------------------------------------------------------------------- lines


def _is_simple(text: str) -> bool:
    """Whether statements can stand between semicolons: none opens a block or carries a comment."""
    if "#" in text or _VERBATIM in text:
        return False
    try:
        body = ast.parse(text).body
    except SyntaxError:
        return False
    compound = any(hasattr(statement, "body") or hasattr(statement, "cases") for statement in body)
    return not compound and len(body) == text.count("\n") + 1


def _on_one_line(text: str) -> str:
    return text.replace("\n", "; ")


def _at_indent(source: SourceFile, place: Place, text: str) -> str:
    """Statement text with the suite's indentation on every line but the first, in the file's unit and line ends."""
    if "\n" not in text:
        return text
    indent, unit = suite_indent(source, place), indent_unit(source, place.statement)
    first, *others = text.split("\n")
    return source.newline.join([first, *(_line_at_indent(line, indent, unit) for line in others)])


def _line_at_indent(line: str, indent: str, unit: str) -> str:
    if not line or line.startswith(_VERBATIM):
        return line.removeprefix(_VERBATIM)
    return indent + _default_to_unit(line, unit)


def _default_to_unit(line: str, unit: str) -> str:
    stripped = line.lstrip(" ")
    levels, rest = divmod(len(line) - len(stripped), len(DEFAULT_UNIT))
    return unit * levels + " " * rest + stripped


def _unit_to_default(line: str, unit: str) -> str:
    levels = 0
    while line.startswith(unit):
        line = line[len(unit) :]
        levels += 1
    return DEFAULT_UNIT * levels + line


def _next_shares_line(source: SourceFile, place: Place) -> bool:
    return place.next is not None and standing(source, place.next) is Standing.AFTER_SEMICOLON


def _open_suite(source: SourceFile, place: Place) -> Edits | None:
    """Give the statements behind a header's colon a line of their own."""
    if standing(source, place.suite[0]) is not Standing.AFTER_COLON:
        return ()
    return _break_gap(source, Place(place.owner, place.suite, 0), "")


def _break_line(source: SourceFile, place: Place, text: str) -> Edits | None:
    """Give a statement that shares its line one of its own, with ``text`` in front of it."""
    opened = _open_suite(source, place) if place.index else ()
    broken = _break_gap(source, place, text)
    return None if opened is None or broken is None else (*opened, *broken)


def _break_gap(source: SourceFile, place: Place, text: str) -> Edits | None:
    """Replace the semicolon or blanks in front of a statement by a line end, its indentation and ``text``."""
    start = start_of(source, place.statement)
    line = source.lines[start.row - 1]
    before = line[: start.column - 1].rstrip()
    if before.endswith(";"):
        before = before[:-1].rstrip()
    elif not before.endswith(":"):
        return None
    content = source.newline + suite_indent(source, place) + text
    return (Edit(Position(start.row, len(before) + 1), start, content),)
