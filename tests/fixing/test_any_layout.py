"""However a fixture is laid out, its fixes come to the same program, and nothing but the fix is touched."""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from layouts import ENDS, NESTED, SAME_TREE, WITHIN_BRACKETS, Layout
from test_fixture_fixes import FIXED, FIXTURES, fix

PROGRAMS = [
    fixed.with_suffix("")
    for fixed in FIXED
    # What a suppression says depends on its line, which is what these layouts change.
    if not any(word in (FIXTURES / fixed).read_text() for word in ("noqa", "torchlint:", "__future__", "\t"))
]


def tree(text: str) -> str:
    return ast.dump(ast.parse(text))


def comments(text: str) -> Counter[str]:
    """The comments that a fix must keep: one within brackets may go with what is written anew there."""
    tokens = tokenize.generate_tokens(io.StringIO(text.replace("\r\n", "\n").replace("\r", "\n")).readline)
    written = (token.string for token in tokens if token.type == tokenize.COMMENT)
    return Counter(comment for comment in written if comment != WITHIN_BRACKETS)


def written(layouts: list[Layout], text: str, rng: Random) -> str:
    """The text in some layouts, one after the other; each is tried and left out where it isn't the same program."""
    before = tree(text)
    for layout in layouts:
        candidate = layout(text, rng)
        try:
            same = tree(candidate) == before
        except SyntaxError:
            same = False
        text = candidate if same else text
    return text


@pytest.mark.parametrize("ends", ENDS)
@settings(
    max_examples=40, deadline=None, derandomize=True, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
)
@given(
    program=st.sampled_from(PROGRAMS),
    names=st.lists(st.sampled_from(sorted(SAME_TREE)), min_size=1, max_size=4, unique=True),
    rng=st.randoms(use_true_random=False),
)
def test_a_layout_does_not_change_what_a_fix_comes_to(ends: str, program, names: list[str], rng: Random) -> None:  # type: ignore[no-untyped-def]
    plain = (FIXTURES / program).read_text()
    expected = (FIXTURES / f"{program}.fixed").read_text()
    text = written([*(SAME_TREE[name] for name in names), ENDS[ends]], plain, rng)
    result = fix(program, text.encode())
    assert result is not None
    assert [(failed.row, failed.reason) for failed in result.failed] == []
    after = result.after.text
    assert tree(after) == tree(expected)
    lost = comments(text) - comments(after)
    assert sum(lost.values()) <= max(0, plain.count("\n") - expected.count("\n"))
    if ends == "windows":
        assert after.count("\n") == after.count("\r\n") == after.count("\r")
    if ends == "old mac":
        assert "\n" not in after


@pytest.mark.parametrize("nest", NESTED)
@settings(
    max_examples=25, deadline=None, derandomize=True, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
)
@given(
    program=st.sampled_from(PROGRAMS),
    names=st.lists(st.sampled_from(sorted(SAME_TREE)), max_size=2, unique=True),
    rng=st.randoms(use_true_random=False),
)
def test_a_nested_program_is_fixed_without_harm(nest: str, program, names: list[str], rng: Random) -> None:  # type: ignore[no-untyped-def]
    text = NESTED[nest]((FIXTURES / program).read_text(), rng)
    text = written([SAME_TREE[name] for name in names], text, rng)
    result = fix(program, text.encode(), all_rules=True)
    assert result is not None
    assert [(failed.row, failed.reason) for failed in result.failed] == []
    ast.parse(result.after.text)
    again = fix(program, result.after.text.encode(), all_rules=True)
    assert again is not None
    assert not again.changed


@pytest.mark.parametrize("name", SAME_TREE)
def test_every_layout_changes_programs_and_keeps_their_meaning(name: str) -> None:
    texts = [(FIXTURES / program).read_text() for program in PROGRAMS]
    written_anew = [(text, SAME_TREE[name](text, Random(seed))) for seed, text in enumerate(texts)]
    assert [text for text, other in written_anew if tree(text) != tree(other)] == []
    assert sum(text != other for text, other in written_anew) > len(texts) / 2
