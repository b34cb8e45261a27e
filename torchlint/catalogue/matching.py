"""Which answers fit a text: by the stable pieces of torch's messages, or by what people say of their trouble.

A message is compared without white space, quotation marks and capitals, so that it may be wrapped anywhere. The error
that ended the program counts most, then those before it in the chain, then whatever else the log says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from torchlint.catalogue import dtypes, state_dicts
from torchlint.catalogue.answers import Answer, Cause, all_answers
from torchlint.catalogue.transcript import Raised, Transcript

MESSAGE, WORDS, GUESS = "message", "words", "guess"
"""How an answer was found: its message stands in the text, its symptom is told, or it is merely the nearest."""

SURE = 0.6
"""The score from which an answer counts as recognised."""

_LONGEST_GAP = 400
_MOST_REST = 400_000
_MOST_WARNINGS = 40
_RAISED, _BEFORE, _WARNED, _REST = 1.0, 0.85, 0.75, 0.7
_FRAGMENT, _HINT_IN_CONTEXT, _HINT, _KIND = 1.0, 0.9, 0.45, 1.2
_QUOTES = str.maketrans("", "", "'\"`\u2018\u2019\u201c\u201d\u00b4")


@dataclass(frozen=True, slots=True)
class Match:
    """An answer that fits, how it was found, how well it fits, and the error or warning that it answers, if one."""

    answer: Answer
    basis: str
    score: float
    raised: Raised | None = None

    def causes(self, text: str) -> list[Cause]:
        """Its causes, those that the text speaks for first."""
        flat = flatten(text)[-_MOST_REST:]
        return sorted(self.answer.causes, key=lambda cause: not (cause.when and re.search(cause.when, flat)))


@dataclass(slots=True)
class _Found:
    answer: Answer
    score: float
    segment: int
    start: int
    end: int

    def order(self) -> float:
        """What it is ranked by. Of an envelope is spoken where nothing in it, or said beside it, is recognised."""
        return min(self.score, SURE) if self.answer.envelope else self.score


def flatten(text: str) -> str:
    """The text without white space."""
    return "".join(text.split())


def match(transcript: Transcript) -> list[Match]:
    """The answers whose messages stand in a text, best first."""
    best: dict[str, _Found] = {}
    everything = _key(transcript.text[-_MOST_REST:])
    segments = list(_segments(transcript))
    for number, (weight, text, _) in enumerate(segments):
        for found in _in_segment(number, weight, text, everything):
            known = best.get(found.answer.slug)
            if known is None or found.score > known.score:
                best[found.answer.slug] = found
    ranked = sorted(best.values(), key=_Found.order, reverse=True)
    kept: list[_Found] = []
    for found in ranked:
        # What is recognised by a part of a better match's words says nothing of its own.
        if not any(
            other.segment == found.segment and other.start <= found.start and found.end <= other.end for other in kept
        ):
            kept.append(found)
    return [
        Match(
            found.answer,
            MESSAGE if found.score >= SURE else GUESS,
            min(found.score, 1.0),
            segments[found.segment][2],
        )
        for found in kept
    ]


def _segments(transcript: Transcript) -> Iterator[tuple[float, str, Raised | None]]:
    """The pieces of a text that are looked at, each with its weight and the error or warning that it is."""
    errors, warnings = list(reversed(transcript.errors)), transcript.warnings[-_MOST_WARNINGS:]
    for index, error in enumerate(errors):
        yield (_BEFORE if index else _RAISED), error.text, error
    for warning in warnings:
        yield (_WARNED if errors else _RAISED), warning.text, warning
    alone = not errors and not warnings
    yield (_RAISED if alone else _REST), transcript.rest[-_MOST_REST:], None
    yield _REST, transcript.text[-_MOST_REST:], None


def _in_segment(number: int, weight: float, text: str, everything: str) -> Iterator[_Found]:
    key = _key(text)
    if not key:
        return
    flat = flatten(text)
    kinds = [said for said in (dtypes.mismatch(flat), state_dicts.mismatch(flat)) if said]
    for pieces in _index():
        answer, strength, span = pieces.answer, 0.0, (0, 0)
        place = _longest(pieces.fragments, key)
        if place:
            strength, span = _FRAGMENT, place
        elif pieces.hints and (place := _longest(pieces.hints, key)):
            in_context = any(word in everything for word in pieces.context)
            strength, span = (_HINT_IN_CONTEXT if in_context else _HINT), place
        for kind, start, end in kinds:
            if kind in answer.kinds:
                strength, span = _KIND, (start, end)
        if strength:
            length = min(span[1] - span[0], 200) / 2000
            yield _Found(answer, weight * (strength + length) + 0.1 * answer.rank, number, *span)


@dataclass(frozen=True, slots=True)
class _Pieces:
    """An answer's fragments and hints as they are compared; each is a list of the parts between its ellipses."""

    answer: Answer
    fragments: tuple[list[str], ...]
    hints: tuple[list[str], ...]
    context: tuple[str, ...]


@cache
def _index() -> tuple[_Pieces, ...]:
    return tuple(
        _Pieces(
            answer,
            tuple(_key(fragment).split("…") for fragment in answer.fragments),
            tuple(_key(hint).split("…") for hint in answer.hints),
            tuple(map(_key, answer.context)),
        )
        for answer in all_answers().values()
    )


def _key(text: str) -> str:
    return flatten(text).translate(_QUOTES).casefold()


def _longest(fragments: tuple[list[str], ...], key: str) -> tuple[int, int] | None:
    """Where the longest of the fragments stands in the text, if one does."""
    spans = [span for parts in fragments if parts[0] in key and (span := _find(parts, key))]
    return max(spans, key=lambda span: span[1] - span[0], default=None)


def _find(parts: list[str], key: str) -> tuple[int, int] | None:
    start = key.find(parts[0])
    while start >= 0:
        end = start + len(parts[0])
        for part in parts[1:]:
            found = key.find(part, end, end + _LONGEST_GAP + len(part))
            if found < 0:
                break
            end = found + len(part)
        else:
            return start, end
        start = key.find(parts[0], start + 1)
    return None
