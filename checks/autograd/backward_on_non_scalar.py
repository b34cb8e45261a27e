"""TL204 backward-on-non-scalar."""

from __future__ import annotations

import ast

from torchlint.check import Applicability, Backward, Check, Fix, Report, Severity, on, spelled
from torchlint.source.edits import append, unsafe


class BackwardOnNonScalar(Check):
    """`backward()` without a gradient is called on a value of more than one element: torch raises.

    The message is "grad can be implicitly created only for scalar outputs".

    ## Why

    Without an argument, backward starts from the gradient 1, which only a single number has. A loss with
    `reduction="none"` keeps one number a sample until it is summed or averaged.

    ## Bad

        loss = F.cross_entropy(logits, y, reduction="none") * weight
        loss.backward()

    ## Good

        loss.mean().backward()

    ## Known limits

    A batch of one sample would run; that is not what it is written for.
    """

    code = "TL204"
    name = "backward-on-non-scalar"
    severity = Severity.ERROR
    fixable = Applicability.UNSAFE
    failures = ("T-A3",)
    calls = ("backward", "manual_backward")

    @on(Backward)
    def check(self, backward: Backward, report: Report) -> None:
        if backward.functional or backward.gradient is not None or backward.scalar is not False:
            return
        report(
            backward.node,
            f"`{spelled(backward.node)}` raises: the loss still has one number a sample, not one in all; reduce it "
            "with `.mean()` or `.sum()` first",
            fix=_fix(backward),
        )


def _fix(backward: Backward) -> Fix | None:
    node = backward.node
    if not isinstance(node, ast.Call) or backward.via is not None:
        return None
    loss: ast.expr | None = node.func.value if isinstance(node.func, ast.Attribute) else None
    if backward.module.qualname(node.func, backward.frame.scope) == "torch.autograd.backward":
        loss = node.args[0] if node.args else None
    return unsafe(".mean()", append(backward.module.source, loss, ".mean()")) if loss is not None else None
