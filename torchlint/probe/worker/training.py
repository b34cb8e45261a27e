"""TP121: a few optimizer steps on one batch lower the loss."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn

from .building import describe
from .feeding import NoInput, load
from .registry import Problem, Skip, check
from .running import trainable
from .sites import error_site
from .subject import Subject, seed_all
from .values import tensors

_STEPS = 12
_RATES = (1e-2, 1e-3, 1e-1)


@check("TP121", mode="train")
def overfit_one_batch(subject: Subject) -> Iterable[Problem]:
    """Adam on one batch, at three learning rates: at one of them at least the loss falls."""
    if not trainable(subject.built.model):
        raise Skip("no parameter requires a gradient")
    loss_of, said = loss_for(subject)
    histories = []
    for rate in _RATES:
        history = _train(subject, loss_of, rate)
        histories.append(history)
        if _fell(history):
            return
    first = histories[0]
    if not all(math.isfinite(value) for history in histories for value in history):
        raise Skip("the loss isn't finite (TP111)")
    if subject.memo.get("varies"):
        raise Skip("two calls on the same input differ (TP112)")
    if all(abs(value) < 1e-12 for value in first):
        return
    lowest = min(min(history) for history in histories)
    yield Problem(
        f"{_STEPS} optimizer steps on one batch don't lower the loss ({said}): {first[0]:.4g} at first, "
        f"{lowest:.4g} at best",
        subject.forward_site,
        "look at the loss's sign and range, at what is frozen or detached, and at softmax before cross entropy",
        "T-H1",
    )


def loss_for(subject: Subject) -> tuple[Callable[[Any], torch.Tensor], str]:
    """The loss of an output: the one that is asked for, the one the model returns, or a distance to fixed numbers."""
    if subject.options.loss:
        return _told(subject, subject.options.loss), subject.options.loss
    model = subject.fresh(train=True)
    args, kwargs = subject.inputs()
    seed_all(subject.options.seed)
    with torch.no_grad():
        output = model(*args, **kwargs)
    own = output.get("loss") if isinstance(output, dict) else getattr(output, "loss", None)
    if isinstance(own, torch.Tensor) and own.dim() == 0:
        return (lambda out: out["loss"] if isinstance(out, dict) else out.loss), "the model's own loss"
    floats = [t for _, t in tensors(output) if t.is_floating_point()]
    if not floats:
        raise Skip("no float output to make a loss of")
    if len(floats) == 1 and floats[0].dim() == 0:
        return (lambda out: next(t for _, t in tensors(out))), "the scalar that forward returns"
    generator = torch.Generator().manual_seed(subject.options.seed)
    goals = [torch.randn(tuple(t.shape), generator=generator).to(t.device, t.dtype) for t in floats]
    # Bounded outputs can't reach normal numbers; half way there is far enough to fall.
    goals = [t + 0.5 * goal * t.std(unbiased=False).clamp(min=0.1) for t, goal in zip(floats, goals, strict=False)]

    def distance(out: Any) -> torch.Tensor:
        outputs = [t for _, t in tensors(out) if t.is_floating_point()]
        return sum(
            (((o - g) ** 2).mean() for o, g in zip(outputs, goals, strict=False) if o.shape == g.shape),
            torch.zeros((), device=goals[0].device),
        )

    return distance, "mean squared error to fixed numbers"


def _told(subject: Subject, name: str) -> Callable[[Any], torch.Tensor]:
    """The loss that --loss names, called with the output and a target that fits it."""
    loss = named_loss(name)
    targets = subject.memo.get("targets")

    def of(out: Any) -> torch.Tensor:
        output = out if isinstance(out, torch.Tensor) else next(t for _, t in tensors(out))
        options = [targets] if targets is not None else list(_targets(output))
        error: Exception | None = None
        for target in options:
            try:
                value = loss(out if targets is not None else output, target)
            except (RuntimeError, ValueError, TypeError, IndexError) as caught:
                error = caught
                continue
            if isinstance(value, torch.Tensor):
                return value
        raise Skip(
            f"{name} takes none of the targets that were tried; give labels with --data"
            + (f" ({describe(error)}{_at(error)})" if error is not None else "")
        )

    return of


def _at(error: Exception) -> str:
    site = error_site(error)
    return f" at line {site.row}" if site is not None else ""


def named_loss(name: str) -> Callable[..., Any]:
    """A loss by name: ``nn.CrossEntropyLoss``, ``F.mse_loss``, or one of the project's. Raises Skip."""
    place, _, attribute = name.partition(".")
    found: Any = None
    if place in ("nn", "F", "torch") and ":" not in name:
        found = {"nn": nn, "F": nn.functional, "torch": torch}[place]
        for part in attribute.split("(")[0].split("."):
            found = getattr(found, part, None)
    else:
        try:
            found = load(name)
        except NoInput as none:
            raise Skip(none.problem.message if none.problem is not None else none.reason) from none
    if isinstance(found, type) and issubclass(found, nn.Module):
        found = found()
    if not callable(found):
        raise Skip(f"{name} isn't a loss: it can't be called")
    result: Callable[..., Any] = found
    return result


def _targets(output: torch.Tensor) -> Iterable[torch.Tensor]:
    """Targets that common losses take, for an output: class indices, as many numbers, numbers in [0, 1]."""
    generator = torch.Generator().manual_seed(0)
    shape = tuple(output.shape)
    if len(shape) >= 2:
        index_shape = (shape[0], *shape[2:])
        yield torch.randint(0, max(shape[1], 1), index_shape, generator=generator).to(output.device)
    yield torch.rand(shape, generator=generator).round().to(output.device, output.dtype)


def _train(subject: Subject, loss_of: Callable[[Any], torch.Tensor], rate: float) -> list[float]:
    model = subject.fresh(train=True)
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=rate)
    history = []
    for _ in range(_STEPS):
        args, kwargs = subject.inputs()
        # The same dropout masks each time: what changes the loss is training alone.
        seed_all(subject.options.seed)
        optimizer.zero_grad()
        try:
            loss = loss_of(model(*args, **kwargs))
            if not loss.requires_grad:
                raise Skip("the loss hangs on no parameter (TP105)")
            if loss.dim():
                loss = loss.mean()
            torch.autograd.backward(loss)
        except (RuntimeError, ValueError, TypeError) as error:
            raise Skip(f"there is no training step to make ({describe(error)})") from error
        optimizer.step()
        history.append(float(loss.detach()))
        if _fell(history):
            break
    return history


def _fell(history: list[float]) -> bool:
    return min(history) < history[0] - 1e-3 * abs(history[0]) - 1e-12
