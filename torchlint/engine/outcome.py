"""What is asked of the processes of a run, and what they answer: plain values that can be sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from torchlint.engine.cache import Result
    from torchlint.engine.shard import Shard
    from torchlint.finding import Finding
    from torchlint.source.discovery import Problem


@dataclass(frozen=True, slots=True)
class Work:
    """How the files of a run are to be looked at. ``remember`` asks for what the cache needs to know."""

    noqa: bool = True
    shard: Shard | None = None
    remember: bool = False


class Outcome(NamedTuple):
    """What became of one file: findings, or a problem, or neither when it is another shard's (``taken`` False)."""

    findings: list[Finding]
    taken: bool = True
    problem: Problem | None = None
    result: Result | None = None
