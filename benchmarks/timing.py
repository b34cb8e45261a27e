"""Whole commands, measured: time on the clock, time of the CPU, memory."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple


class Took(NamedTuple):
    """What one command took: seconds on the clock, seconds of CPU in all its processes; what it printed."""

    wall: float
    cpu: float
    output: bytes = b""


class TooLong(Exception):
    """A command did not end in the time it was given."""


def took(command: Sequence[str], *, limit: float = 3600, allowed: Sequence[int] = (0, 1), **more: str) -> Took:
    """Run a command to its end. Raises TooLong, and RuntimeError for an exit status that isn't allowed."""
    env: Mapping[str, str] = {**os.environ, **more}
    started = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, start_new_session=True)
    before = os.times()
    try:
        out, err = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.communicate()
        raise TooLong from None
    wall, after = time.monotonic() - started, os.times()
    if process.returncode not in allowed:
        raise RuntimeError(f"{' '.join(command)} exited {process.returncode}: {err.decode()[-2000:]}")
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return Took(wall, cpu, out)


def fastest(command: Sequence[str], times: int, **more: str) -> Took:
    """The quickest of several runs on the clock: what the machine does besides only ever adds."""
    return min((took(command, **more) for _ in range(times)), key=lambda each: each.wall)


def peak(command: Sequence[str]) -> float:
    """The most memory, in megabytes, that a process of a command had at any time."""
    code = (
        "import resource, subprocess, sys\n"
        "subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    done = subprocess.run([sys.executable, "-c", code, *command], check=True, capture_output=True, text=True)
    return int(done.stdout) * (1 if sys.platform == "darwin" else 1024) / 1e6


def copied(paths: Sequence[Path], folder: Path) -> tuple[int, int]:
    """Copy the Python files of some folders, without what configures tools there; how many files and lines."""
    files = lines = 0
    for path in paths:
        for file in sorted(path.rglob("*.py")):
            target = folder / path.name / file.relative_to(path)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
            files += 1
            lines += file.read_bytes().count(b"\n")
    return files, lines
