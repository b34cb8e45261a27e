"""Every public path under which torch offers something, and the one by which torchlint calls it."""

from __future__ import annotations

import importlib
import sys
import types
import warnings
from collections.abc import Iterator
from typing import Any

import torch

# Imported so that their names are seen; none needs a device.
PACKAGES = (
    "torch.amp",
    "torch.ao.nn.intrinsic",
    "torch.ao.nn.qat",
    "torch.ao.nn.quantizable",
    "torch.ao.nn.quantized",
    "torch.cuda.amp",
    "torch.distributed.fsdp",
    "torch.distributed.optim",
    "torch.distributed.tensor",
    "torch.export",
    "torch.func",
    "torch.nn.attention",
    "torch.nn.intrinsic",
    "torch.nn.qat",
    "torch.nn.quantizable",
    "torch.nn.quantized",
    "torch.nn.utils.parametrizations",
    "torch.nn.utils.rnn",
    "torch.nn.utils.stateless",
    "torch.onnx",
    "torch.optim.swa_utils",
    "torch.utils.checkpoint",
    "torch.utils.data",
    "torch.utils.data.distributed",
    "torch.utils.tensorboard",
)
# Inner workings whose imports of other people's names are no aliases that anybody writes.
INNER = (
    "torch.ao.quantization",
    "torch.fx",
    "torch.utils.data.datapipes",
    "torch.distributions",
    "torch.onnx",
    "torch.testing",
)


def modules() -> dict[str, types.ModuleType]:
    """The loaded torch modules with a public path."""
    for name in PACKAGES:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                importlib.import_module(name)
            except ImportError as error:
                if name != "torch.utils.tensorboard":
                    raise RuntimeError(f"{name} can't be imported") from error
    return {
        name: module
        for name, module in sorted(sys.modules.items())
        if (name == "torch" or name.startswith("torch.")) and not any(part.startswith("_") for part in name.split("."))
    }


def offered() -> Iterator[tuple[str, Any]]:
    """Every path and what it names, functions and classes of torch only."""
    for path, module in modules().items():
        for name, member in sorted(vars(module).items(), key=lambda item: str(item[0])):
            if name.startswith("__") or isinstance(member, types.ModuleType) or not callable(member):
                continue
            if name.startswith("_") and not isinstance(member, type):
                continue
            home = getattr(member, "__module__", None)
            if home is not None and not str(home).startswith("torch"):
                continue
            if any(path.startswith(inner) for inner in INNER) and home not in (path, None):
                package = hasattr(module, "__path__") and str(home).startswith(path)
                if not package:
                    continue
            yield f"{path}.{name}", member


def preference(path: str, member: Any) -> tuple[object, ...]:
    """What makes one path the canonical one: documented in torch.nn.functional, public, short, in the modern place."""
    parts = path.split(".")
    functional = (
        isinstance(member, types.BuiltinFunctionType)
        and path.startswith("torch.nn.functional.")
        and hasattr(torch, parts[-1])
    )
    return (
        not functional,
        any(part.startswith("_") for part in parts),
        # torch.nn.quantized and torch.quantization are the former places of torch.ao's.
        path.startswith("torch.ao.") != str(getattr(member, "__module__", "")).startswith("torch.ao."),
        len(parts),
        not path.startswith(("torch.nn.", "torch.utils.data.")),
        path,
    )


def alias_table() -> dict[str, str]:
    """Alias path to canonical path, for every path that isn't canonical itself."""
    paths: dict[int, list[str]] = {}
    members: dict[int, Any] = {}
    for path, member in offered():
        paths.setdefault(id(member), []).append(path)
        members[id(member)] = member
    table: dict[str, str] = {"torch._tensor.Tensor": "torch.Tensor"}
    for key, names in paths.items():
        member = members[key]
        canonical = min(names, key=lambda path: preference(path, member))
        if isinstance(member, (type, types.FunctionType)):
            # The private home (torch._tensor.Tensor) is what tracebacks and `reveal_type` show; a wrapper names its
            # wrapped function's, which is another's.
            home = f"{member.__module__}.{member.__qualname__}"
            private = home.startswith("torch._C") or not home.startswith("torch.")
            if not private and getattr(sys.modules[member.__module__], member.__qualname__, None) is member:
                names.append(home)
        table |= {name: canonical for name in dict.fromkeys(names) if name != canonical}
    return table
