"""How findings are printed: one module per output format, each with one ``render`` function.

A renderer gets findings in their final order and returns the whole report as text. It reads no file: what it wants to
quote it asks of ``ReportContext.line_of``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torchlint.config import OUTPUT_FORMATS as FORMATS
from torchlint.finding import Finding, RuleInfo

__all__ = ["FORMATS", "TEXT_FORMATS", "ReportContext", "render"]

TEXT_FORMATS = ("full", "concise", "grouped")
"""The formats for people: they may be coloured and end with a closing line."""


def _no_line(filename: str, cell: int | None, row: int) -> str | None:
    return None


@dataclass(frozen=True, slots=True)
class ReportContext:
    """What a renderer may need beside the findings.

    ``line_of(filename, cell, row)`` is a source line without its end, or None where there is none to show.
    ``rules`` are the cards of the rules that were run, for formats that describe them. With ``unsafe_fixes`` these
    count as fixable too. ``closing`` stands for the usual last lines of the formats for people.
    """

    line_of: Callable[[str, int | None, int], str | None] = _no_line
    color: bool = False
    files_checked: int = 0
    rules: Sequence[RuleInfo] = ()
    tool: str = "torchlint"
    unsafe_fixes: bool = False
    closing: str | None = None


def render(output_format: str, findings: Sequence[Finding], context: ReportContext) -> str:
    """The report in one of FORMATS; ends with a newline unless it is empty."""
    import importlib

    module = importlib.import_module(f"torchlint.reports.{output_format.replace('-', '_')}")
    text: str = module.render(findings, context)
    return text
