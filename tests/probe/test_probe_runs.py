"""The probe as a user runs it: targets, inputs, configuration, options, reports, corrections."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from helpers import probe

pytestmark = pytest.mark.torch

MODELS = """
import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self, num_classes=10, width=16):
        super().__init__()
        self.conv = nn.Conv2d(3, width, 3, padding=1)
        self.fc = nn.Linear(width, num_classes)

    def forward(self, x):
        return self.fc(F.relu(self.conv(x)).mean((2, 3)))


class Faulty(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.mid = nn.Conv2d(12, 8, 3, padding=1)
        self.fc = nn.Linear(in_features=7, out_features=10)
        width = 9
        self.out = nn.Linear(width, 5)

    def forward(self, x):
        x = self.mid(self.conv(x)).mean((2, 3))
        return self.out(self.fc(x))


class Needs(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.fc = nn.Linear(width, depth)

    def forward(self, x):
        return self.fc(x)


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 4)

    def forward(self, x):
        y = self.fc(x)
        if y.sum() > 0:
            return y * 2
        return y - 1


class FixedSize(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 4)

    def forward(self, x):
        return self.fc(x) * int(x.shape[0])


def make_batch(size=2):
    return (torch.rand(size, 3, 20, 20),)


def build() -> Net:
    return Net(num_classes=7)


instance = Net(num_classes=3)
"""


def row_of(text: str) -> int:
    """The row of the first line of MODELS that holds a text."""
    return next(row for row, line in enumerate(MODELS.splitlines(), 1) if text in line)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "net.py").write_text(MODELS)
    package = tmp_path / "pkg"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "parts.py").write_text("WIDTH = 5\n")
    (package / "model.py").write_text(
        "import torch\nfrom torch import nn\nfrom .parts import WIDTH\n\n\nclass Inner(nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n        self.fc = nn.Linear(WIDTH, 2)\n\n"
        "    def forward(self, x):\n        return self.fc(x)\n"
    )
    return tmp_path


def test_targets_of_every_kind_are_probed_in_one_run(project: Path) -> None:
    (project / "folder").mkdir()
    (project / "folder" / "other.py").write_text(
        (project / "pkg" / "model.py").read_text().replace("from .parts import WIDTH", "WIDTH = 3")
    )
    targets = [
        "net.py:Net(num_classes=5)",
        "net:build",
        "net.py:instance",
        "pkg/model.py:Inner",
        "pkg.model:Inner",
        "folder",
    ]
    run = probe(project, "--isolated", "--select", "TP103", *targets)
    outputs = {
        target["label"]: (target["table"]["rows"][0]["inputs"], target["table"]["rows"][0]["output"])
        for target in run.record["targets"]
        if target["table"]
    }
    assert outputs == {
        "net.py:Net(num_classes=5)": ("[2, 3, 64, 64]", "[2, 5]"),
        "net:build": ("[2, 3, 64, 64]", "[2, 7]"),
        "net.py:instance": ("[2, 3, 64, 64]", "[2, 3]"),
        "pkg/model.py:Inner": ("[2, 5]", "[2, 2]"),
        "pkg.model:Inner": ("[2, 5]", "[2, 2]"),
        "folder/other.py:Inner": ("[2, 3]", "[2, 2]"),
    }
    assert run.code == 0, run.out


def test_missing_arguments_are_asked_for_by_name_with_the_way_to_give_them(project: Path) -> None:
    run = probe(project, "--isolated", "net.py:Needs")
    assert run.code == 1
    assert (
        run.messages("TP102")
        == "the constructor needs width and depth: give them as 'net.py:Needs(width=..., depth=...)'"
    )


def test_inputs_can_be_told_by_size_keyword_or_function(project: Path) -> None:
    run = probe(project, "--isolated", "--select", "TP103", "net.py:Net", "--input", "3x30x31", "--batch-size", "5")
    assert run.record["targets"][0]["table"]["rows"][0]["inputs"] == "[5, 3, 30, 31]"
    run = probe(project, "--isolated", "--select", "TP103", "net.py:Net", "--input", "x=float32[3,9,9]=0..1")
    assert run.record["targets"][0]["inputs"]["shown"] == ["x=float32[3,9,9]=0..1"]
    run = probe(project, "--isolated", "--select", "TP103,TP108", "net.py:Net", "--input-from", "net:make_batch")
    assert run.record["targets"][0]["table"]["rows"][0]["inputs"] == "[2, 3, 20, 20]"
    assert run.check("TP108")["status"] == "passed"


def test_an_input_that_is_told_and_wrong_is_a_fault_at_the_users_line(project: Path) -> None:
    run = probe(project, "--isolated", "--select", "TP103", "net.py:Net", "--input", "4x8x8")
    assert run.code == 1
    assert "takes 3 channels and gets 4" in run.messages("TP103")
    run = probe(project, "--isolated", "--select", "TP103", "net.py:Net", "--output", "11")
    assert "[2, 10] where [2, 11] was expected" in run.messages("TP103")


def test_fix_corrects_one_number_after_the_other_and_says_what_remains(project: Path) -> None:
    run = probe(project, "--isolated", "--select", "TP103,TP105,TP110", "net.py:Faulty", "--fix")
    text = (project / "net.py").read_text()
    assert "self.mid = nn.Conv2d(8, 8, 3, padding=1)" in text
    assert "self.fc = nn.Linear(in_features=8, out_features=10)" in text
    # The last one stands under a name; it is told, not touched.
    assert "width = 9" in text
    assert run.out.count("[FIXED] net.py:") == 2
    assert "FAILED: 2 fixed, 1 remain" in run.out
    assert "in_features 9 -> 10" in run.out
    assert run.code == 1
    (project / "net.py").write_text(text.replace("width = 9", "width = 10"))
    assert probe(project, "--isolated", "--select", "TP103,TP105,TP110", "net.py:Faulty", "--fix").code == 0


def test_the_configuration_holds_targets_with_all_they_need(project: Path) -> None:
    (project / "pyproject.toml").write_text(
        '[tool.torchlint.probe]\nselect = ["TP103", "TP117", "TP122"]\n\n'
        '[tool.torchlint.probe.small]\ntarget = "net.py:Net"\narguments = "num_classes=4"\ninputs = ["3x16x16"]\n'
        'memory = "1GB"\n'
        'expect-skipped = ["TP122"]\n\n'
        '[tool.torchlint.probe.tight]\ntarget = "net:build"\ninputs = { x = "3x64x64" }\nmemory = "5MB"\nbatch-size '
        "= 64\nexpect-skipped = []\n"
    )
    run = probe(project)
    assert run.code == 1
    assert run.record["targets"][0]["table"]["rows"][0]["output"] == "[2, 4]"
    assert run.check("TP117", "small")["status"] == "passed"
    assert "more than the budget of 5.0 MB; the largest batch that fits is" in run.messages("TP117", "tight")
    assert "isn't expected to be" in run.messages("TP122", "tight")
    assert run.check("TP122", "small")["status"] == "skipped"
    assert [code for code, _ in run.found] == ["TP117", "TP122"]
    only = probe(project, "small")
    assert [target["label"] for target in only.record["targets"]] == ["small"]


def test_without_targets_the_command_says_what_to_do(project: Path) -> None:
    run = probe(project)
    assert (run.code, run.record) == (2, {})
    assert "name a target" in run.err


def test_findings_come_in_the_linters_formats(project: Path) -> None:
    common = ("--isolated", "--select", "TP103", "net.py:Faulty", "--output-format")
    rows = json.loads(probe(project, *common, "json").out)
    assert [(row["code"], row["location"]["row"], row["fix"]["edits"][0]["content"]) for row in rows] == [
        ("TP103", row_of("nn.Conv2d(12"), "8")
    ]
    sarif = json.loads(probe(project, *common, "sarif").out)
    assert sarif["runs"][0]["results"][0]["ruleId"] == "TP103"
    assert "::error" in probe(project, *common, "github").out
    ElementTree.fromstring(probe(project, *common, "junit").out)
    text = probe(project, *common, "concise").out
    assert f"net.py:{row_of('nn.Conv2d(12')}:" in text
    assert "closest inputs" in text or "inputs: x=float32" in text


def test_export_compares_with_the_model_on_other_inputs(project: Path) -> None:
    run = probe(
        project,
        "--isolated",
        "--export",
        "--select",
        "TP103,TP115,TP116",
        "net.py:Branches",
        "net.py:FixedSize",
        "net.py:Net",
    )
    branches = run.check("TP115", "net.py:Branches")
    assert branches["problems"][0]["site"]["row"] == row_of("if y.sum()")
    assert "disagrees" in branches["problems"][0]["message"]
    assert run.check("TP116", "net.py:Branches")["problems"][0]["site"]["row"] == row_of("if y.sum()")
    assert run.check("TP116", "net.py:FixedSize")["status"] == "failed"
    assert run.check("TP115", "net.py:Net")["status"] == "passed"
    assert run.check("TP116", "net.py:Net")["status"] == "passed"


def test_what_does_not_apply_says_so(project: Path) -> None:
    run = probe(project, "--isolated", "net.py:Net")
    assert run.code == 0, run.out
    reasons = {code: event["reason"] for code, event in run.record["targets"][0]["checks"].items()}
    assert set(reasons) == {f"TP{number}" for number in range(101, 124)}
    assert reasons["TP118"] == "give --checkpoint FILE"
    assert reasons["TP120"] == "give --data TARGET"
    assert reasons["TP123"] == "the model uses no custom autograd Function"
    assert "not asked: TP118 checkpoint: give --checkpoint FILE" in run.out


def test_one_mode_alone_can_be_asked_for(project: Path) -> None:
    run = probe(project, "--isolated", "--eval", "net.py:Net")
    assert run.check("TP105")["reason"] == "--eval asks for eval mode only"
    assert run.check("TP112")["status"] == "passed"


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkpoints")
    (folder / "net.py").write_text(MODELS)
    script = """
import torch, json, struct
from collections import OrderedDict
from net import Net
state = Net().state_dict()
torch.save(state, "good.pt")
torch.save({"epoch": 3, "model_state_dict": state}, "wrapped.pt")
torch.save({"module." + k: v for k, v in state.items()}, "parallel.pt")
torch.save({"_orig_mod." + k: v for k, v in state.items()}, "compiled.pt")
torch.save(Net(num_classes=1000).state_dict(), "head.pt")
torch.save({k: v for k, v in state.items() if not k.startswith("fc")} | {"old.weight": torch.zeros(2)}, "other.pt")
torch.save(Net(), "whole.pt")
open("empty.pt", "wb").close()
data = open("good.pt", "rb").read()
open("cut.pt", "wb").write(data[: len(data) // 2])
header, offset, blob = {}, 0, b""
for k, v in state.items():
    raw = v.numpy().tobytes()
    header[k] = {"dtype": "F32", "shape": list(v.shape), "data_offsets": [offset, offset + len(raw)]}
    offset += len(raw); blob += raw
text = json.dumps(header).encode()
open("good.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + blob)
open("cut.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + blob[:10])
"""
    subprocess.run([sys.executable, "-c", script], cwd=folder, check=True)
    table = "".join(
        f'[tool.torchlint.probe.{file.name.replace(".", "-")}]\ntarget = "net.py:Net"\ncheckpoint = "{file.name}"\n'
        'select = ["TP118"]\n'
        for file in sorted(folder.glob("*.*"))
        if file.suffix in (".pt", ".safetensors")
    )
    (folder / "pyproject.toml").write_text(table)
    return folder


def test_a_checkpoint_that_does_not_fit_is_told_with_its_cause(checkpoints: Path) -> None:
    run = probe(checkpoints)
    messages = {target["label"]: run.messages("TP118", target["label"]) for target in run.record["targets"]}
    assert messages["good-pt"] == messages["wrapped-pt"] == messages["good-safetensors"] == ""
    assert messages["parallel-pt"] == "all keys of parallel.pt begin with 'module.', which DataParallel adds"
    assert messages["compiled-pt"] == "all keys of compiled.pt begin with '_orig_mod.', which torch.compile adds"
    assert "fc.weight is [1000, 16] there and [10, 16] here" in messages["head-pt"]
    assert "another head" in messages["head-pt"]
    assert "other.pt lacks 2 of 4 keys: fc.weight, fc.bias" in messages["other-pt"]
    assert "other.pt has 1 keys the model doesn't know: old.weight" in messages["other-pt"]
    assert "whole pickled object (net.Net)" in messages["whole-pt"]
    assert messages["empty-pt"].startswith("empty.pt is empty")
    assert "cut" in messages["cut-pt"]
    assert messages["cut-safetensors"].startswith("cut.safetensors is cut off")


DATA = """
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 4)

    def forward(self, x):
        return self.fc(x)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(10, 8)
        self.fc = nn.Linear(8, 4)

    def forward(self, tokens):
        return self.fc(self.embedding(tokens).mean(1))


class Good(Dataset):
    def __len__(self):
        return 20

    def __getitem__(self, index):
        return torch.randn(6), index % 4


class Sizes(Good):
    def __getitem__(self, index):
        return torch.randn(6 + index), 0


class Double(Good):
    def __getitem__(self, index):
        return np.random.rand(6), 0


class Holes(Good):
    def __getitem__(self, index):
        return torch.full((6,), float("nan")), 0


class Labels(Good):
    def __getitem__(self, index):
        return torch.randn(6), index


class FloatLabels(Good):
    def __getitem__(self, index):
        return torch.randn(6), torch.tensor(float(index % 4))


class Gone(Good):
    def __getitem__(self, index):
        return (torch.randn(6), 0) if index < 5 else None


class Raises(Good):
    def __getitem__(self, index):
        return torch.randn(6), [1, 2][index]


class OwnGenerator(Good):
    def __init__(self):
        self.rng = np.random.default_rng(0)

    def __getitem__(self, index):
        return torch.as_tensor(self.rng.random(6), dtype=torch.float32), 0


class Unsharded(IterableDataset):
    def __iter__(self):
        for index in range(20):
            yield torch.full((6,), float(index)), 0


class Sharded(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        start, step = (0, 1) if info is None else (info.id, info.num_workers)
        for index in range(start, 20, step):
            yield torch.full((6,), float(index)), 0


class Width(Good):
    def __getitem__(self, index):
        return torch.randn(5), 0


class Tokens(Good):
    def __getitem__(self, index):
        return torch.full((7,), index), 0


good_loader = DataLoader(Good(), batch_size=4)
"""

EXPECTED_DATA = {
    "Good": "",
    "good_loader": "",
    "Sharded": "",
    "Sizes": "samples don't collate",
    "Double": "samples hold float64",
    "Holes": "holds NaN",
    "Labels": "label 19, and the model gives 4 classes",
    "FloatLabels": "labels are float32 where 4 classes call for int64",
    "Gone": "holds None",
    "Raises": "sample 1 fails",
    "OwnGenerator": "workers draw the same random numbers",
    "Unsharded": "every worker yields the same samples",
    "Width": "takes 6 features and gets 5",
}


def test_data_that_does_not_fit_is_told_with_its_cause(tmp_path: Path) -> None:
    (tmp_path / "data.py").write_text(DATA)
    table = "".join(
        f'[tool.torchlint.probe.{name}]\ntarget = "data.py:Net"\ndata = "data:{name}"\nselect = ["TP120"]\n'
        for name in EXPECTED_DATA
    )
    table += '[tool.torchlint.probe.Tokens]\ntarget = "data.py:Tagger"\ndata = "data:Tokens"\nselect = ["TP120"]\n'
    table += '[tool.torchlint.probe.Loss]\ntarget = "data.py:Net"\ndata = "data:Labels"\n'
    table += 'loss = "nn.CrossEntropyLoss"\nselect = ["TP120"]\n'
    (tmp_path / "pyproject.toml").write_text(table)
    run = probe(tmp_path)
    for name, expected in EXPECTED_DATA.items():
        message = run.messages("TP120", name)
        assert (expected in message) if expected else message == "", (name, message)
    assert "token 19, and the embedding has 10 rows" in run.messages("TP120", "Tokens")
    assert "the loss fails on the data's labels" in run.messages("TP120", "Loss")


LARGE = """
import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (part.view(b, t, self.heads, -1).transpose(1, 2) for part in self.qkv(self.norm1(x)).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, c)
        x = x + self.project(y)
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Decoder70B(nn.Module):
    def __init__(self, vocab_size=32000, width=8192, depth=86, heads=64):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, width)
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(depth)])
        self.head = nn.Linear(width, vocab_size, bias=False)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)
"""


def test_a_decoder_of_seventy_billion_parameters_needs_no_memory(tmp_path: Path) -> None:
    (tmp_path / "large.py").write_text(LARGE)
    started = time.monotonic()
    run = probe(tmp_path, "--isolated", "large.py:Decoder70B", "--memory-limit", "2GB", "--memory", "24GB")
    assert time.monotonic() - started < 120
    table = run.record["targets"][0]["table"]
    assert table["total"] > 69_000_000_000
    assert table["rows"][-1]["output"] == "[2, 16, 32000]"
    assert run.check("TP103")["status"] == run.check("TP106")["status"] == "passed"
    assert "not even a batch of one fits" in run.messages("TP117")
    assert "fake tensors" in run.check("TP112")["reason"]


ROUGH = """
import ctypes, os, sys, time
import torch
from torch import nn


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 4)


class Hangs(Base):
    def forward(self, x):
        while True:
            time.sleep(0.01)


class HangsInTraining(Base):
    def forward(self, x):
        while self.training:
            pass
        return self.fc(x)


class Segfaults(Base):
    def forward(self, x):
        ctypes.string_at(0)
        return self.fc(x)


class Exits(Base):
    def forward(self, x):
        sys.exit(3)


class EndsItself(Base):
    def forward(self, x):
        os._exit(5)


class Asks(Base):
    def forward(self, x):
        return self.fc(x) * float(input("scale? "))


class Noisy(Base):
    def forward(self, x):
        print('{"event": "done"}')
        os.write(1, b"x" * 300_000)
        os.write(2, b"y" * 300_000)
        return self.fc(x)


class Eats(Base):
    def forward(self, x):
        kept = []
        while True:
            kept.append(torch.ones(50_000_000))


class DiesInTheConstructor(nn.Module):
    def __init__(self):
        super().__init__()
        os.kill(os.getpid(), 11)

    def forward(self, x):
        return x


class Fine(Base):
    def forward(self, x):
        return self.fc(x)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_whatever_user_code_does_ends_as_one_finding_at_its_line(tmp_path: Path) -> None:
    (tmp_path / "rough.py").write_text(ROUGH)
    run = probe(
        tmp_path,
        "--isolated",
        "rough.py",
        "--timeout",
        "6",
        "--memory-limit",
        "3GB",
        "--select",
        "TP103,TP104,TP105,TP112",
    )
    lines = ROUGH.splitlines()

    def row(text: str) -> int:
        return next(index for index, line in enumerate(lines, 1) if text in line)

    found = {
        (code, at): message
        for (code, at), message in zip(run.found, (f["message"] for f in run.record["findings"]), strict=False)
    }
    assert (
        set(found)
        == {
            ("TP103", row("time.sleep(0.01)")),
            ("TP104", row("while self.training:") + 1),
            ("TP103", row("string_at")),
            ("TP103", row("sys.exit(3)")),
            ("TP103", row("os._exit(5)")),
            ("TP103", row("input(")),
            ("TP103", row("kept.append")),
            ("TP102", row("os.kill")),
        }
        or ("TP104", row("while self.training:")) in found
    )
    assert len(found) == 8
    assert "not finished after 6 s" in found["TP103", row("time.sleep(0.01)")]
    assert "SIGSEGV" in found["TP103", row("string_at")]
    assert run.check("TP112", "rough.py:Fine")["status"] == "passed"
    assert run.check("TP112", "rough.py:Noisy")["status"] == "passed"


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_interrupting_leaves_no_process_behind(tmp_path: Path) -> None:
    (tmp_path / "hang.py").write_text(
        "import os, subprocess, sys, time\nfrom torch import nn\n\n\nclass Net(nn.Module):\n    def forward(self, x):\n"
        "        child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(100)'])\n"
        "        open('pids', 'w').write(f'{os.getpid()} {child.pid}')\n        time.sleep(100)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "torchlint", "probe", "--isolated", "hang.py:Net"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "VIRTUAL_ENV": sys.prefix},
        # A shell that runs the tests in the background lets them ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 60
    while not (tmp_path / "pids").exists() or not (tmp_path / "pids").read_text():
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in out + err
    for pid in map(int, (tmp_path / "pids").read_text().split()):
        for _ in range(100):
            if not _alive(pid):
                break
            time.sleep(0.05)
        assert not _alive(pid)


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_an_interpreter_without_torch_is_told_and_another_one_found(project: Path) -> None:
    bare = project / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    python = str(bare / ("Scripts" if sys.platform == "win32" else "bin") / "python")
    run = probe(project, "--isolated", "--python", python, "net.py:Net")
    assert run.code == 2
    assert "no interpreter with torch" in run.err
    shutil.move(str(bare), str(project / ".venv"))
    run = probe(project, "--isolated", "--select", "TP103", "net.py:Net")
    assert run.code == 0


def test_the_worker_needs_torch_alone(project: Path) -> None:
    """Whatever else is installed beside torchlint, the worker's own modules import only torch and the standard "
    "library."""
    worker = Path(__file__).parents[2] / "torchlint" / "probe" / "worker"
    script = (
        "import runpy, sys\nbefore = set(sys.modules)\n"
        f"sys.argv = ['worker', sys.argv[1]]\nrunpy.run_path({str(worker)!r}, run_name='__main__')\n"
        "names = {name.split('.')[0] for name in sys.modules} - {name.split('.')[0] for name in before}\n"
        "assert 'torchlint' not in names, names\n"
    )
    folder = project / "request"
    folder.mkdir()
    (folder / "request.json").write_text(json.dumps({"targets": [], "timeout": 10}))
    subprocess.run([sys.executable, "-c", script, str(folder)], check=True, cwd=project)
    assert '"done"' in (folder / "results.jsonl").read_text()


@pytest.mark.cuda
def test_on_a_cuda_device_the_results_are_compared_and_memory_measured(project: Path) -> None:
    probe_cuda = subprocess.run(
        [sys.executable, "-c", "import torch, sys; sys.exit(not torch.cuda.is_available())"], check=False
    )
    if probe_cuda.returncode:
        pytest.skip("no CUDA device: device comparison and measured memory were not run")
    run = probe(project, "--isolated", "--select", "TP103,TP106,TP117", "net.py:Net")
    assert run.check("TP106")["status"] == "passed"
    assert "measured on CUDA" in run.check("TP117")["reason"]
    run = probe(project, "--isolated", "--device", "cuda", "net.py:Net")
    assert run.code == 0
