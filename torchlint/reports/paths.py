"""How formats that a server reads name a file: from the root of the repository, with forward slashes."""

from __future__ import annotations

import os
from pathlib import Path


def relative(filename: str) -> str:
    """The path from the project's root (GitLab says where that is, elsewhere it's the current folder), or absolute."""
    root = Path(os.environ.get("CI_PROJECT_DIR") or Path.cwd())
    file = Path(filename).absolute()
    try:
        return file.relative_to(root).as_posix()
    except ValueError:
        return file.as_posix()
