"""For programs: a JSON array of findings with Ruff's fields."""

from __future__ import annotations

import json
from collections.abc import Sequence

from torchlint.finding import Finding
from torchlint.reports import ReportContext
from torchlint.reports.rows import row


def render(findings: Sequence[Finding], context: ReportContext) -> str:
    """The array; ASCII only, so that it survives any terminal and any pipe."""
    return json.dumps([row(finding) for finding in findings], indent=2) + "\n"
