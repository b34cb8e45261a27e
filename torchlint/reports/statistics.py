"""``--statistics``: how often each rule was broken, most often first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchlint.finding import Applicability, Finding
from torchlint.reports import ReportContext
from torchlint.reports.text import closing, paint


def render(findings: Sequence[Finding], context: ReportContext, *, as_json: bool = False) -> str:
    """A table for people, or Ruff's JSON."""
    rows = _rows(findings)
    if as_json:
        import json

        return json.dumps(rows, indent=2) + "\n"
    width = max((len(str(row["count"])) for row in rows), default=0)
    lines = [
        f"{paint(str(row['count']).rjust(width), 'bold', context.color)}  {row['code']}  "
        f"[{_star(row, context.color)}]  {row['name']}\n"
        for row in rows
    ]
    return "".join(lines) + closing(findings, context)


def _star(row: dict[str, Any], color: bool) -> str:
    """All fixable, some fixable, none fixable: as Ruff marks them."""
    if row["fixable"]:
        return paint("*", "cyan", color)
    return paint("-", "cyan", color) if row["fixable_count"] else " "


def _rows(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = {}
    for finding in findings:
        row = rows.setdefault(
            finding.code, {"code": finding.code, "name": finding.name, "count": 0, "fixable": False, "fixable_count": 0}
        )
        row["count"] += 1
        if finding.fix is not None and finding.fix.applicability is Applicability.SAFE:
            row["fixable_count"] += 1
    for row in rows.values():
        row["fixable"] = row["count"] == row["fixable_count"]
    return sorted(rows.values(), key=lambda row: (-row["count"], row["code"]))
