"""Edits change what they say and nothing else, however the program is laid out."""

from __future__ import annotations

import ast
import sys
from textwrap import dedent

import pytest
from editing import changed, expression, node, statement

from torchlint.finding import Edit, Position
from torchlint.source.edits import (
    add_argument,
    add_decorator,
    add_element,
    append,
    delete_definition,
    delete_statement,
    insert_first,
    insert_last,
    insert_statement_after,
    insert_statement_before,
    insert_text,
    move_statement,
    move_statements,
    remove_argument,
    rename_attribute,
    replace,
    replace_callee,
    replace_statement,
    safe,
    set_argument,
    surround,
    unsafe,
    wrap_statements,
)
from torchlint.source.file import source_from_text

# ---------------------------------------------------------------------------------------------------- expressions


def test_an_expression_is_replaced_and_its_line_kept() -> None:
    assert expression("y = f( x ,  1 )  # why\n", "x", replace, "x + 1") == "y = f( x + 1 ,  1 )  # why\n"


def test_columns_are_code_points_behind_wide_characters() -> None:
    assert expression("s = 'größe 😀'; y = x\n", "x", replace, "z") == "s = 'größe 😀'; y = z\n"


def test_a_callee_is_replaced_and_its_arguments_kept() -> None:
    text = "y = torch.range(\n    3,  # three\n)\n"
    assert expression(text, text[4:-1], replace_callee, "torch.arange") == text.replace("range", "arange")


@pytest.mark.parametrize("dots", ["x.view(1)", "x . view(1)", "(x\n    .view(1))", "(x.\n  view  # view\n  (1))"])
def test_only_the_attributes_name_changes(dots: str) -> None:
    source = source_from_text(f"y = {dots}\n")
    attribute = next(found for found in ast.walk(source.tree) if isinstance(found, ast.Attribute))
    renamed = changed(source, rename_attribute(source, attribute, "reshape"))
    assert renamed == source.text.replace("view", "reshape", 1)


def test_an_attribute_spelt_in_another_unicode_form_is_left_alone() -> None:
    source = source_from_text("y = x.ﬁt\n")  # Python reads the ligature as "fit"
    assert rename_attribute(source, node(source, "x.ﬁt", ast.Attribute), "fitted") is None


@pytest.mark.parametrize(
    ("text", "at", "expected"),
    [
        ("y = x\n", "x", "y = x.detach()\n"),
        ("y = f(x)[0]\n", "f(x)[0]", "y = f(x)[0].detach()\n"),
        ("y = a + b\n", "a + b", "y = (a + b).detach()\n"),
        ("y = (a + b)\n", "a + b", "y = (a + b).detach()\n"),
        ("y = (a + b)*2\n", "a + b", "y = (a + b).detach()*2\n"),
        ("y = f(a + b)\n", "a + b", "y = f((a + b).detach())\n"),
        ("return_(a + b)\n", "a + b", "return_((a + b).detach())\n"),
        ("x = t[0](a + b)\n", "a + b", "x = t[0]((a + b).detach())\n"),
        ("y = -x\n", "-x", "y = (-x).detach()\n"),
        ("y = 1\n", "1", "y = (1).detach()\n"),
        ("y = (a, b)\n", "(a, b)", "y = (a, b).detach()\n"),
        ("y = a, b\n", "a, b", "y = (a, b).detach()\n"),
        ("y = (a), (b)\n", "(a), (b)", "y = ((a), (b)).detach()\n"),
        ("y = [a]\n", "[a]", "y = [a].detach()\n"),
        ("y = f(i for i in x)\n", "(i for i in x)", "y = f((i for i in x).detach())\n"),
        ("y = (i for i in x)\n", "(i for i in x)", "y = (i for i in x).detach()\n"),
        ("y = lambda: x\n", "lambda: x", "y = (lambda: x).detach()\n"),
        ("y = 'a' 'b'\n", "'a' 'b'", "y = 'a' 'b'.detach()\n"),
        ("y = a if b else c\n", "a if b else c", "y = (a if b else c).detach()\n"),
    ],
)
def test_a_method_call_behind_an_expression_gets_the_parentheses_it_needs(text: str, at: str, expected: str) -> None:
    assert expression(text, at, append, ".detach()") == expected


@pytest.mark.parametrize(
    ("text", "at", "expected"),
    [
        ("y = x\n", "x", "y = sqrt(x)\n"),
        ("y = f(x)\n", "x", "y = f(sqrt(x))\n"),
        ("y = f(i for i in x)\n", "(i for i in x)", "y = f(sqrt((i for i in x)))\n"),
        ("y = (i for i in x)\n", "(i for i in x)", "y = sqrt((i for i in x))\n"),
        ("y = a, b\n", "a, b", "y = sqrt((a, b))\n"),
        ("y = (a), (b)\n", "(a), (b)", "y = sqrt(((a), (b)))\n"),
        ("y = (a, b)\n", "(a, b)", "y = sqrt((a, b))\n"),
        ("y = (\n  (a), b)\n", "(\n  (a), b)", "y = sqrt((\n  (a), b))\n"),
        ("y = ()\n", "()", "y = sqrt(())\n"),
    ],
)
def test_an_expression_is_put_into_a_call(text: str, at: str, expected: str) -> None:
    assert expression(text, at, surround, "sqrt(", ")") == expected


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="Python 3.12 places nodes within f-strings rightly")
def test_no_edit_is_made_inside_an_f_string_where_python_misplaces_nodes() -> None:
    source = source_from_text("y = f'''\n{x.view(1)}'''\n")
    attribute = next(found for found in ast.walk(source.tree) if isinstance(found, ast.Attribute))
    assert rename_attribute(source, attribute, "reshape") is None


@pytest.mark.skipif(sys.version_info < (3, 12), reason="before Python 3.12 nodes within f-strings are misplaced")
def test_an_edit_inside_an_f_string_stays_inside() -> None:
    assert expression("y = f'''\n{x.view(1)}'''\n", "x", replace, "z") == "y = f'''\n{z.view(1)}'''\n"


# ---------------------------------------------------------------------------------------------------- arguments


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f()\n", "f(dim=1)\n"),
        ("f( )\n", "f(dim=1 )\n"),
        ("f(  # none\n)\n", "f(dim=1  # none\n)\n"),
        ("f(a)\n", "f(a, dim=1)\n"),
        ("f(a,)\n", "f(a, dim=1)\n"),
        ("f((a), (b) )\n", "f((a), (b), dim=1 )\n"),
        ("(f)((a))\n", "(f)((a), dim=1)\n"),
        ("f(*a, **k)\n", "f(*a, **k, dim=1)\n"),
        ("f(a=(1))\n", "f(a=(1), dim=1)\n"),
        ("f(i for i in x)\n", "f((i for i in x), dim=1)\n"),
        ("f((i for i in x))\n", "f((i for i in x), dim=1)\n"),
        ("f(\n    a  # first\n)\n", "f(\n    a, dim=1  # first\n)\n"),
        ("f(\n    a,\n    b,  # last, (\n)\n", "f(\n    a,\n    b,  # last, (\n    dim=1,\n)\n"),
        ("f(\n\ta,\n)\n", "f(\n\ta,\n\tdim=1,\n)\n"),
        ("f(a,\n  b)\n", "f(a,\n  b, dim=1)\n"),
        ("f(')', \"#\")\n", "f(')', \"#\", dim=1)\n"),
        ("f(a, \\\n  b)\n", "f(a, \\\n  b, dim=1)\n"),
    ],
)
def test_a_keyword_argument_is_added_behind_all_others(text: str, expected: str) -> None:
    assert expression(text, text[:-1], add_argument, "dim=1") == expected


def test_a_line_added_to_a_call_ends_as_the_files_lines_do() -> None:
    assert expression("f(\r\n    a,\r\n)\r\n", "f(\r\n    a,\r\n)", add_argument, "d=1") == (
        "f(\r\n    a,\r\n    d=1,\r\n)\r\n"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f()\n", "f(q)\n"),
        ("f(a)\n", "f(a, q)\n"),
        ("f(k=1)\n", "f(q, k=1)\n"),
        ("f(a, k=1)\n", "f(a, q, k=1)\n"),
        ("f((a), k=1)\n", "f((a), q, k=1)\n"),
        ("f(*a, **k)\n", "f(*a, q, **k)\n"),
        ("f(k=1, *a)\n", None),
    ],
)
def test_a_positional_argument_is_added_in_front_of_keywords(text: str, expected: str | None) -> None:
    assert expression(text, text[:-1], add_argument, "q") == expected


def test_a_keyword_is_set_whether_it_is_there_or_not() -> None:
    assert expression("f(1, bias = (True), c=2)\n", "f(1, bias = (True), c=2)", set_argument, "bias", "False") == (
        "f(1, bias = (False), c=2)\n"
    )
    assert expression("f(1)\n", "f(1)", set_argument, "bias", "False") == "f(1, bias=False)\n"


@pytest.mark.parametrize(
    ("text", "gone", "expected"),
    [
        ("f(a)\n", "a", "f()\n"),
        ("f(a, b)\n", "a", "f(b)\n"),
        ("f(a, b)\n", "b", "f(a)\n"),
        ("f(a, b,)\n", "b", "f(a,)\n"),
        ("f((a), (b))\n", "b", "f((a))\n"),
        ("f((a), (b))\n", "a", "f((b))\n"),
        ("f(a, k=1, *b)\n", "k=1", "f(a, *b)\n"),
        ("f(a, **k)\n", "**k", "f(a)\n"),
        ("f(\n    a,  # first\n    b,  # second\n)\n", "a", "f(\n    b,  # second\n)\n"),
        ("f(\n    a,  # first\n    b,  # second\n)\n", "b", "f(\n    a,  # first\n)\n"),
        (
            "f(\n    a,  # first\n    k=[\n      1,\n    ],\n    c=1\n)\n",
            "k=[\n      1,\n    ]",
            "f(\n    a,  # first\n    c=1\n)\n",
        ),
        ("f(i for i in x)\n", "(i for i in x)", "f()\n"),
    ],
)
def test_an_argument_is_taken_out_with_its_comma(text: str, gone: str, expected: str) -> None:
    source = source_from_text(text)
    call = node(source, text[:-1], ast.Call)
    argument = next(found for found in [*call.args, *call.keywords] if source.segment(found) == gone)
    assert changed(source, remove_argument(source, call, argument)) == expected


@pytest.mark.parametrize(
    ("text", "at", "expected"),
    [
        ("return_ = x\n", "x", "return_ = x, None\n"),
        ("y = (x)\n", "x", "y = (x, None)\n"),
        ("y = (\n    x  # x\n)\n", "x", "y = (\n    x, None  # x\n)\n"),
        ("y = a, b\n", "a, b", "y = a, b, None\n"),
        ("y = a,\n", "a,", "y = a, None\n"),
        ("y = (a), (b)\n", "(a), (b)", "y = (a), (b), None\n"),
        ("y = (a, b)\n", "(a, b)", "y = (a, b, None)\n"),
        ("y = ((a), b)\n", "((a), b)", "y = ((a), b, None)\n"),
        ("y = (a,)\n", "(a,)", "y = (a, None)\n"),
        ("y = ()\n", "()", "y = (None,)\n"),
        ("y = []\n", "[]", "y = [None]\n"),
        ("y = {a}\n", "{a}", "y = {a, None}\n"),
        ("y = (\n  a,\n  (b),  # b\n)\n", "(\n  a,\n  (b),  # b\n)", "y = (\n  a,\n  (b),  # b\n  None,\n)\n"),
        ("y = [\n  a\n  # a\n]\n", "[\n  a\n  # a\n]", "y = [\n  a, None\n  # a\n]\n"),
    ],
)
def test_an_element_is_added_to_what_is_a_tuple_or_becomes_one(text: str, at: str, expected: str) -> None:
    assert expression(text, at, add_element, "None") == expected


# ---------------------------------------------------------------------------------------------------- statements

BLOCKS = {
    "own line": ("a\nb\nc\n", "a\n{}\nb\nc\n", "a\nb\n{}\nc\n"),
    "trailing comment": ("b  # b\n", "{}\nb  # b\n", "b  # b\n{}\n"),
    "no line end": ("b", "{}\nb", "b\n{}"),
    "tabs": ("if x:\n\tb\n", "if x:\n\t{}\n\tb\n", "if x:\n\tb\n\t{}\n"),
    "windows": ("if x:\r\n  b\r\nc\r\n", "if x:\r\n  {}\r\n  b\r\nc\r\n", "if x:\r\n  b\r\n  {}\r\nc\r\n"),
    "old mac": ("if x:\r  b\rc\r", "if x:\r  {}\r  b\rc\r", "if x:\r  b\r  {}\rc\r"),
    "one-line suite": ("if x: b\n", "if x: {}; b\n", "if x: b; {}\n"),
    "else on one line": ("if x: a\nelse: b  # b\n", "if x: a\nelse: {}; b  # b\n", "if x: a\nelse: b; {}  # b\n"),
    "semicolons": ("a; b; c\n", "a; {}; b; c\n", "a; b; {}; c\n"),
    "last semicolon": ("a; b;\n", "a; {}; b;\n", "a; b; {};\n"),
    "first of a line": ("b; c\n", "{}\nb; c\n", "b; {}; c\n"),
    "except": ("try: a\nexcept E: b\n", "try: a\nexcept E: {}; b\n", "try: a\nexcept E: b; {}\n"),
    "match": (
        "match x:\n  case 1:\n    b\n",
        "match x:\n  case 1:\n    {}\n    b\n",
        "match x:\n  case 1:\n    b\n    {}\n",
    ),
}


@pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS)
def test_a_statement_is_put_beside_another(block: tuple[str, str, str]) -> None:
    text, before, after = block
    assert statement(text, "b", insert_statement_before, "new()") == before.format("new()")
    assert statement(text, "b", insert_statement_after, "new()") == after.format("new()")


def test_a_block_inserted_into_a_one_line_suite_opens_it() -> None:
    text = "if x: a; b; c  # c\n"
    assert statement(text, "b", insert_statement_before, "if y:\n    new()") == (
        "if x:\n    a\n    if y:\n        new()\n    b; c  # c\n"
    )
    assert statement(text, "b", insert_statement_after, "if y:\n    new()") == (
        "if x:\n    a; b\n    if y:\n        new()\n    c  # c\n"
    )


def test_inserted_lines_use_the_files_own_indentation() -> None:
    text = "def f():\n\tif x:\n\t\tb\n"
    assert statement(text, "b", insert_statement_after, "if y:\n    new()\n    # done\nz") == (
        "def f():\n\tif x:\n\t\tb\n\t\tif y:\n\t\t\tnew()\n\t\t\t# done\n\t\tz\n"
    )


def test_behind_a_block_means_behind_its_deep_comments_and_in_front_of_shallow_ones() -> None:
    text = "def f():\n  for i in x:\n    b\n\n    # of the loop\n\n  # of f\n  c\n"
    loop = "for i in x:\n    b"
    assert statement(text, loop, insert_statement_after, "new()") == text.replace(
        "# of the loop\n", "# of the loop\n  new()\n"
    )


def test_a_statement_in_front_of_a_decorated_function_stands_above_its_decorators() -> None:
    text = "class A:\n    x = 1\n\n    @property\n    # why\n    @other(\n        1)\n    def f(self): pass\n"
    source = source_from_text(text)
    function = node(source, "def f(self): pass")
    assert changed(source, insert_statement_before(source, function, "y = 2")) == text.replace(
        "    @property", "    y = 2\n    @property"
    )


def test_no_statement_is_put_in_front_of_an_elif() -> None:
    source = source_from_text("if a: b\nelif c: d\n")
    assert insert_statement_before(source, node(source, "elif c: d", ast.If), "new()") is None
    assert delete_statement(source, node(source, "elif c: d", ast.If)) is None


def test_a_statement_on_a_continued_line_is_left_alone() -> None:
    source = source_from_text("if a: \\\n  b\n")
    assert insert_statement_before(source, node(source, "b", ast.stmt), "new()") is None


def test_a_node_of_another_file_is_left_alone() -> None:
    source, other = source_from_text("a\n"), source_from_text("a\nb\n")
    assert delete_statement(source, other.tree.body[1]) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def f():\n    '''doc'''\n    a\n", "def f():\n    '''doc'''\n    new()\n    a\n"),
        (
            "def f():\n    '''doc\n    more'''  # x\n\n    a\n",
            "def f():\n    '''doc\n    more'''  # x\n    new()\n\n    a\n",
        ),
        ("def f():\n    # first\n    a\n", "def f():\n    # first\n    new()\n    a\n"),
        ("def f(): a\n", "def f(): new(); a\n"),
        ("def f(): 'doc'\n", "def f(): 'doc'; new()\n"),
        ("for i in x:\n    'no docstring'\n", "for i in x:\n    new()\n    'no docstring'\n"),
        ("while x: a\nelse: b\n", "while x: new(); a\nelse: b\n"),
    ],
)
def test_a_body_starts_behind_its_docstring(text: str, expected: str) -> None:
    source = source_from_text(text)
    assert changed(source, insert_first(source, source.tree.body[0], "new()")) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("for i in x:\n    a  # a\nelse:\n    b\n", "for i in x:\n    a  # a\n    new()\nelse:\n    b\n"),
        ("for i in x: a\nb\n", "for i in x: a; new()\nb\n"),
        ("for i in x:\n  if a:\n    b\n    # b\n\n\nc\n", "for i in x:\n  if a:\n    b\n    # b\n  new()\n\n\nc\n"),
        ("for i in x:\n  if a: b\n", "for i in x:\n  if a: b\n  new()\n"),
    ],
)
def test_a_body_ends_before_what_follows_it(text: str, expected: str) -> None:
    source = source_from_text(text)
    assert changed(source, insert_last(source, source.tree.body[0], "new()")) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\nb  # b\nc\n", "a\nc\n"),
        ("a\n\nb\n\n\nc\n", "a\n\n\nc\n"),
        ("a\n\n\nb\n\nc\n", "a\n\n\nc\n"),
        ("b\n\nc\n", "c\n"),
        ("a\nb\n\nc\n", "a\n\nc\n"),
        ("a\n\nb\nc\n", "a\n\nc\n"),
        ("a\n\nb\n\n", "a\n\n\n"),
        ("if x:\n  b\n\n  c\n", "if x:\n  c\n"),
        ("a\nb", "a\n"),
        ("b\n", ""),
        ("a; b; c\n", "a; c\n"),
        ("a; b\n", "a\n"),
        ("a; b;\n", "a;\n"),
        ("b; c  # c\n", "c  # c\n"),
        ("if x: b\n", "if x: pass\n"),
        ("if x:\n    # why\n    b  # b\n", "if x:\n    # why\n    pass  # b\n"),
        ("if x: b; c\n", "if x: c\n"),
        ("if x:\n\ta\n\tb\nelse:\n\tc\n", "if x:\n\ta\nelse:\n\tc\n"),
        ("a\r\nb\r\nc\r\n", "a\r\nc\r\n"),
    ],
)
def test_a_statement_is_deleted_with_its_line(text: str, expected: str) -> None:
    assert statement(text, "b", delete_statement) == expected


def test_a_statement_of_several_lines_is_deleted_whole() -> None:
    text = "a\n@decorated\ndef f():\n    '''doc\nflush left'''\n    b\nc\n"
    source = source_from_text(text)
    assert changed(source, delete_statement(source, source.tree.body[1])) == "a\nc\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("class C:\n    def f(self):\n        b\n\n    def g(self): c\n", "class C:\n    def g(self): c\n"),
        (
            "class C:\n\tdef f(self):  # one\n# two\n\t\tb  # three\n\n\tdef g(self): c\n",
            "class C:\n\t# one\n\t# two\n\t# three\n\n\tdef g(self): c\n",
        ),
        ("class C:\r\n  def f(self): b  # why\r\n  c\r\n", "class C:\r\n  # why\r\n  c\r\n"),
        ("class C:\n    def f(self): b  # why\n", "class C:\n    pass  # why\n"),
    ],
)
def test_a_function_is_deleted_and_its_comments_stay(text: str, expected: str) -> None:
    source = source_from_text(text)
    function = next(n for n in ast.walk(source.tree) if isinstance(n, ast.FunctionDef))
    assert changed(source, delete_definition(source, function)) == expected


def test_a_statement_is_replaced_in_place() -> None:
    assert statement("if x:\n\tb  # b\n", "b", replace_statement, "new()") == "if x:\n\tnew()  # b\n"
    assert statement("if x:\n\tb  # b\n", "b", replace_statement, "if y:\n    new()") == (
        "if x:\n\tif y:\n\t\tnew()  # b\n"
    )
    assert statement("if x: b\n", "b", replace_statement, "new()\nold()") == "if x: new(); old()\n"
    assert statement("if x: b\n", "b", replace_statement, "if y:\n    new()") is None


@pytest.mark.parametrize(
    ("text", "where", "other", "expected"),
    [
        ("a\nb  # b\nc\n", "before", "a", "b  # b\na\nc\n"),
        ("a\nb  # b\nc\n", "after", "c", "a\nc\nb  # b\n"),
        ("b\na", "after", "a", "a\nb"),
        ("for i in x:\n    b\n    a\nc\n", "after", "c", "for i in x:\n    a\nc\nb\n"),
        ("for i in x:\n\tb\n\ta\nc\n", "before", "c", "for i in x:\n\ta\nb\nc\n"),
        ("a; b\n", "before", "a", "b\na\n"),
        ("c\na; b\n", "before", "c", "b\nc\na\n"),
        ("if x: b\nc\n", "before", "c", "if x: pass\nb\nc\n"),
        ("b  # b\nif x: c\n", "before", "c", "if x:\n    b  # b\n    c\n"),
    ],
)
def test_a_statement_moves_with_its_comment(text: str, where: str, other: str, expected: str) -> None:
    source = source_from_text(text)
    moved = move_statement(source, node(source, "b", ast.stmt), where, node(source, other, ast.stmt))  # type: ignore[arg-type]
    assert changed(source, moved) == expected


def test_a_moved_block_is_indented_anew_but_not_inside_its_strings() -> None:
    text = "for i in x:\n    f('''a\n  b''',\n      c)\n    if y:\n        d\nz\n"
    source = source_from_text(text)
    call, branch = source.tree.body[0].body  # type: ignore[attr-defined]
    assert changed(source, move_statement(source, call, "before", source.tree.body[1])) == (
        "for i in x:\n    if y:\n        d\nf('''a\n  b''',\n  c)\nz\n"
    )
    assert changed(source, move_statement(source, branch, "after", source.tree.body[1])) == (
        "for i in x:\n    f('''a\n  b''',\n      c)\nz\nif y:\n    d\n"
    )


def test_the_last_statements_of_a_block_are_taken_out_of_it() -> None:
    text = "with a:\n\tb\n\tc(\n\t\t1)  # c\n\n\t# d\n\tif d:\n\t\te = '''\n\te'''\n\t\t# e\nf\n"
    source = source_from_text(text)
    block = source.tree.body[0]
    assert changed(source, move_statements(source, block.body[1:], "after", block)) == (  # type: ignore[attr-defined]
        "with a:\n\tb\nc(\n\t1)  # c\n\n# d\nif d:\n\te = '''\n\te'''\n\t# e\nf\n"
    )
    assert move_statements(source, block.body, "after", block) is None  # type: ignore[attr-defined]


def test_several_statements_move_in_their_order() -> None:
    source = source_from_text("a  # a\nb\nc\nd\n")
    a, b, _, d = source.tree.body
    assert changed(source, move_statements(source, [a, b], "after", d)) == "c\nd\na  # a\nb\n"


# ---------------------------------------------------------------------------------------------------- blocks

WITH = "with torch.no_grad():"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\nb  # b\nc\n", "a\nwith torch.no_grad():\n    b  # b\nc\n"),
        ("# why\nb", "# why\nwith torch.no_grad():\n    b"),
        ("if x:\n\tb\n", "if x:\n\twith torch.no_grad():\n\t\tb\n"),
        ("if x:\n  b\n", "if x:\n  with torch.no_grad():\n    b\n"),
        ("if x: b  # b\n", "if x:\n    with torch.no_grad():\n        b  # b\n"),
        ("a; b; c\n", "a\nwith torch.no_grad():\n    b\nc\n"),
        ("if x: a; b; c\n", "if x:\n    a\n    with torch.no_grad():\n        b\n    c\n"),
        ("a\r\nb\r\n", "a\r\nwith torch.no_grad():\r\n    b\r\n"),
        ("b;\nc\n", "with torch.no_grad():\n    b;\nc\n"),
    ],
)
def test_a_statement_is_put_under_a_header(text: str, expected: str) -> None:
    source = source_from_text(text)
    assert changed(source, wrap_statements(source, [node(source, "b", ast.stmt)], WITH)) == expected


def test_wrapped_statements_keep_comments_blank_lines_continuations_and_strings() -> None:
    text = dedent('''\
        for i in x:
            a
            s = """first
          second
            """ + f(
                1,
            )

            # between
        # flush left
            if y:
                b \\
                  + c
                # deep
            z
        ''')
    source = source_from_text(text)
    body = source.tree.body[0].body  # type: ignore[attr-defined]
    assert changed(source, wrap_statements(source, body[1:3], WITH)) == dedent('''\
        for i in x:
            a
            with torch.no_grad():
                s = """first
          second
            """ + f(
                    1,
                )

                # between
        # flush left
                if y:
                    b \\
                      + c
                    # deep
            z
        ''')


def test_rows_within_implicitly_joined_strings_are_indented_where_they_are_no_text() -> None:
    text = "if x:\n  f('a'\n    'b' f'''{y}\n{z}'''\n    'c')\n"
    source = source_from_text(text)
    assert changed(source, wrap_statements(source, source.tree.body[0].body, WITH)) == (  # type: ignore[attr-defined]
        "if x:\n  with torch.no_grad():\n    f('a'\n      'b' f'''{y}\n{z}'''\n      'c')\n"
    )


def test_statements_of_different_suites_are_not_wrapped() -> None:
    source = source_from_text("if x:\n  a\n  b\n  c\nd\n")
    a, _, c = source.tree.body[0].body  # type: ignore[attr-defined]
    assert wrap_statements(source, [a, c], WITH) is None
    assert wrap_statements(source, [c, source.tree.body[1]], WITH) is None


def test_a_decorator_stands_above_the_def_or_above_all_others() -> None:
    text = "class A:\n\t@staticmethod\n\tasync def f(x):\n\t\tpass\n"
    source = source_from_text(text)
    function = source.tree.body[0].body[0]  # type: ignore[attr-defined]
    assert changed(source, add_decorator(source, function, "torch.no_grad()")) == (
        "class A:\n\t@staticmethod\n\t@torch.no_grad()\n\tasync def f(x):\n\t\tpass\n"
    )
    assert changed(source, add_decorator(source, function, "@once", outermost=True)) == (
        "class A:\n\t@once\n\t@staticmethod\n\tasync def f(x):\n\t\tpass\n"
    )


# ---------------------------------------------------------------------------------------------------- whole fixes


def test_a_fix_with_an_impossible_part_is_no_fix() -> None:
    edits = insert_text(Position(1, 1), "x")
    assert safe("both", edits, None) is None
    assert unsafe("nothing", ()) is None


def test_parts_that_overlap_are_no_fix_and_equal_parts_count_once() -> None:
    one = (Edit(Position(1, 1), Position(1, 4), "a"),)
    other = (Edit(Position(1, 3), Position(1, 5), "b"),)
    assert safe("overlap", one, other) is None
    fix = safe("twice", one, one)
    assert fix is not None
    assert fix.edits == one
