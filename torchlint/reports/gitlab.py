"""For GitLab: a code quality report, shown in merge requests."""

from __future__ import annotations

import json
from collections.abc import Sequence

from torchlint.finding import Finding, Severity
from torchlint.reports import ReportContext
from torchlint.reports.fingerprints import fingerprints
from torchlint.reports.paths import relative

_SEVERITY = {Severity.ERROR: "major", Severity.WARNING: "minor", Severity.INFO: "info"}


def render(findings: Sequence[Finding], context: ReportContext) -> str:
    """The report; an empty array where nothing was found, as GitLab wants it."""
    issues = [
        {
            "check_name": finding.code,
            "description": f"{finding.code}: {finding.message}",
            "severity": _SEVERITY[finding.severity],
            "fingerprint": fingerprint,
            "location": {
                "path": relative(finding.filename),
                "positions": {
                    "begin": {"line": finding.location.row, "column": finding.location.column},
                    "end": {"line": finding.end_location.row, "column": finding.end_location.column},
                },
            },
        }
        for finding, fingerprint in zip(findings, fingerprints(findings), strict=True)
    ]
    return json.dumps(issues, indent=2) + "\n"
