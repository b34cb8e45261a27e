"""TL408 accumulation-not-scaled."""

from __future__ import annotations

import ast

from torchlint.check import (
    Applicability,
    Backward,
    Block,
    Check,
    ClipGrad,
    InPlaceChange,
    OptimizerStep,
    Report,
    Severity,
    Tensor,
    Trace,
    ZeroGrad,
    on,
    spelled,
)

from .common import steps_an_optimizer
from .repairs import divided_by_number


class AccumulationNotScaled(Check):
    """Gradients are accumulated over several batches and not divided by their number: the step is that much too large.

    ## Why

    `backward()` adds up. A step every k batches with a loss that is a mean over each batch takes k times the gradient
    of one batch of the same data; the learning rate no longer means what it says.

    ## Bad

        loss.backward()
        if (i + 1) % k == 0:
            optimizer.step()

    ## Good

        (loss / k).backward()

    ## Known limits

    Clipping by norm makes up for the size, and is not reported, nor is a loss that is a sum.
    """

    code = "TL408"
    name = "accumulation-not-scaled"
    severity = Severity.WARNING
    fixable = Applicability.UNSAFE
    failures = ("L-08",)
    mentions = ("%",)

    @on(Trace)
    def check(self, trace: Trace, report: Report) -> None:
        told: set[object] = set()
        for step in trace.root.events(OptimizerStep):
            loop = step.loop
            test = _every_so_many(step, loop) if loop is not None else None
            if loop is None or test is None or not steps_an_optimizer(step):
                continue
            if next(loop.events(ClipGrad), None) is not None or _gradients_are_divided(loop):
                continue
            if any(zero.loop is loop and not zero.conditional for zero in loop.events(ZeroGrad)):
                continue  # cleared each turn: nothing adds up
            for backward in loop.events(Backward):
                if (
                    backward.loop is not loop
                    or backward.conditional
                    or backward.node in told
                    or backward.via is not None
                ):
                    continue
                loss = backward.loss
                if backward.module is report.module and isinstance(loss, Tensor) and _is_plain_mean(loss):
                    told.add(backward.node)
                    report(
                        backward.node,
                        f"Gradients add up over several batches before line {step.node.lineno} steps, and "  # type: ignore[attr-defined]
                        f"`{spelled(backward.node)}` isn't divided by their number: the step is that many times too "
                        "large; divide the loss by it",
                        fix=divided_by_number(backward, test),
                    )


def _gradients_are_divided(loop: Block) -> bool:
    return any(change.name.startswith(("div", "mul")) for change in loop.events(InPlaceChange) if _is_gradient(change))


def _is_gradient(change: InPlaceChange) -> bool:
    node = change.node
    changed = node.target if isinstance(node, ast.AugAssign) else getattr(getattr(node, "func", None), "value", None)
    return isinstance(changed, ast.Attribute) and changed.attr == "grad"


def _every_so_many(step: OptimizerStep, loop: Block) -> ast.expr | None:
    """The condition on a count of iterations that a step hangs on: ``if i % k == 0``."""
    for block in step.block.enclosing("branch", "loop"):
        if block is loop:
            return None
        test: ast.expr | None = getattr(block.node, "test", None)
        if test is not None and any(isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mod) for n in ast.walk(test)):
            return test
    return None


def _is_plain_mean(loss: Tensor) -> bool:
    """Whether a loss is a criterion's own mean, or sums of such: nothing on the way divides or weighs it."""
    if loss.op == "scaled":
        inner = loss.inputs[0]
        return isinstance(inner, Tensor) and _is_plain_mean(inner)
    if loss.role == "loss" and loss.op.startswith("torch.nn."):
        reduction = (loss.arguments or {}).get("reduction")
        criterion = loss.of
        given = getattr(criterion, "arguments", {}).get("reduction")
        return all(getattr(value, "value", None) in (None, "mean") for value in (reduction, given) if value is not None)
    if loss.op in ("torch.add", "torch.Tensor.add_", "torch.sub"):
        parts = [v for v in loss.inputs if isinstance(v, Tensor)]
        return bool(parts) and len(parts) == len(loss.inputs) and all(_is_plain_mean(p) for p in parts)
    return False
