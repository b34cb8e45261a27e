"""``--shard 2/8``: a part of the files for each of several machines, so that all parts together are one whole run.

Which part a file belongs to follows from its content alone: machines agree on it without talking to each other,
whatever their paths are, and a new file moves no other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shard:
    """The ``number``-th of ``count`` parts, counted from 1."""

    number: int
    count: int

    def takes(self, digest: str) -> bool:
        """Whether the file whose content has this hexadecimal digest belongs to this part."""
        return int(digest[:16], 16) % self.count == self.number - 1


def parse_shard(text: str) -> Shard:
    """``2/8``; raises ValueError with what is wrong."""
    match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text.strip())
    if match is None:
        raise ValueError(f'"{text}" is no part of a whole: write 2/8 for the second of eight')
    number, count = int(match[1]), int(match[2])
    if not 1 <= number <= count:
        raise ValueError(f'"{text}": there is no part {number} of {count}; parts are counted from 1')
    return Shard(number, count)
