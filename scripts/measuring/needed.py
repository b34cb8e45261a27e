"""Sums up what many calls of one operation need for backward, as torchlint.torchapi.saving reads it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from measuring.saved import Needs, tensors_in


class Tally:
    """What was saved in how many of the calls in which it could have been."""

    def __init__(self) -> None:
        self.calls: Counter[int] = Counter()
        self.saved: dict[int, Counter[str]] = {}
        self.possible: dict[int, Counter[str]] = {}
        self.failed: Counter[int] = Counter()
        self.nonzero = False

    def add(self, arguments: Sequence[Any], results: int, found: dict[int, Needs]) -> None:
        """Count one call."""
        for followed, need in found.items():
            self.calls[followed] += 1
            self.nonzero |= not need.zero
            self.failed[followed] += need.fails
            if need.fails:
                continue
            possible = self.possible.setdefault(followed, Counter())
            possible.update(str(index) for index, argument in enumerate(arguments) if tensors_in(argument))
            possible.update(f"o{index}" for index in range(results))
            saved = self.saved.setdefault(followed, Counter())
            saved.update(str(index) for index in need.inputs)
            saved.update(f"o{index}" for index in need.outputs)

    @property
    def never_works(self) -> bool:
        """Whether backward refuses in every call, whatever requires grad."""
        return all(self.failed[followed] == count for followed, count in self.calls.items())

    def text(self) -> str:
        """``0:1;1:0``"""
        return ";".join(f"{followed}:{self._saved(followed)}" for followed in sorted(self.calls))

    def _saved(self, followed: int) -> str:
        if self.failed[followed] == self.calls[followed]:
            return "!"
        saved, possible = self.saved[followed], self.possible[followed]
        return ",".join(what if saved[what] == possible[what] else f"~{what}" for what in sorted(saved))
