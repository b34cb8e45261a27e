"""Inputs, targets, sizes and codes as they are written, without torch."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchlint.config import ConfigError, load_settings
from torchlint.finding import Edit, Position
from torchlint.probe import fixing, launcher
from torchlint.probe.interpreter import candidates
from torchlint.probe.report import CODES
from torchlint.probe.targets import TargetError, configured, parse_codes, parse_size, parse_target
from torchlint.probe.worker.names import FINDS, NAMES
from torchlint.probe.worker.specs import (
    DictSpec,
    ListSpec,
    Spec,
    SpecError,
    TensorSpec,
    ValueSpec,
    from_json,
    parse_input,
    to_json,
    to_text,
)


@pytest.mark.parametrize(
    ("text", "name", "spec"),
    [
        ("3x224x224", None, TensorSpec((3, 224, 224))),
        ("10", None, TensorSpec((10,))),
        ("int64[128]<30522", None, TensorSpec((128,), "int64", 0, 0, 30522)),
        ("tokens=int64[128]<30522", "tokens", TensorSpec((128,), "int64", 0, 0, 30522)),
        ("image=3x8x8", "image", TensorSpec((3, 8, 8))),
        ("float32[3,8,8]=0..1", None, TensorSpec((3, 8, 8), "float32", 0, 0, 1)),
        ("float32[16,B,64]", None, TensorSpec((16, 64), "float32", 1)),
        ("float32[3,3]!", None, TensorSpec((3, 3), "float32", None)),
        ("t=long[]<10", "t", TensorSpec((), "int64", 0, 0, 10)),
        ("mask=bool[4]", "mask", TensorSpec((4,), "bool")),
        ("steps=5", "steps", ValueSpec(5)),
        ("causal=true", "causal", ValueSpec(True)),
        ("mode='mean'", "mode", ValueSpec("mean")),
        ("size=(4, 4)", "size", ValueSpec((4, 4))),
    ],
)
def test_an_input_reads_as_it_is_written(text: str, name: str | None, spec: Spec) -> None:
    assert parse_input(text) == (name, spec)


@pytest.mark.parametrize("text", ["3y4", "floaty[3]", "float32[3,x]", "float32[3", "a=b c"])
def test_an_input_that_cannot_be_read_shows_what_can(text: str) -> None:
    with pytest.raises(SpecError, match=r"3x224x224|is not a"):
        parse_input(text)


@pytest.mark.parametrize(
    "spec",
    [
        TensorSpec((3, 8)),
        TensorSpec((), "int64", 0, 0, 7),
        TensorSpec((5, 2), "float32", 1),
        TensorSpec((5,), "float32", None, 0, 1),
        ValueSpec(None),
        ListSpec((TensorSpec((1,)), ValueSpec(2)), True),
        DictSpec((("a", TensorSpec((2,))),)),
    ],
)
def test_a_specification_survives_json(spec: Spec) -> None:
    assert from_json(to_json(spec)) == spec


@pytest.mark.parametrize(
    "text", ["float32[3,8,8]", "int64[16]<65", "float32[16,B,64]", "float32[3,3]!", "float32[2]=-1..1"]
)
def test_what_the_report_prints_can_be_given_back(text: str) -> None:
    assert to_text(parse_input(text)[1]) == text


def test_targets_read_as_they_are_written(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text("import torch\nclass Net: ...\n")
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "a.py").write_text("import torch\nclass Net: ...\n")
    (tmp_path / "pkg" / "b.py").write_text("x = 1\n")
    (one,) = parse_target("net.py:Net(num_classes=5, name='a:b')", tmp_path)
    assert (one.file, one.name, one.call) == (str(tmp_path / "net.py"), "Net", "(num_classes=5, name='a:b')")
    (module,) = parse_target("package.module:factory", tmp_path)
    assert (module.module, module.name, module.file) == ("package.module", "factory", None)
    assert [target.file for target in parse_target("pkg", tmp_path)] == [str(tmp_path / "pkg" / "a.py")]


@pytest.mark.parametrize("text", ["missing.py:Net", "net.py:Net(", "what is this", "net(5)"])
def test_a_target_that_cannot_be_read_is_an_error(text: str, tmp_path: Path) -> None:
    with pytest.raises(TargetError):
        parse_target(text, tmp_path)


def test_sizes_of_memory() -> None:
    assert parse_size("24GB") == 24_000_000_000
    assert parse_size("512 MiB") == 512 * 1024**2
    assert parse_size(100) == 100
    with pytest.raises(TargetError, match="24GB"):
        parse_size("lots")


def test_codes_are_selected_by_code_prefix_and_name() -> None:
    assert parse_codes("TP103", CODES, NAMES) == ["TP103"]
    assert parse_codes("TP12", CODES, NAMES) == ["TP120", "TP121", "TP122", "TP123"]
    assert parse_codes("batch-leak", CODES, NAMES) == ["TP109"]
    assert parse_codes("ALL", CODES, NAMES) == list(CODES)
    with pytest.raises(TargetError, match="TP999"):
        parse_codes("TP999", CODES, NAMES)


def test_every_check_has_a_name_and_says_what_it_finds() -> None:
    assert list(NAMES) == [f"TP{number}" for number in range(101, 124)]
    assert set(FINDS) == set(NAMES)


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ('[tool.torchlint.probe.net]\ntarget = "net.py:Net"\nbatchsize = 4\n', "batch-size"),
        ("[tool.torchlint.probe.net]\nseed = 4\n", "needs a target"),
        ('[tool.torchlint.probe]\ntimeout = "long"\n', "takes a number"),
    ],
)
def test_a_wrong_key_of_the_configuration_names_file_and_line(toml: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(toml)
    with pytest.raises(ConfigError, match=message) as caught:
        configured(load_settings(tmp_path))
    assert "pyproject.toml" in str(caught.value)


def test_the_projects_environment_is_found_as_editors_find_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    monkeypatch.delenv("CONDA_PREFIX", raising=False)
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch()
    (tmp_path / ".venv" / "pyvenv.cfg").touch()
    inner = tmp_path / "src" / "pkg"
    inner.mkdir(parents=True)
    assert candidates(inner)[0] == str(python)
    assert candidates(inner, "/elsewhere/python") == ["/elsewhere/python"]


def test_a_correction_keeps_everything_but_the_number(tmp_path: Path) -> None:
    file = tmp_path / "net.py"
    before = "# -*- coding: utf-8 -*-\r\nclass N:\r\n    é = nn.Linear(256, 10)  # ü\r\n".encode()
    file.write_bytes(before)
    assert fixing.apply(str(file), [Edit(Position(3, 19), Position(3, 22), "512")]) == before
    assert file.read_bytes() == before.replace(b"256", b"512")


def test_the_last_stack_that_was_written_counts() -> None:
    stack = (
        'Timeout (0:00:04)!\nThread 0x1 (most recent call first):\n  File "/a/old.py", line 1 in f\n'
        "Fatal Python error: Segmentation fault\n\nCurrent thread 0x1 (most recent call first):\n  File "
        '"/a/net.py", line 23 in forward\n'
    )
    assert launcher.stack_frames(stack) == [("/a/net.py", 23)]
