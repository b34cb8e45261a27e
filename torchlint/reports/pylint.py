"""For tools that read pylint's parseable output."""

from __future__ import annotations

from collections.abc import Sequence

from torchlint.finding import Finding
from torchlint.reports import ReportContext
from torchlint.reports.text import printable


def render(findings: Sequence[Finding], context: ReportContext) -> str:
    """``path:row: [TL101] message``."""
    return "".join(
        f"{printable(finding.filename)}:{finding.location.row}: [{finding.code}] {printable(finding.message)}\n"
        for finding in findings
    )
