"""One source file as read: decoded text, lines, tree, and where things stand in it.

Everything that reads bytes goes through here, so that a declared encoding, a byte order mark, Windows line ends and
notebook cells are dealt with once. Rows are 1-based; columns are 1-based and count code points. ``ast`` counts UTF-8
bytes instead, so nodes are placed with :meth:`SourceFile.position` and :meth:`SourceFile.span`, never by hand.
"""

from __future__ import annotations

import ast
import errno
import os
import re
import stat
import warnings
from bisect import bisect_right
from typing import TYPE_CHECKING

from torchlint.finding import Position

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchlint.source.notebook import Cell

TORCH_WORDS = (b"torch", b"lightning")
"""A file that holds none of these bytes can't use PyTorch under its own name: it is neither decoded nor parsed.

``torch`` covers torchvision, pytorch_lightning and the like. A syntax error in a file without these words is therefore
not reported: that is the business of a general linter.
"""

CANNOT_PARSE = (SyntaxError, ValueError, RecursionError, MemoryError)
"""What parsing raises: beside syntax errors, for null bytes and lone surrogates, and for what is nested too deeply."""

_UTF16_WORDS = tuple("torch".encode(codec) for codec in ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"))
_COOKIE = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")  # PEP 263
_BLANK = re.compile(rb"^[ \t\f]*(?:#.*)?$")
_READ_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
_LINE_END = re.compile("\r\n|\r|\n")
_BYTE_LINE_END = re.compile(b"\r\n|\r|\n")


class UnreadableSource(ValueError):
    """The bytes of a file are no Python text: ``row`` is where that shows, ``reason`` says why."""

    def __init__(self, reason: str, row: int = 1, column: int = 1) -> None:
        super().__init__(reason)
        self.reason = reason
        self.row = row
        self.column = column


class SourceFile:
    """The text of one file and its places.

    ``path`` is the absolute real path ("" for standard input without a name), ``filename`` what the user is shown.
    ``text`` has its line ends as in the file and no byte order mark; for a notebook it is the code cells joined, each
    ended by a newline, and all rows here are rows of that joined text (:meth:`cell` translates).
    """

    __slots__ = (
        "_ascii",
        "_lines",
        "_starts",
        "_tree",
        "bom",
        "cells",
        "encoding",
        "filename",
        "is_notebook",
        "newline",
        "path",
        "text",
    )

    def __init__(
        self,
        text: str,
        filename: str,
        path: str = "",
        *,
        encoding: str = "utf-8",
        bom: bool = False,
        cells: Sequence[Cell] | None = None,
        tree: ast.Module | None = None,
    ) -> None:
        self.text = text
        self.filename = filename
        self.path = path
        self.encoding = encoding
        self.bom = bom
        self.cells = cells
        self.is_notebook = cells is not None
        self.newline = _first_newline(text)
        self._ascii = text.isascii()
        self._lines: list[str] | None = None
        self._starts: list[int] | None = None
        self._tree = tree

    def __repr__(self) -> str:
        return f"SourceFile({self.filename!r})"

    @property
    def lines(self) -> list[str]:
        """The physical lines without their ends; ``lines[row - 1]``. A text that ends in a newline has a last ""."""
        if self._lines is None:
            text = self.text
            if "\r" in text:
                text = text.replace("\r\n", "\n").replace("\r", "\n")
            self._lines = text.split("\n")
        return self._lines

    @property
    def tree(self) -> ast.Module:
        """The parsed file.

        Raises SyntaxError, ValueError (null bytes, lone surrogates), RecursionError or MemoryError as ``ast`` does.
        """
        if self._tree is None:
            text = self.text
            if self.cells is not None:
                from torchlint.source.notebook import without_magics

                text = without_magics(self.cells)
            self._tree = parse(text, self.filename)
        return self._tree

    @property
    def parses(self) -> bool:
        """Whether Python can parse the file."""
        try:
            return isinstance(self.tree, ast.Module)
        except CANNOT_PARSE:
            return False

    def position(self, row: int, utf8_col: int) -> Position:
        """The place of an ``ast`` row and byte column in the text; held within the line if ``ast`` is off."""
        if self._ascii:
            return Position(row, utf8_col + 1)
        lines = self.lines
        line = lines[row - 1] if row <= len(lines) else ""
        if line.isascii():
            return Position(row, utf8_col + 1)
        return Position(row, len(line.encode("utf-8", "surrogatepass")[:utf8_col].decode("utf-8", "ignore")) + 1)

    def span(self, node: ast.AST) -> tuple[Position, Position]:
        """Where a node starts and, exclusively, ends."""
        row: int = node.lineno  # type: ignore[attr-defined]
        column: int = node.col_offset  # type: ignore[attr-defined]
        end_row: int | None = node.end_lineno  # type: ignore[attr-defined]
        end_column: int | None = node.end_col_offset  # type: ignore[attr-defined]
        start = self.position(row, column)
        if end_row is None or end_column is None:
            return start, start
        return start, self.position(end_row, end_column)

    def segment(self, node: ast.AST) -> str:
        """The text of a node, as written."""
        start, end = self.span(node)
        return self.text[self.offset(start) : self.offset(end)]

    def offset(self, position: Position) -> int:
        """The index into ``text`` of a position; a column behind the line's end stands for that end."""
        starts = self._line_starts()
        if position.row > len(starts):
            return len(self.text)
        return starts[position.row - 1] + min(position.column - 1, len(self.lines[position.row - 1]))

    def position_at(self, offset: int) -> Position:
        """The position of an index into ``text``."""
        starts = self._line_starts()
        row = bisect_right(starts, offset)
        return Position(row, offset - starts[row - 1] + 1)

    def cell(self, row: int) -> tuple[int, int] | None:
        """For a notebook, the 1-based number of the cell (among all cells) that holds a row, and the row in it."""
        if not self.cells:
            return None
        index = bisect_right(self.cells, row, key=lambda cell: cell.first_row) - 1
        cell = self.cells[max(index, 0)]
        return cell.number, max(row - cell.first_row + 1, 1)

    def _line_starts(self) -> list[int]:
        if self._starts is None:
            self._starts = [0, *(end.end() for end in _LINE_END.finditer(self.text))]
        return self._starts


def read_bytes(path: str) -> bytes:
    """The content of a regular file; raises OSError. A pipe or device in its place is refused, not waited for."""
    return read_bytes_and_status(path)[0]


def read_bytes_and_status(path: str) -> tuple[bytes, os.stat_result]:
    """The content of a regular file, and its status from just before it was read."""
    descriptor = os.open(path, _READ_FLAGS)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", path)
        pieces = []
        while piece := os.read(descriptor, max(status.st_size + 1, 65536)):
            pieces.append(piece)
    finally:
        os.close(descriptor)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces), status


def read_source(path: str, filename: str | None = None) -> SourceFile:
    """Read and decode a file; raises OSError or UnreadableSource."""
    return source_from_bytes(read_bytes(path), path, filename if filename is not None else path)


def source_from_bytes(data: bytes, path: str, filename: str) -> SourceFile:
    """Decode the content of a file as Python would; raises UnreadableSource."""
    if filename.endswith(".ipynb"):
        return _notebook(data, path, filename)
    text, encoding, bom = decode(data)
    return SourceFile(text, filename, path, encoding=encoding, bom=bom)


def source_from_text(text: str, filename: str = "-", path: str = "", tree: ast.Module | None = None) -> SourceFile:
    """A source that is already text: an editor's buffer, or a string in a test. Raises UnreadableSource (notebooks).

    ``tree`` spares parsing where the caller has parsed the same text, as flake8 has.
    """
    if filename.endswith(".ipynb"):
        return _notebook(text.encode("utf-8", "surrogatepass"), path, filename)
    bom = text.startswith("\ufeff")
    return SourceFile(text[1:] if bom else text, filename, path, bom=bom, tree=tree)


def parse(text: str, filename: str) -> ast.Module:
    """Parse a module without printing Python's warnings; raises one of CANNOT_PARSE."""
    with warnings.catch_warnings():  # an invalid escape sequence in the user's file is not ours to print
        warnings.simplefilter("ignore")
        return ast.parse(text, filename)


def names_torch(data: bytes) -> bool:
    """Whether a file can have anything to do with PyTorch at all: it holds one of TORCH_WORDS."""
    if any(word in data for word in TORCH_WORDS):
        return True
    # Python can't run a UTF-16 file, but whoever saved one should hear of it.
    return data[:2] in (b"\xff\xfe", b"\xfe\xff", b"\0\0") and any(word in data for word in _UTF16_WORDS)


def decode(data: bytes) -> tuple[str, str, bool]:
    """Text, encoding, and whether there was a byte order mark, by the rules of PEP 263. Raises UnreadableSource."""
    if data[:3] == b"\xef\xbb\xbf":
        cookie, row = _declared_encoding(data[3:])
        if cookie and _python_codec_name(cookie) != "utf-8":
            raise UnreadableSource(
                f"the file starts with a UTF-8 byte order mark but declares the encoding {cookie}", row
            )
        return _decode(data[3:], "utf-8", 1), "utf-8", True
    if data[:2] in (b"\xff\xfe", b"\xfe\xff") or data[:4] == b"\0\0\xfe\xff":
        wide = "UTF-32" if b"\0\0" in data[:4] else "UTF-16"
        raise UnreadableSource(f"the file is encoded as {wide}, which Python can't run: save it as UTF-8")
    cookie, row = _declared_encoding(data)
    if not cookie:
        return _decode(data, "utf-8", 1), "utf-8", False
    encoding = _python_codec_name(cookie)
    return _decode(data, encoding, row), encoding, False


def _declared_encoding(data: bytes) -> tuple[str, int]:
    """The encoding named in a comment on the first two lines, and its row; ("", 1) without one."""
    end = _BYTE_LINE_END.search(data)
    first = data[: end.start()] if end else data
    if match := _COOKIE.match(first):
        return match[1].decode("ascii", "replace"), 1
    if end and _BLANK.match(first):
        after = _BYTE_LINE_END.search(data, end.end())
        second = data[end.end() : after.start() if after else len(data)]
        if match := _COOKIE.match(second):
            return match[1].decode("ascii", "replace"), 2
    return "", 1


def _python_codec_name(cookie: str) -> str:
    name = cookie[:12].lower().replace("_", "-")
    return "utf-8" if name == "utf-8" or name.startswith("utf-8-") else cookie


def _decode(data: bytes, encoding: str, declared_row: int) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        row = len(_BYTE_LINE_END.findall(data, 0, error.start)) + 1
        byte = data[error.start] if error.start < len(data) else 0
        raise UnreadableSource(
            f"byte 0x{byte:02x} is no {encoding} text: save the file as UTF-8, or declare its encoding in line 1",
            row,
        ) from None
    except (LookupError, ValueError, TypeError):  # unknown, or a codec such as rot13 that makes no text of bytes
        raise UnreadableSource(f"Python doesn't know the declared encoding {encoding}", declared_row) from None


def _first_newline(text: str) -> str:
    end = text.find("\n")
    if "\r" not in text:
        return "\n"
    carriage = text.find("\r")
    if end == carriage + 1:
        return "\r\n"
    return "\r" if end < 0 or carriage < end else "\n"


def _notebook(data: bytes, path: str, filename: str) -> SourceFile:
    from torchlint.source.notebook import read_cells

    text = _decode(data[3:] if data[:3] == b"\xef\xbb\xbf" else data, "utf-8", 1)
    cells = read_cells(text)
    joined = "".join(cell.text for cell in cells)
    return SourceFile(joined, filename, path, bom=data[:3] == b"\xef\xbb\xbf", cells=cells)
