"""Repositories that mean harm: linting them runs nothing of theirs, reads and writes nothing outside, and ends."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

TORCHLINT = Path(sys.executable).with_name("torchlint")
FAULTY = (
    "from torch import nn\n\n\nclass Net(nn.Module):\n    def __init__(self):\n        self.layer = nn.Linear(1, 1)\n"
)


def torchlint(*arguments: str, cwd: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """A run by somebody who has just cloned the repository; it gets a minute."""
    env = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return subprocess.run(
        [str(TORCHLINT), *arguments], cwd=cwd, capture_output=True, text=True, timeout=60, env={**env, **more}
    )


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository with one faulty file."""
    folder = tmp_path / "clone"
    folder.mkdir()
    (folder / "net.py").write_text(FAULTY)
    return folder


SHADOWS = (
    "torch",
    "ast",
    "json",
    "re",
    "libcst",
    "astroid",
    "rich",
    "pathspec",
    "torchlint",
    "checks",
    "sitecustomize",
)
SHADOWS += ("usercustomize", "conftest", "setup", "base", "multiprocessing", "tomllib", "hashlib", "tokenize")


@pytest.mark.parametrize("how", [("-j", "1"), ("-j", "2"), ("--fix", "--unsafe-fixes"), ("--diff",), ("--add-noqa",)])
def test_nothing_of_the_project_is_imported_or_run(clone: Path, how: tuple[str, ...]) -> None:
    ran = clone.parent / "ran"
    trap = f"import torch\nopen({str(ran)!r}, 'a').write(__name__ + ' ')\n"
    for name in SHADOWS:
        (clone / f"{name}.py").write_text(trap)
    for number in range(40):
        (clone / f"user{number}.py").write_text(f"import base, torch, conftest, setup\n{FAULTY}")
    package = clone / ".venv" / "lib" / "python3.11" / "site-packages"
    package.mkdir(parents=True)
    (package / "evil.pth").write_text(f"import os; open({str(ran)!r}, 'a').write('pth')\n")
    (package / "base.py").write_text(trap)
    (clone / ".venv" / "pyvenv.cfg").write_text("home = /usr/bin\n")
    for program in ("python", "python3", "git", "torchlint"):
        for folder in (clone, clone / ".venv" / "bin"):
            folder.mkdir(exist_ok=True)
            (folder / program).write_text(f"#!/bin/sh\necho {program} >> {ran}\n")
            (folder / program).chmod(0o755)
    (clone / ".git").mkdir()
    (clone / ".git" / "config").write_text(f"[core]\n\tfsmonitor = {clone}/git\n\tpager = {clone}/git\n")
    done = torchlint("check", *how, ".", cwd=clone)
    assert done.returncode in (0, 1), done.stderr
    assert not ran.exists(), ran.read_text()


def test_plugins_are_imported_because_the_configuration_says_so(clone: Path) -> None:
    (clone / "torchlint.toml").write_text('plugins = ["mine"]\n')
    (clone / "mine.py").write_text("open('ran', 'w')\n")
    assert torchlint("check", "--no-cache", ".", cwd=clone).returncode == 1
    assert (clone / "ran").exists()


def test_links_lead_nowhere_outside(clone: Path) -> None:
    outside = clone.parent / "outside"
    outside.mkdir()
    (outside / "secret.py").write_text(FAULTY)
    (clone / "folder").symlink_to(outside)
    (clone / "file.py").symlink_to(outside / "secret.py")
    (clone / "loop").symlink_to(clone)
    (clone / "self.py").symlink_to("self.py")
    (clone / "zero.py").symlink_to("/dev/zero")
    (clone / "memory.py").symlink_to("/proc/self/mem")
    (clone / "import.py").write_text("import torch\nfrom folder.secret import Net\nfrom file import Net\nNet()\n")
    done = torchlint("check", "--fix", "--unsafe-fixes", "--output-format", "concise", ".", cwd=clone)
    assert "secret" not in done.stdout and "file.py" not in done.stdout
    assert (outside / "secret.py").read_text() == FAULTY
    assert "super().__init__()" in (clone / "net.py").read_text()


@pytest.mark.parametrize(
    "name", ["pipe.py", "torchlint.toml", "pyproject.toml", ".torchlint.toml", ".gitignore", ".torchlint_cache", ".git"]
)
def test_pipes_in_the_place_of_anything_are_not_waited_for(clone: Path, name: str) -> None:
    os.mkfifo(clone / name)
    done = torchlint("check", "--output-format", "concise", ".", cwd=clone)
    assert done.returncode in (1, 2), done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", ["torchlint.toml", "pyproject.toml", ".gitignore", ".torchlint_cache", "net.py"])
def test_folders_in_the_place_of_anything_break_nothing(clone: Path, name: str) -> None:
    (clone / name).unlink(missing_ok=True)
    (clone / name).mkdir()
    (clone / "other.py").write_text(FAULTY)
    done = torchlint("check", ".", cwd=clone)
    assert done.returncode in (1, 2), done.stderr
    assert "Traceback" not in done.stderr


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everybody can get to, unlike pytest's own."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def test_an_unreadable_file_is_told_and_the_others_are_linted(open_folder: Path) -> None:
    if os.geteuid() != 0:
        user: dict[str, int] = {}
    else:
        user = {"user": 65534, "group": 65534}  # root may read everything
    for name in ("closed.py", "open.py"):
        (open_folder / name).write_text(FAULTY)
    (open_folder / "closed.py").chmod(0)
    code = "import sys; from torchlint.cli import main; sys.exit(main())"
    try:
        done = subprocess.run(
            [sys.executable, "-c", code, "check", "--output-format", "concise", "--no-cache", str(open_folder)],
            capture_output=True,
            text=True,
            cwd="/",
            **user,  # type: ignore[call-overload]
        )
    except PermissionError:
        pytest.skip("the interpreter itself can't be run by nobody")
    if (
        "No module named" in done.stderr
        or "ermission denied: '/root" in done.stderr
        or "init_import_site" in done.stderr
    ):
        pytest.skip("nobody can't read the interpreter's or torchlint's own files")
    assert done.returncode == 2, done.stderr
    assert "open.py:5:5: TL101" in done.stdout
    assert "closed.py: Permission denied" in done.stderr


FORMATS = ("full", "concise", "grouped", "github", "pylint")


@pytest.mark.parametrize("form", FORMATS)
def test_names_and_source_lines_command_no_terminal_and_forge_no_line(clone: Path, form: str) -> None:
    (clone / "net.py").unlink()
    (clone / "evil\x1b]0;owned\x07\x1b[31m.py").write_text(FAULTY)
    (clone / "a\nother.py:1:1: TL999 forged\n::error file=x::forged\n.py").write_text(FAULTY)
    (clone / "tail.py").write_text(f"{FAULTY.rstrip()}  # \x1b[2J\x9b31m\x07\n")
    done = torchlint("check", "--output-format", form, ".", cwd=clone, FORCE_COLOR="", NO_COLOR="1")
    assert done.returncode == 1, done.stderr
    for text in (done.stdout, done.stderr):
        assert not any(sign in text for sign in ("\x1b", "\x07", "\x9b"))
        assert not any(line.startswith(("other.py:1:1", "::error file=x")) for line in text.splitlines())


def test_json_has_odd_names_as_they_are(clone: Path) -> None:
    (clone / "a\n\x1b[31m.py").write_text(FAULTY)
    (clone / os.fsdecode(b"\xff\xfe.py")).write_text(FAULTY)
    done = torchlint("check", "--output-format", "json", ".", cwd=clone)
    names = {Path(row["filename"]).name for row in json.loads(done.stdout)}
    assert {"a\n\x1b[31m.py", "net.py"} < names and len(names) == 3


def test_a_planted_cache_runs_nothing_and_is_replaced(clone: Path) -> None:
    torchlint("check", ".", cwd=clone)
    ran = clone.parent / "ran"
    pickled = b"cos\nsystem\n(S'touch " + os.fsencode(ran) + b"'\ntR."
    for file in (clone / ".torchlint_cache").rglob("*.json"):
        file.write_bytes(pickled)
        file.with_suffix(".pickle").write_bytes(pickled)
        file.with_suffix(".py").write_text(f"open({str(ran)!r}, 'w')\n")
    again = torchlint("check", "--output-format", "concise", ".", cwd=clone)
    assert "TL101" in again.stdout and not ran.exists()


@pytest.mark.parametrize(
    "text",
    [
        'cache-dir = "../precious"',
        'cache-dir = "/proc"',
        'src = ["/", "../..", "/proc/self"]',
        'extend = "../precious/torchlint.toml"',
        'extend = "torchlint.toml"',
        'extend = "/dev/zero"',
        'exclude = ["' + "*a" * 30 + 'b"]',
        'exclude = ["' + "**/" * 40 + 'x"]',
        'exclude = ["' + "{a,b}" * 12 + '"]',
        'exclude = ["[", "{", "[!]", "{a,{b,", "\\\\"]',
        'per-file-ignores = { "' + "*a" * 30 + 'b" = ["ALL"] }',
        "x = " + "[" * 5000,
        "a." * 3000 + "b = 1",
        'select = ["' + "T" * 100_000 + '"]',
    ],
)
def test_a_configuration_that_points_outside_or_is_a_trap_does_no_harm(clone: Path, text: str) -> None:
    precious = clone.parent / "precious"
    precious.mkdir()
    (precious / "letter.txt").write_text("dear")
    (clone / ("a" * 200 + ".py")).write_text(FAULTY)
    deep = clone / "/".join("a" * 20)
    deep.mkdir(parents=True)
    (deep / "net.py").write_text(FAULTY)
    (clone / "torchlint.toml").write_text(text + "\n")
    done = torchlint("check", ".", cwd=clone)
    assert done.returncode in (1, 2), done.stderr
    assert "Traceback" not in done.stderr
    assert [file.name for file in precious.iterdir()] == ["letter.txt"]


@pytest.mark.parametrize(
    "line", ["*a" * 30 + "b", "**/" * 60 + "x", "[" * 1000, "a" * 100_000, "\\", "!" * 50, "/" * 500]
)
def test_ignore_files_are_no_trap(clone: Path, line: str) -> None:
    (clone / ("a" * 200 + ".py")).write_text(FAULTY)
    (clone / ".gitignore").write_text(f"{line}\n" * 50)
    done = torchlint("check", "--output-format", "concise", ".", cwd=clone)
    assert done.returncode == 1, done.stderr
    assert "net.py:5:5: TL101" in done.stdout


def test_a_very_deep_tree_is_walked(tmp_path: Path) -> None:
    folder = tmp_path
    names = []
    for number in range(300):
        names.append(f"d{number}")
    folder = tmp_path / "/".join(names)
    folder.mkdir(parents=True)
    (folder / "net.py").write_text(FAULTY)
    done = torchlint("check", "--output-format", "concise", ".", cwd=tmp_path)
    assert "net.py:5:5: TL101" in done.stdout
    shutil.rmtree(tmp_path / "d0")
