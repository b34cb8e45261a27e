"""The state of an interpretation: where it is, what holds there, and how states of different paths are joined."""

from __future__ import annotations

import ast
from collections.abc import Sequence as Seq
from typing import TYPE_CHECKING, Any

from torchlint.program.events import Accumulate, Block, Call, Event, Return, UnknownCall
from torchlint.program.values import (
    Answer,
    Bound,
    Class,
    Compiled,
    Const,
    Dict,
    External,
    Function,
    Loader,
    Object,
    Optimizer,
    Parameters,
    Scheduler,
    Sequence,
    State,
    StateDict,
    Super,
    Symbol,
    Tensor,
    Unseen,
    Value,
)

if TYPE_CHECKING:
    from torchlint.program.index import Scope
    from torchlint.program.module import FunctionInfo, Module

GRAD = "grad mode"
_GRAD_KEY = (GRAD, GRAD)
"""Key of the grad mode in the State: True, False, None (a caller that wasn't seen decides)."""
MISSING: Any = object()
NEVER: tuple[int, Block | None] = (0, None)
"""Where a value was bound that no statement has bound."""

DEFINITE = frozenset({"@freed", "@exhausted", "@changed", "@inference", "@retained"})
"""Slots that hold only if they hold on every path."""
PASSING = frozenset((Call, Return, UnknownCall))
"""Events that leave what is known of models, tensors and optimizers as it was."""
ANSWERS = frozenset({"@mode", "@requires_grad", "@leaf", "@frozen", GRAD})
"""Slots whose differing answers join to None: unknown."""


class Frame:
    """One activation of a function (or of a module's body). Locals are in the State under (frame, name)."""

    __slots__ = (
        "block",
        "captured",
        "closure",
        "function",
        "module",
        "owner",
        "receiver",
        "returned",
        "scope",
        "yielded",
    )

    def __init__(
        self,
        module: Module,
        scope: Scope,
        function: FunctionInfo | None = None,
        closure: Frame | None = None,
        receiver: Value | None = None,
    ) -> None:
        self.module = module
        self.scope = scope
        self.function = function
        self.closure = closure
        self.receiver = receiver
        self.owner = function.cls if function is not None else None
        self.returned: list[tuple[Value, State]] = []
        self.yielded: list[Value] = []
        self.block: Block | None = None
        self.captured = False  # whether a function made here may outlive it

    @property
    def name(self) -> str:
        """The function's name, empty for a module's body."""
        return self.function.name if self.function is not None else ""


class _Joining(State):
    """What is asked and told while paths are joined: what any of them knows, and what then holds for all."""

    __slots__ = ("base", "tables")

    def __init__(self, base: State, tables: list[dict[tuple[Any, str], Any]]) -> None:
        super().__init__(base.data)
        self.base = base
        self.tables = tables

    def get(self, owner: object, slot: str, default: Any = None) -> Any:
        key = (owner, slot)
        for table in self.tables:
            if key in table:
                return table[key]
        return self.base.get(owner, slot, default)

    def set(self, owner: object, slot: str, value: Any) -> None:
        self.base.set(owner, slot, value)


class OutOfSteps(Exception):
    """The interpretation of one root has done all the work that it may."""


class Machine:
    """Current frame, block and state, and the steps left."""

    frame: Frame
    block: Block

    if TYPE_CHECKING:
        # The interpreter is one machine in layers, a file each: tensors, library, calls, expressions, statements.
        # What a lower layer asks of a higher one is declared here.
        def eval(self, node: ast.expr | None) -> Value: ...
        def execute(self, body: list[ast.stmt]) -> str: ...
        def quietly(self, node: ast.expr, frame: Frame) -> Value: ...
        def assign(self, target: ast.expr, value: Value, node: ast.AST) -> None: ...
        def see(self, value: Unseen) -> Value: ...
        def imported(self, dotted: str, frame: Frame) -> Value: ...
        def get_attribute(self, value: Value, name: str, node: ast.AST) -> Value: ...
        def object_attribute(self, value: Object, name: str, node: ast.AST) -> Value: ...
        def super_member(self, value: Super, name: str, node: ast.AST) -> Value: ...
        def class_member(self, value: Class, name: str, node: ast.AST) -> Value: ...
        def item_of(self, value: Value, slot: str, node: ast.AST) -> Value: ...
        def element(self, value: Value, node: ast.AST) -> Value: ...
        def known_length(self, value: Value) -> int | None: ...
        def known_items(self, value: Value) -> tuple[Value, ...] | None: ...
        def consume(self, value: Value, node: ast.AST, by: str) -> None: ...
        def accumulate(self, node: ast.AST, container: Value, value: Value, how: str, name: str = "") -> Accumulate: ...
        def call_value(
            self, callee: Value, arguments: list[Value], keywords: dict[str, Value], node: ast.AST
        ) -> Value: ...
        def call_module(
            self, callee: Object, arguments: list[Value], keywords: dict[str, Value], node: ast.AST
        ) -> Value: ...
        def unknown_call(
            self, callee: Value, arguments: list[Value], keywords: dict[str, Value], node: ast.AST
        ) -> Value: ...

    def __init__(self, module: Module) -> None:
        self.module = module
        self.state = State()
        self.steps = 0
        self.order = 0
        self.births: dict[Value, tuple[int, Block | None]] = {}  # loops around the first binding, and the innermost
        self.notable = 0  # how many of the events were more than calls
        self.depth = 0
        self.shallow = False  # whether calls of the current root are followed one level only
        self.passes = 0  # how many second passes through loops are going on
        self.comprehending = 0  # how many comprehensions are being evaluated
        self.quiet = 0  # above zero, no event is kept
        self.self_savers: list[Tensor] = []  # whose backward reads their own result, so that they keep themselves

    # ---------------------------------------------------------------- events

    def emit(self, event: Event) -> None:
        """Put an event into the trace here."""
        event.block = self.block
        event.frame = self.frame
        event.grad = self.state.data.get(_GRAD_KEY)
        self.order += 1
        event.order = self.order
        if type(event) not in PASSING:
            self.notable += 1
        if not self.quiet:
            self.block.items.append(event)

    def enter(self, kind: str, node: ast.AST | None) -> Block:
        """Open a block inside the current one and make it current."""
        block = Block(kind, node, self.block, self.frame)
        if not self.quiet:
            self.block.items.append(block)
        self.block = block
        return block

    def leave(self, block: Block) -> None:
        """Close a block."""
        assert block.parent is not None
        self.block = block.parent

    @property
    def grad(self) -> Answer:
        """The grad mode in force."""
        answer: Answer = self.state.get(GRAD, GRAD)
        return answer

    @grad.setter
    def grad(self, enabled: Answer) -> None:
        self.state.set(GRAD, GRAD, enabled)

    # ---------------------------------------------------------------- facts about values

    def items(self, container: Value) -> tuple[tuple[Any, ...], bool]:
        """The items of a Sequence or Dict (pairs) and whether these are all."""
        found: tuple[tuple[Any, ...], bool] = self.state.get(container, "@items", ((), False))
        return found

    def set_items(self, container: Value, items: Seq[Any], exact: bool = True) -> None:
        """Know what a container holds."""
        self.state.set(container, "@items", (tuple(items), exact))

    def sequence(self, kind: str, items: Seq[Value], node: ast.AST | None = None, exact: bool = True) -> Sequence:
        """A new list, tuple or set."""
        made = Sequence(kind, node)
        self.set_items(made, items, exact)
        return made

    def requires_grad(self, tensor: Tensor) -> Answer:
        """Whether a tensor requires grad now."""
        answer: Answer = self.state.get(tensor, "@requires_grad", tensor.requires_grad)
        if answer and tensor.role == "parameter" and tensor.of is not None and self.frozen(tensor.of) is not False:
            return None if self.frozen(tensor.of) is None else False
        return answer

    def frozen(self, module: Value) -> Answer:
        """Whether a module's parameters have been switched off: True (all), False, None (some, or can't be told)."""
        seen = 0
        owner: Value | None = module
        while owner is not None and seen < 20:
            answer = self.state.get(owner, "@frozen", MISSING)
            if answer is not MISSING:
                return answer  # type: ignore[no-any-return]
            owner = self.parent(owner)
            seen += 1
        return False

    def parent(self, module: Value) -> Value | None:
        """The module that holds this one, as far as the program shows."""
        if isinstance(module, Symbol):
            return module.of if module.origin in ("attribute", "element") else None
        found: Value | None = self.state.get(module, "@parent")
        return found

    def mode(self, module: Value) -> str | None:
        """``train`` or ``eval`` where known."""
        seen = 0
        owner: Value | None = module
        while owner is not None and seen < 20:
            mode = self.state.get(owner, "@mode", MISSING)
            if mode is not MISSING:
                return mode  # type: ignore[no-any-return]
            owner = self.parent(owner)
            seen += 1
        return "train" if isinstance(module, Object) and module.known else None

    def set_mode(self, module: Value, mode: str | None) -> None:
        """Put a module and all that it holds into a mode."""
        for owner, slot in list(self.state.data):
            if slot == "@mode" and owner is not module and self.holds(module, owner):
                self.state.drop(owner, "@mode")
        self.state.set(module, "@mode", mode)

    def holds(self, module: Value, other: Value) -> bool:
        """Whether ``other`` is a part of ``module``, as far as the program shows."""
        up = self.parent(other)
        for _ in range(20):
            if up is None:
                return False
            if up is module:
                return True
            up = self.parent(up)
        return False

    # ---------------------------------------------------------------- joins

    def meet(self, states: list[State]) -> State:
        """One state for several paths of the current function that meet again, wherever they parted."""
        unique: list[State] = []
        for state in states:
            if not any(s is state for s in unique):
                unique.append(state)
        if len(unique) == 1:
            return unique[0]
        keys: set[tuple[Any, str]] = set()
        for state in unique:
            keys |= state.written()
        base = State(dict(unique[0].data))
        return self._merge(base, unique, keys)

    def join(self, base: State, states: list[State]) -> State:
        """One state for the arms of a branch, forked from ``base``, that go on."""
        if len(states) == 1:
            state = states[0]
            state.dirty |= base.dirty
            state.outer = base.outer
            return state
        keys: set[tuple[Any, str]] = set()
        for state in states:
            keys |= state.dirty
        return self._merge(base, states, keys)

    def _merge(self, base: State, states: list[State], keys: set[tuple[Any, str]]) -> State:
        tables = [state.data for state in states]
        outer = self.state
        self.state = _Joining(base, [outer.data, *tables])
        try:
            return self._merge_keys(base, states, tables, keys)
        finally:
            self.state = outer

    def _merge_keys(
        self, base: State, states: list[State], tables: list[dict[tuple[Any, str], Any]], keys: set[tuple[Any, str]]
    ) -> State:
        data = base.data
        first_table, second_table = tables[0], tables[1]
        two = len(tables) == 2
        for key in keys:
            first = first_table.get(key, MISSING)
            if two:
                second = second_table.get(key, MISSING)
                same = first is second
                values = [first, second]
            else:
                values = [table.get(key, MISSING) for table in tables]
                same = all(v is first for v in values)
            slot = key[1]
            if same:
                if first is MISSING:
                    data.pop(key, None)
                else:
                    data[key] = first
            elif slot in DEFINITE:
                if MISSING in values:
                    data.pop(key, None)
                else:
                    data[key] = first
            elif slot in ANSWERS:
                present = {self._assumed(key, state) if v is MISSING else v for v, state in zip(values, states)}
                data[key] = present.pop() if len(present) == 1 else None
            elif slot == "@items":
                data[key] = self._join_items([v for v in values if v is not MISSING])
            elif slot == "@parent":
                data[key] = next(v for v in values if v is not MISSING)
            else:
                joined: Any = MISSING
                for value in values:
                    if value is not MISSING:
                        joined = value if joined is MISSING else self.join_values(joined, value)
                data[key] = joined
        base.dirty |= keys
        return base

    def _assumed(self, key: tuple[Any, str], state: State) -> object:
        owner, slot = key
        if slot == "@mode":
            current, self.state = self.state, state
            try:
                return self.mode(owner)
            finally:
                self.state = current
        if slot == "@frozen":
            return False
        return getattr(owner, slot, None)

    def _join_items(self, values: list[tuple[tuple[Any, ...], bool]]) -> tuple[tuple[Any, ...], bool]:
        lengths = {len(items) for items, _ in values}
        if len(lengths) == 1 and all(exact for _, exact in values):
            columns = list(zip(*(items for items, _ in values)))
            if all(all(v is column[0] for v in column) for column in columns):
                return values[0]
        merged = {id(v): v for items, _ in values for v in items}
        return tuple(merged.values())[:32], False

    def join_values(self, a: Any, b: Any) -> Any:
        """What a name holds that is ``a`` on one path and ``b`` on another."""
        if a is b or not isinstance(a, Value) or not isinstance(b, Value):
            return a
        if isinstance(a, Const) and isinstance(b, Const) and type(a.value) is type(b.value) and a.value == b.value:
            return a
        for one, other in ((a, b), (b, a)):
            if isinstance(one, Const) and one.value is None and not isinstance(other, Const):
                return other  # optional: where it is used, it is there
        for one, other in ((a, b), (b, a)):
            if isinstance(one, Compiled) and one.module is (other.module if isinstance(other, Compiled) else other):
                return one
        for one, other in ((a, b), (b, a)):
            if isinstance(one, Dict) and isinstance(other, StateDict) and self.items(one) == ((), True):
                return other  # an empty dict stands for "none yet"
        if isinstance(a, StateDict) and isinstance(b, StateDict) and a.of is b.of and a.prefix == b.prefix:
            return a if a.order <= b.order else b  # the older, which more can have happened to
        if isinstance(a, Tensor) and isinstance(b, Tensor):
            ra, rb = self.requires_grad(a), self.requires_grad(b)
            return Tensor(
                "phi",
                (a, b),
                a.node,
                requires_grad=ra if ra == rb else None,
                leaf=a.leaf if a.leaf == b.leaf else None,
                shape=a.shape if a.shape == b.shape else None,
                dtype=a.dtype if a.dtype == b.dtype else None,
                device=a.device if a.device == b.device else None,
                role=a.role if a.role == b.role else "",
                of=a.of if a.of is b.of else None,
                scores=a.scores if a.scores == b.scores else None,
            )
        if isinstance(a, Optimizer) and isinstance(b, Optimizer):
            params = self.join_values(a.params, b.params) if a.params and b.params else None
            return Optimizer(a.name if a.name == b.name else "", params, {}, a.node)
        if isinstance(a, Scheduler) and isinstance(b, Scheduler):
            same = a.optimizer if a.optimizer is b.optimizer else None
            return Scheduler(a.name if a.name == b.name else "", same, {}, a.node)
        if isinstance(a, Parameters) and isinstance(b, Parameters) and a.named == b.named:
            return Parameters(tuple(dict.fromkeys((*a.sources, *b.sources))), a.named, a.node)
        if isinstance(a, Loader) and isinstance(b, Loader):
            return Loader(a.dataset if a.dataset is b.dataset else None, {}, a.node)
        if isinstance(a, Object) and isinstance(b, Object) and a.is_module and b.is_module:
            merged = Object(
                a.node, a.cls if a.cls is b.cls else None, a.spec if a.spec is b.spec else None, {}, known=False
            )
            self.state.set(merged, "@alternatives", (a, b))
            ma, mb = self.mode(a), self.mode(b)
            self.state.set(merged, "@mode", ma if ma == mb else None)
            return merged
        if isinstance(a, (Sequence, Dict)) and type(a) is type(b):
            made = Sequence(a.kind, a.node) if isinstance(a, Sequence) else Dict(a.node)
            self.state.set(made, "@items", self._join_items([self.items(a), self.items(b)]))
            return made
        if isinstance(a, External) and isinstance(b, External) and a.qualname == b.qualname:
            return a
        if isinstance(a, Function) and isinstance(b, Function) and a.info is b.info and a.receiver is b.receiver:
            return a
        if isinstance(a, Bound) and isinstance(b, Bound) and a.receiver is b.receiver and a.method == b.method:
            return a
        if isinstance(a, Class) and isinstance(b, Class) and a.info is b.info:
            return a
        name = a.name if isinstance(a, Symbol) and isinstance(b, Symbol) and a.name == b.name else ""
        return Symbol(name, "join")
