"""The batch: other sizes than two (TP108), and samples that see each other (TP109)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

from .building import describe
from .inference import Outcome
from .registry import Problem, Skip, check
from .sites import error_site
from .subject import Subject, seed_all
from .tracing import LayerTrace, Op, Watched
from .values import map_tensors, tensors

Shapes = list[tuple[Op, list[tuple[int, ...]], list[tuple[int, ...]]]]


@check("TP108", on_fake=True)
def batch_size(subject: Subject) -> Iterable[Problem]:
    """A batch of one and of three work as two does."""
    if not subject.feed.batch_dims or (subject.feed.batch is not None and subject.feed.batch_size is None):
        raise Skip("no input has a batch dimension")
    if subject.needs_batch is not None:
        yield _literal(subject, subject.needs_batch)
        return
    base, other = subject.batch, subject.batch + 1
    traces = {size: _traced(subject, size) for size in (base, other, 1)}
    if traces[base][0].error is not None:
        raise Skip("forward doesn't repeat")
    seen: set[str] = set()
    for size in (other, 1):
        outcome, _shapes = traces[size]
        problem = _failed(subject, size, traces) if outcome.error is not None else _wrong_shape(subject, size, traces)
        if problem is not None:
            key = f"{problem.site}"
            if key not in seen:
                seen.add(key)
                yield problem
                if size == other:
                    # A literal size breaks every other one, too: one fault.
                    return
    if subject.options.mode != "eval" and not seen:
        yield from _single_in_training(subject)


def _traced(subject: Subject, size: int) -> tuple[Outcome, Shapes]:
    model = subject.fresh()
    layers = LayerTrace(model)
    shapes: Shapes = []

    def watch(op: Op, args: Any, kwargs: Any, output: Any) -> None:
        outputs = [tuple(t.shape) for _, t in tensors(output)]
        if outputs:
            shapes.append((op, [tuple(t.shape) for _, t in tensors([args, kwargs])], outputs))

    args, kwargs = subject.inputs(size)
    seed_all(subject.options.seed)
    watcher = Watched(layers, watch)
    output, error = None, None
    try:
        with torch.no_grad(), layers.recording(), watcher:
            output = subject.call(model, args, kwargs)
    except KeyboardInterrupt:
        raise
    except BaseException as caught:
        error = caught
    return Outcome(output, error, layers, watcher), shapes


def _failed(subject: Subject, size: int, traces: dict[int, tuple[Outcome, Shapes]]) -> Problem:
    outcome = traces[size][0]
    culprit = _culprit(subject, size, traces)
    site = (culprit.site if culprit is not None else None) or (
        error_site(outcome.error) if outcome.error is not None else None
    )
    assert outcome.error is not None
    why = f"; {culprit.name} keeps or drops the batch's size" if culprit is not None else ""
    return Problem(
        f"forward works for a batch of {subject.batch} and not for one of {size}{why}: {describe(outcome.error)}",
        site or subject.forward_site,
        "take the size from the input: x.size(0); squeeze a named dimension: squeeze(-1)",
        "T-C10" if "batch" in outcome.message else "X-07" if "hidden" in outcome.message else "R-05",
        layer=outcome.layers.failed.path if outcome.layers.failed is not None else "",
    )


def _wrong_shape(subject: Subject, size: int, traces: dict[int, tuple[Outcome, Shapes]]) -> Problem | None:
    """The output of another batch size has a shape that two other sizes don't lead to."""
    base, other = subject.batch, subject.batch + 1
    got = [tuple(t.shape) for _, t in tensors(traces[size][0].output)]
    if size == other:
        before = [tuple(t.shape) for _, t in tensors(traces[base][0].output)]
        stuck = [(a, b) for a, b in zip(before, got, strict=False) if _is_stuck(a, b, base, other)]
        if not stuck:
            return None
        expected = (other, *stuck[0][0][1:])
        shown = stuck[0][1]
    else:
        if traces[other][0].error is not None:
            return None
        pairs = zip(
            [tuple(t.shape) for _, t in tensors(traces[base][0].output)],
            [tuple(t.shape) for _, t in tensors(traces[other][0].output)],
            got,
            strict=False,
        )
        wrong = [(_predict(a, b, base, size), c) for a, b, c in pairs if _predict(a, b, base, size) not in (None, c)]
        if not wrong:
            return None
        expected, shown = wrong[0][0] or (), wrong[0][1]
    culprit = _culprit(subject, size, traces)
    site = (culprit.site if culprit is not None else None) or subject.forward_site
    name = culprit.name if culprit is not None else "forward"
    return Problem(
        f"a batch of {size} gives {list(shown)} where {list(expected)} is expected: {name} "
        + ("squeezes the batch dimension away" if len(shown) < len(expected) else "has a fixed batch size"),
        site,
        "squeeze a named dimension: squeeze(-1)"
        if len(shown) < len(expected)
        else "take the size from the input: x.size(0)",
        "T-C10",
        layer=culprit.layer if culprit is not None else "",
    )


def _is_stuck(a: tuple[int, ...], b: tuple[int, ...], base: int, other: int) -> bool:
    """Whether a leading dimension kept the value of the first batch while the rest grew with the second."""
    return bool(a and b) and len(a) == len(b) and a[0] == b[0] == base and a != b


def _predict(a: tuple[int, ...], b: tuple[int, ...], base: int, size: int) -> tuple[int, ...] | None:
    """The shape for a batch size, from those for ``base`` and ``base + 1``: each dimension is linear in it."""
    if len(a) != len(b):
        return None
    return tuple(x + (y - x) * (size - base) for x, y in zip(a, b, strict=False))


def _culprit(subject: Subject, size: int, traces: dict[int, tuple[Outcome, Shapes]]) -> Op | None:
    """The first operation whose result doesn't follow the batch."""
    base, other = subject.batch, subject.batch + 1
    first, third, this = traces[base][1], traces[other][1], traces[size][1]
    if size == other:
        for (op, in_a, out_a), (op_b, in_b, out_b) in zip(first, third, strict=False):
            if op.name != op_b.name:
                return None
            for a, b in zip(out_a[:1], out_b[:1], strict=False):
                fed = any(x and y and x != y for x, y in zip(in_a, in_b, strict=False))
                if fed and _is_stuck(a, b, base, other):
                    return op_b
                # Made without the batch in view: torch.zeros(2, ...) where the input has two rows.
                if not in_b and a and a == b and op.name in _FACTORIES and base in a[:2] and _meets_batch(op, subject):
                    return op_b
        return None
    for (op, _, out_a), (op_b, _, out_b), (op_c, _, out_c) in zip(first, third, this, strict=False):
        if not op.name == op_b.name == op_c.name:
            return None
        for a, b, c in zip(out_a, out_b, out_c, strict=False):
            predicted = _predict(a, b, base, size)
            if predicted is not None and predicted != c:
                return op_c
    return None


_FACTORIES = {"zeros", "ones", "empty", "randn", "rand", "full", "arange"}


def _meets_batch(op: Op, subject: Subject) -> bool:
    site = op.site
    return site is not None and str(subject.batch) in site.text


def _literal(subject: Subject, works: int) -> Problem:
    """The model runs with one batch size only, found while the inputs were worked out."""
    outcome = subject.run(subject.fresh(), 2)
    site = error_site(outcome.error) if outcome.error is not None else None
    text = describe(outcome.error) if outcome.error is not None else ""
    return Problem(
        f"forward works for a batch of {works} and not for one of 2: {text}",
        site or subject.forward_site,
        "take the size from the input: x.size(0)",
        "L-03" if "invalid for input" in text else "R-05",
        layer=outcome.layers.failed.path if outcome.layers.failed is not None else "",
    )


def _single_in_training(subject: Subject) -> Iterable[Problem]:
    if subject.run(subject.fresh(train=True)).error is not None:
        return
    for size in (1, subject.batch + 1):
        outcome = subject.run(subject.fresh(train=True), size)
        if outcome.error is None:
            continue
        if "more than 1 value per channel" in outcome.message:
            yield Problem(
                "a last batch of one sample fails in training: batch normalization needs more than one value per "
                "channel",
                error_site(outcome.error) or subject.forward_site,
                "give the DataLoader drop_last=True, or use GroupNorm or LayerNorm",
                "T-C7",
                "warning",
                layer=outcome.layers.failed.path if outcome.layers.failed is not None else "",
                cause="single-sample",
            )
        else:
            yield subject.diagnose(outcome, f"forward in train mode with a batch of {size}")
        return


# ---- TP109


@check("TP109", mode="eval")
def batch_leak(subject: Subject) -> Iterable[Problem]:
    """In eval mode the first sample's output has no gradient with respect to the others."""
    if subject.needs_batch is not None:
        raise Skip("the model runs with one batch size only (TP108)")
    dims = subject.feed.batch_dims
    if not dims:
        raise Skip("no input has a batch dimension")
    size = subject.batch + 1
    model = subject.fresh()
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    args, kwargs = subject.inputs(size)
    sources = _Sources(size, dims)
    args, kwargs = map_tensors((args, kwargs), sources.take)
    steps: list[tuple[Op, torch.Tensor]] = []
    layers = LayerTrace(model)

    def watch(op: Op, op_args: Any, op_kwargs: Any, output: Any) -> None:
        for _, t in tensors(output):
            if t.requires_grad and t.is_floating_point() and len(steps) < 4000:
                steps.append((op, t))

    seed_all(subject.options.seed)
    try:
        with torch.enable_grad(), layers.recording(), sources.embedded(model), Watched(layers, watch):
            output = model(*args, **kwargs)
    except Exception as error:
        raise Skip(f"forward with gradients for its input fails ({describe(error)})") from error
    if not sources.found:
        raise Skip("no input carries a gradient")
    outputs = [t for _, t in tensors(output) if t.requires_grad and t.is_floating_point()]
    try:
        leaks = [t for t in outputs if _leaks(t, size, dims, sources)]
    except RuntimeError as error:
        raise Skip(f"the gradient for the input fails ({describe(error)})") from error
    if not outputs or not any(_batch_dim(t, size, dims) is not None for t in outputs):
        raise Skip("no output has a batch dimension and a graph")
    if leaks:
        op = _first_leak(steps, size, dims, sources)
        site = (op.site if op is not None else None) or subject.forward_site
        yield Problem(
            "in eval mode the output of one sample depends on the other samples of the batch"
            + (f", from {op.name} on" if op is not None else ""),
            site,
            "check which dimension is the batch: batch_first, dim=, mean(0), softmax(0), view and transpose mix it up",
            "L-18",
            layer=op.layer if op is not None else "",
        )


class _Sources:
    """The tensors whose gradients show who depends on whom: float inputs, or what embeddings make of integers."""

    def __init__(self, size: int, dims: set[int]) -> None:
        self.size = size
        self.dims = dims
        self.found: list[tuple[torch.Tensor, int]] = []

    def take(self, tensor: torch.Tensor) -> torch.Tensor:
        """Make a float input ask for a gradient."""
        dim = next((d for d in sorted(self.dims) if tensor.dim() > d and tensor.shape[d] == self.size), None)
        if dim is None or not tensor.is_floating_point():
            return tensor
        made = tensor.detach().clone().requires_grad_()
        self.found.append((made, dim))
        # Modules that change their input in place may not change a leaf.
        return made * 1

    def embedded(self, model: nn.Module) -> _Hooks:
        """Make what embedding layers give ask for a gradient, if no input does."""
        if self.found:
            return _Hooks([])

        def hook(module: nn.Module, inputs: Any, output: torch.Tensor) -> torch.Tensor:
            dim = next((d for d in sorted(self.dims) if output.dim() > d and output.shape[d] == self.size), None)
            if dim is None:
                return output
            made = output.detach().clone().requires_grad_()
            self.found.append((made, dim))
            return made * 1

        return _Hooks([m.register_forward_hook(hook) for m in model.modules() if isinstance(m, nn.Embedding)])


class _Hooks:
    """Hooks that are taken off at the end."""

    def __init__(self, handles: list[Any]) -> None:
        self._handles = handles

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        for handle in self._handles:
            handle.remove()


def _batch_dim(tensor: torch.Tensor, size: int, dims: set[int]) -> int | None:
    return next((d for d in sorted(dims) if tensor.dim() > d and tensor.shape[d] == size), None)


def _leaks(tensor: torch.Tensor, size: int, dims: set[int], sources: _Sources) -> bool:
    dim = _batch_dim(tensor, size, dims)
    if dim is None:
        return False
    inputs = [t for t, _ in sources.found]
    # The first and the last: a recurrence over the batch lets each see only those before it.
    for index, others in ((0, (1, size - 1)), (size - 1, (0, size - 1))):
        row = tensor.select(dim, index)
        weights = torch.randn(tuple(row.shape), generator=torch.Generator().manual_seed(1)).to(row.device, row.dtype)
        grads = torch.autograd.grad((row * weights).sum(), inputs, retain_graph=True, allow_unused=True)
        for grad, (_, source_dim) in zip(grads, sources.found, strict=False):
            if grad is not None and bool((grad.narrow(source_dim, *others).nan_to_num(0, 0, 0) != 0).any()):
                return True
    return False


def _first_leak(steps: list[tuple[Op, torch.Tensor]], size: int, dims: set[int], sources: _Sources) -> Op | None:
    """The first operation whose first row depends on other rows; bisected where there are many."""
    candidates = [(op, t) for op, t in steps if _batch_dim(t, size, dims) is not None]
    if len(candidates) > 300:
        low, high = 0, len(candidates) - 1
        while low < high:
            middle = (low + high) // 2
            if _leaks(candidates[middle][1], size, dims, sources):
                high = middle
            else:
                low = middle + 1
        return candidates[low][0]
    return next((op for op, t in candidates if _leaks(t, size, dims, sources)), None)
