"""Whatever happens while a file is written, it is the old file or the new one, whole."""

from __future__ import annotations

import os
import random
import resource
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from editing import views

from torchlint.fixing.files import FileFix, fix_files
from torchlint.fixing.writing import NotWritten, replace_file

OLD = b"y = x.view(1)\n"
NEW = b"y = x.reshape(1)\n"


def fix(path: Path, *, write: bool = True) -> FileFix:
    (fixed,) = fix_files([(str(path), path.name)], views, unsafe=False, write=write)
    return fixed


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "net.py"
    path.write_bytes(OLD)
    return path


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbfy = x.view(1)\n",
        b"# -*- coding: latin-1 -*-\ns = '\xe9'; y = x.view(1)\n",
        b"# coding: cp1251\ny = x.view(1)  # \xcf\xf0\r\n",
        b"y = x.view(1)\r\nz = 1\nw = 2\rv = 3",
        b"\x0cy = x.view(1)\n\x0c\n# \xe2\x80\xa8 \x1c\n",
        b"if x:\n\ty = x.view(1)\t\n        # eight\n",
        b"y = x.view(1)",
        b"#!/usr/bin/env python\n\n\n\ny = x.view(1)\n\n\n",
    ],
)
def test_bytes_that_are_not_fixed_stay(program: Path, content: bytes) -> None:
    program.write_bytes(content)
    fix(program)
    assert program.read_bytes() == content.replace(b".view(", b".reshape(")


def test_without_writing_the_file_stays(program: Path) -> None:
    assert fix(program, write=False).result.after.text == NEW.decode()
    assert program.read_bytes() == OLD


def test_a_file_without_fixes_is_not_written(program: Path) -> None:
    program.write_bytes(NEW)
    before = program.stat()
    fix(program)
    after = program.stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


@pytest.mark.parametrize("mode", [0o644, 0o755, 0o600, 0o2664])
def test_the_mode_stays(program: Path, mode: int) -> None:
    program.chmod(mode)
    fix(program)
    assert program.read_bytes() == NEW
    assert stat.S_IMODE(program.stat().st_mode) == mode


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
def test_the_owner_stays(program: Path) -> None:
    os.chown(program, 12345, 54321)
    program.chmod(0o4711)
    fix(program)
    assert (program.stat().st_uid, program.stat().st_gid) == (12345, 54321)
    assert stat.S_IMODE(program.stat().st_mode) == 0o4711


def test_extended_attributes_stay(program: Path) -> None:
    try:
        os.setxattr(program, "user.note", b"mine")
    except OSError:
        pytest.skip("this file system has no extended attributes")
    fix(program)
    assert os.getxattr(program, "user.note") == b"mine"


def test_a_symbolic_link_stays_and_its_target_is_fixed(program: Path, tmp_path: Path) -> None:
    folder = tmp_path / "links"
    folder.mkdir()
    link = folder / "link.py"
    link.symlink_to("../net.py")
    fix(link)
    assert link.is_symlink()
    assert link.readlink() == Path("../net.py")
    assert program.read_bytes() == NEW
    assert left_in(folder) == ["link.py"]


def test_a_read_only_file_is_left_alone(program: Path) -> None:
    program.chmod(0o444)
    assert fix(program).error == "the file is read-only"
    assert program.read_bytes() == OLD
    assert left_in(program.parent) == ["net.py"]


@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root writes into read-only folders")
def test_a_read_only_folder_is_left_alone(program: Path) -> None:
    program.parent.chmod(0o555)
    try:
        assert fix(program).error
        assert program.read_bytes() == OLD
    finally:
        program.parent.chmod(0o755)


def test_a_folder_that_takes_no_file_leaves_the_old_one(program: Path) -> None:
    blocked = program.with_name(f"net.py.{os.getpid()}.torchlint-tmp")
    blocked.mkdir()  # stands in the temporary file's place, for root as well
    assert fix(program).error == "File exists"
    assert program.read_bytes() == OLD


def test_unwritten_fixes_are_not_counted_as_gone(program: Path) -> None:
    program.chmod(0o444)
    assert [finding.code for finding in fix(program).remaining] == ["TL305"]


def test_a_file_that_changed_meanwhile_is_not_overwritten(program: Path) -> None:
    program.write_bytes(b"mine\n")
    with pytest.raises(NotWritten, match="changed while"):
        replace_file(str(program), OLD, NEW)
    assert program.read_bytes() == b"mine\n"
    assert left_in(program.parent) == ["net.py"]


def test_a_file_that_vanished_meanwhile_is_not_made_anew(program: Path) -> None:
    program.unlink()
    with pytest.raises(NotWritten):
        replace_file(str(program), OLD, NEW)
    assert left_in(program.parent) == []


def test_what_a_killed_run_left_beside_the_file_is_removed(program: Path) -> None:
    finished = subprocess.Popen([sys.executable, "-c", ""])
    finished.wait()
    program.with_name(f"net.py.{finished.pid}.torchlint-tmp").write_bytes(b"half")
    running = program.with_name(f"net.py.{os.getppid()}.torchlint-tmp")
    running.write_bytes(b"half")
    other = program.with_name(f"other.py.{finished.pid}.torchlint-tmp")
    other.write_bytes(b"half")
    fix(program)
    assert left_in(program.parent) == ["net.py", running.name, other.name]


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    program = tmp_path / "net.py"
    old = OLD + b"# \n" * 5000
    program.write_bytes(old)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        fixed = fix(program)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert fixed.error == "File too large"
    assert program.read_bytes() == old
    assert left_in(tmp_path) == ["net.py"]


def test_a_full_file_system_leaves_the_old_file(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if mount.returncode:
        pytest.skip("mounting a small file system needs privileges")
    try:
        program = disk / "net.py"
        program.write_bytes(OLD)
        with pytest.raises(OSError, match="No space"), (disk / "filler").open("wb", buffering=0) as filler:
            while True:
                filler.write(b"x" * 4096)
        assert fix(program).error == "No space left on device"
        assert program.read_bytes() == OLD
        assert left_in(disk) == ["filler", "net.py"]
    finally:
        subprocess.run(["umount", str(disk)], check=True)


VICTIM = """
import sys
from pathlib import Path
from torchlint.fixing.writing import replace_file

files = [Path(name) for name in sys.argv[1:]]
print("ready", flush=True)
while True:
    for path in files:
        old = path.read_bytes()
        new = old.replace(b".view(", b".reshape(") if b".view(" in old else old.replace(b".reshape(", b".view(")
        replace_file(str(path), old, new)
"""


@pytest.mark.parametrize("kills", [15, pytest.param(200, marks=pytest.mark.slow)])
def test_a_kill_at_any_moment_leaves_every_file_whole(tmp_path: Path, kills: int) -> None:
    rng = random.Random(7)
    states: dict[Path, set[bytes]] = {}
    for number, lines in enumerate((1, 500, 40_000)):
        path = tmp_path / f"net{number}.py"
        old = b"".join(b"y%d = x.view(%d)\n" % (line, line) for line in range(lines))
        states[path] = {old, old.replace(b".view(", b".reshape(")}
        path.write_bytes(old)
    for _ in range(kills):
        victim = subprocess.Popen(
            [sys.executable, "-c", VICTIM, *map(str, states)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert victim.stdout is not None
        assert victim.stdout.readline() == "ready\n", victim.stderr and victim.stderr.read()
        time.sleep(rng.uniform(0, 0.05))
        victim.send_signal(signal.SIGKILL)
        victim.communicate()
        assert victim.returncode == -signal.SIGKILL
        for path, whole in states.items():
            assert path.read_bytes() in whole
    for path in states:
        replace_file(str(path), path.read_bytes(), NEW)
    assert left_in(tmp_path) == sorted(path.name for path in states)
