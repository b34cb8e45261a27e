"""TL407 scheduler-order."""

from __future__ import annotations

from torchlint.check import (
    Applicability,
    Check,
    Optimizer,
    OptimizerStep,
    Report,
    Scheduler,
    SchedulerStep,
    Severity,
    Trace,
    on,
)

from .common import receiver
from .repairs import after_optimizer, once_a_batch

PER_BATCH = frozenset({"OneCycleLR", "CyclicLR"})


class SchedulerOrder(Check):
    """A learning-rate scheduler is stepped before its optimizer, without its metric, or at the wrong pace.

    torch warns "Detected call of `lr_scheduler.step()` before `optimizer.step()`", and the first rate is skipped; a
    plateau scheduler without its metric raises; a one-cycle schedule stepped once an epoch never leaves its warm-up.

    ## Why

    A scheduler sets the rate of the next step. `OneCycleLR` and `CyclicLR` count batches.

    ## Bad

        scheduler.step()
        train(model, loader, optimizer)

    ## Good

        train(model, loader, optimizer)
        scheduler.step()

    ## Known limits

    A one-cycle schedule whose length can't be told is left alone.
    """

    code = "TL407"
    name = "scheduler-order"
    severity = Severity.ERROR
    fixable = Applicability.SAFE
    failures = ("X-22", "L-16")
    calls = ("step",)

    @on(Trace)
    def check(self, trace: Trace, report: Report) -> None:
        steps = list(trace.root.events(OptimizerStep))
        for step in trace.root.events(SchedulerStep):
            scheduler = step.scheduler
            if not isinstance(scheduler, Scheduler) or step.module is not report.module:
                continue
            tail = scheduler.name.rpartition(".")[2]
            name = receiver(step.node, "scheduler")
            if tail == "ReduceLROnPlateau" and not step.arguments:
                report(step.node, f"`{name}.step()` raises: ReduceLROnPlateau needs the metric it watches")
                continue
            own = [s for s in steps if s.optimizer is scheduler.optimizer]
            self._order(step, own, name, report)
            self._pace(step, own, tail, scheduler, name, report)

    def _order(self, step: SchedulerStep, own: list[OptimizerStep], name: str, report: Report) -> None:
        loop = step.loop
        inside = [s for s in own if loop is not None and s.block.inside(loop)]
        if step.conditional or not inside or not isinstance(inside[0].optimizer, Optimizer):
            return
        if any(s.order < step.order for s in own):
            return
        report(
            step.node,
            f"`{name}.step()` comes before the optimizer's first step (line {inside[0].node.lineno}): torch warns and "  # type: ignore[attr-defined]
            "skips the schedule's first value; step the scheduler after the optimizer",
            fix=after_optimizer(step, inside[-1]),
        )

    def _pace(
        self, step: SchedulerStep, own: list[OptimizerStep], tail: str, scheduler: Scheduler, name: str, report: Report
    ) -> None:
        loop = step.loop
        if tail not in PER_BATCH or loop is None or not own:
            return
        if tail == "OneCycleLR" and "steps_per_epoch" not in scheduler.arguments:
            return
        inner = own[0].loop
        if inner is not None and inner is not loop and inner.inside(loop):
            report(
                step.node,
                f"`{name}.step()` runs once an epoch, and {tail} counts batches: call it after each optimizer step",
                fix=once_a_batch(step, own[-1]),
            )
