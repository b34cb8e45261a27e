"""An outline says of a file what its whole tree says, whatever is asked of it first."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from torchlint.source.outline import Outline

ROOT = Path(__file__).parents[2]
SOURCES = sorted([*ROOT.glob("torchlint/**/*.py"), *ROOT.glob("tests/**/*.py"), *ROOT.glob("fixtures/TL1*/*.py")])

ODD = {
    "a string that looks like code": 'T = """\nclass No:\n    pass\n"""\n\nclass Yes:\n    """\ndef no(): pass\n"""\n',
    "a decorator over lines": '@page(\n    """\nText\n"""\n)\n@other\nclass Net(\n    Base\n):\n    x = 1\ny = 2\n',
    "brackets at the margin": "def f() -> Union[\nint, str\n]:\n    return 1\n\n\nx = [\nf(),\n]\n",
    "one quote too many": "def f():\n    return \"'''\"\n\n\nX = 1\n\n\ndef g():\n    pass\n",
    "defined twice": "def f():\n    return 1\n\nasync def f():\n    return 2\n\nif 1:\n    def f():\n        pass\n",
    "old line ends": "class A:\r    pass\rclass B(A):\r    pass\r",
    "windows line ends": "class A:\r\n    pass\r\nx = 1\r\nclass B(A):\r\n    pass\r\n",
    "nothing": "",
    "comments between": "# one\ndef f():\n    pass\n# two\n    # three\n\n@a  # four\ndef g(): pass  # five\n# six",
    "form feed": "\fdef f():\n    pass\n\f\ndef g():\n    pass\n",
}


def _dumped(statements: list[ast.stmt]) -> list[str]:
    return [ast.dump(node, include_attributes=True) for node in statements]


def _same(text: str) -> None:
    outline = Outline(text, "a.py")
    parsed = [
        node
        for definitions in outline.definitions.values()
        for definition in definitions
        for node in outline.parse(definition)
    ]
    together = sorted([*outline.rest.body, *parsed], key=lambda node: (node.lineno, node.col_offset))
    assert _dumped(together) == _dumped(ast.parse(text).body)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_pieces_are_the_whole(path: Path) -> None:
    _same(path.read_text("utf-8"))


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_odd_texts(text: str) -> None:
    _same(text)


def test_only_what_is_asked_for_is_parsed() -> None:
    outline = Outline("X = 1\n\n\ndef f():\n    return 1\n\n\ndef g():\n    return (\n", "a.py")
    (wanted,) = outline.definitions["f"]
    before = outline.parsed
    assert _dumped(outline.parse(wanted)) == _dumped(ast.parse("\n\n\ndef f():\n    return 1\n").body)
    assert outline.parsed - before < 30
    with pytest.raises(SyntaxError):
        outline.parse(outline.definitions["g"][0])


def test_bases_without_the_body() -> None:
    text = "@d\nclass A(B, m.C[int], metaclass=M):\n    x = (\n\n\nclass D:\n    pass\n\n\ndef f():\n    pass\n"
    outline = Outline(text, "a.py")
    before = outline.parsed
    bases = {name: outline.bases(found) for name, (found,) in outline.definitions.items()}
    assert [ast.unparse(base) for base in bases["A"] or ()] == ["B", "m.C[int]"]
    assert bases["D"] == []
    assert bases["f"] is None
    assert outline.parsed == before
    called = Outline("class A(make(1)):\n    pass\n", "a.py")
    assert [ast.unparse(base) for base in called.bases(called.definitions["A"][0]) or ()] == ["make(1)"]
