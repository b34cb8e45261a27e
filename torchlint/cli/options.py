"""The options of ``torchlint check``: Ruff's names, and what they become."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from torchlint.cli.terminal import add_color_argument
from torchlint.config import OUTPUT_FORMATS, ConfigError

if TYPE_CHECKING:
    from torchlint.engine.shard import Shard


def add_check_arguments(parser: argparse.ArgumentParser) -> None:
    """Every option, in the groups of the help text."""
    parser.usage = "torchlint [check] [OPTIONS] [PATHS...]"
    parser.add_argument("paths", nargs="*", metavar="PATHS", help="files and folders, - for standard input; default: .")
    _add_rules(parser.add_argument_group("rules"))
    _add_files(parser.add_argument_group("files"))
    _add_fixing(parser.add_argument_group("fixing"))
    _add_report(parser.add_argument_group("report"))
    _add_run(parser.add_argument_group("the run"))


def _add_rules(group: argparse._ArgumentGroup) -> None:
    for name, text in (
        ("select", "run these rules: codes (TL101), prefixes (TL1), names, or ALL"),
        ("ignore", "don't run these"),
        ("extend-select", "run these on top of the configuration's"),
        ("extend-ignore", "don't run these on top of the configuration's"),
        ("fixable", "rules that --fix may repair"),
        ("unfixable", "rules that --fix may not repair"),
    ):
        group.add_argument(f"--{name}", action="append", metavar="RULES", help=text)
    for name, text in (
        ("per-file-ignores", "don't run rules on some files, as PATTERN:RULE,..."),
        ("extend-per-file-ignores", "the same, on top of the configuration's"),
    ):
        group.add_argument(f"--{name}", action="append", metavar="MAP", help=text)
    group.add_argument("--target-torch", metavar="VERSION", help="the oldest torch the code must run on, such as 2.6")


def _add_files(group: argparse._ArgumentGroup) -> None:
    for name, text in (
        ("exclude", "leave out files and folders of these names or patterns"),
        ("extend-exclude", "the same, on top of the configuration's"),
    ):
        group.add_argument(f"--{name}", action="append", metavar="PATTERNS", help=text)
    _flag(group, "force-exclude", "leave excluded files out even where they are named")
    _flag(group, "respect-gitignore", "leave out what git ignores (the default)")
    group.add_argument("--stdin-filename", metavar="PATH", help="the name of what comes from standard input")
    group.add_argument("--show-files", action="store_true", help="print the files that would be checked, and stop")


def _add_fixing(group: argparse._ArgumentGroup) -> None:
    _flag(group, "fix", "repair what has a safe fix")
    _flag(group, "unsafe-fixes", "with --fix: also apply fixes that may change what the program computes")
    _flag(group, "fix-only", "repair, and say nothing about what remains")
    _flag(group, "show-fixes", "list what was repaired")
    group.add_argument("--diff", action="store_true", help="print what --fix would change, and change nothing")
    group.add_argument("--exit-non-zero-on-fix", action="store_true", help="exit with 1 if anything was repaired")
    group.add_argument("--add-noqa", action="store_true", help="add a noqa comment to every line with a finding")


def _add_report(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--output-format", choices=OUTPUT_FORMATS, metavar="FORMAT", help=f"one of {', '.join(OUTPUT_FORMATS)}"
    )
    group.add_argument("-o", "--output-file", metavar="FILE", help="write the report there")
    group.add_argument("--statistics", action="store_true", help="print how often each rule was broken")
    group.add_argument("-q", "--quiet", action="store_true", help="print findings, and nothing else")
    add_color_argument(group)
    group.add_argument("-e", "--exit-zero", action="store_true", help="exit with 0 even if there are findings")
    group.add_argument("--baseline", metavar="FILE", help="report only findings that are not in this file")
    group.add_argument("--write-baseline", metavar="FILE", help="write the findings to a file for --baseline, and stop")


def _add_run(group: argparse._ArgumentGroup) -> None:
    group.add_argument("-j", "--jobs", type=_positive, metavar="N", help="processes; default: all cores")
    group.add_argument("-n", "--no-cache", action="store_true", help="neither read nor write the cache")
    group.add_argument("--cache-dir", metavar="FOLDER", help="where the cache is; default: .torchlint_cache")
    group.add_argument("--shard", type=_shard, metavar="K/N", help="check the K-th of N parts; see torchlint merge")
    group.add_argument("-w", "--watch", action="store_true", help="check again whenever a file changes")
    group.add_argument(
        "--config", action="append", default=[], metavar="FILE|TOML", help="use this file, or override single keys"
    )
    group.add_argument("--isolated", action="store_true", help="read no configuration file")


def _flag(group: argparse._ArgumentGroup, name: str, text: str) -> None:
    """``--name`` and ``--no-name``; None when neither is given, so that the configuration decides."""
    dest = name.replace("-", "_")
    group.add_argument(f"--{name}", dest=dest, action="store_true", default=None, help=text)
    group.add_argument(f"--no-{name}", dest=dest, action="store_false", help=argparse.SUPPRESS)


def _positive(text: str) -> int:
    number = int(text) if text.isdigit() else 0
    if not number:
        raise argparse.ArgumentTypeError(f"a number of processes is wanted, not {text!r}")
    return number


def _shard(text: str) -> Shard:
    from torchlint.engine.shard import parse_shard

    try:
        return parse_shard(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


_LISTS = ("select", "ignore", "extend_select", "extend_ignore", "fixable", "unfixable", "exclude", "extend_exclude")
_MAPS = ("per_file_ignores", "extend_per_file_ignores")
_AS_THEY_ARE = (
    "target_torch",
    "force_exclude",
    "respect_gitignore",
    "fix",
    "unsafe_fixes",
    "fix_only",
    "show_fixes",
    "output_format",
    "cache_dir",
    "baseline",
)


def overrides(args: argparse.Namespace) -> dict[str, Any]:
    """What the command line says about settings, in the shape of the configuration file."""
    said: dict[str, Any] = {name: getattr(args, name) for name in _AS_THEY_ARE}
    for name in _LISTS:
        given = getattr(args, name)
        said[name] = None if given is None else [part for entry in given for part in _parts(entry)]
    for name in _MAPS:
        given = getattr(args, name)
        said[name] = None if given is None else _by_pattern(name, given)
    return said


def _parts(entry: str) -> list[str]:
    return [part.strip() for part in entry.split(",") if part.strip()]


def _by_pattern(name: str, entries: list[str]) -> dict[str, list[str]]:
    """Ruff's spelling of a mapping, ``a.py:TL1,b.py:TL2,TL3``: a part without a colon goes with the pattern before."""
    rules_of: dict[str, list[str]] = {}
    pattern = ""
    for part in (part for entry in entries for part in _parts(entry)):
        before, colon, rule = part.rpartition(":")
        pattern = before.strip() if colon else pattern
        if not pattern:
            raise ConfigError(f"--{name.replace('_', '-')} takes PATTERN:RULE,..., not {part!r}")
        rules_of.setdefault(pattern, []).append(rule.strip())
    return rules_of
