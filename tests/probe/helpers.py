"""Runs ``torchlint probe`` as a user does, and reads what it recorded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass
class Probed:
    """One run: exit code, what was printed, and the record (empty if there is none)."""

    code: int
    out: str
    err: str
    record: dict[str, Any]

    def check(self, code: str, label: str | None = None) -> dict[str, Any]:
        """What one check came to, of the only target or a named one."""
        targets = [t for t in self.record["targets"] if (label in (None, t["label"])) and t["checks"]]
        assert len(targets) == 1, [t["label"] for t in self.record["targets"]]
        found: dict[str, Any] = targets[0]["checks"][code]
        return found

    def messages(self, code: str, label: str | None = None) -> str:
        """The messages of one check, a line each."""
        return "\n".join(problem["message"] for problem in self.check(code, label)["problems"])

    @property
    def found(self) -> list[tuple[str, int]]:
        """Code and row of every finding."""
        return [(f["code"], f["row"]) for f in self.record["findings"]]


def probe(folder: Path, *arguments: str, timeout: float = 240) -> Probed:
    """Run the command in a folder with this interpreter's torch."""
    record = folder / "record.json"
    record.unlink(missing_ok=True)
    done = subprocess.run(
        [sys.executable, "-m", "torchlint", "probe", "--record", str(record), *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=timeout,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "VIRTUAL_ENV": sys.prefix},
        check=False,
    )
    assert "Traceback (most recent call last)" not in done.stdout + done.stderr, done.stdout + done.stderr
    data = json.loads(record.read_text(encoding="utf-8")) if record.exists() else {}
    return Probed(done.returncode, done.stdout, done.stderr, data)
