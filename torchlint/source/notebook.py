"""Jupyter notebooks as source: the code cells in order, and IPython's own syntax put aside.

nbformat 3 and 4 are read from their JSON directly. A cell keeps its text as written; only for parsing are magics,
shell commands and help requests replaced, in place, so that every other row and column stays what it was.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torchlint.source.file import UnreadableSource

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PYTHON_CELL_MAGICS = frozenset({"capture", "debug", "ipytest", "prun", "time", "timeit"})
"""Cell magics whose body is Python of the notebook's own namespace; any other makes the cell foreign."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A code cell: its 1-based number among all cells, its first row in the joined text, and its text.

    ``text`` always ends in a newline; ``added_newline`` says that the notebook's own text doesn't.
    """

    number: int
    first_row: int
    text: str
    added_newline: bool


def read_cells(text: str) -> tuple[Cell, ...]:
    """The Python code cells of a notebook's JSON; none for a notebook in another language. Raises UnreadableSource."""
    try:
        notebook = json.loads(text)
    except json.JSONDecodeError as error:
        raise UnreadableSource(f"the notebook is no valid JSON: {error.msg}", error.lineno, error.colno) from None
    except RecursionError:
        raise UnreadableSource("the notebook's JSON is nested too deeply") from None
    if not isinstance(notebook, dict):
        raise UnreadableSource("the notebook holds no cells: its JSON is not an object")
    if not _is_python(notebook.get("metadata")):
        return ()
    cells = []
    row = 1
    for number, cell in enumerate(_all_cells(notebook), 1):
        source = _code(cell)
        if source is None:
            continue
        added_newline = not source.endswith("\n")
        if added_newline:
            source += "\n"
        cells.append(Cell(number, row, source, added_newline))
        row += len(_LINE_END.findall(source))
    return tuple(cells)


def without_magics(cells: Sequence[Cell]) -> str:
    """The joined text with all that only IPython understands replaced by Python that does nothing."""
    return "".join(_mask(cell.text) for cell in cells)


_LINE_END = re.compile("\r\n|\r|\n")
_SUSPECT = re.compile(r"^[ \t]*[%!?]|\?[ \t]*$|=[ \t]*[%!]", re.MULTILINE)
_CELL_MAGIC = re.compile(r"\s*%%(\w*)")
_ASSIGNED_MAGIC = re.compile(r"([ \t]*)([^=!%#'\"()]+?)=[ \t]*[%!](?!=)")
_HELP = re.compile(r"[ \t]*(?:\?{1,2}[^?]|[%\w.*\[\]]+\?{1,2}[ \t;]*$)")
_TIMED_STATEMENT = re.compile(r"([ \t]*)%time[ \t]+(?!-)(?!(?:if|for|while|with|try|def|class|async|match)\b)\S")
_LEXEME = re.compile(
    r"""(?P<comment>\#[^\r\n]*)
    |(?P<triple>'{3}|\"{3})
    |(?P<string>'(?:\\.|[^'\\\r\n])*'?|"(?:\\.|[^"\\\r\n])*"?)
    |(?P<open>[(\[{])
    |(?P<close>[)\]}])
    |(?P<joined>\\(?:\r\n|\r|\n))
    |(?P<end>\r\n|\r|\n)""",
    re.VERBOSE | re.DOTALL,
)


def _is_python(metadata: Any) -> bool:
    if not isinstance(metadata, dict):
        return True
    for key, name in (("language_info", "name"), ("kernelspec", "language")):
        section = metadata.get(key)
        if isinstance(section, dict) and isinstance(section.get(name), str):
            return section[name].lower() in ("python", "ipython")
    return True


def _all_cells(notebook: dict[str, Any]) -> Iterator[Any]:
    worksheets = notebook.get("worksheets")  # nbformat 3
    holders = worksheets if isinstance(worksheets, list) and "cells" not in notebook else [notebook]
    for holder in holders:
        cells = holder.get("cells") if isinstance(holder, dict) else None
        if isinstance(cells, list):
            yield from cells


def _code(cell: Any) -> str | None:
    if not isinstance(cell, dict) or cell.get("cell_type") != "code":
        return None
    if cell.get("language", "python") != "python":  # nbformat 3 says it per cell
        return None
    source = cell.get("source", cell.get("input", ""))
    if isinstance(source, list):
        source = "".join(line for line in source if isinstance(line, str))
    return source if isinstance(source, str) else None


def _mask(text: str) -> str:
    if not _SUSPECT.search(text):
        return text
    magic = _CELL_MAGIC.match(text)
    if magic and magic[1] not in PYTHON_CELL_MAGICS:
        return "".join(_LINE_END.findall(text))
    pieces = []
    done = 0
    for start, end in _logical_lines(text):
        line = text[start:end]
        masked = "" if start == 0 and magic and line.lstrip().startswith("%%") else _mask_line(line)
        pieces += [text[done:start], masked]
        if masked is not line:  # a command that goes on over backslashes leaves its rows empty
            pieces += _LINE_END.findall(line)
        done = end
    pieces.append(text[done:])
    return "".join(pieces)


def _mask_line(line: str) -> str:
    """The logical line itself, or what stands for it in Python."""
    stripped = line.lstrip(" \t")
    indent = line[: len(line) - len(stripped)]
    if timed := _TIMED_STATEMENT.match(line):  # `0;` in place of `%time` keeps the statement and its columns
        code = timed.end() - 1
        return f"{indent}0;".ljust(code) + line[code:] if "\n" not in line else f"{indent}pass"
    if stripped.startswith(("%", "!")) or _HELP.match(line):
        return f"{indent}pass"
    if assigned := _ASSIGNED_MAGIC.match(line):
        return f"{indent}{assigned[2]}= get_ipython()"
    return line


def _logical_lines(text: str) -> Iterator[tuple[int, int]]:
    """Start and end (before the newline) of each logical line, as far as brackets, strings and backslashes tell.

    A line that starts with ``%`` inside brackets or a string is no magic; one that starts a logical line is, and ends
    with its physical line whatever quotes or brackets it holds.
    """
    start = at = depth = 0
    while at < len(text):
        if depth == 0 and at == start and _mask_line(first := _command_line(text, start)) is not first:
            end = start + len(first)
            yield start, end
            newline = _LINE_END.match(text, end)
            start = at = newline.end() if newline else end
            continue
        lexeme = _LEXEME.search(text, at)
        if lexeme is None:
            break
        at = lexeme.end()
        kind = lexeme.lastgroup
        if kind == "triple":
            at = _end_of_triple(text, lexeme[0], at)
        elif kind == "open":
            depth += 1
        elif kind == "close":
            depth = max(depth - 1, 0)
        elif kind == "end" and depth == 0:
            yield start, lexeme.start()
            start = at
    if start < len(text):
        yield start, len(text)


def _command_line(text: str, start: int) -> str:
    """The physical line at ``start`` with those that its trailing backslashes join to it."""
    at = start
    while True:
        end = _LINE_END.search(text, at)
        if end is None:
            return text[start:]
        if text[end.start() - 1 : end.start()] != "\\" or end.start() == at:
            return text[start : end.start()]
        at = end.end()


def _end_of_triple(text: str, quotes: str, at: int) -> int:
    while True:
        end = text.find(quotes, at)
        if end < 0:
            return len(text)
        backslashes = end
        while backslashes > at and text[backslashes - 1] == "\\":
            backslashes -= 1
        if (end - backslashes) % 2 == 0:
            return end + 3
        at = end + 1
