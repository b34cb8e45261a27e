"""TL418 suspicious-learning-rate."""

from __future__ import annotations

import re

from torchlint.check import (
    Call,
    Check,
    Const,
    Optimizer,
    OptimizerMade,
    Report,
    Scheduler,
    Severity,
    Trace,
    on,
    spelled,
)

ADAM = frozenset({"Adam", "AdamW", "NAdam", "RAdam", "Adamax", "SparseAdam", "RMSprop"})
SCALED_BY = frozenset({"LambdaLR", "MultiplicativeLR", "OneCycleLR", "CyclicLR", "SequentialLR", "ChainedScheduler"})

SET_BY_HAND = re.compile(r"""\[["']lr["']\]\s*\*?=[^=]""")
"""A program that sets the rate of each step itself: ``group["lr"] = rate``."""


class SuspiciousLearningRate(Check):
    """A learning rate (or weight decay) that can't be meant: the loss becomes NaN, or nothing changes.

    ## Why

    Adam and its family move each weight by about the learning rate a step: 1 is far more than weights are. Plain SGD
    survives larger rates, but not 5. A rate of 0 trains nothing, a negative one raises.

    ## Bad

        optimizer = torch.optim.Adam(model.parameters(), lr=1)

    ## Good

        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    ## Known limits

    A base rate that a `LambdaLR` or a warm-up scales is left alone, as are optimizers whose usual rate is 1.
    """

    code = "TL418"
    name = "suspicious-learning-rate"
    severity = Severity.WARNING
    failures = ("L-06", "L-16", "W-06")
    mentions = ("optim",)

    @on(Trace)
    def check(self, trace: Trace, report: Report) -> None:
        scheduled = any(
            call.name.rpartition(".")[2] in SCALED_BY
            for call in trace.root.events(Call)
            if isinstance(call.result, Scheduler) or "schedul" in call.name
        )
        scheduled = scheduled or SET_BY_HAND.search(report.module.source.text) is not None
        for made in trace.root.events(OptimizerMade):
            optimizer = made.optimizer
            if not isinstance(optimizer, Optimizer) or made.module is not report.module:
                continue
            family = optimizer.name.rpartition(".")[2]
            rate, decay = optimizer.arguments.get("lr"), optimizer.arguments.get("weight_decay")
            wrong = ""
            if isinstance(rate, Const) and isinstance(rate.value, (int, float)) and not isinstance(rate.value, bool):
                wrong = _wrong_rate(family, rate.value, scheduled)
            if not wrong and isinstance(decay, Const) and isinstance(decay.value, (int, float)) and decay.value >= 1:
                wrong = f"a weight decay of {decay.value} wipes the weights out"
            if wrong:
                report(made.node, f"`{spelled(made.node)}`: {wrong}")


def _wrong_rate(family: str, rate: float, scheduled: bool) -> str:
    if rate < 0:
        return f"a learning rate of {rate} raises"
    if scheduled:
        return ""
    if rate == 0:
        return "a learning rate of 0 trains nothing"
    if family in ADAM and rate >= 1:
        return f"with a learning rate of {rate} {family} moves each weight that far a step, and the loss blows up"
    if family == "SGD" and rate >= 5:
        return f"with a learning rate of {rate} SGD blows up"
    return ""
