"""File patterns as the configuration has them: Ruff's globs, in which ``*`` crosses folders.

A pattern without a slash names a file or folder anywhere; one with a slash is a path from the folder of the
configuration.
"""

from __future__ import annotations

import itertools
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
    made = [_of_tokens(list(_tokens(alternative))) for alternative in _alternatives(pattern)]
    return made[0] if len(made) == 1 else f"(?:{'|'.join(made)})"


_STAR = ".*"
_FOLDERS = "(?:.*/)?"
_MOST_ALTERNATIVES = 256
_numbers = itertools.count()


def atomic(wildcard: str, fixed: str) -> str:
    """A wildcard and what follows it up to the next, found where it first occurs and nowhere else.

    That is enough where another wildcard follows, and bounds the time of a match, whoever wrote the pattern.
    """
    name = f"g{next(_numbers)}"
    return f"(?=(?P<{name}>{wildcard}{fixed}))(?P={name})"


def _of_tokens(tokens: list[str]) -> str:
    wild = [at for at, token in enumerate(tokens) if token in (_STAR, _FOLDERS)]
    pieces = ["".join(tokens[: wild[0]] if wild else tokens)]
    for at, following in itertools.zip_longest(wild, wild[1:]):
        fixed = "".join(tokens[at + 1 : following])
        if following is None:
            pieces.append(tokens[at] + fixed)
        else:
            pieces.append(atomic(".*?" if tokens[at] == _STAR else "(?:.*?/)??", fixed))
    return "".join(pieces)


def _tokens(pattern: str) -> Iterator[str]:
    index, last = 0, ""
    while index < len(pattern):
        if pattern.startswith("**/", index) and (index == 0 or pattern[index - 1] == "/"):
            token, index = _FOLDERS, index + 3
        else:
            token, index = _token(pattern, index)
        if token != last or token not in (_STAR, _FOLDERS):
            yield token
        last = token


def _token(pattern: str, index: int) -> tuple[str, int]:
    """The expression of what stands at an index, and where the next begins."""
    char = pattern[index]
    if char == "*":
        return _STAR, index + 1
    if char == "?":
        return "[^/]", index + 1
    end = pattern.find("]", index + 2) if char == "[" else -1
    if end > 0:
        inside = pattern[index + 1 : end].replace("\\", "\\\\").replace("[", "\\[")
        made = f"[^{inside[1:]}]" if inside[0] in "!^" else f"[{inside}]"
        try:
            re.compile(made)
        except re.error:  # an empty set, a range from z to a: no set at all
            pass
        else:
            return made, end + 1
    return re.escape(char), index + 1


def _alternatives(pattern: str) -> list[str]:
    """The patterns without braces that one with them stands for; braces that don't match, or too many, are text."""
    done: list[str] = []
    pending = [pattern]
    while pending:
        head = pending.pop()
        split = _first_braces(head)
        if split is None:
            done.append(head)
            continue
        before, choices, after = split
        pending += [before + choice + after for choice in choices]
        if len(pending) + len(done) > _MOST_ALTERNATIVES:
            return [pattern]
    return done


def _first_braces(pattern: str) -> tuple[str, list[str], str] | None:
    opened: list[int] = []
    commas: list[int] = []
    for at, char in enumerate(pattern):
        if char == "{":
            opened.append(at)
            commas = []
        elif char == "," and opened:
            commas.append(at)
        elif char == "}" and opened:
            start = opened[-1]  # the innermost: what is around it is split later
            edges = [start, *commas, at]
            return pattern[:start], [pattern[a + 1 : b] for a, b in itertools.pairwise(edges)], pattern[at + 1 :]
    return None
