"""Files that no one would write, and generators do: each is read in seconds, whatever it is too much of.

Times are of the CPU and bounded by what Python's own parser takes for the same text, so that a slow machine is no
failure.
"""

from __future__ import annotations

import ast
import contextlib
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from judging import judge_text

from torchlint.api import lint_paths
from torchlint.config import RuleSelection, Settings

HEAD = "import torch\nfrom torch import nn\n\n"
NET = "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"


def lines_100_000() -> str:
    """A loop of training now and then, in between assignments."""
    part = "x = torch.zeros(3)\ny = x.view(-1) + 1\n" * 24 + "for x, y in loader:\n    model(x).sum().backward()\n"
    return HEAD + part * 2000


def one_long_line() -> str:
    return HEAD + "; ".join(f"x{n % 100} = torch.zeros({n}).sum()" for n in range(32_000))


def one_long_expression() -> str:
    return HEAD + "x = [" + ", ".join(f"nn.Linear({n}, 2)" for n in range(50_000)) + "]\n"


def one_long_string() -> str:
    return HEAD + f"x = torch.zeros(3)\ny = '{'x' * 1_000_000}'\n"


def methods_10_000() -> str:
    calls = "".join(
        f"    def m{n}(self, x):\n        self.a{n} = [nn.Linear(1, 1)]\n        return self.m{n - 1}(x)\n\n"
        for n in range(10_000)
    )
    return HEAD + NET + calls


def layers_3_000() -> str:
    made = "".join(f"        self.l{n} = nn.Linear({n + 1}, {n + 2})\n" for n in range(3000))
    used = "".join(f"        x = self.l{n}(x)\n" for n in range(3000))
    return HEAD + NET + made + f"\n    def forward(self, x):\n{used}        return x\n\nNet()(torch.ones(1, 1))\n"


def branches_5_000() -> str:
    body = "".join(f"    if flags[{n}]:\n        x = model(x) * {n}\n        w{n} = x.detach()\n" for n in range(5000))
    return HEAD + f"def train(model, x, flags):\n    x.requires_grad_()\n{body}    x.sum().backward()\n"


def elifs_900() -> str:
    arms = "".join(f"    elif x == {n}:\n        model.eval()\n        y = model(x)\n" for n in range(900))
    return HEAD + f"def run(model, x):\n    if not x:\n        pass\n{arms}    y.backward()\n"


def tries_2_000() -> str:
    part = (
        "    try:\n        x = model(x)\n    except ValueError:\n        x = x.detach()\n    finally:\n        y = x\n"
    )
    return HEAD + f"def run(model, x):\n{part * 2000}    return x.backward()\n"


def nested_loops() -> str:
    heads = "".join("    " * (n + 1) + f"for x{n} in loader:\n" for n in range(19))
    return HEAD + f"def run(model, loader):\n{heads}{'    ' * 20}model(x18).backward()\n"


def nested_ifs() -> str:
    heads = "".join("    " * (n + 1) + f"if x[{n}]:\n" for n in range(90))
    return HEAD + f"def run(model, x):\n{heads}{'    ' * 91}model(x).backward()\n"


def nested_functions() -> str:
    heads = "".join("    " * n + f"def f{n}(x, model=model):\n" for n in range(80))
    return HEAD + f"model = nn.Linear(2, 2)\n{heads}{'    ' * 80}return model(x)\n"


def nested_brackets() -> str:
    return HEAD + f"x = {'[' * 150}torch.zeros(1){']' * 150}\ny = {'nn.Sequential(' * 90}{')' * 90}\n"


def chained_calls() -> str:
    return HEAD + f"x = torch.zeros(3){'.view(-1)' * 2500}\n"


def added_up() -> str:
    return HEAD + f"x = torch.zeros(3)\ny = {' + '.join(['x'] * 2500)}\n"


def functions_that_call_the_next() -> str:
    calls = "".join(
        f"def f{n}(model, x):\n    f{n + 1}(model, model(x))\n    f{n + 1}(model, x)\n\n\n" for n in range(3000)
    )
    return HEAD + calls + "f0(nn.Linear(2, 2), torch.ones(2))\n"


def classes_3_000() -> str:
    cls = (
        "class C{n}(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.a = [nn.Linear(2, 2) for _ in range(3)]\n        self.b = [nn.Linear(2, 2) for _ in range(3)]\n\n"
        "    def forward(self, x):\n        return [a(x) for a in self.a] + [b(x) for b in self.b]\n\n\n"
    )
    return HEAD + "".join(cls.replace("{n}", str(n)) for n in range(3000))


def leaves_changed_in_place() -> str:
    return HEAD + "".join(f"w{n} = torch.zeros(3, requires_grad=True)\nw{n} -= 0.1\n" for n in range(4000))


def noqa_everywhere() -> str:
    return HEAD + "x = torch.zeros(3)  # noqa: TL101, E501\n" * 20_000


def chain_of_classes() -> str:
    links = "".join(
        f"class C{n}(C{n - 1}):\n    def f{n}(self):\n        return super().f{n - 1}()\n\n\n" for n in range(1, 900)
    )
    return HEAD + f"class C0(nn.Module):\n    pass\n\n\n{links}C899()(torch.ones(1))\n"


PARSES = 14.0
"""How many times the time of ``ast.parse`` any of these may take, with every rule that there is."""


@pytest.mark.parametrize(
    "make",
    [
        lines_100_000,
        one_long_line,
        one_long_expression,
        one_long_string,
        methods_10_000,
        layers_3_000,
        branches_5_000,
        elifs_900,
        tries_2_000,
        nested_loops,
        nested_ifs,
        nested_functions,
        nested_brackets,
        chained_calls,
        added_up,
        functions_that_call_the_next,
        classes_3_000,
        leaves_changed_in_place,
        noqa_everywhere,
        chain_of_classes,
    ],
)
def test_a_file_that_is_too_much_of_something_is_linted_in_time(make: Callable[[], str]) -> None:
    text = make()
    started = time.process_time()
    with contextlib.suppress(RecursionError, MemoryError):  # nesting that this Python gives up is TL001, and quickly
        ast.parse(text)
    parsing = time.process_time() - started
    verdict = judge_text(text)
    assert verdict.wrong == "" or verdict.wrong.startswith("slow")
    assert verdict.seconds < max(2.0, PARSES * parsing), f"{verdict.seconds:.1f} s, ast.parse {parsing:.1f} s"


@pytest.mark.parametrize("nesting", ["(", "[", "{", "-", "not ", "lambda: ", "f(", "x if x else ", "if x:"])
def test_nesting_without_end_is_told_and_kills_nothing(nesting: str) -> None:
    text = (
        HEAD + (nesting * 20_000 if nesting != "if x:" else "\n".join(" " * n + nesting for n in range(2000))) + "x\n"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert judge_text(text).wrong == ""


def lint(root: Path) -> list[str]:
    settings = Settings(root=str(root), src=(str(root),), selection=(RuleSelection(select=("ALL",)),))
    return [finding.code for finding in lint_paths([root], settings)]


def test_modules_that_import_each_other_in_a_circle_end(tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"m{number}.py").write_text(
            f"import torch\nfrom m{(number + 1) % 30} import *\nfrom m{(number + 1) % 30} import C, D, missing\n\n\n"
            f"class C(D):\n    def __init__(self):\n        self.layer = torch.nn.Linear(1, 1)\n\n\nD = C\n"
        )
    (tmp_path / "self.py").write_text(
        "import torch\nfrom self import *\nfrom self import X\n\n\nclass X(X):\n    pass\n"
    )
    assert "TL003" not in lint(tmp_path)


def test_a_chain_of_classes_over_a_thousand_files_is_followed(tmp_path: Path) -> None:
    (tmp_path / "m0.py").write_text("import torch\n\n\nclass C0(torch.nn.Module):\n    pass\n")
    for n in range(1, 1000):
        (tmp_path / f"m{n}.py").write_text(
            f"import torch\nfrom m{n - 1} import C{n - 1}\n\n\nclass C{n}(C{n - 1}):\n"
            "    def __init__(self):\n        self.layer = torch.nn.Linear(1, 1)\n"
        )
    started = time.process_time()
    codes = lint(tmp_path)
    assert time.process_time() - started < 20
    assert set(codes) == {"TL101"}
    assert len(codes) > 50


def test_a_project_with_a_module_named_torch_is_not_taken_for_torch_nor_does_it_break_anything(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text(
        "class nn:\n    class Module:\n        pass\n\n\nfrom torch import *\nimport torch\n"
    )
    (tmp_path / "net.py").write_text(
        "import torch\n\n\nclass Net(torch.nn.Module):\n"
        "    def __init__(self):\n        self.layer = torch.nn.Linear(1, 1)\n"
    )
    assert "TL003" not in lint(tmp_path)
    (tmp_path / "torch.py").unlink()
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("from .nn import *\nfrom . import nn\n")
    (tmp_path / "torch" / "nn.py").write_text(
        "from torch import nn\nimport torch.nn as nn\n\n\nclass Module(nn.Module):\n    x = 1\n"
    )
    assert "TL003" not in lint(tmp_path)
