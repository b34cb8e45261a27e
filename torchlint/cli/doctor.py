"""Judge a PyTorch installation: Python, torch and its build, driver and GPUs, what data loading and compiling need.

examples:
  torchlint doctor                           the project's interpreter: its virtual environment, as editors find it
  torchlint doctor --python env/bin/python   another one
  torchlint doctor --output-format json      for a bug report; home folder and user names are left out

Each line says what was seen, and what will go wrong and the remedy. Nothing is installed or changed.

exit codes: 0 all is well, 1 something will go wrong, 2 the run itself failed.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from torchlint.cli.terminal import add_color_argument, use_color
from torchlint.config import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchlint.catalogue.diagnosis import Line
    from torchlint.catalogue.doctor import Examination

_MARKS = {"ok": ("ok", "green"), "note": ("note", "yellow"), "problem": ("WRONG", "red"), "skipped": ("-", "dim")}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``torchlint doctor``."""
    parser.add_argument("--python", metavar="PATH", help="the interpreter, or the folder of its environment")
    parser.add_argument(
        "--timeout", type=float, default=60.0, metavar="SECONDS", help="the longest one look may take (default: 60)"
    )
    parser.add_argument("--output-format", choices=("text", "json"), default="text")
    add_color_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Examine, and say what was found; returns the exit code."""
    from pathlib import Path

    from torchlint.catalogue.doctor import examine
    from torchlint.probe.interpreter import candidates

    if args.timeout <= 0:
        raise ConfigError("--timeout takes a number of seconds above 0")
    python = candidates(Path.cwd(), args.python)[0]
    examination = examine(python, args.timeout)
    if args.output_format == "json":
        import json

        print(json.dumps(_report(examination), indent=2, ensure_ascii=False))
    else:
        color = use_color(args.color, sys.stdout)
        for line in examination.lines:
            print("\n".join(_text(line, color)))
        print(_closing(examination))
    return 1 if examination.problems else 0


def _text(line: Line, color: bool) -> Iterator[str]:
    from torchlint.catalogue.doctor import shortened
    from torchlint.reports.text import paint, printable

    mark, style = _MARKS[line.status]
    yield f"{paint(mark.rjust(5), style, color)}  {paint(line.check, 'bold', color)}: {printable(shortened(line.seen))}"
    if line.problem:
        yield f"       {printable(shortened(line.problem))}"
    if line.remedy:
        yield f"       {paint('remedy:', 'cyan', color)} {printable(shortened(line.remedy))}"


def _closing(examination: Examination) -> str:
    if examination.problems:
        return f"\n{examination.problems} thing{'s' * (examination.problems != 1)} will go wrong."
    return "\nNothing here will go wrong."


def _report(examination: Examination) -> dict[str, Any]:
    from torchlint import __version__
    from torchlint.catalogue.doctor import shortened

    report: dict[str, Any] = shortened(
        {
            "torchlint": __version__,
            "python": examination.python,
            "problems": examination.problems,
            "lines": [
                {
                    "check": line.check,
                    "status": line.status,
                    "seen": line.seen,
                    "problem": line.problem,
                    "remedy": line.remedy,
                }
                for line in examination.lines
            ],
            "facts": examination.facts,
        }
    )
    return report
