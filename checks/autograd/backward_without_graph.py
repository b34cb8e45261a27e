"""TL203 backward-without-graph."""

from __future__ import annotations

from torchlint.check import Backward, Check, Report, Severity, on, spelled

from .loss_rewrapped import rewrapped
from .non_differentiable_loss import cut_by


class BackwardWithoutGraph(Check):
    """`backward()` is called on a value that hangs on no graph: torch raises.

    The message is "element 0 of tensors does not require grad and does not have a grad_fn".

    ## Why

    A result has a graph if one of its inputs requires grad and autograd recorded. It has none when it was computed
    under `no_grad`, left torch through `.item()` or `.numpy()`, was detached, or when all parameters are frozen.

    ## Bad

        with torch.no_grad():
            loss = criterion(model(x), y)
        loss.backward()

    ## Good

        loss = criterion(model(x), y)
        loss.backward()

    ## Known limits

    A value with an unknown part is never reported.
    """

    code = "TL203"
    name = "backward-without-graph"
    severity = Severity.ERROR
    failures = ("T-A2", "L-04", "R-04")
    calls = ("backward", "manual_backward", "grad")

    @on(Backward)
    def check(self, backward: Backward, report: Report) -> None:
        if (
            backward.has_graph is False
            and not backward.again
            and cut_by(backward) is None
            and rewrapped(backward) is None
        ):
            report(
                backward.node,
                f"`{spelled(backward.node)}` raises: nothing that the loss was computed from requires grad here; "
                "compute it outside `no_grad`, from tensors that weren't detached, with parameters that aren't frozen",
            )
