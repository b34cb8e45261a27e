"""Notebooks as source: cells in order, IPython's syntax put aside, rows told by cell."""

from __future__ import annotations

import ast
import json
from typing import Any

import nbformat
import pytest

from torchlint.source.file import SourceFile, UnreadableSource, source_from_text


def notebook(*cells: str, **changes: Any) -> SourceFile:
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    return source_from_text(json.dumps({**made, **changes}), "a.ipynb")


def statements(source: SourceFile) -> list[str]:
    return [ast.unparse(statement) for statement in source.tree.body]


def test_code_cells_are_joined_in_order_and_numbered_among_all_cells() -> None:
    cells = [
        nbformat.v4.new_markdown_cell("# Title"),
        nbformat.v4.new_code_cell("import torch\n\nx = 1"),
        nbformat.v4.new_raw_cell("raw"),
        nbformat.v4.new_code_cell(""),
        nbformat.v4.new_code_cell("y = x\n"),
    ]
    source = source_from_text(nbformat.writes(nbformat.v4.new_notebook(cells=cells)), "a.ipynb")
    assert source.is_notebook
    assert source.text == "import torch\n\nx = 1\n\ny = x\n"
    assert [source.cell(row) for row in range(1, 6)] == [(2, 1), (2, 2), (2, 3), (4, 1), (5, 1)]
    assert statements(source) == ["import torch", "x = 1", "y = x"]


def test_version_3_keeps_cells_in_worksheets() -> None:
    old = {
        "nbformat": 3,
        "metadata": {},
        "worksheets": [
            {
                "cells": [
                    {"cell_type": "heading", "source": "Title"},
                    {"cell_type": "code", "language": "python", "input": ["import torch\n", "x = 1"]},
                    {"cell_type": "code", "language": "ruby", "input": "puts 1"},
                    {"cell_type": "code", "input": "y = 2"},
                ]
            }
        ],
    }
    source = source_from_text(json.dumps(old), "old.ipynb")
    assert statements(source) == ["import torch", "x = 1", "y = 2"]
    assert source.cell(3) == (4, 1)


@pytest.mark.parametrize(
    ("written", "parsed"),
    [
        ("%matplotlib inline", ["pass"]),
        ("!pip install torch 'x", ["pass"]),
        ("model.fit?", ["pass"]),
        ("??model", ["pass"]),
        ("files = !ls -l | grep (", ["files = get_ipython()"]),
        ("r = %timeit -o f(x)", ["r = get_ipython()"]),
        ("%%time\nloss.backward()", ["loss.backward()"]),
        ("%%bash\nls | wc (\n", []),
        ("%%writefile a.py\nimport torch", []),
        ("if x:\n    !ls\n    %cd ..\nelse:\n    y?", ["if x:\n    pass\n    pass\nelse:\n    pass"]),
        ("!ls \\\n  -l\nx = 1", ["pass", "x = 1"]),
        ("await f()\nasync with g() as h:\n    pass", ["await f()", "async with g() as h:\n    pass"]),
        ("%time for x in y: print(x)", ["pass"]),
    ],
)
def test_what_only_ipython_understands_is_put_aside(written: str, parsed: list[str]) -> None:
    source = notebook(written)
    assert statements(source) == parsed
    assert source.text.startswith(written)


def test_a_timed_statement_is_read_where_it_stands() -> None:
    source = notebook("x = 1\n%time loss.backward()")
    call = source.tree.body[-1]
    assert ast.unparse(call) == "loss.backward()"
    assert source.segment(call) == "loss.backward()"


def test_percent_and_question_marks_within_python_stay() -> None:
    cell = "a = (b\n  % c)\ns = '''\n%magic\n!ls\n'''\nt = 'what?'  # why?\nd = {\n'k':\n!x\n}"
    source = notebook(cell.replace("!x", "x"))
    assert statements(source) == ["a = b % c", "s = '\\n%magic\\n!ls\\n'", "t = 'what?'", "d = {'k': x}"]


def test_rows_after_magics_stay_where_they_are() -> None:
    source = notebook("%%capture out\n!pip install \\\n   torch\nimport torch", "%%html\n<b>\n</b>", "x = 1")
    assert [source.cell(statement.lineno) for statement in source.tree.body] == [(1, 2), (1, 4), (3, 1)]


def test_a_notebook_in_another_language_has_no_code_for_us() -> None:
    source = notebook("x <- c(1)", metadata={"kernelspec": {"name": "ir", "language": "R", "display_name": "R"}})
    assert source.text == ""
    assert statements(source) == []


@pytest.mark.parametrize(
    ("text", "row", "reason"),
    [
        ('{"cells": [\n  {"cell_type": "code"\n', 3, "no valid JSON"),
        ("[1, 2]", 1, "holds no cells"),
        ("[" * 100_000, 1, "nested too deeply"),
    ],
)
def test_a_damaged_notebook_is_refused_with_the_line(text: str, row: int, reason: str) -> None:
    with pytest.raises(UnreadableSource) as raised:
        source_from_text(text, "a.ipynb")
    assert raised.value.row == row
    assert reason in raised.value.reason


@pytest.mark.parametrize("cells", [None, 3, [None, 1, {"cell_type": "code", "source": 7}], [{"cell_type": "code"}]])
def test_cells_of_odd_shapes_hold_no_code(cells: object) -> None:
    source = source_from_text(json.dumps({"cells": cells, "nbformat": 4}), "a.ipynb")
    assert source.text.strip() == ""
