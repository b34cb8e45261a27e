"""What a program does, in order: a tree of blocks whose leaves are events.

A Block is a root, a call that was followed, a loop, a branch with its arms, a with or a try. Questions are asked of
blocks and events in words: which events are inside, is something done on every path, what encloses this.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from torchlint.program.machine import Frame
    from torchlint.program.module import Module
    from torchlint.program.values import Answer, Tensor, Value

E = TypeVar("E", bound="Event")

HOLDING = frozenset(
    {
        "torch.save",
        "safetensors.torch.save_file",
        *(f"torch.autograd.{name}" for name in ("gradcheck", "gradgradcheck")),
        *(f"torch.autograd.gradcheck.{name}" for name in ("gradcheck", "gradgradcheck")),
    }
)
"""Calls for which it is noted what their arguments hold."""


class Block:
    """A stretch of the program as it was followed.

    ``kind``: ``root``, ``call`` (``node`` is the call, ``frame`` the callee's), ``loop``, ``again`` (the second pass
    through a loop's body, what was carried over from the first being known), ``branch`` (its items are ``arm`` blocks),
    ``arm``, ``with``, ``try``. ``ends`` tells how control leaves it early: ``return``, ``raise``, ``break``,
    ``continue`` or empty.
    """

    __slots__ = ("ends", "frame", "items", "kind", "listed", "loops", "node", "parent", "value")

    def __init__(self, kind: str, node: ast.AST | None, parent: Block | None, frame: Frame) -> None:
        self.kind = kind
        self.node = node
        self.parent = parent
        self.frame = frame
        self.items: list[Block | Event] = []
        self.ends = ""
        self.loops: int = (parent.loops if parent is not None else 0) + (kind == "loop")  # around, itself included
        self.value: Any = None  # what a loop iterates over; what a with enters
        self.listed: dict[tuple[object, ...], list[Event]] | None = None  # answers of `events`, for a finished root

    def __repr__(self) -> str:
        return f"<{self.kind} line {getattr(self.node, 'lineno', 0)}>"

    def events(self, *kinds: type[E], again: bool = False) -> Iterator[E]:
        """The events of these kinds inside, in order; ``again`` includes second passes of loops."""
        if self.listed is None:
            return self._walk(kinds, again)
        key = (again, *kinds)
        found = self.listed.get(key)
        if found is None:
            if kinds:
                every: Iterator[Event] = self.events(again=again)
                found = [event for event in every if isinstance(event, kinds)]
            else:
                found = list(self._walk((), again))
            self.listed[key] = found
        return iter(found)  # type: ignore[arg-type]

    def _walk(self, kinds: tuple[type[E], ...], again: bool) -> Iterator[E]:
        stack = [iter(self.items)]
        while stack:
            for item in stack[-1]:
                if type(item) is Block:
                    if again or item.kind != "again":
                        stack.append(iter(item.items))
                        break
                elif not kinds or isinstance(item, kinds):
                    yield item  # type: ignore[misc]
            else:
                stack.pop()

    def blocks(self, kind: str) -> Iterator[Block]:
        """The blocks of a kind inside (second passes of loops aside), outer before inner."""
        for item in self.items:
            if isinstance(item, Block) and item.kind != "again":
                if item.kind == kind:
                    yield item
                yield from item.blocks(kind)

    def always(self, wanted: Callable[[Event], bool]) -> bool:
        """Whether every path through this block that doesn't raise meets a wanted event.

        A path that leaves early (return, break, continue) must have met it before it leaves.
        """
        return self._always(wanted)[0]

    def _always(self, wanted: Callable[[Event], bool]) -> tuple[bool, bool]:
        """(met on every path that goes on or leaves, whether any path goes on)."""
        for item in self.items:
            if not isinstance(item, Block):
                if wanted(item):
                    return True, True
                continue
            if item.kind == "again":
                continue
            if item.kind == "branch":
                answers = [(arm._always(wanted), arm) for arm in item.items if isinstance(arm, Block)]
                live = [(met, arm) for (met, _), arm in answers if arm.ends != "raise"]
                if live and all(met for met, _ in live):
                    return True, True
                if any(not met and arm.ends for met, arm in live):
                    return False, True
            elif item.kind == "loop":
                if item._always(wanted)[0] and not any(b.ends == "break" for b in item.blocks("arm")):
                    return True, True
            elif item._always(wanted)[0]:
                return True, True
        return False, True

    def enclosing(self, *kinds: str) -> Iterator[Block]:
        """The blocks of these kinds around this one (itself included), nearest first."""
        block: Block | None = self
        while block is not None:
            if not kinds or block.kind in kinds:
                yield block
            block = block.parent

    def inside(self, other: Block) -> bool:
        """Whether this block is ``other`` or inside it."""
        return any(b is other for b in self.enclosing())


class Event:
    """Something that happened at ``node``.

    ``grad`` is the grad mode in force: True, False, or None where a caller that wasn't seen decides.
    ``order`` counts events of a root as they happened.
    """

    __slots__ = ("block", "frame", "grad", "node", "order")

    def __init__(self, node: ast.AST) -> None:
        self.node = node
        self.block: Block
        self.frame: Frame
        self.grad: Answer = None
        self.order = 0

    def __repr__(self) -> str:
        return f"<{type(self).__name__} line {getattr(self.node, 'lineno', 0)}>"

    @property
    def module(self) -> Module:
        """The file that ``node`` stands in."""
        return self.frame.module

    @property
    def statement(self) -> ast.stmt:
        """The statement that ``node`` stands in."""
        return self.frame.scope.statement(self.node)

    @property
    def loop(self) -> Block | None:
        """The innermost loop around the event, through followed calls, or None."""
        return next(self.block.enclosing("loop"), None)

    @property
    def loops(self) -> list[Block]:
        """All loops around the event, innermost first."""
        return list(self.block.enclosing("loop"))

    @property
    def again(self) -> bool:
        """Whether this is in a second pass through a loop."""
        return any(True for _ in self.block.enclosing("again"))

    @property
    def conditional(self) -> bool:
        """Whether a branch inside the innermost loop (or the root) decides if this happens."""
        for block in self.block.enclosing():
            if block.kind == "arm":
                return True
            if block.kind in ("loop", "root"):
                return False
        return False


class InPlaceChange(Event):
    """A tensor's memory is changed: ``w -= x``, ``w.add_(1)``, ``w[0] = 1``, ``out=w``, an ``inplace=True`` layer.

    ``target`` is what is changed, ``leaf`` and ``requires_grad`` are its facts now, ``view`` whether it is a view of
    another tensor. ``how`` is ``augmented``, ``method``, ``index``, ``out`` or ``layer``; ``through_data`` is true for
    a change of ``.data`` or of a detached alias.
    """

    __slots__ = ("how", "leaf", "name", "requires_grad", "target", "through_data", "view")

    def __init__(self, node: ast.AST, target: Value, how: str, name: str = "") -> None:
        super().__init__(node)
        self.target = target
        self.how = how
        self.name = name
        self.leaf: Answer = None
        self.requires_grad: Answer = None
        self.view = False
        self.through_data = False


class Backward(Event):
    """``loss.backward()``, torch.autograd.backward or torch.autograd.grad (``functional``) runs through a graph.

    ``loss`` is what it starts from. ``freed`` is an earlier Backward that freed part of the same graph on every path,
    or None; ``at`` then a tensor of the shared part. ``changed`` lists (tensor, InPlaceChange or OptimizerStep) for
    saved tensors that were changed since they were saved. ``has_graph`` is whether the loss has one, ``scalar`` whether
    it is one number. ``via`` is the
    object that runs it when it isn't the loss itself (accelerator, fabric, engine, scaler's result aside).
    """

    __slots__ = (
        "arguments",
        "at",
        "changed",
        "create_graph",
        "freed",
        "functional",
        "gradient",
        "has_graph",
        "loss",
        "retain",
        "scalar",
        "scaled_by",
        "via",
    )

    def __init__(self, node: ast.AST, loss: Value) -> None:
        super().__init__(node)
        self.loss = loss
        self.gradient: Value | None = None
        self.retain: Answer = False
        self.create_graph: Answer = False
        self.functional = False
        self.freed: Backward | None = None
        self.at: Tensor | None = None
        self.changed: list[tuple[Tensor, Event]] = []
        self.has_graph: Answer = None
        self.scalar: Answer = None
        self.via: Value | None = None
        self.scaled_by: Value | None = None
        self.arguments: dict[str, Value] = {}


class OptimizerStep(Event):
    """``optimizer.step()`` or ``scaler.step(optimizer)``. ``optimizer`` may be a Symbol;
    ``closure`` is whether one is given."""

    __slots__ = ("closure", "optimizer", "scaler")

    def __init__(self, node: ast.AST, optimizer: Value, scaler: Value | None = None, closure: bool = False) -> None:
        super().__init__(node)
        self.optimizer = optimizer
        self.scaler = scaler
        self.closure = closure


class ZeroGrad(Event):
    """Gradients are cleared: zero_grad() of an optimizer or module, or ``p.grad = None``."""

    __slots__ = ("target",)

    def __init__(self, node: ast.AST, target: Value) -> None:
        super().__init__(node)
        self.target = target


class SchedulerStep(Event):
    """``scheduler.step(...)``; ``arguments`` as given."""

    __slots__ = ("arguments", "scheduler")

    def __init__(self, node: ast.AST, scheduler: Value, arguments: list[Value]) -> None:
        super().__init__(node)
        self.scheduler = scheduler
        self.arguments = arguments


class ScalerCall(Event):
    """``scaler.scale(loss)``, ``scaler.unscale_(optimizer)``, ``scaler.update()``; ``method`` says which."""

    __slots__ = ("argument", "method", "scaler")

    def __init__(self, node: ast.AST, scaler: Value, method: str, argument: Value | None) -> None:
        super().__init__(node)
        self.scaler = scaler
        self.method = method
        self.argument = argument


class ClipGrad(Event):
    """``clip_grad_norm_``/``clip_grad_value_`` (or a framework's), with what it was given."""

    __slots__ = ("name", "params")

    def __init__(self, node: ast.AST, params: Value | None, name: str) -> None:
        super().__init__(node)
        self.params = params
        self.name = name


class ModeChange(Event):
    """``model.train()``/``model.eval()``; ``mode`` is ``train``, ``eval`` or None where an argument decides."""

    __slots__ = ("mode", "target")

    def __init__(self, node: ast.AST, target: Value, mode: str | None) -> None:
        super().__init__(node)
        self.target = target
        self.mode = mode


class ModuleCall(Event):
    """A module (or something unknown that is called like one) is applied: ``model(x)``.

    ``mode`` is ``train``, ``eval`` or None where unknown; ``autocast`` the Context in force. ``result`` is set after.
    For a Symbol, ``likely`` tells whether the program elsewhere treats it as a module (``.eval()``, ``.parameters()``,
    an annotation): ask after the trace is complete. ``inner`` is true for a layer called inside a module that was
    itself called and followed. ``mode_dependent`` is whether train() and eval() differ for it (not asked in eval mode).
    """

    __slots__ = (
        "arguments",
        "autocast",
        "evidence",
        "inner",
        "keywords",
        "mode",
        "mode_dependent",
        "result",
        "target",
        "tensors",
    )

    def __init__(self, node: ast.AST, target: Value, arguments: list[Value], keywords: dict[str, Value]) -> None:
        super().__init__(node)
        self.target = target
        self.arguments = arguments
        self.keywords = keywords
        self.mode: str | None = None
        self.autocast: Value | None = None
        self.result: Value | None = None
        self.inner = False
        self.tensors: list[Tensor] = []  # among the arguments, sequences looked into
        self.mode_dependent: Answer = None
        self.evidence: set[Value] = set()

    @property
    def likely(self) -> bool:
        """Whether the target is a module, or is treated as one somewhere in the trace."""
        from torchlint.program.values import Symbol

        return not isinstance(self.target, Symbol) or self.target in self.evidence


class LossCall(Event):
    """A torch loss is computed, as an object or a function. ``name`` is canonical (``torch.nn.CrossEntropyLoss``,
    ``torch.nn.functional.cross_entropy``); ``input`` and ``target`` what it got; ``result`` the loss."""

    __slots__ = ("criterion", "input", "keywords", "name", "result", "target")

    def __init__(self, node: ast.AST, name: str, input: Value | None, target: Value | None) -> None:
        super().__init__(node)
        self.name = name
        self.input = input
        self.target = target
        self.criterion: Value | None = None
        self.keywords: dict[str, Value] = {}
        self.result: Value | None = None


class Held:
    """What the arguments of a call held when it was made: containers their items, tensors whether they require grad.

    ``items`` are as the interpreter has them: the items of a Sequence or pairs of a Dict, and whether these are all.
    """

    __slots__ = ("items", "requires_grad")

    def __init__(self) -> None:
        self.items: dict[Value, tuple[tuple[Any, ...], bool]] = {}
        self.requires_grad: dict[Value, Answer] = {}


class Call(Event):
    """A call of an external function or class, by canonical name, or of a tensor's method (``Tensor.numpy``).

    ``held`` is known of the calls whose names are in ``HOLDING``. ``attached``: for a conversion to numpy, the tensors
    among what is converted that require grad now.
    """

    __slots__ = ("arguments", "attached", "held", "keywords", "name", "receiver", "result")

    def __init__(
        self, node: ast.AST, name: str, receiver: Value | None, arguments: list[Value], keywords: dict[str, Value]
    ) -> None:
        super().__init__(node)
        self.name = name
        self.receiver = receiver
        self.arguments = arguments
        self.keywords = keywords
        self.held: Held | None = None
        self.attached: list[Tensor] = []
        self.result: Value | None = None


class UnknownCall(Event):
    """A call of something that couldn't be followed; whatever it was given may have been changed by it."""

    __slots__ = ("arguments", "callee", "keywords", "result")

    def __init__(self, node: ast.AST, callee: Value, arguments: list[Value], keywords: dict[str, Value]) -> None:
        super().__init__(node)
        self.callee = callee
        self.arguments = arguments
        self.keywords = keywords
        self.result: Value | None = None

    def involves(self, value: Value) -> bool:
        """Whether the call got ``value``, or was a method of it."""
        from torchlint.program.values import Bound, Symbol

        given = [*self.arguments, *self.keywords.values()]
        callee = self.callee
        while isinstance(callee, (Bound, Symbol)):
            up = callee.receiver if isinstance(callee, Bound) else callee.of
            if up is None:
                break
            given.append(up)
            callee = up
        return any(g is value for g in given)


class AttributeStore(Event):
    """``target.name = value`` on something other than a plain local."""

    __slots__ = ("name", "target", "value")

    def __init__(self, node: ast.AST, target: Value, name: str, value: Value) -> None:
        super().__init__(node)
        self.target = target
        self.name = name
        self.value = value


class Accumulate(Event):
    """A value is kept beyond the statement: ``losses.append(loss)``, ``total += loss``, ``log[k] = loss``.

    ``how`` is ``append``, ``sum`` or ``store``; ``container`` is what keeps it (for ``sum``, the old value) and
    ``result`` the new one. ``born`` is the loop block that the container was made in (None: before any loop).
    """

    __slots__ = ("born", "container", "how", "name", "result", "value")

    def __init__(self, node: ast.AST, container: Value, value: Value, how: str, name: str = "") -> None:
        super().__init__(node)
        self.container = container
        self.value = value
        self.how = how
        self.name = name
        self.born: Block | None = None
        self.result: Value | None = None


class ParametersUsed(Event):
    """An iterator of parameters is consumed; ``exhausted`` is the earlier use that already emptied it, or None."""

    __slots__ = ("by", "exhausted", "parameters")

    def __init__(self, node: ast.AST, parameters: Value, by: str) -> None:
        super().__init__(node)
        self.parameters = parameters
        self.by = by
        self.exhausted: Event | None = None


class OptimizerMade(Event):
    """An optimizer is built. ``non_leaf`` are tensors among its parameters that are no leaves; ``frozen`` is whether
    all that it holds is switched off now (None: some, or unknown)."""

    __slots__ = ("frozen", "non_leaf", "optimizer")

    def __init__(self, node: ast.AST, optimizer: Value, non_leaf: list[Tensor], frozen: Answer) -> None:
        super().__init__(node)
        self.optimizer = optimizer
        self.non_leaf = non_leaf
        self.frozen = frozen


class GradRead(Event):
    """``tensor.grad`` of a tensor that is no leaf and doesn't retain its gradient."""

    __slots__ = ("tensor",)

    def __init__(self, node: ast.AST, tensor: Tensor) -> None:
        super().__init__(node)
        self.tensor = tensor


class InferenceTensorSaved(Event):
    """An operation that autograd records would keep a tensor made in inference mode."""

    __slots__ = ("tensor",)

    def __init__(self, node: ast.AST, tensor: Tensor) -> None:
        super().__init__(node)
        self.tensor = tensor


class TensorOp(Event):
    """A torch operation that made ``result``; emitted for functions, methods and operators alike (``op`` canonical)."""

    __slots__ = ("op", "result")

    def __init__(self, node: ast.AST, op: str, result: Tensor) -> None:
        super().__init__(node)
        self.op = op
        self.result = result


class Return(Event):
    """A function returns ``value``; ``parts`` are the items of a tuple or list."""

    __slots__ = ("parts", "value")

    def __init__(self, node: ast.AST, value: Value, parts: tuple[Value, ...] = ()) -> None:
        super().__init__(node)
        self.value = value
        self.parts = parts


class Trace:
    """One root followed to its end. ``root.events()`` are all events."""

    __slots__ = ("_self_savers", "frame", "root")

    def __init__(self, root: Block, frame: Frame, self_savers: Sequence[Tensor] = ()) -> None:
        self.root = root
        self.frame = frame
        root.listed = {}
        self._self_savers = self_savers

    def loops(self) -> Iterator[Block]:
        """Every loop, outer before inner."""
        return self.root.blocks("loop")

    def release(self) -> None:
        """Take the trace apart, so that its memory goes without the cyclic garbage collector; it is dead after."""
        for tensor in self._self_savers:
            tensor.saved = ()
        blocks = [self.root]
        self.root.listed = None
        for block in blocks:
            for item in block.items:
                if isinstance(item, Block):
                    blocks.append(item)
                else:
                    item.block = item.frame = None  # type: ignore[assignment]
            block.items = []
            block.parent = block.value = None
            if block.frame is not None:
                block.frame.block = block.frame.closure = None
            block.frame = None  # type: ignore[assignment]
