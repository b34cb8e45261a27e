"""Starts workers, listens to them, ends them: whatever user code does becomes a finding, never a hang.

A worker runs in a session of its own, so that everything it started can be ended with it. It writes results to a file
and the stack of a crash to another; its output is drained and kept only for its last lines. When it dies, the check it
had announced gets the blame, and another worker does the rest.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from torchlint.probe.targets import Target
from torchlint.probe.worker.names import NAMES, TRAINS

_WORKER = Path(__file__).with_name("worker")
_POLL = 0.05
# The worker ends itself at the time limit with its stack written; this much later it is ended from here.
_GRACE = 5.0
_MAX_WORKERS = 200
Event = dict[str, Any]


class NoTorch(Exception):
    """No interpreter was found that can import torch; the text says which were tried."""


@dataclass
class Limits:
    """How long one check may take, and how much memory a worker may hold."""

    timeout: float = 60.0
    memory: int | None = None


@dataclass
class Launch:
    """One run over some targets with the same interpreter and limits."""

    targets: Sequence[Target]
    pythons: Sequence[str]
    limits: Limits
    cwd: Path
    path: Sequence[str] = ()
    on_event: Callable[[Event], None] = lambda event: None
    _skip: list[tuple[str, str]] = field(default_factory=list)
    _dead: set[str] = field(default_factory=set)
    _deaths: dict[str, int] = field(default_factory=dict)

    def run(self) -> None:
        """Probe every target; events go to ``on_event`` as they come. Raises NoTorch, KeyboardInterrupt."""
        with _ending_on_sigterm():
            self._run()

    def _run(self) -> None:
        pythons = list(self.pythons)
        tried: list[str] = []
        for _ in range(_MAX_WORKERS):
            end = _Worker(self, pythons[0]).run()
            if end.no_torch:
                tried.append(f"{pythons[0]} ({end.no_torch})")
                pythons.pop(0)
                if not pythons:
                    raise NoTorch("no interpreter with torch; tried " + ", ".join(tried))
                continue
            if end.done:
                return
            self._blame(end)

    def _blame(self, end: End) -> None:
        """Tell the death of a worker as the failure of the check that ran, and go on without that check."""
        started = end.started
        if started is None:
            text = f"the worker ended before it began ({end.reason})"
            if end.output.strip():
                text += ": " + end.output.strip().splitlines()[-1]
            raise NoTorch(f"{self.pythons[0]}: {text}")
        label, code = started["target"], started["code"]
        site = end.site
        self.on_event(
            {
                "event": "check",
                "target": label,
                "code": code,
                "name": started["name"],
                "status": "failed",
                "reason": "",
                "seconds": round(end.seconds, 1),
                "problems": [
                    {
                        "message": f"{started['what']}: {end.reason}",
                        "site": site,
                        "help": end.help,
                        "failure": "",
                        "severity": "error",
                        "layer": "",
                        "change": None,
                    }
                ],
            }
        )
        self._skip.append((label, code))
        self._deaths[label] = self._deaths.get(label, 0) + 1
        if code in ("TP101", "TP102", "TP103") or self._deaths[label] > 1:
            # What kills a process twice kills it in every check; one finding says it.
            self._skip_rest(label, f"the process died in {code} ({started['name']})")
        elif code in ("TP104", "TP105"):
            self._skip_rest(label, f"the process died in {code} ({started['name']})", TRAINS)

    def _skip_rest(self, label: str, reason: str, codes: Sequence[str] = ()) -> None:
        """Tell the checks that won't run, all of them or some."""
        target = next((t for t in self.targets if label == t.label or label.startswith(f"{t.label}:")), None)
        selected = target.options.get("select") if target is not None else None
        for code in codes or selected or NAMES:
            if (label, code) in self._skip or (selected and code not in selected):
                continue
            self._skip.append((label, code))
            event = {"event": "check", "target": label, "code": code, "name": NAMES[code], "status": "skipped"}
            self.on_event({**event, "reason": reason, "seconds": 0, "problems": []})
        if not codes:
            self._dead.add(label)
            self.on_event({"event": "finished", "target": label})

    def note(self, event: Event) -> None:
        """Remember what is done, and hand the event on."""
        if event["event"] == "check":
            self._skip.append((event["target"], event["code"]))
        elif event["event"] == "finished":
            self._dead.add(event["target"])
        if event["event"] in ("hello", "check", "built", "inputs", "table", "model", "trouble", "finished"):
            self.on_event(event)

    def request(self, targets: Sequence[Target]) -> dict[str, Any]:
        """What the worker is asked for, less what earlier workers have told."""
        limit = self.limits.memory
        return {
            "targets": [target.to_json() for target in targets],
            "timeout": self.limits.timeout,
            "memory_limit": limit,
            "path": [*self.path, str(self.cwd)],
            "skip": self._skip,
            "dead": sorted(self._dead),
            "argv0": targets[0].file or targets[0].label if targets else "probe",
        }


@contextlib.contextmanager
def _ending_on_sigterm() -> Iterator[None]:
    """Let a polite kill unwind, so that the worker is ended with everything it started."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@dataclass
class End:
    """How a worker ended."""

    done: bool = False
    no_torch: str = ""
    reason: str = ""
    help: str = ""
    started: Event | None = None
    site: dict[str, Any] | None = None
    output: str = ""
    seconds: float = 0.0


class _Worker:
    """One process."""

    def __init__(self, launch: Launch, python: str) -> None:
        self._launch = launch
        self._python = python
        self._tail: list[bytes] = []
        self._started: Event | None = None
        self._since = time.monotonic()
        self._done = False
        self._no_torch = ""

    def run(self) -> End:
        with tempfile.TemporaryDirectory(prefix="torchlint-probe-", ignore_cleanup_errors=True) as folder:
            request = self._launch.request(self._launch.targets)
            Path(folder, "request.json").write_text(json.dumps(request), encoding="utf-8")
            results = Path(folder, "results.jsonl")
            results.touch()
            try:
                process = self._spawn(folder)
            except OSError as error:
                return End(no_torch=f"can't be started: {error.strerror or error}")
            reader = threading.Thread(target=self._drain, args=(process.stdout,), daemon=True)
            reader.start()
            verdict = ""
            try:
                with results.open("rb") as stream:
                    verdict = self._watch(process, stream)
            finally:
                end_process_group(process)
                reader.join(timeout=1)
            return self._end(process, verdict, Path(folder, "stack.txt"))

    def _spawn(self, folder: str) -> subprocess.Popen[bytes]:
        environment = dict(os.environ)
        environment["PYTHONUNBUFFERED"] = "1"
        environment["PYTHONFAULTHANDLER"] = "0"
        environment.setdefault("MPLBACKEND", "Agg")
        environment.setdefault("TOKENIZERS_PARALLELISM", "false")
        options: dict[str, Any] = {}
        if sys.platform == "win32":
            options["creationflags"] = subprocess.CREATE_NEW_PROCESS_GROUP
        else:
            options["start_new_session"] = True
        return subprocess.Popen(
            [self._python, str(_WORKER), folder],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=self._launch.cwd,
            env=environment,
            **options,
        )

    def _drain(self, stream: IO[bytes] | None) -> None:
        """Read all the worker prints, keep the end: a full pipe would stop it, a full disk is nobody's wish."""
        size = 0
        while stream is not None:
            chunk = stream.read1(65536) if hasattr(stream, "read1") else stream.read(4096)
            if not chunk:
                return
            self._tail.append(chunk)
            size += len(chunk)
            while len(self._tail) > 1 and size - len(self._tail[0]) > 65536:
                size -= len(self._tail.pop(0))

    def _watch(self, process: subprocess.Popen[bytes], stream: IO[bytes]) -> str:
        """Listen until the worker ends or must be ended; why, if it must."""
        limits = self._launch.limits
        partial = b""
        while True:
            running = process.poll() is None
            partial = self._read(stream, partial)
            if self._done or not running:
                return ""
            used = resident_bytes(process.pid)
            if limits.memory and used > limits.memory:
                return f"it took more than the memory limit ({human(limits.memory)})"
            if time.monotonic() - self._since > limits.timeout + _GRACE + (60 if self._started is None else 0):
                return "time"
            # Sleep only as long as nothing comes: a fast worker isn't slowed, a slow one costs nothing.
            time.sleep(_POLL)

    def _read(self, stream: IO[bytes], partial: bytes) -> bytes:
        for line in iter(stream.readline, b""):
            partial += line
            if not partial.endswith(b"\n"):
                break
            with contextlib.suppress(ValueError):
                self._take(json.loads(partial))
            partial = b""
        return partial

    def _take(self, event: Event) -> None:
        self._since = time.monotonic()
        kind = event.get("event")
        if kind == "start":
            self._started = event
        elif kind == "done":
            self._done = True
        elif kind == "no_torch":
            self._no_torch = event.get("error") or "torch isn't installed"
        elif kind is not None:
            self._launch.note(event)

    def _end(self, process: subprocess.Popen[bytes], verdict: str, stack_file: Path) -> End:
        output = b"".join(self._tail).decode("utf-8", "replace")
        seconds = time.monotonic() - self._since
        end = End(self._done, self._no_torch, started=self._started, output=output, seconds=seconds)
        if end.done or end.no_torch:
            return end
        stack = stack_file.read_text(encoding="utf-8", errors="replace") if stack_file.exists() else ""
        frames = stack_frames(stack)
        end.site = _innermost_user(frames, self._launch.targets)
        limit = self._launch.limits.timeout
        code = process.returncode
        if verdict == "time" or "Timeout (" in stack:
            end.reason = f"not finished after {limit:g} s; stopped"
            end.help = "a loop without an end, or work that takes longer than --timeout allows"
        elif verdict:
            end.reason = verdict
            end.help = "give more with --memory-limit, or make the model or its input smaller"
        elif code is not None and code < 0:
            name = _signal_name(-code)
            end.reason = f"the process crashed ({name})"
            if name == "SIGKILL":
                end.reason = "the process was killed (SIGKILL), as the system does when memory runs out"
        elif code and code >= 0xC0000000:
            end.reason = f"the process crashed (exit code {code:#x})"
        else:
            end.reason = f"the process ended itself with exit code {code} (os._exit?)"
        tail = [line for line in output.strip().splitlines() if line.strip()][-3:]
        if tail and not end.help:
            end.help = "its last words: " + " / ".join(line.strip()[:200] for line in tail)
        return end


_FRAME = re.compile(r'^\s*File "([^"]+)", line (\d+) in', re.M)


def stack_frames(stack: str) -> list[tuple[str, int]]:
    """The files and rows of the last stack that faulthandler wrote, innermost first."""
    parts = re.split(r"^(?:Timeout|Fatal Python error|Current thread|Thread 0x)", stack, flags=re.M)
    for part in reversed(parts):
        frames = [(file, int(row)) for file, row in _FRAME.findall(part)]
        if frames:
            return frames
    return []


def _innermost_user(frames: Sequence[tuple[str, int]], targets: Sequence[Target]) -> dict[str, Any] | None:
    own = [str(Path(target.file).parent) for target in targets if target.file]
    for file, row in frames:
        real = os.path.realpath(file)
        installed = "site-packages" in real or re.search(r"[\\/]lib[\\/]python3", real) or real.startswith(str(_WORKER))
        if Path(file).is_absolute() and (any(real.startswith(folder) for folder in own) or not installed):
            return line_site(real, row)
    return None


def line_site(file: str, row: int) -> dict[str, Any]:
    """A whole line as a place."""
    try:
        text = Path(file).read_text(encoding="utf-8", errors="replace").splitlines()[row - 1]
    except (OSError, IndexError):
        text = ""
    indent = len(text) - len(text.lstrip())
    end = max(len(text.rstrip()), indent + 1) + 1
    return {"file": file, "row": row, "column": indent + 1, "end_row": row, "end_column": end}


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def resident_bytes(pid: int) -> int:
    """The memory a process holds; 0 where the system doesn't tell without help."""
    try:
        with Path(f"/proc/{pid}/statm").open(encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError, AttributeError):
        return 0


def end_process_group(process: subprocess.Popen[bytes]) -> None:
    """End a worker and everything it started."""
    if sys.platform == "win32":
        with contextlib.suppress(OSError):
            process.kill()
    else:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(Exception):
        process.wait(timeout=10)
    if process.stdout is not None:
        with contextlib.suppress(Exception):
            process.stdout.close()


def human(size: float) -> str:
    """Bytes for people: 24.0 GB."""
    for unit in ("B", "KB", "MB", "GB"):
        if abs(size) < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"
