"""What the fixes make of the programs in fixtures/, to the letter, and that torch is content with it.

``net.py.fixed`` beside ``net.py`` is what ``--fix --unsafe-fixes`` of the folder's rule makes of it; a program of
which nothing is fixed has none. With TORCHLINT_UPDATE_FIXES=1 in the environment these files are written instead of
compared: read the diff.

A fixed program must run to its end on torch, unless the program says in its first comments what else is right:

    # fixed: raises RuntimeError: fragment               the fix repairs one fault of several
    # fixed: true len(list(net.parameters())) == 2       it runs, and then this is true
    # fixed: no <reason>                                 it can't be run
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from running import Server

from torchlint.config import RuleSelection, Settings
from torchlint.engine.one import Linter
from torchlint.engine.registry import rules
from torchlint.finding import Applicability
from torchlint.fixing.files import encoded
from torchlint.fixing.rounds import FixResult, fix_source
from torchlint.source.file import UnreadableSource, source_from_bytes

FIXTURES = Path(__file__).parent.parent.parent / "fixtures"
PROGRAMS = sorted(path.relative_to(FIXTURES) for path in FIXTURES.glob("TL*/**/*.py"))
FIXED = sorted(path.relative_to(FIXTURES) for path in FIXTURES.glob("TL*/**/*.py.fixed"))
UPDATE = bool(os.environ.get("TORCHLINT_UPDATE_FIXES"))


@cache
def linter(folder: str) -> Linter:
    """All rules, so that a fix of the folder's rule that breaks another one is seen."""
    root = str(FIXTURES / folder)
    return Linter(Settings(root=root, src=(root,), selection=(RuleSelection(select=("ALL",)),)))


def fix(program: Path, data: bytes, *, all_rules: bool = False) -> FixResult | None:
    """The program with the fixes of its folder's rule, or of all rules; None when it is no text."""
    rule = program.parts[0][:5]
    try:
        source = source_from_bytes(data, str(FIXTURES / program), str(program))
    except UnreadableSource:
        return None
    return fix_source(source, linter(program.parts[0]).lint, unsafe=True, wanted=lambda code: all_rules or code == rule)


def expected_file(program: Path) -> Path:
    return FIXTURES / program.with_name(f"{program.name}.fixed")


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_a_program_is_fixed_to_the_letter(program: Path) -> None:
    data = (FIXTURES / program).read_bytes()
    result = fix(program, data)
    fixed = encoded(result, data) if result is not None and result.changed else None
    expected = expected_file(program)
    assert result is None or [(failed.row, failed.reason) for failed in result.failed] == []
    if UPDATE:
        expected.unlink(missing_ok=True)
        if fixed is not None:
            expected.write_bytes(fixed)
    assert fixed == (expected.read_bytes() if expected.exists() else None)
    if fixed is not None:
        again = fix(program, fixed)
        assert again is not None
        assert not again.changed


@pytest.mark.parametrize("fixed", FIXED, ids=str)
def test_a_fixed_program_belongs_to_one_that_is_there(fixed: Path) -> None:
    assert fixed.with_suffix("") in PROGRAMS


def test_every_rule_that_promises_fixes_shows_them() -> None:
    promised = {rule.code for rule in rules() if rule.fix is not None}
    assert sorted(promised - {program.parts[0][:5] for program in FIXED}) == []


def test_every_fix_is_what_its_rule_promises() -> None:
    promised = {rule.code: rule.fix for rule in rules()}
    broken = []
    for program in FIXED:
        rule = program.parts[0][:5]
        result = fix(program.with_suffix(""), (FIXTURES / program.with_suffix("")).read_bytes())
        for entry in result.fixed if result else ():
            made = entry.finding.fix
            if made and made.applicability is Applicability.SAFE and promised[rule] is not Applicability.SAFE:
                broken.append(f"{program}:{entry.row}: a safe fix of a rule that promises {promised[rule]}")
    assert broken == []


def directives(program: Path, name: str) -> list[tuple[str, str]]:
    """The ``# run:`` or ``# fixed:`` lines among the comments that begin a program: kind and the rest."""
    found: list[tuple[str, str]] = []
    for line in (FIXTURES / program).read_bytes().decode("utf-8-sig", "replace").splitlines():
        if not line.startswith("#"):
            break
        if line.startswith(f"# {name}:"):
            kind, _, rest = line.removeprefix(f"# {name}:").strip().partition(" ")
            found.append((kind, rest.strip()))
    return found


def runnable(fixed: Path) -> bool:
    """Whether a CPU can show what a fixed program does."""
    program = fixed.with_suffix("")
    said = dict([*directives(program, "run"), *directives(program, "fixed")])
    return "no" not in said


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.close()


@pytest.mark.torch
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed: no program was run")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system can't fork: no program was run")
@pytest.mark.parametrize("fixed", [fixed for fixed in FIXED if runnable(fixed)], ids=str)
def test_a_fixed_program_runs_on_torch(fixed: Path, server: Server) -> None:
    wanted = directives(fixed.with_suffix(""), "fixed")
    truths = [rest for kind, rest in wanted if kind == "true"]
    happened = server.run(FIXTURES / fixed, truths)
    raises = next((rest for kind, rest in wanted if kind == "raises"), "")
    name, _, fragment = raises.partition(": ")
    if raises:
        assert name in happened["raised"], happened["trace"]
        assert fragment in happened["message"]
    else:
        assert not happened["raised"], happened["trace"]
    assert dict(zip(truths, happened["truths"], strict=True)) == dict.fromkeys(truths, "true")
