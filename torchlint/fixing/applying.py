"""Edits onto text: which fixes fit together, what the text becomes, and where its old places went."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from torchlint.finding import Edit, Finding, Position
from torchlint.source.file import SourceFile


class CrossesCells(ValueError):
    """An edit would reach from one notebook cell into another."""


@dataclass(frozen=True, slots=True)
class Splice:
    """An edit as indices into the text."""

    start: int
    end: int
    content: str


class Applied:
    """A source before and after some edits; places can be asked for in both directions."""

    __slots__ = ("_new_starts", "_shifts", "_splices", "_starts", "after", "before")

    def __init__(self, before: SourceFile, after: SourceFile, splices: Sequence[Splice]) -> None:
        """``splices`` made ``after`` of ``before``; they are in order and none overlaps another."""
        self.before = before
        self.after = after
        self._splices = splices
        self._starts = [splice.start for splice in splices]
        grown = (len(splice.content) - (splice.end - splice.start) for splice in splices)
        self._shifts = [0, *accumulate(grown)]
        self._new_starts = [start + shift for start, shift in zip(self._starts, self._shifts, strict=False)]

    def forward(self, offset: int) -> int:
        """Where a character of the old text stands in the new one; within replaced text, somewhere in its place."""
        index = bisect_right(self._starts, offset)
        last = self._splices[index - 1] if index else None
        if last and offset < last.end:
            return last.start + self._shifts[index - 1] + min(offset - last.start, len(last.content))
        return offset + self._shifts[index]

    def backward(self, offset: int) -> int:
        """Where a character of the new text stood in the old one; inserted text comes from where it was put."""
        index = bisect_right(self._new_starts, offset)
        if index and offset < self._new_starts[index - 1] + len(self._splices[index - 1].content):
            return self._starts[index - 1]
        return offset - self._shifts[index]


def start_in_text(source: SourceFile, finding: Finding) -> Position:
    """Where a finding starts in the text of its source; for a notebook, findings count rows within their cell."""
    if finding.cell is None:
        return finding.location
    first = next((cell.first_row for cell in source.cells or () if cell.number == finding.cell), 1)
    return replace(finding.location, row=first + finding.location.row - 1)


def choose(findings: Iterable[Finding]) -> list[Finding]:
    """Findings whose fixes can be applied together, the first in the file first; the others wait for the next round."""
    chosen: list[Finding] = []
    taken: dict[int, list[Edit]] = defaultdict(list)  # by each row they touch
    for finding in sorted(findings, key=_first_edit):
        edits = finding.fix.edits if finding.fix else ()
        if not any(_clash(edit, other) for edit in edits for row in _rows(edit) for other in taken[row]):
            chosen.append(finding)
            for edit in edits:
                for row in _rows(edit):
                    taken[row].append(edit)
    return chosen


def _rows(edit: Edit) -> range:
    return range(edit.start.row, edit.end.row + 1)


def _first_edit(finding: Finding) -> tuple[Position, Position]:
    edits = finding.fix.edits if finding.fix else ()
    return min((edit.start for edit in edits), default=finding.location), finding.location


def _clash(one: Edit, other: Edit) -> bool:
    """Whether two edits touch the same text, or insert different text at the same place; equal edits count once."""
    if one == other:
        return False
    if one.start == other.start and (one.start == one.end) == (other.start == other.end):
        return True
    return one.start < other.end and other.start < one.end


def apply_edits(source: SourceFile, edits: Iterable[Edit]) -> Applied:
    """The source with the edits made, none of which overlap. Raises CrossesCells."""
    splices = sorted(
        {Splice(source.offset(edit.start), source.offset(edit.end), edit.content) for edit in edits},
        key=lambda splice: (splice.start, splice.end),
    )
    if source.cells is None:
        after = SourceFile(
            _spliced(source.text, splices), source.filename, source.path, encoding=source.encoding, bom=source.bom
        )
        return Applied(source, after, splices)
    return _apply_to_cells(source, splices)


def _spliced(text: str, splices: Sequence[Splice], offset: int = 0) -> str:
    pieces: list[str] = []
    done = 0
    for splice in splices:
        pieces += [text[done : splice.start - offset], splice.content]
        done = splice.end - offset
    return "".join([*pieces, text[done:]])


def _apply_to_cells(source: SourceFile, splices: Sequence[Splice]) -> Applied:
    cells = []
    made: list[Splice] = []
    row = 1
    for (start, end, text), cell in zip(_cell_spans(source), source.cells or (), strict=True):
        own = [splice for splice in splices if start <= splice.start < end]
        if any(splice.end > end for splice in own):
            raise CrossesCells
        changed = _spliced(text, own, start)
        if not changed.endswith(("\n", "\r")):
            own.append(Splice(end, end, source.newline))
            changed += source.newline
        made += own
        cells.append(replace(cell, first_row=row, text=changed))
        row += len(SourceFile(changed, "").lines) - 1
    joined = "".join(cell.text for cell in cells)
    after = SourceFile(
        joined, source.filename, source.path, encoding=source.encoding, bom=source.bom, cells=tuple(cells)
    )
    return Applied(source, after, made)


def _cell_spans(source: SourceFile) -> Iterator[tuple[int, int, str]]:
    start = 0
    for cell in source.cells or ():
        yield start, start + len(cell.text), cell.text
        start += len(cell.text)


def row_at(source: SourceFile, offset: int) -> tuple[int, int | None]:
    """The row of an index into the text; for a notebook the row within its cell, and the cell's number."""
    row = source.position_at(min(offset, len(source.text))).row
    placed = source.cell(row)
    return (row, None) if placed is None else (placed[1], placed[0])
