"""The table of signatures of torch's other callables: optimizers, schedulers, loaders, savers, utilities."""

from __future__ import annotations

import functools
import importlib
import types
import warnings
from collections.abc import Iterator
from typing import Any

from torch import nn

from measuring.written import parameters_of, signature_text

COLUMNS = ("name", "kind", "signature")
KEPT_OUT = ("Any", "TypeVar", "ParamSpec", "Generic")
# What a user of torch calls. Operations and layers have their own tables.
MODULES = (
    "torch.amp",
    "torch.autograd",
    "torch.autograd.functional",
    "torch.autograd.graph",
    "torch.autograd.profiler",
    "torch.cpu.amp",
    "torch.cuda",
    "torch.cuda.amp",
    "torch.distributed",
    "torch.distributed.fsdp",
    "torch.distributed.optim",
    "torch.export",
    "torch.func",
    "torch.hub",
    "torch.jit",
    "torch.multiprocessing",
    "torch.nn.init",
    "torch.nn.utils",
    "torch.nn.utils.parametrizations",
    "torch.nn.utils.parametrize",
    "torch.nn.utils.prune",
    "torch.nn.utils.rnn",
    "torch.nn.utils.stateless",
    "torch.onnx",
    "torch.optim",
    "torch.optim.lr_scheduler",
    "torch.optim.swa_utils",
    "torch.profiler",
    "torch.serialization",
    "torch.utils.checkpoint",
    "torch.utils.data",
    "torch.utils.data.distributed",
)
# Names of the torch module itself that are neither operations nor tensors.
TORCH = (
    "Generator",
    "autocast",
    "compile",
    "enable_grad",
    "inference_mode",
    "load",
    "manual_seed",
    "no_grad",
    "save",
    "seed",
    "set_default_device",
    "set_default_dtype",
    "set_grad_enabled",
    "use_deterministic_algorithms",
    "vmap",
)


def members() -> Iterator[tuple[str, Any]]:
    """Path and member of everything above; ``torch`` itself last so that its paths win."""
    for name in MODULES:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = importlib.import_module(name)
        for member_name, member in sorted(vars(module).items()):
            home = str(getattr(member, "__module__", ""))
            if (
                member_name.startswith("_")
                or member_name in KEPT_OUT
                or not home.startswith(("torch", "multiprocessing"))
            ):
                continue
            if isinstance(member, types.ModuleType) or not callable(member):
                continue
            if isinstance(member, type) and issubclass(member, nn.Module):
                continue
            yield f"{name}.{member_name}", member
    torch = importlib.import_module("torch")
    for name in TORCH:
        yield f"torch.{name}", getattr(torch, name)


@functools.cache
def described(member: Any) -> tuple[str, str] | None:
    """Kind (class, function) and signature; None where Python knows none."""
    try:
        if isinstance(member, type):
            return "class", signature_text(parameters_of(member.__init__, skip_self=True))
        return "function", signature_text(parameters_of(member, skip_self=False))
    except (TypeError, ValueError):
        return None


def rows(canonical: dict[str, str]) -> list[tuple[str, str, str]]:
    """One row per callable, under its canonical name."""
    found = {}
    for path, member in members():
        description = described(member)
        if description is not None:
            found[canonical.get(path, path)] = description
    return [(name, *found[name]) for name in sorted(found)]
