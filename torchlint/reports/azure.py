"""For Azure Pipelines: logging commands that become issues of the build."""

from __future__ import annotations

from collections.abc import Sequence

from torchlint.finding import Finding, Severity
from torchlint.reports import ReportContext
from torchlint.reports.text import printable


def render(findings: Sequence[Finding], context: ReportContext) -> str:
    """One ``##vso[task.logissue]`` command per finding. Azure knows errors and warnings only."""
    return "".join(
        f"##vso[task.logissue type={'error' if finding.severity is Severity.ERROR else 'warning'};"
        f"sourcepath={_escaped(finding.filename)};linenumber={finding.location.row};"
        f"columnnumber={finding.location.column};code={finding.code};]{printable(finding.message)}\n"
        for finding in findings
    )


def _escaped(text: str) -> str:
    """A property of a logging command, in which ``;`` and ``]`` would end it."""
    return printable(text).replace("%", "%AZP25").replace(";", "%3B").replace("]", "%5D")
