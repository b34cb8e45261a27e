"""Where a run's time goes: parsing, indexing, following the program, and each rule.

    python benchmarks/cost_of_rules.py PATHS... [--top 25]

CPU time of one process, without the cache, as a share of what bare ``ast.parse`` of the same files takes. What several
rules ask for (what an expression makes, which bases a class has) is worked out for the first that asks, and counts
there.
"""

from __future__ import annotations

import argparse
import ast
import gc
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import torchlint.check
import torchlint.program.index
import torchlint.program.interpreter
from torchlint.check import Check
from torchlint.config import Configuration
from torchlint.engine.many import RunOptions, run
from torchlint.source.discovery import discover
from torchlint.source.file import SourceFile, names_torch, read_bytes

spent: Counter[str] = Counter()
_running: list[str] = []


def timed(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, its time noted under a name; what it calls that is timed too is noted only there."""

    def call(*args: Any, **kwargs: Any) -> Any:
        started = time.process_time()
        if _running:
            spent[_running[-1]] += started - marks[-1]
        marks.append(started)
        _running.append(name)
        try:
            return function(*args, **kwargs)
        finally:
            now = time.process_time()
            spent[_running.pop()] += now - marks.pop()
            if marks:
                marks[-1] = now

    return call


marks: list[float] = []


def install() -> None:
    """Time the stages of a run and every rule's methods."""
    ast.parse = timed("(parsing)", ast.parse)  # type: ignore[assignment]
    torchlint.program.index.build = timed("(indexing)", torchlint.program.index.build)
    torchlint.program.interpreter.trace_module = timed("(following)", torchlint.program.interpreter.trace_module)
    make = torchlint.check.Runner.__init__

    def make_timed(runner: torchlint.check.Runner, checks: Any) -> None:
        make(runner, checks)
        for kind, handlers in runner._handlers.items():
            runner._handlers[kind] = [(check, timed(_name(check), method)) for check, method in handlers]

    torchlint.check.Runner.__init__ = make_timed  # type: ignore[method-assign]


def _name(check: Check) -> str:
    return f"{check.code} {check.name}"


def parsing_alone(files: list[str]) -> tuple[int, float]:
    """How many files name torch, and what parsing them costs."""
    sources = [data for data in map(read_bytes, files) if names_torch(data)]
    gc.disable()
    started = time.process_time()
    for data in sources:
        try:
            SourceFile(data.decode("utf-8", "replace"), "").tree  # noqa: B018
        except (SyntaxError, ValueError):
            continue
    gc.enable()
    return len(sources), time.process_time() - started


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--top", type=int, default=25)
    args = parser.parse_args()
    configuration = Configuration(isolated=True)
    files = [found.path for found in discover(args.paths, configuration.settings_for).files]
    count, base = parsing_alone(files)
    install()
    started = time.process_time()
    result = run(args.paths, configuration.settings_for, RunOptions(jobs=1, cache=False, tidy=False))
    total = time.process_time() - started
    spent["(everything else)"] = total - sum(spent.values())
    print(
        f"{count} of {len(files)} files name torch; ast.parse {base:.2f} s; run {total:.2f} s, {total / base:.2f} times"
    )
    print(f"{len(result.findings)} findings")
    for name, seconds in spent.most_common(args.top):
        print(f"{seconds:8.2f} s {seconds / base:7.3f} {name}")


if __name__ == "__main__":
    main()
