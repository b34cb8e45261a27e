"""A finding as plain data with Ruff's fields: what json and json-lines print."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torchlint.finding import Finding, Position


def row(finding: Finding) -> dict[str, Any]:
    """The fields of Ruff's JSON, in Ruff's order, with ``help`` and ``failure`` besides.

    File names are absolute, as Ruff's, so that a report can be read from anywhere.
    """
    fix = finding.fix
    return {
        "cell": finding.cell,
        "code": finding.code,
        "end_location": location(finding.end_location),
        "failure": finding.failure or None,
        "filename": finding.filename if finding.filename == "-" else str(Path(finding.filename).absolute()),
        "fix": None
        if fix is None
        else {
            "applicability": fix.applicability.value,
            "edits": [
                {"content": edit.content, "end_location": location(edit.end), "location": location(edit.start)}
                for edit in fix.edits
            ],
            "message": fix.message,
        },
        "help": finding.help or None,
        "location": location(finding.location),
        "message": finding.message,
        "name": finding.name,
        "noqa_row": finding.noqa_row or finding.location.row,
        "severity": finding.severity.value,
        "url": None,
    }


def location(position: Position) -> dict[str, int]:
    """A place with Ruff's keys."""
    return {"column": position.column, "row": position.row}
