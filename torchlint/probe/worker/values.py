"""Tensors in and out of models: made from specifications, found in nested outputs, summed up to a scalar, compared."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from .specs import DictSpec, ListSpec, Spec, ValueSpec


def dtype_of(name: str) -> torch.dtype:
    """The dtype of a name such as float32."""
    found: torch.dtype = getattr(torch, name)
    return found


def make(spec: Spec, batch: int, generator: torch.Generator | None = None) -> Any:
    """A value for a specification: floats are normal (uniform where a range is told), integers uniform in range."""
    if isinstance(spec, ValueSpec):
        return spec.value
    if isinstance(spec, ListSpec):
        items = [make(item, batch, generator) for item in spec.items]
        return tuple(items) if spec.as_tuple else items
    if isinstance(spec, DictSpec):
        return {key: make(item, batch, generator) for key, item in spec.items}
    shape = list(spec.shape)
    if spec.batch_dim is not None:
        shape.insert(spec.batch_dim, batch)
    dtype = dtype_of(spec.dtype)
    if dtype == torch.bool:
        # True everywhere: as a mask it means "everything counts", the one reading that can't empty a softmax.
        return torch.ones(shape, dtype=dtype)
    if spec.is_integer:
        high = int(spec.high) if spec.high is not None else 2
        return torch.randint(int(spec.low), max(high, int(spec.low) + 1), shape, dtype=dtype, generator=generator)
    if spec.high is not None:
        return (torch.rand(shape, generator=generator) * (spec.high - spec.low) + spec.low).to(dtype)
    if dtype.is_complex:
        return torch.randn(shape, dtype=dtype, generator=generator)
    return torch.randn(shape, generator=generator).to(dtype)


def tensors(value: Any, path: str = "") -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors inside a value, each with its path: tuples, lists, mappings, data classes, model outputs."""
    if isinstance(value, torch.Tensor):
        yield path, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from tensors(item, f"{path}[{key!r}]")
    elif isinstance(value, (tuple, list, set, frozenset)):
        names = getattr(value, "_fields", None)
        for index, item in enumerate(value):
            yield from tensors(item, f"{path}.{names[index]}" if names else f"{path}[{index}]")
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from tensors(getattr(value, field.name, None), f"{path}.{field.name}")
    elif isinstance(value, torch.distributions.Distribution):
        for name in value.arg_constraints:
            if name in value.__dict__:
                yield from tensors(getattr(value, name), f"{path}.{name}")


def map_tensors(value: Any, change: Any) -> Any:
    """A copy of a value with every tensor replaced by ``change(tensor)``."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, dict):
        return type(value)((key, map_tensors(item, change)) for key, item in value.items())
    if isinstance(value, tuple):
        items = [map_tensors(item, change) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, list):
        return [map_tensors(item, change) for item in value]
    return value


def signature(value: Any) -> str:
    """Sizes and dtypes of the tensors in a value, as the report shows them: ``[2, 10]`` or ``[2] int64``."""
    shown = [shape_text(tensor) for _, tensor in tensors(value)]
    if not shown:
        return type(value).__name__
    return ", ".join(shown[:4]) + (f", ... {len(shown)} tensors" if len(shown) > 4 else "")


def shape_text(tensor: torch.Tensor) -> str:
    """One tensor's sizes, and its dtype unless it is float32."""
    dtype = str(tensor.dtype).removeprefix("torch.")
    return f"{list(tensor.shape)}" + ("" if dtype == "float32" else f" {dtype}")


def scalar(output: Any, seed: int = 0) -> torch.Tensor | None:
    """A scalar of all float outputs that a graph hangs on, weighted at random; None if there is none.

    A plain sum would hide faults: the sum of a softmax is constant, and so is that of a normalized layer.
    """
    total: torch.Tensor | None = None
    generator = torch.Generator().manual_seed(seed)
    for _, tensor in tensors(output):
        if not (tensor.is_floating_point() or tensor.is_complex()) or not tensor.requires_grad:
            continue
        part = torch.view_as_real(tensor).flatten() if tensor.is_complex() else tensor.flatten()
        weights = torch.randn(tuple(part.shape), generator=generator).to(part.device, part.dtype)
        term = (part * (1 + weights)).sum()
        total = term if total is None else total + term.to(total.dtype)
    return total


def close(one: Any, other: Any, tolerance: float = 1e-4) -> bool:
    """Whether two outputs have the same tensors, up to rounding relative to their own size. NaN equals NaN."""
    return first_difference(one, other, tolerance) is None


def first_difference(one: Any, other: Any, tolerance: float = 1e-4) -> str | None:
    """What differs first between two outputs, in words; None if nothing does."""
    left, right = list(tensors(one)), list(tensors(other))
    if len(left) != len(right):
        return f"{len(left)} tensors against {len(right)}"
    for (path, a), (_, b) in zip(left, right, strict=False):
        where = f"output{path}"
        if a.shape != b.shape:
            return f"{where} is {list(a.shape)} against {list(b.shape)}"
        a, b = a.detach().cpu(), b.detach().cpu()
        if a.dtype == torch.bool or not (a.is_floating_point() or a.is_complex()):
            if not torch.equal(a, b.to(a.dtype)):
                return f"{where} differs in {int((a != b.to(a.dtype)).sum())} of {a.numel()} places"
            continue
        a, b = (torch.view_as_real(t.to(torch.complex128)) if t.is_complex() else t.double() for t in (a, b))
        scale = max(1.0, float(b[b.isfinite()].abs().max()) if b.isfinite().any() else 1.0)
        if not torch.allclose(a, b, rtol=tolerance, atol=tolerance * min(scale, 1e3), equal_nan=True):
            gap = (a - b).abs()
            gap = gap[gap.isfinite()]
            largest = float(gap.max()) if gap.numel() else float("nan")
            return f"{where} differs by up to {largest:.3g} (values up to {scale:.3g})"
    return None


def format_args(args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """The inputs of a call, as the report shows them."""
    parts = [signature(arg) for arg in args] + [f"{name}={signature(arg)}" for name, arg in kwargs.items()]
    return ", ".join(parts)
