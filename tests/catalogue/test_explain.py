"""``torchlint explain`` as it is used: what may be asked, exit codes, languages, JSON, the user's line, time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from torchlint.cli import main

MATMUL = "RuntimeError: mat1 and mat2 shapes cannot be multiplied (32x256 and 512x10)"
NET = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        self.fc = nn.Linear(512, 10)

    def forward(self, x):
        return self.fc(x)


class Other(nn.Module):
    def __init__(self):
        self.fc = nn.Linear(2, 2)


Net()
"""
NET_FAILS = """\
Traceback (most recent call last):
  File "{folder}/net.py", line 18, in <module>
    Net()
  File "{folder}/net.py", line 7, in __init__
    self.fc = nn.Linear(512, 10)
  File "/venv/lib/python3.12/site-packages/torch/nn/modules/module.py", line 2004, in __setattr__
    raise AttributeError(
AttributeError: cannot assign module before Module.__init__() call
"""


class Ran(NamedTuple):
    code: int
    out: str
    err: str


Explain = Callable[..., Ran]


@pytest.fixture
def explain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Explain:
    """Run ``torchlint explain`` in an empty folder, in English unless told otherwise."""
    monkeypatch.chdir(tmp_path)
    for name in ("LC_ALL", "LC_MESSAGES", "LANG", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments: str) -> Ran:
        code = main(["explain", *arguments])
        return Ran(code, *capfd.readouterr())

    return run


def piped(text: str | bytes, *arguments: str, folder: Path | None = None) -> Ran:
    """Run ``torchlint explain`` as a process of its own, with something piped into it."""
    done = subprocess.run(
        [sys.executable, "-m", "torchlint", "explain", *arguments],
        input=text if isinstance(text, bytes) else text.encode(),
        capture_output=True,
        cwd=folder,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", "LC_ALL": "C.UTF-8"},
    )
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


# ------------------------------------------------------------------------------------------------ what may be asked


def test_a_message_is_answered_in_full(explain: Explain) -> None:
    ran = explain(MATMUL)
    assert ran.code == 0
    for part in (
        "T-C1",
        MATMUL,
        "nn.Linear(512, 10)",
        "What it means",
        "Usual causes",
        "how to tell",
        "- self.fc = nn.Linear(512, 10)",
        "+ self.fc = nn.Linear(256, 10)",
        "TL301 matmul-shape-mismatch",
        "TP103 forward",
        "https://docs.pytorch.org/",
    ):
        assert part in ran.out


def test_words_need_no_quotation_marks(explain: Explain) -> None:
    ran = explain("validation", "accuracy", "stays", "at", "chance")
    assert ran.code == 0
    assert "L-18" in ran.out
    assert "from your description" in ran.out


def test_a_log_file_is_read(explain: Explain) -> None:
    Path("train.log").write_text(f"epoch 1\n{MATMUL}\n")
    assert "T-C1" in explain("train.log").out


def test_a_log_may_be_piped_with_or_without_a_dash() -> None:
    assert "T-C1" in piped(MATMUL).out
    assert "T-C1" in piped(MATMUL, "-").out


def test_a_log_of_powershell_is_utf_16() -> None:
    assert "T-C1" in piped(b"\xff\xfe" + MATMUL.encode("utf-16-le")).out


def test_of_a_long_log_the_end_counts() -> None:
    ran = piped("epoch 1: loss 0.5\n" * 600_000 + MATMUL)
    assert "T-C1" in ran.out


@pytest.mark.parametrize("identifier", ["T-A1", "t-a1", " X-37 ", "R-W1"])
def test_a_failure_may_be_asked_for_by_its_id(explain: Explain, identifier: str) -> None:
    ran = explain(identifier)
    assert ran.code == 0
    assert ran.out.startswith(identifier.strip().upper())


def test_an_id_that_stands_for_several_failures_shows_them_all(explain: Explain) -> None:
    ran = explain("T-I1")
    assert "R-02" in ran.out
    assert "L-08" in ran.out
    assert "L-09" in ran.out


def test_a_rule_may_be_asked_for_by_code_or_name(explain: Explain) -> None:
    by_code, by_name = explain("TL101"), explain("missing-super-init")
    assert by_code.code == by_name.code == 0
    assert by_code.out == by_name.out
    assert "# TL101 missing-super-init" in by_code.out
    assert "T-D1" in by_code.out


def test_a_probe_check_may_be_asked_for(explain: Explain) -> None:
    ran = explain("tp103")
    assert ran.code == 0
    assert "forward fails" in ran.out
    assert "T-C1" in ran.out


# ---------------------------------------------------------------------------------------------------- exit codes


def test_an_unknown_message_is_a_guess_and_says_so(explain: Explain) -> None:
    ran = explain("RuntimeError: the frobnicator of the loss scheduler has no gradient")
    assert ran.code == 1
    assert "a guess" in ran.out
    assert "Nearest entries" in ran.out


def test_nothing_at_all_is_said_too(explain: Explain) -> None:
    ran = explain("zzzz")
    assert ran.code == 1
    assert "knows nothing like this" in ran.out


@pytest.mark.parametrize("arguments", [("",), ("--lang", "fr", "x"), ("--output-format", "xml", "x")])
def test_a_wrong_call_ends_with_two(explain: Explain, arguments: tuple[str, ...]) -> None:
    assert explain(*arguments).code == 2


def test_empty_input_ends_with_two() -> None:
    ran = piped("")
    assert ran.code == 2
    assert "standard input is empty" in ran.err


def test_a_program_is_for_check(explain: Explain) -> None:
    Path("net.py").write_text(NET)
    ran = explain("net.py")
    assert ran.code == 2
    assert "torchlint check net.py" in ran.err


# ------------------------------------------------------------------------------------------------------ languages


def test_chinese_is_answered_in_chinese(explain: Explain) -> None:
    ran = explain("--lang", "zh", MATMUL)
    for part in ("矩阵乘法的尺寸对不上", "含义", "常见原因", "如何判断", "需要 512 的是 nn.Linear(512, 10)"):
        assert part in ran.out


@pytest.mark.parametrize(
    ("variable", "value"), [("LANG", "zh_CN.UTF-8"), ("LC_ALL", "zh_TW"), ("LC_MESSAGES", "zh_CN")]
)
def test_the_locale_chooses_the_language(
    explain: Explain, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    assert "What it means" in explain("T-A1").out
    monkeypatch.setenv(variable, value)
    assert "含义" in explain("T-A1").out
    assert "What it means" in explain("--lang", "en", "T-A1").out


def test_lines_of_chinese_fit_the_width(explain: Explain, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "64")
    lines = explain("--lang", "zh", "T-H2").out.splitlines()
    prose = [line for line in lines if not line.lstrip().startswith(("-", "+")) and "https://" not in line]
    assert max(sum(2 if ord(char) > 0x2E7F else 1 for char in line) for line in prose) <= 64


# ----------------------------------------------------------------------------------------------------------- JSON


def as_json(ran: Ran) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(ran.out)
    return report


def test_json_holds_all_that_the_page_says(explain: Explain) -> None:
    report = as_json(explain("--output-format", "json", MATMUL))
    assert report["recognised"] is True
    assert report["basis"] == "message"
    assert report["error"]["type"] == "RuntimeError"
    answer = report["answers"][0]
    assert answer["id"] == "T-C1"
    assert {"code": "TL301", "name": "matmul-shape-mismatch"} in answer["rules"]
    assert {"code": "TP103", "name": "forward"} in answer["probe"]
    assert answer["causes"][0].keys() == {"cause", "how_to_tell", "before", "after", "rules"}
    assert "nn.Linear(512, 10)" in report["in_your_message"][0]["text"]


def test_json_of_nothing_is_json(explain: Explain) -> None:
    report = as_json(explain("--output-format", "json", "zzzz"))
    assert report["answers"] == []
    assert report["recognised"] is False


# ---------------------------------------------------------------------------------------------------- the user's line


def test_a_finding_that_explains_the_error_leads(explain: Explain, tmp_path: Path) -> None:
    Path("net.py").write_text(NET)
    Path("log").write_text(NET_FAILS.format(folder=tmp_path))
    ran = explain("log")
    code, meaning = ran.out.index("In your code"), ran.out.index("What it means")
    assert ran.out.index("TL101") < meaning
    assert code < meaning
    assert "at net.py:7: self.fc = nn.Linear(512, 10)" in ran.out
    assert "net.py:6:5" in ran.out
    assert "`torchlint explain --fix` applies this fix" in ran.out


def test_the_findings_are_in_the_json(explain: Explain, tmp_path: Path) -> None:
    Path("net.py").write_text(NET)
    Path("log").write_text(NET_FAILS.format(folder=tmp_path))
    report = as_json(explain("--output-format", "json", "log"))
    assert [finding["code"] for finding in report["findings"]] == ["TL101", "TL101"]
    assert report["findings"][0]["location"]["row"] == 6
    assert report["at_the_line"] is True
    assert [(frame["filename"], frame["row"]) for frame in report["frames"]] == [("net.py", 7), ("net.py", 18)]


def test_a_traceback_of_another_machine_is_matched_by_its_paths_end(explain: Explain) -> None:
    Path("models").mkdir()
    Path("models/net.py").write_text(NET)
    Path("log").write_text(NET_FAILS.format(folder="/home/ada/project/models"))
    assert "models/net.py:6:5" in explain("log").out


def test_a_file_that_has_another_line_there_is_another_file(explain: Explain) -> None:
    Path("net.py").write_text("import torch\n" * 30)
    Path("log").write_text(NET_FAILS.format(folder="/home/ada/project"))
    ran = explain("log")
    assert "In your code" not in ran.out
    assert "at /home/ada/project/net.py:7" in ran.out


def test_a_finding_counts_however_it_was_silenced(explain: Explain, tmp_path: Path) -> None:
    Path("pyproject.toml").write_text('[tool.torchlint]\nignore = ["TL101"]\n')
    Path("net.py").write_text(NET.replace("def __init__(self):", "def __init__(self):  # noqa"))
    Path("log").write_text(NET_FAILS.format(folder=tmp_path))
    assert "TL101" in explain("log").out.split("What it means")[0]


def test_files_of_installed_packages_are_left_alone(explain: Explain, tmp_path: Path) -> None:
    package = tmp_path / "venv/lib/python3.12/site-packages"
    package.mkdir(parents=True)
    (package / "net.py").write_text(NET)
    Path("log").write_text(NET_FAILS.format(folder=package))
    ran = explain("log")
    assert "T-D1" in ran.out
    assert "In your code" not in ran.out


def test_a_file_that_does_not_parse_spoils_nothing(explain: Explain, tmp_path: Path) -> None:
    Path("net.py").write_text(NET + "def broken(:\n")
    Path("log").write_text(NET_FAILS.format(folder=tmp_path))
    ran = explain("log")
    assert ran.code == 0
    assert "T-D1" in ran.out


def test_the_line_that_the_message_speaks_of_is_found(explain: Explain, tmp_path: Path) -> None:
    Path("net.py").write_text(NET)
    frame = f'  File "{tmp_path}/net.py", line 10, in forward\n    return self.fc(x)\n'
    Path("log").write_text(f"Traceback (most recent call last):\n{frame}{MATMUL}\n")
    assert "net.py:7: self.fc = nn.Linear(512, 10)" in explain("log").out


def test_fix_repairs_the_finding_that_explains_the_error_and_no_other(explain: Explain, tmp_path: Path) -> None:
    Path("net.py").write_text(NET)
    Path("log").write_text(NET_FAILS.format(folder=tmp_path))
    ran = explain("--fix", "log")
    assert ran.code == 0
    assert "fixed net.py:6 TL101" in ran.err
    fixed = Path("net.py").read_text()
    assert fixed.count("super().__init__()") == 1
    assert fixed.index("super().__init__()") < fixed.index("class Other")


def test_fix_without_a_finding_says_so(explain: Explain) -> None:
    ran = explain("--fix", MATMUL)
    assert ran.code == 1
    assert "nothing to fix" in ran.err


def test_what_a_log_holds_can_not_rewrite_the_screen(explain: Explain) -> None:
    Path("log").write_text(
        "RuntimeError: \x1b]0;title\x07\u202emat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)\n"
    )
    out = explain("log").out
    assert "\x1b" not in out
    assert "\u202e" not in out


# ----------------------------------------------------------------------------------------------------------- time


@pytest.mark.parametrize("question", [MATMUL, "loss is nan", "RuntimeError: the frobnicator is lost"])
def test_an_answer_takes_less_than_a_fifth_of_a_second(question: str) -> None:
    """In processor time of a whole process, start-up included, so that a busy machine does not decide."""
    taken = []
    for _ in range(5):
        before = os.times()
        subprocess.run([sys.executable, "-m", "torchlint", "explain", question], capture_output=True, check=False)
        after = os.times()
        used = after.children_user + after.children_system - before.children_user - before.children_system
        taken.append(used)
    assert min(taken) < 0.2


def test_a_long_log_does_not_take_long() -> None:
    begun = time.process_time()
    from torchlint.catalogue.explaining import of_text

    explanation = of_text("step 1 loss 0.25 [####      ] 12%\n" * 40_000 + MATMUL)
    assert explanation.recognised
    assert time.process_time() - begun < 5
