"""What the interpreter knows is said by programs: a trailing ``#:`` comment names what must be known at its line.

It holds facts in the words of ``torchlint trace``, split at ``;``. Parts of a fact, split at ``|``, must all stand in
one of the facts known at that line; a part after ``!`` must not stand in it. ``modes: `` begins the modes in force.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from torchlint.program.interpreter import trace_module
from torchlint.program.knowledge import Line, Recorder
from torchlint.program.module import Module
from torchlint.program.project import Project
from torchlint.source.file import read_source, source_from_text

PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.py"))


def module_of(path: Path) -> Module:
    return Project([], lambda name: read_source(name, name)).module(read_source(str(path), path.name))


def known(module: Module) -> dict[int, Line]:
    recorder = Recorder(module)
    recorder.run()
    return {row: line for lines in recorder.known.values() for row, line in lines.items()}


def fits(wanted: str, fact: str) -> bool:
    parts = [part.strip() for part in wanted.split("|")]
    return all(part[1:] not in fact if part.startswith("!") else part in fact for part in parts)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_the_interpreter_knows_what_a_program_says_that_it_must(program: Path) -> None:
    lines = known(module_of(program))
    announced = 0
    for row, text in enumerate(program.read_text(encoding="utf-8").splitlines(), start=1):
        _, mark, comment = text.partition("#:")
        if not mark:
            continue
        facts = lines[row].facts if row in lines else []
        for wanted in comment.split(";"):
            announced += 1
            assert any(fits(wanted, fact) for fact in facts), (
                f"{program.name}:{row}: {wanted.strip()} is not known; known is\n" + "\n".join(facts)
            )
    assert announced > 3


def test_what_cannot_be_told_stays_unknown() -> None:
    source = source_from_text(
        "import torch, other\nmodel = other.make()\nloss = model(other.batch())\nloss.backward()\n", "unknown.py"
    )
    module = Project([]).module(source)
    (backward,) = [fact for fact in known(module)[4].events if "backward" in fact]
    assert backward.endswith(": graph unknown")


def test_recording_changes_nothing_of_what_is_known() -> None:
    for program in PROGRAMS:
        followed = [
            repr(event) for trace in trace_module(module_of(program)) for event in trace.root.events(again=True)
        ]
        recorder = Recorder(module_of(program))
        recorded = [repr(event) for trace in recorder.run() for event in trace.root.events(again=True)]
        assert recorded == followed


def test_endless_recursion_and_loops_end() -> None:
    text = (
        "import torch\n"
        "def f(x):\n    return f(x)\n"
        "def g(loss):\n    while True:\n        loss.backward()\n        f(loss)\n        g(loss)\n"
        "g(torch.ones(1, requires_grad=True))\n"
    )
    traces = trace_module(Project([]).module(source_from_text(text, "endless.py")))
    assert [trace.root.ends for trace in traces] == [""]
