"""Where the packages are that the linted project imports: nothing there is linted, but its classes may be bases."""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Sequence

_PACKAGES = ("lib/python3.*/site-packages", "lib64/python3.*/site-packages", "Lib/site-packages")


def installed_packages(root: str) -> Sequence[str]:
    """The folders with the packages of a project's environment.

    That is the activated virtual environment, or one named ``.venv`` or ``venv`` in the project's folder, or the one
    that torchlint itself is installed in.
    """
    for folder in (os.environ.get("VIRTUAL_ENV"), os.path.join(root, ".venv"), os.path.join(root, "venv")):
        if folder and os.path.isfile(os.path.join(folder, "pyvenv.cfg")):
            pattern = glob.escape(os.path.abspath(folder))
            found = [path for packages in _PACKAGES for path in sorted(glob.glob(f"{pattern}/{packages}"))]
            if found:
                return found
    return [path for path in sys.path if os.path.basename(path) in ("site-packages", "dist-packages")]
