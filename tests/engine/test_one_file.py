"""One file through all checks: what is found, what is silenced, and what can go wrong."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from torchlint.config import RuleSelection, Settings
from torchlint.engine.one import Linter, lint_bytes, lint_text
from torchlint.finding import Applicability, Finding, Position

NET = "from torch import nn\n\n\nclass Net(nn.Module):\n    pass\n"


def lines(findings: list[Finding]) -> list[str]:
    return [f"{f.location.row}:{f.location.column} {f.code} {f.message}" for f in findings]


def test_a_finding_says_what_where_and_what_comes_of_it(settings: Settings) -> None:
    (finding,) = lint_text(NET, settings, "net.py")
    assert lines([finding]) == ["4:1 ZZ101 Net is a module"]
    assert (finding.filename, finding.end_location, finding.noqa_row) == ("net.py", Position(5, 9), 4)
    assert (finding.name, finding.help, finding.failure) == ("is-module", "That is all.", "T-D1")


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ("import torch\nx = (\n", (2, 5), "'(' was never closed"),
        ("import torch\n  x = 1\n", (2, 1), "unexpected indent"),
        ("import torch\nif x:\n\ty\n        z\n", (4, None), "inconsistent use of tabs"),
        ("import torch\nx = '\0'\n", (2, 6), "null byte"),
        ("torch\nx = " + "(" * 5000 + ")" * 5000, (2, 204), "too many nested parentheses"),
        ("torch\nx = " + "-" * 50_000 + "1", (1, 1), "nested too deeply"),
        pytest.param(
            *("torch\nx = " + "1+" * 50_000 + "1", (1, 1), "nested too deeply"),
            marks=pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 makes a tree of any depth"),
        ),
        ("torch\nx = '\ud800'\n", (2, 6), "lone surrogate"),
        ("torch\nгод = 2 0\n", (2, 9), "invalid syntax"),
    ],
)
def test_a_file_that_cannot_be_parsed_says_so_with_the_place(
    settings: Settings, text: str, place: tuple[int, int | None], reason: str
) -> None:
    (finding,) = lint_text(text, settings, "a.py")
    row, column = place
    assert finding.code == "TL001"
    assert finding.location.row == row
    assert reason in finding.message
    assert finding.message.endswith(f"(line {row}, column {finding.location.column})")
    # Versions of Python differ by a little, and more than that about tabs.
    assert column is None or abs(finding.location.column - column) <= 2


def test_bytes_that_are_no_text_are_a_finding_on_their_line(settings: Settings) -> None:
    (finding,) = lint_bytes(Linter(settings), b"import torch\ns = '\xe9'\n", "/p/a.py", "a.py")
    assert (finding.code, finding.location) == ("TL001", Position(2, 1))
    assert "0xe9" in finding.message


def test_a_check_that_raises_is_told_and_the_others_go_on(settings: Settings) -> None:
    findings = lint_text(NET + "\n\nclass Breaking:\n    pass\n", settings, "a.py")
    assert lines(findings) == [
        "1:1 TL003 The check ZZ900 failed on this file, which may hide findings: KeyError: 'no such thing'",
        "4:1 ZZ101 Net is a module",
    ]


def test_recursion_may_go_deeper_than_python_allows_by_default(settings: Settings) -> None:
    text = "import torch\n\n\nclass Deep:\n    pass\n"
    assert lines(lint_text(text, settings, "a.py")) == ["4:1 ZZ900 got to the bottom"]


def test_noqa_silences_and_a_noqa_in_vain_is_found(settings: Settings) -> None:
    text = NET.replace("(nn.Module):", "(nn.Module):  # noqa: ZZ101, ZZ900")
    (finding,) = lint_text(text, settings, "a.py")
    assert lines([finding]) == ["4:24 TL002 Nothing here is reported as ZZ900: this noqa only hides what comes later"]
    assert finding.fix is not None and finding.fix.applicability is Applicability.SAFE
    assert [edit.content for edit in finding.fix.edits] == ["ZZ101"]
    assert lines(lint_text(text, settings, "a.py", noqa=False)) == ["4:1 ZZ101 Net is a module"]


def test_a_noqa_is_not_judged_by_a_rule_that_is_off_or_has_failed(settings: Settings) -> None:
    text = "import torch\nx = 1  # noqa: ZZ900, ZZ101\n\n\nclass Breaking:\n    pass\n"
    only = replace(settings, selection=(RuleSelection(select=("TL002", "ZZ900")),))
    assert [f.code for f in lint_text(text, only, "a.py")] == ["TL003"]


def test_a_file_that_asks_for_it_is_left_alone_even_if_broken(settings: Settings) -> None:
    assert lint_text("# torchlint: skip-file\nimport torch\nx = (\n", settings, "a.py") == []


def test_per_file_ignores_turn_rules_off(settings: Settings, project: Path) -> None:
    ignoring = replace(settings, per_file_ignores=(("tests/*", ("ZZ101",)),))
    assert lint_text(NET, ignoring, "tests/a.py", str(project / "tests" / "a.py")) == []
    assert len(lint_text(NET, ignoring, "src/a.py", str(project / "src" / "a.py"))) == 1


def test_a_base_in_another_file_of_the_project_is_known(settings: Settings, write: Callable[..., None]) -> None:
    write({"base.py": NET})
    findings = lint_text("from base import Net\n\n\nclass Own(Net):\n    pass\n", settings, "own.py", "own.py")
    assert lines(findings) == ["4:1 ZZ101 Own is a module"]


def test_findings_in_a_notebook_are_told_by_cell(settings: Settings) -> None:
    cells = ["%pip install torch", "from torch import nn", "\nclass Net(nn.Module):  # noqa: ZZ900\n    pass", "x = ("]

    def notebook(count: int) -> str:
        made = [{"cell_type": "code", "source": cell, "metadata": {}, "outputs": []} for cell in cells[:count]]
        return json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})

    found, unused = lint_text(notebook(3), settings, "a.ipynb")
    assert (found.code, found.cell, found.location, found.noqa_row) == ("ZZ101", 3, Position(2, 1), 2)
    assert (unused.code, unused.cell, unused.location) == ("TL002", 3, Position(2, 24))
    (broken,) = lint_text(notebook(4), settings, "a.ipynb")
    assert (broken.code, broken.cell, broken.location.row) == ("TL001", 4, 1)


def test_nothing_of_the_linted_project_is_imported(settings: Settings, write: Callable[..., None]) -> None:
    planted = "import pathlib\npathlib.Path('executed').touch()\nfrom torch import nn\nBase = nn.Module\n"
    write({"planted/__init__.py": planted, "planted/sub.py": planted, "torch.py": planted, "sitecustomize.py": planted})
    text = planted + "from planted.sub import Base\nfrom planted import *\n\n\nclass A(Base):\n    pass\n"
    assert [f.code for f in lint_text(text, settings, "a.py", "a.py")] == ["ZZ101"]
    assert not Path("executed").exists()
