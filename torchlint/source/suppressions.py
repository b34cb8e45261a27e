"""What comments in a file tell torchlint to pass over.

``# noqa`` and ``# noqa: TL101, TL103`` hold for the line they end, and for the whole statement if they end its last
line; ``# flake8: noqa`` and ``# torchlint: skip-file`` hold for the file. Only real comments count: a file is
tokenized, but only where its text holds one of the words and something depends on it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from torchlint.finding import Edit, Finding, Position

if TYPE_CHECKING:
    from torchlint.source.file import SourceFile

_CODE_LIST = r"[A-Z]+[0-9]+(?:[\s,]+[A-Z]+[0-9]+)*"
_NOQA = re.compile(rf"#\s*noqa\b(?:\s*:\s*(?P<codes>{_CODE_LIST}))?", re.IGNORECASE)
_FILE_NOQA = re.compile(rf"#\s*flake8[:=]\s*noqa(?P<listed>\s*:\s*(?P<codes>{_CODE_LIST}))?\s*$", re.IGNORECASE)
_SKIP_FILE = re.compile(r"#\s*torchlint:\s*skip-file\b", re.IGNORECASE)
_CODE = re.compile(r"[A-Z]+[0-9]+", re.IGNORECASE)
_OWN_CODE = re.compile(r"TL[0-9]+")
_TRIPLE_F_STRINGS = ('f"""', "f'''", 'F"""', "F'''")


@dataclass(slots=True)
class Directive:
    """One noqa comment. ``codes`` is empty for a blanket one; ``whole_file`` for ``# flake8: noqa: ...``.

    ``start`` and ``end`` enclose it within its comment, ``codes_start`` its list of codes; ``used`` are the codes of
    the findings it has suppressed.
    """

    codes: tuple[str, ...]
    start: Position
    codes_start: Position
    end: Position
    whole_file: bool
    used: set[str] = field(default_factory=set)

    def covers(self, code: str) -> bool:
        """Whether it suppresses a rule; ``TL1`` stands for all rules whose code begins so, as in flake8."""
        return not self.codes or code.startswith(self.codes)


def _follows(word: str, pattern: re.Pattern[str], text: str) -> bool:
    """Whether a line holds a word and behind it what matches."""
    at = text.find(word)
    while at >= 0:
        end = text.find("\n", at)
        if pattern.search(text, at, end if end >= 0 else len(text)):
            return True
        at = text.find(word, end) if end >= 0 else -1
    return False


class Suppressions:
    """The noqa comments of one file, and which of them were needed. All rows are rows of the source's text."""

    def __init__(self, source: SourceFile) -> None:
        self._source = source
        lowered = source.text.lower()
        self._has_noqa = "noqa" in lowered
        self._may_skip_file = "skip-file" in lowered or (self._has_noqa and "flake8" in lowered)
        self._has_triple_f_string: bool | None = None
        self._known_comments: _Comments | None = None

    @property
    def _comments(self) -> _Comments:
        if self._known_comments is None:
            self._known_comments = _Comments(self._source)
        return self._known_comments

    @property
    def skips_file(self) -> bool:
        """Whether a comment says that the whole file is to be left alone."""
        return self._may_skip_file and self._comments.skips_file

    def noqa_row(self, row: int) -> int:
        """The row on which a comment about ``row`` can stand: the same, or where its string or continuation ends."""
        source = self._source
        line = source.lines[row - 1] if row <= len(source.lines) else ""
        if self._has_triple_f_string is None:  # then there may be rows inside a string that a finding can stand on
            self._has_triple_f_string = any(start in source.text for start in _TRIPLE_F_STRINGS)
        if line.endswith("\\") or _has_triple_quotes(line) or self._has_triple_f_string:
            return self._comments.noqa_row(row)
        return row

    def suppresses(self, row: int, code: str) -> bool:
        """Whether a finding at ``row`` is suppressed; notes by which comments."""
        if not self._has_noqa:
            return False
        comments = self._comments
        suppressed = False
        rows = {row, comments.noqa_row(row), comments.last_row(row)}
        for directive in comments.whole_file + [d for r in rows for d in comments.directives.get(r, ())]:
            if directive.covers(code):
                directive.used.add(code)
                suppressed = True
        return suppressed

    def unused(self, active: Collection[str], known: Collection[str]) -> Iterator[tuple[Directive, list[str]]]:
        """Directives with codes of torchlint that suppressed nothing, with those codes; ask when all else is said.

        A code counts only if all ``known`` rules it stands for are ``active`` in this run, or there is none.
        """
        if not self._has_noqa:
            return
        letters = "|".join(sorted({code.rstrip("0123456789").lower() for code in known}))
        if not _follows("noqa", re.compile(rf"\b(?:{letters})[0-9]"), self._source.text.lower()):
            return
        comments = self._comments
        listed = [d for directives in comments.directives.values() for d in directives]
        for directive in comments.whole_file + listed:
            if "TL002".startswith(directive.codes):
                continue
            unused = []
            for code in directive.codes:
                meant = [rule for rule in known if rule.startswith(code)]
                own = meant or _OWN_CODE.fullmatch(code)
                needed = any(used.startswith(code) for used in directive.used)
                if own and not needed and all(rule in active for rule in meant):
                    unused.append(code)
            if unused:
                yield directive, unused

    def removal(self, directive: Directive, unused: Collection[str]) -> Edit:
        """The edit that takes codes out of a directive, and all of it if none is left."""
        kept = [code for code in directive.codes if code not in unused]
        if kept:
            return Edit(directive.codes_start, directive.end, ", ".join(kept))
        row, column = directive.start.row, directive.start.column - 1
        line = self._source.lines[row - 1]
        before, after = line[:column], line[directive.end.column - 1 :]
        rest = after.lstrip()
        if rest:
            end = Position(row, len(line) - len(rest) + 1)
            return Edit(directive.start, end, "" if rest.startswith("#") else "# ")
        if not before.strip():
            if row < len(self._source.lines):
                return Edit(Position(row, 1), Position(row + 1, 1), "")
            return Edit(Position(row, 1), Position(row, len(line) + 1), "")
        return Edit(Position(row, len(before.rstrip()) + 1), Position(row, len(line) + 1), "")

    def additions(self, findings: Iterable[tuple[int, str]]) -> list[Edit]:
        """The edits that suppress findings, given as row and code, by noqa comments at their lines' ends."""
        wanted: dict[int, set[str]] = {}
        for row, code in findings:
            wanted.setdefault(self.noqa_row(row), set()).add(code)
        edits = []
        for row, codes in sorted(wanted.items()):
            listed = next((d for d in self._comments.directives.get(row, ()) if d.codes), None)
            if listed is not None:
                edits.append(Edit(listed.end, listed.end, "".join(f", {code}" for code in sorted(codes))))
            else:
                line = self._source.lines[row - 1]
                end = Position(row, len(line) + 1)
                edits.append(Edit(Position(row, len(line.rstrip()) + 1), end, f"  # noqa: {', '.join(sorted(codes))}"))
        return edits


def text_row(source: SourceFile, finding: Finding) -> int:
    """The row of a finding in the source's text, which for a notebook is all its cells joined."""
    if finding.cell is None or not source.cells:
        return finding.location.row
    first = next(cell.first_row for cell in source.cells if cell.number == finding.cell)
    return first + finding.location.row - 1


def noqa_edits(source: SourceFile, findings: Sequence[Finding]) -> list[Edit]:
    """The edits of ``--add-noqa`` for the findings of one file."""
    return Suppressions(source).additions((text_row(source, finding), finding.code) for finding in findings)


def _has_triple_quotes(line: str) -> bool:
    return '"""' in line or "'''" in line


class _Comments:
    """A tokenized file: its directives by row, and which rows belong to one statement or string."""

    def __init__(self, source: SourceFile) -> None:
        self.skips_file = False
        self.whole_file: list[Directive] = []
        self.directives: dict[int, list[Directive]] = {}
        self._last_rows: dict[int, int] = {}
        self._blocked: set[int] = set()
        self._read(source)

    def last_row(self, row: int) -> int:
        """The last row of the statement (or a compound statement's head) that ``row`` is part of."""
        return self._last_rows.get(row, row)

    def noqa_row(self, row: int) -> int:
        """The first row from ``row`` on that can end in a comment."""
        while row in self._blocked:
            row += 1
        return row

    def _read(self, source: SourceFile) -> None:
        import tokenize

        lines = source.lines
        if source.cells is not None:
            from torchlint.source.notebook import without_magics

            lines = re.split("\r\n|\r|\n", without_magics(source.cells))
        first: int | None = None
        f_strings: list[int] = []
        skipped = (tokenize.NL, tokenize.INDENT, tokenize.DEDENT)
        reader = iter([line + "\n" for line in lines])
        try:
            for token in tokenize.generate_tokens(lambda: next(reader, "")):
                kind, text, (row, column), (end_row, _), _ = token
                if kind == tokenize.COMMENT:
                    self._comment(text, row, column, lines[row - 1])
                elif kind == tokenize.NEWLINE:
                    if first is not None and row > first:
                        self._last_rows.update(dict.fromkeys(range(first, row + 1), row))
                        self._blocked.update(r for r in range(first, row) if lines[r - 1].endswith("\\"))
                    first = None
                elif kind not in skipped:
                    first = row if first is None else first
                    name = tokenize.tok_name[kind]
                    if name == "STRING":
                        self._blocked.update(range(row, end_row))
                    elif name in ("FSTRING_START", "TSTRING_START"):
                        f_strings.append(row)
                    elif name in ("FSTRING_END", "TSTRING_END"):
                        self._blocked.update(range(f_strings.pop(), row))
        except (tokenize.TokenError, SyntaxError):
            return  # what stands before the fault still counts

    def _comment(self, text: str, row: int, column: int, line: str) -> None:
        if _SKIP_FILE.match(text):
            self.skips_file = True
        match = _FILE_NOQA.match(text) if not line[:column].strip() else None
        whole_file = match is not None
        match = match or _NOQA.search(text)
        if match is None:
            return
        if whole_file and not match["codes"]:
            self.skips_file = True
            return
        codes = tuple(code.upper() for code in _CODE.findall(match["codes"] or ""))
        end = match.end("codes") if codes else match.end()
        directive = Directive(
            codes,
            Position(row, column + match.start() + 1),
            Position(row, column + match.start("codes") + 1),
            Position(row, column + end + 1),
            whole_file,
        )
        if whole_file:
            self.whole_file.append(directive)
        else:
            self.directives.setdefault(row, []).append(directive)
