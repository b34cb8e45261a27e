"""The user's own files that a traceback passes through: which line is theirs, and what lint says about it.

Frames inside installed packages, the interpreter or generated code are nobody's line. A traceback from another machine
is matched by the end of its paths, and only where the quoted source line is really there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from torchlint.catalogue.transcript import Frame, Raised, Transcript

if TYPE_CHECKING:
    from torchlint.config import Settings
    from torchlint.engine.one import Linter
    from torchlint.finding import Finding
    from torchlint.fixing.files import FileFix

NEAR = 3
"""Rows between a frame and a finding that still count as the same place."""

MOST_FILES = 12
_INSTALLED = re.compile(
    r"[\\/](?:site-packages|dist-packages|lib[\\/]python\d[\d.]*|python\d+[\\/]lib)[\\/]"
    r"|(?:^|[\\/])torch[\\/](?:\w+\.py$|(?:nn|utils|autograd|_dynamo|_inductor|fx|optim|export|distributed|onnx|jit)[\\/])"
    r"|(?:^|[\\/])(?:pytorch_lightning|lightning[\\/]pytorch)[\\/]",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Place:
    """A frame in the user's code, with its file if that is at hand."""

    frame: Frame
    file: Path | None

    @property
    def shown(self) -> str:
        name = shown(self.file) if self.file else self.frame.path
        return f"{name}:{self.frame.row}" if self.frame.row else name


def shown(file: Path) -> str:
    """A file's name as the user would write it here."""
    try:
        return str(file.relative_to(Path.cwd()))
    except ValueError:
        return str(file)


def places(transcript: Transcript, answered: Raised | None = None) -> list[Place]:
    """The user's frames, the innermost first: of the error that is answered, then of the last one, and so on.

    The lines that warnings name come after them all: anomaly mode prints the line of the forward pass in one.
    """
    found: dict[tuple[str, int], Place] = {}
    said = [*reversed(transcript.errors), *reversed(transcript.warnings)]
    for error in [answered, *said] if answered else said:
        for frame in reversed(error.frames):
            if is_users(frame.path):
                found.setdefault((frame.path, frame.row), Place(frame, _file(frame)))
    return list(found.values())


def is_users(path: str) -> bool:
    """Whether a frame is in the user's own code."""
    return not path.startswith("<frozen") and path not in ("<string>", "<stdin>") and not _INSTALLED.search(path)


def _file(frame: Frame) -> Path | None:
    if frame.path.startswith("<"):
        return None
    try:
        given = Path(frame.path).expanduser()
        if given.is_file():
            return given.resolve()
    except (OSError, RuntimeError, ValueError):
        return None
    parts = re.split(r"[\\/]+", frame.path)
    for start in range(1, len(parts)):
        here = Path.cwd().joinpath(*parts[start:])
        if here.is_file() and _says(here, frame):
            return here.resolve()
    return None


def _says(file: Path, frame: Frame) -> bool:
    """Whether a file has the line that the frame quotes, where the frame says it is."""
    lines = lines_of(file)
    return bool(frame.source) and 0 < frame.row <= len(lines) and lines[frame.row - 1].strip() == frame.source.strip()


def lines_of(file: Path) -> list[str]:
    """The lines of a file, none if it can't be read."""
    try:
        return file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def files_of(places: Iterable[Place]) -> list[Path]:
    """The files at hand, the one nearest to the error first."""
    return list(dict.fromkeys(place.file for place in places if place.file))[:MOST_FILES]


def lines_like(pattern: str, files: Iterable[Path]) -> Iterator[tuple[Path, int, str]]:
    """The lines of the files that a pattern fits: file, row, text."""
    wanted = re.compile(pattern)
    for file in files:
        for row, line in enumerate(lines_of(file), 1):
            if wanted.search(line) and not line.lstrip().startswith("#"):
                yield file, row, line.strip()


# ------------------------------------------------------------------------------------------------------------- lint


@dataclass(frozen=True, slots=True)
class Explained:
    """Findings that explain an error, the likeliest first, and whether the first is at the error's own line."""

    findings: tuple[Finding, ...]
    at_the_line: bool


def explain(places: Sequence[Place], checks: Sequence[str]) -> Explained:
    """What the rules that find this failure say about the files a traceback passes through.

    Suppressed findings count: whatever was thought of them, the error is here. A file or configuration that can't be
    read explains nothing.
    """
    files = files_of(places)
    if not files or not checks:
        return Explained((), False)
    found = [finding for file in files for finding in _lint(file, checks)]
    found.sort(key=lambda finding: (*_distance(finding, places), checks.index(finding.code)))
    at_the_line = bool(found) and _distance(found[0], places)[0] == 0
    return Explained(tuple(found), at_the_line)


def _lint(file: Path, checks: Sequence[str]) -> list[Finding]:
    from torchlint.config import ConfigError
    from torchlint.source.file import UnreadableSource, read_source

    try:
        linter = _linter(file, checks)
        found = linter.lint(read_source(str(file), shown(file))) if linter else []
    except (ConfigError, OSError, UnreadableSource):
        return []
    return [finding for finding in found if finding.code in checks]


def _linter(file: Path, checks: Sequence[str]) -> Linter | None:
    """A linter of these rules alone, with the project's other settings."""
    from torchlint.config import ConfigError, RuleSelection, load_settings
    from torchlint.engine.one import Linter
    from torchlint.engine.registry import checks_for

    try:
        settings: Settings = load_settings(file)
    except ConfigError:
        settings = load_settings(isolated=True)
    known = {check.code for check in checks_for(settings)}
    select = tuple(code for code in checks if code in known)
    if not select:
        return None
    return Linter(replace(settings, selection=(RuleSelection(select=select),), per_file_ignores=()), noqa=False)


def _distance(finding: Finding, places: Sequence[Place]) -> tuple[int, int, int]:
    """How far a finding is from the error: at a frame's line, else in the same file, by rows; inner frames first."""
    best = (2, 0, 0)
    for depth, place in enumerate(places):
        if place.file is None or shown(place.file) != finding.filename:
            continue
        row = place.frame.row
        first, last = finding.location.row, max(finding.location.row, finding.end_location.row)
        rows = 0 if first <= row <= last else min(abs(first - row), abs(last - row))
        best = min(best, (0, depth, rows) if rows <= NEAR else (1, depth, rows))
    return best


def fix(finding: Finding, places: Sequence[Place], *, unsafe: bool) -> FileFix | None:
    """Apply one finding's fix to its file, and no other. None if the file is gone."""
    from torchlint.fixing.files import fix_files
    from torchlint.source.file import SourceFile

    file = next((file for file in files_of(places) if shown(file) == finding.filename), None)
    linter = _linter(file, [finding.code]) if file else None
    if file is None or linter is None:
        return None

    first = True

    def lint(source: SourceFile) -> list[Finding]:
        nonlocal first
        only, first = (finding.code, finding.location) if first else None, False
        found = linter.lint(source)
        return [each if (each.code, each.location) == only else replace(each, fix=None) for each in found]

    return next(fix_files([(str(file), finding.filename)], lint, unsafe=unsafe, write=True), None)
