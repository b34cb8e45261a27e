"""TL213 non-differentiable-loss."""

from __future__ import annotations

from torchlint.check import Backward, Check, Report, Severity, Tensor, on, spelled


class NonDifferentiableLoss(Check):
    """What is backwarded depends on the model only through an operation without a gradient: nothing is learned.

    Through `argmax`, comparisons, `.long()` or `one_hot` there is no graph, and backward raises "element 0 of tensors
    does not require grad"; through `round`, `sign` or `floor` it runs, and every gradient is zero.

    ## Why

    Decisions have no slope. A loss is computed from the scores themselves; a hard metric is for reading.

    ## Bad

        prediction = model(x).argmax(1)
        loss = (prediction != y).float().mean()
        loss.backward()

    ## Good

        loss = F.cross_entropy(model(x), y)

    ## Known limits

    A loss with any differentiable path to a parameter (straight-through estimators, a metric beside the loss) is fine.
    """

    code = "TL213"
    name = "non-differentiable-loss"
    severity = Severity.ERROR
    failures = ("T-A2",)
    calls = ("backward", "manual_backward")

    @on(Backward)
    def check(self, backward: Backward, report: Report) -> None:
        cut = cut_by(backward)
        if cut is None or cut.node is None:
            return
        name = cut.op.rpartition(".")[2].strip("_")
        report(
            cut.node,
            f"`{spelled(cut.node)}` has no gradient, and the loss that line {getattr(backward.node, 'lineno', 0)} "
            f"backwards depends on the model only through it: no parameter learns; use the values before `{name}`",
        )


def cut_by(backward: Backward) -> Tensor | None:
    """The operation without a gradient that cuts a backward off from everything that requires grad, or None."""
    loss = backward.loss
    if not isinstance(loss, Tensor):
        return None
    found: Tensor | None = None
    for tensor in _reached(loss):
        if tensor.requires_grad and (tensor.leaf or tensor.module is not None):
            return None
        if tensor.requires_grad is None or any(not isinstance(v, Tensor) for v in tensor.inputs if _is_cut(tensor)):
            return None
        if _is_cut(tensor) and _cuts(tensor):
            found = found or tensor
    return found


def _reached(loss: Tensor) -> list[Tensor]:
    """The tensors that a backward passes, up to where gradients end."""
    order, seen = [loss], {loss}
    for tensor in order:
        if len(order) > 3000 or (_is_cut(tensor) and _cuts(tensor)):
            continue
        for value in tensor.inputs:
            if isinstance(value, Tensor) and value not in seen:
                seen.add(value)
                order.append(value)
    return order


def _cuts(tensor: Tensor) -> bool:
    return any(isinstance(v, Tensor) and v.requires_grad for v in tensor.inputs)


def _is_cut(tensor: Tensor) -> bool:
    operation = tensor.operation
    if operation is not None:
        return operation.differentiable is False or operation.zero_gradient
    return tensor.dtype in ("int64", "int32", "int16", "int8", "uint8", "bool") and bool(tensor.inputs)
