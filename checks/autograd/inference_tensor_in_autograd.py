"""TL207 inference-tensor-in-autograd."""

from __future__ import annotations

from torchlint.check import Applicability, Check, InferenceTensorSaved, Report, Severity, on, spelled

from .repairs import no_grad_instead


class InferenceTensorInAutograd(Check):
    """A tensor made in `torch.inference_mode()` enters a computation that autograd records: torch raises.

    The message is "Inference tensors cannot be saved for backward. To work around you can make a clone to get a normal
    tensor and use it in autograd."

    ## Why

    Inference mode drops the version counter that autograd needs to notice changes. Features that feed a trained head
    are computed under `no_grad`, or cloned outside the block.

    ## Bad

        with torch.inference_mode():
            features = backbone(images)
        loss = criterion(head(features), labels)

    ## Good

        with torch.no_grad():
            features = backbone(images)

    ## Known limits

    An operation that keeps nothing of its input runs, and is not reported.
    """

    code = "TL207"
    name = "inference-tensor-in-autograd"
    severity = Severity.ERROR
    fixable = Applicability.SAFE
    failures = ("T-A6",)
    mentions = ("inference_mode",)

    @on(InferenceTensorSaved)
    def check(self, saved: InferenceTensorSaved, report: Report) -> None:
        made = getattr(saved.tensor.node, "lineno", 0)
        report(
            saved.node,
            f"`{spelled(saved.node)}` raises: it keeps for backward what line {made} made in inference mode; compute "
            "that under `torch.no_grad()`, or `.clone()` it outside the block",
            fix=no_grad_instead(saved),
        )
