"""A file split into its top-level definitions, each parsed when it is first asked for.

Other files ask a file for two or three of its names; parsing all of it for that costs more than everything else that
is done about it. The split reads line starts only: a statement begins where a line does not begin with blank space, a
comment or a closing bracket, and a definition ends where the next statement begins. Text inside a triple-quoted string
may look like that too, so a piece is extended until its triple quotes are balanced.
"""

from __future__ import annotations

import ast
import re

from torchlint.source.file import parse

_TRIPLE = ("'''", '"""')
_STATEMENT = re.compile(r"\n(?=[^\s#)\]}])")
_DEFINITION = re.compile(r"(?:async[ \t]+def|def|class)[ \t]+(\w+)")
_WORD = re.compile(r"[^\W\d]\w*")
_CLASS = re.compile(r"class[ \t]+\w+[ \t]*(?:\([^()#'\"]*\)[ \t]*)?:")
"""A class statement up to its colon, where the bases are plain."""


class Definition:
    """A top-level function or class: its text from ``start``, where decorators begin, over ``head`` to ``end``."""

    __slots__ = ("end", "head", "name", "row", "start", "statements", "words")

    def __init__(self, name: str, start: int, head: int, end: int, row: int) -> None:
        self.name = name
        self.start = start
        self.head = head
        self.end = end
        self.row = row
        self.statements: list[ast.stmt] | None = None
        self.words: frozenset[str] | None = None


class Outline:
    """A text's top-level definitions by name, in document order, and all that stands outside them (``rest``).

    Raises what ``ast.parse`` raises: at once for the rest, for a definition when it is parsed. ``parsed`` counts the
    characters that have become trees.
    """

    def __init__(self, text: str, filename: str) -> None:
        self._text = text
        self._filename = filename
        self.definitions: dict[str, list[Definition]] = {}
        outside: list[str] = []
        at = row = 0
        pieces = _pieces(text)
        if pieces is None:
            self._parse_whole()
            return
        for name, start, head, end in pieces:
            before = text[at:start]
            row += before.count("\n")
            self.definitions.setdefault(name, []).append(Definition(name, start, head, end, row))
            lines = text.count("\n", start, end)
            outside += (before, "\n" * lines)
            row += lines
            at = end
        outside.append(text[at:])
        self.parsed = sum(map(len, outside))
        try:
            self.rest = parse("".join(outside), filename)
        except SyntaxError:
            self._parse_whole()

    def parse(self, definition: Definition) -> list[ast.stmt]:
        """The statements of a definition's text (one, as a rule), where they stand in the file."""
        if definition.statements is None:
            text = self._text[definition.start : definition.end]
            self.parsed += len(text)
            definition.statements = parse("\n" * definition.row + text, self._filename).body
        return definition.statements

    def words(self, definition: Definition) -> frozenset[str]:
        """All identifiers and keywords in a definition's text (the whole file's where that could not be split)."""
        if definition.words is None:
            end = definition.end or len(self._text)
            definition.words = frozenset(_WORD.findall(self._text, definition.start, end))
        return definition.words

    def bases(self, definition: Definition) -> list[ast.expr] | None:
        """The bases that a class names, without parsing its body where they are plain; None for a function."""
        if definition.statements is None:
            if not self._text.startswith("class", definition.head):
                return None
            found = _CLASS.match(self._text, definition.head)
            if found is not None:
                return _bases(parse(found[0] + " pass", self._filename).body)
        return _bases(self.parse(definition))

    def _parse_whole(self) -> None:
        """Split the tree instead of the text: lines begin where no statement does, within brackets for example."""
        self.rest = parse(self._text, self._filename)
        self.parsed = len(self._text)
        self.definitions = {}
        outside: list[ast.stmt] = []
        for node in self.rest.body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                definition = Definition(node.name, 0, 0, 0, node.lineno - 1)
                definition.statements = [node]
                self.definitions.setdefault(node.name, []).append(definition)
            else:
                outside.append(node)
        self.rest.body = outside


def _bases(statements: list[ast.stmt]) -> list[ast.expr] | None:
    node = statements[0]
    return node.bases if isinstance(node, ast.ClassDef) else None


def _pieces(text: str) -> list[tuple[str, int, int, int]] | None:
    """Name, start, head and end of each definition that begins a line; None where the text can't be told apart so."""
    if "\r" in text and "\r" in text.replace("\r\n", "\n"):  # lines that a pattern does not see
        return None
    pieces = []
    starts = [match.end() for match in _STATEMENT.finditer(text)]
    if text and not text[0].isspace() and text[0] not in "#)]}":
        starts.insert(0, 0)
    starts.append(len(text))
    i = 0
    while i < len(starts) - 1:
        first = i
        while i < len(starts) and text.startswith("@", starts[i]):
            i = _next(text, starts, i)
        if i >= len(starts):
            return None
        head = starts[i]
        found = _DEFINITION.match(text, head)
        i = _next(text, starts, i)
        if i >= len(starts):
            return None
        if found is not None:
            pieces.append((found[1], starts[first], head, starts[i]))
    return pieces


def _next(text: str, starts: list[int], i: int) -> int:
    """The first statement behind the i-th before which every triple-quoted string has ended; past the end if none."""
    start = starts[i] if i < len(starts) else len(text)
    single, double = _TRIPLE
    for after in range(i + 1, len(starts)):
        end = starts[after]
        if not (text.count(double, start, end) % 2 or text.count(single, start, end) % 2):
            return after
    return len(starts)
