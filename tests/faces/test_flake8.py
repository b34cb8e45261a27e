"""The plugin under the real flake8, in processes of its own, as CI and editors run it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("flake8")

BASE = "import torch.nn as nn\n\n\nclass Base(nn.Module):\n    pass\n"
NET = """\
from base import Base
import torch.nn as nn


class Net(Base):
    def __init__(self):
        self.fc = nn.Linear(3, 3)
"""

PLUGIN = '''\
from torchlint.check import Check, FunctionInfo, Severity, on


class Named(Check):
    """Reports every function."""

    code = "TL990"
    name = "named"
    severity = Severity.INFO

    @on(FunctionInfo)
    def check(self, function, report):
        report(function.node, "a function")
'''


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("base.py").write_text(BASE)
    Path("net.py").write_text(NET)
    return tmp_path


def flake8(*arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "flake8", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=120)


def codes(*arguments: str, stdin: str | None = None) -> list[str]:
    """``file:row:column: code`` of the TL findings."""
    run = flake8(*arguments, stdin=stdin)
    assert run.stderr == ""
    places = (" ".join(line.split(" ")[:2]) for line in run.stdout.splitlines())
    return sorted(place.removeprefix("./") for place in places if " TL" in place)


def test_flake8_knows_the_plugin() -> None:
    from torchlint import __version__

    assert f"torchlint: {__version__}" in flake8("--version").stdout


def test_findings_come_with_knowledge_of_other_files() -> None:
    run = flake8("net.py")
    assert run.returncode == 1
    (line,) = [line for line in run.stdout.splitlines() if "TL" in line]
    assert line.startswith("net.py:6:5: TL101 ")
    Path("base.py").write_text(BASE.replace("(nn.Module)", "") + "\n")
    assert codes("net.py") == []


def test_an_editor_gets_the_same_for_a_buffer_under_the_files_name() -> None:
    unsaved = NET.replace("class Net", "\n\nclass Net")
    assert codes("--stdin-display-name", "net.py", "-", stdin=unsaved) == ["net.py:8:5: TL101"]
    assert codes("-", stdin=unsaved) == ["stdin:8:5: TL101"]


def test_flake8_selects_and_ignores() -> None:
    assert codes("--select", "E,F", "net.py") == []
    assert codes("--select", "TL", "net.py") == ["net.py:6:5: TL101"]
    assert codes("--extend-ignore", "TL1", "net.py") == []
    assert codes("--per-file-ignores", "net.py:TL101", "net.py") == []
    Path("setup.cfg").write_text("[flake8]\nper-file-ignores =\n    net.py: TL101\n")
    assert codes("net.py") == []


def test_flake8s_noqa_counts_and_is_not_counted_twice() -> None:
    Path("net.py").write_text(NET.replace("def __init__(self):", "def __init__(self):  # noqa: TL101"))
    assert codes("net.py") == []
    assert codes("--disable-noqa", "net.py") == ["net.py:6:5: TL101"]


def test_torchlints_configuration_says_which_rules_run() -> None:
    Path("pyproject.toml").write_text('[tool.torchlint]\nignore = ["missing-super-init"]\n')
    assert codes("net.py") == []
    Path("other.toml").write_text("")
    assert codes("--torchlint-config", "other.toml", "net.py") == ["net.py:6:5: TL101"]


def test_info_rules_run_only_if_asked_for() -> None:
    Path("mychecks.py").write_text(PLUGIN)
    Path("torchlint.toml").write_text('plugins = ["mychecks"]\n')
    assert codes("--select", "TL", "net.py") == ["net.py:6:5: TL101"]
    assert codes("--extend-select", "TL9", "net.py") == ["net.py:6:5: TL101", "net.py:6:5: TL990"]
    Path("torchlint.toml").write_text('plugins = ["mychecks"]\nselect = ["TL9"]\n')
    assert codes("net.py") == ["net.py:6:5: TL990"]


def test_several_processes_say_the_same() -> None:
    for number in range(6):
        Path(f"net{number}.py").write_text(NET)
    assert codes("-j", "2", ".") == codes("-j", "1", ".")
    assert len(codes("-j", "2", ".")) == 7


def test_a_broken_configuration_is_told_without_a_traceback() -> None:
    Path("torchlint.toml").write_text("fix = true\nselct = []\n")
    run = flake8("net.py")
    assert run.returncode == 1
    assert 'torchlint.toml:2: unknown key "selct"' in run.stdout
    assert "Traceback" not in run.stdout + run.stderr
    Path("torchlint.toml").unlink()
    Path("sub").mkdir()
    Path("sub/torchlint.toml").write_text('select = ["TL999"]\n')
    Path("sub/a.py").write_text("import torch\n")
    run = flake8("sub", "net.py")
    assert (
        'sub/a.py:1:1: TL003 this file was not checked: sub/torchlint.toml:1: no rule is called "TL999"' in run.stdout
    )
    assert "net.py:6:5: TL101" in run.stdout
    assert run.stderr == ""


def test_a_file_with_a_syntax_error_is_left_to_flake8() -> None:
    Path("net.py").write_text("import torch\ndef f(:\n")
    assert codes("net.py") == []
    assert "E999" in flake8("net.py").stdout


def test_bytes_that_no_terminal_should_see_stay_out_of_messages() -> None:
    Path("net.py").write_text(NET.replace("fc", "ｆc") + "\n# \x1b[2J\n")
    assert "\x1b" not in flake8("--select", "TL", "net.py").stdout
