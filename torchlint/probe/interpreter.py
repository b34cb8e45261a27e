"""Whose interpreter runs the project: the one that is named, else its virtual environment as editors find it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path


def candidates(start: Path, named: str | None = None) -> list[str]:
    """Interpreters worth a try for a project folder, best first; a named one alone."""
    if named:
        return [_program(named)]
    found: list[str] = []
    for python in _search(start):
        if python not in found:
            found.append(python)
    return found


def _search(start: Path) -> Iterator[str]:
    active = os.environ.get("VIRTUAL_ENV")
    if active:
        yield from _in(Path(active))
    for folder in (start, *start.parents):
        for name in (".venv", "venv", "env", ".env"):
            if (folder / name / "pyvenv.cfg").is_file():
                yield from _in(folder / name)
    conda = os.environ.get("CONDA_PREFIX")
    if conda:
        yield from _in(Path(conda))
    yield sys.executable


def _in(environment: Path) -> Iterator[str]:
    for relative in ("bin/python", "Scripts/python.exe", "python.exe"):
        python = environment / relative
        if python.exists():
            yield str(python)


def _program(named: str) -> str:
    """A path as it is; a folder is an environment; a bare name is looked for on PATH."""
    path = Path(named).expanduser()
    if path.is_dir():
        return next(_in(path), str(path))
    if path.exists():
        return str(path.absolute())
    import shutil

    return shutil.which(named) or named
