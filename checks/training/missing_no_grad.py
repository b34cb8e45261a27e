"""TL403 missing-no-grad."""

from __future__ import annotations

import ast

from torchlint.check import (
    Applicability,
    Backward,
    Block,
    Check,
    Fix,
    ModeChange,
    ModuleCall,
    Report,
    Severity,
    Trace,
    on,
    spelled,
)

from .common import evaluation, is_backwarded, is_unattended
from .repairs import under_no_grad


class MissingNoGrad(Check):
    """An evaluation runs the model while autograd records: it builds graphs nobody uses, and takes memory for them.

    ## Why

    Without `torch.no_grad()` every forward keeps what a backward would need until its results are gone. Evaluation
    then needs as much memory as training, and is slower.

    ## Bad

        model.eval()
        for x, y in val_loader:
            correct += (model(x).argmax(1) == y).sum().item()

    ## Good

        model.eval()
        with torch.no_grad():
            for x, y in val_loader:
                ...

    ## Known limits

    A function that nothing in its file calls may be called under `no_grad`; it is reported only where it puts the model
    into eval mode itself, or where the file trains and the function says nothing of any mode. Gradients that are used
    (attacks, saliency) are no fault.
    """

    code = "TL403"
    name = "missing-no-grad"
    severity = Severity.WARNING
    fixable = Applicability.SAFE
    failures = ("L-08", "R-03")

    @on(Trace)
    def check(self, trace: Trace, report: Report) -> None:
        told: set[object] = set()
        for call in trace.root.events(ModuleCall):
            if call.inner or call.grad is False or call.module is not report.module:
                continue
            unattended = is_unattended(call)
            if not unattended and not call.likely:
                continue
            where = evaluation(call)
            if where is None or is_backwarded(call, trace) or where.node in told or _uses_gradients(where):
                continue
            evaluated = call.mode == "eval" or any(change.mode == "eval" for change in where.events(ModeChange))
            if not unattended and not evaluated and (call.grad is None or call.mode != "train"):
                continue
            told.add(where.node)
            report(
                call.node,
                f"`{spelled(call.node)}` builds a graph that this evaluation never uses: memory is kept for it; put "
                "the evaluation under `with torch.no_grad():`",
                fix=_fix(call, where),
            )


def _uses_gradients(where: Block) -> bool:
    text = ast.unparse(where.frame.scope.node) if where.frame.function is not None else ""
    if "requires_grad" in text or "autograd" in text or "enable_grad" in text:
        return True
    return next(where.events(Backward), None) is not None


def _fix(call: ModuleCall, where: Block) -> Fix | None:
    """Under ``no_grad``: the evaluation's loop, or the loop in its function, or the function."""
    loops = [block for block in call.block.enclosing("loop") if block.frame is call.frame is where.frame]
    loop = where.node if where.kind == "loop" else loops[0].node if loops else None
    function = where.frame.function.node if where.frame.function is not None else None
    return under_no_grad(call.module, loop if isinstance(loop, ast.stmt) else function)
