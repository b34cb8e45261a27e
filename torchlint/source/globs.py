"""File patterns as the configuration has them: Ruff's globs, in which ``*`` crosses folders.

A pattern without a slash names a file or folder anywhere; one with a slash is a path from the folder of the
configuration.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator


class Patterns:
    """Several patterns as one question."""

    __slots__ = ("_names", "_paths", "_wild_names")

    def __init__(self, patterns: Iterable[str], root: str) -> None:
        names = set()
        wild_names = []
        paths = []
        for pattern in patterns:
            stripped = pattern.rstrip("/") or pattern
            if "/" in stripped:
                paths.append(translate(os.path.normpath(os.path.join(root, stripped))))
            elif any(char in stripped for char in "*?[{"):
                wild_names.append(translate(stripped))
            else:
                names.add(stripped)
        self._names = frozenset(names)
        self._wild_names = _any_of(wild_names)
        self._paths = _any_of(paths)

    def match(self, name: str, path: str) -> bool:
        """Whether one of the patterns names the file or folder ``name`` that stands at the absolute ``path``."""
        if name in self._names:
            return True
        if self._wild_names is not None and self._wild_names.fullmatch(name):
            return True
        return self._paths is not None and self._paths.fullmatch(path) is not None


def _any_of(expressions: list[str]) -> re.Pattern[str] | None:
    return re.compile("|".join(expressions), re.DOTALL) if expressions else None


def translate(pattern: str) -> str:
    """The regular expression of one glob: ``*``, ``**``, ``?``, ``[...]`` and ``{a,b}``."""
    return "".join(_translate(pattern))


def _translate(pattern: str) -> Iterator[str]:
    index = depth = 0
    while index < len(pattern):
        if pattern.startswith("**/", index) and (index == 0 or pattern[index - 1] == "/"):
            yield "(?:.*/)?"
            index += 3
            continue
        char = pattern[index]
        index += 1
        end = pattern.find("]", index + 1) if char == "[" else -1
        if char == "*":
            yield ".*"
        elif char == "?":
            yield "[^/]"
        elif end > 0:
            inside = pattern[index:end].replace("\\", "\\\\").replace("[", "\\[")
            yield f"[^{inside[1:]}]" if inside[0] in "!^" else f"[{inside}]"
            index = end + 1
        elif char == "{" and "}" in pattern[index:]:
            depth += 1
            yield "(?:"
        elif char == "}" and depth:
            depth -= 1
            yield ")"
        elif char == "," and depth:
            yield "|"
        else:
            yield re.escape(char)
