"""torchlint from Python: findings of a text, or of files and folders, as values.

    from torchlint import lint_paths
    for finding in lint_paths(["src"]):
        print(finding.filename, finding.location.row, finding.code, finding.message)

Nothing is printed and nothing of the linted code is run. Findings are frozen and can be pickled.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from torchlint.config import ConfigError, Configuration, Settings, load_settings
from torchlint.finding import Finding


def lint_source(text: str, filename: str | None = None, settings: Settings | None = None) -> list[Finding]:
    """The findings of a program given as text (for a name that ends in ``.ipynb``, a notebook's JSON), in order.

    ``filename`` is where the text stands or would stand: other files of the project are found from there, and so is
    the configuration unless ``settings`` are given. Raises ConfigError.
    """
    from torchlint.engine.one import lint_text

    path = str(Path(filename).absolute()) if filename else ""
    if settings is None:
        settings = load_settings(path) if path else load_settings(isolated=True)
    return lint_text(text, settings, filename or "-", path)


def lint_paths(
    paths: Iterable[str | os.PathLike[str]], settings: Settings | None = None, *, jobs: int | None = 1
) -> list[Finding]:
    """The findings of files and folders, in order: by file name, then by place.

    Each file has the settings of its own nearest configuration file, unless ``settings`` are given for all. ``jobs``
    is the number of processes, None for one a core. The cache is neither read nor written. Raises OSError for a path
    that can't be read and ConfigError for a wrong configuration.
    """
    from torchlint.engine.many import RunOptions, run

    settings_for = Configuration().settings_for if settings is None else lambda path: settings
    result = run([os.fspath(path) for path in paths], settings_for, RunOptions(jobs=jobs, cache=False))
    if result.problems:
        raise OSError("; ".join(map(str, result.problems)))
    return result.findings


__all__ = ["ConfigError", "lint_paths", "lint_source"]
