"""What the doctor's facts mean: each becomes a line that says what was seen, and what will go wrong and the remedy.

Facts come from ``doctor_worker``, by look; a look that failed has ``error`` and ``kind`` instead. A line is ``ok``,
``problem`` (something will go wrong), ``note`` (it matters to some programs only) or ``skipped``, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Facts = Mapping[str, Mapping[str, Any]]

MEGABYTE, GIGABYTE = 1 << 20, 1 << 30


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the diagnosis."""

    check: str
    status: str
    seen: str
    problem: str = ""
    remedy: str = ""


_Judge = Callable[[Facts], Iterator[Line]]
_JUDGES: list[_Judge] = []


def judge(facts: Facts) -> Iterator[Line]:
    """The diagnosis, line by line. Of an interpreter that does not start there is nothing else to say."""
    for each in _JUDGES if facts.get("python", {}).get("kind") != "start" else [_python]:
        yield from each(facts)


def _judges(judge: _Judge) -> _Judge:
    _JUDGES.append(judge)
    return judge


def _of(facts: Facts, name: str) -> Mapping[str, Any]:
    return facts.get(name, {"error": "was not reached", "kind": "missing"})


def _has_torch(facts: Facts) -> bool:
    return "version" in facts.get("torch", {})


def _size(count: float) -> str:
    return f"{count / GIGABYTE:.1f} GiB" if count >= GIGABYTE else f"{count / MEGABYTE:.0f} MiB"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version.split("+")[0])[:3])


# -------------------------------------------------------------------------------------------- interpreter, packages


@_judges
def _python(facts: Facts) -> Iterator[Line]:
    found = _of(facts, "python")
    if "error" in found:
        yield Line(
            "python",
            "problem",
            found["error"],
            "this interpreter runs nothing",
            "name another with --python, or make the environment anew",
        )
        return
    where = "WSL" if found["wsl"] else "a container" if found["container"] else found["system"]
    version = f"{found['implementation']} {found['version']}, {found['bits']} bits"
    seen = f"{version}, on {where} ({found['machine']}): {found['executable']}"
    if found["bits"] != 64:
        yield Line("python", "problem", seen, "torch exists for 64 bits only", "install a 64-bit Python")
    elif not found["virtual"] and not found["container"]:
        yield Line(
            "python",
            "note",
            seen,
            "no virtual environment: packages of all projects mix",
            "python -m venv .venv in the project",
        )
    else:
        yield Line("python", "ok", seen)


@_judges
def _shadowing(facts: Facts) -> Iterator[Line]:
    found = _of(facts, "shadowing")
    for path in found.get("files", ()):
        name = re.split(r"[\\/]", path.removesuffix("/__init__.py"))[-1].removesuffix(".py")
        yield Line(
            "shadowing",
            "problem",
            path,
            f"import {name} finds this file when a program runs from this folder, and torch fails in strange ways",
            "rename it, and delete its __pycache__",
        )


@_judges
def _torch(facts: Facts) -> Iterator[Line]:
    found = _of(facts, "torch")
    if "error" in found:
        yield _no_torch(facts, found)
        return
    built = "Metal" if found["mps_built"] else "the CPU"
    built = f"CUDA {found['cuda']}" if found["cuda"] else f"ROCm {found['hip']}" if found["hip"] else built
    seen = f"torch {found['version']}, built for {built}: {found['file']}"
    if found["debug"]:
        yield Line("torch", "note", seen, "a debug build, many times slower", "install a release")
    else:
        yield Line("torch", "ok", seen)


def _no_torch(facts: Facts, found: Mapping[str, Any]) -> Line:
    error, installed = found["error"], "torch" in facts.get("packages", {}).get("versions", {})
    if found.get("kind") in ("hang", "crash"):
        return Line("torch", "problem", f"import torch: {error}", "every program ends here", _remedy_of_import(error))
    if not installed and "No module named 'torch'" in error:
        remedy = "python -m pip install torch (pytorch.org/get-started/locally tells how), or --python PATH"
        version = _numbers(facts.get("python", {}).get("version", "0"))
        if version[:2] > (3, 14):
            remedy = f"there may be no wheel for Python {version[0]}.{version[1]} yet: use an older one"
        return Line("torch", "problem", "not installed in this interpreter", "import torch fails", remedy)
    return Line("torch", "problem", f"import torch: {error}", "every program ends here", _remedy_of_import(error))


_IMPORT_ERRORS = {
    r"partially initialized|circular import": "a file or folder of yours named torch is found first: rename it",
    r"libcud|libcublas|libcusparse|libnv|libnccl": (
        "CUDA libraries of another version come first: clear LD_LIBRARY_PATH, then pip install --force-reinstall torch"
    ),
    r"DLL|WinError 126|c10\.dll": "install the Microsoft Visual C++ redistributable, then reinstall torch",
    r"undefined symbol|Symbol not found": (
        "packages of two builds are mixed: reinstall torch, torchvision and torchaudio together"
    ),
    r"numpy|NumPy": "reinstall numpy in the version that this torch was built with (below 2 for torch before 2.3)",
    r"SIGILL|Illegal instruction": "this build needs a newer processor (AVX2): use an older torch, or build it",
    r"libgomp|libomp|OMP": "two OpenMP runtimes: remove one (conda and pip packages are mixed)",
}


def _remedy_of_import(error: str) -> str:
    known = (remedy for pattern, remedy in _IMPORT_ERRORS.items() if re.search(pattern, error))
    return next(known, "pip install --force-reinstall torch in a fresh environment")


@_judges
def _duplicates(facts: Facts) -> Iterator[Line]:
    found = _of(facts, "packages")
    places = {*found.get("torch_installations", ()), *found.get("torch_on_path", ())}
    if len(places) > 1:
        yield Line(
            "duplicates",
            "problem",
            f"torch is installed {len(places)} times: {', '.join(sorted(places))}",
            "which one is imported depends on the folder and on PYTHONPATH",
            "uninstall all (pip uninstall torch, again until none is left; conda remove pytorch), then install one",
        )


# ---------------------------------------------------------------------------------------------------------- devices


@_judges
def _driver(facts: Facts) -> Iterator[Line]:
    found, torch = _of(facts, "driver"), facts.get("torch", {})
    if "error" in found:
        yield Line("driver", "note", f"could not be asked: {found['error']}")
        return
    cards = found.get("nvidia_smi")
    if not cards:
        if found["nvidia_devices"]:
            yield Line(
                "driver",
                "problem",
                "an NVIDIA GPU is there, and nvidia-smi does not answer",
                "CUDA can't start",
                "install or reload the driver; a restart after a driver update helps against a version mismatch",
            )
        elif torch.get("cuda"):
            container = facts.get("python", {}).get("container")
            remedy = (
                "start the container with --gpus all"
                if container
                else "install the NVIDIA driver, or use the CPU build"
            )
            yield Line(
                "driver",
                "problem",
                "no NVIDIA driver, and torch is built for CUDA",
                "torch.cuda.is_available() is False",
                remedy,
            )
        elif found["amd"] and _has_torch(facts) and not torch.get("hip"):
            remedy = "install torch for ROCm: pytorch.org/get-started/locally has the command"
            yield Line(
                "driver", "note", "an AMD GPU, and torch is not built for ROCm", "every model runs on the CPU", remedy
            )
        else:
            yield Line("driver", "skipped", "an AMD GPU" if found["amd"] else "no NVIDIA GPU here")
        return
    version, supports = cards[0][1], found.get("driver_cuda", "")
    seen = f"driver {version}" + (f", good for CUDA {supports}" if supports else "")
    wanted = torch.get("cuda")
    if wanted and supports and _numbers(supports)[:1] < _numbers(wanted)[:1]:
        yield Line(
            "driver",
            "problem",
            seen,
            f"torch was built with CUDA {wanted}, which this driver is too old for",
            f"update the driver, or install torch for CUDA {_numbers(supports)[0]}",
        )
    elif wanted is None and _has_torch(facts) and not torch.get("hip"):
        yield Line(
            "driver",
            "problem",
            f"{seen}; torch is built for the CPU",
            "every model runs on the CPU, and .cuda() raises",
            "pip install --force-reinstall torch --index-url https://download.pytorch.org/whl/cu128",
        )
    else:
        yield Line("driver", "ok", seen)


@_judges
def _cuda(facts: Facts) -> Iterator[Line]:
    if not _has_torch(facts):
        return
    torch, found = facts["torch"], _of(facts, "cuda")
    if "kind" in found:
        yield Line(
            "cuda",
            "problem",
            f"starting CUDA: {found['error']}",
            "every program that uses the GPU ends here",
            "look at the driver's state with nvidia-smi and dmesg; a restart frees a GPU that hangs",
        )
        return
    if not torch.get("cuda") and not torch.get("hip"):
        yield Line("cuda", "skipped", "torch is not built for CUDA or ROCm")
        return
    if found.get("error"):
        yield Line(
            "cuda",
            "problem",
            f"starting CUDA: {found['error']}",
            "the GPU can't be used",
            _remedy_of_cuda(found["error"]),
        )
        return
    if not found["devices"]:
        hidden = facts.get("environment", {}).get("variables", {}).get("CUDA_VISIBLE_DEVICES")
        remedy = (
            f"CUDA_VISIBLE_DEVICES={hidden!r} hides them" if hidden is not None else "see the line about the driver"
        )
        yield Line("cuda", "problem", "no visible GPU", "torch.cuda.is_available() is False", remedy)
        return
    for index, device in enumerate(found["devices"]):
        yield _card(index, device, found["arch_list"])


def _card(index: int, device: Mapping[str, Any], arch_list: list[str]) -> Line:
    major, minor = device["capability"]
    seen = (
        f"cuda:{index} {device['name']}, capability {major}.{minor}, "
        f"{_size(device['memory_free'])} of {_size(device['memory'])} free"
    )
    check = f"cuda:{index}"
    if device.get("error"):
        built = [int(arch.split("_")[1].rstrip("af")) for arch in arch_list if re.fullmatch(r"sm_\d+[af]?", arch)]
        new = bool(built) and major * 10 + minor > max(built)
        remedy = (
            "install a newer torch, built for this GPU"
            if new or "kernel image" in device["error"]
            else _remedy_of_cuda(device["error"])
        )
        return Line(
            check,
            "problem",
            f"{seen}; a product of two tensors: {device['error']}",
            "nothing can be computed on it",
            remedy,
        )
    if device.get("result") != 6.0:
        return Line(
            check,
            "problem",
            f"{seen}; a product of two tensors gave {device.get('result')}, not 6.0",
            "results are wrong",
            "test the GPU",
        )
    if device["memory_free"] < 0.2 * device["memory"]:
        return Line(
            check,
            "note",
            seen,
            "most of its memory is taken by something else",
            "nvidia-smi lists the processes that hold it",
        )
    return Line(check, "ok", f"{seen}; a product was computed on it")


def _remedy_of_cuda(error: str) -> str:
    if "too old" in error or "insufficient" in error:
        return "update the driver, or install torch for an older CUDA"
    if "unknown error" in error or "initialization" in error:
        return "restart the machine or reload nvidia_uvm (sudo rmmod nvidia_uvm; sudo modprobe nvidia_uvm)"
    if "out of memory" in error:
        return "another process holds the memory: nvidia-smi lists them"
    if "busy" in error or "unavailable" in error:
        return "another process has the GPU for itself (compute mode exclusive)"
    return "torchlint explain knows this message"


@_judges
def _cudnn(facts: Facts) -> Iterator[Line]:
    if not _has_torch(facts):
        return
    found = _of(facts, "cudnn")
    if "error" in found:
        yield Line(
            "cudnn",
            "problem",
            f"a convolution through cuDNN: {found['error']}",
            "convolutions fail on the GPU",
            "another cuDNN comes first (LD_LIBRARY_PATH), or the memory is full; reinstall torch with its own cuDNN",
        )
    elif "convolution" in found:
        version = found["version"] or 0
        yield Line(
            "cudnn", "ok" if found["enabled"] else "note", f"cuDNN {version}; a convolution went through it and back"
        )
    else:
        yield Line("cudnn", "skipped", "no CUDA device to run a convolution on")


@_judges
def _other_devices(facts: Facts) -> Iterator[Line]:
    for name, found in facts.get("other_devices", {}).items():
        if not isinstance(found, Mapping):
            continue
        if found.get("result") == 6.0:
            yield Line(name, "ok", "a product was computed on it")
        else:
            yield Line(
                name,
                "problem",
                f"a product of two tensors: {found.get('error', found.get('result'))}",
                "nothing can be computed on it",
                "update the system and torch",
            )


@_judges
def _cpu(facts: Facts) -> Iterator[Line]:
    if not _has_torch(facts):
        return
    found = _of(facts, "cpu")
    if found.get("result") == 6.0:
        yield Line("cpu", "ok", f"a product was computed on it, {facts['torch']['threads']} threads")
    else:
        yield Line(
            "cpu",
            "problem",
            f"a product of two tensors: {found.get('error', found.get('result'))}",
            "nothing can be computed",
            "reinstall torch; this processor may lack instructions that it needs",
        )


# ------------------------------------------------------------------------------------------------- around torch


@_judges
def _numpy(facts: Facts) -> Iterator[Line]:
    if not _has_torch(facts):
        return
    found, noted = _of(facts, "numpy"), facts["torch"].get("noted")
    version = facts.get("packages", {}).get("versions", {}).get("numpy", "")
    if found.get("installed") is False:
        yield Line("numpy", "note", "not installed", "tensor.numpy() and torch.from_numpy raise", "pip install numpy")
    elif "error" in found or not found.get("works"):
        old = _numbers(version)[:1] >= (2,) and _numbers(facts["torch"]["version"])[:2] < (2, 3)
        remedy = (
            'pip install "numpy<2", or a newer torch' if old else "reinstall numpy and torch in a fresh environment"
        )
        yield Line(
            "numpy",
            "problem",
            f"numpy {version}: {found.get('error', 'the bridge gives wrong numbers')}",
            "torch.from_numpy and .numpy() fail, and with them most data loading",
            remedy,
        )
    elif noted:
        yield Line(
            "numpy",
            "problem",
            f"numpy {version} beside {noted}",
            "parts of it will crash",
            'pip install "numpy<2", or newer packages',
        )
    else:
        yield Line("numpy", "ok", f"numpy {found['version']}; arrays go to torch and back")


@_judges
def _companions(facts: Facts) -> Iterator[Line]:
    versions = facts.get("packages", {}).get("versions", {})
    requires = facts.get("packages", {}).get("requires", {})
    if not _has_torch(facts):
        return
    torch = str(facts["torch"]["version"])
    loaded = facts.get("companions", {})
    for name in ("torchvision", "torchaudio"):
        if name not in versions:
            continue
        wanted = _wanted_torch(name, versions[name], requires.get(name, []))
        error = str(loaded["error"] if "kind" in loaded else loaded.get(name, {}).get("error", ""))
        seen = f"{name} {versions[name]}"
        if wanted and not _belongs(torch, wanted):
            yield Line(
                name,
                "problem",
                f"{seen} belongs to torch {wanted}, and torch {torch.split('+')[0]} is here",
                error or "its operators are missing or crash",
                f"pip install --upgrade torch {name} in one command, from one index",
            )
        elif error:
            yield Line(
                name, "problem", f"{seen}: {error}", "it can't be used", f"reinstall torch and {name} in one command"
            )
        else:
            yield Line(name, "ok", f"{seen} belongs to this torch")


def _wanted_torch(name: str, version: str, requires: list[str]) -> str:
    """The torch that a companion belongs to: as it says itself, else by the two projects' numbering."""
    for line in requires:
        pinned = re.match(r"torch\s*\(?==\s*([\d.]+)", line)
        if pinned:
            return pinned[1]
    major, minor, *_ = (*_numbers(version), 0, 0)
    if name == "torchaudio":
        return f"{major}.{minor}" if major >= 2 else f"1.{minor}" if minor >= 8 else ""
    if (major, minor) >= (0, 15):
        return f"2.{minor - 15}"
    return f"1.{minor - 1}" if minor >= 7 else ""


def _belongs(torch: str, wanted: str) -> bool:
    parts = len(wanted.split("."))
    return _numbers(torch)[:parts] == _numbers(wanted)[:parts]


@_judges
def _compiler(facts: Facts) -> Iterator[Line]:
    found = _of(facts, "compiler")
    system = facts.get("python", {}).get("system", "")
    install = {
        "Windows": "install the Visual Studio build tools and run from their prompt",
        "Darwin": "xcode-select --install, brew install libomp",
    }.get(system, "apt-get install g++ (or your system's package)")
    if "error" in found:
        yield Line("compiler", "note", f"could not be tried: {found['error']}")
    elif not found["found"]:
        yield Line(
            "compiler",
            "note",
            f"none of {', '.join(found['looked_for'])} is here",
            "torch.compile on the CPU and C++ extensions fail",
            install,
        )
    elif not found["works"]:
        said = found["said"].split("\n")[0]
        yield Line(
            "compiler",
            "note",
            f"{found['found']} does not compile a small OpenMP program: {said}",
            "torch.compile on the CPU and C++ extensions fail",
            install,
        )
    else:
        yield Line("compiler", "ok", f"{found['version'] or found['found']}; it compiles")


@_judges
def _triton(facts: Facts) -> Iterator[Line]:
    if not _has_torch(facts):
        return
    found, torch = _of(facts, "triton"), facts["torch"]
    gpu = bool(facts.get("cuda", {}).get("devices"))
    pinned = next(
        (
            match[1]
            for line in facts.get("packages", {}).get("requires", {}).get("torch", [])
            if (match := re.match(r"(?:pytorch-)?triton\s*\(?==\s*([\d.]+)", line))
        ),
        "",
    )
    if found.get("installed"):
        if pinned and not str(found["version"]).startswith(pinned):
            yield Line(
                "triton",
                "problem",
                f"triton {found['version']}, and torch {torch['version']} needs {pinned}",
                "torch.compile fails on the GPU",
                f"pip install triton=={pinned}",
            )
        else:
            yield Line("triton", "ok", f"triton {found['version']}")
    elif gpu:
        windows = facts.get("python", {}).get("system") == "Windows"
        yield Line(
            "triton",
            "note",
            "not installed",
            "torch.compile fails on the GPU",
            "pip install triton-windows" if windows else f"pip install triton{'==' + pinned if pinned else ''}",
        )
    else:
        yield Line("triton", "skipped", "no GPU that would need it")


@_judges
def _onnx(facts: Facts) -> Iterator[Line]:
    found, versions = facts.get("onnx", {}), facts.get("packages", {}).get("versions", {})
    if not _has_torch(facts):
        return
    if "kind" in found:
        yield Line(
            "onnx",
            "problem",
            f"import: {found['error']}",
            "ONNX export and inference end here",
            "reinstall onnx packages",
        )
        return
    missing = []
    for name in ("onnx", "onnxscript", "onnxruntime"):
        about = found.get(name)
        if about is None:
            missing.append(name)
        elif "error" in about:
            yield Line(
                name,
                "problem",
                f"{name}: {about['error']}",
                "it can't be used",
                f"pip install --force-reinstall {name}",
            )
        else:
            yield Line(name, "ok", f"{name} {about['version'] or versions.get(name, '')}")
    if missing:
        needed = [name for name in missing if name != "onnxruntime"]
        export = _numbers(str(facts["torch"]["version"]))[:2] >= (2, 9) and needed
        yield Line(
            "onnx",
            "note",
            f"not installed: {', '.join(missing)}",
            "torch.onnx.export fails" if export else "ONNX models can't be made or run here",
            f"pip install {' '.join(needed or missing)} (only if you export to ONNX)",
        )


# -------------------------------------------------------------------------------------------------------- the system


@_judges
def _limits(facts: Facts) -> Iterator[Line]:
    found = _of(facts, "limits")
    if "error" in found:
        yield Line("limits", "note", f"could not be asked: {found['error']}")
        return
    if "shared_memory" in found:
        yield _shared_memory(found["shared_memory"], found["shared_memory_free"])
    if "open_files" in found:
        yield _open_files(found["open_files"], found["open_files_most"])
    method = found["start_method"]
    cpus = found.get("usable_cpus") or found.get("cpus")
    if method == "fork":
        yield Line("start method", "ok", f"fork, {cpus} processors: workers are copies of the program")
    else:
        yield Line(
            "start method",
            "note",
            f"{method}, {cpus} processors: workers import the program anew",
            "programs with num_workers > 0 need an if __name__ == '__main__' guard, and a Dataset may hold no lambda",
            "torchlint check --select TL501,TL507 finds such places",
        )


def _open_files(allowed: int, most: int) -> Line:
    if not 0 <= allowed < 4096:
        return Line("open files", "ok", f"{allowed} open files allowed" if allowed >= 0 else "any number of open files")
    seen, remedy = f"{allowed} open files allowed", f"ulimit -n {min(most, 65536) if most > allowed else 65536}"
    if allowed < 1024:
        problem = "DataLoader workers fail with 'Too many open files'"
        remedy += ", or torch.multiprocessing.set_sharing_strategy('file_system')"
        return Line("open files", "problem", seen, problem, remedy)
    return Line("open files", "note", seen, "programs that keep tensors from many workers run out of them", remedy)


def _shared_memory(total: int, free: int) -> Line:
    seen = f"/dev/shm holds {_size(total)}, {_size(free)} free"
    remedy = "docker run --shm-size=8g (or --ipc=host); in Kubernetes mount an emptyDir with medium: Memory at /dev/shm"
    if total <= 64 * MEGABYTE:
        problem = (
            "DataLoader workers die with 'Bus error' as soon as their batches exceed it, as a few batches of images do"
        )
        return Line("shared memory", "problem", seen, problem, remedy)
    if free < 256 * MEGABYTE:
        return Line(
            "shared memory",
            "note",
            seen,
            "large batches from several workers won't fit",
            remedy + ", or delete stale /dev/shm/torch_*",
        )
    return Line("shared memory", "ok", seen)


@_judges
def _loader(facts: Facts) -> Iterator[Line]:
    if not _has_torch(facts):
        return
    found = _of(facts, "loader")
    if found.get("result") == 6.0:
        yield Line(
            "workers", "ok", f"a DataLoader with {found['workers']} workers gave its batches in {found['seconds']} s"
        )
    else:
        yield Line(
            "workers",
            "problem",
            f"a DataLoader with 2 workers: {found.get('error', found.get('result'))}",
            "every DataLoader with num_workers > 0 fails",
            "see the lines about shared memory and open files; num_workers=0 avoids it",
        )


_MEANINGS: dict[str, tuple[str, str, str]] = {
    # variable: (value it matters for, as a pattern; what it does; what to do)
    "CUDA_LAUNCH_BLOCKING": ("1", "every CUDA call waits: for debugging, much slower", "unset it for training"),
    "PYTORCH_NO_CUDA_MEMORY_CACHING": (".+", "torch asks the driver for every tensor: much slower", "unset it"),
    "CUDA_VISIBLE_DEVICES": (".*", "only these GPUs are seen, numbered from 0", ""),
    "HIP_VISIBLE_DEVICES": (".*", "only these GPUs are seen, numbered from 0", ""),
    "OMP_NUM_THREADS": (
        "1",
        "operations on the CPU use one thread (torchrun sets this)",
        "set it to the processors per process",
    ),
    "KMP_DUPLICATE_LIB_OK": (
        "(?i)true|1",
        "two OpenMP runtimes are loaded: results may be wrong",
        "remove one of them and unset it",
    ),
    "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": ("1|y|yes|true", "torch.load runs whatever code a file holds", "unset it"),
    "TORCH_COMPILE_DISABLE": ("1|true", "torch.compile does nothing", "unset it"),
    "TORCHDYNAMO_DISABLE": ("1|true", "torch.compile does nothing", "unset it"),
    "PYTORCH_JIT": ("0", "TorchScript is off", "unset it"),
    "NVIDIA_TF32_OVERRIDE": ("[01]", "float32 products are rounded, or not, whatever the program says", "unset it"),
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": ("1", "float32 products on the GPU are rounded to 10 bits", "unset it"),
    "NCCL_P2P_DISABLE": ("1", "GPUs talk through the host's memory: slower", "unset it if they can talk directly"),
    "HSA_OVERRIDE_GFX_VERSION": (".+", "ROCm takes the GPU for another model", ""),
    "PYTORCH_ENABLE_MPS_FALLBACK": ("1", "operations that Metal lacks run on the CPU, silently", ""),
    "PYTORCH_MPS_HIGH_WATERMARK_RATIO": (r"0(\.0)?", "Metal may take all memory and bring the system down", "unset it"),
    "TORCH_DISTRIBUTED_DEBUG": ("(?i)detail", "collectives are checked: slower", "unset it for training"),
    "LD_LIBRARY_PATH": (".+", "libraries found there come before torch's own", "clear it when CUDA or cuDNN misbehave"),
    "LD_PRELOAD": (".+", "this library is loaded before all others", ""),
    "DYLD_LIBRARY_PATH": (".+", "libraries found there come before torch's own", "clear it when torch does not load"),
    "PYTHONPATH": (
        ".+",
        "packages found there come before the environment's",
        "clear it when the wrong torch is imported",
    ),
    "PYTHONHOME": (".+", "Python's own library is taken from there", "unset it in a virtual environment"),
}


@_judges
def _environment(facts: Facts) -> Iterator[Line]:
    for name, value in facts.get("environment", {}).get("variables", {}).items():
        meaning = _MEANINGS.get(name)
        if meaning and re.fullmatch(meaning[0], value):
            yield Line("environment", "note", f"{name}={value}", meaning[1], meaning[2])
    alone = {"RANK", "WORLD_SIZE"} & facts.get("environment", {}).get("variables", {}).keys()
    if alone:
        yield Line(
            "environment",
            "note",
            f"{', '.join(sorted(alone))} set",
            "programs started here take themselves for one of several processes and wait for the others",
            "unset them outside torchrun",
        )
