"""The hooks under the real pre-commit, on a real git repository."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pre_commit")

ROOT = Path(__file__).parent.parent.parent
PROGRAM = "import torch\n\nx = torch.zeros(3)  # noqa: TL401\n"


def git(*arguments: str) -> None:
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *identity, *arguments], check=True, capture_output=True, timeout=60)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a finding in a module, in a notebook, and in a folder that its configuration excludes."""
    folder = tmp_path / "project"
    (folder / "old").mkdir(parents=True)
    monkeypatch.chdir(folder)
    cell = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": PROGRAM}
    book = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 4}
    Path("net.py").write_text(PROGRAM)
    Path("old/net.py").write_text(PROGRAM)
    Path("book.ipynb").write_text(json.dumps(book, indent=1) + "\n")
    Path("notes.txt").write_text("torch  # noqa: TL401\n")
    Path("pyproject.toml").write_text('[tool.torchlint]\nexclude = ["old"]\n')
    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "-m", "start")
    return folder


def test_try_repo_reports_and_fixes_modules_and_notebooks(repository: Path, tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "pre_commit",
        "try-repo",
        str(ROOT),
        "--all-files",
        "--verbose",
        "--color",
        "never",
    ]
    # pre-commit looks for git in its environment's variables; those of a surrounding hook would mislead it.
    env = {key: value for key, value in os.environ.items() if not key.startswith(("GIT_", "PRE_COMMIT"))}
    env["PRE_COMMIT_HOME"] = str(tmp_path / "home")
    run = subprocess.run(command, env=env, capture_output=True, text=True, timeout=600)
    if re.search(r"No matching distribution|Failed to establish|Temporary failure in name", run.stdout):
        pytest.skip("pre-commit can't install the hook: no package index can be reached")
    report, _, fixing = run.stdout.partition("torchlint (fix)")
    assert run.returncode == 1, run.stdout + run.stderr
    assert re.search(r"hook id: torchlint\b.*exit code: 1", report, re.DOTALL)
    assert re.findall(r"--> (\S.*)", report) == ["book.ipynb:cell 1:3:21", "net.py:3:21"]
    assert "files were modified by this hook" in fixing
    assert "2 fixed" in fixing
    fixed = PROGRAM.replace("  # noqa: TL401", "")
    assert Path("net.py").read_text() == fixed
    assert "".join(json.loads(Path("book.ipynb").read_text())["cells"][0]["source"]) == fixed
    assert Path("old/net.py").read_text() == PROGRAM
