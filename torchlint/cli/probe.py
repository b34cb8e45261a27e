"""Build a model in a child process, run it on a batch of two, and prove what reading can't.

examples:
  torchlint probe net.py:Net                          one model; its inputs are worked out
  torchlint probe 'pkg.models:Net(num_classes=5)'     with constructor arguments
  torchlint probe src/                                every model there that needs no arguments
  torchlint probe net.py:Net --input 3x224x224        the input's sizes, the batch is added
  torchlint probe lm.py:GPT --input 'ids=int64[128]<50257'
  torchlint probe                                     the targets of [tool.torchlint.probe]
  torchlint probe net.py:Net --fix                    and put the right number into the source

The project's own interpreter runs it (its virtual environment, or --python) and needs only torch.

exit codes: 0 nothing found, 1 findings, 2 the run itself failed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchlint.cli.terminal import add_color_argument, use_color
from torchlint.config import OUTPUT_FORMATS, ConfigError, Settings, load_settings

if TYPE_CHECKING:
    from torchlint.finding import Finding
    from torchlint.probe.report import Results
    from torchlint.probe.targets import Target


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``torchlint probe``."""
    parser.usage = "torchlint probe [OPTIONS] [TARGETS...]"
    parser.add_argument(
        "targets",
        nargs="*",
        metavar="TARGET",
        help="file.py:Net, package.module:factory, a file, a folder, or a name from the configuration",
    )
    _add_inputs(parser.add_argument_group("the model and its inputs"))
    _add_checks(parser.add_argument_group("checks"))
    _add_run(parser.add_argument_group("the run"))
    _add_report(parser.add_argument_group("report"))


def _add_inputs(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--input",
        action="append",
        metavar="SPEC",
        help="an input: 3x224x224, int64[128]<30522, mask=bool[128], float32[3,8,8]=0..1, steps=5; again for the next",
    )
    group.add_argument(
        "--input-from",
        metavar="TARGET",
        help="a function or value of the project that makes the inputs: package.module:make_batch",
    )
    group.add_argument(
        "--output", metavar="SIZES", help="the expected output sizes without the batch, such as 10 or 21x64x64"
    )
    group.add_argument("--batch-size", type=int, metavar="N", help="samples in a batch (default: 2)")
    group.add_argument("--arguments", metavar="TEXT", help="constructor arguments, such as 'num_classes=5'")
    group.add_argument(
        "--device",
        metavar="DEVICE",
        help="run all checks on this device (default: cpu, and cuda besides where one is present)",
    )
    mode = group.add_mutually_exclusive_group()
    mode.add_argument("--train", dest="mode", action="store_const", const="train", help="train mode only")
    mode.add_argument("--eval", dest="mode", action="store_const", const="eval", help="eval mode only")
    group.add_argument("--seed", type=int, metavar="N", help="the seed of weights and inputs (default: 0)")


def _add_checks(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--select", action="append", metavar="CODES", help="run these checks only: TP103, TP11, a name")
    group.add_argument("--ignore", action="append", metavar="CODES", help="don't run these")
    group.add_argument(
        "--export", action="store_true", default=None, help="also trace, export and compile (TP115, TP116)"
    )
    group.add_argument("--memory", metavar="SIZE", help="the memory that training may take, such as 24GB (TP117)")
    group.add_argument("--checkpoint", metavar="FILE", help="a checkpoint that must fit the model (TP118)")
    group.add_argument("--data", metavar="TARGET", help="a Dataset, a DataLoader, or what makes one (TP120)")
    group.add_argument(
        "--loss",
        metavar="TARGET",
        help="a loss: package.module:loss(output, target), or nn.CrossEntropyLoss (TP120, TP121)",
    )


def _add_run(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--python", metavar="PATH", help="the interpreter that has the project's packages")
    group.add_argument("--timeout", type=float, metavar="SECONDS", help="the longest one check may take (default: 60)")
    group.add_argument(
        "--memory-limit", metavar="SIZE", help="the memory the child may take (default: three quarters of what is free)"
    )
    group.add_argument(
        "--fix", action="store_true", help="correct the source where one number is wrong, and probe again"
    )
    group.add_argument(
        "--config", action="append", default=[], metavar="FILE", help="a configuration file, or key=value"
    )
    group.add_argument("--isolated", action="store_true", help="ignore all configuration files")


def _add_report(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--output-format", choices=OUTPUT_FORMATS, metavar="FORMAT", help=f"one of {', '.join(OUTPUT_FORMATS)}"
    )
    group.add_argument("-o", "--output-file", metavar="FILE", help="write the findings there")
    group.add_argument("--record", metavar="FILE", help="write everything that was seen there, as JSON")
    group.add_argument("-q", "--quiet", action="store_true", help="print findings, and nothing else")
    group.add_argument(
        "-v", "--verbose", action="store_true", help="print the tracebacks of checks that failed themselves"
    )
    group.add_argument("-e", "--exit-zero", action="store_true", help="exit with 0 even if there are findings")
    add_color_argument(group)


def run(args: argparse.Namespace) -> int:
    """Probe, and fix where that is asked for; returns the exit code."""
    from torchlint.probe.launcher import NoTorch
    from torchlint.probe.report import findings, record

    settings = load_settings(
        Path.cwd(), {"output_format": args.output_format}, config=args.config, isolated=args.isolated
    )
    plan = _Plan(args, settings)
    try:
        results = plan.run()
        found: Sequence[Finding] = findings(results, plan.files)
        closing = ""
        if args.fix:
            found, results, closing = _fixed(plan, found, results)
    except NoTorch as error:
        print(f"torchlint: {error}", file=sys.stderr)
        print("torchlint: name the project's interpreter with --python, or install torch in it", file=sys.stderr)
        return 2
    _write(args, settings, results, found, closing)
    if args.record:
        Path(args.record).write_text(json.dumps(record(results, found)), encoding="utf-8")
    for error_line in results.errors:
        print(f"torchlint: {error_line}", file=sys.stderr)
    if results.errors:
        return 2
    return 1 if found and not args.exit_zero else 0


def _fixed(plan: _Plan, found: Sequence[Finding], results: Results) -> tuple[Sequence[Finding], Results, str]:
    from torchlint.probe.fixing import fix
    from torchlint.probe.report import findings

    latest = results

    def again() -> Sequence[Finding]:
        nonlocal latest
        latest = plan.run()
        return findings(latest, plan.files)

    fixed = fix(found, again)
    if fixed.lines and fixed.remaining is not found:
        # The last round may have been one that was taken back.
        found = again()
    else:
        found, latest = fixed.remaining, results
    status = "SUCCESS" if not found else "FAILED"
    lines = [*fixed.lines, f"{status}: {len(fixed.lines)} fixed, {len(found)} remain"]
    return found, latest, "\n".join(lines) + "\n"


class _Plan:
    """What to run: the targets with their options, in groups that share an interpreter and limits."""

    def __init__(self, args: argparse.Namespace, settings: Settings) -> None:
        from torchlint.probe.targets import (
            TargetError,
            common_settings,
            configured,
            options_of,
            parse_target,
            target_of,
        )

        self._args = args
        root = Path(settings.root)
        tables = configured(settings)
        told = self._told()
        self.jobs: list[tuple[list[Target], dict[str, Any]]] = []
        names = args.targets or list(tables)
        if not names:
            raise TargetError(
                "nothing to probe: name a target (torchlint probe net.py:Net), or configure some under "
                "[tool.torchlint.probe.NAME]"
            )
        for name in names:
            if name in tables:
                entry = {**tables[name], **told}
                targets = target_of(name, entry, root)
            else:
                entry = {**common_settings(settings), **told}
                targets = parse_target(name, Path.cwd())
            targets = [
                _with(target, options_of(entry, root if name in tables else Path.cwd()), entry) for target in targets
            ]
            self.jobs.append((targets, entry))
        self.files = {target.label: target.file for targets, _ in self.jobs for target in targets if target.file}
        self._root = root

    def _told(self) -> dict[str, Any]:
        """The command line in the words of the configuration."""
        args = self._args
        told = {
            "inputs": args.input,
            "inputs-from": args.input_from,
            "output": _sizes(args.output),
            "batch-size": args.batch_size,
            "arguments": args.arguments,
            "device": args.device,
            "mode": args.mode,
            "seed": args.seed,
            "select": args.select,
            "ignore": args.ignore,
            "export": args.export,
            "memory": args.memory,
            "checkpoint": args.checkpoint,
            "data": args.data,
            "loss": args.loss,
            "python": args.python,
            "timeout": args.timeout,
            "memory-limit": args.memory_limit,
        }
        return {key: value for key, value in told.items() if value is not None}

    def run(self) -> Results:
        """Run the workers. Raises NoTorch."""
        from torchlint.probe.interpreter import candidates
        from torchlint.probe.launcher import Launch, Limits
        from torchlint.probe.report import Results
        from torchlint.probe.targets import parse_size

        results = Results()
        progress = _Progress(self._args)
        groups: dict[tuple[Any, ...], list[Target]] = {}
        for targets, entry in self.jobs:
            limit = parse_size(entry["memory-limit"]) if entry.get("memory-limit") else default_memory()
            key = (entry.get("python"), float(entry.get("timeout") or 60), limit)
            groups.setdefault(key, []).extend(targets)
        for (python, timeout, limit), targets in groups.items():
            if not targets:
                continue
            first = Path(targets[0].file).parent if targets[0].file else Path.cwd()

            def take(event: dict[str, Any]) -> None:
                results.take(event)
                progress.take(event)

            Launch(
                targets, candidates(first, python), Limits(timeout, limit), Path.cwd(), [str(self._root)], take
            ).run()
        progress.end()
        for targets, entry in self.jobs:
            if entry.get("expect-skipped") is not None:
                from torchlint.probe.report import CODES
                from torchlint.probe.targets import parse_codes
                from torchlint.probe.worker.names import NAMES

                allowed = parse_codes(entry["expect-skipped"], CODES, NAMES)
                for target in targets:
                    results.expect_skipped(target.label, allowed)
        return results


def _with(target: Target, options: dict[str, Any], entry: dict[str, Any]) -> Target:
    from dataclasses import replace

    from torchlint.probe.report import CODES
    from torchlint.probe.targets import parse_codes
    from torchlint.probe.worker.names import NAMES

    selected = parse_codes(_flat(entry["select"]), CODES, NAMES) if entry.get("select") else list(CODES)
    ignored = parse_codes(_flat(entry["ignore"]), CODES, NAMES) if entry.get("ignore") else []
    return replace(target, options={**options, "select": [code for code in selected if code not in ignored]})


def _flat(values: Sequence[str]) -> list[str]:
    return [part for value in values for part in value.split(",")]


def _sizes(text: str | None) -> list[int] | None:
    if text is None:
        return None
    try:
        return [int(part) for part in text.split("x") if part]
    except ValueError:
        raise ConfigError(f"--output {text}: sizes are numbers with x between, such as 21x64x64") from None


def default_memory() -> int | None:
    """Three quarters of the memory that is free, where the system says how much that is."""
    try:
        with Path("/proc/meminfo").open(encoding="ascii") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024 * 3 // 4
    except (OSError, ValueError):
        return None
    return None


class _Progress:
    """One line on a terminal that says what runs; nothing elsewhere."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._on = sys.stderr.isatty() and not args.quiet

    def take(self, event: dict[str, Any]) -> None:
        if self._on and event["event"] == "check":
            text = f"{event['target']}: {event['code']} {event['name']} {event['status']}"
            sys.stderr.write(f"\r\x1b[K{text[:100]}")
            sys.stderr.flush()

    def end(self) -> None:
        if self._on:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def _write(
    args: argparse.Namespace, settings: Settings, results: Results, found: Sequence[Finding], closing: str
) -> None:
    from torchlint.probe.report import Lines, listed, rule_cards, summary
    from torchlint.reports import TEXT_FORMATS, ReportContext, render

    for_people = settings.output_format in TEXT_FORMATS
    if for_people and not args.quiet:
        for result in results.targets.values():
            if result.models and not result.built:
                for line in listed(result):
                    print(line)
                continue
            for line in summary(result, args.verbose):
                print(line)
            print()
    stream = sys.stdout
    context = ReportContext(
        line_of=Lines().line,
        color=use_color(args.color, stream) and not args.output_file,
        files_checked=len({finding.filename for finding in found}),
        rules=rule_cards() if settings.output_format == "sarif" else (),
        tool="torchlint",
        closing=(closing or _closing(found)) if for_people and not args.quiet else "",
    )
    text = render(settings.output_format, found, context)
    if args.output_file:
        try:
            Path(args.output_file).write_text(text, encoding="utf-8", errors="backslashreplace")
        except OSError as error:
            raise ConfigError(f"--output-file: {args.output_file}: {error.strerror}") from error
    else:
        stream.write(text)
    if closing and not for_people:
        print(closing, end="", file=sys.stderr)


def _closing(found: Sequence[Finding]) -> str:
    if not found:
        return "The probe found nothing.\n"
    fixable = sum(finding.fix is not None for finding in found)
    more = f"{fixable} of them one number that --fix can correct.\n" if fixable else ""
    return f"Found {len(found)} fault{'s' * (len(found) != 1)}.\n{more}"
