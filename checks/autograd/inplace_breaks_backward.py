"""TL210 inplace-breaks-backward."""

from __future__ import annotations

from torchlint.check import Applicability, Backward, Check, InPlaceChange, OptimizerStep, Report, Severity, on, spelled

from .repairs import forward_after_step, out_of_place


class InplaceBreaksBackward(Check):
    """A tensor that backward needs is changed in place between the forward and the backward: torch raises.

    The message is "one of the variables needed for gradient computation has been modified by an inplace operation".

    ## Why

    Operations keep what their gradient needs: `exp`, `sigmoid`, `softmax` and their like their result, a product its
    factors, a layer its input and weights. Changed in place, or stepped by an optimizer, it is no longer what the
    gradient belongs to.

    ## Bad

        gate = torch.sigmoid(self.gate(x))
        gate *= mask
        return gate * x

    ## Good

        gate = torch.sigmoid(self.gate(x))
        gate = gate * mask
        return gate * x

    ## Known limits

    Only what torch was seen to keep is reported; what a layer of the project keeps inside is followed where its
    forward is.
    """

    code = "TL210"
    name = "inplace-breaks-backward"
    severity = Severity.ERROR
    fixable = Applicability.SAFE
    failures = ("T-B3", "T-B4", "R-06")

    @on(Backward)
    def check(self, backward: Backward, report: Report) -> None:
        if backward.freed is not None:
            return
        for tensor, change in backward.changed:
            made = getattr(tensor.node, "lineno", 0)
            if isinstance(change, OptimizerStep):
                report(
                    backward.node,
                    f"`{spelled(backward.node)}` goes through weights that the optimizer's step in line "
                    f"{getattr(change.node, 'lineno', 0)} has changed since the forward: it raises; run this backward "
                    "before that step, or the forward after it",
                    fix=forward_after_step(backward, change),
                )
            elif isinstance(change, InPlaceChange) and change.module is report.module:
                report(
                    change.node,
                    f"This changes in place what was made in line {made} and backward still needs: the backward in "
                    f"line {getattr(backward.node, 'lineno', 0)} raises; write the out-of-place form",
                    fix=out_of_place(change),
                )
