"""Names and classes are followed through every style of import, across files, and never by running anything."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from torchlint.program.classes import ClassInfo
from torchlint.program.module import Module
from torchlint.program.project import Project
from torchlint.source.file import read_source


def project(folder: Path, files: dict[str, str]) -> dict[str, Module]:
    """Write files and give their modules, all of one project."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    made = Project([str(folder)], lambda path: read_source(path, path))
    return {name: made.module(read_source(str(folder / name), name)) for name in files}


@pytest.mark.parametrize(
    ("imports", "spelling"),
    [
        ("import torch", "torch.nn.functional.dropout"),
        ("import torch as th", "th.nn.functional.dropout"),
        ("import torch.nn.functional as F", "F.dropout"),
        ("from torch.nn import functional as F", "F.dropout"),
        ("from torch.nn.functional import dropout", "dropout"),
        ("from torch.nn.functional import dropout as d", "d"),
        ("from torch import nn", "nn.functional.dropout"),
        ("import torch\nF = torch.nn.functional", "F.dropout"),
        ("try:\n    import torch\nexcept ImportError:\n    torch = None", "torch.nn.functional.dropout"),
        ("if True:\n    from torch import nn", "nn.functional.dropout"),
    ],
)
def test_a_name_is_known_by_every_import_style(tmp_path: Path, imports: str, spelling: str) -> None:
    module = project(tmp_path, {"a.py": f"{imports}\nx = {spelling}\n"})["a.py"]
    value = module.tree.body[-1].value  # type: ignore[attr-defined]
    assert module.qualname(value) == "torch.nn.functional.dropout"


def test_an_import_inside_a_function_counts_there_alone(tmp_path: Path) -> None:
    module = project(
        tmp_path,
        {"a.py": "def f():\n    from torch import nn\n    return nn.Linear\ndef g(nn):\n    return nn.Linear\n"},
    )["a.py"]
    values = [s.node.body[-1].value for s in module.scope.children]  # type: ignore[union-attr, attr-defined]
    names = [module.qualname(value, scope) for value, scope in zip(values, module.scope.children)]
    assert names == ["torch.nn.Linear", None]


def test_bases_are_followed_through_packages_reexports_and_stars(tmp_path: Path) -> None:
    modules = project(
        tmp_path,
        {
            "pkg/__init__.py": "from .layers import Base as PublicBase\n",
            "pkg/layers/__init__.py": "from .core import *\n",
            "pkg/layers/core.py": "from torch import nn\nclass Base(nn.Module):\n    def helper(self):\n        pass\n",
            "pkg/net.py": "from . import PublicBase\nclass Net(PublicBase):\n    pass\n",
            "app.py": "import pkg.net as n\nclass Mine(n.Net):\n    pass\nclass Other(dict):\n    pass\n",
        },
    )
    mine, other = modules["app.py"].classes
    assert mine.is_module is True
    assert other.is_module is False
    assert mine.method("helper") is not None
    assert {Path(path).name for path in modules["app.py"].dependencies} >= {"net.py", "core.py"}


def test_a_base_that_cannot_be_found_leaves_it_open(tmp_path: Path) -> None:
    (cls,) = project(tmp_path, {"a.py": "from nowhere import Base\nclass Net(Base):\n    pass\n"})["a.py"].classes
    assert cls.is_module is None
    assert not cls.resolved


def test_cycles_of_imports_and_bases_end(tmp_path: Path) -> None:
    modules = project(
        tmp_path,
        {
            "a.py": "from b import *\nfrom b import B\nclass A(B):\n    pass\nclass Own(Own):\n    pass\n",
            "b.py": "from a import *\nfrom a import A\nclass B(A):\n    pass\n",
        },
    )
    assert [cls.is_module for cls in modules["a.py"].classes] in ([False, False], [None, False], [None, None])
    assert isinstance(modules["b.py"].lookup("B"), ClassInfo)


def test_self_attributes_are_indexed_with_their_methods(tmp_path: Path) -> None:
    text = (
        "class C:\n"
        "    def __init__(this):\n        this.a = 1\n"
        "    def m(self):\n        return [self.a for _ in self.b], lambda: self.c\n"
        "    @staticmethod\n    def s(self):\n        return self.d\n"
    )
    (cls,) = project(tmp_path, {"a.py": text})["a.py"].classes
    assert sorted(cls.scope.self_reads) == ["a", "b", "c"]
    assert [type(use.value) for use in cls.writes("a")] == [ast.Constant]


def test_a_file_named_torch_does_not_hide_torch(tmp_path: Path) -> None:
    modules = project(
        tmp_path, {"torch.py": "class nn:\n    pass\n", "a.py": "import torch\nclass N(torch.nn.Module):\n    pass\n"}
    )
    assert modules["a.py"].classes[0].is_module is True
