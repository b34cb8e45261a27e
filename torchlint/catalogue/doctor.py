"""Runs the doctor's looks in the project's interpreter, each for itself, and judges what they found.

A look that crashes or hangs costs that look only: the worker is started again without it. Nothing here fails because
of the machine it looks at; what can't be found out is said.
"""

from __future__ import annotations

import getpass
import json
import os
import queue
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from torchlint.catalogue.diagnosis import Facts, Line, judge
from torchlint.catalogue.doctor_worker import CHECKS

_WORKER = Path(__file__).with_name("doctor_worker.py")
_KEPT = 400
_NAME = r"[^\\/:;'\",]+(?=[\\/])|[^\\/:;'\",\s]+"
_LAG = 0.1
"""Seconds that what a worker wrote last to standard error may still be on its way."""

_TORCH_TAKES = 3.0
"""How many times longer than other looks the import of torch may take: a cold disk is slow."""


@dataclass(frozen=True, slots=True)
class Examination:
    """What was seen in an interpreter: facts by look, and the judgement, a line each."""

    python: str
    facts: Facts
    lines: tuple[Line, ...]

    @property
    def problems(self) -> int:
        return sum(line.status == "problem" for line in self.lines)


def examine(python: str, timeout: float = 60.0) -> Examination:
    """Look at an interpreter and judge it. ``timeout`` is the longest one look may take, in seconds."""
    facts = dict(look(python, timeout))
    return Examination(python, facts, tuple(judge(facts)))


def look(python: str, timeout: float) -> Iterator[tuple[str, dict[str, Any]]]:
    """What each look found: its facts, or ``error`` with the reason why there are none."""
    waiting = list(CHECKS)
    while waiting:
        blamed = ""
        for name, found in _looks(python, waiting, timeout):
            if name in waiting:
                waiting.remove(name)
                blamed = name
                yield name, found
        if not blamed:
            return


def _looks(python: str, names: Sequence[str], timeout: float) -> Iterator[tuple[str, dict[str, Any]]]:
    """One worker's looks, up to the first that kills it or takes too long."""
    try:
        worker = subprocess.Popen(
            [python, str(_WORKER), *names],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        yield "python", {"error": f"{python} does not start: {error.strerror or error}", "kind": "start"}
        return
    events: queue.Queue[str | None] = queue.Queue()
    said: list[str] = []
    threading.Thread(target=_pass_on, args=(worker.stdout, events), daemon=True).start()
    threading.Thread(target=_keep, args=(worker.stderr, said), daemon=True).start()
    running = ""
    try:
        while True:
            patience = timeout * (_TORCH_TAKES if running == "torch" else 1)
            try:
                text = events.get(timeout=patience)
            except queue.Empty:
                yield running or "python", {"error": f"took longer than {patience:.0f} s", "kind": "hang"}
                return
            if text is None:
                yield from _died(worker, running, said)
                return
            event = _event(text)
            if "begin" in event:
                running = event["begin"]
            elif "end" in event:
                yield event["end"], _found(event, said)
            elif event.get("done"):
                return
    finally:
        _end(worker)


def _pass_on(stream: IO[str], events: queue.Queue[str | None]) -> None:
    for line in stream:
        events.put(line)
    events.put(None)


def _keep(stream: IO[str], said: list[str]) -> None:
    for line in stream:
        said.append(line)
        del said[:-_KEPT]


def _died(worker: subprocess.Popen[str], running: str, said: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The worker ended before it was done: the look that ran is to blame; with none running, the interpreter is."""
    code = worker.wait()
    time.sleep(_LAG)
    last = next((line.strip() for line in reversed(said) if line.strip()), "")
    how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
    if running:
        yield running, {"error": f"the process {how}" + (f": {last}" if last else ""), "kind": "crash"}
    else:
        yield "python", {"error": f"the interpreter {how}" + (f": {last}" if last else ""), "kind": "start"}


def _event(text: str) -> dict[str, Any]:
    try:
        event = json.loads(text)
    except ValueError:
        return {}
    return event if isinstance(event, dict) else {}


def _found(event: dict[str, Any], said: list[str]) -> dict[str, Any]:
    """The facts of a look, or its error; with what the import of torch wrote about NumPy, which it survives."""
    if "facts" not in event:
        return {key: event[key] for key in ("error", "kind")}
    found: dict[str, Any] = event["facts"]
    if event["end"] == "torch":
        time.sleep(_LAG)
        if any("_ARRAY_API not found" in line or "compiled using NumPy 1.x" in line for line in said):
            found["noted"] = "a module that was compiled using NumPy 1.x"
    return found


def _end(worker: subprocess.Popen[str]) -> None:
    """End a worker and all it has started."""
    if worker.poll() is None or os.name == "posix":
        try:
            os.killpg(worker.pid, signal.SIGKILL)
        except (AttributeError, OSError):
            worker.kill()
    worker.wait()


# ---------------------------------------------------------------------------------------------------------- privacy


def shortened(value: Any) -> Any:
    """A value with what is private shortened in all its texts: the home folder, and the user's name in paths."""
    if isinstance(value, str):
        return _shortened(value)
    if isinstance(value, dict):
        return {key: shortened(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [shortened(each) for each in value]
    return value


def _shortened(text: str) -> str:
    home = os.path.expanduser("~")  # noqa: PTH111 (a home that can't be found is left as it is)
    for folder in {home, os.path.realpath(home)}:
        if len(folder) > 1:
            text = re.sub(rf"{re.escape(folder)}(?=[\\/:;'\",\s]|$)", "~", text)
    for name in _user_names():
        text = re.sub(rf"(?<=[\\/]){re.escape(name)}(?=[\\/:;'\",\s]|$)", "<user>", text)
    return re.sub(rf"(?i)((?:^|[:;\s'\"])(?:/home|/Users|[A-Z]:\\Users)[\\/])(?:{_NAME})", r"\1<user>", text)


def _user_names() -> set[str]:
    try:
        names = {getpass.getuser(), Path.home().name}
    except (OSError, KeyError, ImportError, RuntimeError):
        names = set()
    return {name for name in names if len(name) > 1 and name not in ("root", "home", "Users")}
