"""For people: findings under the file they are in."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from torchlint.finding import Finding
from torchlint.reports import ReportContext
from torchlint.reports.text import closing, code, mark, paint, place, printable


def render(findings: Sequence[Finding], context: ReportContext) -> str:
    """A heading per file, its findings in aligned lines below it, then the closing line."""
    color = context.color
    lines: list[str] = []
    for filename, group in groupby(findings, key=lambda finding: finding.filename):
        members = list(group)
        width = max(len(place(finding)) for finding in members)
        lines.append(f"{paint(printable(filename), 'bold', color)}:")
        lines.extend(
            f"  {place(finding):{width}} {code(finding, color)} {mark(finding, context)}{printable(finding.message)}"
            for finding in members
        )
        lines.append("")
    return "".join(f"{line}\n" for line in lines) + closing(findings, context)
