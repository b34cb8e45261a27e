"""A fixed notebook differs from the old one in the changed cells' lines and nowhere else."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import nbformat
import pytest
from editing import finding, views

from torchlint.finding import Finding
from torchlint.fixing.files import FileFix, fix_files
from torchlint.fixing.notebooks import with_cells
from torchlint.fixing.reporting import diff, fixed_lines
from torchlint.source.edits import delete_statement, insert_statement_after, insert_text, name_for, replace_callee, safe
from torchlint.source.file import SourceFile


def notebook(*cells: object, **dump: object) -> str:
    """A notebook with a Markdown cell in front and the given sources as code cells."""
    code = [
        {"cell_type": "code", "execution_count": 1, "id": f"c{i}", "metadata": {}, "outputs": [], "source": source}
        for i, source in enumerate(cells)
    ]
    head = {"cell_type": "markdown", "id": "md", "metadata": {}, "source": ["x.view(1)\n"]}
    content = {"cells": [head, *code], "metadata": {"b": 1, "a": 1.50}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(content, **dump) + "\n"  # type: ignore[arg-type]


def fix(tmp_path: Path, text: str, lint: object = views) -> tuple[str, FileFix]:
    path = tmp_path / "net.ipynb"
    path.write_bytes(text.encode())
    (fixed,) = fix_files([(str(path), "net.ipynb")], lint, unsafe=False, write=True)  # type: ignore[arg-type]
    assert not fixed.error
    return path.read_bytes().decode(), fixed


@pytest.mark.parametrize(
    "dump", [{"indent": 1}, {"indent": 2, "sort_keys": True}, {}, {"separators": (",", ":")}], ids=str
)
@pytest.mark.parametrize("ensure_ascii", [True, False])
@pytest.mark.parametrize("end", ["\n", "", "\r\n"])
def test_the_json_stays_as_it_was_written(
    tmp_path: Path, dump: dict[str, object], ensure_ascii: bool, end: str
) -> None:
    text = notebook(["é = 1\n", "y = x.view(1)  # größe"], "x.view(2)", ["z = 'é'"], ensure_ascii=ensure_ascii, **dump)
    text = text[:-1] + end
    expected = text.replace("= x.view(1)", "= x.reshape(1)").replace("x.view(2)", "x.reshape(2)")
    assert fix(tmp_path, text)[0] == expected


def test_a_byte_order_mark_and_windows_line_ends_stay(tmp_path: Path) -> None:
    text = "\ufeff" + notebook(["x.view(1)\r\n", "z"], indent=1).replace("\n", "\r\n")
    assert fix(tmp_path, text)[0] == text.replace('"x.view(1)\\r', '"x.reshape(1)\\r')


def test_the_report_and_the_diff_name_the_cell(tmp_path: Path) -> None:
    fixed = fix(tmp_path, notebook("a = 1\n\nx.view(1)", "b", "x.view(2)\n"))[1]
    assert [line.split(" TL")[0] for line in fixed_lines(fixed)] == [
        "fixed net.ipynb:cell 2:3",
        "fixed net.ipynb:cell 4:1",
    ]
    assert diff(fixed).startswith("--- net.ipynb:cell 2\n+++ net.ipynb:cell 2\n@@ -1,3 +1,3 @@\n a = 1\n")
    assert "--- net.ipynb:cell 4" in diff(fixed)


def test_magics_are_kept(tmp_path: Path) -> None:
    text = notebook(
        ["%matplotlib inline\n", "!pip install torch\n", "x.view(1)\n", "x.view?"], "%%bash\nx.view(1)", indent=1
    )
    assert fix(tmp_path, text)[0] == text.replace('"x.view(1)\\n",\n    "x.view?"', '"x.reshape(1)\\n",\n    "x.view?"')


def _lint_statements(name: str, repair: object) -> object:
    def lint(source: SourceFile) -> list[Finding]:
        return [
            finding(source, found, "TL901", safe("repair", repair(source, found)))  # type: ignore[operator]
            for found in ast.walk(source.tree)
            if isinstance(found, ast.Expr) and source.segment(found) == name
        ]

    return lint


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["a\nb", "c"], ["a", "c"]),
        (["a\nb\n", "c"], ["a\n", "c"]),
        (["b\na", "c"], ["a", "c"]),
        (["b", "c"], ["", "c"]),
        (["a; b", "c"], ["a", "c"]),
    ],
)
def test_a_statement_deleted_at_the_end_of_a_cell_leaves_the_next_cell_alone(
    tmp_path: Path, cells: list[str], expected: list[str]
) -> None:
    text = fix(tmp_path, notebook(*cells), _lint_statements("b", delete_statement))[0]
    assert [cell["source"] for cell in json.loads(text)["cells"][1:]] == expected


@pytest.mark.parametrize("end", ["", "\n"])
def test_a_statement_added_behind_the_last_one_of_a_cell_stays_in_it(tmp_path: Path, end: str) -> None:
    def eval_behind(source: SourceFile, found: ast.stmt) -> object:
        follows = source.tree.body[source.tree.body.index(found) + 1 :]
        return (
            ()
            if any("eval" in source.segment(other) for other in follows)
            else insert_statement_after(source, found, "m.eval()")
        )

    def lint(source: SourceFile) -> list[Finding]:
        found = next(found for found in source.tree.body if source.segment(found) == "b")
        edits = eval_behind(source, found)
        return [finding(source, found, "TL402", safe("eval", edits))] if edits else []  # type: ignore[arg-type]

    text = fix(tmp_path, notebook(["a\n", f"b{end}"], "c", indent=1), lint)[0]
    assert text == notebook(["a\n", "b\n", f"m.eval(){end}"], "c", indent=1)
    nbformat.validate(nbformat.reads(text, as_version=4))


def test_an_import_goes_to_the_cell_that_holds_the_imports(tmp_path: Path) -> None:
    def lint(source: SourceFile) -> list[Finding]:
        found = []
        for call in ast.walk(source.tree):
            if isinstance(call, ast.Call) and source.segment(call) == "clone(m)":
                name = name_for(source, "copy.deepcopy", call)
                assert name is not None
                found.append(
                    finding(
                        source, call, "TL708", safe("copy", replace_callee(source, call, name.spelling), name.edits)
                    )
                )
        return found

    text = fix(tmp_path, notebook(["import torch\n", "import torchvision"], ["best = clone(m)"], indent=1), lint)[0]
    assert text == notebook(
        ["import copy\n", "\n", "import torch\n", "import torchvision"], ["best = copy.deepcopy(m)"], indent=1
    )


def test_an_edit_across_cells_is_rolled_back(tmp_path: Path) -> None:
    from editing import fix_of

    from torchlint.finding import Edit, Position

    def lint(source: SourceFile) -> list[Finding]:
        return [finding(source, source.tree.body[0], "TL901", fix_of(Edit(Position(1, 1), Position(2, 2), "z")))]

    text = notebook("a", "b")
    after, fixed = fix(tmp_path, text, lint)
    assert after == text
    assert fixed.result.failed[0].reason == "it would reach into another cell"


def test_notebooks_of_format_3_are_fixed_too(tmp_path: Path) -> None:
    text = json.dumps(
        {
            "metadata": {"name": ""},
            "nbformat": 3,
            "worksheets": [
                {"cells": [{"cell_type": "heading", "source": ["x"]}, {"cell_type": "code", "input": ["x.view(1)"]}]},
                {"cells": [{"cell_type": "code", "input": "x.view(2)", "language": "python"}]},
            ],
        },
        indent=1,
    )
    assert fix(tmp_path, text)[0] == text.replace("view", "reshape")


def test_a_repeated_key_counts_as_json_reads_it() -> None:
    text = '{"cells": [], "cells": [{"cell_type": "code", "source": "a", "source": ["b"]}]}'
    assert with_cells(text, {1: "c\nd"}) == text.replace('["b"]', '["c\\n", "d"]')


def test_an_emptied_list_and_a_filled_one_are_written_plainly() -> None:
    text = '{"cells": [{"cell_type": "code", "source": []}]}'
    assert with_cells(text, {1: "a\nb"}) == text.replace("[]", '["a\\n", "b"]')
    assert with_cells(text.replace("[]", '[\n "a"\n]'), {1: ""}) == text


def test_an_edit_at_the_very_start_of_a_cell_stays_in_that_cell(tmp_path: Path) -> None:
    def lint(source: SourceFile) -> list[Finding]:
        if "# c" in source.text:
            return []
        found = source.tree.body[1]
        return [finding(source, found, "TL901", safe("mark", insert_text(source.span(found)[0], "# c\n")))]

    assert fix(tmp_path, notebook("a", "b"), lint)[0] == notebook("a", "# c\nb")
