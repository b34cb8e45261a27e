"""Rules are found by where they stand."""

from __future__ import annotations

from pathlib import Path

import pytest
import torchlint.checks

from torchlint.config import ConfigError
from torchlint.engine.registry import all_checks, rules


def test_every_rule_file_is_found_and_told_in_the_order_of_codes() -> None:
    checks = all_checks()
    codes = [check.code for check in checks]
    assert codes == sorted(codes)
    assert {"TL001", "TL002", "TL003"} <= set(codes)
    modules = {check.__module__ for check in checks}
    for file in Path(torchlint.checks.__path__[0]).glob("*/*.py"):
        if "(Check):" in file.read_text():
            assert f"torchlint.checks.{file.parent.name}.{file.stem}" in modules


def test_a_rule_card_has_the_page_and_its_first_paragraph() -> None:
    card = next(rule for rule in rules() if rule.code == "TL001")
    assert card.name == "syntax-error"
    assert card.page.startswith(card.summary)
    assert "\n\n" not in card.summary


def test_a_plugin_brings_rules_a_package_all_that_are_below_it(project: Path) -> None:
    package = project / "pack"
    (package / "family").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "family" / "__init__.py").write_text("")
    (package / "family" / "one.py").write_text(
        "from torchlint.check import Check, Severity\n\n\n"
        "class One(Check):\n    'A rule.'\n\n    code, name, severity = 'PK001', 'one', Severity.ERROR\n"
    )
    codes = {check.code for check in all_checks(["zz_rules", "pack"], str(project))}
    assert {"ZZ101", "ZZ900", "PK001", "TL001"} <= codes
    assert "PK001" not in {check.code for check in all_checks()}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("nowhere_to_be_found", None, "can't be imported: ModuleNotFoundError"),
        ("raising_rules", "raise RuntimeError('boom')\n", "can't be imported: RuntimeError: boom"),
        (
            "doubled_rules",
            "from torchlint.check import Check, Severity\n\n\nclass Mine(Check):\n"
            "    'A rule.'\n\n    code, name, severity = 'TL001', 'mine', Severity.ERROR\n",
            "two rules are called TL001",
        ),
    ],
)
def test_a_plugin_that_cannot_be_used_is_a_mistake_in_the_configuration(
    project: Path, name: str, text: str | None, message: str
) -> None:
    if text is not None:
        (project / f"{name}.py").write_text(text)
    with pytest.raises(ConfigError, match=message):
        all_checks([name], str(project))
