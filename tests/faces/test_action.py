"""The GitHub action: its steps as a runner would take them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml")

ACTION: dict[str, Any] = yaml.safe_load((Path(__file__).parent.parent.parent / "action.yml").read_text())


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A runner on which the action's installing steps are done."""
    monkeypatch.chdir(tmp_path)
    program = tmp_path / "temp/torchlint/bin/torchlint"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m torchlint "$@"\n')
    program.chmod(0o755)
    Path("src").mkdir()
    Path("src/vain.py").write_text("import torch\nx = 1  # noqa: TL401\n")
    return tmp_path


def last_step(runner: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """Run torchlint as the action does, with the defaults of action.yml for what is not given."""
    step = ACTION["runs"]["steps"][-1]
    values = {name: inputs.get(name.replace("-", "_"), spec["default"]) for name, spec in ACTION["inputs"].items()}
    env = {**os.environ, "RUNNER_TEMP": str(runner / "temp")}
    for variable, expression in step["env"].items():
        env[variable] = values[expression.removeprefix("${{ inputs.").removesuffix(" }}")]
    command = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)


def test_findings_become_annotations_and_fail_the_job(runner: Path) -> None:
    run = last_step(runner, paths="src")
    assert run.returncode == 1
    assert run.stdout.startswith("::warning title=torchlint (TL002),file=src/vain.py,line=2,col=8,")


def test_inputs_are_passed_on(runner: Path) -> None:
    Path("clean.py").write_text("import torch\n")
    run = last_step(runner, paths="src clean.py", args="--exit-zero --no-cache", output_format="concise")
    assert run.returncode == 0
    assert "2 files checked" in run.stdout


def test_inputs_are_never_run(runner: Path) -> None:
    run = last_step(runner, paths="$(touch owned) `touch owned`; touch owned", args="--exit-zero")
    assert run.returncode == 2
    assert not list(runner.rglob("owned"))


def test_no_expression_stands_in_a_script() -> None:
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step.get("run", "")
