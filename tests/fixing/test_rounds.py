"""Fixes are kept when linting again proves them, and rolled back alone when it doesn't."""

from __future__ import annotations

import ast

from editing import Repair, finding, fix_of, lint_calls, to_reshape, views

from torchlint.finding import Edit, Finding, Position
from torchlint.fixing.rounds import MOST_LINTS, fix_source
from torchlint.source.edits import Edits, append, insert_text, replace, safe, surround
from torchlint.source.file import SourceFile, source_from_text


def fixed(text: str, lint: object = views, unsafe: bool = False) -> str:
    return fix_source(source_from_text(text), lint, unsafe).after.text  # type: ignore[arg-type]


def test_all_safe_fixes_are_applied_and_nothing_else_changes() -> None:
    text = "a = x.view(1)  # x.view\r\n\tb = 'x.view(1)'\r\nc=y . view(2)".replace("\t", "")
    result = fix_source(source_from_text(text), views, unsafe=False)
    assert result.after.text == text.replace("x.view(1)  #", "x.reshape(1)  #").replace("y . view", "y . reshape")
    assert [(entry.row, entry.change) for entry in result.fixed] == [
        (1, ".view(1) -> .reshape(1)"),
        (3, "view(2) -> reshape(2)"),
    ]
    assert not result.remaining
    assert len(result.found) == 2


def test_fixing_twice_changes_nothing_more() -> None:
    once = fixed("a = x.view(1).view(2)\n")
    assert once == "a = x.reshape(1).reshape(2)\n"
    assert fixed(once) == once


def test_a_file_without_findings_stays_the_same_object() -> None:
    source = source_from_text("a = 1\n")
    assert fix_source(source, views, unsafe=True).after is source


def test_unsafe_fixes_wait_until_they_are_asked_for() -> None:
    lint = lint_calls({"TL305": ("view", to_reshape), "TL704": ("load", _rename("read"))}, unsafe_codes=["TL704"])
    text = "a = x.view(1)\nb = y.load(1)\n"
    assert fixed(text, lint) == "a = x.reshape(1)\nb = y.load(1)\n"
    assert fixed(text, lint, unsafe=True) == "a = x.reshape(1)\nb = y.read(1)\n"


def test_rules_that_are_not_wanted_are_left_alone() -> None:
    result = fix_source(source_from_text("x.view(1)\n"), views, unsafe=False, wanted=lambda code: code != "TL305")
    assert not result.changed
    assert len(result.remaining) == 1


def _rename(name: str) -> Repair:
    def repair(source: SourceFile, call: ast.Call) -> Edits | None:
        assert isinstance(call.func, ast.Attribute)
        end = source.span(call.func)[1]
        return (Edit(Position(end.row, end.column - len(call.func.attr)), end, name),)

    return repair


def test_fixes_that_overlap_are_applied_in_rounds() -> None:
    def whole(source: SourceFile, call: ast.Call) -> Edits | None:
        assert isinstance(call.func, ast.Attribute)
        held, written = source.segment(call.func.value), source.segment(call)
        return replace(source, call, f"{held}.reshape{written[len(held) + len('.view') :]}")

    lint = lint_calls({"TL305": ("view", whole)})
    assert fixed("a = f(x.view(1)).view(f(y.view(2)))\n", lint) == "a = f(x.reshape(1)).reshape(f(y.reshape(2)))\n"


def test_different_insertions_at_one_place_are_applied_in_rounds() -> None:
    def lint(source: SourceFile) -> list[Finding]:
        call = next(found for found in ast.walk(source.tree) if isinstance(found, ast.Call))
        text = source.text
        wanted = {"TL801": "detach", "TL802": "cpu"}
        return [
            finding(source, call, code, safe(method, append(source, call, f".{method}()")))
            for code, method in wanted.items()
            if method not in text
        ]

    assert fixed("y = f()\n", lint) == "y = f().detach().cpu()\n"


def test_an_edit_that_two_fixes_share_is_made_once() -> None:
    def lint(source: SourceFile) -> list[Finding]:
        found = []
        for call in ast.walk(source.tree):
            if isinstance(call, ast.Call) and source.segment(call).startswith("copy("):
                edits = () if "import copy" in source.text else insert_text(Position(1, 1), "import copy\n")
                fix = safe("copy", replace(source, call.func, "copy.copy"), edits)
                found.append(finding(source, call, "TL708", fix))
        return found

    assert fixed("a = copy(1)\nb = copy(2)\n", lint) == "import copy\na = copy.copy(1)\nb = copy.copy(2)\n"


def _broken(source: SourceFile, call: ast.Call) -> Edits | None:
    return insert_text(source.span(call)[1], ")")


def _futile(source: SourceFile, call: ast.Call) -> Edits | None:
    return surround(source, call, "(", ")")


def _harmful(source: SourceFile, call: ast.Call) -> Edits | None:
    return replace(source, call, "x.other(1)")


def _idle(source: SourceFile, call: ast.Call) -> Edits | None:
    return replace(source, call, source.segment(call))


def test_a_bad_fix_is_rolled_back_alone_and_its_reason_told() -> None:
    bad = {"TL901": ("a", _broken), "TL902": ("b", _futile), "TL903": ("c", _harmful), "TL904": ("d", _idle)}
    lint = lint_calls({**bad, "TL305": ("view", to_reshape), "TL905": ("other", _broken)})
    text = "x.view(1)\nx.a(1)\nx.view(2); x.b(1)\nx.view(3)\nx.c(1)\nx.view(4)\nx.d(1)\n"
    result = fix_source(source_from_text(text), lint, unsafe=False)
    assert result.after.text == text.replace("view", "reshape")
    assert {failed.finding.code: (failed.row, failed.reason) for failed in result.failed} == {
        "TL901": (2, "the result is no valid Python"),
        "TL902": (3, "the fault is still there"),
        "TL903": (5, "it brings TL905"),
        "TL904": (7, "it changes nothing"),
    }
    assert sorted(found.code for found in result.remaining) == ["TL901", "TL902", "TL903", "TL904"]
    assert len(result.fixed) == 4


def test_a_fix_that_moves_its_fault_elsewhere_is_rolled_back() -> None:
    def lint(source: SourceFile) -> list[Finding]:
        call = next(found for found in ast.walk(source.tree) if isinstance(found, ast.Call))
        return [finding(source, call, "TL305", safe("down", insert_text(Position(1, 1), "\n")))]

    result = fix_source(source_from_text("x.view(1)\n"), lint, unsafe=False)
    assert not result.changed
    assert result.failed[0].reason == "the fault is still there"


def test_code_that_parses_but_does_not_compile_is_rolled_back() -> None:
    def lint(source: SourceFile) -> list[Finding]:
        calls = [found for found in ast.walk(source.tree) if isinstance(found, ast.Call)]
        return (
            [finding(source, calls[0], "TL305", safe("return", replace(source, calls[0], "(yield)")))] if calls else []
        )

    result = fix_source(source_from_text("class A:\n    x.view(1)\n"), lint, unsafe=False)
    assert not result.changed
    assert result.failed[0].reason == "the result is no valid Python"
    assert fixed("def f():\n    x.view(1)\n", lint) == "def f():\n    (yield)\n"


def test_rows_are_told_as_they_were_before_any_fix() -> None:
    def lint(source: SourceFile) -> list[Finding]:
        found = []
        for call in ast.walk(source.tree):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "view":
                start, end = source.span(call)
                edits = (Edit(start, start, "y = 1\n"), Edit(Position(end.row, end.column - 7), end, "reshape(1)"))
                # Overlapping on purpose: only one of them can be applied a round.
                whole = Edit(Position(1, 1), Position(1, 1), f"# {call.lineno}\n")
                found.append(finding(source, call, "TL305", fix_of(whole, *edits)))
        return found

    result = fix_source(source_from_text("x.view(1)\nx.view(1)\nx.view(1)\n"), lint, unsafe=False)
    assert result.after.text.count("reshape") == 3
    assert [entry.row for entry in result.fixed] == [1, 2, 3]


def test_many_failing_fixes_end_in_bounded_time() -> None:
    calls = 0
    futile = lint_calls({"TL902": ("b", _futile)})

    def lint(source: SourceFile) -> list[Finding]:
        nonlocal calls
        calls += 1
        return futile(source)

    result = fix_source(source_from_text("x.b(1)\n" * 500), lint, unsafe=False)
    assert not result.changed
    assert calls == MOST_LINTS


def test_a_rule_that_asks_for_ever_more_comes_to_an_end() -> None:
    def lint(source: SourceFile) -> list[Finding]:
        found = finding(source, source.tree.body[0], "TL305", fix_of(Edit(Position(1, 1), Position(1, 1), "# more\n")))
        return [found] * 3 if source.text.startswith("x") else [found] * 2

    assert fixed("x = 1\n", lint) in ("x = 1\n", "# more\nx = 1\n")


def test_what_a_fix_brings_to_light_is_fixed_along_with_it() -> None:
    rules = {"TL402": ("a", _rename("b")), "TL403": ("b", _rename("c")), "TL404": ("c", _rename("d"))}
    result = fix_source(source_from_text("x.a(1)\n"), lint_calls(rules), unsafe=False)
    assert result.after.text == "x.d(1)\n"
    assert [(entry.finding.code, entry.row, entry.change) for entry in result.fixed] == [
        ("TL402", 1, ".a(1) -> .b(1)"),
        ("TL403", 1, ".b(1) -> .c(1)"),
        ("TL404", 1, ".c(1) -> .d(1)"),
    ]


def test_nothing_is_kept_of_a_fix_whose_consequence_needs_an_unsafe_one() -> None:
    lint = lint_calls({"TL402": ("a", _rename("b")), "TL403": ("b", _rename("c"))}, unsafe_codes=["TL403"])
    assert fixed("x.a(1)\n", lint) == "x.a(1)\n"
    assert fixed("x.a(1)\n", lint, unsafe=True) == "x.c(1)\n"


def test_fixes_that_bring_each_other_back_are_not_kept() -> None:
    lint = lint_calls({"TL402": ("a", _rename("b")), "TL403": ("b", _rename("a"))})
    result = fix_source(source_from_text("x.a(1)\n"), lint, unsafe=False)
    assert not result.changed
    assert result.failed[0].reason == "it brings TL403"
