"""``torchlint trace`` shows a file's lines with what is known at each, the modes in force and what happens there."""

from __future__ import annotations

import shutil
import textwrap
from pathlib import Path

import pytest

from torchlint.cli import main

TRACED = Path(__file__).parent / "traced"


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(TRACED / "train.py", tmp_path)


@pytest.mark.usefixtures("program")
def test_every_followed_line_stands_with_its_modes_names_and_events(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "train.py"]) == 0
    assert capsys.readouterr().out == (TRACED / "train.txt").read_text(encoding="utf-8")


@pytest.mark.usefixtures("program")
def test_a_function_is_shown_alone_and_one_that_no_rule_looks_into_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "train.py:add"]) == 0
    shown = capsys.readouterr().out
    assert shown == textwrap.dedent(
        """\
        train.py: add(), looked at on its own
        11  def add(a, b):
              a = unknown argument a
              b = unknown argument b
        12      total = a + b                                         [grad as the caller has it]
                  total = unknown result of unknown argument a
        13      return total * 2                                      [grad as the caller has it]
                  > returns unknown result
        """
    )


@pytest.mark.usefixtures("program")
def test_what_cannot_be_shown_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "train.py:fit"]) == 2
    assert capsys.readouterr().err == "torchlint: train.py has no function fit\n"
    assert main(["trace", "absent.py"]) == 2
    assert "absent.py" in capsys.readouterr().err
    Path("broken.py").write_text("def f(:\n", encoding="utf-8")
    assert main(["trace", "broken.py"]) == 2
    assert capsys.readouterr().err.startswith("torchlint: broken.py:1: ")
    Path("plain.py").write_text("def f():\n    return 1\n", encoding="utf-8")
    assert main(["trace", "plain.py"]) == 0
    assert "nothing that plain.py does concerns training or autograd" in capsys.readouterr().err


def test_methods_are_asked_for_by_their_class(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "nets.py"
    program.write_text(
        "class A:\n    def size(self):\n        return 1\n\nclass B:\n    def size(self):\n        return 2\n"
    )
    assert main(["trace", f"{program}:B.size"]) == 0
    shown = capsys.readouterr().out
    assert "B.size()" in shown and "returns 2" in shown and "A.size" not in shown
