"""Every budget of speed and memory, measured on real code: what it is, what was measured, and whether that is within.

    python benchmarks/budgets.py PATHS... [--only WORDS]

The files are copied. Ratios are of CPU time, so that a busy machine tells the same; what is about processes or about
starting is time on the clock, the quickest of several runs. The exit status is 1 if anything is over its budget.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from timing import Took, copied, fastest, peak, took

TORCHLINT = [sys.executable, "-m", "torchlint"]
CHECK = [*TORCHLINT, "check", "--isolated", "--exit-zero", "--quiet"]
PARSING = """
import ast, gc, pathlib, sys, time, warnings
warnings.simplefilter("ignore")
gc.disable()
started = time.process_time()
for file in pathlib.Path(sys.argv[1]).rglob("*.py"):
    data = file.read_bytes()
    if b"torch" in data:
        try:
            ast.parse(data)
        except (SyntaxError, ValueError):
            pass
print(time.process_time() - started)
"""
FLAKE8_WITHOUT = """
import importlib.metadata as metadata
found = metadata.distributions
metadata.distributions = lambda **how: (d for d in found(**how) if (d.metadata["name"] or "").lower() != "torchlint")
from flake8.main.cli import main
raise SystemExit(main())
"""
FLAKE8_WITH = "from flake8.main.cli import main; raise SystemExit(main())"


class Measured(NamedTuple):
    """One figure and what it may be."""

    what: str
    value: float
    budget: float
    unit: str
    at_least: bool = False

    @property
    def kept(self) -> bool:
        return self.value >= self.budget if self.at_least else self.value <= self.budget


def cold(folder: str, home: str) -> Iterator[Measured]:
    """All rules, one process, against bare ast.parse of the files that name torch."""
    parsing = min(float(took([sys.executable, "-c", PARSING, folder]).output) for _ in range(2))
    run = least(CHECK, "--no-cache", "-j", "1", folder)
    yield Measured("cold, one process, over ast.parse", run.cpu / parsing, 2.5, "times")


def warm(folder: str, home: str) -> Iterator[Measured]:
    """The same with everything in the cache."""
    run = least(CHECK, "--no-cache", "-j", "1", folder)
    cache = ["--cache-dir", f"{home}/cache", "-j", "1", folder]
    took([*CHECK, *cache])
    yield Measured("warm over cold", 100 * least(CHECK, *cache).cpu / run.cpu, 5, "%")


def processes(folder: str, home: str) -> Iterator[Measured]:
    """Two processes against one, on the clock."""
    one = fastest([*CHECK, "--no-cache", "-j", "1", folder], 2)
    two = fastest([*CHECK, "--no-cache", "-j", "2", folder], 2)
    yield Measured("two processes against one", one.wall / two.wall, 1.7, "times faster", at_least=True)


def flake8(folder: str, home: str) -> Iterator[Measured]:
    """flake8 with the plugin against flake8 without."""
    try:
        import flake8  # noqa: F401
    except ImportError:
        print("SKIPPED: flake8 is not installed", file=sys.stderr)
        return
    options = ["--isolated", "--exit-zero", "-q", "-j", "1", folder]
    without = least([sys.executable, "-c", FLAKE8_WITHOUT], *options)
    plugin = least([sys.executable, "-c", FLAKE8_WITH], *options)
    yield Measured("flake8 with the plugin over without", plugin.cpu / without.cpu, 1.25, "times")


def starting(folder: str, home: str) -> Iterator[Measured]:
    """The version, and one small clean file, which are mostly Python's own start."""
    small = Path(home, "small.py")
    small.write_text("import torch\n\n\ndef double(x: torch.Tensor) -> torch.Tensor:\n    return x * 2\n")
    program = Path(sys.executable).with_name("torchlint")
    command = [str(program)] if program.exists() else TORCHLINT
    python = fastest([sys.executable, "-c", "pass"], 15)
    version = fastest([*command, "--version"], 15)
    clean = fastest([*command, "--isolated", "--no-cache", str(small)], 15)
    yield Measured("torchlint --version", 1000 * version.wall, 80, "ms")
    yield Measured("one small clean file, more than python -c pass", 1000 * (clean.wall - python.wall), 150, "ms")


def memory(folder: str, home: str) -> Iterator[Measured]:
    """The most that a process holds."""
    yield Measured("memory", peak([*CHECK, "--no-cache", "-j", "1", folder]), 400, "MB")


def growth(folder: str, home: str) -> Iterator[Measured]:
    """Twice the files, half of them copies in another folder."""
    both = Path(home, "both")
    for name in ("a", "b"):
        copied([Path(folder)], both / name)
    one = least(CHECK, "--no-cache", "-j", "1", str(both / "a"))
    two = least(CHECK, "--no-cache", "-j", "1", str(both / "a"), str(both / "b"))
    yield Measured("twice the files", two.cpu / one.cpu, 2.1, "times the time")


BUDGETS: tuple[Callable[[str, str], Iterator[Measured]], ...] = (
    *(cold, warm, processes, flake8, starting, memory, growth),
)


def least(command: list[str], *options: str) -> Took:
    """The run of two that took the least CPU."""
    return min((took([*command, *options]) for _ in range(2)), key=lambda each: each.cpu)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=Path, help="folders of real code")
    parser.add_argument("--only", nargs="+", choices=[each.__name__ for each in BUDGETS], help="some of them")
    arguments = parser.parse_args()
    over = 0
    with tempfile.TemporaryDirectory() as home:
        files, lines = copied(arguments.paths, Path(home, "files"))
        print(f"{files:,} files, {lines:,} lines")
        for measure in BUDGETS:
            if arguments.only and measure.__name__ not in arguments.only:
                continue
            for each in measure(f"{home}/files", home):
                over += not each.kept
                bound = "at least" if each.at_least else "at most"
                verdict = "ok" if each.kept else "OVER"
                print(f"{verdict:5}{each.what:48}{each.value:8.2f} {each.unit}, {bound} {each.budget:g}", flush=True)
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
