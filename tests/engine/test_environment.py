"""Bases in installed packages are found in the project's environment, read and never imported."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from torchlint.api import lint_paths
from torchlint.config import Configuration
from torchlint.engine.environment import installed_packages
from torchlint.engine.many import RunOptions, run

PACKAGE = {
    "layers/__init__.py": "from .base import Layer\nraise RuntimeError('imported')\n",
    "layers/base.py": "from torch import nn\nfrom .root import Root\nclass Layer(Root):\n    pass\n",
    "layers/root.py": "import torch.nn as nn\nclass Root(nn.Module):\n    def heavy(self):\n        return self.x\n",
}
PROGRAM = """\
import torch
from torch import nn
from layers import Layer

class Net(Layer):
    def __init__(self):
        self.fc = nn.Linear(2, 2)

    def forward(self, x):
        return self.fc(x)
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    site = tmp_path / ".venv" / "lib" / "python3.12" / "site-packages"
    for name, text in PACKAGE.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text)
    (tmp_path / ".venv" / "pyvenv.cfg").write_text("home = /usr/bin\n")
    (tmp_path / "pyproject.toml").write_text("[tool.torchlint]\nselect = ['TL101']\n")
    (tmp_path / "net.py").write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def codes(project: Path) -> list[str]:
    return [finding.code for finding in lint_paths([project / "net.py"])]


def test_a_base_in_the_environment_is_known(project: Path) -> None:
    assert codes(project) == ["TL101"]
    assert "layers" not in sys.modules


def test_without_the_package_nothing_is_said(project: Path) -> None:
    (project / ".venv" / "pyvenv.cfg").unlink()
    assert codes(project) == []


def test_the_activated_environment_comes_first(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = project / "other"
    (other / "lib" / "python3.13" / "site-packages").mkdir(parents=True)
    (other / "pyvenv.cfg").write_text("")
    monkeypatch.setenv("VIRTUAL_ENV", str(other))
    assert installed_packages(str(project)) == [str(other / "lib" / "python3.13" / "site-packages")]
    assert codes(project) == []


def test_without_one_the_running_interpreter_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    assert set(installed_packages(str(tmp_path))) <= set(sys.path)


def test_a_changed_package_changes_a_cached_result(project: Path) -> None:
    configuration = Configuration()

    def lint() -> list[str]:
        result = run([str(project / "net.py")], configuration.settings_for, RunOptions(jobs=1))
        return [finding.code for finding in result.findings]

    assert lint() == lint() == ["TL101"]
    assert any((project / ".torchlint_cache").rglob("*"))
    root = project / ".venv/lib/python3.12/site-packages/layers/root.py"
    root.write_text("class Root:\n    pass\n")
    assert lint() == []
