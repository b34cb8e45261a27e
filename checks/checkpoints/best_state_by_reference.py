"""TL708 best-state-by-reference."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchlint.check import (
    Applicability,
    AttributeStore,
    Call,
    Check,
    Compiled,
    Dict,
    Event,
    Fix,
    FunctionInfo,
    Module,
    Object,
    Optimizer,
    OptimizerStep,
    Parameters,
    Report,
    Return,
    Scope,
    Severity,
    StateDict,
    Symbol,
    Trace,
    UnknownCall,
    Value,
    on,
)
from torchlint.source.edits import append, name_for, safe, surround

from .common import saved

_TRAINING_CALLS = ("train", "fit", "epoch", "step", "update", "learn", "backward")
_MODULE_METHODS = frozenset({"train", "eval", "parameters", "named_parameters", "zero_grad", "modules"})


class BestStateByReference(Check):
    """The weights to go back to are kept without a copy: they change along with the model while training goes on.

    ## Why

    `model.state_dict()` is a dict of the model's own tensors, and the optimizer changes those in place. The "best"
    weights of epoch 3 are the last ones by the time they are loaded back. `.copy()`, `dict(...)` and `.cpu()` on the
    CPU copy the dict and not the tensors; `best_model = model` copies nothing.

    ## Bad

        if loss < best_loss:
            best_state = model.state_dict()

    ## Good

        if loss < best_loss:
            best_state = copy.deepcopy(model.state_dict())

    ## Known limits

    A state dict that is loaded into another model or written to disk before training goes on is left alone. Where the
    training isn't in sight, only what is kept under a name with `best` in it, and under a condition, is reported.
    """

    code = "TL708"
    name = "best-state-by-reference"
    severity = Severity.ERROR
    fixable = Applicability.SAFE
    failures = ("T-H1",)
    mentions = ("state_dict", "best")

    @on(Trace)
    def check(self, trace: Trace, report: Report) -> None:
        """State dicts that are used after steps that were taken since."""
        events: list[Event] = list(trace.root.events(again=True))
        steps = [event for event in events if isinstance(event, OptimizerStep)]
        told: set[ast.AST] = set()

        def tell(state: StateDict, value: Value) -> None:
            if state.node is not None and state.node not in told:
                told.add(state.node)
                _tell(state, value, report)

        for event in events:
            for value in _used(event):
                state = _reference(value, events)
                if state is not None:
                    between = [s for s in steps if state.order < s.order < event.order and _trains(s, state.of)]
                    if between and _outlives(state, between, events):
                        tell(state, value)
        for store in events:
            if not isinstance(store, AttributeStore) or "best" not in store.name.lower() or not _chosen(store):
                continue
            if store.frame.module is not report.module:
                continue
            state = _reference(store.value, events)
            if state is not None and not _written_at_once(store):
                tell(state, store.value)
            elif _keeps_model(store, steps):
                parent = store.frame.scope.parents.get(store.node)
                kept = parent.value if isinstance(parent, ast.Assign) else store.node
                _tell_model(report, kept, ast.unparse(store.node))

    @on(FunctionInfo)
    def aliased(self, function: FunctionInfo, report: Report) -> None:
        """``best_model = model`` in a loop that trains."""
        if not _names_a_best(function.module):
            return
        if not any("best" in name.lower() for name in (*function.scope.stores, *function.scope.globals)):
            return
        for loop_kind in (ast.For, ast.While):
            for loop in function.scope.of_type(loop_kind):
                for target, value in _pairs_in(function.scope, loop):
                    if not isinstance(target, ast.Name) or "best" not in target.id.lower():
                        continue
                    model = _model_of(value)
                    if model is None or not _is_module(function.scope, model) or _bound_in(loop, model):
                        continue
                    if _trains_in(function.scope, loop, model) and _read_elsewhere(function.scope, target):
                        _tell_model(report, value, target.id)


def _names_a_best(module: Module) -> bool:
    """Whether a file speaks of anything best; looked for once."""
    if "best" not in module.memo:
        module.memo["best"] = any(word in module.source.text for word in ("best", "Best", "BEST"))
    return bool(module.memo["best"])


def _used(event: Event) -> Iterator[Value]:
    """What an event reads for good: loads into a model, writes to disk, returns, copies, passes on."""
    if isinstance(event, Call):
        if event.name == "torch.save":
            yield from (value for _, value in saved(event))
        elif event.name in ("torch.nn.Module.load_state_dict", "copy.deepcopy"):
            yield from event.arguments[:1]
    elif isinstance(event, Return):
        yield event.value
        yield from event.parts
    elif isinstance(event, UnknownCall):
        yield from event.arguments


def _reference(value: Value, events: list[Event]) -> StateDict | None:
    """The state dict whose tensors a value holds, by itself or through a comprehension that copies none of them."""
    if isinstance(value, StateDict):
        return value
    if not isinstance(value, Dict) or not isinstance(value.node, ast.DictComp) or _copies(value.node, events):
        return None
    inside = set(ast.walk(value.node))
    for event in events:
        if isinstance(event, Call) and isinstance(event.result, StateDict) and event.node in inside:
            return event.result
    return None


def _copies(node: ast.DictComp, events: list[Event]) -> bool:
    """Whether a comprehension makes new tensors."""
    value = node.value
    while True:
        if isinstance(value, ast.Name):
            return False
        if isinstance(value, ast.Attribute) and value.attr == "data":
            value = value.value
        elif isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            if value.func.attr == "cpu" or (value.func.attr == "to" and _says_cpu(value)):
                text = events[0].module.source.text if events else "cuda"
                if "cuda" in text or "device" in text:
                    return True
            elif value.func.attr != "detach":
                return True
            value = value.func.value
        else:
            return True


def _says_cpu(call: ast.Call) -> bool:
    return len(call.args) == 1 and isinstance(call.args[0], ast.Constant) and call.args[0].value == "cpu"


def _trains(step: OptimizerStep, module: Value) -> bool:
    """Whether a step changes the module, as far as the optimizer's parameters are known."""
    optimizer = step.optimizer
    if not isinstance(optimizer, Optimizer) or not isinstance(optimizer.params, Parameters):
        return isinstance(optimizer, (Symbol, Optimizer))
    return any(source is module for source in optimizer.params.sources)


def _outlives(state: StateDict, steps: list[OptimizerStep], events: list[Event]) -> bool:
    """Whether the state is from before the steps on purpose: taken under a condition, or before their loop."""
    taken = next((e for e in events if isinstance(e, Call) and e.node is state.node), None)
    if taken is None:
        return False
    return taken.conditional or any(taken.loop not in step.loops for step in steps if step.loops)


def _chosen(store: Event) -> bool:
    """Whether a condition decides if this is kept."""
    return store.conditional or store.frame.scope.enclosing(store.node, ast.If) is not None


def _written_at_once(store: AttributeStore) -> bool:
    """Whether all that the class does with the attribute stands behind the assignment, in the same block."""
    scope = store.frame.scope
    owner = scope.owner
    reads = owner.self_reads.get(store.name, []) if owner is not None else []
    if not reads:
        return False
    statement = scope.statement(store.node)
    parent = scope.parents.get(statement)
    for field in ("body", "orelse"):
        block = getattr(parent, field, None)
        if isinstance(block, list) and statement in block:
            inside = {part for later in block[block.index(statement) :] for part in ast.walk(later)}
            return all(read in inside for read, _ in reads)
    return False


def _keeps_model(store: AttributeStore, steps: list[OptimizerStep]) -> bool:
    """``self.best_model = model`` in the loop that goes on to train this model."""
    value = store.value.module if isinstance(store.value, Compiled) else store.value
    if not isinstance(value, Object) or not value.is_module:
        return False
    loops = store.loops
    made_inside = value.node is not None and any(value.node in ast.walk(loop.node) for loop in loops if loop.node)
    return not made_inside and any(
        isinstance(step.optimizer, Optimizer) and _trains(step, value) and any(loop in loops for loop in step.loops)
        for step in steps
    )


def _tell(state: StateDict, value: Value, report: Report) -> None:
    node = state.node
    if node is None or node not in report.module.scope.parents or not isinstance(node, ast.Call):
        return
    text = report.module.source.segment(node)
    report(
        node,
        f"{text} holds the model's own tensors: what is kept here changes with every further step; "
        f"keep copy.deepcopy({text}).",
        fix=_fix(report, node, value),
    )


def _fix(report: Report, node: ast.Call, value: Value) -> Fix | None:
    source = report.module.source
    if isinstance(value, Dict) and isinstance(value.node, ast.DictComp):
        return safe("Clone each tensor", append(source, value.node.value, ".clone()"))
    return _deepcopy(report, node)


def _deepcopy(report: Report, node: ast.expr) -> Fix | None:
    source = report.module.source
    name = name_for(source, "copy.deepcopy", node)
    if name is None:
        return None
    return safe("Copy the weights", surround(source, node, f"{name.spelling}(", ")"), name.edits)


def _tell_model(report: Report, value: ast.AST, name: str) -> None:
    text = ast.unparse(value)
    report(
        value,
        f"{name} is the very model that goes on training, no copy of it; keep copy.deepcopy({text}).",
        fix=_deepcopy(report, value) if isinstance(value, ast.expr) else None,
    )


# ---------------------------------------------------------------- best_model = model


def _pairs_in(scope: Scope, loop: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Assignments under a condition in a loop, tuples taken apart."""
    inside = set(ast.walk(loop))
    for node in scope.of_type(ast.Assign):
        if node not in inside or not isinstance(scope.enclosing(node, ast.If, ast.For, ast.While), ast.If):
            continue
        for target in node.targets:  # type: ignore[attr-defined]
            value = node.value  # type: ignore[attr-defined]
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
                yield from zip(target.elts, value.elts, strict=True)
            else:
                yield target, value


def _model_of(value: ast.expr) -> str | None:
    """``model`` itself, or its parameters in any container."""
    if isinstance(value, ast.Name):
        return value.id
    if isinstance(value, ast.Call):
        func = value.func
        if isinstance(func, ast.Attribute) and func.attr in ("parameters", "named_parameters"):
            return func.value.id if isinstance(func.value, ast.Name) else None
        if isinstance(func, ast.Name) and func.id in ("list", "tuple", "dict") and len(value.args) == 1:
            return _model_of(value.args[0]) if not isinstance(value.args[0], ast.Name) else None
    return None


def _is_module(scope: Scope, name: str) -> bool:
    """Whether something is done with a variable that only modules know."""
    return any(
        isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name) and call.func.value.id == name
        for method in _MODULE_METHODS
        for call in scope.calls.get(method, ())
    )


def _bound_in(loop: ast.AST, name: str) -> bool:
    return any(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store) for node in ast.walk(loop)
    )


def _trains_in(scope: Scope, loop: ast.AST, model: str) -> bool:
    """Whether the loop steps an optimizer, or hands the model to a function that is named for training."""
    inside = set(ast.walk(loop))
    for name, calls in scope.calls.items():
        for call in calls:
            if call not in inside:
                continue
            if name in ("step", "backward") and isinstance(call.func, ast.Attribute):
                return True
            named_so = isinstance(call.func, ast.Name) and any(word in name.lower() for word in _TRAINING_CALLS)
            if named_so and any(isinstance(given, ast.Name) and given.id == model for given in call.args):
                return True
    return False


def _read_elsewhere(scope: Scope, target: ast.Name) -> bool:
    return any(
        isinstance(node, ast.Name) and node.id == target.id and isinstance(node.ctx, ast.Load)
        for node in ast.walk(scope.node)
    )
