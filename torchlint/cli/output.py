"""Where the report of a check goes, and what surrounds it: what was fixed, what could not be looked at."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from torchlint.cli.terminal import use_color
from torchlint.config import ConfigError, Settings

if TYPE_CHECKING:
    from torchlint.finding import Finding, RuleInfo
    from torchlint.fixing.files import FileFix
    from torchlint.source.discovery import Problem
    from torchlint.source.file import SourceFile


@dataclass(slots=True)
class Outcome:
    """What a check came to. ``findings`` are those that remain, ``fixes`` the files that were fixed or would be."""

    findings: Sequence[Finding] = ()
    files_checked: int = 0
    problems: Sequence[Problem] = ()
    fixes: Sequence[FileFix] = ()
    stdin: SourceFile | None = None
    errors: list[str] = field(default_factory=list)


def tell_problems(outcome: Outcome) -> None:
    """What went wrong with the run itself, on standard error."""
    from torchlint.reports.text import printable

    sys.stdout.flush()
    for problem in (*outcome.problems, *outcome.errors):
        print(f"torchlint: {printable(str(problem))}", file=sys.stderr)


def write_report(outcome: Outcome, args: argparse.Namespace, settings: Settings, *, fixing: bool) -> None:
    """The report in the wanted format, to the file that is wanted or to standard output."""
    if not args.output_file:
        # Of a fixed standard input, the text itself goes to standard output.
        stream = sys.stderr if outcome.stdin is not None and fixing else sys.stdout
        stream.write(_report(outcome, args, settings, use_color(args.color, stream), fixing))
        return
    text = _report(outcome, args, settings, args.color == "always", fixing)
    try:
        Path(args.output_file).write_text(text, encoding="utf-8", errors="backslashreplace", newline="")
    except OSError as error:
        raise ConfigError(f"--output-file: {args.output_file}: {error.strerror}") from error


def _report(outcome: Outcome, args: argparse.Namespace, settings: Settings, color: bool, fixing: bool) -> str:
    from torchlint.cli.quoting import Quotes
    from torchlint.reports import TEXT_FORMATS, ReportContext, render

    output_format = settings.output_format
    for_people = output_format in TEXT_FORMATS
    closing = None
    if args.quiet or settings.fix_only:
        closing = ""
    elif fixing and for_people:
        closing = _closing_of_fixes(outcome, settings)
    context = ReportContext(
        line_of=Quotes(outcome.stdin).line,
        color=color,
        files_checked=outcome.files_checked,
        rules=_rules(settings) if output_format == "sarif" else (),
        unsafe_fixes=settings.unsafe_fixes,
        closing=closing,
    )
    findings = () if settings.fix_only else outcome.findings
    if settings.show_fixes and fixing and not closing:
        _list_fixes(outcome)
    if args.statistics:
        from torchlint.reports import statistics

        return statistics.render(findings, context, as_json=output_format == "json")
    return render(output_format, findings, context)


def _closing_of_fixes(outcome: Outcome, settings: Settings) -> str:
    from torchlint.fixing.reporting import status_line

    lines = [*_fix_lines(outcome), status_line(outcome.fixes, outcome.findings, unsafe=settings.unsafe_fixes)]
    return "".join(f"{line}\n" for line in lines)


def _list_fixes(outcome: Outcome) -> None:
    """For formats that have no place for what was fixed."""
    for line in _fix_lines(outcome):
        print(line, file=sys.stderr)


def _fix_lines(outcome: Outcome) -> list[str]:
    from torchlint.fixing.reporting import failed_lines, fixed_lines
    from torchlint.reports.text import printable

    lines = [line for file in outcome.fixes if not file.error for line in fixed_lines(file)]
    lines += [line for file in outcome.fixes for line in failed_lines(file)]
    return [printable(line) for line in lines]


def write_diff(outcome: Outcome) -> None:
    """The changes that fixing would make. Piped it can be applied; on a terminal nothing in it can take effect."""
    from torchlint.fixing.reporting import diff
    from torchlint.reports.text import printable

    text = "".join(map(diff, outcome.fixes))
    if sys.stdout.isatty():
        text = "\n".join(printable(line) for line in text.split("\n"))
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape"))
    sys.stdout.buffer.flush()


def _rules(settings: Settings) -> list[RuleInfo]:
    from torchlint.engine.registry import rules

    return rules(settings.plugins, settings.root)
