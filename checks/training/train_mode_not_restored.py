"""TL404 train-mode-not-restored."""

from __future__ import annotations

import ast

from torchlint.check import Applicability, Backward, Check, Fix, ModeChange, ModuleCall, Report, Severity, Trace, on
from torchlint.source.edits import insert_first, safe

from .common import receiver


class TrainModeNotRestored(Check):
    """`eval()` runs inside the epoch loop and `train()` only before it: every later epoch trains in eval mode.

    Nothing raises. From the second epoch on dropout does nothing and batch norm stops following the data.

    ## Why

    The mode stays until it is changed. A loop that evaluates must put the model back, at the start of each epoch.

    ## Bad

        model.train()
        for epoch in range(epochs):
            train_one_epoch(model, loader)
            validate(model, val_loader)     # calls model.eval()

    ## Good

        for epoch in range(epochs):
            model.train()
            train_one_epoch(model, loader)
            validate(model, val_loader)

    ## Known limits

    A model without layers for which the mode matters is reported only where its layers aren't known.
    """

    code = "TL404"
    name = "train-mode-not-restored"
    severity = Severity.ERROR
    fixable = Applicability.SAFE
    failures = ("T-H2", "L-16")
    calls = ("eval",)

    @on(Trace)
    def check(self, trace: Trace, report: Report) -> None:
        first: dict[object, ModuleCall] = {}
        told: set[object] = set()
        for call in trace.root.events(ModuleCall, again=True):
            if call.inner:
                continue
            if not call.again:
                first.setdefault((call.node, call.target), call)
                continue
            before = first.get((call.node, call.target))
            if before is None or call.mode != "eval" or before.mode == "eval" or call.target in told:
                continue
            if before.mode_dependent is False or not _is_trained(call):
                continue
            change = _last_eval(trace, call)
            if change is None or change.module is not report.module:
                continue
            told.add(call.target)
            model = receiver(change.node, "model")
            report(
                change.node,
                f"`{model}` stays in eval mode after this: from the loop's second turn on, "
                f"line {call.node.lineno} trains it so; call `{model}.train()` at the start of each turn",  # type: ignore[attr-defined]
                fix=_fix(call, model),
            )


def _is_trained(call: ModuleCall) -> bool:
    """Whether a backward follows in the same turn of the loop."""
    loop = next(call.block.enclosing("again", "loop"), None)
    return loop is not None and any(b.order > call.order for b in loop.events(Backward, again=True))


def _last_eval(trace: Trace, call: ModuleCall) -> ModeChange | None:
    """What put the called model into eval mode: its own eval() where that was seen, else a module's that holds it."""
    changes = [
        change
        for change in trace.root.events(ModeChange, again=True)
        if change.order < call.order and change.mode == "eval"
    ]
    own = [change for change in changes if change.target is call.target]
    return max(own or changes, key=lambda change: change.order, default=None)


def _fix(call: ModuleCall, model: str) -> Fix | None:
    for block in call.block.enclosing("loop"):
        if isinstance(block.node, ast.For) and block.frame is call.frame and not _name_is_bound_in(block.node, model):
            outer = next((b for b in block.enclosing("loop") if b is not block and b.frame is call.frame), block)
            if isinstance(outer.node, ast.For):
                return safe(f"{model}.train()", insert_first(call.module.source, outer.node, f"{model}.train()"))
    return None


def _name_is_bound_in(loop: ast.For, name: str) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store) for n in ast.walk(loop))
