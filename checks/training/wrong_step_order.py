"""TL406 wrong-step-order."""

from __future__ import annotations

from torchlint.check import (
    Applicability,
    Backward,
    Block,
    Check,
    Fix,
    Optimizer,
    OptimizerStep,
    Report,
    Severity,
    Trace,
    ZeroGrad,
    on,
    spelled,
)
from torchlint.source.edits import move_statement, unsafe

from .common import concerns, steps_an_optimizer


class WrongStepOrder(Check):
    """Gradients are cleared between `backward()` and `step()`, or the step comes before the backward: nothing learns.

    Nothing raises; the step is taken with no gradients, or with those of the batch before.

    ## Why

    The order of an iteration is clear, forward, backward, step. Clearing at the end, after the step, is as good.

    ## Bad

        loss.backward()
        optimizer.zero_grad()
        optimizer.step()

    ## Good

        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    ## Known limits

    Only what every iteration does is looked at; a conditional `zero_grad()` or `step()` is left alone.
    """

    code = "TL406"
    name = "wrong-step-order"
    severity = Severity.ERROR
    fixable = Applicability.UNSAFE
    failures = ("T-H1", "L-16")
    calls = ("step",)

    @on(Trace)
    def check(self, trace: Trace, report: Report) -> None:
        for step in trace.root.events(OptimizerStep):
            loop = step.loop
            if loop is None or step.closure or not steps_an_optimizer(step) or step.conditional:
                continue
            if step.module is not report.module or not isinstance(step.optimizer, Optimizer):
                continue
            backwards = [b for b in loop.events(Backward) if not b.functional]
            zeros = [z for z in loop.events(ZeroGrad) if z.loop is loop and _is_own(z, step)]
            if not backwards or any(b.conditional or b.loop is not loop for b in backwards):
                continue
            before = [b for b in backwards if b.order < step.order]
            cleared = [z for z in zeros if not z.conditional and z.order < step.order]
            if before and cleared and cleared[-1].order > before[-1].order:
                zero = cleared[-1]
                if zero.module is report.module:
                    report(
                        zero.node,
                        f"`{spelled(zero.node)}` clears the gradients that the backward in line "
                        f"{before[-1].node.lineno} has just computed: the step after it applies nothing; clear before "  # type: ignore[attr-defined]
                        "the backward",
                        fix=_fix(zero, before[-1]),
                    )
            elif not before and (cleared or not zeros):
                report(
                    step.node,
                    f"`{spelled(step.node)}` comes before the backward in line {backwards[0].node.lineno}: it applies "  # type: ignore[attr-defined]
                    "no gradients, or those of the batch before; step after the backward",
                )


def _is_own(zero: ZeroGrad, step: OptimizerStep) -> bool:
    return concerns(zero, step.optimizer)


def _fix(zero: ZeroGrad, backward: Backward) -> Fix | None:
    if zero.frame is not backward.frame or _block(zero) is not _block(backward):
        return None
    return unsafe(
        "moved before the backward", move_statement(zero.module.source, zero.statement, "before", backward.statement)
    )


def _block(event: Backward | ZeroGrad) -> Block:
    return event.block
