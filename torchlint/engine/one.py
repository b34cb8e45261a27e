"""The checks over one file.

Whatever happens in a file stays in that file: what can't be parsed is TL001, a check that raises is TL003, and the
other checks' findings are kept.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from torchlint.check import Check, Runner
from torchlint.engine.environment import installed_packages
from torchlint.engine.registry import checks_for
from torchlint.finding import Applicability, Finding, Fix, Position
from torchlint.program.project import Project
from torchlint.selection import ignored_codes, selected_codes
from torchlint.source.file import (
    CANNOT_PARSE,
    SourceFile,
    UnreadableSource,
    read_source,
    source_from_bytes,
    source_from_text,
)
from torchlint.source.suppressions import Suppressions, text_row

if TYPE_CHECKING:
    from torchlint.config import Settings
    from torchlint.program.module import Module

SYNTAX_ERROR = "TL001"
UNUSED_SUPPRESSION = "TL002"
CHECK_FAILED = "TL003"

_T = TypeVar("_T")
_DEEP_STACK = 512 * 1024 * 1024
_DEEP_RECURSION = 100_000


class _Place(NamedTuple):
    """Where in which file, as a finding has it."""

    filename: str
    start: Position
    end: Position
    cell: int | None


class Linter:
    """The checks that one configuration selects, over any number of files of one project.

    ``noqa`` False leaves ``# noqa`` comments to the caller, as flake8 wants it. Raises ConfigError if the configuration
    names a rule that doesn't exist.
    """

    def __init__(self, settings: Settings, project: Project | None = None, *, noqa: bool = True) -> None:
        self.settings = settings
        self.project = project or make_project(settings)
        self.noqa = noqa
        self.checks = checks_for(settings)
        self.by_code = {check.code: check for check in self.checks}
        self.known = tuple(self.by_code)
        self.selected = selected_codes(settings, self.checks)
        self.module: Module | None = None
        self._runners: dict[frozenset[str], Runner] = {}

    def lint(self, source: SourceFile) -> list[Finding]:
        """The findings of one file in report order; ``module`` is then what the program layer made of it, if it did."""
        self.module = None
        suppressions = Suppressions(source)
        if suppressions.skips_file:
            return []
        active = self._active(source.path or source.filename)
        module = self.project.module(source)
        source = module.source  # another file's question may have had it read and parsed already
        try:
            source.tree  # noqa: B018 - parsed here, so that what is wrong with it is known apart from what checks raise
        except CANNOT_PARSE as error:
            self.project.done(module)
            return self._tell(active, SYNTAX_ERROR, *_parse_failure(source, error))
        self.module = module
        findings, failures = self._run(active, module)
        if any(isinstance(failure, RecursionError) for failure in failures.values()):
            deep = with_deep_stack(lambda: self._run(active, module))
            findings, failures = deep if deep is not None else (findings, failures)
        for code, failure in failures.items():
            findings += self._tell(active, CHECK_FAILED, *_check_failure(source, code, failure))
        if self.noqa:
            return self._after_suppressions(source, suppressions, findings, active - failures.keys())
        findings.sort(key=lambda finding: finding.sort_key)
        return findings

    def done(self) -> bool:
        """Free what the last file was made into, where no cyclic garbage collector does it.

        Returns whether next to nothing is kept for other files now, so that looking for garbage is cheap.
        """
        module, self.module = self.module, None
        return module is not None and self.project.done(module)

    def unreadable(self, path: str, filename: str, error: UnreadableSource) -> list[Finding]:
        """What there is to say of a file whose bytes are no Python text."""
        at = Position(error.row, error.column)
        place = _Place(filename, at, at, None)
        return self._tell(self._active(path or filename), SYNTAX_ERROR, place, _not_parsed(place, error.reason))

    def crashed(self, path: str, filename: str) -> list[Finding]:
        """What there is to say of a file that brought down the process it was checked in."""
        top = Position(1, 1)
        message = "The process that checked this file was killed or crashed, which may hide findings"
        return self._tell(self._active(path), CHECK_FAILED, _Place(filename, top, top, None), message)

    def _active(self, path: str) -> frozenset[str]:
        if not self.settings.per_file_ignores:
            return self.selected
        return self.selected - ignored_codes(self.settings, path, self.checks)

    def _run(self, active: frozenset[str], module: Module) -> tuple[list[Finding], dict[str, BaseException]]:
        """Findings, and by code the checks that raised; the engine's own failure stands under ""."""
        runner = self._runners.get(active)
        if runner is None:
            runner = self._runners[active] = Runner(check for check in self.checks if check.code in active)
        failures: dict[str, BaseException] = {}

        def failed(check: Check, error: Exception) -> None:
            failures[check.code] = error

        try:
            findings = runner.run(module, failed)
        except Exception as error:
            findings = []
            failures[""] = error
        return findings, failures

    def _tell(self, active: frozenset[str], code: str, place: _Place, message: str) -> list[Finding]:
        if code not in active:
            return []
        check = self.by_code[code]
        return [
            Finding(
                code=code,
                name=check.name,
                message=message,
                severity=check.severity,
                filename=place.filename,
                location=place.start,
                end_location=place.end,
                cell=place.cell,
                noqa_row=place.start.row,
            )
        ]

    def _after_suppressions(
        self, source: SourceFile, suppressions: Suppressions, findings: list[Finding], judged: frozenset[str]
    ) -> list[Finding]:
        """The findings that no comment suppresses, each with its noqa_row, and TL002 for comments in vain."""
        kept = []
        for finding in findings:
            row = text_row(source, finding)
            if not suppressions.suppresses(row, finding.code):
                noqa_row = suppressions.noqa_row(row) - row + finding.location.row
                kept.append(finding if finding.noqa_row == noqa_row else replace(finding, noqa_row=noqa_row))
        if UNUSED_SUPPRESSION in judged:
            for directive, codes in suppressions.unused(judged, self.known):
                place = _place(source, directive.start, directive.end)
                message = _unused(codes, self.known)
                fix = Fix(
                    "Remove what suppresses nothing", Applicability.SAFE, (suppressions.removal(directive, codes),)
                )
                kept += [replace(f, fix=fix) for f in self._tell(judged, UNUSED_SUPPRESSION, place, message)]
        kept.sort(key=lambda finding: finding.sort_key)
        return kept


def make_project(settings: Settings, read: Callable[[str], SourceFile] = read_source) -> Project:
    """The project of a configuration, as far as linting reads it."""
    return Project(settings.src, read, lambda: installed_packages(settings.root), settings.target_torch)


def lint_source_file(source: SourceFile, project: Project, settings: Settings, *, noqa: bool = True) -> list[Finding]:
    """The findings of one file. For several files, keep a Linter."""
    return Linter(settings, project, noqa=noqa).lint(source)


def lint_text(
    text: str, settings: Settings, filename: str = "-", path: str = "", *, noqa: bool = True
) -> list[Finding]:
    """The findings of a text that is not, or not yet, on disk; ``path`` is where it would be."""
    linter = Linter(settings, noqa=noqa)
    try:
        source = source_from_text(text, filename, path)
    except UnreadableSource as error:
        return linter.unreadable(path, filename, error)
    return linter.lint(source)


def lint_bytes(linter: Linter, data: bytes, path: str, filename: str) -> list[Finding]:
    """The findings of a file's content."""
    try:
        source = source_from_bytes(data, path, filename)
    except UnreadableSource as error:
        return linter.unreadable(path, filename, error)
    return linter.lint(source)


def with_deep_stack(function: Callable[[], _T]) -> _T | None:
    """Call a function where recursion may go deeper than Python's limit allows; None if there is no room for that."""
    import threading

    outcome: list[_T] = []
    raised: list[BaseException] = []

    def call() -> None:
        try:
            outcome.append(function())
        except BaseException as error:
            raised.append(error)

    limit = sys.getrecursionlimit()
    usual_stack = threading.stack_size(_DEEP_STACK)
    try:
        sys.setrecursionlimit(_DEEP_RECURSION)
        thread = threading.Thread(target=call)
        thread.start()
        thread.join()
    except (RuntimeError, MemoryError):
        return None
    finally:
        threading.stack_size(usual_stack)
        sys.setrecursionlimit(limit)
    if raised:
        raise raised[0]
    return outcome[0]


def _place(source: SourceFile, start: Position, end: Position) -> _Place:
    """A span of a source's text as a finding has it: within its cell, for a notebook."""
    placed = source.cell(start.row)
    if placed is None:
        return _Place(source.filename, start, end, None)
    cell, row = placed
    shift = start.row - row
    return _Place(source.filename, Position(row, start.column), Position(end.row - shift, end.column), cell)


def _not_parsed(place: _Place, reason: str) -> str:
    return f"Python can't parse this file: {reason} (line {place.start.row}, column {place.start.column})"


def _parse_failure(source: SourceFile, error: BaseException) -> tuple[_Place, str]:
    """Where and why a source can't be parsed."""
    row, column, reason = 1, 1, str(error)
    if isinstance(error, SyntaxError):
        row, column, reason = error.lineno or 1, error.offset or 1, error.msg
    elif isinstance(error, UnicodeEncodeError):  # half of a surrogate pair, in a text that was never bytes
        at = source.position_at(error.start)
        row, column, reason = at.row, at.column, "a lone surrogate is no text"
    elif isinstance(error, (RecursionError, MemoryError)):
        reason = "it is nested too deeply"
    if "\0" in source.text:
        at = source.position_at(source.text.index("\0"))
        row, column, reason = at.row, at.column, "a null byte is no source code"
    row = min(max(row, 1), len(source.lines))
    start = Position(row, min(max(column, 1), len(source.lines[row - 1]) + 1))
    place = _place(source, start, start)
    return place, _not_parsed(place, reason)


def _check_failure(source: SourceFile, code: str, error: BaseException) -> tuple[_Place, str]:
    top = Position(1, 1)
    reason = f"{type(error).__name__}: {error}".rstrip(": ")
    what = f"The check {code}" if code else "torchlint itself"
    return _place(source, top, top), f"{what} failed on this file, which may hide findings: {reason}"


def _unused(codes: Sequence[str], known: Sequence[str]) -> str:
    """What is wrong with the codes of a noqa comment that suppress nothing."""
    unknown = [code for code in codes if not any(rule.startswith(code) for rule in known)]
    idle = [code for code in codes if code not in unknown]
    said = []
    if idle:
        said.append(f"Nothing here is reported as {' or '.join(idle)}")
    if unknown:
        said.append(f"{'there' if said else 'There'} is no rule {' or '.join(unknown)}")
    return f"{', and '.join(said)}: this noqa only hides what comes later"
