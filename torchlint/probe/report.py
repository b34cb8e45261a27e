"""What a run came to: results by target, as findings of torchlint, and the text for people."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torchlint.finding import Applicability, Edit, Finding, Fix, Position, RuleInfo, Severity
from torchlint.probe.launcher import Event, human
from torchlint.probe.worker.names import FINDS, NAMES

CODES = tuple(NAMES)


@dataclass
class TargetResult:
    """Everything the workers told about one target."""

    label: str
    built: Event | None = None
    inputs: Event | None = None
    table: Event | None = None
    checks: dict[str, Event] = field(default_factory=dict)
    models: list[Event] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        """Whether any check found something."""
        return any(event["status"] == "failed" for event in self.checks.values())


class Results:
    """Collects events."""

    def __init__(self) -> None:
        self.targets: dict[str, TargetResult] = {}
        self.hello: Event = {}

    def take(self, event: Event) -> None:
        """Take in one event."""
        kind = event["event"]
        if kind == "hello":
            self.hello = event
            return
        result = self.targets.setdefault(event["target"], TargetResult(event["target"]))
        if kind == "check":
            result.checks[event["code"]] = event
        elif kind == "built":
            result.built = event
        elif kind == "inputs":
            result.inputs = event
        elif kind == "table":
            result.table = event
        elif kind == "model":
            result.models.append(event)
        elif kind == "trouble":
            result.notes.append(event["text"])

    @property
    def errors(self) -> list[str]:
        """Checks that failed themselves: a fault of torchlint."""
        return [
            f"{result.label}: {code} ({event['name']}): {event['reason']}"
            for result in self.targets.values()
            for code, event in result.checks.items()
            if event["status"] == "error"
        ]

    def expect_skipped(self, label: str, allowed: Sequence[str]) -> None:
        """Make a check that skips, and isn't among those expected to, a failure."""
        result = self.targets.get(label)
        for code, event in result.checks.items() if result is not None else ():
            if event["status"] == "skipped" and code not in allowed and "(TP103)" not in event["reason"]:
                event["status"] = "failed"
                site = result.built.get("site") if result is not None and result.built else None
                event["problems"] = [
                    {
                        "message": f"{event['name']} was skipped and isn't expected to be: {event['reason']}",
                        "site": site,
                        "help": "add the code to expect-skipped if that is as it should be",
                        "severity": "error",
                    }
                ]


def findings(results: Results, default_file: Mapping[str, str]) -> list[Finding]:
    """All findings in report order; ``default_file`` is the file of a target for faults without a place."""
    found = [
        _finding(code, problem, result, default_file)
        for result in results.targets.values()
        for code, event in result.checks.items()
        if event["status"] == "failed"
        for problem in event["problems"]
    ]
    # Two targets may share a faulty layer: one fault, one finding.
    unique = {(f.code, f.filename, f.location, f.message): f for f in found}
    return sorted(unique.values(), key=lambda finding: finding.sort_key)


def _finding(code: str, problem: Mapping[str, Any], result: TargetResult, default_file: Mapping[str, str]) -> Finding:
    site = problem.get("site") or (result.built or {}).get("site")
    file = site["file"] if site else default_file.get(result.label) or result.label.split(":")[0]
    start = Position(site["row"], site["column"]) if site else Position(1, 1)
    end = Position(site["end_row"], site["end_column"]) if site else Position(1, 1)
    return Finding(
        code=code,
        name=NAMES[code],
        message=problem["message"],
        severity=Severity(problem.get("severity") or "error"),
        filename=shown_path(file),
        location=start,
        end_location=end,
        help=problem.get("help") or "",
        failure=problem.get("failure") or "",
        fix=_fix(problem.get("change")),
        noqa_row=start.row,
    )


def _fix(change: Mapping[str, Any] | None) -> Fix | None:
    if change is None:
        return None
    site = change["site"]
    edit = Edit(Position(site["row"], site["column"]), Position(site["end_row"], site["end_column"]), change["new"])
    return Fix(change["message"], Applicability.SAFE, (edit,))


def shown_path(file: str) -> str:
    """A path relative to the current folder where it lies in it."""
    try:
        relative = os.path.relpath(file)
    except ValueError:
        return file
    return file if relative.startswith("..") else relative


def rule_cards() -> list[RuleInfo]:
    """The cards of the probe's checks, for formats that describe rules."""
    return [RuleInfo(code, NAMES[code], Severity.ERROR, None, FINDS[code], FINDS[code]) for code in CODES]


# ---- text


def summary(result: TargetResult, verbose: bool) -> Iterator[str]:
    """One target's part of the report for people, without the findings."""
    built = result.built
    yield f"{result.label}" + (f"  {built['model']}, {count(built['parameters'])} parameters" if built else "")
    if built and built["fake"]:
        yield "  too large to be built and run here: shapes, gradients' paths and memory are worked out on fake tensors"
    if built:
        said = result.checks.get("TP102", {}).get("reason")
        if said:
            yield f"  built with {said}"
    inputs = result.inputs
    if inputs is not None:
        word = "inputs" if inputs["ok"] else "closest inputs"
        yield f"  {word}: {', '.join(inputs['shown']) or 'none'}" + (
            f" (batch of {inputs['batch']})" if inputs.get("batch") else ""
        )
        if inputs["why"] and inputs["why"] != ["told"]:
            trials = f" ({inputs['trials']} trials)" if inputs.get("trials") else ""
            yield f"  chosen because: {'; '.join(inputs['why'])}{trials}"
    if result.table is not None and result.table.get("rows"):
        yield ""
        yield from table_lines(result.table)
        yield ""
    yield from _status_lines(result, verbose)


def _status_lines(result: TargetResult, verbose: bool) -> Iterator[str]:
    by_status: dict[str, list[str]] = {}
    for code, event in result.checks.items():
        by_status.setdefault(event["status"], []).append(f"{code} {event['name']}")
    for status in ("passed", "failed", "error"):
        if status in by_status:
            yield f"  {status}: {', '.join(by_status[status])}"
    for status in ("skipped", "not asked"):
        reasons: dict[str, list[str]] = {}
        for code, event in result.checks.items():
            if event["status"] == status:
                reasons.setdefault(event["reason"], []).append(f"{code} {event['name']}")
        for reason, codes in reasons.items():
            yield f"  {status}: {', '.join(codes)}: {reason}"
    for code, event in result.checks.items():
        if event["status"] in ("passed", "failed") and event["reason"] and code != "TP102":
            yield f"  {code} {event['name']}: {event['reason']}"
    if verbose:
        for note in result.notes:
            yield from (f"    {line}" for line in note.splitlines())


def table_lines(table: Event) -> Iterator[str]:
    """The table of layers, in the manner of torchinfo."""
    rows = table["rows"]
    cells = [("layer", "class", "input", "output", "params", "buffers", "device", "source")]
    for row in rows:
        where = row["where"]
        source = f"{Path(where[0]).name}:{where[1]}" if where else ""
        name = "  " * row["depth"] + (row["path"].split(".")[-1] or "(model)")
        params = "(shared)" if row["shared"] and row["kind"] else count(row["parameters"]) if row["parameters"] else "-"
        buffers = count(row["buffers"]) if row["buffers"] else "-"
        cells.append(
            (name, row["kind"], _cut(row["inputs"]), _cut(row["output"]), params, buffers, row["device"] or "-", source)
        )
    if len(cells) > 121:
        cells = [*cells[:61], (f"... {len(cells) - 121} more", "", "", "", "", "", "", ""), *cells[-60:]]
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
    for index, line in enumerate(cells):
        yield "  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=False)).rstrip()
        if index == 0:
            yield "  " + "  ".join("-" * width for width in widths)
    total, trainable = table["total"], table["trainable"]
    yield (
        f"  {count(total)} parameters ({count(trainable)} trainable, {count(total - trainable)} frozen), "
        f"{count(table['buffers'])} buffer elements, {human(table['bytes'])}"
    )
    if table["unused"]:
        yield f"  not called in forward: {', '.join(table['unused'][:8])}"


def _cut(text: str) -> str:
    return text if len(text) <= 44 else text[:41] + "..."


def count(number: int) -> str:
    """A number with thousands separated."""
    return f"{number:,}"


def listed(result: TargetResult) -> Iterator[str]:
    """The models of a file that weren't probed, with what they need."""
    for model in result.models:
        if model["needs"]:
            flags = ", ".join(f"{name}=..." for name in model["needs"])
            yield f"  {model['label']}: not probed, it needs arguments: '{model['label']}({flags})'"


class Lines:
    """Source lines for renderers that quote them."""

    def __init__(self) -> None:
        self._files: dict[str, list[str]] = {}

    def line(self, filename: str, cell: int | None, row: int) -> str | None:
        """One line without its end, None where there is none."""
        if filename not in self._files:
            try:
                text = Path(filename).read_text(encoding="utf-8", errors="replace")
            except OSError:
                text = ""
            self._files[filename] = text.splitlines()
        lines = self._files[filename]
        return lines[row - 1] if 0 < row <= len(lines) else None


def record(results: Results, found: Iterable[Finding]) -> dict[str, Any]:
    """The whole run as JSON can carry it, for scripts."""
    return {
        "worker": results.hello,
        "targets": [
            {
                "label": result.label,
                "built": result.built,
                "inputs": result.inputs,
                "table": result.table,
                "checks": result.checks,
                "models": result.models,
                "notes": result.notes,
            }
            for result in results.targets.values()
        ],
        "findings": [
            {
                "code": f.code,
                "message": f.message,
                "filename": f.filename,
                "row": f.location.row,
                "severity": str(f.severity),
            }
            for f in found
        ],
    }
