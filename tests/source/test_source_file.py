"""Reading a file: encodings, line ends, and places in code points."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest

from torchlint.finding import Position
from torchlint.source.file import (
    SourceFile,
    UnreadableSource,
    names_torch,
    read_source,
    source_from_bytes,
    source_from_text,
)


def from_bytes(data: bytes) -> SourceFile:
    return source_from_bytes(data, "/p/a.py", "a.py")


def name_of(source: SourceFile, text: str) -> ast.AST:
    """The first node whose source is ``text``."""
    return next(node for node in ast.walk(source.tree) if hasattr(node, "lineno") and source.segment(node) == text)


@pytest.mark.parametrize(
    ("data", "encoding", "text"),
    [
        (b"s = '\xc3\xa9'\n", "utf-8", "s = 'é'\n"),
        (b"# -*- coding: latin-1 -*-\ns = '\xe9'\n", "latin-1", "# -*- coding: latin-1 -*-\ns = 'é'\n"),
        (b"#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\ns = '\x80'\n", "cp1252", None),
        (b"\n# coding: koi8-r\ns = '\xc1'\n", "koi8-r", "\n# coding: koi8-r\ns = 'а'\n"),
        (b"# coding: utf_8\ns = '\xc3\xa9'\n", "utf-8", "# coding: utf_8\ns = 'é'\n"),
        (b"x = 1\n# coding: latin-1\ns = '\xc3\xa9'\n", "utf-8", "x = 1\n# coding: latin-1\ns = 'é'\n"),
    ],
)
def test_a_declared_encoding_is_followed_as_python_follows_it(data: bytes, encoding: str, text: str | None) -> None:
    source = from_bytes(data)
    assert source.encoding == encoding
    assert source.text == (text if text is not None else data.decode(encoding))
    assert ast.dump(source.tree) == ast.dump(ast.parse(data))


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    source = from_bytes(b"\xef\xbb\xbfimport torch\n")
    assert (source.text, source.bom, source.encoding) == ("import torch\n", True, "utf-8")
    assert source.span(source.tree.body[0])[0] == Position(1, 1)
    assert source_from_text("\ufeffx = 1").bom


@pytest.mark.parametrize(
    ("data", "row", "reason"),
    [
        (b"import torch\r\nx = 1\rs = '\xe9'\n", 3, "0xe9 is no utf-8 text"),
        ("import torch\n".encode("utf-16"), 1, "UTF-16"),
        ("import torch\n".encode("utf-32"), 1, "UTF-32"),
        (b"#!python\n# coding: klingon\n", 2, "declared encoding klingon"),
        (b"# coding: rot13\n", 1, "declared encoding rot13"),
        (b"\xef\xbb\xbf# coding: latin-1\n", 1, "byte order mark but declares the encoding latin-1"),
        (b"# coding: ascii\n\ntorch = '\xc3\xa9'\n", 3, "0xc3 is no ascii text"),
    ],
)
def test_bytes_that_are_no_text_are_refused_with_the_line(data: bytes, row: int, reason: str) -> None:
    with pytest.raises(UnreadableSource) as raised:
        from_bytes(data)
    assert raised.value.row == row
    assert reason in raised.value.reason


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_rows_are_those_of_the_parser_whatever_ends_a_line(newline: str) -> None:
    text = newline.join(["# \x0c form feed", "\x0cx = 1", 's = """a\u2028b\x1c', 'c"""', "y = \\", "  2", ""])
    source = source_from_text(text)
    assert source.newline == newline
    assert len(source.lines) == 7
    for statement in source.tree.body:
        start, end = source.span(statement)
        assert source.position_at(source.offset(start)) == start
        assert source.segment(statement) == text[source.offset(start) : source.offset(end)]
    assert [source.segment(statement)[0] for statement in source.tree.body] == ["x", "s", "y"]


def test_mixed_line_ends_count_one_row_each() -> None:
    source = source_from_text("a = 1\r\nb = 2\rc = 3\nd = 4")
    assert [statement.lineno for statement in source.tree.body] == [1, 2, 3, 4]
    assert source.lines == ["a = 1", "b = 2", "c = 3", "d = 4"]
    assert source.newline == "\r\n"
    assert source.offset(Position(4, 1)) == source.text.index("d")


def test_columns_count_code_points_not_bytes() -> None:
    source = source_from_text("größe = '😀' + naïve.weg\nascii = 1\n")
    node = name_of(source, "naïve.weg")
    start, end = source.span(node)
    assert (start, end) == (Position(1, 15), Position(1, 24))
    assert source.lines[0][start.column - 1 : end.column - 1] == "naïve.weg"
    assert source.position(2, 3) == Position(2, 4)


def test_places_outside_the_text_are_held_within_it() -> None:
    source = source_from_text("é = 1\n")
    assert source.position(1, 400) == Position(1, 6)
    assert source.position(9, 3).row == 9
    assert source.offset(Position(1, 99)) == 5
    assert source.offset(Position(99, 1)) == len(source.text)


def test_nothing_is_printed_for_what_the_parser_warns_of(capfd: pytest.CaptureFixture[str]) -> None:
    source_from_text("p = '\\d'\nx = 1if y else 2\n").tree  # noqa: B018
    assert capfd.readouterr() == ("", "")


def test_files_that_cannot_use_torch_are_told_by_their_bytes() -> None:
    assert names_torch(b"from pytorch_lightning import Trainer")
    assert names_torch(b"import lightning as L")
    assert not names_torch(b"import numpy as np\n")
    assert names_torch("import torch".encode("utf-16"))
    assert not names_torch("import numpy".encode("utf-16"))


def test_a_pipe_is_refused_instead_of_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "a.py"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="not a regular file"):
        read_source(str(pipe))


def test_a_large_file_is_read_whole(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(b"x = 1\n" * 400_000)
    assert len(read_source(str(file)).text) == 2_400_000
