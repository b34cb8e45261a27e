"""What must hold for any input whatever: nothing is raised, no check fails, it takes no time to speak of, what is
found is in the text, what Python can't parse is told and what it can isn't, and a fixed program can still be parsed.
"""

from __future__ import annotations

import signal
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from torchlint.config import RuleSelection, Settings
from torchlint.engine.one import Linter
from torchlint.finding import Finding
from torchlint.fixing.rounds import fix_source
from torchlint.source.file import SourceFile, UnreadableSource, source_from_bytes, source_from_text

LIMIT = 2.0
"""Seconds of CPU that a file may take."""
HANG = 30
"""Seconds of CPU after which nothing more is waited for."""


class Hang(BaseException):
    """It took far too long; no check's ``except Exception`` may catch this."""


class Verdict(NamedTuple):
    """What became of one input: "" or what is wrong, the CPU seconds linting took, how many findings and fixes."""

    wrong: str
    seconds: float = 0.0
    findings: int = 0
    fixed: int = 0
    rolled_back: int = 0
    parsed: bool = True


def make_linter(root: str) -> Linter:
    """All rules, over a project."""
    return Linter(Settings(root=root, src=(root,), selection=(RuleSelection(select=("ALL",)),)))


def judge_text(text: str, filename: str = "input.py", *, fix: bool = False) -> Verdict:
    """The verdict on a program that stands for itself."""
    linter = make_linter(str(Path(__file__).parent / "nowhere"))
    try:
        source = source_from_text(text, filename)
    except UnreadableSource:
        return Verdict("")
    verdict = judge(linter, source)
    if fix and not verdict.wrong and verdict.findings:
        verdict = verdict._replace(**_fixed(text, filename))
    return verdict


def judge_file(linter: Linter, path: str) -> Verdict:
    """The verdict on a file of a project, whether it names torch or not."""
    try:
        source = source_from_bytes(Path(path).read_bytes(), path, path)
    except UnreadableSource:
        return Verdict("", parsed=False)
    verdict = judge(linter, source)
    if verdict.wrong.startswith("slow"):  # once more, as the project's other files have been read now
        verdict = judge(linter, source_from_bytes(Path(path).read_bytes(), path, path))
    return verdict


def judge(linter: Linter, source: SourceFile) -> Verdict:
    """The verdict on what linting makes of a source."""
    started = time.process_time()
    try:
        with _no_longer_than(HANG):
            findings = linter.lint(source)
    except Hang:
        return Verdict(f"hang: more than {HANG} s of CPU")
    except Exception:
        return Verdict("raised: " + traceback.format_exc(limit=-6))
    finally:
        linter.done()
    seconds = time.process_time() - started
    parsed = source.parses
    return Verdict(_what_is_wrong(source, findings, seconds, parsed), seconds, len(findings), parsed=parsed)


def _what_is_wrong(source: SourceFile, findings: list[Finding], seconds: float, parsed: bool) -> str:
    for finding in findings:
        if finding.code == "TL003":
            return f"TL003: {finding.message}"
        for at in (finding.location, finding.end_location):
            if not (1 <= at.row <= len(source.lines) and 1 <= at.column <= len(source.lines[at.row - 1]) + 1):
                return f"{finding.code} is at {at}, which isn't in the text"
        if finding.location > finding.end_location:
            return f"{finding.code} ends at {finding.end_location}, before it starts at {finding.location}"
    told = any(finding.code == "TL001" for finding in findings)
    if told and parsed:
        return "TL001 for what Python can parse"
    if not (told or parsed or "noqa" in source.text or "skip-file" in source.text):
        return "no TL001 for what Python can't parse"
    if seconds > LIMIT:
        return f"slow: {seconds:.1f} s of CPU for {len(source.lines)} lines"
    return ""


def _fixed(text: str, filename: str) -> dict[str, object]:
    """What fixing everything makes of a program."""
    source = source_from_text(text, filename)
    linter = make_linter(str(Path(__file__).parent / "nowhere"))
    try:
        with _no_longer_than(4 * HANG):
            result = fix_source(source, linter.lint, unsafe=True)
    except Hang:
        return {"wrong": f"hang: fixing takes more than {4 * HANG} s of CPU"}
    except Exception:
        return {"wrong": "fixing raised: " + traceback.format_exc(limit=-6)}
    wrong = ""
    if result.before.parses and not result.after.parses:
        wrong = "the fixed program can't be parsed"
    if any(finding.code == "TL003" for finding in result.remaining):
        wrong = "TL003 in the fixed program"
    return {"wrong": wrong, "fixed": len(result.fixed), "rolled_back": len(result.failed)}


@contextmanager
def _no_longer_than(seconds: int) -> Iterator[None]:
    """Raise Hang in what runs here when it has taken so much CPU."""

    def stop(signum: int, frame: object) -> None:
        raise Hang

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
