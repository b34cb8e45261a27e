"""For people: each finding with its source line, what to write instead, and the failure it prevents."""

from __future__ import annotations

from collections.abc import Sequence

from torchlint.finding import Applicability, Finding
from torchlint.reports import ReportContext
from torchlint.reports.text import closing, code, mark, paint, place, printable

_CONTEXT_LINES = 2
_TAB = 4
_WIDTH = 160
"""Columns of a source line that are shown at most: some generated files are one line of a megabyte."""


def render(findings: Sequence[Finding], context: ReportContext) -> str:
    """Every finding as a paragraph, then the closing line."""
    blocks = [_block(finding, context) + "\n" for finding in findings]
    return "".join(blocks) + closing(findings, context)


def _block(finding: Finding, context: ReportContext) -> str:
    color = context.color
    lines = [f"{code(finding, color)} {mark(finding, context)}{paint(printable(finding.message), 'bold', color)}"]
    excerpt = _excerpt(finding, context)
    gutter = " " * max(len(str(row)) for row, _ in excerpt) if excerpt else " "
    lines.append(f"{gutter}{paint('-->', 'blue', color)} {printable(finding.filename)}:{place(finding)}")
    if excerpt:
        bar = paint("|", "blue", color)
        lines.append(f"{gutter} {bar}")
        for row, (shown, carets) in excerpt:
            number = paint(str(row).rjust(len(gutter)), "blue", color)
            lines.append(f"{number} {bar} {shown}".rstrip())
            if carets:
                lines.append(f"{gutter} {bar} {paint(carets, 'red', color)}")
        lines.append(f"{gutter} {bar}")
    lines.extend(_advice(finding, color))
    return "\n".join(lines) + "\n"


def _advice(finding: Finding, color: bool) -> list[str]:
    said = []
    fix = finding.fix
    if finding.help:
        said.append(("help", finding.help, "cyan"))
    if fix is not None and fix.message and fix.message != finding.help:
        said.append(("fix" if fix.applicability is Applicability.SAFE else "unsafe fix", fix.message, "cyan"))
    prevented = _failure(finding.failure)
    if prevented:
        said.append(("prevents", prevented, "yellow"))
    return [f"{paint(label + ':', style, color)} {_indented(text)}" for label, text, style in said]


def _indented(text: str) -> str:
    """Advice may be several lines: code to write, above all."""
    return "\n  ".join(printable(line) for line in text.split("\n"))


def _failure(identifier: str) -> str:
    if not identifier:
        return ""
    from torchlint.catalogue import failure_title

    title = failure_title(identifier)
    return title if title == identifier else f"{title} ({identifier})"


def _excerpt(finding: Finding, context: ReportContext) -> list[tuple[int, tuple[str, str]]]:
    """The rows to show, each with its line and the carets under it."""
    row, start = finding.location.row, finding.location.column
    line = context.line_of(finding.filename, finding.cell, row)
    if line is None:
        return []
    same_row = finding.end_location.row == row
    # A finding over several rows is underlined to the end of its first one.
    end = finding.end_location.column if same_row else len(line.rstrip()) + 1
    shift = max(0, start - 1 - _WIDTH // 2) if len(line) > _WIDTH else 0
    shown: list[tuple[int, tuple[str, str]]] = []
    for near in range(max(1, row - _CONTEXT_LINES), row + _CONTEXT_LINES + 1):
        text = line if near == row else context.line_of(finding.filename, finding.cell, near)
        if text is None:
            continue
        carets = (start - 1, max(end, start + 1) - 1) if near == row else None
        shown.append((near, _displayed(text, shift, carets)))
    while shown and shown[0][0] != row and not shown[0][1][0].strip():
        del shown[0]
    while shown and shown[-1][0] != row and not shown[-1][1][0].strip():
        del shown[-1]
    return shown


def _displayed(line: str, shift: int, span: tuple[int, int] | None) -> tuple[str, str]:
    """A line as it is shown, and the carets under ``span`` (0-based, in code points of the line)."""
    shown: list[str] = []
    carets: list[str] = []
    if shift:
        shown.append("…")
        carets.append(" ")
    for index in range(shift, min(len(line), shift + _WIDTH)):
        char = line[index]
        text = " " * _TAB if char == "\t" else printable(char)
        shown.append(text)
        if span is not None:
            carets.append(("^" if span[0] <= index < span[1] else " ") * _width(text))
    if len(line) > shift + _WIDTH:
        shown.append("…")
    if span is not None and span[0] >= len(line):
        # What is missing at the end of a line has no character to stand under.
        carets.append("^")
    return "".join(shown), "".join(carets).rstrip()


def _width(text: str) -> int:
    """The columns of a terminal that the text takes."""
    if text.isascii():
        return len(text)
    import unicodedata

    if unicodedata.combining(text):
        return 0
    return 2 if unicodedata.east_asian_width(text) in "WF" else 1
