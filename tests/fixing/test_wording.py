"""The closing report says what was changed into what, in few words."""

from __future__ import annotations

import ast

import pytest
from editing import finding, node, views

from torchlint.finding import Fix
from torchlint.fixing.files import FileFix
from torchlint.fixing.reporting import diff, failed_lines, fixed_lines, status_line
from torchlint.fixing.rounds import fix_source
from torchlint.fixing.wording import describe
from torchlint.source.edits import (
    Edits,
    add_argument,
    add_import,
    append,
    delete_statement,
    insert_statement_after,
    replace,
    replace_callee,
    safe,
    wrap_statements,
)
from torchlint.source.file import SourceFile, source_from_text


def said(text: str, at: str, *parts: object) -> str:
    """How a fix is described: an edit function with its arguments, or ready edits."""
    source = source_from_text(text)
    found = node(source, at)
    function, *arguments = parts
    assert callable(function)
    fix = safe("repair", function(source, found, *arguments))
    assert isinstance(fix, Fix)
    return describe(source, finding(source, found, "TL305", fix))


def test_a_renamed_method_is_told_with_its_arguments() -> None:
    result = fix_source(source_from_text("y = f(x.view(b, -1)).sum()\n"), views, unsafe=False)
    assert result.fixed[0].change == ".view(b, -1) -> .reshape(b, -1)"


def test_an_added_argument_is_told_with_its_call() -> None:
    assert said("y = F.softmax(x)\n", "F.softmax(x)", add_argument, "dim=1") == "F.softmax(x) -> F.softmax(x, dim=1)"


def test_something_appended_is_told_with_its_surroundings() -> None:
    assert said("total += loss\n", "loss", append, ".detach()") == "total += loss -> total += loss.detach()"
    assert said("log.add(a, loss)\n", "loss", append, ".item()") == "log.add(a, loss) -> log.add(a, loss.item())"


def test_a_whole_word_is_told() -> None:
    assert said("y = model_a(x)\n", "model_a(x)", replace_callee, "model_b") == "model_a(x) -> model_b(x)"
    assert said("opt.zero_grad\n", "opt.zero_grad", replace, "opt.zero_grad()") == "opt.zero_grad -> opt.zero_grad()"


def test_added_and_deleted_lines_are_told_as_such() -> None:
    assert said("f(x)\ng(x)\n", "f(x)", insert_statement_after, "model.eval()") == "+ model.eval()"
    assert said("f(x)\ng(x)\n", "g(x)", delete_statement) == "- g(x)"


def test_a_header_put_above_statements_is_told_alone() -> None:
    def under_no_grad(source: SourceFile, statement: ast.stmt) -> Edits | None:
        return wrap_statements(source, [statement], "with torch.no_grad():")

    assert said("w -= lr * w.grad\n", "w -= lr * w.grad", under_no_grad) == "+ with torch.no_grad():"


def test_an_import_is_told_behind_what_it_is_for() -> None:
    def copied(source: SourceFile, call: ast.expr) -> Edits | None:
        edits, imported = replace(source, call, "copy.deepcopy(m)"), add_import(source, "import copy")
        return None if edits is None or imported is None else (*edits, *imported)

    text = "import torch\n\n\nbest = clone(m)\n"
    assert said(text, "clone(m)", copied) == "clone(m) -> copy.deepcopy(m), + import copy"


def test_long_changes_are_cut() -> None:
    change = said(f"y = f({'x, ' * 50})\n", f"f({'x, ' * 50})", replace, "g()")
    assert len(change) < 100
    assert change.endswith(" ... -> g()")


def _file(text: str, *, unsafe: bool = False, filename: str = "train.py") -> FileFix:
    return FileFix(filename, fix_source(source_from_text(text, filename), views, unsafe))


def test_each_fix_has_its_line() -> None:
    assert list(fixed_lines(_file("import torch\nx.view(b, -1)\n"))) == [
        "fixed train.py:2 TL305 .view(b, -1) -> .reshape(b, -1)"
    ]


def test_a_failed_fix_says_why() -> None:
    def lint(source: SourceFile) -> list:  # type: ignore[type-arg]
        return [
            finding(
                source, source.tree.body[0], "TL305", safe("nothing", replace(source, source.tree.body[0].value, "x"))
            )
        ]  # type: ignore[attr-defined]

    file = FileFix("a.py", fix_source(source_from_text("x\n", "a.py"), lint, unsafe=False))
    assert list(failed_lines(file)) == ["not fixed a.py:1 TL305 its fix was rolled back: it changes nothing"]
    assert status_line([file], file.remaining, unsafe=False) == "0 fixed, 1 remains (1 fix failed)"


@pytest.mark.parametrize(
    ("unsafe", "expected"),
    [(False, "1 fixed, 2 remain (1 needs --unsafe-fixes)"), (True, "1 fixed, 2 remain")],
)
def test_the_status_line_counts(unsafe: bool, expected: str) -> None:
    from torchlint.source.edits import unsafe as unsafe_fix

    source = source_from_text("a\nb\n")
    kept = [
        finding(source, source.tree.body[0], "TL704", unsafe_fix("x", replace(source, source.tree.body[0].value, "c"))),  # type: ignore[attr-defined]
        finding(source, source.tree.body[1], "TL106", None),
    ]
    assert status_line([_file("x.view(1)\n")], kept, unsafe=unsafe) == expected


def test_a_diff_shows_the_change_and_the_missing_line_end() -> None:
    assert diff(_file("a = 1\nx.view(1)")) == (
        "--- train.py\n+++ train.py\n@@ -1,2 +1,2 @@\n a = 1\n"
        "-x.view(1)\n\\ No newline at end of file\n+x.reshape(1)\n\\ No newline at end of file\n"
    )


def test_a_diff_of_nothing_is_empty() -> None:
    assert diff(_file("a = 1\n")) == ""


def test_a_file_name_cannot_write_diff_headers() -> None:
    assert diff(_file("x.view(1)\n", filename="a\n+++ b.py")).startswith("--- a\\n+++ b.py\n+++ a\\n+++ b.py\n")
