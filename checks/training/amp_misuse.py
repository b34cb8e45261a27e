"""TL419 amp-misuse."""

from __future__ import annotations

import ast

from torchlint.check import (
    Applicability,
    Backward,
    Block,
    Check,
    Const,
    Context,
    External,
    Fix,
    Optimizer,
    OptimizerStep,
    Report,
    Scaler,
    ScalerCall,
    Severity,
    Tensor,
    Trace,
    on,
    spelled,
)

from .repairs import behind_autocast, scaled_by, stepped_by_scaler, updated


class AmpMisuse(Check):
    """Mixed precision is only half done: gradients underflow to zero, or the scaler raises or steps with wrong ones.

    With a scaler whose loss was never scaled, `scaler.step` raises "No inf checks were recorded for this optimizer".

    ## Why

    In float16 small gradients become 0. A `GradScaler` multiplies the loss before backward and steps the optimizer
    with the gradients divided again: `scaler.scale(loss).backward()`, `scaler.step(optimizer)` and `scaler.update()`
    go together.

    ## Bad

        loss.backward()
        scaler.step(optimizer)
        scaler.update()

    ## Good

        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    ## Known limits

    bfloat16 needs no scaler. A scaler that is switched off by a flag is taken as on.
    """

    code = "TL419"
    name = "amp-misuse"
    severity = Severity.ERROR
    fixable = Applicability.UNSAFE
    failures = ("X-23", "X-27", "L-08", "R-W3")
    calls = ("GradScaler", "ShardedGradScaler", "autocast")

    @on(Trace)
    def check(self, trace: Trace, report: Report) -> None:
        for loop in trace.loops():
            backwards = [b for b in loop.events(Backward) if b.loop is loop and not b.functional]
            if backwards:
                self._iteration(loop, backwards, report)

    def _iteration(self, loop: Block, backwards: list[Backward], report: Report) -> None:
        calls = list(loop.events(ScalerCall))
        steps = list(loop.events(OptimizerStep))
        scaled = [s for s in steps if s.scaler is not None]
        updates = [c for c in calls if c.method == "update"]
        plain = [s for s in steps if s.scaler is None and isinstance(s.optimizer, Optimizer)]
        for backward in backwards:
            if backward.module is not report.module or backward.via is not None:
                continue
            loss = backward.loss
            uses_scaler = scaled or (updates and any(isinstance(c.scaler, Scaler) for c in updates))
            if uses_scaler and isinstance(loss, Tensor) and loss.op != "scaled" and not _both(backward, backwards):
                report(
                    backward.node,
                    f"`{spelled(backward.node)}` runs on the unscaled loss while a GradScaler steps the optimizer: its "
                    "step raises, or small gradients are lost; write `scaler.scale(loss).backward()`",
                    fix=scaled_by(backward, scaled),
                )
                return
            if any(isinstance(c, Context) and c.kind == "autocast" for c in _contexts(backward)):
                report(
                    backward.node,
                    f"`{spelled(backward.node)}` runs inside autocast; leave the block before the backward, which uses "
                    "the dtypes of the forward by itself",
                    fix=_moved(backward),
                )
                return
        if any(isinstance(b.loss, Tensor) and b.loss.op == "scaled" for b in backwards):
            for step in plain:
                if step.module is report.module and not step.conditional and not scaled:
                    report(
                        step.node,
                        f"`{spelled(step.node)}` steps with gradients that are still scaled; write "
                        "`scaler.step(optimizer)` and `scaler.update()`",
                        fix=stepped_by_scaler(step, backwards),
                    )
                    return
            if scaled and not updates and scaled[0].module is report.module and isinstance(scaled[0].scaler, Scaler):
                report(
                    scaled[0].node,
                    "The scaler is never updated: the second `scaler.step` of an optimizer raises; call "
                    "`scaler.update()` after it",
                    fix=updated(scaled[0]),
                )


def _moved(backward: Backward) -> Fix | None:
    block = next(backward.block.enclosing("with"), None)
    return behind_autocast(backward, block.node) if block is not None and isinstance(block.node, ast.With) else None


def _both(backward: Backward, backwards: list[Backward]) -> bool:
    """Whether a scaled backward stands beside this one, in the other arm of a branch."""
    return any(isinstance(b.loss, Tensor) and b.loss.op == "scaled" for b in backwards if b is not backward)


def _contexts(backward: Backward) -> list[object]:
    return [
        context
        for block in backward.block.enclosing("with")
        if block.frame is backward.frame
        for context in block.value or ()
        if not (isinstance(context, Context) and _is_off(context))
    ]


def _is_off(context: Context) -> bool:
    return context.enabled is not True or (
        isinstance(context.dtype, (Const, External)) and "bfloat16" in repr(context.dtype)
    )
