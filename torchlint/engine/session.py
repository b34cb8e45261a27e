"""What one process does in a run: files in, outcomes out, in bounded memory.

Trees and modules stay here and are dropped; what comes out is small.
"""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from torchlint.engine.cache import Consulted, Result, digest_of, stamp_of
from torchlint.engine.one import CHECK_FAILED, Linter, lint_bytes, make_project
from torchlint.engine.outcome import Outcome, Work
from torchlint.source.discovery import Problem
from torchlint.source.file import SourceFile, names_torch, read_bytes_and_status, source_from_bytes

if TYPE_CHECKING:
    from torchlint.config import Settings
    from torchlint.finding import Finding
    from torchlint.program.module import Module
    from torchlint.source.discovery import Found

COLLECTED_EVERY = 50_000_000
"""Bytes of linted source after which garbage in cycles is looked for even where much is kept."""


class Session:
    """Lints files of any number of configurations, one after another."""

    def __init__(self, settings: Iterable[Settings], work: Work) -> None:
        self.work = work
        self.linters: dict[Settings, Linter] = {}
        self._read: dict[str, Consulted] = {}
        self._told: dict[Settings, int] = {}
        self._since_collected = 0
        for each in settings:
            self.linters[each] = Linter(each, make_project(each, self._read_source), noqa=work.noqa)

    def lint(self, files: Sequence[Found]) -> list[Outcome]:
        """The outcome of each file."""
        return [self._lint_one(found) for found in files]

    def close(self) -> None:
        """Free everything that was kept for further files."""
        for linter in self.linters.values():
            linter.project.close()

    def new_listings(self) -> Iterator[tuple[Settings, dict[str, frozenset[str]]]]:
        """The folders that imports were looked up in since this was last asked."""
        for settings, linter in self.linters.items():
            listings = linter.project.listings
            told = self._told.get(settings, 0)
            if len(listings) > told:
                yield settings, dict(list(listings.items())[told:])
                self._told[settings] = len(listings)

    def _lint_one(self, found: Found) -> Outcome:
        try:
            data, status = read_bytes_and_status(found.path)
        except FileNotFoundError:  # gone since it was found
            return Outcome([], taken=False)
        except OSError as error:
            return Outcome([], problem=Problem(found.filename, error.strerror or str(error)))
        except MemoryError:
            return Outcome([], problem=Problem(found.filename, "is too large to be read"))
        consulted = None
        if self.work.remember or self.work.shard:
            consulted = Consulted(digest_of(data), stamp_of(status))
            self._read[found.path] = consulted
            if self.work.shard and not self.work.shard.takes(consulted.digest):
                return Outcome([], taken=False)
        if not names_torch(data):
            return Outcome([], result=Result(consulted) if consulted else None)
        linter = self.linters[found.settings]
        findings = lint_bytes(linter, data, found.path, found.filename)
        outcome = Outcome(findings)
        if self.work.remember and consulted and not any(finding.code == CHECK_FAILED for finding in findings):
            outcome = Outcome(findings, result=self._result(linter, consulted, found.path, findings))
        self._since_collected += len(data)
        if linter.done() or self._since_collected > COLLECTED_EVERY:
            self._since_collected = 0
            gc.collect()
        return outcome

    def _result(self, linter: Linter, consulted: Consulted, path: str, findings: list[Finding]) -> Result:
        if linter.module is None:
            return Result(consulted, findings)
        needs = sorted(linter.project.dependencies(path))
        gone = Consulted("", (0, 0, 0))
        return Result(
            consulted,
            findings,
            [(other, self._read.get(other, gone)) for other in needs],
            imported_names(linter.module),
        )

    def _read_source(self, path: str) -> SourceFile:
        """Read another file that one of the linted files leads to."""
        data, status = read_bytes_and_status(path)
        if self.work.remember:
            self._read[path] = Consulted(digest_of(data), stamp_of(status))
        return source_from_bytes(data, path, path)


def imported_names(module: Module) -> set[str]:
    """All identifiers in a file's import statements: a module that has none of them as its name means nothing to it."""
    names: set[str] = set()
    for scope in module.scope.walk():
        for node in scope.of_type(ast.Import):
            for alias in node.names:  # type: ignore[attr-defined]
                names.update(alias.name.split("."))
        for node in scope.of_type(ast.ImportFrom):
            names.update((node.module or "").split("."))  # type: ignore[attr-defined]
            names.update(alias.name for alias in node.names)  # type: ignore[attr-defined]
    return names - {"", "*"}
