"""For GitHub Actions: workflow commands that become annotations at the lines of a pull request."""

from __future__ import annotations

from collections.abc import Sequence

from torchlint.finding import Finding, Severity
from torchlint.reports import ReportContext
from torchlint.reports.text import place, printable

_COMMAND = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def render(findings: Sequence[Finding], context: ReportContext) -> str:
    """One ``::error`` command per finding; the text repeats the place for readers of the plain log."""
    return "".join(f"{_command(finding, context)}\n" for finding in findings)


def _command(finding: Finding, context: ReportContext) -> str:
    fields = {"title": f"{context.tool} ({finding.code})", "file": printable(finding.filename)}
    # Rows of a notebook's cell mean nothing in the file that GitHub shows; its first line is the honest place.
    if finding.cell is None:
        fields["line"] = str(finding.location.row)
        fields["col"] = str(finding.location.column)
        fields["endLine"] = str(finding.end_location.row)
        fields["endColumn"] = str(finding.end_location.column)
    else:
        fields["line"] = "1"
    message = f"{finding.filename}:{place(finding)}: {finding.code} {finding.message}"
    lines = [message, f"  help: {finding.help}"] if finding.help else [message]
    properties = ",".join(f"{key}={_escaped_property(value)}" for key, value in fields.items())
    return f"::{_COMMAND[finding.severity]} {properties}::{'%0A'.join(map(_escaped, lines))}"


def _escaped(text: str) -> str:
    """Data of a workflow command: a percent sign, and nothing that could begin another command on a new line."""
    return printable(text).replace("%", "%25")


def _escaped_property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")
