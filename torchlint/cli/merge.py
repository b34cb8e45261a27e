"""Join the reports of a run that was split over machines by --shard: several json or sarif files become one."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import unquote

from torchlint.config import ConfigError

Row = dict[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``torchlint merge``."""
    parser.add_argument("parts", nargs="+", metavar="REPORTS", help="reports of one format: json or sarif")
    parser.add_argument("-o", "--output-file", metavar="FILE", help="write the joint report there")
    parser.add_argument("-e", "--exit-zero", action="store_true", help="exit with 0 even if there are findings")


def run(args: argparse.Namespace) -> int:
    """Print the joint report; exit code 1 if there are findings in it."""
    parts = [(file, _load(file)) for file in args.parts]
    rows = [part for _, part in parts if isinstance(part, list)]
    if rows and len(rows) < len(parts):
        raise ConfigError("some of the reports are json and some sarif: only reports of one format can be joined")
    try:
        joint, count = _joint_json(rows) if rows else _joint_sarif([part for _, part in parts])
    except (KeyError, IndexError, TypeError, AttributeError):
        raise ConfigError("one of the files is no report of torchlint in json or sarif format") from None
    text = json.dumps(joint, indent=2) + "\n"
    if args.output_file is None:
        sys.stdout.write(text)
    else:
        try:
            with open(args.output_file, "w", encoding="ascii", newline="\n") as file:  # noqa: PTH123
                file.write(text)
        except OSError as error:
            raise ConfigError(f"{args.output_file}: {error.strerror}") from error
    return 1 if count and not args.exit_zero else 0


def _load(file: str) -> Any:
    try:
        with open(file, encoding="utf-8") as report:  # noqa: PTH123
            content = json.load(report)
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}") from error
    except json.JSONDecodeError as error:
        raise ConfigError(f"{file}:{error.lineno}: no valid JSON: {error.msg}") from error
    except (UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{file}: no valid JSON: {error}") from error
    if not isinstance(content, list) and not (isinstance(content, dict) and isinstance(content.get("runs"), list)):
        raise ConfigError(f"{file}: neither a json nor a sarif report of torchlint")
    return content


def _distinct(rows: Iterable[Row]) -> list[Row]:
    """Rows without those that another part has reported as well."""
    return list({json.dumps(row, sort_keys=True): row for row in rows}.values())


# -------------------------------------------------------------------- json


def _joint_json(parts: Sequence[list[Row]]) -> tuple[list[Row], int]:
    rows = sorted(_distinct(row for part in parts for row in part), key=_json_order)
    return rows, len(rows)


def _json_order(row: Row) -> tuple[Any, ...]:
    location = row["location"]
    return row["filename"], row["cell"] or 0, location["row"], location["column"], row["code"], row["message"]


# -------------------------------------------------------------------- sarif


def _joint_sarif(parts: Sequence[Row]) -> tuple[Row, int]:
    """One log with one run: the rules of all parts, and their results with the rules' new numbers."""
    runs = [run for part in parts for run in part["runs"]]
    driver = runs[0]["tool"]["driver"]
    rules = {rule["id"]: rule for run in runs for rule in run["tool"]["driver"]["rules"]}
    numbers = {code: number for number, code in enumerate(sorted(rules))}
    results = _distinct({**row, "ruleIndex": numbers[row["ruleId"]]} for run in runs for row in run["results"])
    results.sort(key=_sarif_order)
    run = {
        **runs[0],
        "results": results,
        "tool": {"driver": {**driver, "rules": [rules[code] for code in sorted(rules)]}},
    }
    return {**parts[0], "runs": [run]}, len(results)


def _sarif_order(row: Row) -> tuple[Any, ...]:
    place = row["locations"][0]["physicalLocation"]
    region = place["region"]
    return (
        unquote(place["artifactLocation"]["uri"], errors="surrogateescape"),
        row.get("properties", {}).get("cell", 0),
        region["startLine"],
        region["startColumn"],
        row["ruleId"],
        row["message"]["text"],
    )
