"""What the interpreter knows is said by programs: a trailing ``#:`` comment names what must be known at its line.

Its parts, split at ``|``, must stand in what ``torchlint trace`` prints for that line; a part after ``!`` must not.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from torchlint.cli.trace import trace_lines
from torchlint.program.interpreter import trace_module
from torchlint.program.module import Module
from torchlint.program.project import Project
from torchlint.source.file import read_source, source_from_text

PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.py"))


def module_of(path: Path) -> Module:
    return Project([], lambda name: read_source(name, name)).module(read_source(str(path), path.name))


def known(module: Module) -> dict[int, list[str]]:
    lines: dict[int, list[str]] = {}
    for trace in trace_module(module):
        for line in trace_lines(trace):
            lines.setdefault(int(line.split(":")[0]), []).append(line)
    return lines


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_the_interpreter_knows_what_a_program_says_that_it_must(program: Path) -> None:
    lines = known(module_of(program))
    announced = 0
    for row, text in enumerate(program.read_text(encoding="utf-8").splitlines(), start=1):
        _, mark, parts = text.partition("#:")
        if not mark:
            continue
        announced += 1
        wanted = [part.strip() for part in parts.split("|")]
        fits = [
            line
            for line in lines.get(row, [])
            if all((part[1:] not in line) if part.startswith("!") else part in line for part in wanted)
        ]
        assert fits, f"{program.name}:{row}: {parts.strip()} is not known; known is\n" + "\n".join(lines.get(row, []))
    assert announced > 3


def test_what_cannot_be_told_stays_unknown() -> None:
    source = source_from_text(
        "import torch, other\nmodel = other.make()\nloss = model(other.batch())\nloss.backward()\n", "unknown.py"
    )
    module = Project([]).module(source)
    (line,) = [line for line in known(module)[4] if " Backward " in line]
    assert "has_graph" not in line and "freed" not in line


def test_endless_recursion_and_loops_end() -> None:
    text = (
        "import torch\n"
        "def f(x):\n    return f(x)\n"
        "def g(loss):\n    while True:\n        loss.backward()\n        f(loss)\n        g(loss)\n"
        "g(torch.ones(1, requires_grad=True))\n"
    )
    traces = trace_module(Project([]).module(source_from_text(text, "endless.py")))
    assert [trace.root.ends for trace in traces] == [""]
