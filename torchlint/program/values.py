"""What an expression can hold, as far as it is known.

Values are identities: what may change about one (a model's mode, a list's items, an attribute) lives in the State,
keyed by the value, so that branches can differ. ``Symbol`` is the unknown; two reads of the same unknown attribute
give the same Symbol, so that "the same optimizer" can be said of something never seen.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchlint.program.classes import ClassInfo
    from torchlint.program.module import FunctionInfo, Module
    from torchlint.torchapi.modules import ModuleSpec
    from torchlint.torchapi.operations import Operation

Answer = bool | None
"""Yes, no, or unknown."""


class Value:
    """Anything that an expression evaluates to. ``node`` is the expression that made it, where one did."""

    __slots__ = ("node",)

    def __init__(self, node: ast.AST | None = None) -> None:
        self.node = node


class Symbol(Value):
    """Something unknown. ``name`` is how the program spells it (``model``, ``self.net``), empty for a passing result.

    ``origin`` tells where it came from: ``argument`` of the function under analysis, ``attribute``, ``global``,
    ``element`` of something iterated, ``result`` of an unknown call, ``join`` of different values. ``of`` is what it is
    an attribute, element or result of. ``annotation`` is the qualified name of its declared type, where known.
    """

    __slots__ = ("annotation", "name", "of", "origin")

    def __init__(
        self,
        name: str = "",
        origin: str = "result",
        of: Value | None = None,
        node: ast.AST | None = None,
        annotation: str | None = None,
    ) -> None:
        self.node = node
        self.name = name
        self.origin = origin
        self.of = of
        self.annotation = annotation

    def __repr__(self) -> str:
        return f"?{self.name or self.origin}"


class Const(Value):
    """A Python constant: number, string, bytes, bool, None or Ellipsis."""

    __slots__ = ("value",)

    def __init__(self, value: Any, node: ast.AST | None = None) -> None:
        self.node = node
        self.value = value

    def __repr__(self) -> str:
        return repr(self.value)


class External(Value):
    """A function, class or module whose source isn't read, by canonical name: ``torch.nn.Linear``."""

    __slots__ = ("qualname",)

    def __init__(self, qualname: str, node: ast.AST | None = None) -> None:
        self.node = node
        self.qualname = qualname

    def __repr__(self) -> str:
        return self.qualname


class Unseen(External):
    """A function or class of another file that nothing has asked for yet: ``dotted``, as ``asker`` imports it."""

    __slots__ = ("asker", "dotted", "seen")

    def __init__(self, qualname: str, dotted: str, asker: Module) -> None:
        super().__init__(qualname)
        self.dotted = dotted
        self.asker = asker
        self.seen: Value | None = None


class Function(Value):
    """A function of the project, or a lambda; ``receiver`` is the bound self, ``closure`` the frame it was made in."""

    __slots__ = ("closure", "info", "owner", "receiver")

    def __init__(
        self,
        info: FunctionInfo | ast.Lambda,
        receiver: Value | None = None,
        closure: object = None,
        owner: ClassInfo | None = None,
    ) -> None:
        self.node = info if isinstance(info, ast.Lambda) else info.node
        self.info = info
        self.receiver = receiver
        self.closure = closure
        self.owner = owner

    def __repr__(self) -> str:
        return "lambda" if isinstance(self.info, ast.Lambda) else f"{self.info.name}()"


class Class(Value):
    """A class of the project."""

    __slots__ = ("info",)

    def __init__(self, info: ClassInfo, node: ast.AST | None = None) -> None:
        self.node = node
        self.info = info

    def __repr__(self) -> str:
        return f"class {self.info.name}"


class Bound(Value):
    """A method of a value, not yet called: ``loss.backward``."""

    __slots__ = ("method", "receiver")

    def __init__(self, receiver: Value, method: str, node: ast.AST | None = None) -> None:
        self.node = node
        self.receiver = receiver
        self.method = method

    def __repr__(self) -> str:
        return f"{self.receiver!r}.{self.method}"


class Super(Value):
    """``super()`` inside a method of ``cls``."""

    __slots__ = ("cls", "receiver")

    def __init__(self, cls: ClassInfo, receiver: Value) -> None:
        self.node = None
        self.cls = cls
        self.receiver = receiver


class Partial(Value):
    """functools.partial of a callable."""

    __slots__ = ("arguments", "callee", "keywords")

    def __init__(self, callee: Value, arguments: list[Value], keywords: dict[str, Value]) -> None:
        self.node = None
        self.callee = callee
        self.arguments = arguments
        self.keywords = keywords


class Object(Value):
    """An instance: of a class of the project (``cls``), or of a torch module class (``spec``), or both by derivation.

    ``arguments`` are the constructor's, by parameter name, where they could be bound. ``known`` is false for an
    instance that was not seen being built (the ``self`` of a method looked at on its own whose __init__ couldn't be
    followed).
    """

    __slots__ = ("arguments", "cls", "known", "spec")

    def __init__(
        self,
        node: ast.AST | None = None,
        cls: ClassInfo | None = None,
        spec: ModuleSpec | None = None,
        arguments: Mapping[str, Value] | None = None,
        known: bool = True,
    ) -> None:
        self.node = node
        self.cls = cls
        self.spec = spec
        self.arguments = dict(arguments or {})
        self.known = known

    @property
    def is_module(self) -> Answer:
        """Whether it is an nn.Module."""
        if self.spec is not None:
            return True
        return self.cls.is_module if self.cls is not None else None

    def __repr__(self) -> str:
        name = self.cls.name if self.cls else self.spec.name.rpartition(".")[2] if self.spec else "object"
        return f"{name}(...)"


class Sequence(Value):
    """A list, tuple or set; the State holds its items. ``kind`` is ``list``, ``tuple`` or ``set``."""

    __slots__ = ("kind",)

    def __init__(self, kind: str, node: ast.AST | None = None) -> None:
        self.node = node
        self.kind = kind

    def __repr__(self) -> str:
        return self.kind


class Dict(Value):
    """A dict; the State holds its items."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "dict"


class Parameters(Value):
    """What ``module.parameters()`` gives: an iterator that is empty after one pass. ``named`` yields pairs.

    ``of`` is the module (an Object or Symbol), or None for a generator or filter over several. ``sources`` are what it
    draws from.
    """

    __slots__ = ("named", "sources")

    def __init__(self, sources: tuple[Value, ...], named: bool = False, node: ast.AST | None = None) -> None:
        self.node = node
        self.sources = sources
        self.named = named

    def __repr__(self) -> str:
        return f"parameters of {', '.join(map(repr, self.sources))}"


class Optimizer(Value):
    """A torch optimizer; ``params`` is what it was given, ``name`` its canonical class name."""

    __slots__ = ("arguments", "name", "params")

    def __init__(
        self, name: str, params: Value | None, arguments: Mapping[str, Value], node: ast.AST | None = None
    ) -> None:
        self.node = node
        self.name = name
        self.params = params
        self.arguments = dict(arguments)

    def __repr__(self) -> str:
        return f"{self.name.rpartition('.')[2]}({self.params!r})"


class Scheduler(Value):
    """A learning-rate scheduler over ``optimizer``."""

    __slots__ = ("arguments", "name", "optimizer")

    def __init__(
        self, name: str, optimizer: Value | None, arguments: Mapping[str, Value], node: ast.AST | None = None
    ) -> None:
        self.node = node
        self.name = name
        self.optimizer = optimizer
        self.arguments = dict(arguments)

    def __repr__(self) -> str:
        return self.name.rpartition(".")[2]


class Scaler(Value):
    """A GradScaler; ``arguments`` may hold ``enabled``."""

    __slots__ = ("arguments",)

    def __init__(self, arguments: Mapping[str, Value], node: ast.AST | None = None) -> None:
        self.node = node
        self.arguments = dict(arguments)

    def __repr__(self) -> str:
        return "GradScaler"


class Loader(Value):
    """A DataLoader over ``dataset``."""

    __slots__ = ("arguments", "dataset")

    def __init__(self, dataset: Value | None, arguments: Mapping[str, Value], node: ast.AST | None = None) -> None:
        self.node = node
        self.dataset = dataset
        self.arguments = dict(arguments)

    def __repr__(self) -> str:
        return f"DataLoader({self.dataset!r})"


class Context(Value):
    """A context manager with a meaning: ``kind`` is ``no_grad``, ``inference_mode``, ``enable_grad``,
    ``set_grad_enabled`` or ``autocast``; ``enabled`` is what it turns the mode to, ``dtype`` an autocast's."""

    __slots__ = ("dtype", "enabled", "kind")

    def __init__(self, kind: str, enabled: Answer, node: ast.AST | None = None, dtype: Value | None = None) -> None:
        self.node = node
        self.kind = kind
        self.enabled = enabled
        self.dtype = dtype

    def __repr__(self) -> str:
        return self.kind


class Compiled(Value):
    """What ``torch.compile(module)`` gives: its module in all but the names that its state dict has."""

    __slots__ = ("module",)

    def __init__(self, module: Value, node: ast.AST | None = None) -> None:
        self.node = node
        self.module = module

    def __repr__(self) -> str:
        return f"compiled {self.module!r}"


class StateDict(Value):
    """What ``module.state_dict()`` gives: references to the module's tensors.

    ``prefix`` is what a wrapper puts before all names (``module.``, ``_orig_mod.``) on some path at least. ``order``
    counts as events do: the last event before it was taken.
    """

    __slots__ = ("of", "order", "prefix")

    def __init__(self, of: Value, node: ast.AST | None = None, prefix: str = "", order: int = 0) -> None:
        self.node = node
        self.of = of
        self.prefix = prefix
        self.order = order

    def __repr__(self) -> str:
        return f"state_dict of {self.of!r}"


class Array(Value):
    """A numpy array or scalar; ``dtype`` is its name where known (``float64``), ``of`` the tensor it came from."""

    __slots__ = ("dtype", "of")

    def __init__(self, dtype: str | None = None, node: ast.AST | None = None, of: Value | None = None) -> None:
        self.node = node
        self.dtype = dtype
        self.of = of

    def __repr__(self) -> str:
        return f"ndarray[{self.dtype or '?'}]"


class Tensor(Value):
    """A tensor.

    ``op`` is what made it (``torch.add``, a layer's class, ``parameter``, ``batch``, ``phi`` for a join), ``inputs``
    what it was made from. ``requires_grad`` and ``leaf`` are what they were when it was made; ask the State for what
    they are now. ``base`` is the tensor that it is a view of. ``operation`` tells what its backward needs. ``role``:
    ``parameter`` (``of`` is the module it belongs to, where known, ``name`` its attribute), ``buffer``, ``batch``
    (``of`` the loader; ``name`` its place in the batch), ``output`` (``of`` the module called), ``loss`` (``of`` the
    criterion), ``factory``, or empty. ``scores`` is what the numbers are, as far as it matters to a loss: ``logits``,
    ``probabilities`` (softmax), ``log_probabilities``, ``sigmoid``, or None. ``module`` is the layer that made it,
    ``saved`` are the tensors whose memory its backward reads, ``order`` is the trace's count when it was made.
    """

    __slots__ = (
        "arguments",
        "base",
        "device",
        "dtype",
        "inputs",
        "leaf",
        "many",
        "module",
        "name",
        "of",
        "op",
        "operation",
        "order",
        "requires_grad",
        "role",
        "saved",
        "scores",
        "shape",
        "wraps",
    )

    def __init__(
        self,
        op: str,
        inputs: tuple[Value, ...] = (),
        node: ast.AST | None = None,
        *,
        requires_grad: Answer = None,
        leaf: Answer = None,
        shape: tuple[int | None, ...] | None = None,
        dtype: str | None = None,
        device: str | None = None,
        base: Tensor | None = None,
        operation: Operation | None = None,
        role: str = "",
        of: Value | None = None,
        name: str = "",
        scores: str | None = None,
        module: Value | None = None,
        arguments: Mapping[str, Value] | None = None,
    ) -> None:
        self.node = node
        self.op = op
        self.inputs = inputs
        self.requires_grad = requires_grad
        self.leaf = leaf
        self.shape = shape
        self.dtype = dtype
        self.device = device
        self.base = base
        self.operation = operation
        self.role = role
        self.of = of
        self.name = name
        self.scores = scores
        self.module = module
        self.arguments = arguments
        self.saved: tuple[Tensor, ...] = ()
        self.order = 0
        self.wraps: tuple[Value, ...] = ()  # what a new tensor was made from, numbers included
        self.many = False  # made by a comprehension: it stands for one tensor an item

    def __repr__(self) -> str:
        facts = [self.role or self.op]
        if self.shape is not None:
            facts.append("x".join("?" if n is None else str(n) for n in self.shape) or "scalar")
        for fact in (self.dtype, self.device):
            if fact:
                facts.append(fact)
        if self.requires_grad is not None:
            facts.append("grad" if self.requires_grad else "no grad")
        return f"Tensor[{' '.join(facts)}]"

    def ancestry(self, limit: int = 4000) -> Iterator[Tensor]:
        """This tensor and those that it was computed from, each once, nearest first."""
        seen: set[Tensor] = {self}
        order = [self]
        for tensor in order:
            yield tensor
            if len(order) > limit:
                return
            for value in tensor.inputs:
                if isinstance(value, Tensor) and value not in seen:
                    seen.add(value)
                    order.append(value)

    @property
    def storage(self) -> Tensor:
        """The tensor whose memory this one shares: itself, or the end of its chain of views."""
        tensor = self
        while tensor.base is not None:
            tensor = tensor.base
        return tensor


Items = tuple[tuple[Value, ...], bool]
"""A Sequence's items, and whether these are all of them."""


Keys = set[tuple[Any, str]]


class State:
    """What holds at one point of a program: a table from (value or frame, slot) to what is known.

    ``fork`` gives a copy for a branch; ``dirty`` collects what was written since, so that a join looks at little, and
    ``outer`` links to what was written before the fork, up to the entry of the function.
    """

    __slots__ = ("data", "dirty", "outer")

    def __init__(self, data: dict[tuple[Any, str], Any] | None = None) -> None:
        self.data = {} if data is None else data
        self.dirty: Keys = set()
        self.outer: Any = None  # (dirty, outer) of the state that this one was forked from

    def get(self, owner: object, slot: str, default: Any = None) -> Any:
        """What is known under a key."""
        return self.data.get((owner, slot), default)

    def set(self, owner: object, slot: str, value: Any) -> None:
        """Know something."""
        key = (owner, slot)
        self.data[key] = value
        self.dirty.add(key)

    def drop(self, owner: object, slot: str) -> None:
        """Forget something."""
        key = (owner, slot)
        if self.data.pop(key, None) is not None:
            self.dirty.add(key)

    def fork(self) -> State:
        """A copy to go on with in one branch."""
        forked = State(dict(self.data))
        forked.outer = (self.dirty, self.outer)
        return forked

    def written(self) -> Keys:
        """Every key written since the function was entered."""
        keys = set(self.dirty)
        outer = self.outer
        while outer is not None:
            keys |= outer[0]
            outer = outer[1]
        return keys
