"""For people in a hurry and for editors: one line per finding."""

from __future__ import annotations

from collections.abc import Sequence

from torchlint.finding import Finding
from torchlint.reports import ReportContext
from torchlint.reports.text import closing, code, mark, paint, place, printable


def render(findings: Sequence[Finding], context: ReportContext) -> str:
    """``path:row:column: TL101 [*] message``, then the closing line."""
    color = context.color
    lines = [
        f"{paint(printable(finding.filename), 'bold', color)}:{place(finding)}: "
        f"{code(finding, color)} {mark(finding, context)}{printable(finding.message)}\n"
        for finding in findings
    ]
    return "".join(lines) + closing(findings, context)
