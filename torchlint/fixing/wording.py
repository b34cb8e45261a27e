"""What a fix changed into what, in one line: ``.view(b, -1) -> .reshape(b, -1)``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from torchlint.finding import Edit, Finding, Position
from torchlint.fixing.applying import apply_edits, start_in_text
from torchlint.source.file import SourceFile

LONGEST = 72
MOST_PLACES = 3

_OPENERS = {"(": ")", "[": "]", "{": "}"}
_CLOSERS = {closer: opener for opener, closer in _OPENERS.items()}
_CALLEE = re.compile(r"[\w.]*$")


def describe(source: SourceFile, finding: Finding) -> str:
    """What a finding's fix does to the text, the place nearest to the finding first."""
    edits = sorted(finding.fix.edits if finding.fix else (), key=lambda edit: (edit.start, edit.end))
    row = start_in_text(source, finding).row
    regions = sorted(_regions(edits), key=lambda region: abs(region[0].start.row - row))
    said = list(dict.fromkeys(filter(None, (_region(source, region) for region in regions))))
    if len(said) > MOST_PLACES:
        said[MOST_PLACES - 1 :] = [f"{len(said) - MOST_PLACES + 1} more changes"]
    return ", ".join(said)


def _regions(edits: Sequence[Edit]) -> Iterator[list[Edit]]:
    """Edits that share rows, or stand on rows next to each other, belong together."""
    region: list[Edit] = []
    for edit in edits:
        if region and edit.start.row > max(other.end.row for other in region) + 1:
            yield region
            region = []
        region.append(edit)
    if region:
        yield region


def _region(source: SourceFile, edits: Sequence[Edit]) -> str:
    first, last = min(edit.start.row for edit in edits), max(edit.end.row for edit in edits)
    part = SourceFile("\n".join(source.lines[first - 1 : last]), "")
    step = apply_edits(part, [Edit(_lifted(e.start, first), _lifted(e.end, first), e.content) for e in edits])
    old, new = _without_common(*([line.strip() for line in rows] for rows in (part.lines, step.after.lines)))
    if not old:
        return f"+ {_joined(new)}" if new else ""
    if not new:
        return f"- {_joined(old)}"
    if len(old) == len(new) == 1:
        before, after = _focused(old[0], new[0])
        return f"{_short(before)} -> {_short(after)}"
    return f"{_joined(old)} -> {_joined(new)}"


def _lifted(position: Position, first: int) -> Position:
    return Position(position.row - first + 1, position.column)


def _without_common(old: list[str], new: list[str]) -> tuple[list[str], list[str]]:
    """Both without the lines they begin and end with in common, and without blank ones."""
    old, new = list(filter(None, old)), list(filter(None, new))
    while old and new and old[0] == new[0]:
        old, new = old[1:], new[1:]
    while old and new and old[-1] == new[-1]:
        old, new = old[:-1], new[:-1]
    return old, new


def _joined(rows: Sequence[str]) -> str:
    return _short(" ".join(rows))


def _short(text: str) -> str:
    text = text.strip()
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 4].rstrip()} ..."


def _focused(old: str, new: str) -> tuple[str, str]:
    """The parts of two lines that differ, widened to whole words and calls."""
    head = _common(old, new)
    tail = min(_common(old[::-1], new[::-1]), len(old) - head, len(new) - head)
    head = _at_word_start(old, new, head)
    tail = _at_word_end(old, new, tail)
    if not (old[head : len(old) - tail] and new[head : len(new) - tail]):
        head = _callee_start(old, _unclosed(old[:head]))
    while (opener := _unopened(old[head : len(old) - tail]) or _unopened(new[head : len(new) - tail])) and head:
        head = _callee_start(old, old.rfind(opener, 0, head))
    tail = len(old) - _closed_end(old, head, len(old) - tail)
    if head and old[head - 1] == ".":
        head -= 1
    return old[head : len(old) - tail], new[head : len(new) - tail]


def _common(one: str, other: str) -> int:
    count = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        count += 1
    return count


def _is_word(text: str, index: int) -> bool:
    return 0 <= index < len(text) and (text[index].isalnum() or text[index] == "_")


def _at_word_start(old: str, new: str, head: int) -> int:
    while head and _is_word(old, head - 1) and (_is_word(old, head) or _is_word(new, head)):
        head -= 1
    return head


def _at_word_end(old: str, new: str, tail: int) -> int:
    while tail and _is_word(old, len(old) - tail):
        before_old, before_new = len(old) - tail - 1, len(new) - tail - 1
        if not (_is_word(old, before_old) or _is_word(new, before_new)):
            break
        tail -= 1
    return tail


def _unclosed(text: str) -> int:
    """The index of the last bracket that the text leaves open, or 0."""
    stack: list[int] = []
    for index, character in enumerate(text):
        if character in _OPENERS:
            stack.append(index)
        elif character in _CLOSERS and stack:
            stack.pop()
    return stack[-1] if stack else 0


def _unopened(text: str) -> str:
    """The opener of the first bracket that the text closes without opening it, or nothing."""
    stack: list[str] = []
    for character in text:
        if character in _OPENERS:
            stack.append(character)
        elif character in _CLOSERS:
            if not stack:
                return _CLOSERS[character]
            stack.pop()
    return ""


def _callee_start(text: str, bracket: int) -> int:
    """Where the name in front of a bracket starts."""
    if bracket <= 0:
        return 0
    match = _CALLEE.search(text[:bracket])
    return match.start() if match else bracket


def _closed_end(text: str, start: int, end: int) -> int:
    """The end of a part, moved on until all brackets it opens are closed and a call begun at its end is whole."""
    depth = sum((character in _OPENERS) - (character in _CLOSERS) for character in text[start:end])
    if depth <= 0 and not (text[end : end + 1] in ("(", "[") and _is_word(text, end - 1)):
        return end
    for index in range(end, len(text)):
        depth += (text[index] in _OPENERS) - (text[index] in _CLOSERS)
        if depth <= 0:
            return index + 1
    return len(text)
