"""Comments that silence: which ones count, for which rows, and which were in vain."""

from __future__ import annotations

import pytest

from torchlint.finding import Edit
from torchlint.source.file import SourceFile, source_from_text
from torchlint.source.suppressions import Suppressions

KNOWN = ("TL101", "TL103", "TL208", "XY900")


def suppressed(text: str, row: int, code: str = "TL101") -> bool:
    return Suppressions(source_from_text(text)).suppresses(row, code)


def apply(source: SourceFile, edits: list[Edit]) -> str:
    text = source.text
    for edit in reversed(edits):
        text = text[: source.offset(edit.start)] + edit.content + text[source.offset(edit.end) :]
    return text


@pytest.mark.parametrize(
    ("comment", "holds"),
    [
        ("# noqa", True),
        ("#noqa", True),
        ("# NOQA", True),
        ("# noqa: TL101", True),
        ("# noqa:TL101", True),
        ("# noqa : tl101", True),
        ("# noqa: E501, TL101", True),
        ("# noqa: E501 TL101", True),
        ("# noqa: TL1", True),
        ("# type: ignore # noqa: TL101", True),
        ("# noqa: TL101 because it is so", True),
        ("# noqa: TL103", False),
        ("# noqa: E501", False),
        ("# noqaTL101", False),
        ("# no qa", False),
        ("# TL101", False),
    ],
)
def test_a_comment_silences_its_line(comment: str, holds: bool) -> None:
    assert suppressed(f"x = 1  {comment}\ny = 2\n", 1) is holds
    assert not suppressed(f"x = 1  {comment}\ny = 2\n", 2)


def test_only_real_comments_count() -> None:
    assert not suppressed("x = '# noqa'\n", 1)
    assert not suppressed('x = """\n# noqa\n"""\n', 2)
    assert not suppressed('x = f"""\n{y}  # noqa\n"""\n', 2)
    assert not suppressed("# torchlint: noqa\nx = 1\n", 2)


@pytest.mark.parametrize("row", [1, 2, 4])
def test_at_the_end_of_a_statement_it_silences_all_its_rows(row: int) -> None:
    assert suppressed("layers = [\n    a,\n    b,\n]  # noqa: TL101\n", row)
    assert not suppressed("layers = [\n    a,\n    b,\n]\n# noqa: TL101\n", row)


def test_within_a_statement_it_silences_only_its_own_row() -> None:
    text = "layers = [\n    a,  # noqa: TL101\n    b,\n]\n"
    assert [suppressed(text, row) for row in (1, 2, 3, 4)] == [False, True, False, False]


def test_the_head_of_a_block_is_a_statement_of_its_own() -> None:
    text = "class A(\n    B,\n):  # noqa: TL101\n    x = 1\n    y = 2\n"
    assert [suppressed(text, row) for row in (1, 2, 3, 4, 5)] == [True, True, True, False, False]


@pytest.mark.parametrize(
    ("text", "row", "noqa_row"),
    [
        ("x = 1\ny = 2\n", 2, 2),
        ("x = 1 + \\\n    2\n", 1, 2),
        ('f("""a\nb\n""", 1)\n', 1, 3),
        ('f(f"""a\n{b}\n""", 1)\n', 2, 3),
        ('f(\n  """doc""", 1)\n', 2, 2),
        ("x = [\n  1,\n]\n", 1, 1),
    ],
)
def test_where_a_line_cannot_end_in_a_comment_the_next_possible_one_counts(text: str, row: int, noqa_row: int) -> None:
    assert Suppressions(source_from_text(text)).noqa_row(row) == noqa_row
    lines = text.split("\n")
    lines[noqa_row - 1] += "  # noqa: TL101"
    assert suppressed("\n".join(lines), row)


@pytest.mark.parametrize(
    ("text", "skipped"),
    [
        ("# torchlint: skip-file\nx = 1\n", True),
        ("x = 1\n#torchlint:skip-file - generated\n", True),
        ("# flake8: noqa\nx = (\n", True),
        ("# FLAKE8: NOQA\n", True),
        ("x = 1  # flake8: noqa\n", False),
        ("# flake8: noqa: TL101\n", False),
        ('"""# torchlint: skip-file"""\n', False),
        ("s = '''\n# flake8: noqa\n'''\n", False),
    ],
)
def test_whole_files_can_be_left_alone(text: str, skipped: bool) -> None:
    assert Suppressions(source_from_text(text)).skips_file is skipped


def test_a_file_can_silence_single_codes() -> None:
    text = "x = 1\n# flake8: noqa: TL101, E501\ny = 2\n"
    assert suppressed(text, 1) and suppressed(text, 3)
    assert not suppressed(text, 1, "TL103")


def unused(text: str, *used: tuple[int, str], active: tuple[str, ...] = KNOWN) -> tuple[list[list[str]], str]:
    """The codes in vain by directive, and the text without them."""
    source = source_from_text(text)
    suppressions = Suppressions(source)
    for row, code in used:
        assert suppressions.suppresses(row, code)
    found = list(suppressions.unused(active, KNOWN))
    edits = sorted((suppressions.removal(directive, codes) for directive, codes in found), key=lambda e: e.start)
    return [codes for _, codes in found], apply(source, edits)


@pytest.mark.parametrize(
    ("text", "codes", "mended"),
    [
        ("x = 1  # noqa: TL101\n", [["TL101"]], "x = 1\n"),
        ("x = 1  # noqa: TL101, E501\n", [["TL101"]], "x = 1  # noqa: E501\n"),
        ("x = 1  # noqa: E501,TL101 why\n", [["TL101"]], "x = 1  # noqa: E501 why\n"),
        ("x = 1  # noqa: TL101 why\n", [["TL101"]], "x = 1  # why\n"),
        ("x = 1  # noqa: TL101  # type: ignore\n", [["TL101"]], "x = 1  # type: ignore\n"),
        ("x = 1  # type: ignore  # noqa: TL101\n", [["TL101"]], "x = 1  # type: ignore\n"),
        ("# noqa: TL101\nx = 1\n", [["TL101"]], "x = 1\n"),
        ("x = 1\n# noqa: TL101", [["TL101"]], "x = 1\n"),
        ("x = 1  # noqa: TL777\n", [["TL777"]], "x = 1\n"),
        ("x = 1  # noqa: TL1\n", [["TL1"]], "x = 1\n"),
        ("x = 1  # noqa: XY900\n", [["XY900"]], "x = 1\n"),
        ("# flake8: noqa: TL101\nx = 1\n", [["TL101"]], "x = 1\n"),
        ("x = 1  # noqa\n", [], None),
        ("x = 1  # noqa: E501, W291\n", [], None),
        ("x = 1  # noqa: TL002, TL101\n", [], None),
        ("x = '# noqa: TL101'\n", [], None),
    ],
)
def test_comments_in_vain_are_found_and_removed(text: str, codes: list[list[str]], mended: str | None) -> None:
    assert unused(text) == (codes, text if mended is None else mended)


def test_a_code_that_silenced_something_stays() -> None:
    text = "x = 1  # noqa: TL101, TL103\n"
    assert unused(text, (1, "TL101")) == ([["TL103"]], "x = 1  # noqa: TL101\n")
    assert unused(text, (1, "TL101"), (1, "TL103")) == ([], text)
    assert unused("x = 1  # noqa: TL1\n", (1, "TL103")) == ([], "x = 1  # noqa: TL1\n")


def test_rules_that_did_not_run_are_not_judged() -> None:
    text = "x = 1  # noqa: TL101, TL103, TL1\n"
    assert unused(text, active=("TL103",)) == ([["TL103"]], "x = 1  # noqa: TL101, TL1\n")


def test_noqa_is_added_at_line_ends_and_joins_what_is_there() -> None:
    source = source_from_text('x = 1\ny = 2  # noqa: E501 long\nz = f("""\n""")  # why  \nw = 4')
    findings = [(1, "TL208"), (1, "TL101"), (2, "TL101"), (3, "TL101"), (5, "TL103")]
    mended = apply(source, Suppressions(source).additions(findings))
    assert mended == (
        "x = 1  # noqa: TL101, TL208\n"
        "y = 2  # noqa: E501, TL101 long\n"
        'z = f("""\n""")  # why  # noqa: TL101\n'
        "w = 4  # noqa: TL103"
    )
    after = Suppressions(source_from_text(mended))
    assert all(after.suppresses(row, code) for row, code in findings)
