"""Say what torchlint knows at each line of a file: ask it why a finding is there, or why one isn't.

  torchlint trace train.py             every function that the rules look into
  torchlint trace train.py:fit         one function, or Class.method, whether or not they do

Under each line stand the names that it binds with what is known of their values, and what happens there (`>`). A
tensor is told as Tensor[what it is, shape, dtype, device, leaf or not, grad or not, its graph]; what isn't known is
left out. To the right of the line are the modes in force: grad mode, autocast, and train or eval of each model.
A line that is reached in several ways, or twice in a loop, has what is known on each.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchlint.program.index import Scope
    from torchlint.program.knowledge import Line, Recorder
    from torchlint.program.module import FunctionInfo, Module

HELP = "show what torchlint knows of a file, line by line"
_MODES = "modes: "
_MODES_COLUMN = 60


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument(
        "target", metavar="FILE[:FUNCTION]", help="the file, and the function or Class.method to show alone"
    )


def run(args: argparse.Namespace) -> int:
    """Print what is known; 2 where the file can't be read or parsed, or has no such function."""
    from torchlint.config import Configuration
    from torchlint.engine.one import make_project
    from torchlint.program.knowledge import Recorder
    from torchlint.source.file import CANNOT_PARSE, UnreadableSource, read_source

    path, _, name = str(args.target).partition(":")
    try:
        source = read_source(path, path)
        module = make_project(Configuration().settings_for(path)).module(source)
        module.tree  # noqa: B018
    except (OSError, UnreadableSource) as error:
        print(f"torchlint: {path}: {error}", file=sys.stderr)
        return 2
    except CANNOT_PARSE as error:
        print(f"torchlint: {path}:{getattr(error, 'lineno', 1)}: {error}", file=sys.stderr)
        return 2
    asked = [f for f in module.functions if name in (f.name, spelled(f))] if name else []
    if name and not asked:
        print(f"torchlint: {path} has no function {name}", file=sys.stderr)
        return 2
    recorder = Recorder(module)
    recorder.run()
    for function in asked:
        if function.scope not in recorder.known:
            recorder.follow(function)
    scopes = [f.scope for f in asked] if name else [module.scope, *(f.scope for f in module.functions)]
    shown = [page for page in (_page(recorder, module, scope) for scope in scopes) if page]
    if not shown:
        print(
            f"torchlint: nothing that {path} does concerns training or autograd; "
            f"name a function (torchlint trace {path}:NAME) to see it all the same",
            file=sys.stderr,
        )
        return 0
    print("\n\n".join(shown))
    return 0


def spelled(function: FunctionInfo) -> str:
    """A function as one asks for it: ``fit``, or ``Trainer.fit``."""
    return f"{function.cls.name}.{function.name}" if function.cls is not None else function.name


def _page(recorder: Recorder, module: Module, scope: Scope) -> str:
    """One function's lines; empty where it wasn't followed."""
    known = recorder.known.get(scope)
    if not known:
        return ""
    source = module.source
    head = f"{source.filename}: "
    if scope is module.scope:
        head += "the module itself"
    else:
        head += f"{spelled(module.function(scope))}()"
        callers = recorder.callers.get(scope, [])
        head += f", called at line {', '.join(map(str, sorted(callers)))}" if callers else ", looked at on its own"
    width = len(str(max(known)))
    lines = [head]
    for row in sorted(known):
        lines.extend(lines_of(source.lines[row - 1], row, width, known[row]))
    return "\n".join(lines)


def lines_of(text: str, row: int, width: int, line: Line) -> list[str]:
    """A source line with the modes in force, and below it the names and events."""
    shown = f"{row:>{width}}  {text.rstrip()}"
    modes = " or ".join(f"[{mode[len(_MODES) :]}]" for mode in line.modes)
    indent = " " * (width + 4 + len(text) - len(text.lstrip()))
    return [f"{shown:<{_MODES_COLUMN}}  {modes}".rstrip(), *(f"{indent}{fact}" for fact in (*line.names, *line.events))]
