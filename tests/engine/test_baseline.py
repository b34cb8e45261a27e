"""Baselines: what is known stays known when code moves, and nothing else does."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from torchlint.config import ConfigError, Settings
from torchlint.engine.baseline import new_findings, write_baseline
from torchlint.engine.many import RunOptions, run
from torchlint.finding import Finding

Write = Callable[..., None]
NET = "from torch import nn\n\n\nclass Net(nn.Module):\n    pass\n"


@pytest.fixture
def find(settings: Settings) -> Callable[..., list[Finding]]:
    return lambda *paths: run(paths or (".",), lambda path: settings, RunOptions(cache=False)).findings


def test_known_findings_are_not_new_even_if_they_move(find: Callable[..., list[Finding]], write: Write) -> None:
    write({"src/net.py": NET, "src/other.py": NET})
    assert write_baseline("known.json", find()) == 2
    assert new_findings("known.json", find()) == []
    write({"src/net.py": "# moved\n\n" + NET})
    assert new_findings("known.json", find()) == []


def test_more_of_the_same_and_others_are_new(find: Callable[..., list[Finding]], write: Write) -> None:
    write({"net.py": NET})
    write_baseline("known.json", find())
    write({"net.py": NET + "\n\nclass Net(nn.Module):\n    pass\n\n\nclass Two(nn.Module):\n    pass\n"})
    assert [f.location.row for f in new_findings("known.json", find())] == [8, 12]
    write({"net.py": "import torch\n", "copy.py": NET})
    assert [f.filename for f in new_findings("known.json", find())] == ["copy.py"]


def test_it_is_read_the_same_from_another_folder(
    find: Callable[..., list[Finding]], write: Write, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write({"src/net.py": NET})
    write_baseline("known.json", find())
    monkeypatch.chdir(project / "src")
    assert new_findings("../known.json", find("net.py")) == []
    assert new_findings(str(project / "known.json"), find(str(project / "src"))) == []


def test_it_is_readable_and_names_lines_by_their_text(find: Callable[..., list[Finding]], write: Write) -> None:
    cell = {"cell_type": "code", "source": NET, "metadata": {}, "outputs": []}
    notebook = {"cells": [cell, cell], "metadata": {}, "nbformat": 4}
    write({"src/net.py": NET, "n.ipynb": json.dumps(notebook)})
    write_baseline("known.json", find())
    entry = {"code": "ZZ101", "line": "class Net(nn.Module):", "count": 1}
    assert json.loads(Path("known.json").read_text()) == {
        "version": 1,
        "findings": {"n.ipynb": [{**entry, "count": 2}], "src/net.py": [entry]},
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "known.json: No such file"),
        ("{\n!", r"known.json:2: no valid JSON"),
        ("[]", "no baseline"),
        ('{"version": 1}', "no baseline"),
        ('{"version": 2, "findings": {}}', "version 2"),
        ('{"version": 1, "findings": {"a.py": [{"code": "TL101"}]}}', "no baseline"),
        ("[" * 100_000, "no valid JSON"),
    ],
)
def test_a_file_that_is_no_baseline_is_a_mistake(project: Path, text: str | None, message: str) -> None:
    if text is not None:
        (project / "known.json").write_text(text)
    with pytest.raises(ConfigError, match=message):
        new_findings("known.json", [])


@pytest.mark.usefixtures("project")
def test_a_baseline_that_cannot_be_written_is_a_mistake() -> None:
    with pytest.raises(ConfigError, match=r"no/such/known\.json: No such file"):
        write_baseline("no/such/known.json", [])
