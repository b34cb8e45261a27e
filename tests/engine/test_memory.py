"""Memory stays flat: what a file was made into is gone when the next one comes, without the cyclic collector."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

from torchlint.config import RuleSelection, Settings
from torchlint.engine.many import RunOptions, run
from torchlint.engine.one import Linter
from torchlint.source.file import read_source

ROOT = Path(__file__).parents[2]
PROGRAMS = sorted((ROOT / "fixtures").rglob("*.py"))


def test_linting_leaves_no_cyclic_garbage() -> None:
    """A run switches the collector off; a reference cycle in a check or in what it asks would keep whole trees."""
    settings = Settings(root=str(ROOT), selection=(RuleSelection(select=("ALL",)),))
    linter = Linter(settings)

    def lint_all() -> None:
        for program in PROGRAMS:
            linter.lint(read_source(str(program)))
            linter.done()
        linter.project.close()

    lint_all()  # what is made once and kept for good is made now
    gc.collect()
    gc.disable()
    try:
        lint_all()
        garbage = gc.collect()
    finally:
        gc.enable()
    # The trees of all programs have hundreds of thousands of objects; the helpers within ast.dump leave a few.
    assert garbage < 3000


def test_a_run_leaves_the_collector_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import torch\n")
    settings = Settings(root=str(tmp_path))
    for enabled in (True, False):
        (gc.enable if enabled else gc.disable)()
        try:
            run([str(tmp_path)], lambda path: settings, RunOptions(cache=False))
            assert gc.isenabled() is enabled
            assert gc.get_freeze_count() == 0
        finally:
            gc.enable()


def test_memory_does_not_grow_with_the_number_of_files(tmp_path: Path) -> None:
    body = "".join(f"\n\nclass Net{n}(nn.Module):\n    x = {{'a': [1, 2, (3, 4)]}}\n" for n in range(150))
    for number in range(60):
        (tmp_path / f"m{number}.py").write_text(f"from torch import nn\n{body}")
    code = (
        "import resource, sys; from torchlint.config import Settings; from torchlint.engine.many import *\n"
        "s = Settings(root=sys.argv[1])\n"
        "run(sys.argv[2:], lambda p: s, RunOptions(cache=False, jobs=1, tidy=False))\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )

    def peak(count: int) -> int:
        files = [str(tmp_path / f"m{number}.py") for number in range(count)]
        done = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path), *files], check=True, capture_output=True, text=True
        )
        return int(done.stdout)

    assert peak(60) < 1.15 * peak(10)
