"""For CI servers that show test results: every finding is a failed test of its file."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from xml.etree import ElementTree

from torchlint.finding import Finding
from torchlint.reports import ReportContext
from torchlint.reports.text import place, printable


def render(findings: Sequence[Finding], context: ReportContext) -> str:
    """One suite per file. Where nothing was found one test passes: some servers reject a report without any."""
    total = len(findings) or 1
    root = ElementTree.Element(
        "testsuites", name=context.tool, tests=str(total), skipped="0", failures=str(len(findings)), errors="0"
    )
    if not findings:
        suite = _suite(root, context.tool, 1, 0, context)
        name = f"no findings in {context.files_checked} files"
        ElementTree.SubElement(suite, "testcase", name=name, classname=context.tool)
    for filename, group in groupby(findings, key=lambda finding: finding.filename):
        members = list(group)
        suite = _suite(root, _text(filename), len(members), len(members), context)
        for finding in members:
            _case(suite, finding)
    ElementTree.indent(root, "    ")
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _suite(
    root: ElementTree.Element, name: str, tests: int, failures: int, context: ReportContext
) -> ElementTree.Element:
    return ElementTree.SubElement(
        root,
        "testsuite",
        name=name,
        tests=str(tests),
        skipped="0",
        errors="0",
        failures=str(failures),
        package=context.tool,
    )


def _case(suite: ElementTree.Element, finding: Finding) -> None:
    case = ElementTree.SubElement(
        suite,
        "testcase",
        name=f"{finding.code} {finding.name}",
        classname=_text(str(Path(finding.filename).with_suffix(""))),
        line=str(finding.location.row),
        column=str(finding.location.column),
    )
    properties = ElementTree.SubElement(case, "properties")
    ElementTree.SubElement(properties, "property", name="severity", value=finding.severity.value)
    message = _text(finding.message)
    failure = ElementTree.SubElement(case, "failure", type=finding.severity.value, message=message)
    failure.text = _text(f"{place(finding)}: {finding.message}" + (f" {finding.help}" if finding.help else ""))


def _text(text: str) -> str:
    """XML can't hold control characters, not even escaped."""
    return printable(text).replace("\ufffe", "\ufffd").replace("\uffff", "\ufffd")
