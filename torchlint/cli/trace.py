"""``torchlint trace FILE[:function]``: what the program layer knows, line by line."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchlint.program.events import Event, Trace

HELP = "show what torchlint knows of a file, line by line"
_HIDDEN = frozenset(("node", "block", "frame", "order", "evidence", "grad"))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("target", metavar="FILE[:FUNCTION]", help="the file, and the function to show alone")


def run(args: argparse.Namespace) -> int:
    """Print the trace; 2 where the file can't be read or parsed, or has no such function."""
    from torchlint.program.interpreter import trace_module
    from torchlint.program.project import Project
    from torchlint.source.file import UnreadableSource, read_source

    path, _, function = str(args.target).partition(":")
    try:
        source = read_source(path, path)
        module = Project([], lambda p: read_source(p, p)).module(source)
        module.tree  # noqa: B018
    except (OSError, UnreadableSource) as error:
        print(f"torchlint: {path}: {error}", file=sys.stderr)
        return 2
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        print(f"torchlint: {path}:{getattr(error, 'lineno', 1)}: {error}", file=sys.stderr)
        return 2
    shown = 0
    for trace in trace_module(module):
        for line in trace_lines(trace, function):
            print(line)
            shown += 1
    if not shown:
        what = f"{function} does" if function else "it does"
        print(f"torchlint: {path}: nothing that {what} concerns training or autograd", file=sys.stderr)
        return 2 if function else 0
    return 0


def trace_lines(trace: Trace, function: str = "") -> list[str]:
    """One line per event of a trace, in order: place, grad mode, what happened and the values in it."""
    lines: list[str] = []
    events: Iterator[Event] = trace.root.events()
    for event in events:
        if function and event.frame.name != function:
            continue
        depth = sum(1 for _ in event.block.enclosing("call", "loop", "arm", "with"))
        mode = {True: "grad", False: "no grad", None: "grad by caller"}[event.grad]
        place = f"{getattr(event.node, 'lineno', 0)}:{getattr(event.node, 'col_offset', 0) + 1}"
        lines.append(f"{place:>8}  {'  ' * depth}{describe(event)}  [{mode}]")
    return lines


def describe(event: Event) -> str:
    """An event in words: its kind and the facts it carries."""
    facts: list[str] = []
    for kind in type(event).__mro__:
        for slot in getattr(kind, "__slots__", ()):
            value = getattr(event, slot, None)
            if slot in _HIDDEN or value is None or value in ((), [], {}, "", False):
                continue
            facts.append(f"{slot}={value!r}")
    return f"{type(event).__name__} {', '.join(facts)}"
