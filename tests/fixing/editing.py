"""What the tests of edits and fixes share: finding a node by its text, and small lint functions to fix with."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from torchlint.finding import Applicability, Edit, Finding, Fix, Severity
from torchlint.fixing.applying import apply_edits
from torchlint.source.edits import Edits, rename_attribute, safe, unsafe
from torchlint.source.file import SourceFile, source_from_text


def node(source: SourceFile, text: str, kind: type[ast.AST] = ast.AST) -> Any:
    """The outermost node that is written so."""
    for found in ast.walk(source.tree):
        if hasattr(found, "lineno") and isinstance(found, kind) and source.segment(found) == text:
            return found
    raise AssertionError(f"{text!r} is no {kind.__name__} of\n{source.text}")


def changed(source: SourceFile, edits: Edits | None) -> str | None:
    """The text with the edits made; it must still parse."""
    if edits is None:
        return None
    text = apply_edits(source, edits).after.text
    ast.parse(text)
    return text


def expression(text: str, at: str, edit: Callable[..., Edits | None], *arguments: object) -> str | None:
    """The text after an edit of the expression written as ``at``."""
    source = source_from_text(text)
    return changed(source, edit(source, node(source, at, ast.expr), *arguments))


def statement(
    text: str, at: str, edit: Callable[..., Edits | None], *arguments: object, **options: object
) -> str | None:
    """The text after an edit of the statement written as ``at``."""
    source = source_from_text(text)
    return changed(source, edit(source, node(source, at, ast.stmt), *arguments, **options))


def finding(
    source: SourceFile, found: ast.AST, code: str, fix: Fix | None, message: str = "a fault", filename: str = ""
) -> Finding:
    """A finding at a node as a check reports it, with places within the cell in a notebook."""
    start, end = source.span(found)
    placed = source.cell(start.row)
    cell, row = placed if placed else (None, start.row)
    shift = start.row - row
    return Finding(
        code,
        code.lower(),
        message,
        Severity.ERROR,
        filename or source.filename,
        type(start)(row, start.column),
        type(end)(end.row - shift, end.column),
        fix=fix,
        cell=cell,
    )


Repair = Callable[[SourceFile, Any], Edits | None]


def lint_calls(rules: dict[str, tuple[str, Repair]], unsafe_codes: Sequence[str] = ()) -> Callable[..., list[Finding]]:
    """A lint that reports every method called by a name, by code, with a repair: ``{"TL305": ("view", repair)}``."""

    def lint(source: SourceFile) -> list[Finding]:
        findings = []
        for call in ast.walk(source.tree):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
                for code, (name, repair) in rules.items():
                    if call.func.attr == name:
                        make = unsafe if code in unsafe_codes else safe
                        findings.append(finding(source, call, code, make(f"repair {name}", repair(source, call))))
        return sorted(findings, key=lambda found: found.sort_key)

    return lint


def to_reshape(source: SourceFile, call: ast.Call) -> Edits | None:
    """``x.view(...)`` -> ``x.reshape(...)``."""
    assert isinstance(call.func, ast.Attribute)
    return rename_attribute(source, call.func, "reshape")


views = lint_calls({"TL305": ("view", to_reshape)})
"""Reports every ``.view(...)``."""


def fix_of(*edits: Edit, applicability: Applicability = Applicability.SAFE) -> Fix:
    """A fix of bare edits."""
    return Fix("a repair", applicability, edits)
