"""Work over several processes: each takes the next chunk when it is done with one.

A process that dies (the operating system took its memory, or Python itself crashed) takes only its chunk with it: the
chunk is done again piece by piece, and the piece that kills again is told to the caller.
"""

from __future__ import annotations

import signal
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import BaseContext
    from multiprocessing.process import BaseProcess

Item = TypeVar("Item")
Answer = TypeVar("Answer")
Start = Callable[[], Callable[[Sequence[Item]], Answer]]

_Chunk = tuple[int, Sequence[Item]]


class Crashed(Exception):
    """A single item kills the process that works on it."""


class Processes(Generic[Item, Answer]):
    """``jobs`` processes, each of which calls ``start`` once and what that returns for every chunk."""

    def __init__(self, jobs: int, start: Start[Item, Answer]) -> None:
        import multiprocessing

        # Forked processes have all checks loaded already. On macOS the system's libraries don't survive a fork.
        forks = "fork" in multiprocessing.get_all_start_methods() and sys.platform != "darwin"
        self._context: BaseContext = multiprocessing.get_context("fork" if forks else "spawn")
        self._forks = forks
        self._jobs = jobs
        self._start = start
        self._workers: dict[Connection[Any, Any], tuple[BaseProcess, _Chunk[Item] | None]] = {}

    def map(self, chunks: Sequence[Sequence[Item]]) -> Iterator[tuple[int, Sequence[Item], Answer | Crashed]]:
        """Chunks and their answers, as they come; the number is the chunk's index. A chunk that was split comes in
        pieces, in order."""
        from multiprocessing.connection import wait

        pending: deque[_Chunk[Item]] = deque(enumerate(chunks))
        try:
            for _ in range(min(self._jobs, len(chunks))):
                self._give(self._new_worker(), pending)
            while self._workers:
                for ready in wait(list(self._workers)):
                    connection: Connection[Any, Any] = ready  # type: ignore[assignment]
                    _, chunk = self._workers[connection]
                    assert chunk is not None
                    try:
                        succeeded, answer = connection.recv()
                    except (EOFError, OSError):
                        self._forget(connection)
                        if len(chunk[1]) > 1:
                            pending.extendleft((chunk[0], [item]) for item in reversed(chunk[1]))
                        else:
                            yield chunk[0], chunk[1], Crashed()
                        if pending:
                            self._give(self._new_worker(), pending)
                        continue
                    if not succeeded:
                        raise answer
                    self._give(connection, pending)
                    yield chunk[0], chunk[1], answer
        finally:
            for process, _ in self._workers.values():
                process.terminate()
            for connection in list(self._workers):
                self._forget(connection)

    def _new_worker(self) -> Connection[Any, Any]:
        ours, theirs = self._context.Pipe()
        inherited = [ours, *self._workers] if self._forks else []
        process = self._context.Process(  # type: ignore[attr-defined]
            target=_work, args=(theirs, inherited, self._start), daemon=True
        )
        with _interrupts_held():
            process.start()
        theirs.close()
        self._workers[ours] = (process, None)
        return ours

    def _give(self, connection: Connection[Any, Any], pending: deque[_Chunk[Item]]) -> None:
        """Hand the next chunk to an idle process, or let it go if there is none."""
        process, _ = self._workers[connection]
        if not pending:
            self._forget(connection)
            return
        chunk = pending.popleft()
        self._workers[connection] = (process, chunk)
        try:
            connection.send(chunk[1])
        except OSError:  # it has died since: reading from it will tell
            return

    def _forget(self, connection: Connection[Any, Any]) -> None:
        process, _ = self._workers.pop(connection)
        connection.close()
        process.join()


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Without Ctrl-C, which a new process would take for its own before it can say that it won't have it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(connection: Connection[Any, Any], inherited: Sequence[Connection[Any, Any]], start: Start[Any, Any]) -> None:
    """A process: chunks in, answers out, until the other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends the run
    for other in inherited:
        other.close()
    try:
        function = start()
        while True:
            connection.send((True, function(connection.recv())))
    except (EOFError, BrokenPipeError):
        return
    except Exception as error:
        connection.send((False, error))
