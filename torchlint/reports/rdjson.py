"""For reviewdog: its diagnostic format, with fixes as suggestions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from torchlint.finding import Finding, Position, Severity
from torchlint.reports import ReportContext
from torchlint.reports.paths import relative

_SEVERITY = {Severity.ERROR: "ERROR", Severity.WARNING: "WARNING", Severity.INFO: "INFO"}


def render(findings: Sequence[Finding], context: ReportContext) -> str:
    """One DiagnosticResult."""
    result = {
        "diagnostics": [_diagnostic(finding) for finding in findings],
        "severity": "WARNING",
        "source": {"name": context.tool},
    }
    return json.dumps(result, indent=2) + "\n"


def _diagnostic(finding: Finding) -> dict[str, Any]:
    diagnostic: dict[str, Any] = {
        "code": {"value": finding.code},
        "location": {
            "path": relative(finding.filename),
            "range": _range(finding.location, finding.end_location),
        },
        "message": finding.message,
        "severity": _SEVERITY[finding.severity],
    }
    if finding.fix is not None:
        diagnostic["suggestions"] = [
            {"range": _range(edit.start, edit.end), "text": edit.content} for edit in finding.fix.edits
        ]
    return diagnostic


def _range(start: Position, end: Position) -> dict[str, Any]:
    return {
        "end": {"column": end.column, "line": end.row},
        "start": {"column": start.column, "line": start.row},
    }
