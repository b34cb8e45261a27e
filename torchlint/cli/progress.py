"""A progress bar on standard error, for runs that take long enough to wonder."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_PATIENCE = 1.0
"""Seconds before the bar appears: most runs are over by then, and rich need not even be imported."""


class ProgressBar:
    """Call it with how many files are done, and of how many. It draws nothing unless standard error is a terminal."""

    def __init__(self, *, quiet: bool) -> None:
        self._wanted = not quiet and sys.stderr.isatty()
        self._started = time.monotonic()
        self._progress: Progress | None = None
        self._task: TaskID | None = None

    def __call__(self, done: int, total: int) -> None:
        """Draw, or not yet."""
        if not self._wanted or (self._progress is None and time.monotonic() - self._started < _PATIENCE):
            return
        if self._progress is None or self._task is None:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (TextColumn("checking"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            self._progress = Progress(*columns, console=Console(stderr=True), transient=True)
            self._task = self._progress.add_task("", total=total)
            self._progress.start()
        self._progress.update(self._task, completed=done, total=total)

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.stop()
