"""What is said after fixing: a line for each fix, a line for each that failed, what remains; or a diff."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence

from torchlint.finding import Applicability, Finding
from torchlint.fixing.files import FileFix
from torchlint.fixing.rounds import Failed, Fixed

_LINES = re.compile("[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


def fixed_lines(file: FileFix) -> Iterator[str]:
    """``fixed train.py:42 TL305 .view(b, -1) -> .reshape(b, -1)`` for each fix, in the file's order."""
    for fixed in sorted(file.result.fixed, key=_order):
        yield f"fixed {_place(file, fixed)} {fixed.finding.code} {fixed.change}"


def failed_lines(file: FileFix) -> Iterator[str]:
    """A line for each fix that was rolled back, with the reason."""
    for failed in sorted(file.result.failed, key=_order):
        yield f"not fixed {_place(file, failed)} {failed.finding.code} its fix was rolled back: {failed.reason}"


def status_line(files: Sequence[FileFix], remaining: Sequence[Finding], *, unsafe: bool, dry: bool = False) -> str:
    """``3 fixed, 2 remain (1 needs --unsafe-fixes)``. ``remaining`` is all that is left, in whatever file."""
    fixed = sum(len(file.result.fixed) for file in files if not file.error)
    failed = sum(len(file.result.failed) for file in files)
    unsafe_only = 0 if unsafe else sum(map(_needs_unsafe, remaining))
    notes = []
    if unsafe_only:
        notes.append(f"{unsafe_only} {'needs' if unsafe_only == 1 else 'need'} --unsafe-fixes")
    if failed:
        notes.append(f"{failed} {'fix' if failed == 1 else 'fixes'} failed")
    text = f"{fixed} would be fixed" if dry else f"{fixed} fixed"
    if remaining:
        text += f", {len(remaining)} {'remains' if len(remaining) == 1 else 'remain'}"
    return f"{text} ({', '.join(notes)})" if notes else text


def _needs_unsafe(finding: Finding) -> bool:
    return finding.fix is not None and finding.fix.applicability is Applicability.UNSAFE


def _order(entry: Fixed | Failed) -> tuple[int, int, str]:
    return entry.cell or 0, entry.row, entry.finding.code


def _place(file: FileFix, entry: Fixed | Failed) -> str:
    cell = "" if entry.cell is None else f"cell {entry.cell}:"
    return f"{file.filename}:{cell}{entry.row}"


def diff(file: FileFix) -> str:
    """The unified diff from a file as it is to the file as it would be; for a notebook one diff a changed cell."""
    before, after = file.result.before, file.result.after
    if before.cells is None:
        return _unified(before.text, after.text, file.filename)
    cells = zip(before.cells, after.cells or (), strict=True)
    return "".join(_unified(old.text, new.text, f"{file.filename}:cell {old.number}") for old, new in cells)


def _unified(before: str, after: str, name: str) -> str:
    old, new = _LINES.findall(before), _LINES.findall(after)
    lines = difflib.unified_diff(old, new, _quoted(name), _quoted(name))
    return "".join(_terminated(lines))


def _terminated(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield line
        if not line.endswith("\n"):
            yield "\n\\ No newline at end of file\n" if not line.endswith("\r") else "\n"


def _quoted(name: str) -> str:
    """A file name that stays on its line: whoever names a file with a newline doesn't get to write diff headers."""
    return name if name.isprintable() else name.encode("unicode_escape").decode("ascii")
