"""TL415 graph-kept-alive."""

from __future__ import annotations

import ast

from torchlint.check import (
    Accumulate,
    Applicability,
    Backward,
    Check,
    Fix,
    Report,
    Severity,
    Tensor,
    Trace,
    on,
    spelled,
)
from torchlint.source.edits import append, safe

from .common import evaluation


class GraphKeptAlive(Check):
    """Tensors that still hang on their graph are kept over the iterations: every iteration's graph stays in memory.

    Memory grows until "CUDA out of memory". After a backward only the graph's nodes stay, and it is a warning.

    ## Why

    A tensor with a history keeps everything that its backward would need. For a running sum or a log only the number
    is wanted: `.item()`, or `.detach()`.

    ## Bad

        total += loss
        losses.append(loss)

    ## Good

        total += loss.item()
        losses.append(loss.detach())

    ## Known limits

    What is backwarded later (log-probabilities, a sum that is the loss) is kept for that, and not reported.
    """

    code = "TL415"
    name = "graph-kept-alive"
    severity = Severity.ERROR
    fixable = Applicability.SAFE
    failures = ("L-08", "R-03", "T-I1")

    @on(Trace)
    def check(self, trace: Trace, report: Report) -> None:
        events = [
            e
            for e in trace.root.events(Accumulate)
            if isinstance(e.value, Tensor) and e.value.requires_grad and not e.value.leaf and e.grad is not False
        ]
        if not events:
            return
        backwards = list(trace.root.events(Backward, again=True))
        for event in events:
            loop = event.loop
            value = event.value
            if loop is None or event.module is not report.module or not isinstance(value, Tensor):
                continue
            if event.born is loop or (event.born is not None and event.born.inside(loop)) or _in_forward(event):
                continue
            if _comprehension(loop.node) or not (next(loop.events(Backward), None) or evaluation(event)):
                continue
            used, done = _backwarded(event, value, backwards)
            if used:
                continue
            report(
                event.node,
                f"`{spelled(_kept(event.node))}` is kept with its graph in every iteration, and memory grows; keep "
                "the number (`.item()`) or `.detach()` it",
                severity=Severity.WARNING if done else Severity.ERROR,
                fix=_fix(event),
            )


def _comprehension(node: ast.AST | None) -> bool:
    return not isinstance(node, ast.stmt)


def _in_forward(event: Accumulate) -> bool:
    return any(block.frame.name in ("forward", "__call__") for block in event.block.enclosing("call", "root"))


def _backwarded(event: Accumulate, value: Tensor, backwards: list[Backward]) -> tuple[bool, bool]:
    """Whether what is kept is backwarded as such later, and whether the value itself is backwarded in its turn."""
    done = False
    for backward in backwards:
        loss = backward.loss
        if not isinstance(loss, Tensor):
            return True, done
        family = set(loss.ancestry())
        if loss is value or (value in family and backward.loop is event.loop and backward.block.kind != "call"):
            done = True
            if event.how == "sum" and isinstance(event.result, Tensor) and event.result in family:
                return True, done
            if loss is not value and backward.order > event.order and backward.loop is not event.loop:
                return True, done
            continue
        if value in family and backward.order > event.order:
            return True, done
    return False, done


def _kept(node: ast.AST) -> ast.AST:
    if isinstance(node, ast.AugAssign):
        return node.value
    if isinstance(node, ast.Call) and node.args:
        return node.args[-1]
    return node


def _fix(event: Accumulate) -> Fix | None:
    kept = _kept(event.node)
    if isinstance(kept, ast.Name) and kept is not event.node:
        return safe(".detach()", append(event.module.source, kept, ".detach()"))
    return None
