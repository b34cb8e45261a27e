"""Before torch is imported: limits, crash reports, a way to die with the launcher. Then the session."""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import platform
import sys
import warnings
from typing import IO, Any, NoReturn

from .channel import Channel


def serve(folder: str) -> None:
    """Read the request in ``folder``, do what it asks, write the results there."""
    with open(os.path.join(folder, "request.json"), encoding="utf-8") as file:
        request: dict[str, Any] = json.load(file)
    channel = Channel(os.path.join(folder, "results.jsonl"))
    # Kept open for the life of the process: faulthandler writes to its descriptor when everything else is lost.
    crashes = open(os.path.join(folder, "stack.txt"), "a", encoding="utf-8")  # noqa: SIM115
    faulthandler.enable(file=crashes, all_threads=False)
    _tell_exits(crashes)
    _die_with_parent()
    _limit_memory(request.get("memory_limit"))
    sys.argv = [request.get("argv0", "probe")]
    for entry in reversed(request.get("path", [])):
        if entry not in sys.path:
            sys.path.insert(0, entry)
    warnings.simplefilter("ignore")
    os.environ.setdefault("KMP_DUPLICATE_LIB_OK", "TRUE")
    try:
        import torch
    except Exception as error:
        channel.send("no_torch", python=sys.executable, error=f"{type(error).__name__}: {error}")
        return
    channel.send(
        "hello",
        python=platform.python_version(),
        executable=sys.executable,
        torch=torch.__version__,
        cuda=torch.cuda.device_count() if torch.cuda.is_available() else 0,
    )
    from .session import Session

    Session(request, channel, crashes).run()
    channel.send("done")


def _tell_exits(crashes: IO[str]) -> None:
    """Let ``os._exit`` leave the stack it was called from, as a crash does."""
    leave, own = os._exit, os.getpid()

    def noting(status: int) -> NoReturn:
        if os.getpid() == own:
            crashes.write("Current thread\n")
            crashes.flush()
            faulthandler.dump_traceback(file=crashes, all_threads=False)
        leave(status)

    os._exit = noting


def _die_with_parent() -> None:
    """On Linux the kernel ends this process when its launcher is gone, however that ended."""
    if not sys.platform.startswith("linux"):
        return
    with contextlib.suppress(Exception):
        import ctypes
        import signal

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def _limit_memory(limit: int | None) -> None:
    """Make allocations beyond the limit fail at the user's line. The launcher watches resident memory besides."""
    if not limit or sys.platform == "win32":
        return
    with contextlib.suppress(Exception):
        import resource

        # Address space isn't limited: CUDA and OpenMP reserve much of it and use little.
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
