"""TL212 loss-rewrapped."""

from __future__ import annotations

from collections.abc import Iterator

from torchlint.check import Array, Backward, Check, Object, Report, Severity, Symbol, Tensor, Value, on, spelled

ASKED = "torch.Tensor.requires_grad_"
WRAPPERS = frozenset(
    {
        "torch.tensor",
        "torch.as_tensor",
        "torch.Tensor",
        "torch.FloatTensor",
        "torch.autograd.Variable",
        "torch.scalar_tensor",
        ASKED,
    }
)


class LossRewrapped(Check):
    """A loss leaves the graph and is wrapped in a new tensor before backward: the model never learns from it.

    With `requires_grad=True` on the new tensor nothing raises; no gradient reaches a parameter.

    ## Why

    `torch.tensor(loss)`, `torch.tensor([a.item(), b.item()]).sum()` and `loss.requires_grad = True` make a new leaf
    with the same number. Its backward ends at itself. Losses are combined as tensors.

    ## Bad

        loss = torch.tensor([a.item(), b.item()], requires_grad=True).sum()
        loss.backward()

    ## Good

        loss = a + b
        loss.backward()

    ## Known limits

    A value of unknown origin inside the new tensor is not taken for a loss.
    """

    code = "TL212"
    name = "loss-rewrapped"
    severity = Severity.ERROR
    failures = ("T-A2", "L-04")
    calls = ("backward", "manual_backward")

    @on(Backward)
    def check(self, backward: Backward, report: Report) -> None:
        wrapped = rewrapped(backward)
        if wrapped is None or wrapped.node is None:
            return
        report(
            wrapped.node,
            f"`{spelled(wrapped.node)}` is a new leaf with the loss's number in it: the backward in line "
            f"{getattr(backward.node, 'lineno', 0)} ends there and no parameter gets a gradient; combine the losses as "
            "tensors",
        )


def rewrapped(backward: Backward) -> Tensor | None:
    """The tensor in which a loss was wrapped anew, where all that a backward can reach ends in such ones."""
    loss = backward.loss
    if not isinstance(loss, Tensor) or backward.gradient is not None:
        return None
    found: Tensor | None = None
    reached, seen = [loss], {loss}
    for tensor in reached:
        wrapper = _wrapper(tensor)
        if wrapper is not None:
            found = found or wrapper
            continue
        if tensor.requires_grad is None or len(reached) > 2000:
            return None
        if tensor.requires_grad:
            if tensor.leaf or tensor.module is not None:
                return None
            new = [v for v in tensor.inputs if isinstance(v, Tensor) and v not in seen]
            reached += new
            seen.update(new)
    return found


def _wrapper(tensor: Tensor) -> Tensor | None:
    """The new tensor that a leaf is, or was computed from before it was asked for gradients."""
    if tensor.op not in WRAPPERS:
        return None
    for asked in tensor.wraps:
        if tensor.op == ASKED and isinstance(asked, Tensor):
            for earlier in asked.ancestry():
                if earlier.op in WRAPPERS and _holds_computed(earlier):
                    return earlier
    return tensor if _holds_computed(tensor) else None


def _holds_computed(tensor: Tensor) -> bool:
    """Whether a new tensor was made from what the program computed with gradients."""
    return any(_computed(value) for value in _wrapped(tensor))


def _wrapped(tensor: Tensor) -> Iterator[Value]:
    yield from tensor.inputs
    yield from tensor.wraps


def _computed(value: Value) -> bool:
    depth = 0
    while isinstance(value, (Symbol, Array)) and value.of is not None and depth < 5:  # loss.item()
        value = value.of
        depth += 1
    if isinstance(value, Tensor):
        return any((t.requires_grad and t.leaf is False) or _of_module(t) for t in value.ancestry())
    return False


def _of_module(tensor: Tensor) -> bool:
    """Whether a tensor is the result of a layer with weights, computed under ``no_grad`` too."""
    module = tensor.module
    if not isinstance(module, Object) or module.spec is None:
        return False
    return module.spec.kind in ("linear", "conv", "rnn", "attention", "transformer")
