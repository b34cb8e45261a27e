"""Delete torchlint's caches: every .torchlint_cache below a folder, and the one its configuration names."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from torchlint.config import load_settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``torchlint clean``."""
    parser.add_argument("folders", nargs="*", metavar="FOLDERS", help="where to look; default: the current folder")
    parser.add_argument("-q", "--quiet", action="store_true", help="say nothing of what is deleted")


def run(args: argparse.Namespace) -> int:
    """Delete; exit code 2 if something could not be."""
    code = 0
    for folder in sorted({cache for start in args.folders or ["."] for cache in _caches(start)}):
        try:
            shutil.rmtree(folder)
        except OSError as error:
            print(f"torchlint: {folder}: {error.strerror}", file=sys.stderr)
            code = 2
        else:
            if not args.quiet:
                print(f"removed {folder}", file=sys.stderr)
    return code


def _caches(start: str) -> Iterator[Path]:
    """Folders that torchlint made for its cache, and nothing else, whatever a configuration calls a cache."""
    from torchlint.engine.cache import cache_folder, is_cache_folder

    candidates = [Path(cache_folder(load_settings(start)))]
    for parent, folders, _ in os.walk(start):
        if ".torchlint_cache" in folders:
            candidates.append(Path(parent).absolute() / ".torchlint_cache")
            folders.remove(".torchlint_cache")
    yield from (folder for folder in candidates if is_cache_folder(str(folder)))
