"""Every rule is documented where it stands: its page, its file's name, its folder of fixtures."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from torchlint.check import Check
from torchlint.engine.registry import all_checks

ROOT = Path(__file__).parent.parent
CHECKS = all_checks()

# No program can be expected to make a check fail.
UNSHOWABLE = {"TL003"}


def section(page: str, headings: str) -> str:
    """The indented code below a heading, dedented."""
    parts = re.split(rf"^#+ (?:{headings})$", page, maxsplit=1, flags=re.MULTILINE)
    if len(parts) == 1:
        return ""
    below = re.split(r"^#+ ", parts[1], flags=re.MULTILINE)[0]
    return inspect.cleandoc("\n".join(line for line in below.splitlines() if line.startswith("    ")))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.code)
def test_a_rule_has_a_page_with_bad_and_good_code(check: type[Check]) -> None:
    info = check.info()
    assert re.fullmatch(r"[`A-Z].*\.", info.summary, re.DOTALL), "the page begins with a sentence"
    assert len(info.summary) <= 240, "the summary is one short sentence"
    if check.code in UNSHOWABLE:
        return
    bad, good = section(info.page, "Bad|Example"), section(info.page, "Good|Use instead")
    assert bad, "no indented code under ## Bad"
    assert good, "no indented code under ## Good"
    assert bad != good


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.code)
def test_a_rule_is_found_where_its_name_says(check: type[Check]) -> None:
    file = Path(inspect.getfile(check))
    assert re.fullmatch(r"TL\d{3}", check.code)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", check.name)
    assert file.stem == check.name.replace("-", "_")


@pytest.mark.parametrize("check", [check for check in CHECKS if check.code not in UNSHOWABLE], ids=lambda c: c.code)
def test_a_rule_has_fixtures(check: type[Check]) -> None:
    folder = ROOT / "fixtures" / f"{check.code}-{check.name}"
    assert list(folder.rglob("*.py")), f"no programs in {folder.relative_to(ROOT)}"


def test_every_folder_of_fixtures_belongs_to_a_rule() -> None:
    names = {f"{check.code}-{check.name}" for check in CHECKS}
    assert [path.name for path in (ROOT / "fixtures").glob("TL*") if path.name not in names] == []
