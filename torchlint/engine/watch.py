"""``--watch``: a run after every change, of which only what changed is linted again.

The files are looked at over and over; the system's own notifications would need a library for each system, and are
silent on network file systems.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from torchlint.config import ConfigError
from torchlint.engine.many import Caches, RunOptions, RunResult, run_over
from torchlint.source.discovery import Discovery, discover

if TYPE_CHECKING:
    from torchlint.config import Settings

INTERVAL = 0.3
_IDLE_SHARE = 10  # looking takes at most a tenth of the time

_Stamps = dict[str, tuple[int, int]]


def watch(
    paths: Sequence[str],
    configure: Callable[[], Callable[[str], Settings]],
    options: RunOptions,
    show: Callable[[RunResult | ConfigError, Sequence[str]], object],
) -> None:
    """Run, ``show`` the result with the names of the files that have changed, and so on until interrupted.

    ``configure`` reads the configuration anew and gives what ``run`` takes; a mistake in it is shown, and the next
    change awaited.
    """
    caches = Caches(noqa=options.noqa, stored=options.cache)
    options = replace(options, caches=caches)
    before: _Stamps | None = None
    try:
        while True:
            started = time.monotonic()
            discovery, stamps, error = _look(paths, configure)
            if stamps != before:
                changed = [] if before is None else sorted(_changed(before, stamps))
                before = stamps
                if error is None:
                    caches.look_again()
                    try:
                        show(run_over(discovery, options), changed)
                    except ConfigError as mistake:
                        show(mistake, changed)
                else:
                    show(error, changed)
                started = time.monotonic()
            time.sleep(max(INTERVAL, _IDLE_SHARE * (time.monotonic() - started)))
    except KeyboardInterrupt:
        return


def _look(
    paths: Sequence[str], configure: Callable[[], Callable[[str], Settings]]
) -> tuple[Discovery, _Stamps, ConfigError | None]:
    """The files there are now, with what shows whether they have changed; their configurations among them."""
    try:
        discovery = discover(paths, configure())
    except ConfigError as error:
        return Discovery(), {str(error): (0, 0)}, error
    stamps: _Stamps = {problem.path: (0, 0) for problem in discovery.problems}
    for found in discovery.files:
        _add_stamp(stamps, found.path, found.filename)
    for config in {found.settings.config_file for found in discovery.files}:
        if config is not None:
            _add_stamp(stamps, config, config)
    return discovery, stamps, None


def _add_stamp(stamps: _Stamps, path: str, name: str) -> None:
    try:
        status = os.stat(path)
    except OSError:
        return
    stamps[name] = (status.st_mtime_ns, status.st_size)


def _changed(before: _Stamps, now: _Stamps) -> set[str]:
    return {name for name in before.keys() | now.keys() if before.get(name) != now.get(name)}
