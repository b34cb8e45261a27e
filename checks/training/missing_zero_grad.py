"""TL401 missing-zero-grad."""

from __future__ import annotations

import ast

from torchlint.check import (
    Applicability,
    Backward,
    Block,
    Check,
    Fix,
    Frame,
    Object,
    Optimizer,
    OptimizerMade,
    OptimizerStep,
    Report,
    Severity,
    Symbol,
    Trace,
    UnknownCall,
    Value,
    ZeroGrad,
    on,
    spelled,
)
from torchlint.source.edits import insert_statement_before, unsafe

from .common import concerns, looks_like_optimizer, runs_once, sources, steps_an_optimizer


class MissingZeroGrad(Check):
    """A training loop calls `backward()` and `optimizer.step()` and never clears the gradients: they add up.

    Nothing raises. Each step is taken with the sum of all gradients so far, so that the loss falls slower, settles
    worse, or grows.

    ## Why

    `backward()` adds to `.grad`. Unless `zero_grad()` (of the optimizer or the model) runs once an iteration, the
    gradients of earlier batches stay in it.

    ## Bad

        for x, y in loader:
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()

    ## Good

        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()

    ## Known limits

    A loop that hands its optimizer or its model to a function that isn't seen is believed to clear them there.
    Gradients cleared on some path of the iteration (accumulation) count as cleared.
    """

    code = "TL401"
    name = "missing-zero-grad"
    severity = Severity.ERROR
    fixable = Applicability.UNSAFE
    failures = ("T-H1", "L-05", "L-16")
    calls = ("step",)

    @on(Trace)
    def check(self, trace: Trace, report: Report) -> None:
        for step in trace.root.events(OptimizerStep):
            if step.closure or step.module is not report.module or not steps_an_optimizer(step):
                continue
            loop = _iteration(step)
            if loop is None or runs_once(loop) or not looks_like_optimizer(step.optimizer, trace):
                continue
            optimizer = step.optimizer
            if any(concerns(zero, optimizer) for zero in loop.events(ZeroGrad)):
                continue
            if any(made.optimizer is optimizer for made in loop.events(OptimizerMade)):
                continue  # a fresh one each turn, as its model's gradients are
            backwards = list(loop.events(Backward))
            backward = next((b for b in reversed(backwards) if b.order < step.order), backwards[0])
            if backward.via is optimizer or backward.functional or _may_clear_unseen(loop, optimizer, step):
                continue
            where = backward if backward.module is report.module else step
            report(
                where.node,
                f"Gradients add up over the iterations: nothing in this loop clears them before "
                f"`{spelled(backward.node)}`; call `{_name(step)}.zero_grad()` once an iteration",
                fix=_fix(step, backward),
            )


def _iteration(step: OptimizerStep) -> Block | None:
    """The innermost loop around a step that a backward is in too: one turn of it is a training iteration."""
    for loop in step.loops:
        if any(not backward.functional for backward in loop.events(Backward)):
            return loop
    return None


def _may_clear_unseen(loop: Block, optimizer: Value, step: OptimizerStep) -> bool:
    held: list[Value] = [optimizer]
    if isinstance(optimizer, Optimizer):
        held.extend(sources(optimizer))
    receivers = [frame.receiver for frame in _frames(step.block) if isinstance(frame.receiver, Object)]
    for call in loop.events(UnknownCall):
        if any(call.involves(value) for value in held):
            return True
        if any(call.involves(receiver) and _may_be_method(call, receiver) for receiver in receivers):
            return True
    return False


def _frames(block: Block) -> list[Frame]:
    return [each.frame for each in block.enclosing("call", "root")]


def _may_be_method(call: UnknownCall, receiver: Object) -> bool:
    """Whether an unknown ``self.x(...)`` may be a method that isn't seen, not a module kept on self."""
    callee = call.callee
    if any(value is receiver for value in (*call.arguments, *call.keywords.values())):
        return True
    if isinstance(callee, Symbol) and callee.of is receiver and receiver.cls is not None:
        attribute = callee.name.rpartition(".")[2]
        return not any(
            attribute in base.written_attributes for base in (receiver.cls, *receiver.cls.ancestors(attribute))
        )
    return False


def _name(step: OptimizerStep) -> str:
    node = step.node
    if step.scaler is not None and isinstance(node, ast.Call) and node.args:
        return spelled(node.args[0])
    return (
        spelled(node.func.value) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else "optimizer"
    )


def _fix(step: OptimizerStep, backward: Backward) -> Fix | None:
    if step.frame is not backward.frame:
        return None
    source = backward.module.source
    text = f"{_name(step)}.zero_grad()"
    return unsafe(text, insert_statement_before(source, backward.statement, text))
