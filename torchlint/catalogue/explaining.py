"""From a question to its explanation: a message, a log, a symptom in words, or a failure's id."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from torchlint.catalogue import failures
from torchlint.catalogue.answers import answers_for
from torchlint.catalogue.at_hand import Explained, Place, explain, files_of, lines_like, places, shown
from torchlint.catalogue.matching import GUESS, MESSAGE, WORDS, Match, match
from torchlint.catalogue.readings import Reading, readings
from torchlint.catalogue.transcript import Raised, Transcript, read
from torchlint.catalogue.words import match_words

NAMED = "id"
"""How an answer was found: it was asked for by its id."""

MOST_OTHERS = 3
_LONGEST_DESCRIPTION = 600


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of the user's source that a message speaks of."""

    filename: str
    row: int
    text: str


@dataclass(frozen=True, slots=True)
class Said:
    """What a message says in its numbers, and the lines of the user's files that it speaks of."""

    reading: Reading
    lines: tuple[SourceLine, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """All there is to say: the answers, best first, and for the first one what the message and the files add."""

    transcript: Transcript
    matches: tuple[Match, ...]
    places: tuple[Place, ...]
    said: tuple[Said, ...]
    explained: Explained

    @property
    def best(self) -> Match | None:
        return self.matches[0] if self.matches else None

    @property
    def raised(self) -> Raised | None:
        """The error or warning that is answered, else the one that ended the program."""
        return (self.best.raised if self.best else None) or self.transcript.raised

    @property
    def recognised(self) -> bool:
        """Whether this is an answer rather than a guess."""
        return self.best is not None and self.best.basis != GUESS


def by_id(identifier: str) -> Explanation | None:
    """The explanation of a failure asked for by its id, whatever its capitals."""
    found = next((each for each in failures() if each.lower() == identifier.lower()), None)
    if found is None:
        return None
    matches = tuple(Match(answer, NAMED, 1.0) for answer in answers_for(found))
    return Explanation(read(""), matches, (), (), Explained((), False))


def of_text(text: str) -> Explanation:
    """The explanation of a message, a whole log, or a symptom in words."""
    transcript = read(text)
    matches = _matches(transcript)
    near = places(transcript, matches[0].raised if matches else None)
    if not matches:
        return Explanation(transcript, (), tuple(near), (), Explained((), False))
    best = matches[0]
    said: tuple[Said, ...] = ()
    explained = Explained((), False)
    if best.basis == MESSAGE:
        said = _said(best, transcript, near)
        explained = explain(near, best.answer.checks)
    return Explanation(transcript, tuple(matches[: MOST_OTHERS + 1]), tuple(near), said, explained)


def _matches(transcript: Transcript) -> list[Match]:
    by_message = match(transcript)
    if by_message and by_message[0].basis == MESSAGE:
        return [found for found in by_message if found.basis == MESSAGE]
    raised = transcript.raised
    described = match_words((raised.text if raised else transcript.text)[:_LONGEST_DESCRIPTION])
    if raised or len(transcript.text) > _LONGEST_DESCRIPTION:
        # An error's words are no description: whatever they are near to is a guess.
        described = [Match(found.answer, GUESS, found.score) for found in described]
    sure = [found for found in described if found.basis == WORDS]
    if sure:
        return sure
    found = {each.answer.slug: each for each in sorted([*by_message, *described], key=lambda each: each.score)}
    return sorted(found.values(), key=lambda each: -each.score)


def _said(best: Match, transcript: Transcript, near: Sequence[Place]) -> tuple[Said, ...]:
    """The readings of the error that is answered, else of another one that has any."""
    files = files_of(near)
    errors = ([best.raised] if best.raised else []) + list(reversed(transcript.errors))
    for text in (*(error.text for error in errors), transcript.text):
        found = readings(best.answer.slug, text)
        if found:
            return tuple(Said(reading, _lines(reading, files)) for reading in found)
    return ()


def _lines(reading: Reading, files: Sequence[Path]) -> tuple[SourceLine, ...]:
    if not reading.look_for:
        return ()
    found = lines_like(reading.look_for, files)
    return tuple(SourceLine(shown(file), row, text) for file, row, text in found)[:5]
