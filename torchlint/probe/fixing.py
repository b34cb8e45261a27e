"""``probe --fix``: put the right number into the source, probe again, say what is fixed and what remains.

One number at a time: the next fault shows itself only when the first is gone, and a correction that doesn't help is
taken back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from torchlint.finding import Edit, Finding

MAX_ROUNDS = 10


@dataclass
class Fixed:
    """What fixing came to: a line per correction that helped, the findings that remain."""

    lines: list[str] = field(default_factory=list)
    remaining: Sequence[Finding] = ()


def fix(found: Sequence[Finding], probe_again: Callable[[], Sequence[Finding]]) -> Fixed:
    """Apply corrections one after the other, each tried by probing again."""
    result = Fixed(remaining=found)
    failed: set[tuple[str, str]] = set()
    for _ in range(MAX_ROUNDS):
        finding = next((f for f in result.remaining if f.fix is not None and _key(f) not in failed), None)
        if finding is None or finding.fix is None:
            break
        before = apply(finding.filename, finding.fix.edits)
        after = probe_again()
        if any(_key(f) == _key(finding) for f in after):
            Path(finding.filename).write_bytes(before)
            failed.add(_key(finding))
            continue
        result.lines.append(f"[FIXED] {finding.filename}:{finding.location.row} {finding.code} {finding.fix.message}")
        result.remaining = after
    return result


def _key(finding: Finding) -> tuple[str, str]:
    """The same fault again, even if its place moved: code and message name layer and numbers."""
    return finding.code, finding.message


def apply(filename: str, edits: Sequence[Edit]) -> bytes:
    """Write edits into a file, keeping its encoding and line ends; returns what it held before."""
    path = Path(filename)
    before = path.read_bytes()
    lines = before.decode("utf-8", "surrogateescape").splitlines(keepends=True)
    for edit in sorted(edits, key=lambda edit: edit.start, reverse=True):
        first, last = lines[edit.start.row - 1], lines[edit.end.row - 1]
        head, tail = first[: edit.start.column - 1], last[edit.end.column - 1 :]
        lines[edit.start.row - 1 : edit.end.row] = [head + edit.content + tail]
    path.write_bytes("".join(lines).encode("utf-8", "surrogateescape"))
    return before
