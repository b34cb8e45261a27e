"""``torchlint doctor``: what it sees in real interpreters, how it judges machines that aren't here, what it keeps to
itself.
"""

from __future__ import annotations

import copy
import json
import os
import stat
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import pytest

from torchlint.catalogue.diagnosis import Line, judge
from torchlint.catalogue.doctor import examine, look, shortened
from torchlint.catalogue.doctor_worker import CHECKS, SHADOWING, VARIABLES
from torchlint.cli import main

# A machine on which everything is right: Linux, one GPU, torch for CUDA 12.8.
SOUND: dict[str, dict[str, Any]] = {
    "python": {
        "version": "3.12.4",
        "implementation": "CPython",
        "bits": 64,
        "executable": "/venv/bin/python",
        "prefix": "/venv",
        "virtual": True,
        "system": "Linux",
        "release": "6.8",
        "machine": "x86_64",
        "wsl": False,
        "container": False,
    },
    "packages": {
        "versions": {
            "torch": "2.9.1+cu128",
            "torchvision": "0.24.1",
            "torchaudio": "2.9.1",
            "numpy": "2.1.0",
            "triton": "3.5.1",
        },
        "requires": {"torch": ['triton==3.5.1; platform_system == "Linux"'], "torchvision": ["torch==2.9.1"]},
        "torch_installations": ["/venv/lib/python3.12/site-packages/torch"],
        "torch_on_path": ["/venv/lib/python3.12/site-packages/torch"],
    },
    "shadowing": {"folder": "/project", "files": []},
    "environment": {"variables": {}},
    "limits": {
        "cpus": 16,
        "usable_cpus": 16,
        "start_method": "fork",
        "open_files": 65536,
        "open_files_most": 65536,
        "shared_memory": 64 << 30,
        "shared_memory_free": 60 << 30,
    },
    "driver": {
        "nvidia_devices": ["nvidia0"],
        "nvidia_smi": [["NVIDIA H200", "570.86.15", "143771", "3", "9.0"]],
        "driver_cuda": "12.8",
        "amd": False,
    },
    "compiler": {"looked_for": ["g++", "clang++"], "found": "g++", "version": "g++ 13.2", "works": True, "said": ""},
    "torch": {
        "version": "2.9.1+cu128",
        "file": "/venv/lib/python3.12/site-packages/torch",
        "cuda": "12.8",
        "hip": None,
        "xpu": None,
        "mps_built": False,
        "debug": False,
        "threads": 16,
    },
    "cpu": {"result": 6.0},
    "numpy": {"installed": True, "version": "2.1.0", "works": True},
    "cuda": {
        "available": True,
        "arch_list": ["sm_75", "sm_80", "sm_90", "sm_100", "sm_120"],
        "devices": [
            {
                "name": "NVIDIA H200",
                "capability": [9, 0],
                "memory": 140 << 30,
                "memory_free": 139 << 30,
                "result": 6.0,
            }
        ],
    },
    "cudnn": {"version": 91002, "enabled": True, "convolution": [2, 4, 8, 8]},
    "other_devices": {},
    "triton": {"installed": True, "version": "3.5.1"},
    "companions": {"torchvision": {"version": "0.24.1"}, "torchaudio": {"version": "2.9.1"}},
    "onnx": {
        "onnx": {"version": "1.19.0"},
        "onnxscript": {"version": "0.5.4"},
        "onnxruntime": {"version": "1.23.0"},
    },
    "loader": {"workers": 2, "result": 6.0, "seconds": 0.2},
}


def machine(**changes: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The sound machine with some facts changed; a look given ``error`` has nothing else."""
    facts = copy.deepcopy(SOUND)
    for name, change in changes.items():
        facts[name] = change if "error" in change and "kind" in change else {**facts[name], **change}
    return facts


def wrong(facts: dict[str, dict[str, Any]]) -> list[Line]:
    return [line for line in judge(facts) if line.status == "problem"]


# --------------------------------------------------------------------------------------------- machines not here


def test_nothing_is_wrong_with_a_sound_machine() -> None:
    lines = list(judge(SOUND))
    assert [line for line in lines if line.status != "ok"] == []
    assert "cuda:0 NVIDIA H200, capability 9.0, 139.0 GiB of 140.0 GiB free" in " ".join(line.seen for line in lines)


FAULTS = {
    "32 bits": (machine(python={"bits": 32}), "python", "64-bit"),
    "a file named torch.py": (machine(shadowing={"files": ["/project/torch.py"]}), "shadowing", "rename it"),
    "torch twice": (
        machine(packages={"torch_on_path": ["/home/ada/pytorch/torch"]}),
        "duplicates",
        "uninstall all",
    ),
    "torch for the CPU beside a GPU": (
        machine(torch={"version": "2.9.1+cpu", "cuda": None}, cuda={"devices": [], "available": False}),
        "driver",
        "--index-url",
    ),
    "a driver older than CUDA": (machine(driver={"driver_cuda": "11.4"}), "driver", "update the driver"),
    "no driver": (
        machine(driver={"nvidia_smi": None, "nvidia_devices": []}, cuda={"devices": [], "available": False}),
        "driver",
        "install the NVIDIA driver",
    ),
    "no driver in a container": (
        machine(python={"container": True}, driver={"nvidia_smi": None, "nvidia_devices": []}, cuda={"devices": []}),
        "driver",
        "--gpus all",
    ),
    "a driver that does not answer": (machine(driver={"nvidia_smi": None}), "driver", "reload the driver"),
    "hidden GPUs": (
        machine(cuda={"devices": []}, environment={"variables": {"CUDA_VISIBLE_DEVICES": ""}}),
        "cuda",
        "CUDA_VISIBLE_DEVICES='' hides them",
    ),
    "CUDA does not start": (
        machine(cuda={"error": "RuntimeError: CUDA unknown error", "devices": []}),
        "cuda",
        "nvidia_uvm",
    ),
    "CUDA kills the process": (
        machine(cuda={"error": "the process was killed by SIGSEGV", "kind": "crash"}),
        "cuda",
        "dmesg",
    ),
    "a GPU newer than the build": (
        machine(
            cuda={
                "arch_list": ["sm_80", "sm_90"],
                "devices": [
                    {
                        "name": "NVIDIA RTX 5090",
                        "capability": [12, 0],
                        "memory": 32 << 30,
                        "memory_free": 31 << 30,
                        "error": "RuntimeError: CUDA error: no kernel image is available for execution on the device",
                    }
                ],
            }
        ),
        "cuda:0",
        "newer torch",
    ),
    "a GPU that computes wrongly": (
        machine(
            cuda={
                "devices": [
                    {"name": "X", "capability": [9, 0], "memory": 8 << 30, "memory_free": 8 << 30, "result": 5.0}
                ]
            }
        ),
        "cuda:0",
        "test the GPU",
    ),
    "cuDNN fails": (
        machine(cudnn={"error": "RuntimeError: cuDNN error: CUDNN_STATUS_NOT_INITIALIZED", "kind": "RuntimeError"}),
        "cudnn",
        "LD_LIBRARY_PATH",
    ),
    "NumPy 2 under an old torch": (
        machine(
            torch={"version": "2.2.2+cu121", "cuda": "12.1"},
            packages={"versions": {"torch": "2.2.2+cu121", "numpy": "2.1.0"}},
            numpy={"error": "RuntimeError: Numpy is not available", "kind": "RuntimeError"},
        ),
        "numpy",
        "numpy<2",
    ),
    "a module compiled for NumPy 1": (
        machine(torch={"noted": "a module that was compiled using NumPy 1.x"}),
        "numpy",
        "numpy<2",
    ),
    "torchvision of another torch": (
        machine(packages={"requires": {"torchvision": ["torch==2.8.0"]}}),
        "torchvision",
        "in one command",
    ),
    "torchvision of another torch by its number": (
        machine(
            packages={"versions": {"torch": "2.9.1", "torchvision": "0.20.0", "numpy": "2.1.0"}, "requires": {}},
        ),
        "torchvision",
        "in one command",
    ),
    "torchvision does not load": (
        machine(companions={"torchvision": {"error": "RuntimeError: operator torchvision::nms does not exist"}}),
        "torchvision",
        "reinstall torch and torchvision",
    ),
    "triton of another torch": (machine(triton={"version": "2.1.0"}), "triton", "triton==3.5.1"),
    "64 MB of shared memory": (
        machine(limits={"shared_memory": 64 << 20, "shared_memory_free": 64 << 20}),
        "shared memory",
        "--shm-size",
    ),
    "few open files": (machine(limits={"open_files": 256}), "open files", "ulimit -n 65536"),
    "workers that fail": (
        machine(loader={"error": "the process was killed by SIGBUS", "kind": "crash"}),
        "workers",
        "num_workers=0",
    ),
    "workers that hang": (
        machine(loader={"error": "took longer than 60 s", "kind": "hang"}),
        "workers",
        "shared memory",
    ),
    "no torch": (
        machine(
            torch={"error": "ModuleNotFoundError: No module named 'torch'", "kind": "ModuleNotFoundError"},
            packages={"versions": {}},
        ),
        "torch",
        "pip install torch",
    ),
    "torch that does not load": (
        machine(
            torch={
                "error": "ImportError: libcublas.so.12: cannot open shared object file",
                "kind": "ImportError",
            }
        ),
        "torch",
        "LD_LIBRARY_PATH",
    ),
    "a DLL that is missing": (
        machine(torch={"error": 'OSError: [WinError 126] Error loading "c10.dll"', "kind": "OSError"}),
        "torch",
        "Visual C++",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_told_with_its_remedy(fault: str) -> None:
    facts, check, remedy = FAULTS[fault]
    found = [line for line in wrong(facts) if line.check == check]
    assert found, [*judge(facts)]
    assert remedy in found[0].remedy
    assert found[0].problem


@pytest.mark.parametrize("fault", ["a driver older than CUDA", "64 MB of shared memory", "torch twice"])
def test_one_fault_is_one_line(fault: str) -> None:
    assert len(wrong(FAULTS[fault][0])) == 1


NOTES = {
    "no compiler": (machine(compiler={"found": None}), "compiler"),
    "a compiler without OpenMP": (machine(compiler={"works": False, "said": "fatal error: omp.h"}), "compiler"),
    "no triton": (machine(triton={"installed": False}), "triton"),
    "no onnxscript": (machine(onnx={"onnxscript": None}), "onnx"),
    "spawn": (machine(limits={"start_method": "spawn"}), "start method"),
    "1024 open files": (machine(limits={"open_files": 1024}), "open files"),
    "blocking launches": (machine(environment={"variables": {"CUDA_LAUNCH_BLOCKING": "1"}}), "environment"),
    "a rank left behind": (machine(environment={"variables": {"RANK": "0"}}), "environment"),
    "no environment": (machine(python={"virtual": False}), "python"),
}


@pytest.mark.parametrize("note", NOTES)
def test_what_matters_to_some_programs_is_a_note(note: str) -> None:
    facts, check = NOTES[note]
    assert [line.check for line in judge(facts) if line.status == "note"] == [check]
    assert not wrong(facts)


def test_a_variable_that_changes_nothing_is_not_mentioned() -> None:
    facts = machine(environment={"variables": {"CUDA_LAUNCH_BLOCKING": "0", "OMP_NUM_THREADS": "8"}})
    assert all(line.status == "ok" for line in judge(facts))


@pytest.mark.parametrize("name", CHECKS)
def test_any_look_may_fail_and_the_others_are_judged(name: str) -> None:
    for kind in ("crash", "hang", "RuntimeError"):
        lines = list(judge(machine(**{name: {"error": "something", "kind": kind}})))
        assert len(lines) > 5
    assert list(judge({key: value for key, value in SOUND.items() if key != name}))


# --------------------------------------------------------------------------------------------- real interpreters


@pytest.mark.torch
def test_the_present_interpreter_is_examined() -> None:
    import torch

    examination = examine(sys.executable)
    assert examination.facts.keys() == CHECKS.keys()
    assert examination.facts["torch"]["version"] == torch.__version__
    assert examination.facts["cpu"]["result"] == 6.0
    assert examination.facts["numpy"]["works"] is True
    assert examination.facts["loader"]["result"] == 6.0
    assert {"python", "torch", "cpu", "numpy", "workers"} <= {line.check for line in examination.lines}


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter without torch."""
    folder = tmp_path_factory.mktemp("bare") / "env"
    venv.create(folder, with_pip=False)
    return folder


def test_an_interpreter_without_torch_is_told_so(bare: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--python", str(bare)]) == 1
    out = capsys.readouterr().out
    assert "WRONG  torch: not installed in this interpreter" in out
    assert "pip install torch" in out
    assert "1 thing will go wrong" in out


def test_an_interpreter_that_is_none_is_told_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho cannot run >&2\nexit 3\n")
    broken.chmod(broken.stat().st_mode | stat.S_IXUSR)
    for python in (str(broken), str(tmp_path / "nowhere")):
        assert main(["doctor", "--python", python]) == 1
        out = capsys.readouterr().out
        assert out.startswith("WRONG  python")
        assert "Traceback" not in out
    assert main(["doctor", "--python", str(broken)]) == 1
    assert "ended with exit code 3: cannot run" in capsys.readouterr().out


def torch_that(does: str, bare: Path, tmp_path: Path) -> tuple[str, dict[str, str]]:
    """An interpreter whose torch is a file that does something else, and the environment to find it."""
    package = tmp_path / "packages/torch"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(does)
    return str(bare / "bin/python"), {"PYTHONPATH": str(tmp_path / "packages")}


@pytest.mark.parametrize(
    ("does", "said"),
    [
        pytest.param("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n", "killed by SIGSEGV", id="crashes"),
        pytest.param("import time\ntime.sleep(60)\n", "took longer than", id="hangs"),
        pytest.param("import sys\nsys.exit(5)\n", "SystemExit: 5", id="exits"),
        pytest.param("raise ImportError('libcudart.so.12: cannot open')\n", "libcudart.so.12", id="fails"),
        pytest.param("import os\nos._exit(7)\n", "ended with exit code 7", id="ends the process"),
    ],
)
def test_whatever_importing_torch_does_the_others_are_looked_at(
    does: str, said: str, bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python, environment = torch_that(does, bare, tmp_path)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    found = dict(look(python, timeout=1.0 if "sleep" in does else 20.0))
    assert said in found["torch"]["error"]
    assert found["limits"]["cpus"]
    assert found["onnx"] == {}
    assert "torch" in {line.check for line in judge(found) if line.status == "problem"}


def test_what_packages_print_does_not_disturb(bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python, environment = torch_that("print('{\"done\": true}')\nraise ImportError('no')\n", bare, tmp_path)
    monkeypatch.setenv("PYTHONPATH", environment["PYTHONPATH"])
    assert dict(look(python, timeout=20.0)).keys() == CHECKS.keys()


def test_a_file_that_stands_in_the_way_is_found(bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "torch.py").write_text("")
    monkeypatch.chdir(tmp_path)
    found = [line for line in examine(str(bare / "bin/python")).lines if line.check == "shadowing"]
    assert str(tmp_path / "torch.py") in found[0].seen


def test_the_projects_environment_is_taken(
    bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / ".venv").symlink_to(bare)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    main(["doctor", "--output-format", "json"])
    report = json.loads(capsys.readouterr().out)
    assert Path(report["facts"]["python"]["executable"]).parent.parent.name in (".venv", "env")
    assert report["problems"] == 1


@pytest.mark.parametrize("version", ["3.8", "3.9"])
def test_the_worker_runs_on_old_pythons(version: str) -> None:
    """Projects with an old torch have an old Python; torchlint's own is newer."""
    worker = Path(sys.modules["torchlint.catalogue.doctor_worker"].__file__ or "")
    source = worker.read_text()
    major, minor = map(int, version.split("."))
    compile(source, str(worker), "exec", dont_inherit=True, flags=0)
    import ast

    ast.parse(source, feature_version=(major, minor))
    assert "removeprefix" not in source
    assert "removesuffix" not in source


def test_a_time_limit_must_be_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--timeout", "0"]) == 2


# ------------------------------------------------------------------------------------------------------- privacy


def test_what_is_private_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.setenv("USER", "ada")
    monkeypatch.setenv("LOGNAME", "ada")
    facts = {
        "file": "/home/ada/project/.venv/lib/torch",
        "path": ["/home/ada:/data/ada/x", "/home/grace/shared", "/Users/grace/env"],
        "windows": "C:\\Users\\Grace Hopper\\env\\python.exe",
        "kept": "canada /adam/ada.txt",
    }
    assert shortened(facts) == {
        "file": "~/project/.venv/lib/torch",
        "path": ["~:/data/<user>/x", "/home/<user>/shared", "/Users/<user>/env"],
        "windows": "C:\\Users\\<user>\\env\\python.exe",
        "kept": "canada /adam/ada.txt",
    }


def test_a_report_names_no_user(
    bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "packages"))
    main(["doctor", "--python", str(bare), "--output-format", "json"])
    out = capsys.readouterr().out
    assert str(tmp_path) not in out
    assert "~/packages" in out


def test_only_known_variables_are_told() -> None:
    done = subprocess.run(
        [sys.executable, str(Path(sys.modules["torchlint.catalogue.doctor_worker"].__file__ or "")), "environment"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "SECRET_TOKEN": "hunter2", "CUDA_VISIBLE_DEVICES": "1"},
    )
    assert "hunter2" not in done.stdout
    assert '"CUDA_VISIBLE_DEVICES": "1"' in done.stdout
    assert {"CUDA_VISIBLE_DEVICES", "PYTORCH_CUDA_ALLOC_CONF", "OMP_NUM_THREADS"} <= set(VARIABLES.split())
    assert "torch" in SHADOWING.split()
