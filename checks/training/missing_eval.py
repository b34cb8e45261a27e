"""TL402 missing-eval."""

from __future__ import annotations

import ast

from torchlint.check import (
    Applicability,
    Backward,
    Block,
    Call,
    Check,
    Event,
    Fix,
    ModeChange,
    ModuleCall,
    Object,
    Report,
    Severity,
    Symbol,
    Trace,
    on,
    spelled,
)
from torchlint.source.edits import insert_first, insert_statement_before, unsafe

from .common import evaluation, is_backwarded, is_unattended


class MissingEval(Check):
    """An evaluation runs the model in training mode: dropout still drops and batch norm still uses the batch.

    Nothing raises. The scores are worse than the model is, differ from run to run, and batch norm's running
    statistics drift with the validation data.

    ## Why

    `model.eval()` is what switches dropout off and makes batch norm use its running statistics; `torch.no_grad()`
    does not.

    ## Bad

        def validate(model, loader):
            with torch.no_grad():
                for x, y in loader:
                    correct += (model(x).argmax(1) == y).sum()

    ## Good

        def validate(model, loader):
            model.eval()
            with torch.no_grad():
                ...

    ## Known limits

    An evaluation is a function whose name says so, or a loop under `no_grad` over a loader whose name says so. A model
    that is known to hold no layer for which the mode matters is never reported; one whose mode a caller may have set
    isn't either, unless the file trains and its evaluation, which nothing in it calls, sets neither eval() nor no_grad.
    """

    code = "TL402"
    name = "missing-eval"
    severity = Severity.ERROR
    fixable = Applicability.UNSAFE
    failures = ("T-H2", "L-18")

    @on(Trace)
    def check(self, trace: Trace, report: Report) -> None:
        told: set[object] = set()
        for call in trace.root.events(ModuleCall):
            if call.inner or call.module is not report.module or call.mode == "eval" or call.target in told:
                continue
            unattended = is_unattended(call)
            if not unattended and (not call.likely or not _in_training_mode(call, trace)):
                continue
            where = evaluation(call)
            if where is None or is_backwarded(call, trace):
                continue
            if _takes_gradients(where) or _deliberate(call) or _just_loaded(call, trace):
                continue
            told.add(call.target)
            model = spelled(call.node.func) if isinstance(call.node, ast.Call) else "model"
            what = (
                f"`{model}` stays in the training mode that training left it in"
                if unattended
                else f"`{model}` is in training mode here"
            )
            report(
                call.node,
                f"{what}: dropout drops and batch norm uses the batch while it is evaluated; call `{model}.eval()` "
                "before",
                fix=_fix(call, where, model),
            )


def _in_training_mode(call: ModuleCall, trace: Trace) -> bool:
    if call.mode != "train":
        return False
    if isinstance(call.target, Symbol):  # its layers are unknown; a train() that was seen says that they matter
        return next(trace.root.events(Backward), None) is not None
    return isinstance(call.target, Object) and call.mode_dependent is True


def _takes_gradients(where: Block) -> bool:
    return next(where.events(Backward), None) is not None


def _just_loaded(call: ModuleCall, trace: Trace) -> bool:
    """Whether weights were loaded into the model and no mode was set since: TL709 tells that where they are loaded."""
    loaded = False
    event: Event
    for event in trace.root.events():
        if event.order > call.order:
            break
        if isinstance(event, ModeChange):
            loaded = loaded and event.target is not call.target
        elif isinstance(event, Call) and event.name == "torch.nn.Module.load_state_dict":
            loaded = loaded or event.receiver is call.target
    return loaded


def _deliberate(call: ModuleCall) -> bool:
    """Monte-Carlo dropout, named as such anywhere around the call."""
    names = [block.frame.name for block in call.block.enclosing("call", "root")]
    spoken = " ".join([*names, call.module.name]).lower()
    return any(word in spoken for word in ("mc_", "monte", "dropout", "stochastic", "uncertain", "bayes", "sample"))


def _fix(call: ModuleCall, where: Block, model: str) -> Fix | None:
    source = call.module.source
    text = f"{model}.eval()"
    if "(" in model:
        return None
    if isinstance(where.node, (ast.For, ast.AsyncFor)) and where.frame is call.frame:
        return unsafe(text, insert_statement_before(source, where.node, text))
    if call.frame.function is not None:
        return unsafe(text, insert_first(source, call.frame.function.node, text))
    return None
