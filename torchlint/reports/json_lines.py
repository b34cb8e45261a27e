"""For programs that read as findings come: one JSON object per line."""

from __future__ import annotations

import json
from collections.abc import Sequence

from torchlint.finding import Finding
from torchlint.reports import ReportContext
from torchlint.reports.rows import row


def render(findings: Sequence[Finding], context: ReportContext) -> str:
    """Nothing at all where nothing was found."""
    return "".join(json.dumps(row(finding), separators=(",", ":")) + "\n" for finding in findings)
