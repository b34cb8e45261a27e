"""TL709 load-without-mode."""

from __future__ import annotations

import ast

from torchlint.check import (
    AnyClass,
    Applicability,
    Backward,
    Call,
    Check,
    ClassInfo,
    Compiled,
    Event,
    Fix,
    ModeChange,
    ModuleCall,
    Object,
    Report,
    Scope,
    Severity,
    Symbol,
    Trace,
    Value,
    is_module_factory,
    on,
    returns_evaluating_module,
)
from torchlint.source.edits import insert_statement_after, safe

_MODE = frozenset({"eval", "train"})
_WITHOUT_GRADIENTS = frozenset({"torch.no_grad", "torch.inference_mode"})


class LoadWithoutMode(Check):
    """Weights are loaded and the model predicts, and nothing says in which mode: it is the training mode.

    ## Why

    A new module is in training mode, and load_state_dict doesn't change that. Dropout drops, batch norm uses the
    statistics of the batch and spoils the loaded ones: the predictions are worse than the model and differ each time.

    ## Bad

        model = Net()
        model.load_state_dict(torch.load("model.pt"))
        with torch.no_grad():
            scores = model(x)

    ## Good

        model = Net()
        model.load_state_dict(torch.load("model.pt"))
        model.eval()
        with torch.no_grad():
            scores = model(x)

    ## Known limits

    A model that comes from elsewhere may be in any mode and is left alone, as is one that goes on training, and one in
    which no layer cares for the mode.
    """

    code = "TL709"
    name = "load-without-mode"
    severity = Severity.WARNING
    fixable = Applicability.SAFE
    failures = ("T-H2",)
    calls = ("load_state_dict",)

    @on(Trace)
    def check(self, trace: Trace, report: Report) -> None:
        """Follow each loaded model to its first prediction."""
        events: list[Event] = list(trace.root.events())
        built = {e.node for e in events if isinstance(e, Call) and _makes_training_module(e.name)}
        trained = [e.order for e in events if isinstance(e, Backward)]
        for load in events:
            if not isinstance(load, Call) or load.name != "torch.nn.Module.load_state_dict" or load.receiver is None:
                continue
            if load.frame.module is not report.module or any(order > load.order for order in trained):
                continue
            model = load.receiver.module if isinstance(load.receiver, Compiled) else load.receiver
            if _first_prediction(events, load, model, built) is not None:
                _tell(report, load.node, load.frame.scope)

    @on(AnyClass)
    def predictor(self, cls: ClassInfo, report: Report) -> None:
        """A class that loads a model on self in one method and predicts with it in another."""
        if cls.is_module is not False or any(name in scope.calls for scope in cls.scope.walk() for name in _MODE):
            return
        instances = cls.module.instances
        for load, scope in cls.scope.all_calls("load_state_dict"):
            name = _of_self(load.func, scope)
            if name is None or not any(_predicts(cls, below, name) for below in cls.scope.walk()):
                continue
            made = [each for each in instances.attribute(cls, name) if each.kind != "none"]
            if made and all(each.fresh and instances.mode_dependent(each) is True for each in made):
                _tell(report, load, scope)


def _makes_training_module(name: str) -> bool:
    return is_module_factory(name) and not returns_evaluating_module(name)


def _first_prediction(events: list[Event], load: Call, model: Value, built: set[ast.AST]) -> ModuleCall | None:
    """The first call of the loaded model, unless its mode is set or may be set between, or before and unseen."""
    fresh = isinstance(model, Symbol) and model.origin == "result" and model.node in built
    for event in events:
        if isinstance(event, ModeChange) and _same(event.target, model):
            if event.order > load.order or fresh:
                return None
        elif (
            isinstance(event, ModuleCall)
            and not event.inner
            and event.order > load.order
            and _same(event.target, model)
        ):
            if isinstance(model, Object):
                return event if event.mode == "train" and event.mode_dependent is True else None
            return event if fresh else None
    return None


def _same(value: Value, model: Value) -> bool:
    if isinstance(value, Compiled):
        value = value.module
    if value is model:
        return True
    return isinstance(value, Symbol) and isinstance(model, Symbol) and value.node is model.node is not None


def _tell(report: Report, load: ast.AST, scope: Scope) -> None:
    func = load.func if isinstance(load, ast.Call) else None
    receiver = func.value if isinstance(func, ast.Attribute) else None
    text = report.module.source.segment(receiver) if receiver is not None else "the model"
    report(
        load,
        f"{text} predicts in training mode after this: dropout drops and batch norm uses the batch; "
        f"call {text}.eval() first.",
        fix=_fix(report, scope.statement(load), text) if isinstance(receiver, (ast.Name, ast.Attribute)) else None,
    )


def _fix(report: Report, statement: ast.stmt, text: str) -> Fix | None:
    return safe("Switch to evaluation mode", insert_statement_after(report.module.source, statement, f"{text}.eval()"))


# ---------------------------------------------------------------- classes that predict


def _of_self(func: ast.expr, scope: Scope) -> str | None:
    """``net`` for ``self.net.load_state_dict``."""
    owner = func.value if isinstance(func, ast.Attribute) else None
    if isinstance(owner, ast.Attribute) and isinstance(owner.value, ast.Name) and owner.value.id == scope.self_name:
        return owner.attr
    return None


def _predicts(cls: ClassInfo, scope: Scope, name: str) -> bool:
    """Whether a method calls ``self.<name>(...)`` without gradients."""
    for call in scope.calls.get(name, ()):
        func = call.func
        if not isinstance(func, ast.Attribute) or not isinstance(func.value, ast.Name):
            continue
        if func.value.id == scope.self_name and _without_gradients(cls, scope, call):
            return True
    return False


def _without_gradients(cls: ClassInfo, scope: Scope, call: ast.Call) -> bool:
    if scope.is_function and any(d in _WITHOUT_GRADIENTS for d in cls.module.function(scope).decorators):
        return True
    block = scope.enclosing(call, ast.With)
    while isinstance(block, ast.With):
        for item in block.items:
            entered = item.context_expr
            called = entered.func if isinstance(entered, ast.Call) else entered
            if cls.module.qualname(called, scope) in _WITHOUT_GRADIENTS:
                return True
        block = scope.enclosing(block, ast.With)
    return False
