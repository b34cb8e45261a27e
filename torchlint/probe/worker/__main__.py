"""Start of the worker: ``python .../worker FOLDER``, where the folder holds request.json and takes the results.

The package is loaded under a private name and its folder is taken off the import path, so that no module of the
project's can be shadowed by one of the worker's.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys

_NAME = "_torchlint_probe_worker"


def main() -> None:
    """Load the package this file belongs to and serve one request."""
    own = os.path.dirname(os.path.realpath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.realpath(entry or os.getcwd()) != own or entry == ""]
    spec = importlib.util.spec_from_file_location(
        _NAME, os.path.join(own, "__init__.py"), submodule_search_locations=[own]
    )
    if spec is None or spec.loader is None:
        raise SystemExit("torchlint's worker is incomplete")
    package = importlib.util.module_from_spec(spec)
    sys.modules[_NAME] = package
    spec.loader.exec_module(package)
    folder = sys.argv[1]
    importlib.import_module(f"{_NAME}.start").serve(folder)


if __name__ == "__main__":
    main()
