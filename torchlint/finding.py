"""What torchlint says: the one currency between all rooms.

Everything here is a frozen value: it can be compared, hashed, sorted, pickled and written as JSON. Rows and columns
are 1-based and columns count code points, as Ruff's do; an end is exclusive.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field


class Severity(str, enum.Enum):
    """How sure and how bad: ``info`` rules are off unless selected."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    def __str__(self) -> str:
        return self.value


class Applicability(str, enum.Enum):
    """Whether ``--fix`` may apply a fix (safe), or only ``--unsafe-fixes``."""

    SAFE = "safe"
    UNSAFE = "unsafe"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place in a file: 1-based row, 1-based column in code points."""

    row: int
    column: int


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the text from ``start`` up to ``end`` by ``content`` (empty: delete; start == end: insert)."""

    start: Position
    end: Position
    content: str


@dataclass(frozen=True, slots=True)
class Fix:
    """Edits that together repair one finding; ``message`` says what they change, in a few words."""

    message: str
    applicability: Applicability
    edits: tuple[Edit, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault at one place.

    ``location`` and ``end_location`` are in the file, or in the cell for a notebook (``cell`` is then its 1-based
    number among all cells). ``noqa_row`` is the row whose trailing comment suppresses it. ``failure`` is what the user
    would have met: a catalogue id such as ``T-D1``, or empty.
    """

    code: str
    name: str
    message: str
    severity: Severity
    filename: str
    location: Position
    end_location: Position
    help: str = ""
    failure: str = ""
    fix: Fix | None = None
    cell: int | None = None
    noqa_row: int = 0

    @property
    def sort_key(self) -> tuple[str, int, Position, str, str]:
        """Stable report order: file, cell, place, code, message."""
        return (self.filename, self.cell or 0, self.location, self.code, self.message)


@dataclass(frozen=True, slots=True)
class RuleInfo:
    """A rule's card, as reports and ``torchlint rule`` need it. ``page`` is its Markdown page."""

    code: str
    name: str
    severity: Severity
    fix: Applicability | None
    summary: str
    page: str
    failures: tuple[str, ...] = field(default=())
