"""What there is, told by the project's own interpreter: run by path, imports only the standard library and torch.

Each look at something is a function that returns facts; it is announced before it runs, so that the process that
started this one knows what a crash or a hang was in. Facts are written as lines of JSON to a copy of standard output;
whatever the imported packages print goes to standard error. Nothing is judged here.

Runs on Python 3.8 and later.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import json
import os
import platform
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    Facts = dict[str, Any]

PACKAGES = """
    torch torchvision torchaudio torchtext triton pytorch-triton pytorch-triton-rocm triton-windows numpy
    onnx onnxscript onnxruntime onnxruntime-gpu lightning pytorch-lightning accelerate xformers
    nvidia-cudnn-cu11 nvidia-cudnn-cu12 nvidia-cudnn-cu13 nvidia-nccl-cu11 nvidia-nccl-cu12 nvidia-nccl-cu13
"""

VARIABLES = """
    CUDA_VISIBLE_DEVICES CUDA_LAUNCH_BLOCKING CUDA_HOME CUDA_PATH CUDA_DEVICE_ORDER CUDA_MODULE_LOADING
    PYTORCH_CUDA_ALLOC_CONF PYTORCH_ALLOC_CONF PYTORCH_NO_CUDA_MEMORY_CACHING PYTORCH_NVML_BASED_CUDA_CHECK
    PYTORCH_ENABLE_MPS_FALLBACK PYTORCH_MPS_HIGH_WATERMARK_RATIO PYTORCH_JIT TORCH_HOME TORCH_LOGS
    TORCH_COMPILE_DISABLE TORCHDYNAMO_DISABLE TORCHINDUCTOR_CACHE_DIR TORCH_EXTENSIONS_DIR TORCH_CUDA_ARCH_LIST
    TORCH_USE_CUDA_DSA TORCH_SHOW_CPP_STACKTRACES TORCH_DISTRIBUTED_DEBUG TORCH_FORCE_WEIGHTS_ONLY_LOAD
    TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD TORCH_ALLOW_TF32_CUBLAS_OVERRIDE NVIDIA_TF32_OVERRIDE CUBLAS_WORKSPACE_CONFIG
    NCCL_DEBUG NCCL_P2P_DISABLE NCCL_IB_DISABLE NCCL_SOCKET_IFNAME NCCL_TIMEOUT MASTER_ADDR MASTER_PORT
    RANK LOCAL_RANK WORLD_SIZE OMP_NUM_THREADS MKL_NUM_THREADS OPENBLAS_NUM_THREADS KMP_DUPLICATE_LIB_OK
    MKL_THREADING_LAYER HIP_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES HSA_OVERRIDE_GFX_VERSION LD_LIBRARY_PATH
    LD_PRELOAD DYLD_LIBRARY_PATH PYTHONPATH PYTHONHOME PYTHONNOUSERSITE CXX CC
"""

SHADOWING = """
    torch torchvision torchaudio numpy triton onnx random types typing copy queue io logging inspect dataclasses enum
    collections functools operator pickle select signal socket string struct tempfile threading time token tokenize
    traceback warnings code ast abc
"""
"""Modules that torch imports: a file of that name in the folder that programs run from is found in their stead."""


# ------------------------------------------------------------------------------------------- what needs no torch


def python() -> Facts:
    return {
        "version": platform.python_version(),
        "implementation": platform.python_implementation(),
        "bits": struct.calcsize("P") * 8,
        "executable": sys.executable,
        "prefix": sys.prefix,
        "virtual": sys.prefix != sys.base_prefix or "CONDA_PREFIX" in os.environ,
        "system": platform.system(),
        "release": platform.release(),
        "machine": platform.machine(),
        "wsl": "microsoft" in platform.release().lower(),
        "container": Path("/.dockerenv").exists() or Path("/run/.containerenv").exists(),
    }


def packages() -> Facts:
    from importlib import metadata

    versions: dict[str, str] = {}
    requires: dict[str, list[str]] = {}
    for name in PACKAGES.split():
        try:
            found = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        versions[name] = found.version
        if name in ("torchvision", "torchaudio", "torch"):
            lines = found.requires or []
            requires[name] = [line for line in lines if line.startswith(("torch", "triton", "pytorch-triton"))]
    places = [
        found.locate_file("torch")
        for found in metadata.distributions()
        if (found.metadata["Name"] or "").lower() == "torch"
    ]
    folders = [Path(entry or Path.cwd(), "torch") for entry in sys.path]
    return {
        "versions": versions,
        "requires": requires,
        "torch_installations": sorted({str(Path(str(place)).resolve()) for place in places}),
        "torch_on_path": sorted({str(folder.resolve()) for folder in folders if (folder / "__init__.py").is_file()}),
    }


def shadowing() -> Facts:
    here = Path.cwd()
    files = [path for name in SHADOWING.split() for path in (here / f"{name}.py", here / name / "__init__.py")]
    return {
        "folder": str(here),
        "files": [str(path) for path in files if path.is_file() and "site-packages" not in str(path)],
    }


def environment() -> Facts:
    return {"variables": {name: os.environ[name] for name in VARIABLES.split() if name in os.environ}}


def limits() -> Facts:
    import multiprocessing

    facts: Facts = {"cpus": os.cpu_count(), "start_method": multiprocessing.get_start_method(allow_none=False)}
    if hasattr(os, "sched_getaffinity"):
        facts["usable_cpus"] = len(os.sched_getaffinity(0))
    try:
        import resource

        facts["open_files"], facts["open_files_most"] = resource.getrlimit(resource.RLIMIT_NOFILE)
    except ImportError:
        pass
    if Path("/dev/shm").is_dir():
        space = os.statvfs("/dev/shm")
        facts["shared_memory"] = space.f_blocks * space.f_frsize
        facts["shared_memory_free"] = space.f_bavail * space.f_frsize
    return facts


def driver() -> Facts:
    facts: Facts = {"nvidia_devices": sorted(path.name for path in Path("/dev").glob("nvidia[0-9]*"))}
    query = "--query-gpu=name,driver_version,memory.total,memory.used,compute_cap"
    listed = _output(["nvidia-smi", query, "--format=csv,noheader,nounits"])
    if listed is None:
        facts["nvidia_smi"] = None
    else:
        facts["nvidia_smi"] = [
            [cell.strip() for cell in line.split(",")] for line in listed.splitlines() if line.strip()
        ]
        text = _output(["nvidia-smi"]) or ""
        if "CUDA Version:" in text:
            facts["driver_cuda"] = text.split("CUDA Version:")[1].split()[0]
    module = Path("/proc/driver/nvidia/version")
    if module.exists():
        facts["kernel_module"] = module.read_text(encoding="utf-8", errors="replace").split("\n")[0]
    facts["amd"] = Path("/dev/kfd").exists()
    return facts


def compiler() -> Facts:
    names = [os.environ["CXX"]] if os.environ.get("CXX") else ["cl"] if os.name == "nt" else ["g++", "clang++"]
    found = next((name for name in names if shutil.which(name.split()[0])), None)
    facts: Facts = {"looked_for": names, "found": found}
    if found is None:
        return facts
    if os.name != "nt":
        facts["version"] = (_output([*found.split(), "--version"]) or "").split("\n")[0]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "tiny.cpp").write_text(_TINY, encoding="utf-8")
        flags = ["/nologo", "/openmp", "/LD"] if os.name == "nt" else ["-shared", "-fPIC", "-fopenmp", "-o", "tiny.so"]
        command = [*found.split(), "tiny.cpp", *flags]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", cwd=folder)
        facts["works"] = done.returncode == 0
        facts["said"] = (done.stdout + done.stderr).strip()[-400:] if done.returncode else ""
    return facts


_TINY = "#include <omp.h>\n#include <vector>\nint count() { return omp_get_max_threads(); }\n"


# ----------------------------------------------------------------------------------------------- what needs torch


def torch_import() -> Facts:
    torch = _module("torch")

    # Folders of several installations can be mixed on the path: what counts is what was imported.
    return {
        "version": torch.__version__,
        "file": str(Path(torch.__file__).parent),
        "cuda": torch.version.cuda,
        "hip": getattr(torch.version, "hip", None),
        "xpu": getattr(torch.version, "xpu", None),
        "mps_built": bool(getattr(torch.backends, "mps", None) and torch.backends.mps.is_built()),
        "debug": bool(torch.version.debug),
        "threads": torch.get_num_threads(),
    }


def numpy_bridge() -> Facts:
    try:
        numpy = _module("numpy")
    except ImportError:
        return {"installed": False}
    torch = _module("torch")

    back = torch.from_numpy(numpy.arange(3.0)).numpy()
    return {"installed": True, "version": numpy.__version__, "works": float(back.sum()) == 3.0}


def cpu() -> Facts:
    torch = _module("torch")

    return {"result": _computed(torch.device("cpu"))}


def cuda() -> Facts:
    torch = _module("torch")

    facts: Facts = {"available": torch.cuda.is_available(), "arch_list": [], "devices": []}
    if torch.version.cuda is None and getattr(torch.version, "hip", None) is None:
        return facts
    try:
        torch.cuda.init()
    except Exception as error:
        facts["error"] = _first_line(error)
        return facts
    facts["arch_list"] = torch.cuda.get_arch_list()
    for index in range(torch.cuda.device_count()):
        about = torch.cuda.get_device_properties(index)
        free, total = torch.cuda.mem_get_info(index)
        device: Facts = {
            "name": about.name,
            "capability": [about.major, about.minor],
            "memory": total,
            "memory_free": free,
        }
        try:
            device["result"] = _computed(torch.device("cuda", index))
        except Exception as error:
            device["error"] = _first_line(error)
        facts["devices"].append(device)
    return facts


def cudnn() -> Facts:
    torch = _module("torch")

    facts: Facts = {"version": torch.backends.cudnn.version(), "enabled": torch.backends.cudnn.enabled}
    if torch.cuda.is_available():
        layer = torch.nn.Conv2d(3, 4, 3, padding=1).cuda()
        output = layer(torch.ones(2, 3, 8, 8, device="cuda"))
        output.sum().backward()
        torch.cuda.synchronize()
        facts["convolution"] = list(output.shape)
    return facts


def other_devices() -> Facts:
    torch = _module("torch")

    facts: Facts = {}
    for name in ("mps", "xpu"):
        backend = getattr(torch, name, None) if name == "xpu" else getattr(torch.backends, name, None)
        if backend is not None and backend.is_available():
            try:
                facts[name] = {"result": _computed(torch.device(name))}
            except Exception as error:
                facts[name] = {"error": _first_line(error)}
    return facts


def triton() -> Facts:
    try:
        module = _module("triton")
    except ImportError:
        return {"installed": False}
    return {"installed": True, "version": module.__version__}


def companions() -> Facts:
    """torchvision and torchaudio: whether they load, and whether their operators are there."""
    facts: Facts = {}
    if importlib.util.find_spec("torchvision"):
        facts["torchvision"] = _trial(_torchvision)
    if importlib.util.find_spec("torchaudio"):
        facts["torchaudio"] = _trial(lambda: str(_module("torchaudio").__version__))
    return facts


def _torchvision() -> str:
    torch = _module("torch")
    torchvision = _module("torchvision")

    torchvision.ops.nms(torch.tensor([[0.0, 0.0, 1.0, 1.0]]), torch.tensor([0.5]), 0.5)
    return str(torchvision.__version__)


def onnx() -> Facts:
    names = [name for name in ("onnx", "onnxscript", "onnxruntime") if importlib.util.find_spec(name)]
    return {name: _trial(functools.partial(_version, name)) for name in names}


def _version(name: str) -> str:
    return str(getattr(_module(name), "__version__", ""))


class Samples:
    """A data set for the trial of workers: four samples of a megabyte."""

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> Any:
        import torch

        return torch.full((1 << 18,), float(index))


def loader() -> Facts:
    begun = time.perf_counter()
    batches = _module("torch.utils.data").DataLoader(Samples(), batch_size=2, num_workers=2)
    total = sum(float(batch[:, 0].sum()) for batch in batches)
    return {"workers": 2, "result": total, "seconds": round(time.perf_counter() - begun, 1)}


# ------------------------------------------------------------------------------------------------------- running

CHECKS: dict[str, Callable[[], Facts]] = {
    "python": python,
    "packages": packages,
    "shadowing": shadowing,
    "environment": environment,
    "limits": limits,
    "driver": driver,
    "compiler": compiler,
    "torch": torch_import,
    "cpu": cpu,
    "numpy": numpy_bridge,
    "cuda": cuda,
    "cudnn": cudnn,
    "other_devices": other_devices,
    "triton": triton,
    "companions": companions,
    "onnx": onnx,
    "loader": loader,
}


def _module(name: str) -> Any:
    return importlib.import_module(name)


def _computed(device: Any) -> float:
    """A small product on a device; 6.0 if it computes rightly."""
    torch = _module("torch")

    return float((torch.ones(2, 3, device=device) @ torch.ones(3, 1, device=device)).sum().item())


def _trial(attempt: Callable[[], str]) -> Facts:
    try:
        return {"version": attempt()}
    except Exception as error:
        return {"error": _first_line(error)}


def _first_line(error: BaseException) -> str:
    text = str(error).strip()
    return "{}: {}".format(type(error).__name__, text.split("\n")[0][:300]) if text else type(error).__name__


def _output(command: list[str]) -> str | None:
    """What a program prints; None if there is no such program or it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=20)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout if done.returncode == 0 else None


def main(names: list[str]) -> None:
    """Run the named checks one after another and tell what each found."""
    events = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def tell(event: Facts) -> None:
        events.write(json.dumps(event) + "\n")
        events.flush()

    if sys.path and Path(sys.path[0]).resolve() == Path(__file__).resolve().parent:
        sys.path[0] = str(Path.cwd())  # as for a program that is started here
    for name in names:
        tell({"begin": name})
        try:
            tell({"end": name, "facts": CHECKS[name]()})
        except BaseException as error:  # an import may call sys.exit
            tell({"end": name, "error": _first_line(error), "kind": type(error).__name__})
    tell({"done": True})


if __name__ == "__main__":
    main(sys.argv[1:] or list(CHECKS))
