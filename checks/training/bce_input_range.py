"""TL411 bce-input-range."""

from __future__ import annotations

from torchlint.check import Applicability, Check, LossCall, Report, Severity, Tensor, on, spelled

from .common import origin_of_scores
from .repairs import activation_or_loss, with_loss

ON_PROBABILITIES = frozenset({"torch.nn.BCELoss", "torch.nn.functional.binary_cross_entropy"})
ON_LOGITS = frozenset({"torch.nn.BCEWithLogitsLoss", "torch.nn.functional.binary_cross_entropy_with_logits"})


class BceInputRange(Check):
    """Binary cross entropy gets raw scores where it wants probabilities (it raises), or the other way round.

    `BCELoss` on scores outside 0 to 1 raises "all elements of input should be between 0 and 1", on CUDA as a
    device-side assert. `BCEWithLogitsLoss` on sigmoid output raises nothing and trains badly.

    ## Why

    `BCEWithLogitsLoss` contains the sigmoid, `BCELoss` doesn't.

    ## Bad

        loss = nn.BCELoss()(self.fc(x), y)

    ## Good

        loss = nn.BCEWithLogitsLoss()(self.fc(x), y)

    ## Known limits

    A model of which the last step isn't seen is never reported.
    """

    code = "TL411"
    name = "bce-input-range"
    severity = Severity.ERROR
    fixable = Applicability.UNSAFE
    failures = ("X-25", "L-09", "L-16")

    @on(LossCall)
    def check(self, loss: LossCall, report: Report) -> None:
        given = loss.input
        if not isinstance(given, Tensor) or given.scores is None:
            return
        made = origin_of_scores(given)
        if loss.name in ON_PROBABILITIES and given.scores in ("logits", "log_probabilities", "log_sigmoid"):
            report(
                loss.node,
                f"`{spelled(loss.node)}` wants probabilities, and gets the raw scores of line {made}: it raises as "
                "soon as one is outside 0 to 1; use BCEWithLogitsLoss, or apply a sigmoid",
                fix=with_loss(loss, "BCEWithLogitsLoss") if given.scores == "logits" else None,
            )
        elif loss.name in ON_LOGITS and given.scores in ("sigmoid", "probabilities"):
            report(
                loss.node,
                f"`{spelled(loss.node)}` applies the sigmoid itself, and its input has been through one in line {made}"
                ": give it the raw scores",
                fix=activation_or_loss(loss, given),
            )
