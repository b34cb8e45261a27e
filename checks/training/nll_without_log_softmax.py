"""TL412 nll-without-log-softmax."""

from __future__ import annotations

from torchlint.check import Applicability, Check, LossCall, Report, Severity, Tensor, on, spelled

from .common import origin_of_scores
from .repairs import with_log_activation, with_loss

LOSSES = frozenset({"torch.nn.NLLLoss", "torch.nn.functional.nll_loss"})
WHAT = {"logits": "raw scores", "probabilities": "probabilities", "sigmoid": "sigmoid output"}


class NllWithoutLogSoftmax(Check):
    """`nll_loss` gets raw scores or probabilities where it wants log-probabilities: the loss has no lower bound.

    Nothing raises; the loss goes negative and training makes scores large instead of right.

    ## Why

    `nll_loss` only picks the target's entry and changes its sign. `cross_entropy` is `log_softmax` and `nll_loss`.

    ## Bad

        loss = F.nll_loss(model(x), y)               # model ends in Linear, or in softmax

    ## Good

        loss = F.cross_entropy(scores, y)

    ## Known limits

    A model of which the last step isn't seen is never reported.
    """

    code = "TL412"
    name = "nll-without-log-softmax"
    severity = Severity.ERROR
    fixable = Applicability.UNSAFE
    failures = ("L-16",)

    @on(LossCall)
    def check(self, loss: LossCall, report: Report) -> None:
        given = loss.input
        if loss.name in LOSSES and isinstance(given, Tensor) and given.scores in WHAT:
            report(
                loss.node,
                f"`{spelled(loss.node)}` wants log-probabilities and gets {WHAT[given.scores]} (line "
                f"{origin_of_scores(given)}): use log_softmax there, or cross_entropy on the raw scores",
                fix=with_loss(loss, "CrossEntropyLoss")
                if given.scores == "logits"
                else with_log_activation(loss.module, given),
            )
