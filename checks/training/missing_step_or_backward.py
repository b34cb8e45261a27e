"""TL405 missing-step-or-backward."""

from __future__ import annotations

from torchlint.check import (
    Backward,
    Block,
    Check,
    LossCall,
    Optimizer,
    OptimizerStep,
    Report,
    Severity,
    Symbol,
    Trace,
    UnknownCall,
    ZeroGrad,
    on,
)

from .common import receiver, sources


class MissingStepOrBackward(Check):
    """A training loop computes a loss and clears gradients, and never calls `backward()`, or never `step()`.

    Nothing raises; the weights stay as they were.

    ## Why

    The three belong together: `zero_grad()` clears, `backward()` computes, `step()` applies.

    ## Bad

        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()

    ## Good

            loss.backward()
            optimizer.step()

    ## Known limits

    A loop that hands its optimizer, its loss or its trainer to a function that isn't seen is believed to do it there.
    """

    code = "TL405"
    name = "missing-step-or-backward"
    severity = Severity.ERROR
    failures = ("L-16",)
    calls = ("zero_grad", "step")

    @on(Trace)
    def check(self, trace: Trace, report: Report) -> None:
        for zero in trace.root.events(ZeroGrad):
            optimizer = zero.target
            loop = zero.loop
            if loop is None or not isinstance(optimizer, Optimizer) or zero.module is not report.module:
                continue
            steps = [
                s
                for s in trace.root.events(OptimizerStep)
                if s.optimizer is optimizer or isinstance(s.optimizer, Symbol)
            ]
            if any(step.closure for step in steps) or _may_happen_unseen(loop, optimizer):
                continue
            backwards = list(loop.events(Backward))
            name = receiver(zero.node, "optimizer")
            if backwards and not steps and not any(b.functional for b in backwards):
                report(
                    backwards[-1].node if backwards[-1].module is report.module else zero.node,
                    f"The gradients computed here are never applied: nothing calls `{name}.step()`",
                )
            elif steps and not backwards and any(s.loop is not None and s.block.inside(loop) for s in steps):
                losses = list(loop.events(LossCall))
                if losses and not any(trace.root.events(Backward)):
                    report(
                        zero.node,
                        f"`{name}.step()` has no gradients to apply: nothing in this loop calls `backward()`",
                    )


def _may_happen_unseen(loop: Block, optimizer: Optimizer) -> bool:
    held = [optimizer, *sources(optimizer)]
    for call in loop.events(UnknownCall):
        if any(call.involves(value) for value in held):
            return True
        callee = call.callee
        if isinstance(callee, Symbol) and callee.of is not None and callee.of is loop.frame.receiver:
            return True
        if any(getattr(value, "role", "") == "loss" for value in call.arguments):
            return True
    return False
