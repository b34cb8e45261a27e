"""The programs in fixtures/ say in trailing comments what must be reported; nothing less and nothing more may be.

A folder is named after its rule, ``TL101-missing-super-init``. The line of each finding ends in ``# TL101``, or in
``# TL101 TL103`` for several. A folder is linted as one project with every rule on. Findings of rules of severity info
count in the folder of their own rule only.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from torchlint.config import RuleSelection, Settings
from torchlint.engine.one import Linter
from torchlint.finding import Severity
from torchlint.source.file import read_source

FIXTURES = Path(__file__).parent.parent / "fixtures"
PROGRAMS = sorted(path.relative_to(FIXTURES) for path in FIXTURES.glob("TL*/**/*.py"))

_EXPECTED = re.compile(r"#\s*(TL\d{3}(?:[ ,]+TL\d{3})*)\s*$")

Report = set[tuple[int, str]]


def expected(program: Path) -> Report:
    """The announced rows and codes. Lines are split as Python does, not at form feeds."""
    lines = (FIXTURES / program).read_bytes().decode("utf-8", "replace").replace("\r\n", "\n").split("\n")
    return {
        (row, code)
        for row, line in enumerate(lines, start=1)
        if (comment := _EXPECTED.search(line))
        for code in re.findall(r"TL\d{3}", comment[1])
    }


@cache
def linter(folder: str) -> Linter:
    """One for all programs of a rule, as a run over the folder would have."""
    root = str(FIXTURES / folder)
    return Linter(Settings(root=root, src=(root,), selection=(RuleSelection(select=("ALL",)),)))


def reported(program: Path) -> Report:
    """What torchlint reports, without info findings that belong elsewhere."""
    rule = program.parts[0][:5]
    findings = linter(program.parts[0]).lint(read_source(str(FIXTURES / program), str(program)))
    return {
        (finding.location.row, finding.code)
        for finding in findings
        if finding.severity is not Severity.INFO or finding.code == rule
    }


def differences(program: Path) -> Iterator[str]:
    """What is wrong with the report, line by line."""
    announced, found = expected(program), reported(program)
    yield from (f"fixtures/{program}:{row}: {code} was not reported" for row, code in sorted(announced - found))
    yield from (f"fixtures/{program}:{row}: {code} was not expected" for row, code in sorted(found - announced))


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_a_program_is_reported_exactly_as_it_announces(program: Path) -> None:
    wrong = list(differences(program))
    assert not wrong, "\n" + "\n".join(wrong)


def test_every_folder_has_a_program_with_the_fault_and_one_without() -> None:
    folders: defaultdict[str, set[bool]] = defaultdict(set)
    for program in PROGRAMS:
        folders[program.parts[0]].add(program.parts[0][:5] in {code for _, code in expected(program)})
    assert folders
    assert [folder for folder, kinds in folders.items() if kinds != {True, False}] == []
