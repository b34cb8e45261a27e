"""The short form of benchmarks/campaign, and the programs that it once broke something with."""

from __future__ import annotations

import ast
import random
import re
import textwrap
from pathlib import Path

import pytest
from judging import judge_text
from kinds import CONTEXTS, HEAD, PATTERNS, expressions, filled, programs, statements
from mutating import mutant

FIXTURES = sorted((Path(__file__).parents[2] / "fixtures").glob("TL*/**/*.py"))
RETIRED = {"Num", "Str", "Bytes", "NameConstant", "Ellipsis", "FunctionType", "Suite", "AugLoad", "AugStore", "Param"}


def test_the_campaign_has_every_kind_of_syntax() -> None:
    texts = [text for expression in expressions() for text in statements(expression)]
    texts += [f"match x:\n    case {pattern}: pass" for pattern in PATTERNS]
    seen = {type(node).__name__ for text in texts for node in ast.walk(ast.parse(text))}
    kinds = {
        kind.__name__
        for base in ast.AST.__subclasses__()
        for kind in base.__subclasses__()
        if base.__name__ not in ("mod", "type_ignore", "slice") and not kind.__subclasses__()
    }
    assert len(kinds) > 80
    assert sorted(kinds - seen - RETIRED) == []


@pytest.mark.parametrize("part", range(12))
def test_every_kind_of_syntax_is_linted(part: int) -> None:
    for name, text in list(programs())[part::24]:
        assert (name, judge_text(text).wrong) == (name, "")


def test_mutants_of_the_fixtures_are_linted_and_fixed() -> None:
    for number in range(120):
        rng = random.Random(f"short:{number}")
        file = rng.choice(FIXTURES)
        text = mutant(file.read_bytes().decode("utf-8", "replace"), rng)
        assert (number, file.name, judge_text(text, fix=number % 4 == 0).wrong) == (number, file.name, "")


def test_what_hypothesmith_makes_up_is_linted() -> None:
    hypothesmith = pytest.importorskip("hypothesmith", reason="hypothesmith is not installed: nothing was made up")
    from hypothesis import HealthCheck, Phase, given, seed, settings

    @seed(7)
    @settings(
        max_examples=40,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(hypothesmith.from_node())
    def attempt(text: str) -> None:
        assert judge_text(HEAD + text).wrong == ""

    attempt()


@pytest.mark.parametrize("word", ["break", "continue", "return 1", "yield 1", "await f()", "nonlocal x", "super()"])
@pytest.mark.parametrize("context", ["function", "training", "forward", "class", "module"])
def test_what_only_the_compiler_refuses_is_read_all_the_same(word: str, context: str) -> None:
    """``break`` outside a loop parses; it raised IndexError once the program was followed."""
    text = (
        f"{word}\nif x:\n    {word}\nloss = model(x)\nloss.backward()\nw = torch.ones(1, requires_grad=True)\nw -= 1\n"
    )
    assert judge_text(HEAD + filled(CONTEXTS[context], text) + "\n").wrong == ""


@pytest.mark.parametrize(
    "classes",
    [
        "class Net(Net.Module): METHODS",
        "class Net(Net.Module, Net): METHODS",
        "class Net(Net): METHODS",
        "class Net(Other.Module): METHODS\nclass Other(Net.Module): METHODS",
        "class Net(Net.Net.Net): METHODS\nclass Other(Net, Net, Other): METHODS",
        "class Net(nn.Module, Net.Inner):\n    class Inner(Net): METHODS",
        "class Net(torch.nn.Module): METHODS\nNet = Net.Net = Net",
    ],
)
def test_classes_that_derive_from_themselves_end(classes: str) -> None:
    methods = textwrap.indent(
        "\ndef __init__(self, n):\n    self.layer = nn.Linear(n, n)\n"
        "    self.more = [nn.Linear(1, 1) for _ in range(3)]\n"
        "    super().__init__()\n\ndef forward(self, x):\n"
        "    return self.layer(x) + self.missing + super().forward(x)\n",
        "    ",
    )
    inner = textwrap.indent(methods, "    ")
    text = re.sub(
        r"(?m)^( *)class (.*?) METHODS", lambda m: m[0].replace("METHODS", inner if m[1] else methods), classes
    )
    assert judge_text(f"{HEAD}{text}\nNet(4)(torch.ones(4)).sum().backward()\n", fix=True).wrong == ""


def test_values_that_go_round_a_loop_are_not_followed_through_every_order_of_assignments() -> None:
    """Each use was taken to see all assignments of later iterations, though one above it surely ran: 2.5 s."""
    (file,) = (file for file in FIXTURES if file.name == "fixed_when_traced.py")
    text = re.sub(r"( +(?:y = y.clamp|h = self.drop)\(.*\n)", r"\1" * 21, file.read_text(encoding="utf-8"))
    text = text.replace("y.clamp(", "100(", 6).replace("100(", "y.clamp(", 5)
    text = re.sub(r" +if residual and i > 0:\n.*\n +else:\n.*\n", "", text)
    verdict = judge_text(text)
    assert verdict.wrong == ""
    assert verdict.seconds < 0.4
