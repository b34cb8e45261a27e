"""torchlint, TorchFix, torch-preflight, flake8 and Ruff on the same files, one after another.

    python benchmarks/peers.py PATHS... --peers VENV [--markdown | --readme]

VENV is a virtual environment with what torchlint is compared with: pip install torchfix torch-preflight flake8 ruff.
What isn't there is left out, and that is said. The files are copied, so that no project's configuration counts. Each
tool has its default rules; flake8 runs without plugins. "times" is the time on the clock as a multiple of torchlint's
cold run in one process. With --readme the table goes into README.md, with what it was measured on.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from timing import Took, TooLong, copied, fastest, took

FLAKE8_ALONE = """
import importlib.metadata as metadata
found = metadata.distributions
own = {"flake8", "pycodestyle", "pyflakes", "mccabe"}
metadata.distributions = lambda **how: (d for d in found(**how) if (d.metadata["name"] or "").lower() in own)
from flake8.main.cli import main
raise SystemExit(main())
"""


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def ours(folder: str, cache: str) -> Iterator[tuple[str, str, list[str], int]]:
    """torchlint: name, how, command, runs. Warm runs come after one that fills the cache."""
    command = [sys.executable, "-m", "torchlint", "check", "--isolated", "--exit-zero", "--quiet", folder]
    for jobs in (1, cores()):
        yield "torchlint", f"cold, {told(jobs)}", [*command, "--no-cache", "-j", str(jobs)], 2
    yield "", "", [*command, "--cache-dir", cache], 1
    for jobs in (1, cores()):
        yield "torchlint", f"warm, {told(jobs)}", [*command, "--cache-dir", cache, "-j", str(jobs)], 3


def theirs(folder: str, cache: str, peers: Path) -> Iterator[tuple[str, str, list[str], int]]:
    """The others: name, how, command, runs."""
    tools = peers / "bin"
    ruff = [str(tools / "ruff"), "check", "--isolated", "--exit-zero", "--quiet", folder]
    flake8 = [str(tools / "python"), "-c", FLAKE8_ALONE, "--isolated", "--exit-zero", "-q", folder]
    for name, program, how, command, runs in (
        ("Ruff, default rules", "ruff", f"cold, {told(cores())}", [*ruff, "--no-cache"], 3),
        ("", "ruff", "", [*ruff, "--cache-dir", cache], 1),
        ("Ruff, default rules", "ruff", f"warm, {told(cores())}", [*ruff, "--cache-dir", cache], 3),
        ("flake8 alone", "flake8", told(1), [*flake8, "-j", "1"], 1),
        ("flake8 alone", "flake8", told(cores()), [*flake8, "-j", str(cores())], 1),
        ("torch-preflight", "torch-preflight", told(1), [str(tools / "torch-preflight"), "check", folder], 1),
        ("TorchFix", "torchfix", told(1), [str(tools / "torchfix"), "-j", "1", folder], 1),
        ("TorchFix", "torchfix", told(cores()), [str(tools / "torchfix"), "-j", str(cores()), folder], 1),
    ):
        if (tools / program).exists():
            yield name, how, command, runs
        else:
            print(f"SKIPPED: {program} is not in {tools}", file=sys.stderr)


def told(jobs: int) -> str:
    """How many processes."""
    return "1 process" if jobs == 1 else f"{jobs} processes"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=Path, help="folders of real code")
    parser.add_argument("--peers", type=Path, help="a virtual environment with the other tools")
    parser.add_argument("--limit", type=float, default=1800, help="seconds after which a tool is given up (1800)")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    parser.add_argument("--readme", action="store_true", help="write the table into README.md")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home, "files")
        files, lines = copied(arguments.paths, folder)
        print(f"{files:,} files, {lines:,} lines", file=sys.stderr)
        commands = list(ours(str(folder), f"{home}/torchlint"))
        if arguments.peers is None:
            print("SKIPPED: all peers; --peers says where they are", file=sys.stderr)
        else:
            commands += theirs(str(folder), f"{home}/ruff", arguments.peers)
        rows = []
        for name, how, command, runs in commands:
            try:
                result: Took | None = measured(command, runs, arguments.limit)
            except TooLong:
                result = None
            if name:
                rows.append((name, how, result))
                print(f"{name}, {how}: {result.wall if result else arguments.limit:.2f} s", file=sys.stderr)
    table = made(rows, files, lines, arguments.limit)
    if arguments.readme:
        into_readme(markdown(table), arguments.paths, arguments.peers)
    elif arguments.markdown:
        print(markdown(table))
    else:
        print(aligned(table))


def measured(command: list[str], runs: int, limit: float) -> Took:
    """The quickest of some runs."""
    return took(command, limit=limit, allowed=(0, 1, 2)) if runs == 1 else fastest(command, runs)


def made(rows: list[tuple[str, str, Took | None]], files: int, lines: int, limit: float) -> list[tuple[str, ...]]:
    """The table, its heads first."""
    base = rows[0][2]
    assert base is not None
    table: list[tuple[str, ...]] = [("tool", "run", "files", "lines", "seconds", "CPU seconds", "times")]
    for name, how, result in rows:
        if result is None:
            spent = (f"over {limit:.0f}", "", f"over {limit / base.wall:.0f}")
        else:
            times = result.wall / base.wall
            spent = (f"{result.wall:.2f}", f"{result.cpu:.2f}", f"{times:.0f}" if times >= 10 else f"{times:.2f}")
        table.append((name, how, f"{files:,}", f"{lines:,}", *spent))
    return table


def markdown(table: list[tuple[str, ...]]) -> str:
    """The table as Markdown has it."""
    head, *rows = (f"| {' | '.join(row)} |" for row in table)
    return "\n".join([head, "|---|---|--:|--:|--:|--:|--:|", *rows])


def aligned(table: list[tuple[str, ...]]) -> str:
    """The table for a terminal."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if at < 2 else cell.rjust(width) for at, (cell, width) in enumerate(zip(row, widths))
        )
        for row in table
    )


def into_readme(table: str, paths: list[Path], peers: Path | None) -> None:
    """Put the table where README.md has it."""
    readme = Path(__file__).parents[1] / "README.md"
    begin, end = "<!-- speed: made by benchmarks/peers.py -->", "<!-- end of speed -->"
    before, _, rest = readme.read_text(encoding="utf-8").partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise SystemExit(f"README.md has no part between {begin} and {end}")
    names = [path.name for path in paths]
    code = f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
    machine = f"{cores()} core{'s' * (cores() > 1)}, Python {sys.version_info[0]}.{sys.version_info[1]}"
    said = f"The code of {code} on a machine with {machine}{versions(peers)}:\n\n{table}"
    readme.write_text(f"{before}{begin}\n{said}\n{end}{after}", encoding="utf-8")


def versions(peers: Path | None) -> str:
    """Which peers these are."""
    if peers is None:
        return ""
    code = (
        "import importlib.metadata as m\n"
        "for name, pip in (('Ruff', 'ruff'), ('flake8',) * 2, ('torch-preflight',) * 2, ('TorchFix', 'torchfix')):\n"
        "    if any(m.distributions(name=pip)): print(name, m.version(pip))"
    )
    return "".join(
        f", {line}" for line in took([str(peers / "bin" / "python"), "-c", code]).output.decode().splitlines()
    )


if __name__ == "__main__":
    main()
