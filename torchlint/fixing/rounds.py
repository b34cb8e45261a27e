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
from torchlint.source.file import CANNOT_PARSE, SourceFile

Lint = Callable[[SourceFile], Sequence[Finding]]

MOST_LINTS = 100
MOST_FOLLOW_UPS = 3


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
        return self.may_apply(finding) and _key(self.source, finding) not in self.given_up

    def may_apply(self, finding: Finding) -> bool:
        fix = finding.fix
        if fix is None or (fix.applicability is Applicability.UNSAFE and not self.unsafe):
            return False
        return self.wanted(finding.code)

    def attempt(self, batch: Sequence[Finding]) -> bool:
        """Keep these fixes, or the first part of them that holds; give up each that fails alone."""
        if self.lints >= MOST_LINTS:
            return False
        reason = self.keep(batch)
        if not reason:
            return True
        if len(batch) == 1:
            finding = batch[0]
            self.given_up.add(_key(self.source, finding))
            self.failed.append(Failed(finding, *self.original_place(self.source, finding, ()), reason))
            return False
        half = len(batch) // 2
        return self.attempt(batch[:half]) or self.attempt(batch[half:])

    def keep(self, batch: Sequence[Finding]) -> str:
        """Apply fixes and move on to their result, or say why not.

        What a single fix brings to light may be fixed along with it: the model that is now in eval mode without
        no_grad. Only if that leaves nothing new is any of it kept.
        """
        steps: list[Applied] = []
        fixed: list[Fixed] = []
        source, fixing, first_reason = self.source, batch, ""
        while True:
            step = self.apply(source, fixing)
            if isinstance(step, str):
                return first_reason or step
            fixed += [
                Fixed(finding, *self.original_place(source, finding, steps), describe(source, finding))
                for finding in fixing
            ]
            steps.append(step)
            self.lints += 1
            findings = self.lint(step.after)
            reason, brought = self.objection(batch, steps, findings)
            if not reason:
                self.accept(steps, fixed, findings)
                return ""
            first_reason = first_reason or reason
            follow_up = choose(filter(self.may_apply, brought)) if len(batch) == 1 else []
            if not follow_up or len(steps) > MOST_FOLLOW_UPS:
                return first_reason
            source, fixing = step.after, follow_up

    def apply(self, source: SourceFile, batch: Sequence[Finding]) -> Applied | str:
        """The result of some fixes, or what is wrong with it in itself."""
        try:
            step = apply_edits(source, (edit for finding in batch if finding.fix for edit in finding.fix.edits))
        except CrossesCells:
            return "it would reach into another cell"
        if step.after.text == source.text:
            return "it changes nothing"
        if not step.after.parses or (self.compiles and not _compiles(step.after)):
            return "the result is no valid Python"
        return step

    def accept(self, steps: Sequence[Applied], fixed: Sequence[Fixed], findings: Sequence[Finding]) -> None:
        self.fixed += fixed
        self.given_up = {(code, _forward(steps, offset)) for code, offset in self.given_up}
        self.steps += steps
        self.source, self.findings = steps[-1].after, findings

    def objection(
        self, batch: Sequence[Finding], steps: Sequence[Applied], findings: Sequence[Finding]
    ) -> tuple[str, list[Finding]]:
        """What lint has against the result, if anything, and which findings came."""
        after = steps[-1].after
        places = {_key(after, found) for found in findings}
        moved = {(code, _forward(steps, offset)) for code, offset in (_key(self.source, f) for f in self.findings)}
        for finding in batch:
            code, offset = _key(self.source, finding)
            if (code, _forward(steps, offset)) in places:
                return "the fault is still there", []
        allowed = Counter(finding.code for finding in self.findings)
        fixed = Counter(finding.code for finding in batch)
        allowed.subtract(fixed)
        for code, number in Counter(found.code for found in findings).items():
            if number > allowed[code]:
                new = [found for found in findings if found.code == code and _key(after, found) not in moved]
                return ("the fault is still there" if code in fixed else f"it brings {code}"), new
        return "", []

    def original_place(self, source: SourceFile, finding: Finding, steps: Sequence[Applied]) -> tuple[int, int | None]:
        """The row and cell that a finding has, or would have, in the file as it was; ``steps`` are not accepted yet."""
        offset = _key(source, finding)[1]
        taken = [*self.steps, *steps]
        for step in reversed(taken):
            offset = step.backward(offset)
        return row_at(taken[0].before if taken else source, offset)


def _key(source: SourceFile, finding: Finding) -> tuple[str, int]:
    return finding.code, source.offset(start_in_text(source, finding))


def _forward(steps: Sequence[Applied], offset: int) -> int:
    for step in steps:
        offset = step.forward(offset)
    return offset


def _compiles(source: SourceFile) -> bool:
    """Whether Python takes the file: beyond the grammar, names declared twice, ``return`` outside functions, ..."""
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT if source.is_notebook else 0
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(source.tree, source.filename or "<source>", "exec", flags=flags, dont_inherit=True)
    except CANNOT_PARSE:
        return False
    return True
