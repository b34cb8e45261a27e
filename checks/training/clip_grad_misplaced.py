"""TL409 clip-grad-misplaced."""

from __future__ import annotations

from torchlint.check import (
    Applicability,
    Backward,
    Check,
    ClipGrad,
    Fix,
    OptimizerStep,
    Report,
    ScalerCall,
    Severity,
    Trace,
    on,
    spelled,
)
from torchlint.source.edits import move_statement, unsafe


class ClipGradMisplaced(Check):
    """Gradients are clipped where there are none to clip: before the backward, after the step, or while still scaled.

    Nothing raises; the step is taken with unclipped gradients (or with scaled ones clipped to nearly nothing).

    ## Why

    Clipping changes `.grad` in place. It belongs between `backward()` and `step()`, with a `GradScaler` after
    `scaler.unscale_(optimizer)`.

    ## Bad

        clip_grad_norm_(model.parameters(), 1.0)
        loss.backward()
        optimizer.step()

    ## Good

        loss.backward()
        clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    ## Known limits

    Only what every iteration does is looked at.
    """

    code = "TL409"
    name = "clip-grad-misplaced"
    severity = Severity.ERROR
    fixable = Applicability.UNSAFE
    failures = ("L-06", "L-17")
    calls = ("clip_grad_norm_", "clip_grad_value_", "clip_grad_norm")

    @on(Trace)
    def check(self, trace: Trace, report: Report) -> None:
        for clip in trace.root.events(ClipGrad):
            if clip.module is not report.module:
                continue
            if not clip.name.endswith("_"):
                report(clip.node, f"`{clip.name}` was deprecated and is gone from current torch: write `{clip.name}_`")
                continue
            loop = clip.loop
            if loop is None or clip.conditional:
                continue
            backwards = [b for b in loop.events(Backward) if not b.functional and b.loop is loop and not b.conditional]
            steps = [s for s in loop.events(OptimizerStep) if s.loop is loop and not s.conditional]
            if not backwards or len(steps) != 1:
                continue
            what = spelled(clip.node)
            if clip.order < backwards[0].order and clip.order < steps[0].order:
                report(
                    clip.node,
                    f"`{what}` comes before the backward in line {backwards[0].node.lineno}: there is nothing to clip "  # type: ignore[attr-defined]
                    "yet; clip between the backward and the step",
                    fix=_fix(clip, backwards[-1]),
                )
            elif clip.order > steps[0].order and backwards[-1].order < steps[0].order:
                report(
                    clip.node,
                    f"`{what}` comes after the step in line {steps[0].node.lineno}, which used the gradients as they "  # type: ignore[attr-defined]
                    "were; clip between the backward and the step",
                    fix=_fix(clip, backwards[-1]),
                )
            elif steps[0].scaler is not None and not any(
                s.method == "unscale_" and s.order < clip.order for s in loop.events(ScalerCall)
            ):
                report(
                    clip.node,
                    f"`{what}` clips gradients that are still scaled, to nearly nothing; call "
                    "`scaler.unscale_(optimizer)` before it",
                )


def _fix(clip: ClipGrad, backward: Backward) -> Fix | None:
    if clip.frame is not backward.frame:
        return None
    source = clip.module.source
    return unsafe("moved after the backward", move_statement(source, clip.statement, "after", backward.statement))
