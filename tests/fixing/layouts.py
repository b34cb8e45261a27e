"""The same program laid out differently: what a formatter, an editor or a person may have done to it.

Every function takes a program and a source of randomness and returns a program that Python parses to the same tree.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Callable, Iterator
from random import Random

Layout = Callable[[str, Random], str]

WITHIN_BRACKETS = "# broken ) here"

_INSIDE = (tokenize.NL, tokenize.COMMENT)
_SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return, ast.Assert, ast.Pass)


def _tokens(text: str) -> list[tokenize.TokenInfo]:
    return list(tokenize.generate_tokens(io.StringIO(text).readline))


def _logical_rows(text: str) -> list[int]:
    """The rows that begin a logical line."""
    rows, begins = [], True
    for token in _tokens(text):
        if token.type in (tokenize.INDENT, tokenize.DEDENT, *_INSIDE):
            continue
        if begins and token.type != tokenize.ENDMARKER:
            rows.append(token.start[0])
        begins = token.type == tokenize.NEWLINE
    return rows


def indented_by(unit: str) -> Layout:
    """Another indentation, of logical lines only: continuation lines and strings stay where they are."""

    def layout(text: str, rng: Random) -> str:
        lines = text.split("\n")
        for row in _logical_rows(text):
            line = lines[row - 1]
            code = line.lstrip(" ")
            levels = (len(line) - len(code)) // 4
            lines[row - 1] = unit * levels + code
        return "\n".join(lines)

    return layout


def with_comments(text: str, rng: Random) -> str:
    """Comments at the ends of some logical lines and, at any depth, between some."""
    lines = text.split("\n")
    ends = {token.start[0] for token in _tokens(text) if token.type == tokenize.NEWLINE}
    starts = set(_logical_rows(text))
    out: list[str] = []
    for row, line in enumerate(lines, 1):
        if row in starts and rng.random() < 0.2:
            out.append(" " * rng.choice([0, 4, 8, 12]) + "# between ( ' \" lines \\")
        if row in ends and "#" not in line and line.strip() and rng.random() < 0.3:
            line += "  # behind ) it; 'x"
        out.append(line)
    return "\n".join(out)


def with_blank_lines(text: str, rng: Random) -> str:
    """Blank lines, some with white space, between logical lines; a form feed now and then."""
    starts = set(_logical_rows(text))
    out: list[str] = []
    for row, line in enumerate(text.split("\n"), 1):
        if row in starts and rng.random() < 0.2:
            out.append(rng.choice(["", "    ", "\t", "\f", ""]))
        out.append(line)
    return "\n".join(out)


def with_broken_lines(text: str, rng: Random) -> str:
    """Line breaks, and comments, behind commas and brackets."""
    cuts: list[tuple[int, int]] = []
    depth = 0
    strings = 0
    for token in _tokens(text):
        name = tokenize.tok_name[token.type]
        strings += name.endswith("STRING_START") - name.endswith("STRING_END")
        if token.type == tokenize.OP and not strings:
            depth += (token.string in "([{") - (token.string in ")]}")
            if depth and token.string in ",([{" and rng.random() < 0.15:
                cuts.append(token.end)
    return _cut(text, cuts, lambda: rng.choice(["\n        ", "\n", f"  {WITHIN_BRACKETS}\n    ", " \\\n  ", "\n\n\t"]))


def _cut(text: str, cuts: list[tuple[int, int]], filler: Callable[[], str]) -> str:
    lines = text.split("\n")
    for row, column in sorted(cuts, reverse=True):
        line = lines[row - 1]
        rest = line[column:]
        if rest.strip():  # nothing is to be put between a backslash or comment and its line end
            lines[row - 1] = line[:column] + filler() + rest.lstrip()
    return "\n".join(lines)


def with_grouped_arguments(text: str, rng: Random) -> str:
    """Parentheses around some arguments, commas behind some last ones."""
    places: list[tuple[int, int, str]] = []
    tree = ast.parse(text)
    in_strings = {
        id(node) for string in ast.walk(tree) if isinstance(string, ast.JoinedStr) for node in ast.walk(string)
    }
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call) or id(call) in in_strings:
            continue
        arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
        if any(isinstance(argument, (ast.GeneratorExp, ast.Starred)) for argument in arguments):
            continue
        for argument in arguments:
            if rng.random() < 0.15:
                places += [
                    (argument.lineno, argument.col_offset, "("),
                    (argument.end_lineno or 0, argument.end_col_offset or 0, ")"),
                ]
        if arguments and rng.random() < 0.2 and not _ends_in_comma(text, call):
            places.append((call.end_lineno or 0, (call.end_col_offset or 1) - 1, ","))
    encoded = [line.encode() for line in text.split("\n")]
    for row, column, what in sorted(places, key=lambda place: (place[0], place[1], place[2] == ","), reverse=True):
        encoded[row - 1] = encoded[row - 1][:column] + what.encode() + encoded[row - 1][column:]
    return b"\n".join(encoded).decode()


def _ends_in_comma(text: str, call: ast.Call) -> bool:
    written = ast.get_source_segment(text, call) or ""
    return "#" in written or written[:-1].rstrip().endswith(",")


def on_fewer_lines(text: str, rng: Random) -> str:
    """Simple statements joined by semicolons, and suites put behind their header's colon."""
    lines: list[str | None] = list(text.split("\n"))
    for suite, header in list(_suites(ast.parse(text))):
        simple = all(isinstance(s, _SIMPLE) and s.lineno == s.end_lineno for s in suite)
        rows = [s.lineno for s in suite]
        apart = len(set(rows)) == len(rows) and all("#" not in (lines[row - 1] or "#") for row in rows)
        if not simple or not apart or rng.random() > 0.4:
            continue
        if header is not None and header == rows[0] - 1 and "#" not in (lines[header - 1] or "#"):
            if (lines[header - 1] or "").rstrip().endswith(":") and rows == list(range(rows[0], rows[0] + len(rows))):
                joined = "; ".join((lines[row - 1] or "").strip() for row in rows)
                lines[header - 1] = f"{(lines[header - 1] or '').rstrip()} {joined}"
                for row in rows:
                    lines[row - 1] = None
        elif len(rows) > 1 and rows[1] == rows[0] + 1:
            lines[rows[0] - 1] = f"{lines[rows[0] - 1]}; {(lines[rows[1] - 1] or '').strip()}{rng.choice([';', ''])}"
            lines[rows[1] - 1] = None
    return "\n".join(line for line in lines if line is not None)


def _suites(node: ast.AST) -> Iterator[tuple[list[ast.stmt], int | None]]:
    """Suites, innermost last, with the row of a header that stands on one row, where there is one."""
    for name in ("body", "orelse", "finalbody"):
        suite = getattr(node, name, None)
        if isinstance(suite, list) and suite:
            yield suite, suite[0].lineno - 1 if not isinstance(node, ast.Module) else None
            for statement in suite:
                yield from _suites(statement)


def with_line_ends(end: str) -> Layout:
    """Another line end throughout."""
    return lambda text, rng: text.replace("\n", end)


def without_last_line_end(text: str, rng: Random) -> str:
    """The last line not ended."""
    return text.rstrip("\n")


SAME_TREE: dict[str, Layout] = {
    "two blanks": indented_by("  "),
    "tabs": indented_by("\t"),
    "three blanks": indented_by("   "),
    "comments": with_comments,
    "blank lines": with_blank_lines,
    "broken lines": with_broken_lines,
    "grouped arguments": with_grouped_arguments,
    "fewer lines": on_fewer_lines,
}

ENDS: dict[str, Layout] = {
    "unix": lambda text, rng: text,
    "windows": with_line_ends("\r\n"),
    "old mac": with_line_ends("\r"),
    "no last line end": without_last_line_end,
}


def nested_in(header: str) -> Layout:
    """The program as the body of something else; its strings stay as they are."""

    def layout(text: str, rng: Random) -> str:
        inside: set[int] = set()
        opened: list[int] = []
        for token in _tokens(text):
            name = tokenize.tok_name[token.type]
            if name.endswith("STRING_START"):
                opened.append(token.start[0])
            elif name.endswith("STRING_END"):
                inside.update(range(opened.pop() + 1, token.end[0] + 1))
            elif name == "STRING":
                inside.update(range(token.start[0] + 1, token.end[0] + 1))
        lines = [line if row in inside or not line else f"    {line}" for row, line in enumerate(text.split("\n"), 1)]
        return f"{header}\n" + "\n".join(lines)

    return layout


NESTED: dict[str, Layout] = {
    "function": nested_in("def main():"),
    "branch": nested_in("if True:"),
    "class": nested_in("class Holder:"),
    "loop": nested_in("for _ in range(1):"),
}
