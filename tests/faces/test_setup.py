"""The scripts that set a machine up, on machines where parts of Python are missing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parent.parent.parent / "scripts"

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the scripts are for a POSIX shell")


def stand_in(file: Path, script: str) -> Path:
    """An interpreter of its own making."""
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return file


def sh(command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A command in a shell that has the scripts' functions."""
    script = f". '{SCRIPTS}/python.sh'\n{command}"
    return subprocess.run(
        ["sh", "-c", script], env={**os.environ, **environment}, capture_output=True, text=True, timeout=300
    )


@pytest.fixture
def bare_path(tmp_path: Path) -> str:
    """A search path with the shell's tools and no Python on it."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in ("sh", "rm"):
        (tools / tool).symlink_to(f"/bin/{tool}")
    return str(tools)


def test_an_old_python_is_passed_by(tmp_path: Path, bare_path: str) -> None:
    old = stand_in(tmp_path / "bin/python3", "exit 1  # as 3.9 answers the question whether it is 3.10")
    assert sh("find_python", PATH=bare_path).returncode == 1
    new = stand_in(tmp_path / "bin/python3.12", f'exec "{sys.executable}" "$@"')
    assert sh("find_python", PATH=bare_path).stdout.strip() == str(new)
    assert sh("find_python", PATH=bare_path, PYTHON=sys.executable).stdout.strip() == sys.executable
    assert old.exists()


def test_a_python_without_the_means_says_what_to_install(tmp_path: Path, bare_path: str) -> None:
    python = stand_in(tmp_path / "python", "exit 1")
    run = sh(f"make_venv '{tmp_path}/venv' '{python}'", PATH=bare_path)
    assert run.returncode == 1
    assert "apt install python3-venv" in run.stderr
    assert not (tmp_path / "venv").exists()


def test_a_python_without_ensurepip_borrows_the_pip_that_is_there(tmp_path: Path) -> None:
    # Debian's python3 without python3-venv: `-m venv` fails at ensurepip, after it has made half a folder.
    python = stand_in(
        tmp_path / "python",
        f'case "$*" in "-m venv --without-pip "*) ;; "-m venv "*) mkdir -p "$3"; exit 1;; esac\n'
        f'exec "{sys.executable}" "$@"',
    )
    run = sh(f"make_venv '{tmp_path}/venv' '{python}'")
    if run.returncode != 0 and sh(f"'{sys.executable}' -m pip download --no-deps -d '{tmp_path}' pip").returncode != 0:
        pytest.skip("no package index can be reached to fetch pip from")
    assert run.returncode == 0, run.stderr
    assert subprocess.run([tmp_path / "venv/bin/python", "-m", "pip", "--version"], check=False).returncode == 0


def test_an_environment_that_is_there_is_kept(tmp_path: Path) -> None:
    assert sh(f"make_venv '{tmp_path}/venv' '{sys.executable}'").returncode == 0
    (tmp_path / "venv/kept").touch()
    assert sh(f"make_venv '{tmp_path}/venv' /no/such/python").returncode == 0
    assert (tmp_path / "venv/kept").exists()
