"""Fix a source and prove it: apply what fits together, lint again, keep what holds, until nothing more can be fixed.

A fix is kept only if the result parses and compiles, its own finding is gone, and no other finding came. A group of
fixes that fails this test is halved until the guilty one is alone; that one is rolled back and named, and the others
stay. Every round that is kept lowers the number of findings, so the rounds end; ``MOST_LINTS`` bounds them in time.
"""

from __future__ import annotations

import ast
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from torchlint.finding import Applicability, Finding
from torchlint.fixing.applying import Applied, CrossesCells, apply_edits, choose, row_at, start_in_text
from torchlint.fixing.wording import describe
from torchlint.source.file import SourceFile

Lint = Callable[[SourceFile], Sequence[Finding]]

MOST_LINTS = 100


@dataclass(frozen=True, slots=True)
class Fixed:
    """A finding that is gone: its row (and cell) in the file as it was, and what was changed into what."""

    finding: Finding
    row: int
    cell: int | None
    change: str


@dataclass(frozen=True, slots=True)
class Failed:
    """A fix that was rolled back, and why; its finding remains."""

    finding: Finding
    row: int
    cell: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class FixResult:
    """A source before and after, with what was found, fixed, not fixed though it should, and is still found."""

    before: SourceFile
    after: SourceFile
    found: tuple[Finding, ...]
    fixed: tuple[Fixed, ...]
    failed: tuple[Failed, ...]
    remaining: tuple[Finding, ...]

    @property
    def changed(self) -> bool:
        return self.after.text != self.before.text


def fix_source(
    source: SourceFile, lint: Lint, unsafe: bool, *, wanted: Callable[[str], bool] = lambda code: True
) -> FixResult:
    """Apply all safe fixes of what ``lint`` finds (unsafe ones too when asked) for the rules whose code is wanted."""
    run = _Run(source, lint, unsafe, wanted)
    found = tuple(run.findings)
    while run.lints < MOST_LINTS:
        batch = choose(finding for finding in run.findings if run.may_fix(finding))
        if not batch:
            break
        run.attempt(batch)
    return FixResult(source, run.source, found, tuple(run.fixed), tuple(run.failed), tuple(run.findings))


@dataclass(slots=True)
class _Run:
    """Where the fixing of one source stands."""

    source: SourceFile
    lint: Lint
    unsafe: bool
    wanted: Callable[[str], bool]
    findings: Sequence[Finding] = ()
    fixed: list[Fixed] = field(default_factory=list)
    failed: list[Failed] = field(default_factory=list)
    given_up: set[tuple[str, int]] = field(default_factory=set)  # code and index into the text, moved along with it
    steps: list[Applied] = field(default_factory=list)
    lints: int = 1
    compiles: bool = True

    def __post_init__(self) -> None:
        self.findings = self.lint(self.source)
        self.compiles = _compiles(self.source)

    def may_fix(self, finding: Finding) -> bool:
        fix = finding.fix
        if fix is None or (fix.applicability is Applicability.UNSAFE and not self.unsafe):
            return False
        return self.wanted(finding.code) and self.key(finding) not in self.given_up

    def key(self, finding: Finding) -> tuple[str, int]:
        return finding.code, self.source.offset(start_in_text(self.source, finding))

    def attempt(self, batch: Sequence[Finding]) -> bool:
        """Keep these fixes, or the first part of them that holds; give up each that fails alone."""
        if self.lints >= MOST_LINTS:
            return False
        reason = self.keep(batch)
        if not reason:
            return True
        if len(batch) == 1:
            finding = batch[0]
            self.given_up.add(self.key(finding))
            self.failed.append(Failed(finding, *self.original_place(finding), reason))
            return False
        half = len(batch) // 2
        return self.attempt(batch[:half]) or self.attempt(batch[half:])

    def keep(self, batch: Sequence[Finding]) -> str:
        """Apply fixes and move on to their result, or say why not."""
        try:
            step = apply_edits(self.source, (edit for finding in batch if finding.fix for edit in finding.fix.edits))
        except CrossesCells:
            return "it would reach into another cell"
        if step.after.text == self.source.text:
            return "it changes nothing"
        if not _parses(step.after) or (self.compiles and not _compiles(step.after)):
            return "the result is no valid Python"
        self.lints += 1
        findings = self.lint(step.after)
        reason = self.objection(batch, step, findings)
        if not reason:
            self.fixed += [self.describe(finding) for finding in batch]
            self.given_up = {(code, step.forward(offset)) for code, offset in self.given_up}
            self.steps.append(step)
            self.source, self.findings = step.after, findings
        return reason

    def objection(self, batch: Sequence[Finding], step: Applied, findings: Sequence[Finding]) -> str:
        """What lint has against the result, if anything."""
        places = {(found.code, step.after.offset(start_in_text(step.after, found))) for found in findings}
        for finding in batch:
            code, offset = self.key(finding)
            if (code, step.forward(offset)) in places:
                return "the fault is still there"
        allowed = Counter(finding.code for finding in self.findings)
        fixed = Counter(finding.code for finding in batch)
        allowed.subtract(fixed)
        for code, number in Counter(found.code for found in findings).items():
            if number > allowed[code]:
                return "the fault is still there" if code in fixed else f"it brings {code}"
        return ""

    def original_place(self, finding: Finding) -> tuple[int, int | None]:
        offset = self.key(finding)[1]
        for step in reversed(self.steps):
            offset = step.backward(offset)
        first = self.steps[0].before if self.steps else self.source
        return row_at(first, offset)

    def describe(self, finding: Finding) -> Fixed:
        return Fixed(finding, *self.original_place(finding), describe(self.source, finding))


def _parses(source: SourceFile) -> bool:
    try:
        return isinstance(source.tree, ast.Module)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def _compiles(source: SourceFile) -> bool:
    """Whether Python takes the file: beyond the grammar, names declared twice, ``return`` outside functions, ..."""
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT if source.is_notebook else 0
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(source.tree, source.filename or "<source>", "exec", flags=flags, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
