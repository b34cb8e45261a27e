"""What the formats for people share: places, marks, colours, and text that is safe to send to a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from torchlint.finding import Applicability, Finding, Severity
from torchlint.reports import ReportContext

# A source file may hold escape sequences that rewrite the screen, and marks that reorder the text around them. Each
# becomes one visible character, so that columns stay where they are. Tabs are for the caller to deal with.
_VISIBLE: dict[int, str] = {code: chr(0x2400 + code) for code in range(0x20)}
_VISIBLE[0x7F] = "\u2421"
_VISIBLE.update(
    dict.fromkeys(
        (
            *range(0x80, 0xA0),  # C1 controls: 0x9B is an escape sequence's start in one byte
            *(0x061C, 0x200B, 0x200E, 0x200F, 0x2028, 0x2029, 0xFEFF),
            *range(0x202A, 0x202F),  # bidirectional embeddings and overrides
            *range(0x2066, 0x206A),  # bidirectional isolates
            *range(0xD800, 0xE000),  # lone surrogates: bytes of a file name that are no text
            *range(0xE0000, 0xE0080),  # invisible tags
        ),
        "\ufffd",
    )
)

_STYLES = {
    "bold": "1",
    "dim": "2",
    "red": "1;31",
    "green": "32",
    "yellow": "1;33",
    "blue": "1;34",
    "cyan": "36",
}

_SEVERITY_STYLE = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.INFO: "blue"}


def printable(text: str) -> str:
    """The text with every character that a terminal would obey made visible instead."""
    if text.isascii() and text.isprintable():
        return text
    return text.translate(_VISIBLE)


def paint(text: str, style: str, color: bool) -> str:
    """The text in a style, or as it is."""
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if color and text else text


def code(finding: Finding, color: bool) -> str:
    """The finding's code in the colour of its severity."""
    return paint(finding.code, _SEVERITY_STYLE[finding.severity], color)


def place(finding: Finding) -> str:
    """``row:column``, with the cell before it in a notebook."""
    location = f"{finding.location.row}:{finding.location.column}"
    return location if finding.cell is None else f"cell {finding.cell}:{location}"


def mark(finding: Finding, context: ReportContext) -> str:
    """``[*] `` where ``--fix`` repairs the finding, nothing otherwise."""
    return f"{_star(context.color)} " if _fixable(finding, context.unsafe_fixes) else ""


def _fixable(finding: Finding, unsafe: bool) -> bool:
    return finding.fix is not None and (unsafe or finding.fix.applicability is Applicability.SAFE)


def _star(color: bool) -> str:
    return f"[{paint('*', 'cyan', color)}]"


def counted(number: int, singular: str, plural: str | None = None) -> str:
    """``1 file``, ``2 files``."""
    return f"{number} {singular if number == 1 else plural or singular + 's'}"


def closing(findings: Sequence[Finding], context: ReportContext) -> str:
    """The last lines of a report: how many findings in how many files, and what ``--fix`` would do about them."""
    if context.closing is not None:
        return context.closing
    checked = f"{counted(context.files_checked, 'file')} checked"
    if not findings:
        return f"{paint('All checks passed!', 'green', context.color)} {checked}.\n"
    files = len({finding.filename for finding in findings})
    lines = [f"Found {counted(len(findings), 'finding')} in {counted(files, 'file')}; {checked}."]
    fixable = sum(_fixable(finding, context.unsafe_fixes) for finding in findings)
    unsafe = sum(_fixable(finding, True) for finding in findings) - fixable
    if fixable and unsafe:
        lines.append(f"{_star(context.color)} {fixable} fixable with `--fix`, {unsafe} more with `--unsafe-fixes`.")
    elif fixable:
        lines.append(f"{_star(context.color)} {fixable} fixable with `--fix`.")
    elif unsafe:
        lines.append(f"{unsafe} fixable with `--fix --unsafe-fixes`.")
    return "\n".join(lines) + "\n"
