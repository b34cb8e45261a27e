"""The flake8 plugin: flake8 parses and filters, torchlint says what it finds, with all it knows of the project.

flake8's own ``select``, ``ignore``, ``per-file-ignores`` and ``# noqa`` apply to TL codes as to any other. What flake8
has no option for (``target-torch``, ``plugins``, ``src``) comes from the project's torchlint configuration, and so
does which rules run at all. Rules of severity info also run if flake8 is asked for them by more than ``TL``.
"""

from __future__ import annotations

import argparse
import ast
import gc
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from torchlint import __version__
from torchlint.config import ConfigError, Configuration, RuleSelection
from torchlint.source.file import TORCH_WORDS, source_from_text

if TYPE_CHECKING:
    from torchlint.config import Settings
    from torchlint.engine.one import Linter
    from torchlint.finding import Finding

_WORDS = tuple(word.decode() for word in TORCH_WORDS)


class _Garbage:
    """Keeps Python's collector from walking over what torchlint knows of the project again and again.

    With some hundred thousand nodes of syntax trees alive, its walks would cost more than all checks together. So what
    is alive after a file was linted is set aside, and looked through only once in a while, which bounds memory:
    trees that pyflakes has tied into circles are only freed then.
    """

    INTERVAL = 1_500_000
    """Characters of source between two full collections; a tree takes some 50 bytes for each."""

    def __init__(self) -> None:
        self._since = 0

    @contextmanager
    def kept(self, size: int, linters: Collection[Linter]) -> Iterator[None]:
        """While a file of ``size`` characters is linted nothing is collected."""
        enabled = gc.isenabled()
        gc.disable()
        try:
            yield
        finally:
            self._since += size
            if self._since > self.INTERVAL:
                self._since = 0
                for linter in linters:
                    linter.project.close()
                gc.unfreeze()
                gc.collect()
            gc.freeze()
            if enabled:
                gc.enable()


class Plugin:
    """flake8 makes one of these for every file, with the tree that it has parsed anyway."""

    name = "torchlint"
    version = __version__

    _asked_for: ClassVar[tuple[str, ...]] = ()
    _configuration: ClassVar[Configuration] = Configuration()
    _linters: ClassVar[dict[Settings, Linter]] = {}
    _garbage: ClassVar[_Garbage] = _Garbage()

    def __init__(self, tree: ast.Module, lines: Sequence[str], filename: str) -> None:
        self.tree = tree
        self.lines = lines
        self.filename = filename

    @classmethod
    def add_options(cls, option_manager: Any) -> None:
        """flake8's hook for a plugin's own options."""
        option_manager.add_option(
            "--torchlint-config",
            metavar="FILE",
            parse_from_config=True,
            help="torchlint's configuration file (default: the nearest torchlint.toml or pyproject.toml of each file)",
        )

    @classmethod
    def parse_options(cls, options: argparse.Namespace) -> None:
        """flake8's hook for reading its options; runs again in each worker process that doesn't inherit memory."""
        said = [*(options.select or ()), *(options.extend_select or ())]
        cls._asked_for = tuple(code for code in said if code.startswith("TL") and code != "TL")
        cls._linters = {}
        cls._configuration = Configuration(config=[options.torchlint_config] if options.torchlint_config else [])
        try:
            cls._configuration.settings_for(Path.cwd())
        except ConfigError as error:
            from flake8.exceptions import ExecutionError  # type: ignore[import-untyped]

            raise ExecutionError(f"torchlint: {error}") from error

    def run(self) -> Iterator[tuple[int, int, str, type[Any]]]:
        """Every finding as flake8 wants it: row, 0-based column, text that begins with the code."""
        # Most files of most projects don't name torch: for them no check is even imported.
        if not any(word in line for line in self.lines for word in _WORDS):
            return
        from torchlint.reports.text import printable

        try:
            findings = self._findings()
        except ConfigError as error:
            # Of the current folder's configuration parse_options has told; this is one further down.
            yield 1, 0, f"TL003 this file was not checked: {printable(str(error))}", type(self)
            return
        for finding in findings:
            text = f"{finding.code} {printable(finding.message)}"
            yield finding.location.row, finding.location.column - 1, text, type(self)

    def _findings(self) -> list[Finding]:
        path = str(Path(self.filename).resolve())
        text = "".join(self.lines)
        with self._garbage.kept(len(text), self._linters.values()):
            linter = self._linter(path)
            findings = linter.lint(source_from_text(text, self.filename, path, self.tree))
            linter.done()
            return findings

    @classmethod
    def _linter(cls, path: str) -> Linter:
        settings = cls._configuration.settings_for(path)
        linter = cls._linters.get(settings)
        if linter is None:
            from torchlint.engine.one import Linter

            linter = cls._linters[settings] = Linter(cls._with_asked_for(settings), noqa=False)
        return linter

    @classmethod
    def _with_asked_for(cls, settings: Settings) -> Settings:
        """The settings, and on top the rules of severity info that flake8 was asked for."""
        if not cls._asked_for:
            return settings
        from dataclasses import replace

        from torchlint.engine.registry import checks_for
        from torchlint.finding import Severity

        info = (check.code for check in checks_for(settings) if check.severity is Severity.INFO)
        asked = tuple(code for code in info if code.startswith(cls._asked_for))
        return replace(settings, selection=(*settings.selection, RuleSelection(extend_select=asked)))
