"""Which rules a configuration and a command line turn on together."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchlint.config import ConfigError, RuleSelection, Settings, load_settings
from torchlint.finding import RuleInfo, Severity
from torchlint.selection import check_selectors, fixable_codes, ignored_codes, selected_codes

RULES = [
    RuleInfo(code, name, severity, None, "", "")
    for code, name, severity in [
        ("TL001", "syntax-error", Severity.ERROR),
        ("TL101", "missing-super-init", Severity.ERROR),
        ("TL103", "unregistered-module-list", Severity.ERROR),
        ("TL110", "shared-layer", Severity.INFO),
        ("TL401", "missing-zero-grad", Severity.WARNING),
    ]
]


def select(*sources: RuleSelection) -> list[str]:
    """The selected codes without TL001, which has a test of its own."""
    return sorted(selected_codes(Settings(root="/", selection=sources), RULES) - {"TL001"})


def test_info_rules_are_off_until_they_are_selected() -> None:
    assert select() == ["TL101", "TL103", "TL401"]
    assert "TL110" in select(RuleSelection(extend_select=("TL110",)))
    assert select(RuleSelection(select=("TL11",))) == ["TL110"]
    assert len(select(RuleSelection(select=("ALL",)))) == len(RULES) - 1


def test_rules_are_selected_by_code_prefix_and_name() -> None:
    assert select(RuleSelection(select=("TL1",))) == ["TL101", "TL103", "TL110"]
    assert select(RuleSelection(select=("missing-zero-grad", "TL101"))) == ["TL101", "TL401"]
    assert select(RuleSelection(select=("TL",), ignore=("shared-layer", "TL0", "TL4"))) == ["TL101", "TL103"]


def test_the_more_specific_selector_wins_whatever_the_order() -> None:
    assert select(RuleSelection(select=("TL101",), ignore=("TL1",))) == ["TL101"]
    assert select(RuleSelection(select=("ALL",), ignore=("TL1", "TL4"), extend_select=("TL103",))) == ["TL103"]
    assert select(RuleSelection(select=("TL101",), ignore=("TL101",))) == []


def test_a_file_that_cannot_be_parsed_is_told_whatever_is_selected() -> None:
    for said, expected in [
        (RuleSelection(select=("TL101",)), {"TL001", "TL101"}),
        (RuleSelection(select=("TL101",), ignore=("TL0",)), {"TL101"}),
    ]:
        assert selected_codes(Settings(root="/", selection=(said,)), RULES) == expected


def test_the_command_line_comes_on_top_of_the_file() -> None:
    file = RuleSelection(select=("TL101", "TL401"), ignore=("TL103",))
    assert select(file, RuleSelection(ignore=("TL1",))) == ["TL401"]
    assert select(file, RuleSelection(extend_select=("TL103",))) == ["TL101", "TL103", "TL401"]
    assert select(file, RuleSelection(select=("TL1",))) == ["TL101", "TL103", "TL110"]


def test_what_a_file_only_ignores_stays_ignored_under_a_select_on_the_command_line() -> None:
    assert select(RuleSelection(ignore=("TL103",)), RuleSelection(select=("TL1",))) == ["TL101", "TL110"]


@pytest.mark.parametrize(
    ("selector", "hint"),
    [
        ("TL999", "torchlint rule --all"),
        ("missing-super", 'did you mean "missing-super-init"'),
        ("tl101", 'did you mean "TL101"'),
        ("E501", "torchlint rule --all"),
        ("T", "torchlint rule --all"),
    ],
)
def test_a_selector_that_fits_no_rule_is_an_error_with_a_hint(selector: str, hint: str) -> None:
    with pytest.raises(ConfigError) as error:
        select(RuleSelection(select=(selector,)))
    assert f'"{selector}"' in str(error.value)
    assert hint in str(error.value)


def test_a_wrong_selector_in_a_file_is_reported_with_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("torchlint.toml").write_text('select = [\n  "TL1",\n  "TL9",\n]\n')
    with pytest.raises(ConfigError, match=r'^torchlint.toml:3: no rule is called "TL9"'):
        selected_codes(load_settings(), RULES)
    Path("torchlint.toml").write_text('[per-file-ignores]\n"a.py" = ["TL1"]\n"b.py" = ["TL104"]\n')
    with pytest.raises(ConfigError, match=r'^torchlint.toml:3: no rule is called "TL104"'):
        check_selectors(load_settings(), RULES)


def test_codes_of_probe_checks_may_stand_in_the_same_lists() -> None:
    assert select(RuleSelection(select=("TL101", "TP1"))) == ["TL101"]


def test_fixable_and_unfixable_narrow_what_fix_may_touch() -> None:
    settings = Settings(root="/", fixable=("TL1",), unfixable=("TL103",))
    assert sorted(fixable_codes(settings, RULES)) == ["TL101", "TL110"]


def test_per_file_ignores_follow_names_paths_and_negation() -> None:
    ignores = (("tests/*", ("TL4",)), ("conftest.py", ("TL1",)), ("!src/**", ("TL001",)))
    settings = Settings(root="/p", per_file_ignores=ignores)
    assert sorted(ignored_codes(settings, "/p/tests/deep/a.py", RULES)) == ["TL001", "TL401"]
    assert sorted(ignored_codes(settings, "/p/src/conftest.py", RULES)) == ["TL101", "TL103", "TL110"]
    assert sorted(ignored_codes(settings, "/p/src/a.py", RULES)) == []
