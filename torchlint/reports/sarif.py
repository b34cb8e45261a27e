"""For code scanning services: SARIF 2.1.0, with the rules' pages and the fixes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from torchlint import __version__
from torchlint.finding import Finding, Position, RuleInfo, Severity
from torchlint.reports import ReportContext
from torchlint.reports.fingerprints import fingerprints
from torchlint.reports.paths import relative

_LEVEL = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def render(findings: Sequence[Finding], context: ReportContext) -> str:
    """One run, with the rules that were found broken. Paths are relative to the current folder where they can be."""
    found = {finding.code: finding for finding in findings}
    cards = {card.code: card for card in context.rules}
    codes = sorted(found)
    log = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "runs": [
            {
                "columnKind": "unicodeCodePoints",
                "originalUriBaseIds": {"SRCROOT": {"uri": Path.cwd().as_uri().rstrip("/") + "/"}},
                "results": [
                    _result(finding, codes.index(finding.code), fingerprint)
                    for finding, fingerprint in zip(findings, fingerprints(findings), strict=True)
                ],
                "tool": {
                    "driver": {
                        "name": context.tool,
                        "rules": [_rule(found[code], cards.get(code)) for code in codes],
                        "version": __version__,
                    }
                },
            }
        ],
        "version": "2.1.0",
    }
    return json.dumps(log, indent=2) + "\n"


def _result(finding: Finding, rule_index: int, fingerprint: str) -> dict[str, Any]:
    artifact = _artifact(finding.filename)
    result: dict[str, Any] = {
        "level": _LEVEL[finding.severity],
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": artifact,
                    "region": _region(finding.location, finding.end_location),
                }
            }
        ],
        "message": {"text": f"{finding.message}\n{finding.help}" if finding.help else finding.message},
        "partialFingerprints": {"torchlint/v1": fingerprint},
        "ruleId": finding.code,
        "ruleIndex": rule_index,
    }
    properties = {"cell": finding.cell, "failure": finding.failure or None}
    if any(value is not None for value in properties.values()):
        result["properties"] = {key: value for key, value in properties.items() if value is not None}
    if finding.fix is not None and finding.fix.edits:
        result["fixes"] = [
            {
                "artifactChanges": [
                    {
                        "artifactLocation": artifact,
                        "replacements": [
                            {
                                "deletedRegion": _region(edit.start, edit.end),
                                "insertedContent": {"text": edit.content},
                            }
                            for edit in finding.fix.edits
                        ],
                    }
                ],
                "description": {"text": finding.fix.message},
                "properties": {"applicability": finding.fix.applicability.value},
            }
        ]
    return result


def _artifact(filename: str) -> dict[str, str]:
    path = relative(filename)
    if Path(path).is_absolute():
        return {"uri": Path(path).as_uri()}
    return {"uri": quote(path.encode("utf-8", "surrogateescape")), "uriBaseId": "SRCROOT"}


def _region(start: Position, end: Position) -> dict[str, int]:
    return {"endColumn": end.column, "endLine": end.row, "startColumn": start.column, "startLine": start.row}


def _rule(example: Finding, card: RuleInfo | None) -> dict[str, Any]:
    level = _LEVEL[example.severity]
    rule: dict[str, Any] = {
        "defaultConfiguration": {"enabled": example.severity is not Severity.INFO, "level": level},
        "id": example.code,
        "name": "".join(part.capitalize() for part in example.name.split("-")),
        "properties": {"name": example.name, "problem.severity": example.severity.value},
        "shortDescription": {"text": card.summary if card else example.name},
    }
    if card is not None:
        rule["fullDescription"] = {"text": card.summary}
        rule["help"] = {"markdown": card.page, "text": card.page}
    return rule
