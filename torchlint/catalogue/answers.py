"""What the catalogue says about a failure: one answer for all the ids that share it.

The texts stand in the ``.toml`` files beside this one, so that they can be read and bettered without knowing Python.
An answer has ``fragments`` (stable pieces of its message; ``…`` stands for what is the user's own), ``hints`` (pieces
that prove nothing alone, and count fully when one of ``context`` is in the text too), ``symptoms`` (how people put it
in words), and its ``cause`` tables in order of likelihood. A cause's ``when`` is a pattern over the text without white
space: a cause that fits comes first. ``kinds`` are what a message that must be taken apart (two dtypes, two lists of
keys) can turn out to say. ``id`` is the failure it goes by where that is not the first. ``rank`` prefers an answer to
others that fit as well, or puts it behind them. An ``envelope`` only wraps another error's message: it comes after all
that is recognised.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from torchlint.catalogue import failures

LANGUAGES = ("en", "zh")


@dataclass(frozen=True, slots=True)
class Text:
    """The same said in English and in Chinese."""

    en: str
    zh: str

    def said(self, language: str) -> str:
        return self.zh if language == "zh" else self.en


@dataclass(frozen=True, slots=True)
class Cause:
    """One usual cause: what it is, how to tell it from the others, and the code before and after.

    ``checks`` are the rules that find it in source.
    """

    what: Text
    tell: Text
    before: str
    after: str
    checks: tuple[str, ...]
    when: str


@dataclass(frozen=True)
class Answer:
    """An answer. ``ids`` are the failures it speaks of; ``checks`` and ``probe`` what finds them."""

    slug: str
    ids: tuple[str, ...]
    title: Text
    meaning: Text
    probe: tuple[str, ...]
    doctor: bool
    url: str
    fragments: tuple[str, ...]
    hints: tuple[str, ...]
    context: tuple[str, ...]
    kinds: tuple[str, ...]
    rank: int
    envelope: bool
    symptoms: tuple[str, ...]
    unread: str

    @cached_property
    def causes(self) -> tuple[Cause, ...]:
        """The causes in order of likelihood. They are parsed when they are asked for: a question needs few answers."""
        return tuple(map(_cause, _parse(self.unread)["answer"][0]["cause"]))

    @property
    def checks(self) -> tuple[str, ...]:
        """The rules that find it in source."""
        return tuple(dict.fromkeys(code for cause in self.causes for code in cause.checks))


@cache
def all_answers() -> dict[str, Answer]:
    """Every answer by its slug."""
    speak_of: dict[str, list[str]] = {}
    for failure in failures().values():
        for slug in failure.answers:
            speak_of.setdefault(slug, []).append(failure.id)
    found: dict[str, Answer] = {}
    for path in sorted(Path(__file__).parent.glob("*.toml")):
        for answer in _in_file(path.read_text(encoding="utf-8"), speak_of):
            found[answer.slug] = answer
    return found


def answers_for(identifier: str) -> list[Answer]:
    """The answers that speak of a failure, best first; none for an unknown id."""
    failure = failures().get(identifier)
    return [all_answers()[slug] for slug in failure.answers] if failure else []


def _in_file(text: str, speak_of: dict[str, list[str]]) -> Iterator[Answer]:
    """The answers of a file. Only what stands above each one's causes is parsed."""
    parts = [part.partition("[[answer.cause]]") for part in text.split("\n[[answer]]\n")[1:]]
    heads = _parse("".join(f"[[answer]]\n{head}\n" for head, _, _ in parts))["answer"]
    for entry, (_, mark, causes) in zip(heads, parts, strict=True):
        yield _answer(entry, tuple(speak_of[entry["slug"]]), f"[[answer]]\n{mark}{causes}")


def _parse(text: str) -> dict[str, Any]:
    toml: Any = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    parsed: dict[str, Any] = toml.loads(text)
    return parsed


def _answer(entry: dict[str, Any], ids: tuple[str, ...], unread: str) -> Answer:
    named = entry.get("id") or _main_id(ids, entry["slug"])
    symptoms = entry.get("symptoms", {})
    return Answer(
        slug=entry["slug"],
        ids=(named, *(identifier for identifier in ids if identifier != named)),
        title=Text(failures()[named].en, failures()[named].zh),
        meaning=Text(entry["en"], entry["zh"]),
        probe=tuple(entry.get("probe", ())),
        doctor=entry.get("doctor", False),
        url=entry["url"],
        fragments=tuple(entry.get("fragments", ())),
        hints=tuple(entry.get("hints", ())),
        context=tuple(entry.get("context", ())),
        kinds=tuple(entry.get("kinds", ())),
        rank=entry.get("rank", 0),
        envelope=entry.get("envelope", False),
        symptoms=(*symptoms.get("en", ()), *symptoms.get("zh", ())),
        unread=unread,
    )


def _main_id(ids: tuple[str, ...], slug: str) -> str:
    """The id an answer goes by: its first whose first answer it is and which no other answer shares."""
    return min(ids, key=lambda each: (failures()[each].answers[0] != slug, len(failures()[each].answers)))


def _cause(entry: dict[str, Any]) -> Cause:
    return Cause(
        what=Text(entry["en"], entry["zh"]),
        tell=Text(entry["tell"]["en"], entry["tell"]["zh"]),
        before=entry["before"].strip("\n"),
        after=entry["after"].strip("\n"),
        checks=tuple(entry.get("checks", ())),
        when=entry.get("when", ""),
    )
