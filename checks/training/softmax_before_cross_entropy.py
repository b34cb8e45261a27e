"""TL410 softmax-before-cross-entropy."""

from __future__ import annotations

from torchlint.check import Applicability, Check, LossCall, Report, Severity, Tensor, on, spelled

from .common import origin_of_scores
from .repairs import without_activation

LOSSES = frozenset({"torch.nn.CrossEntropyLoss", "torch.nn.functional.cross_entropy"})
WHAT = {
    "probabilities": "softmax",
    "log_probabilities": "log_softmax",
    "sigmoid": "sigmoid",
    "log_sigmoid": "logsigmoid",
}


class SoftmaxBeforeCrossEntropy(Check):
    """Cross entropy gets what a softmax or sigmoid has already squashed: gradients are tiny, and training stalls.

    Nothing raises.

    ## Why

    `cross_entropy` applies `log_softmax` itself and wants raw scores. Applied to probabilities, whose differences are
    at most 1, it can't get far below its starting value.

    ## Bad

        loss = F.cross_entropy(torch.softmax(model(x), dim=1), y)

    ## Good

        loss = F.cross_entropy(model(x), y)

    ## Known limits

    A model of which the last step isn't seen is never reported.
    """

    code = "TL410"
    name = "softmax-before-cross-entropy"
    severity = Severity.ERROR
    fixable = Applicability.UNSAFE
    failures = ("L-16", "L-18")

    @on(LossCall)
    def check(self, loss: LossCall, report: Report) -> None:
        given = loss.input
        if loss.name not in LOSSES or not isinstance(given, Tensor) or given.scores not in WHAT:
            return
        made = origin_of_scores(given)
        report(
            loss.node,
            f"`{spelled(loss.node)}` applies log_softmax itself, and its input has been through {WHAT[given.scores]}"
            f"{f' in line {made}' if made else ''}: give it the raw scores",
            fix=without_activation(loss.module, given),
        )
