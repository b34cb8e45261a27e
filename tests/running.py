"""Runs programs on real torch, each in a process of its own, with torch imported once for all.

As a script it is the server: it imports torch, then forks for every path that comes on standard input and answers with
one line of JSON. ``Server`` starts it and asks. Python's own fork is cheap, torch's import is not.
"""

from __future__ import annotations

import builtins
import contextlib
import importlib
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import types
import warnings
from pathlib import Path
from typing import Any

LIMIT = 20.0
"""Seconds that a program may take."""


class Server:
    """A process that has torch imported and runs programs for whoever asks."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )

    def run(self, program: Path, truths: list[str]) -> dict[str, Any]:
        """Run a program to its end.

        The answer has ``raised`` (names of the exception's classes, empty if none), ``message``, ``trace``,
        ``warnings`` (pairs of class names and text), and ``truths``: what each expression was afterwards.
        """
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps({"program": str(program), "truths": truths}) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "the process that runs programs has died"
        return json.loads(answer)  # type: ignore[no-any-return]

    def close(self) -> None:
        """Let the process end."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


def _serve() -> None:
    import torch

    with contextlib.suppress(ImportError):
        import torch.multiprocessing
        import torch.onnx
        import torch.utils.checkpoint
        import torch.utils.data
    torch.set_num_threads(1)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        answers.write(json.dumps(_in_child(json.loads(line))) + "\n")
        answers.flush()


def _in_child(request: dict[str, Any]) -> dict[str, Any]:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os.setpgid(0, 0)
        with os.fdopen(writing, "w", encoding="utf-8") as pipe, tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            json.dump(_run(Path(request["program"]), request["truths"]), pipe)
            pipe.flush()
        os._exit(0)
    os.close(writing)
    return _answer_of(child, reading)


def _answer_of(child: int, reading: int) -> dict[str, Any]:
    deadline = time.monotonic() + LIMIT
    os.set_blocking(reading, False)
    received = b""
    while time.monotonic() < deadline:
        try:
            part = os.read(reading, 1 << 16)
        except BlockingIOError:
            time.sleep(0.002)
            continue
        if not part:
            break
        received += part
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(reading)
    try:
        return json.loads(received)  # type: ignore[no-any-return]
    except ValueError:
        late = time.monotonic() >= deadline
        reason = f"took longer than {LIMIT:.0f} seconds" if late else "ended without an answer"
        return {"raised": ["ProcessLost"], "message": reason, "trace": reason, "warnings": [], "truths": []}


def _run(program: Path, truths: list[str]) -> dict[str, Any]:
    main = _main_module(program)
    raised: BaseException | None = None
    printed = io.StringIO()
    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(printed):
        warnings.simplefilter("always")
        try:
            exec(compile(program.read_bytes(), str(program), "exec"), main.__dict__)
        except SystemExit as stop:
            raised = None if stop.code in (None, 0) else stop
        except BaseException as error:
            raised = error
        values = [_value(expression, main.__dict__) for expression in truths]
    return {
        "raised": [cls.__name__ for cls in type(raised).__mro__] if raised else [],
        "message": str(raised) if raised else "",
        "trace": _trace(raised) if raised else "",
        "warnings": [[[c.__name__ for c in w.category.__mro__], str(w.message)] for w in caught],
        "truths": values,
    }


def _main_module(program: Path) -> types.ModuleType:
    """A fresh ``__main__`` for a program, which can import its neighbours, also relatively from inside a package."""
    root, package = program.parent, ""
    while (root / "__init__.py").exists():
        package = f"{root.name}.{package}" if package else root.name
        root = root.parent
    sys.path.insert(0, str(root))
    if package:
        importlib.import_module(package)
    main = types.ModuleType("__main__")
    main.__dict__.update(__file__=str(program), __builtins__=builtins, __package__=package or None)
    sys.argv = [str(program)]
    sys.modules["__main__"] = main
    return main


def _value(expression: str, namespace: dict[str, Any]) -> str:
    try:
        return "true" if eval(expression, namespace) else "false"
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _trace(error: BaseException) -> str:
    import traceback

    return "".join(traceback.format_exception(type(error), error, error.__traceback__))


if __name__ == "__main__":
    _serve()
