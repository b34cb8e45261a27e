"""The world around a run goes wrong, or is merely different: findings stay the same, and files stay whole."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

TORCHLINT = Path(sys.executable).with_name("torchlint")
FIXTURES = Path(__file__).parents[2] / "fixtures"
FAULTY = (
    "from torch import nn\n\n\nclass Net(nn.Module):\n    def __init__(self):\n        self.layer = nn.Linear(1, 1)\n"
)


def torchlint(*arguments: str, cwd: Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([str(TORCHLINT), *arguments], cwd=cwd, capture_output=True, timeout=300, env=env)


def rows(*arguments: str, cwd: Path, env: dict[str, str] | None = None) -> list[dict[str, object]]:
    """The findings as JSON has them; nothing else may have gone wrong."""
    done = torchlint("check", "--output-format", "json", *arguments, cwd=cwd, env=env)
    assert done.returncode in (0, 1), done.stderr.decode()
    assert b"Traceback" not in done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Sixty programs in folders, and their configuration."""
    root = tmp_path / "project"
    for number, file in enumerate(sorted(FIXTURES.glob("TL[124]*/*.py"))[::4][:60]):
        target = root / f"d{number % 7}" / f"m{number}.py"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)
    (root / "torchlint.toml").write_text('select = ["ALL"]\n')
    return root


def test_findings_depend_on_nothing_but_the_files(project: Path) -> None:
    expected = rows("--no-cache", "-j", "1", ".", cwd=project)
    assert len(expected) > 30
    files = [str(file.relative_to(project)) for file in sorted(project.rglob("*.py"))]
    assert rows("--no-cache", "-j", "1", *reversed(files), cwd=project) == expected
    assert rows("--no-cache", "-j", "1", *files[1::2], *files[::2], cwd=project) == expected
    for jobs, seed in (("1", "1"), ("2", "2"), ("3", "31337")):
        env = {**os.environ, "PYTHONHASHSEED": seed}
        assert rows("--no-cache", "-j", jobs, ".", cwd=project, env=env) == expected
    assert rows("-j", "2", ".", cwd=project) == expected  # cold, and writes the cache
    assert rows("-j", "2", ".", cwd=project) == expected  # warm
    (project / "d0" / "m0.py").touch()
    assert rows("-j", "1", ".", cwd=project) == expected
    alone = [row for file in files for row in rows("--no-cache", file, cwd=project)]
    assert sorted(map(str, alone)) == sorted(map(str, expected))


def test_two_runs_at_once_on_one_tree_find_the_same_and_leave_a_sound_cache(project: Path) -> None:
    expected = rows("--no-cache", ".", cwd=project)
    command = [str(TORCHLINT), "check", "--output-format", "json", "-j", "2", "."]
    running = [subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE) for _ in range(3)]
    assert [json.loads(each.communicate()[0]) for each in running] == [expected] * 3
    assert not list(project.rglob("*.tmp"))
    assert rows(".", cwd=project) == expected


def test_two_runs_that_fix_one_tree_leave_whole_files(project: Path) -> None:
    once = project.with_name("once")
    shutil.copytree(project, once)
    command = [str(TORCHLINT), "check", "--fix", "--unsafe-fixes", "--exit-zero", "."]
    subprocess.run(command, cwd=once, capture_output=True)
    before = {file.relative_to(project): file.read_bytes() for file in project.rglob("*.py")}
    running = [subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(3)]
    for each in running:
        assert b"Traceback" not in each.communicate()[1]
    for name, old in before.items():
        assert (project / name).read_bytes() in (old, (once / name).read_bytes())
    assert not list(project.rglob("*torchlint-tmp"))


def test_files_that_change_and_vanish_while_they_are_read_break_nothing(project: Path) -> None:
    files = sorted(project.rglob("m*.py"))
    contents = {file: file.read_bytes() for file in files}
    over = threading.Event()

    def disturb() -> None:
        while not over.is_set():
            for number, file in enumerate(files):
                if number % 3 == 0:
                    file.unlink(missing_ok=True)
                    file.write_bytes(contents[file])
                elif number % 3 == 1:
                    file.write_bytes(contents[file][: len(contents[file]) // 2])
                    file.write_bytes(contents[file])
                else:
                    shutil.rmtree(file.parent / "new", ignore_errors=True)
                    (file.parent / "new").mkdir(exist_ok=True)
                    (file.parent / "new" / "x.py").write_bytes(contents[file])

    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        for how in (("-j", "1"), ("-j", "2"), ("--no-cache",), ("--diff",)):
            done = torchlint("check", *how, ".", cwd=project)
            assert done.returncode in (0, 1), done.stderr.decode()
            assert b"Traceback" not in done.stderr
    finally:
        over.set()
        thread.join()
    for file, content in contents.items():
        file.write_bytes(content)
        shutil.rmtree(file.parent / "new", ignore_errors=True)
    assert rows(".", cwd=project) == rows("--no-cache", ".", cwd=project)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, of half a megabyte."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(disk)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting a small file system needs privileges: no disk was filled")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


def test_a_full_disk_costs_the_cache_and_the_fixes_and_nothing_else(small_disk: Path) -> None:
    (small_disk / "net.py").write_text(FAULTY)
    with pytest.raises(OSError, match="No space"), (small_disk / "filler").open("wb", buffering=0) as filler:
        while True:
            filler.write(b"x" * 4096)
    assert [row["code"] for row in rows(".", cwd=small_disk)] == ["TL101"]
    done = torchlint("check", "--fix", ".", cwd=small_disk)
    assert done.returncode == 2
    assert b"No space left on device" in done.stdout + done.stderr
    assert b"Traceback" not in done.stderr
    assert (small_disk / "net.py").read_text() == FAULTY
    report = torchlint("check", "--output-file", "report.txt", ".", cwd=small_disk)
    assert report.returncode in (1, 2) and b"Traceback" not in report.stderr


def test_output_that_cannot_be_written_is_told(project: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([str(TORCHLINT), "check", "."], cwd=project, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr and b"No space left" in done.stderr


def test_a_reader_that_stops_listening_ends_the_run_quietly(project: Path) -> None:
    running = subprocess.Popen(
        [str(TORCHLINT), "check", "."], cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert running.stdout is not None and running.stderr is not None
    running.stdout.close()
    assert running.stderr.read() == b""
    running.stderr.close()
    running.wait()


def test_a_read_only_tree_is_linted(small_disk: Path) -> None:
    (small_disk / "net.py").write_text(FAULTY)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    assert [row["code"] for row in rows(".", cwd=small_disk)] == ["TL101"]
    done = torchlint("check", "--fix", ".", cwd=small_disk)
    assert done.returncode == 2
    assert done.stderr == b"torchlint: net.py: not fixed: the file is read-only\n"


@pytest.mark.parametrize(
    "env",
    [
        {},
        {"LC_ALL": "C"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"LC_ALL": "POSIX", "PYTHONIOENCODING": "ascii"},
        {"LANG": "no_SUCH.locale"},
        {"HOME": "/nonexistent", "XDG_CACHE_HOME": "/nonexistent", "XDG_CONFIG_HOME": "/nonexistent"},
        {"HOME": ""},
        {"TERM": "dumb", "COLUMNS": "0"},
        {"COLUMNS": "x", "TMPDIR": "/nonexistent"},
    ],
    ids=str,
)
def test_no_home_no_locale_no_terminal(tmp_path: Path, env: dict[str, str]) -> None:
    (tmp_path / "nétz-网.py").write_text(FAULTY.replace("layer", "schicht_ä网"), encoding="utf-8")
    expected = json.loads(torchlint("check", "--no-cache", "--output-format", "json", ".", cwd=tmp_path).stdout)
    found = json.loads(torchlint("check", "--output-format", "json", ".", cwd=tmp_path, env=env).stdout)
    for row in found:  # a name that the locale has no letters for is bytes to it
        row["filename"] = os.fsencode(row["filename"]).decode()
    assert len(expected) == 1 and expected == found
    for form in ("full", "concise"):
        done = torchlint("check", "--output-format", form, ".", cwd=tmp_path, env=env)
        assert (done.returncode, done.stderr) == (1, b"")
        assert b"TL101" in done.stdout


@pytest.mark.parametrize("end", ["\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_ends_and_a_byte_order_mark_change_no_finding(project: Path, end: str, mark: str) -> None:
    expected = rows("--no-cache", ".", cwd=project)
    for file in project.rglob("*.py"):
        text = file.read_bytes().decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
        file.write_bytes((mark + text.replace("\n", end)).encode())
    found = rows("--no-cache", ".", cwd=project)
    places = [
        [(row["filename"], row["code"], row["location"], row["end_location"]) for row in all_]
        for all_ in (expected, found)
    ]
    assert places[0] == places[1]
    torchlint("check", "--fix", "--unsafe-fixes", ".", cwd=project)
    for file in project.rglob("*.py"):
        data = file.read_bytes().decode("utf-8")
        assert data.startswith("\ufeff") == bool(mark)
        assert "\n" not in data.replace(end, "") and "\r" not in data.replace(end, "")


def test_drive_like_and_backslashed_names_are_names(tmp_path: Path) -> None:
    names = [
        "C:net.py",
        "C:\\net.py",
        "\\\\server\\share.py",
        "nul.py",
        "aux .py",
        "a:b\\c.py",
        "%USERPROFILE%.py",
        "~.py",
    ]
    for name in names:
        (tmp_path / name).write_text(FAULTY)
    found = rows(".", cwd=tmp_path)
    assert sorted(Path(str(row["filename"])).name for row in found) == sorted(names)
    assert rows(".", cwd=tmp_path) == found
    done = torchlint("check", "--fix", *names, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert all("super().__init__()" in (tmp_path / name).read_text() for name in names)
