"""torchlint from Python."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import torchlint
from torchlint import ConfigError, Finding, Settings, lint_paths, lint_source

NET = """\
from torch import nn


class Net(nn.Module):
    def __init__(self):
        self.fc = nn.Linear(3, 3)
"""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_text_is_linted() -> None:
    (finding,) = lint_source(NET)
    assert (finding.code, finding.filename, finding.location.row) == ("TL101", "-", 5)
    assert finding.fix is not None
    assert finding.fix.edits


def test_a_text_with_a_name_has_its_project_around_it(project: Path) -> None:
    Path("sub").mkdir()
    Path("sub/base.py").write_text("import torch\nclass Base(torch.nn.Module): pass\n")
    derived = NET.replace("(nn.Module)", "(Base)").replace("from torch", "from base import Base\nfrom torch")
    assert [finding.code for finding in lint_source(derived, "sub/net.py")] == ["TL101"]
    assert lint_source(derived) == []
    Path("torchlint.toml").write_text('ignore = ["TL101"]\n')
    assert lint_source(derived, "sub/net.py") == []
    assert lint_source(NET, "net.py", Settings(root=str(project))) != []


def test_a_notebook_is_linted_by_its_json() -> None:
    cell = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": NET}
    text = json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 4})
    (finding,) = lint_source(text, "book.ipynb")
    assert (finding.cell, finding.location.row) == (1, 5)


def test_files_and_folders_are_linted_in_order(project: Path) -> None:
    for name in ("b.py", "a.py", "sub/c.py"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(NET)
    assert [finding.filename for finding in lint_paths(["sub", Path("b.py"), "a.py"])] == ["a.py", "b.py", "sub/c.py"]
    assert lint_paths(["."], jobs=2) == lint_paths(["."])
    assert not Path(".torchlint_cache").exists()
    with pytest.raises(OSError, match=r"nowhere.py: no such file"):
        lint_paths(["nowhere.py"])
    Path("sub/torchlint.toml").write_text("selct = []\n")
    with pytest.raises(ConfigError, match=r"sub/torchlint.toml:1: unknown key"):
        lint_paths(["."])


def test_findings_are_values() -> None:
    (finding,) = lint_source(NET)
    copy = pickle.loads(pickle.dumps(finding))
    assert copy == finding
    assert hash(copy) == hash(finding)
    assert sorted([copy, finding], key=lambda each: each.sort_key) == [finding, copy]
    with pytest.raises(AttributeError):
        finding.code = "TL102"  # type: ignore[misc]
    assert isinstance(finding, Finding)


def test_importing_torchlint_loads_nothing_until_it_is_used() -> None:
    script = (
        "import sys, torchlint; print([m for m in sys.modules if m.startswith('torchlint.')], 'torch' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout == "[] False\n"
    assert set(torchlint.__all__) <= set(dir(torchlint))
    with pytest.raises(AttributeError):
        torchlint.nonsense  # noqa: B018


def test_linting_imports_neither_torch_nor_what_is_heavy() -> None:
    Path("net.py").write_text(NET)
    script = (
        "import sys; from torchlint.cli import main; main(['--no-cache', '-q', 'net.py']);"
        "print(sorted({'torch', 'numpy', 'libcst', 'astroid', 'rich', 'asyncio', 'logging'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == "[]"
