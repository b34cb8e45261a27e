"""TP117: what training takes, estimated without allocating it, measured where there is CUDA, held against a budget."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from .building import describe, fake_like, new_fake_mode
from .inference import _Swapped
from .registry import Problem, Skip, check
from .subject import Subject, seed_all
from .values import map_tensors, scalar, tensors


@dataclass
class Estimate:
    """Bytes for one training step with Adam."""

    parameters: int
    gradients: int
    optimizer: int
    buffers: int
    activations: int
    batch: int

    @property
    def fixed(self) -> int:
        """What doesn't grow with the batch."""
        return self.parameters + self.gradients + self.optimizer + self.buffers

    @property
    def peak(self) -> int:
        """All of it together: at the end of forward every saved activation is alive."""
        return self.fixed + self.activations


@check("TP117", on_fake=True)
def memory(subject: Subject) -> Iterable[Problem]:
    """The memory of a training step, against the budget if there is one."""
    estimate = _estimate(subject, subject.batch)
    said = (
        f"about {_human(estimate.peak)} for training with a batch of {estimate.batch}: "
        f"{_human(estimate.parameters)} parameters, {_human(estimate.gradients)} gradients, "
        f"{_human(estimate.optimizer)} Adam state, {_human(estimate.activations)} activations"
    )
    measured = _measured(subject)
    subject.memo["said:TP117"] = said + (f"; measured on CUDA: {measured}" if measured else "")
    budget = subject.options.memory
    if budget is None or estimate.peak <= budget:
        return
    largest = _largest_batch(subject, estimate, budget)
    fits = f"the largest batch that fits is {largest}" if largest else "not even a batch of one fits"
    yield Problem(
        f"training needs {said}, more than the budget of {_human(budget)}; {fits}",
        subject.class_site,
        "a smaller batch with gradient accumulation, mixed precision, activation checkpointing, or an 8-bit optimizer",
        "L-08",
    )


def _estimate(subject: Subject, batch: int) -> Estimate:
    model = subject.built.model
    parameters = list({id(p): p for p in model.parameters()}.values())
    size = sum(_bytes(p) for p in parameters)
    trained = sum(_bytes(p) for p in parameters if p.requires_grad)
    buffers = sum(_bytes(b) for b in model.buffers())
    return Estimate(size, trained, 2 * trained, buffers, _activations(subject, batch), batch)


def _bytes(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def _activations(subject: Subject, batch: int) -> int:
    """Bytes that autograd keeps for backward, the inputs, and the outputs; every storage counted once."""
    try:
        return _activations_on_fake(subject, batch)
    except Exception:
        if subject.is_fake:
            raise
        # Forward reads values, which fake tensors don't have: run it for real.
        model = subject.fresh(train=True)
        args, kwargs = subject.inputs(batch)
        return _saved(model, args, kwargs, {_key(p) for p in model.parameters()}, contextlib.nullcontext())


def _activations_on_fake(subject: Subject, batch: int) -> int:
    made = subject.feed.make(batch, subject.options.seed)
    if subject.is_fake:
        mode = subject.built.fake_mode
        args, kwargs = map_tensors(made, lambda t: fake_like(t, mode))
        model: nn.Module = subject.built.model.train()
        return _saved(model, args, kwargs, {_key(p) for p in model.parameters()}, mode)
    mode = new_fake_mode()
    model = subject.fresh(train=True)
    state: dict[str, torch.Tensor] = {}
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        twin = fake_like(tensor.detach(), mode)
        state[name] = (
            nn.Parameter(twin, requires_grad=tensor.requires_grad) if isinstance(tensor, nn.Parameter) else twin
        )
    args, kwargs = map_tensors(made, lambda t: fake_like(t, mode))
    return _saved(_Swapped(model, state), args, kwargs, {_key(t) for t in state.values()}, mode)


def _key(tensor: torch.Tensor) -> int:
    key: int = tensor.untyped_storage()._cdata
    return key


def _saved(model: nn.Module, args: Any, kwargs: Any, own: set[int], mode: Any) -> int:
    storages: dict[int, int] = {}
    kept: list[Any] = []

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        key = _key(tensor)
        if key not in own:
            storages[key] = tensor.untyped_storage().nbytes()
            kept.append(tensor)
        return tensor

    seed_all(0)
    with mode, torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        output = model(*args, **kwargs)
    for _, tensor in tensors([args, kwargs, output]):
        if _key(tensor) not in own:
            storages[_key(tensor)] = tensor.untyped_storage().nbytes()
    return sum(storages.values())


def _largest_batch(subject: Subject, estimate: Estimate, budget: int) -> int:
    """The largest batch whose estimate is within the budget: activations grow linearly, and the guess is verified."""
    one = _activations(subject, 1)
    two = _activations(subject, 2)
    slope = max(two - one, 1)
    room = budget - estimate.fixed - (one - slope)
    batch = room // slope
    while batch > 0:
        try:
            if estimate.fixed + _activations(subject, int(batch)) <= budget:
                return int(batch)
        except Exception:
            # A batch size the model can't run with; TP108 reports that.
            return int(batch)
        batch = int(batch * 0.95) if batch > 20 else batch - 1
    return 0


def _measured(subject: Subject) -> str:
    """Allocated, reserved and peak bytes of a training step on CUDA; empty without one."""
    if not torch.cuda.is_available() or subject.is_fake:
        return ""
    try:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        model = subject.fresh(train=True).to("cuda")
        optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad] or [torch.zeros(1)])
        args, kwargs = map_tensors(subject.feed.make(subject.batch, 0), lambda t: t.to("cuda"))
        loss = scalar(model(*args, **kwargs))
        if loss is not None:
            torch.autograd.backward(loss)
            optimizer.step()
        return (
            f"{_human(torch.cuda.memory_allocated())} allocated, {_human(torch.cuda.memory_reserved())} reserved, "
            f"{_human(torch.cuda.max_memory_allocated())} at the peak"
        )
    except RuntimeError as error:
        raise Skip(f"the step fails on CUDA: {describe(error)}") from error
    finally:
        torch.cuda.empty_cache()


def _human(size: float) -> str:
    for unit in ("B", "KB", "MB", "GB"):
        if abs(size) < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"
