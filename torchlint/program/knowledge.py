"""What the interpreter knows while it follows a file, kept line by line and put into words.

The lint never needs this: it is for whoever asks why a finding is there (``torchlint trace``), and for the tests of the
program layer, whose programs say in comments what must be known at a line.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from torchlint.program.events import (
    Accumulate,
    Backward,
    Block,
    Call,
    ClipGrad,
    Event,
    GradRead,
    InferenceTensorSaved,
    InPlaceChange,
    LossCall,
    ModeChange,
    ModuleCall,
    OptimizerMade,
    OptimizerStep,
    ParametersUsed,
    Return,
    ScalerCall,
    SchedulerStep,
    TensorOp,
    UnknownCall,
    ZeroGrad,
)
from torchlint.program.interpreter import Interpreter
from torchlint.program.machine import GRAD, Frame
from torchlint.program.tensors import Tensors
from torchlint.program.values import (
    Compiled,
    Const,
    Context,
    Dict,
    External,
    Object,
    Sequence,
    Symbol,
    Tensor,
    Value,
)

if TYPE_CHECKING:
    from torchlint.program.index import Scope
    from torchlint.program.module import FunctionInfo, Module

_DEFINITIONS = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_SHOWN_ITEMS = 4
_LONGEST_CONSTANT = 60


class Line:
    """What is known at one line of a function, over all the times that it was followed."""

    __slots__ = ("events", "modes", "names")

    def __init__(self) -> None:
        self.modes: list[str] = []
        self.names: list[str] = []
        self.events: list[str] = []

    @property
    def facts(self) -> list[str]:
        """Everything known here: each of the modes in force, then the names bound, then what happened."""
        return [*self.modes, *self.names, *self.events]


class Recorder(Interpreter):
    """Follows one file and keeps what it knows: ``known`` has the lines of each function that was followed."""

    def __init__(self, module: Module) -> None:
        super().__init__(module)
        self.known: dict[Scope, dict[int, Line]] = {}
        self.callers: dict[Scope, list[int]] = {}
        self._happened: list[Event] = []
        self._mentioned: dict[Scope, set[str]] = {}

    def follow(self, function: FunctionInfo) -> None:
        """Follow a function that the lint has no reason to follow."""
        self.shallow = False
        self._function_root(function.scope)

    def execute(self, body: list[ast.stmt]) -> str:
        for statement in body:
            if self._records(self.frame) and not isinstance(statement, _DEFINITIONS):
                _once(self._line(statement.lineno).modes, f"modes: {self.modes_in_force()}")
            outer, self._happened = self._happened, []
            try:
                flow = super().execute([statement])
            finally:
                self._record_events()
                self._happened = outer
            if flow:
                return flow
        return ""

    def emit(self, event: Event) -> None:
        super().emit(event)
        if self._records(event.frame):
            self._happened.append(event)

    def enter(self, kind: str, node: ast.AST | None) -> Block:
        block = super().enter(kind, node)
        if kind == "again":
            self._record_events()  # as things are before the second pass
        return block

    def assign(self, target: ast.expr, value: Value, node: ast.AST) -> None:
        super().assign(target, value, node)
        if self._records(self.frame) and isinstance(target, (ast.Name, ast.Attribute, ast.Subscript)):
            self._record_name(target.lineno, ast.unparse(target), value, self.frame)

    def _bind(self, signature: ast.arguments, frame: Frame, arguments: list[Value], keywords: dict[str, Value]) -> None:
        super()._bind(signature, frame, arguments, keywords)
        if not self._records(frame):
            return
        if frame.block is not None and isinstance(frame.block.node, ast.Call) and frame.function is not None:
            _once(self.callers.setdefault(frame.scope, []), frame.block.node.lineno)
        everything = [*signature.posonlyargs, *signature.args, *signature.kwonlyargs]
        everything += [starred for starred in (signature.vararg, signature.kwarg) if starred is not None]
        for parameter in everything:
            value = self.state.get(frame, parameter.arg)
            if isinstance(value, Value):
                self._record_name(parameter.lineno, parameter.arg, value, frame)

    # ---------------------------------------------------------------- keeping

    def _records(self, frame: Frame) -> bool:
        return not self.quiet and frame.module is self.module

    def _line(self, row: int, frame: Frame | None = None) -> Line:
        frame = frame or self.frame
        return self.known.setdefault(frame.scope, {}).setdefault(row, Line())

    def _record_name(self, row: int, name: str, value: Value, frame: Frame) -> None:
        self._keep(self._line(row, frame).names, f"{name} = {described(value, self)}")

    def _record_events(self) -> None:
        """Tell what happened since this was last asked; a call that is something more is told as that alone."""
        told = {event.node for event in self._happened if type(event) is not Call and type(event) in _WORDS}
        for event in self._happened:
            text = describe_event(event, self)
            if text and not (type(event) is Call and event.node in told):
                self._keep(self._line(getattr(event.node, "lineno", 0), event.frame).events, text)
        self._happened = []

    def _keep(self, facts: list[str], fact: str) -> None:
        if fact not in facts:
            _once(facts, f"next time: {fact}" if self.passes else fact)

    # ---------------------------------------------------------------- modes

    def modes_in_force(self) -> str:
        """Grad mode, autocast and the train/eval mode of each model that the function speaks of, where known."""
        words = [{True: "grad", False: "no grad", None: "grad as the caller has it"}[self.grad]]
        if self.state.get(GRAD, "inference"):
            words[0] = "inference"
        autocast = self.state.get("autocast", "autocast")
        if isinstance(autocast, Context):
            words.append(_autocast(autocast))
        for name, model in self._models():
            mode = self.mode(model)
            if mode is not None:
                words.append(f"{name} {mode}")
        return ", ".join(words)

    def _models(self) -> list[tuple[str, Value]]:
        """The models within reach of the current function, by the names that it has for them."""
        frame = self.frame
        mentioned = self._mentioned.get(frame.scope)
        if mentioned is None:
            mentioned = {node.id for node in ast.walk(frame.scope.node) if isinstance(node, ast.Name)}
            self._mentioned[frame.scope] = mentioned
        self_name = frame.scope.self_name
        home = self.homes.get(frame.module)
        found: list[tuple[str, Value]] = []
        for (owner, slot), value in self.state.data.items():
            if slot[:1] == "@" or not isinstance(value, Value):
                continue
            if owner is frame or (owner in (home, frame.closure) and slot in mentioned):
                found.append((slot, value))
            elif owner is frame.receiver and owner is not None and slot[:1] == "." and not _is_module(owner):
                found.append((f"{self_name or 'self'}{slot}", value))
        models = [(name, v.module if isinstance(v, Compiled) else v) for name, v in found]
        return sorted((name, v) for name, v in models if _is_module(v) or self.state.get(v, "@mode") is not None)


def _once(kept: list[Any], new: Any) -> None:
    if new not in kept:
        kept.append(new)


def _is_module(value: Value) -> bool:
    return isinstance(value, Object) and value.is_module is True


def _autocast(context: Context) -> str:
    if context.enabled is False:
        return "autocast off"
    dtype = context.dtype
    name = dtype.qualname.rpartition(".")[2] if isinstance(dtype, External) else ""
    return f"autocast {name}".rstrip()


# -------------------------------------------------------------------- words


def described(value: object, machine: Tensors, depth: int = 0) -> str:
    """A value in words, as it is now: ``Tensor[output of Net(...), 3x2, float32, no leaf, grad, graph]``."""
    if isinstance(value, Tensor):
        return _tensor(value, machine)
    if isinstance(value, Symbol):
        kind = f" of type {value.annotation}" if value.annotation else ""
        whose = "" if value.of is None or depth else f" of {described(value.of, machine, depth + 1)}"
        name = f" {value.name}" if value.name else ""
        return f"unknown {value.origin}{name}{whose}{kind}"
    if isinstance(value, Const):
        text = repr(value.value)
        return text if len(text) <= _LONGEST_CONSTANT else f"{text[: _LONGEST_CONSTANT - 3]}..."
    if isinstance(value, Object):
        return _object(value, machine, depth)
    if isinstance(value, (Sequence, Dict)):
        return _container(value, machine, depth)
    return repr(value)


def _tensor(tensor: Tensor, machine: Tensors) -> str:
    now = machine.current(tensor)
    tensor = now if isinstance(now, Tensor) else tensor
    what = tensor.role or {"phi": "of several paths"}.get(tensor.op, tensor.op)
    if tensor.role == "parameter" and tensor.name:
        what = f"parameter {tensor.name}"
    elif tensor.role == "output" and isinstance(tensor.of, Object):
        what = f"output of {tensor.of!r}"
    facts = [what]
    if tensor.shape is not None:
        facts.append("x".join("?" if n is None else str(n) for n in tensor.shape) or "scalar")
    elif machine.scalar(tensor):
        facts.append("scalar")
    facts += [fact for fact in (tensor.dtype, tensor.device, tensor.scores) if fact]
    leaf = machine.state.get(tensor, "@leaf", tensor.leaf)
    if leaf is not None:
        facts.append("leaf" if leaf else "no leaf")
    grad = machine.requires_grad(tensor)
    if grad is not None:
        facts.append("grad" if grad else "no grad")
    freed = machine.state.get(tensor, "@freed")
    if freed is not None:
        facts.append(f"graph freed at line {freed.node.lineno}")
    elif grad and leaf is False:
        facts.append("graph")
    made = tensor
    while made.base is not None and (made.op.endswith("_") or made.op == "torch.Tensor.setitem"):
        made = made.base  # what is changed in place is what it was
    if made.base is not None:
        facts.append("view")
    for slot, word in (("@retained", "grad retained"), ("@inference", "made in inference mode")):
        if machine.state.get(tensor, slot):
            facts.append(word)
    return f"Tensor[{', '.join(facts)}]"


def _object(value: Object, machine: Tensors, depth: int) -> str:
    name = value.cls.name if value.cls else value.spec.name.rpartition(".")[2] if value.spec else "object"
    arguments = [f"{k}={v.value!r}" for k, v in value.arguments.items() if isinstance(v, Const)]
    if depth or len(arguments) != len(value.arguments) or not arguments:
        arguments = ["..."]
    facts = [f"{name}({', '.join(arguments)})"]
    if _is_module(value) and not depth:
        mode = machine.mode(value)
        facts += [mode] if mode else []
        if machine.frozen(value):
            facts.append("frozen")
    return ", ".join(facts)


def _container(value: Sequence | Dict, machine: Tensors, depth: int) -> str:
    kind = value.kind if isinstance(value, Sequence) else "dict"
    items, exact = machine.items(value)
    if not items:
        return f"empty {kind}" if exact else kind
    if depth:
        return f"{kind} of {len(items)}" if exact else kind
    length = f"{kind} of {len(items)}" if exact else f"{kind} with, among others"
    shown: list[str] = []
    for item in items[:_SHOWN_ITEMS]:
        pair = item if isinstance(item, tuple) else (item,)
        shown.append(": ".join(described(part, machine, depth + 1) for part in pair))
    more = ", ..." if len(items) > _SHOWN_ITEMS else ""
    return f"{length}: {', '.join(shown)}{more}"


def describe_event(event: Event, machine: Tensors) -> str:
    """An event in words, as things are now."""
    words = _WORDS.get(type(event))
    return f"> {words(event, lambda value: described(value, machine, 1))}" if words is not None else ""


_Tell = Callable[[object], str]


def _at(event: Event | Block) -> str:
    return f"at line {getattr(event.node, 'lineno', 0)}"


def _given(event: Call | UnknownCall, tell: _Tell) -> str:
    return ", ".join([*map(tell, event.arguments), *(f"{k}={tell(v)}" for k, v in event.keywords.items())])


def _call(event: Call, tell: _Tell) -> str:
    gives = f" gives {tell(event.result)}" if event.result is not None else ""
    receiver = f"of {tell(event.receiver)}" if event.receiver is not None else ""
    arguments = _given(event, tell)
    return f"{event.name}({arguments}) {receiver}".rstrip() + gives


def _module_call(event: ModuleCall, tell: _Tell) -> str:
    depends = ", on which its layers depend" if event.mode_dependent else ""
    gives = f" gives {tell(event.result)}" if event.result is not None else ""
    return f"module call of {tell(event.target)} in {event.mode or 'unknown'} mode{depends},{gives}".rstrip(",")


def _loss_call(event: LossCall, tell: _Tell) -> str:
    gives = f" gives {tell(event.result)}" if event.result is not None else ""
    return f"loss {event.name} of {tell(event.input)} against {tell(event.target)},{gives}".rstrip(",")


def _backward(event: Backward, tell: _Tell) -> str:
    facts = [{True: "it has a graph", False: "it has no graph", None: "graph unknown"}[event.has_graph]]
    if event.scalar is False:
        facts.append("it is no scalar")
    if event.retain or event.create_graph:
        facts.append("the graph is kept")
    if event.freed is not None:
        facts.append(f"part of the graph was freed by the backward {_at(event.freed)}")
    facts += [f"{tell(tensor)} was changed {_at(change)} and is needed" for tensor, change in event.changed]
    return f"backward of {tell(event.loss)}: {', '.join(facts)}"


def _in_place(event: InPlaceChange, tell: _Tell) -> str:
    facts = [event.how, event.name, "of a view" if event.view else "", "through .data" if event.through_data else ""]
    facts += ["of a leaf" if event.leaf else "", "that requires grad" if event.requires_grad else ""]
    return f"in-place change of {tell(event.target)}: {' '.join(fact for fact in facts if fact)}"


def _accumulate(event: Accumulate, tell: _Tell) -> str:
    born = f", which was made in the loop {_at(event.born)}" if event.born is not None else ""
    return f"{tell(event.value)} is kept ({event.how}) in {tell(event.container)}{born}"


def _parameters_used(event: ParametersUsed, tell: _Tell) -> str:
    empty = f", but they were used up {_at(event.exhausted)}" if event.exhausted is not None else ""
    return f"{event.by} takes {tell(event.parameters)}{empty}"


def _optimizer_made(event: OptimizerMade, tell: _Tell) -> str:
    facts = [f"optimizer {tell(event.optimizer)}"]
    if event.frozen:
        facts.append("all of its parameters are frozen")
    facts += [f"{tell(tensor)} in it is no leaf" for tensor in event.non_leaf]
    return ", ".join(facts)


_WORDS: dict[type[Event], Callable[[Any, _Tell], str]] = {
    Accumulate: _accumulate,
    Backward: _backward,
    Call: _call,
    ClipGrad: lambda event, tell: f"{event.name} of {tell(event.params)}",
    GradRead: lambda event, tell: f".grad is read of {tell(event.tensor)}, which is no leaf",
    InPlaceChange: _in_place,
    InferenceTensorSaved: lambda event, tell: f"backward would need {tell(event.tensor)}",
    LossCall: _loss_call,
    ModeChange: lambda event, tell: f"mode of {tell(event.target)} becomes {event.mode or 'unknown'}",
    ModuleCall: _module_call,
    OptimizerMade: _optimizer_made,
    OptimizerStep: lambda event, tell: f"step of {tell(event.optimizer)}",
    ParametersUsed: _parameters_used,
    Return: lambda event, tell: f"returns {tell(event.value)}",
    ScalerCall: lambda event, tell: f"{tell(event.scaler)}.{event.method}",
    SchedulerStep: lambda event, tell: f"step of {tell(event.scheduler)}",
    TensorOp: lambda event, tell: f"{event.op} gives {tell(event.result)}",
    UnknownCall: lambda event, tell: f"unknown call of {tell(event.callee)} with ({_given(event, tell)})",
    ZeroGrad: lambda event, tell: f"gradients of {tell(event.target)} are cleared",
}
"""How each kind of event is told. What is only for the rules (``AttributeStore``, which names tell) has no words."""
