"""Find faults in PyTorch programs: read the files, run none of them, and say which lines will fail and why.

examples:
  torchlint check src/                      what is wrong in src/
  torchlint check --fix src/                and repair what has a safe fix
  torchlint check --select TL1,TL401 a.py   these rules only
  torchlint check --output-format github    annotations in GitHub Actions
  torchlint rule TL101                      what a rule means

exit codes: 0 nothing found (or all of it fixed), 1 findings, 2 the run itself failed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from torchlint.cli.options import add_check_arguments, overrides
from torchlint.cli.output import Outcome, tell_problems, write_diff, write_report
from torchlint.config import ConfigError, Configuration, Settings

if TYPE_CHECKING:
    from torchlint.engine.many import RunResult
    from torchlint.finding import Finding
    from torchlint.source.file import SourceFile


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``torchlint check``."""
    add_check_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Check, and fix where that is asked for; returns the exit code."""
    configuration = Configuration(overrides(args), config=args.config, isolated=args.isolated)
    settings = configuration.settings_for(Path.cwd())
    if "-" in args.paths or (args.stdin_filename and not args.paths):
        if len(args.paths) > 1:
            raise ConfigError("standard input (-) can't be checked together with files")
        return _check_stdin(args, configuration)
    paths = args.paths or ["."]
    if args.show_files:
        return _show_files(paths, configuration)
    if args.watch:
        return _watch(paths, args)
    return _check_files(paths, args, configuration, settings)


def _check_files(paths: list[str], args: argparse.Namespace, configuration: Configuration, settings: Settings) -> int:
    result = _run(paths, args, configuration)
    if not result.files and not result.problems and not args.quiet and args.shard is None:
        print("torchlint: there are no Python files or notebooks under the given paths", file=sys.stderr)
    outcome = Outcome(_new(result.findings, settings), result.files_checked, result.problems)
    if args.write_baseline:
        from torchlint.engine.baseline import write_baseline

        count = write_baseline(args.write_baseline, result.findings)
        print(f"Wrote {count} known finding{'s' * (count != 1)} to {args.write_baseline}.")
        tell_problems(outcome)
        return 2 if outcome.problems else 0
    if args.add_noqa:
        from torchlint.cli.fixes import add_noqa

        added, outcome.errors = add_noqa(result)
        print(f"Added {added} noqa comment{'s' * (added != 1)}.")
        tell_problems(outcome)
        return 2 if outcome.errors or outcome.problems else 0
    if _fixing(args, settings):
        from torchlint.cli.fixes import fix_found

        outcome.fixes = list(fix_found(result, unsafe=settings.unsafe_fixes, write=not args.diff))
        outcome.errors = [f"{file.filename}: not fixed: {file.error}" for file in outcome.fixes if file.error]
        if not args.diff and any(file.result.changed for file in outcome.fixes):
            # What was repaired in one file may have been the cause of findings in others.
            result = _run(paths, args, configuration)
            outcome.findings = _new(result.findings, settings)
    return _finish(outcome, args, settings)


def _run(paths: list[str], args: argparse.Namespace, configuration: Configuration) -> RunResult:
    from torchlint.cli.progress import ProgressBar
    from torchlint.engine.many import RunOptions, run

    with ProgressBar(quiet=args.quiet) as progress:
        options = RunOptions(jobs=args.jobs, cache=not args.no_cache, shard=args.shard, progress=progress, tidy=False)
        return run(paths, configuration.settings_for, options)


def _new(findings: Sequence[Finding], settings: Settings) -> Sequence[Finding]:
    """Without those that the baseline knows."""
    if settings.baseline is None:
        return findings
    from torchlint.engine.baseline import new_findings

    return new_findings(settings.baseline, findings)


def _watch(paths: list[str], args: argparse.Namespace) -> int:
    """Check again after every change, until interrupted."""
    from torchlint.engine.many import RunOptions
    from torchlint.engine.watch import watch
    from torchlint.reports.text import printable

    for option in ("fix", "fix_only", "diff", "add_noqa", "write_baseline", "output_file"):
        if getattr(args, option):
            raise ConfigError(f"--watch only reports; it can't be used with --{option.replace('_', '-')}")

    def configure() -> Configuration:
        return Configuration(overrides(args), config=args.config, isolated=args.isolated)

    def show(result: RunResult | ConfigError, changed: Sequence[str]) -> None:
        if sys.stdout.isatty():
            print("\x1b[2J\x1b[H", end="")
        for name in changed:
            print(f"changed: {printable(name)}")
        if isinstance(result, ConfigError):
            print(f"torchlint: {result}", file=sys.stderr)
        else:
            settings = replace(configure().settings_for(Path.cwd()), fix=False, fix_only=False)
            outcome = Outcome(_new(result.findings, settings), result.files_checked, result.problems)
            write_report(outcome, args, settings, fixing=False)
            tell_problems(outcome)
        sys.stdout.flush()

    options = RunOptions(jobs=args.jobs, cache=not args.no_cache, shard=args.shard)
    watch(paths, lambda: configure().settings_for, options, show)
    return 0


def _check_stdin(args: argparse.Namespace, configuration: Configuration) -> int:
    from torchlint.engine.one import Linter, lint_bytes
    from torchlint.source.file import UnreadableSource, names_torch, source_from_bytes

    filename = args.stdin_filename or "-"
    path = str(Path(args.stdin_filename).absolute()) if args.stdin_filename else ""
    settings = configuration.settings_for(path or Path.cwd())
    data = sys.stdin.buffer.read()
    outcome = Outcome(files_checked=1)
    fixing = _fixing(args, settings)
    with suppress(UnreadableSource):  # linting says what is wrong with it
        outcome.stdin = source_from_bytes(data, path, filename)
    linter = Linter(settings)
    if names_torch(data) and not _excluded(path, settings, configuration):
        outcome.findings = lint_bytes(linter, data, path, filename)
        if fixing and outcome.stdin is not None:
            data = _fix_stdin(outcome, outcome.stdin, data, settings)
        if path:
            outcome.findings = _new(outcome.findings, settings)
    if fixing and not args.diff:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    return _finish(outcome, args, settings)


def _fix_stdin(outcome: Outcome, source: SourceFile, data: bytes, settings: Settings) -> bytes:
    """The fixed text; the outcome becomes that of the fixed text."""
    from torchlint.cli.fixes import fix_text
    from torchlint.fixing.files import FileFix, encoded
    from torchlint.fixing.writing import NotWritten

    result = fix_text(source, settings, unsafe=settings.unsafe_fixes)
    try:
        fixed = encoded(result, data) if result.changed else data
    except NotWritten as error:
        outcome.errors.append(f"{source.filename}: not fixed: {error}")
        return data
    outcome.fixes = [FileFix(source.filename, result)]
    outcome.findings = result.remaining
    outcome.stdin = result.after
    return fixed


def _excluded(path: str, settings: Settings, configuration: Configuration) -> bool:
    """Whether a buffer's file is left out by ``exclude``, which counts for named files only with force-exclude."""
    if not settings.force_exclude or not path or not Path(path).is_file():
        return False
    from torchlint.source.discovery import discover

    return not discover([path], configuration.settings_for).files


def _show_files(paths: list[str], configuration: Configuration) -> int:
    from torchlint.reports.text import printable
    from torchlint.source.discovery import discover

    discovery = discover(paths, configuration.settings_for)
    for found in discovery.files:
        print(printable(found.filename))
    tell_problems(Outcome(problems=discovery.problems))
    return 2 if discovery.problems else 0


def _fixing(args: argparse.Namespace, settings: Settings) -> bool:
    return bool(args.diff or settings.fix or settings.fix_only)


def _finish(outcome: Outcome, args: argparse.Namespace, settings: Settings) -> int:
    """Print everything and decide the exit code."""
    fixing = _fixing(args, settings)
    changed = any(file.result.changed and not file.error for file in outcome.fixes)
    if args.diff:
        write_diff(outcome)
        found = changed
    else:
        write_report(outcome, args, settings, fixing=fixing)
        found = bool(outcome.findings) and not settings.fix_only
        if args.exit_non_zero_on_fix and changed:
            found = True
    tell_problems(outcome)
    if outcome.problems or outcome.errors:
        return 2
    return 1 if found and not args.exit_zero else 0
