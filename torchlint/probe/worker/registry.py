"""The checks, in the order they run, and what each may say: a problem, that it doesn't apply, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .names import NAMES, RUN_FIRST
from .sites import Site

if TYPE_CHECKING:
    from .subject import Subject


class Skip(Exception):
    """The check doesn't apply; the text says why."""


class NotAsked(Skip):
    """The check needs an option that wasn't given; the text says which."""


@dataclass(frozen=True)
class Change:
    """A text to put in place of a stretch of source: the one number that is wrong."""

    site: Site
    old: str
    new: str
    message: str


@dataclass
class Problem:
    """One fault. ``cause`` names what it comes from, so that two checks that meet the same fault report it once."""

    message: str
    site: Site | None = None
    help: str = ""
    failure: str = ""
    severity: str = "error"
    layer: str = ""
    change: Change | None = None
    cause: str = ""
    details: list[str] = field(default_factory=list)


CheckFunction = Callable[["Subject"], Iterable[Problem]]


@dataclass(frozen=True)
class Check:
    """One entry of the probe: its code, its name and what runs it. ``mode`` is the half of a model it is about."""

    code: str
    name: str
    function: CheckFunction
    on_fake: bool
    mode: str


CHECKS: dict[str, Check] = {}


def in_order() -> list[tuple[str, Check]]:
    """The checks in the order they run."""
    rest = sorted(code for code in CHECKS if code not in RUN_FIRST)
    return [(code, CHECKS[code]) for code in (*RUN_FIRST, *rest)]


def check(code: str, *, on_fake: bool = False, mode: str = "") -> Callable[[CheckFunction], CheckFunction]:
    """Register a check. ``on_fake``: it can also run where the model was too large to be built for real.

    ``mode`` is "train" or "eval" for a check that ``--eval`` or ``--train`` switches off.
    """

    def register(function: CheckFunction) -> CheckFunction:
        CHECKS[code] = Check(code, NAMES[code], function, on_fake, mode)
        return function

    return register


def site_json(site: Site | None) -> dict[str, Any] | None:
    """A place as the channel carries it."""
    if site is None:
        return None
    return {
        "file": site.file,
        "row": site.row,
        "column": site.column,
        "end_row": site.end_row,
        "end_column": site.end_column,
    }


def problem_json(problem: Problem) -> dict[str, Any]:
    """A problem as the channel carries it."""
    change = problem.change
    return {
        "message": problem.message,
        "site": site_json(problem.site),
        "help": "\n".join([problem.help, *problem.details]).strip(),
        "failure": problem.failure,
        "severity": problem.severity,
        "layer": problem.layer,
        "change": None
        if change is None
        else {"site": site_json(change.site), "old": change.old, "new": change.new, "message": change.message},
    }
