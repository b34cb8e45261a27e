"""A run over many files: found, looked up in the cache, linted over several processes, and put in order.

What is found doesn't depend on the number of processes, the order of the files, or what the cache holds.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from torchlint.engine.outcome import Outcome, Work
from torchlint.engine.processes import Crashed, Processes
from torchlint.source.discovery import Discovery, Found, Problem, discover

if TYPE_CHECKING:
    from torchlint.config import Settings
    from torchlint.engine.cache import Cache
    from torchlint.engine.session import Session
    from torchlint.engine.shard import Shard
    from torchlint.finding import Finding

MIN_FILES_A_PROCESS = 16
"""Fewer files than this are not worth another process."""

_LARGEST_CHUNK = 64
_SMALLEST_CHUNK = 4

Listings = list[tuple["Settings", dict[str, frozenset[str]]]]


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How to run: ``jobs`` processes (None: one for each core, if there is enough to do), with the cache or not, only
    one shard of the files, ``noqa`` False to report what comments suppress.

    ``caches`` are kept by the caller over several runs of one process. ``progress`` is told how many files of how many
    are done. ``tidy`` False leaves memory as it is, which is quicker where the process ends soon after.
    """

    jobs: int | None = None
    cache: bool = True
    shard: Shard | None = None
    noqa: bool = True
    caches: Caches | None = None
    progress: Callable[[int, int], None] | None = None
    tidy: bool = True


@dataclass(slots=True)
class RunResult:
    """What a run has to say. ``files`` are those it was about; ``problems`` what it couldn't look at."""

    findings: list[Finding] = field(default_factory=list)
    files: list[Found] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    files_from_cache: int = 0

    @property
    def files_checked(self) -> int:
        """How many files the findings are about."""
        return len(self.files)


class Caches:
    """The caches of the configurations of a run; ``stored`` False: only in memory."""

    def __init__(self, *, noqa: bool = True, stored: bool = True) -> None:
        self._noqa = noqa
        self._stored = stored
        self._of: dict[Settings, Cache] = {}

    def of(self, settings: Settings) -> Cache:
        """The cache of one configuration."""
        cache = self._of.get(settings)
        if cache is None:
            from torchlint.engine.cache import Cache

            cache = self._of[settings] = Cache(settings, noqa=self._noqa, stored=self._stored)
        return cache

    def look_again(self) -> None:
        """Files may have changed: before another run."""
        for cache in self._of.values():
            cache.look_again()

    def save(self) -> None:
        """Write what is new to disk."""
        for cache in self._of.values():
            cache.save()


def run(paths: Sequence[str], settings_for: Callable[[str], Settings], options: RunOptions | None = None) -> RunResult:
    """Lint files and folders. ``settings_for`` gives the settings that count for a file or folder.

    Raises ConfigError for a configuration that names what doesn't exist.
    """
    discovery = discover(paths, settings_for)
    if not discovery.files:
        from torchlint.engine.one import Linter

        for path in paths:  # nothing will come of it, but a mistake in the configuration is told all the same
            Linter(settings_for(path))
    return run_over(discovery, options or RunOptions())


def run_over(discovery: Discovery, options: RunOptions) -> RunResult:
    """Lint the files that were found."""
    files = discovery.files
    result = RunResult(problems=list(discovery.problems))
    caches = options.caches or (Caches(noqa=options.noqa) if options.cache else None)
    outcomes: list[Outcome | None] = [None] * len(files)
    if caches is not None:
        for index, found in enumerate(files):
            outcomes[index] = _known(caches.of(found.settings), found, options.shard)
        result.files_from_cache = len(files) - outcomes.count(None)
    missing = [index for index, outcome in enumerate(outcomes) if outcome is None]
    if missing:
        _lint(files, missing, outcomes, caches, options)
    if caches is not None:
        caches.save()
    for found, outcome in zip(files, outcomes, strict=True):
        if outcome is None or not outcome.taken:
            continue
        if outcome.problem is not None:
            result.problems.append(outcome.problem)
        else:
            result.files.append(found)
            result.findings += outcome.findings
    result.findings.sort(key=lambda finding: finding.sort_key)
    return result


def _known(cache: Cache, found: Found, shard: Shard | None) -> Outcome | None:
    """What the cache knows of a file."""
    hit = cache.look_up(found.path, found.filename)
    if hit is None:
        return None
    if shard is not None and not shard.takes(hit.digest):
        return Outcome([], taken=False)
    return Outcome(hit.findings)


def _lint(
    files: Sequence[Found],
    missing: Sequence[int],
    outcomes: list[Outcome | None],
    caches: Caches | None,
    options: RunOptions,
) -> None:
    """Lint the files with these indices and set their outcomes."""
    from torchlint.engine.session import Session

    work = Work(options.noqa, options.shard, remember=caches is not None)
    start = _Start(files, work, tuple(dict.fromkeys(files[index].settings for index in missing)))
    session = Session(start.settings, work)
    done = 0
    with _garbage_kept(options.tidy):
        for indices, answer in _answers(start, session, missing, options.jobs):
            lookups: Listings = []
            if isinstance(answer, Crashed):
                found = files[indices[0]]
                answered = [Outcome(session.linters[found.settings].crashed(found.path, found.filename))]
            else:
                answered, lookups = answer
            for index, outcome in zip(indices, answered, strict=True):
                if caches is not None and outcome.result is not None:
                    caches.of(files[index].settings).store(files[index].path, outcome.result)
                outcomes[index] = outcome._replace(result=None)
            if caches is not None:
                for settings, listings in lookups:
                    caches.of(settings).consulted_folders(listings)
            done += len(indices)
            if options.progress is not None:
                options.progress(done, len(missing))
        if options.tidy:
            session.close()


_Answer = tuple[list[Outcome], Listings]


@dataclass(frozen=True, slots=True)
class _Start:
    """Makes the function that a process of the run works with; goes to the process itself."""

    files: Sequence[Found]
    work: Work
    settings: tuple[Settings, ...]

    def __call__(self) -> Callable[[Sequence[int]], _Answer]:
        from torchlint.engine.session import Session

        gc.disable()
        gc.freeze()
        return partial(_lint_chunk, Session(self.settings, self.work), self.files)


def _lint_chunk(session: Session, files: Sequence[Found], indices: Sequence[int]) -> _Answer:
    return session.lint([files[index] for index in indices]), list(session.new_listings())


def _answers(
    start: _Start, session: Session, missing: Sequence[int], jobs: int | None
) -> Iterator[tuple[Sequence[int], _Answer | Crashed]]:
    jobs = min(jobs or _cores(), len(missing) // MIN_FILES_A_PROCESS)
    chunks = list(_chunks(start.files, missing, max(jobs, 1)))
    if jobs < 2:
        for chunk in chunks:
            yield chunk, _lint_chunk(session, start.files, chunk)
        return
    for _, chunk, answer in Processes[int, _Answer](jobs, start).map(chunks):
        yield chunk, answer


def _chunks(files: Sequence[Found], missing: Sequence[int], jobs: int) -> Iterator[Sequence[int]]:
    """The work in pieces: neighbours together, because they import each other, and smaller ones towards the end."""
    at = 0
    while at < len(missing):
        size = min(max((len(missing) - at) // (jobs * 4), _SMALLEST_CHUNK), _LARGEST_CHUNK)
        end = at + size
        while end < min(len(missing), at + 2 * size) and _folder(files[missing[end]]) == _folder(
            files[missing[end - 1]]
        ):
            end += 1
        yield missing[at:end]
        at = end


def _folder(found: Found) -> str:
    return found.path.rpartition(os.sep)[0]


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def _garbage_kept(tidy: bool) -> Iterator[None]:
    """Without the collector's walks over growing trees, which cost as much as parsing; sessions collect themselves.

    If not ``tidy``, what is left is kept from the collector for good: Python would walk it all once more at its end.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    gc.freeze()
    try:
        yield
    finally:
        if tidy:
            gc.unfreeze()
        else:
            gc.freeze()
        if was_enabled:
            gc.enable()
