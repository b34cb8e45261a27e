"""The failures torchlint exists for: what each is called, how its message is recognised, and what to do about it.

``failures.tsv`` lists every failure by id with its title; the ``.toml`` files hold the answers, by theme. Reports ask
for a title only, so nothing else is loaded for them.
"""

from __future__ import annotations

import os
from functools import cache
from typing import NamedTuple


class Failure(NamedTuple):
    """A failure's id, the answers that speak of it (best first), and its title in English and Chinese."""

    id: str
    answers: tuple[str, ...]
    en: str
    zh: str


@cache
def failures() -> dict[str, Failure]:
    """All failures by id, in the catalogue's order."""
    found: dict[str, Failure] = {}
    for line in table("failures").splitlines():
        identifier, answers, en, zh = line.split("\t")
        found[identifier] = Failure(identifier, tuple(answers.split(", ")), en, zh)
    return found


def failure_title(identifier: str) -> str:
    """What a failure is called, in English; an id that is not in the catalogue is returned as it is."""
    failure = failures().get(identifier)
    return failure.en if failure else identifier


def table(name: str) -> str:
    """The text of one of the catalogue's tables."""
    path = os.path.join(os.path.dirname(__file__), f"{name}.tsv")  # noqa: PTH118, PTH120 (pathlib costs a start-up)
    with open(path, encoding="utf-8") as file:  # noqa: PTH123
        return file.read()
