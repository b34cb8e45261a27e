"""Tries to break torchlint, with inputs that nobody would write.

    python benchmarks/campaign kinds                          every kind of statement and expression, everywhere
    python benchmarks/campaign mutate [PATHS...]              mutants of the fixtures, and of the files in PATHS
    python benchmarks/campaign generate                       programs that hypothesmith makes up from the grammar
    python benchmarks/campaign sweep PATHS...                 every Python file below PATHS, as it is

Each input must be linted by all rules without an exception, without TL003 and in less than 2 s of CPU; findings must
lie in the text; what is fixed must still parse. Prints how many inputs were tried and everything that was wrong, with
the input saved under --keep. The exit status is 1 if there was anything. A seed and a number name an input: --seed 7
--first 1234 --inputs 1 makes it again.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from judging import Verdict, judge_file, judge_text, make_linter
from kinds import HEAD, programs
from mutating import TEXT_LIMIT, mutant

from torchlint.config import Configuration
from torchlint.engine.processes import Crashed, Processes
from torchlint.source.discovery import discover

FIXTURES = Path(__file__).parents[2] / "fixtures"
TORCH_NAMES = ("torch", "nn", "model", "optimizer", "loss", "x", "y", "loader", "Linear", "forward", "backward", "step")
_CHUNK = 25


class Enough(KeyboardInterrupt):
    """The time is up; hypothesis lets this one through at once."""


@dataclass(slots=True)
class Tally:
    """The counts of a campaign."""

    keep: Path
    counts: Counter[str] = field(default_factory=Counter)
    slowest: tuple[float, str] = (0.0, "")
    wrong: int = 0

    def add(self, name: str, verdict: Verdict, text: str | None = None) -> None:
        """Note what became of an input; ``text`` is kept if it went wrong."""
        self.counts.update(inputs=1, parsed=verdict.parsed, findings=verdict.findings, fixed=verdict.fixed)
        self.counts.update({"rolled back": verdict.rolled_back})
        self.slowest = max(self.slowest, (verdict.seconds, name))
        if verdict.wrong:
            self.wrong += 1
            print(f"WRONG {name}: {verdict.wrong}", flush=True)
            if text is not None:
                self.keep.mkdir(parents=True, exist_ok=True)
                file = self.keep / f"{re.sub(r'[^A-Za-z0-9]+', '_', name)[-80:]}.py"
                file.write_text(text, encoding="utf-8", errors="surrogatepass", newline="")
                print(f"      kept as {file}", flush=True)

    def told(self, what: str, started: float) -> int:
        """Print the counts; the exit status."""
        counts = ", ".join(f"{name} {count}" for name, count in self.counts.items())
        print(f"{what}: {counts}; wrong {self.wrong}; {time.monotonic() - started:.0f} s")
        print(f"slowest: {self.slowest[0]:.2f} s of CPU, {self.slowest[1]}")
        return 1 if self.wrong else 0


# ---------------------------------------------------------------------------------------------------- inputs


def read_seeds(paths: Sequence[str]) -> list[tuple[str, str]]:
    """The programs that mutants are made of: the fixtures, and as many files that name torch from elsewhere."""
    files = sorted(FIXTURES.glob("TL*/**/*.py"))
    for found in discover(paths, Configuration(isolated=True).settings_for).files if paths else ():
        files.append(Path(found.path))
    seeds = []
    for file in files:
        text = file.read_bytes().decode("utf-8", "replace")
        if "torch" in text and len(text) < TEXT_LIMIT:
            seeds.append((str(file), text))
    return seeds


def nth_mutant(seeds: Sequence[tuple[str, str]], fixtures: int, seed: int, number: int) -> tuple[str, str]:
    """The name and text of one input. Every other one is of a fixture, however many other files there are."""
    rng = random.Random(f"{seed}:{number}")
    name, text = rng.choice(seeds[:fixtures] if rng.random() < 0.5 else seeds)
    return f"{seed}:{number} of {name}", mutant(text, rng)


def torchy(text: str, rng: random.Random) -> str:
    """A made-up program whose names are torch's, so that there is something to look at."""
    names = sorted(set(re.findall(r"\b[^\W\d]\w*\b", text)))
    for name in names:
        if rng.random() < 0.6:
            text = re.sub(rf"(?<![\"'\w]){re.escape(name)}\b(?![\"'])", rng.choice(TORCH_NAMES), text)
    return text


# ---------------------------------------------------------------------------------------------------- verdicts


def _judge_mutants(
    seeds: Sequence[tuple[str, str]], fixtures: int, seed: int, numbers: Sequence[int]
) -> list[tuple[str, Verdict]]:
    verdicts = []
    for number in numbers:
        name, text = nth_mutant(seeds, fixtures, seed, number)
        fix = number % 3 == 0 and len(text) < 20_000
        verdicts.append((name, judge_text(text, fix=fix)))
    return verdicts


def _judge_files(roots: Sequence[str], paths: Sequence[str]) -> list[tuple[str, Verdict]]:
    linters = {root: make_linter(root) for root in roots}
    verdicts = []
    for path in paths:
        root = max((root for root in roots if path.startswith(root)), key=len)
        verdicts.append((path, judge_file(linters[root], path)))
    return verdicts


def in_process(
    function: Callable[[Sequence[object]], list[tuple[str, Verdict]]], chunks: Iterable[Sequence[object]]
) -> Iterator[list[tuple[str, Verdict]]]:
    """The verdicts of a process of its own, which is replaced should an input bring it down."""
    listed = list(chunks)
    make_linter("")  # all rules are loaded before the processes start, which so have the same code to the end
    for _, chunk, answer in Processes[object, list[tuple[str, Verdict]]](1, lambda: function).map(listed):
        if isinstance(answer, Crashed):
            yield [(str(chunk[0]), Verdict("the process died"))]
        else:
            yield answer


# ---------------------------------------------------------------------------------------------------- commands


def kinds(arguments: argparse.Namespace) -> int:
    """Every kind of statement and expression in every context."""
    tally, started = Tally(arguments.keep), time.monotonic()
    for name, text in itertools.islice(programs(), arguments.inputs):
        tally.add(name, judge_text(text), text)
    return tally.told("kinds", started)


def mutate(arguments: argparse.Namespace) -> int:
    """Mutants."""
    tally, started = Tally(arguments.keep), time.monotonic()
    seeds = read_seeds(arguments.paths)
    fixtures = sum(name.startswith(str(FIXTURES)) for name, _ in seeds)
    print(f"seed {arguments.seed}: mutants of {fixtures} fixtures and {len(seeds) - fixtures} other files", flush=True)
    numbers = iter(range(arguments.first, arguments.first + (arguments.inputs or sys.maxsize - arguments.first)))
    while chunk := list(itertools.islice(numbers, 40 * _CHUNK)):
        pieces = [chunk[at : at + _CHUNK] for at in range(0, len(chunk), _CHUNK)]
        for verdicts in in_process(partial(_judge_mutants, seeds, fixtures, arguments.seed), pieces):  # type: ignore[arg-type]
            for name, verdict in verdicts:
                text = None
                if verdict.wrong:
                    number = int(name.partition(":")[2].partition(" ")[0]) if ":" in name else int(name)
                    text = nth_mutant(seeds, fixtures, arguments.seed, number)[1]
                tally.add(name, verdict, text)
        if time.monotonic() - started > arguments.minutes * 60:
            break
    return tally.told(f"mutants, seed {arguments.seed}, from {arguments.first}", started)


def generate(arguments: argparse.Namespace) -> int:
    """What hypothesmith makes up."""
    try:
        import hypothesmith
        from hypothesis import HealthCheck, Phase, given, seed, settings, strategies
    except ImportError as error:
        print(f"SKIPPED: {error}")
        return 0
    tally, started = Tally(arguments.keep), time.monotonic()
    rng = random.Random(arguments.seed)

    def attempt(text: str, share: float) -> None:
        if time.monotonic() - started > arguments.minutes * 60 * share:
            raise Enough
        for made in (text, HEAD + text, HEAD + torchy(text, rng)):
            tally.add(f"{arguments.seed}:{tally.counts['inputs']} made up", judge_text(made), made)

    for share, strategy in ((0.5, hypothesmith.from_node()), (1, hypothesmith.from_grammar())):
        run = settings(
            max_examples=arguments.inputs or 1_000_000,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )(seed(arguments.seed)(given(strategy, strategies.just(share))(attempt)))
        with contextlib.suppress(Enough):
            run()
    return tally.told(f"hypothesmith, seed {arguments.seed}", started)


def sweep(arguments: argparse.Namespace) -> int:
    """All files as they are."""
    tally, started = Tally(arguments.keep), time.monotonic()
    roots = [str(Path(path).resolve()) for path in arguments.paths]
    settings = Configuration(isolated=True).settings_for(".")
    from dataclasses import replace

    everything = replace(settings, exclude=(), respect_gitignore=False)
    paths = [found.path for found in discover(roots, lambda path: everything).files]
    chunks = [paths[at : at + _CHUNK] for at in range(0, len(paths), _CHUNK)]
    for verdicts in in_process(partial(_judge_files, roots), chunks):  # type: ignore[arg-type]
        for name, verdict in verdicts:
            tally.add(name, verdict)
    return tally.told(f"files of {os.pathsep.join(arguments.paths)}", started)


def main() -> int:
    """Run one of the campaigns."""
    parser = argparse.ArgumentParser(
        prog="campaign", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    for function in (kinds, mutate, generate, sweep):
        command = commands.add_parser(function.__name__, help=function.__doc__)
        command.set_defaults(function=function)
        command.add_argument("--inputs", type=int, default=None, help="how many at most")
        command.add_argument("--keep", type=Path, default=Path("campaign-wrong"), help="where to save what went wrong")
        if function in (mutate, sweep):
            command.add_argument("paths", nargs="+" if function is sweep else "*")
        if function in (mutate, generate):
            command.add_argument("--seed", type=int, default=7)
            command.add_argument("--minutes", type=float, default=10.0, help="how long at most")
        if function is mutate:
            command.add_argument("--first", type=int, default=0, help="the number of the first input")
    arguments = parser.parse_args()
    return arguments.function(arguments)  # type: ignore[no-any-return]


if __name__ == "__main__":
    sys.exit(main())
