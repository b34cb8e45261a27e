"""What is worth following, and that following ends soon whatever it meets."""

from __future__ import annotations

import pytest

from torchlint.program.interest import wanted
from torchlint.program.interpreter import STEPS, Interpreter
from torchlint.program.module import Module
from torchlint.program.project import Project
from torchlint.source.file import source_from_text

LOADS = "import torch\n\n\ndef load(model, path, x):\n    model.load_state_dict(torch.load(path){more})\n    {after}\n"


def module_of(text: str) -> Module:
    return Project(()).module(source_from_text(text, "program.py"))


@pytest.mark.parametrize(
    ("more", "after", "followed"),
    [
        ("", "return None", []),
        (", strict=True", "return None", []),
        (", strict=False", "return None", ["load"]),
        ("", "return model(x)", ["load"]),
        ("", "return predict(model, x)", ["load"]),
        ("", "model.optimizer.step()", ["load"]),
    ],
)
def test_a_function_that_loads_is_followed_for_what_comes_of_it(more: str, after: str, followed: list[str]) -> None:
    module = module_of(LOADS.format(more=more, after=after))
    assert [scope.name for scope in wanted(module)] == followed


@pytest.mark.parametrize(
    "body",
    [
        "".join(f"    if x == {i}:\n        a = model(x)\n    else:\n        b = model(a)\n" for i in range(4000)),
        "    x = model(x)\n" * 20_000,
        "".join("    " * (i + 1) + f"for i{i} in x:\n" for i in range(18)) + "    " * 19 + "model(x)\n",
    ],
    ids=["branches", "calls", "loops"],
)
def test_following_ends_after_so_many_steps(body: str) -> None:
    module = module_of(f"def train(model, a, x):\n{body}    x.backward()\n")
    interpreter = Interpreter(module)
    (trace,) = interpreter.run()
    assert sum(1 for _ in trace.root.events(again=True)) < 3 * STEPS
    trace.release()
