"""Reads the generated tables: tab-separated, one row a line, found by the first cell.

A table is read when something is first asked of it, and a row is taken apart when it is wanted: reading costs a
millisecond, whatever is asked afterwards.
"""

from __future__ import annotations

import functools
import os


@functools.cache
def rows(table: str) -> dict[str, str]:
    """``table``.tsv as first cell to the rest of its line, still joined by tabs."""
    path = os.path.join(os.path.dirname(__file__), f"{table}.tsv")  # noqa: PTH118, PTH120 (pathlib costs a start-up)
    with open(path, encoding="utf-8") as file:  # noqa: PTH123
        lines = file.read().split("\n")
    found: dict[str, str] = {}
    for line in lines:
        key, _, rest = line.partition("\t")
        if key and key[0] != "#":
            found[key] = rest
    return found


def cells(row: str, count: int) -> list[str]:
    """The cells of a row, with the empty ones that its end leaves out."""
    found = row.split("\t")
    found.extend([""] * (count - len(found)))
    return found
