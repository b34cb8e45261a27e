"""Write changed cells back into a notebook's JSON and touch nothing else of it.

Indentation, key order, escapes, number spellings and the end of the file are the author's editor's; so the JSON isn't
written anew, only the text of the changed cells' ``source`` is replaced where it stands. Lines of such a cell that
stay the same keep their very characters too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class _Span:
    start: int
    end: int


def with_cells(text: str, changed: Mapping[int, str]) -> str:
    """The notebook's JSON with the code of some cells replaced; cells are counted from 1 among all cells."""
    ascii_only = text.isascii() and "\\u" in text
    pieces: list[str] = []
    done = 0
    for number, span in _sources(text):
        if number in changed:
            pieces += [text[done : span.start], _written(text[span.start : span.end], changed[number], ascii_only)]
            done = span.end
    return "".join([*pieces, text[done:]])


def _sources(text: str) -> Iterator[tuple[int, _Span]]:
    """Where the code of each cell stands, with the cell's number."""
    top = _members(text, _skip(text, 0))
    holders = [top]
    if "cells" not in top and "worksheets" in top:  # nbformat 3
        holders = [_members(text, item.start) for item in _items(text, top["worksheets"].start)]
    number = 0
    for holder in holders:
        if "cells" in holder:
            for cell in _items(text, holder["cells"].start):
                number += 1
                members = _members(text, cell.start)
                source = members.get("source", members.get("input"))
                if source is not None:
                    yield number, source


def _skip(text: str, index: int) -> int:
    match = _SPACE.match(text, index)
    return match.end() if match else index


def _value_end(text: str, index: int) -> int:
    return _DECODER.raw_decode(text, index)[1]


def _members(text: str, index: int) -> dict[str, _Span]:
    """The values of an object that starts at an index, by key; of a repeated key the last, as ``json`` has it."""
    members: dict[str, _Span] = {}
    if text[index] != "{":
        return members
    index = _skip(text, index + 1)
    while text[index] != "}":
        key, index = _DECODER.raw_decode(text, index)
        start = _skip(text, _skip(text, index) + 1)
        end = _value_end(text, start)
        members[key] = _Span(start, end)
        index = _next(text, end)
    return members


def _items(text: str, index: int) -> list[_Span]:
    """The items of an array that starts at an index."""
    items: list[_Span] = []
    if text[index] != "[":
        return items
    index = _skip(text, index + 1)
    while text[index] != "]":
        end = _value_end(text, index)
        items.append(_Span(index, end))
        index = _next(text, end)
    return items


def _next(text: str, index: int) -> int:
    """Where the next member or item starts, or the closing bracket stands."""
    index = _skip(text, index)
    return _skip(text, index + 1) if text[index] == "," else index


def _written(raw: str, code: str, ascii_only: bool) -> str:
    """A cell's code as JSON in the form its ``source`` had: one string, or a list of lines laid out alike."""
    if not raw.startswith("["):
        return json.dumps(code, ensure_ascii=ascii_only)
    items = _items(raw, 0)
    known = {json.loads(raw[item.start : item.end]): raw[item.start : item.end] for item in items}
    lines = [known.get(line) or json.dumps(line, ensure_ascii=ascii_only) for line in _lines(code)]
    if not items or not lines:
        return f"[{', '.join(lines)}]"
    opening, closing = raw[: items[0].start], raw[items[-1].end :]
    if len(items) > 1:
        between = raw[items[0].end : items[1].start]
    else:
        between = f",{opening[1:]}" if "\n" in opening else ", "
    return f"{opening}{between.join(lines)}{closing}"


def _lines(code: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", code)
