"""``--fix``, ``--diff`` and ``--add-noqa``: changing files on behalf of a check."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from torchlint.finding import Applicability, Finding

if TYPE_CHECKING:
    from torchlint.config import Settings
    from torchlint.engine.many import RunResult
    from torchlint.fixing.files import FileFix
    from torchlint.fixing.rounds import FixResult, Lint
    from torchlint.source.discovery import Found
    from torchlint.source.file import SourceFile

# What these say of a file can't be mended by a comment in it.
_NOT_SUPPRESSIBLE = frozenset({"TL001", "TL003"})


def fix_found(result: RunResult, *, unsafe: bool, write: bool) -> Iterator[FileFix]:
    """Fix the files in which a run found something fixable; without ``write`` only say what that would change."""
    from torchlint.fixing.files import fix_files

    by_settings: defaultdict[Settings, list[Found]] = defaultdict(list)
    fixable = {finding.filename for finding in result.findings if _may_apply(finding, unsafe)}
    for found in result.files:
        if found.filename in fixable:
            by_settings[found.settings].append(found)
    for settings, files in by_settings.items():
        names = [(found.path, found.filename) for found in files]
        yield from fix_files(names, _lint(settings), unsafe=unsafe, write=write, wanted=wanted(settings))


def fix_text(source: SourceFile, settings: Settings, *, unsafe: bool) -> FixResult:
    """Fix what came from standard input."""
    from torchlint.fixing.rounds import fix_source

    return fix_source(source, _lint(settings), unsafe, wanted=wanted(settings))


def _lint(settings: Settings) -> Lint:
    from torchlint.engine.one import Linter

    linter = Linter(settings)

    def lint(source: SourceFile) -> list[Finding]:
        findings = linter.lint(source)
        linter.done()
        return findings

    return lint


def wanted(settings: Settings) -> Callable[[str], bool]:
    """Which rules the configuration lets ``--fix`` repair."""
    from torchlint.engine.registry import checks_for
    from torchlint.selection import fixable_codes

    return fixable_codes(settings, checks_for(settings)).__contains__


def _may_apply(finding: Finding, unsafe: bool) -> bool:
    return finding.fix is not None and (unsafe or finding.fix.applicability is Applicability.SAFE)


def add_noqa(result: RunResult) -> tuple[int, list[str]]:
    """Suppress every finding by a comment. Returns how many, and what could not be written."""
    by_file: defaultdict[str, list[Finding]] = defaultdict(list)
    for finding in result.findings:
        if finding.code not in _NOT_SUPPRESSIBLE:
            by_file[finding.filename].append(finding)
    added, errors = 0, []
    for found in result.files:
        findings = by_file.get(found.filename)
        if findings:
            error = _add_to_file(found, findings)
            if error:
                errors.append(f"{found.filename}: {error}")
            else:
                added += len(findings)
    return added, errors


def _add_to_file(found: Found, findings: Sequence[Finding]) -> str:
    from torchlint.fixing.applying import apply_edits
    from torchlint.fixing.files import encoded
    from torchlint.fixing.rounds import FixResult
    from torchlint.fixing.writing import replace_file
    from torchlint.source.file import read_bytes, source_from_bytes
    from torchlint.source.suppressions import noqa_edits

    try:
        data = read_bytes(found.path)
        source = source_from_bytes(data, found.path, found.filename)
        step = apply_edits(source, noqa_edits(source, findings))
        replace_file(found.path, data, encoded(FixResult(source, step.after, (), (), (), ()), data))
    except (OSError, ValueError) as error:
        return str(error)
    return ""
