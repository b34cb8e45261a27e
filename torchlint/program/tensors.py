"""Tensors: what operations make of them, what backward needs, what in-place changes break."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from typing import Any

from torchlint.program.events import (
    Backward,
    Event,
    GradRead,
    InferenceTensorSaved,
    InPlaceChange,
    OptimizerStep,
    TensorOp,
    ZeroGrad,
)
from torchlint.program.machine import GRAD, Machine
from torchlint.program.values import (
    Answer,
    Array,
    Bound,
    Const,
    Dict,
    Object,
    Optimizer,
    Parameters,
    Sequence,
    Symbol,
    Tensor,
    Value,
)
from torchlint.torchapi.operations import Operation, function, tensor_method

KEEPS_SCORES = frozenset(
    "view reshape squeeze unsqueeze transpose permute flatten unflatten contiguous to float double half bfloat16 cpu "
    "cuda detach clone t T mT data index_select narrow select getitem swapaxes movedim expand view_as reshape_as "
    "type".split()
)
"""Operations whose result holds the same kind of numbers (logits, probabilities) as their input."""

SCORES = {
    "softmax": "probabilities",
    "softmin": "probabilities",
    "gumbel_softmax": "probabilities",
    "log_softmax": "log_probabilities",
    "logsigmoid": "log_sigmoid",
    "sigmoid": "sigmoid",
    "linear": "logits",
    "bilinear": "logits",
    "conv1d": "logits",
    "conv2d": "logits",
    "conv3d": "logits",
}

CASTS = {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "bfloat16": "bfloat16",
    "long": "int64",
    "int": "int32",
    "short": "int16",
    "bool": "bool",
    "byte": "uint8",
    "char": "int8",
}
FLOATING = frozenset(("float32", "float64", "float16", "bfloat16", "complex64", "complex128"))
INTEGRAL = frozenset(("int64", "int32", "int16", "int8", "uint8", "bool"))
ATTRIBUTE_OPS = frozenset(("T", "mT", "H", "mH", "real", "imag", "data"))
NUMBERS = frozenset(("item", "tolist"))


class Tensors(Machine):
    """Tensor operations of the interpreter."""

    def current(self, value: Value) -> Value:
        """A tensor as it is now: an in-place operation gives its holder a new history."""
        while isinstance(value, Tensor):
            later = self.state.get(value, "@now")
            if later is None:
                return value
            value = later
        return value

    # ---------------------------------------------------------------- operations

    def tensor_operation(
        self,
        name: str,
        arguments: list[Value],
        keywords: Mapping[str, Value],
        node: ast.AST,
        base: Tensor | None = None,
    ) -> Value:
        """The result of a torch function, method or operator, by canonical name."""
        operation = function(name)
        tail = name.rpartition(".")[2]
        inputs = self._inputs(arguments, keywords)
        out = keywords.get("out")
        if isinstance(out, Tensor):
            self.change(out, node, "out", tail)
        shape = result_shape(operation, len(arguments) > 1 or "dim" in keywords)
        if shape == "other":
            return Symbol("", "result", inputs[0] if inputs else None, node)
        made = self._result(name, operation, arguments, inputs, node, keywords)
        if operation is not None and operation.view_of:
            viewed = arguments[operation.view_of[0]] if operation.view_of[0] < len(arguments) else None
            if isinstance(viewed, Tensor):
                made.base = viewed
                self._stays_inference(made, viewed)
        elif base is not None:
            made.base = base
        if shape == "many":
            return self.sequence("tuple", [made], node, exact=False)
        if shape == "fields" and operation is not None:
            rest = [
                Tensor(f"{name}.{field}", inputs, node, requires_grad=False, leaf=True, dtype="int64")
                if field == "indices"
                else Tensor(f"{name}.{field}", (made,), node, requires_grad=made.requires_grad, leaf=made.leaf)
                for field in operation.fields[1:]
            ]
            pair = self.sequence("tuple", [made, *rest], node)
            for field, value in zip(operation.fields, (made, *rest)):
                self.state.set(pair, f".{field}", value)
            return pair
        return made

    def _inputs(self, arguments: list[Value], keywords: Mapping[str, Value]) -> tuple[Value, ...]:
        inputs: list[Value] = []
        for value in (*arguments, *keywords.values()):
            if isinstance(value, (Tensor, Symbol)):
                inputs.append(value)
            elif isinstance(value, Sequence) and value.kind != "slice":
                items, exact = self.items(value)
                items = tuple(map(self.current, items))
                for item in items:
                    if isinstance(item, Sequence):
                        inputs.extend(v for v in self.items(item)[0] if isinstance(v, (Tensor, Symbol)))
                inputs.extend(v for v in items if isinstance(v, (Tensor, Symbol)))
                if not items or (not exact and not any(isinstance(v, (Tensor, Sequence)) for v in items)):
                    inputs.append(Symbol("", "element", value))
        return tuple(inputs)

    def grad_of(self, inputs: tuple[Value, ...], operation: Operation | None) -> Answer:
        """Whether a result computed from these inputs now requires grad."""
        if self.grad is False or (operation is not None and operation.differentiable is False):
            return False
        answers = [self.requires_grad(v) if isinstance(v, Tensor) else None for v in inputs]
        if True in answers:
            return True
        return None if None in answers else False

    def _result(
        self,
        name: str,
        operation: Operation | None,
        arguments: list[Value],
        inputs: tuple[Value, ...],
        node: ast.AST,
        keywords: Mapping[str, Value],
    ) -> Tensor:
        tail = name.rpartition(".")[2]
        requires = self.grad_of(inputs, operation)
        first = next((v for v in inputs if isinstance(v, Tensor)), None)
        dtype = operation.dtype if operation is not None else None
        if dtype in ("same", "", None) or dtype == "float":
            known = (
                {v.dtype for v in inputs if isinstance(v, Tensor)}
                if all(isinstance(v, Tensor) for v in inputs)
                else set()
            )
            dtype = known.pop() if len(known) == 1 and (dtype != "float" or known <= FLOATING) else None
        if dtype is not None and dtype not in FLOATING:
            requires = False if dtype in INTEGRAL else requires
            dtype = dtype if dtype in INTEGRAL else None
        made = Tensor(
            name,
            inputs,
            node,
            requires_grad=requires,
            leaf=None if requires is None else not requires,
            dtype=dtype,
            device=first.device if first is not None else None,
            operation=operation,
            scores=first.scores if first is not None and tail in KEEPS_SCORES else SCORES.get(tail),
            arguments=keywords,
        )
        self.emit(TensorOp(node, name, made))
        self._born(made, arguments, operation)
        return made

    def _born(self, made: Tensor, arguments: list[Value], operation: Operation | None) -> None:
        made.order = self.order
        made.many = self.comprehending > 0
        if self.state.get(GRAD, "inference"):
            self.state.set(made, "@inference", True)
        if operation is None or not made.requires_grad:
            return
        saved: list[Tensor] = []
        for need in operation.needs:
            of = arguments[need.gradient_of] if 0 <= need.gradient_of < len(arguments) else None
            if not isinstance(of, Tensor) or not self.requires_grad(of):
                continue
            for i in need.inputs:
                if i < len(arguments) and isinstance(arguments[i], Tensor):
                    saved.append(arguments[i])  # type: ignore[arg-type]
            if need.outputs or need.fails:
                saved.append(made)
        self.keep(made, saved)

    def _stays_inference(self, view: Tensor, base: Tensor) -> None:
        """A view of a tensor of inference mode is one too, wherever it is made (torch 2.13, seen by running)."""
        if self.state.get(base, "@inference"):
            self.state.set(view, "@inference", True)

    def keep(self, made: Tensor, saved: list[Tensor]) -> None:
        """Know what a result's backward reads; a tensor of inference mode can't be kept for it."""
        made.saved = tuple(saved)
        if made in saved:
            self.self_savers.append(made)
        for tensor in saved:
            if self.grad is not False and self.state.get(tensor, "@inference") and made.node is not None:
                self.emit(InferenceTensorSaved(made.node, tensor))
                break

    def tensor_item(self, tensor: Tensor, index: Value, node: ast.AST) -> Value:
        """``tensor[index]``: a view for integers, slices, None and Ellipsis, a copy for index tensors and lists."""
        made = self._result("torch.getitem", None, [tensor], (tensor,), node, {})
        made.scores = tensor.scores
        made.dtype = tensor.dtype
        if tensor.dtype in FLOATING or tensor.dtype is None:
            made.requires_grad = self.grad_of((tensor,), None)
        parts = self.items(index)[0] if isinstance(index, Sequence) and index.kind == "tuple" else (index,)
        if all(
            (isinstance(p, (Const, Symbol)) and not isinstance(getattr(p, "value", None), bool))
            or (isinstance(p, Sequence) and p.kind == "slice")
            for p in parts
        ):
            made.base = tensor
            self._stays_inference(made, tensor)
        made.role = tensor.role if tensor.role in ("batch", "output") else ""
        made.of = tensor.of if made.role else None
        return made

    # ---------------------------------------------------------------- attributes and methods

    def tensor_attribute(self, tensor: Tensor, name: str, node: ast.AST) -> Value:
        """``tensor.name``."""
        if name == "data":
            return self.detached(tensor, "data", node)
        if name in ATTRIBUTE_OPS:
            made = self._result(f"torch.Tensor.{name}", None, [tensor], (tensor,), node, {})
            made.base = tensor
            return made
        if name == "requires_grad":
            answer = self.requires_grad(tensor)
            return (
                Symbol("", "attribute", tensor, node) if answer is None or tensor.role == "parameter" else Const(answer)
            )
        if name in ("shape", "dtype", "device", "grad", "grad_fn", "is_leaf", "ndim", "is_cuda", "names", "layout"):
            slot = f".{name}"
            found: Value | None = self.state.get(tensor, slot)
            if found is None:
                if name == "grad":
                    if self.is_attached_non_leaf(tensor):
                        self.emit(GradRead(node, tensor))
                    higher = self.state.get(GRAD, "higher", False)
                    found = Tensor("grad", (), node, role="gradient", of=tensor)
                    found.requires_grad, found.leaf = (None, None) if higher else (False, True)
                elif name == "dtype" and tensor.dtype:
                    found = Symbol(tensor.dtype, "attribute", tensor, node)
                else:
                    found = Symbol("", "attribute", tensor, node)
                self.state.set(tensor, slot, found)
            return found
        return Bound(tensor, name, node)

    def is_attached_non_leaf(self, tensor: Tensor) -> bool:
        """Whether a tensor's ``.grad`` is never filled: it has a history and wasn't asked to retain it."""
        known = tensor.leaf is False and bool(self.requires_grad(tensor))
        return known and tensor.op != "phi" and not self.state.get(tensor, "@retained")

    def scalar(self, value: Value, depth: int = 0) -> Answer:
        """Whether a value is a single number: True, False, or None where that can't be told."""
        if not isinstance(value, Tensor) or depth > 12:
            return None
        if value.shape is not None:
            if all(isinstance(n, int) for n in value.shape):
                return math.prod(n for n in value.shape if n is not None) == 1
            return None
        if self.state.get(value, "@unreduced"):
            return False
        tail = value.op.rpartition(".")[2]
        if tail in ("sum", "mean", "prod", "norm", "dot", "trace", "logsumexp", "median", "max", "min"):
            keywords = value.arguments or {}
            whole = len(value.inputs) == 1 and "dim" not in keywords and "axis" not in keywords
            return True if whole and tail not in ("logsumexp",) and not value.name else None
        if value.op == "scaled" or (value.operation is not None and value.operation.pointwise):
            answers = [self.scalar(v, depth + 1) for v in value.inputs]
            if False in answers:
                return False
            return True if answers and all(answers) else None
        return None

    def detached(self, tensor: Tensor, name: str, node: ast.AST) -> Tensor:
        """``detach()`` and ``.data``: the same memory, no graph."""
        made = Tensor(
            f"torch.Tensor.{name}",
            (tensor,),
            node,
            requires_grad=False,
            leaf=True,
            base=tensor,
            dtype=tensor.dtype,
            device=tensor.device,
            shape=tensor.shape,
            role=tensor.role if tensor.role in ("batch", "output") else "",
            of=tensor.of if tensor.role in ("batch", "output") else None,
            scores=tensor.scores,
        )
        self.emit(TensorOp(node, f"torch.Tensor.{name}", made))
        made.order = self.order
        return made

    def set_tensor_attribute(self, tensor: Tensor, name: str, value: Value, node: ast.Attribute) -> None:
        """``tensor.name = value``."""
        if name == "requires_grad":
            if isinstance(value, Const) and value.value is True and self.is_computed_number(tensor):
                self.made_leaf(tensor, node)
                return
            self.state.set(tensor, "@requires_grad", value.value if isinstance(value, Const) else None)
            if tensor.role == "parameter":
                self.freeze_through(tensor, value.value if isinstance(value, Const) else None)
        elif name == "grad":
            if isinstance(value, Const) and value.value is None:
                self.gradients_dropped(tensor, node)
        elif name == "data":
            self.change(self.detached(tensor, "data", node), node, "augmented", "data")
        else:
            self.state.set(tensor, f".{name}", value)

    def is_computed_number(self, tensor: Tensor) -> bool:
        """Whether a tensor is one number, computed without a graph."""
        return self.requires_grad(tensor) is False and bool(tensor.inputs) and self.scalar(tensor) is True

    def made_leaf(self, tensor: Tensor, node: ast.AST) -> Tensor:
        """A computed number that is asked for gradients: a leaf from now on, whatever it was computed from."""
        made = Tensor(
            "torch.Tensor.requires_grad_",
            (),
            node,
            requires_grad=True,
            leaf=True,
            shape=(),
            dtype=tensor.dtype,
            device=tensor.device,
            base=tensor,
            role=tensor.role,
        )
        made.order, made.wraps = self.order, (tensor,)
        self.state.set(tensor, "@now", made)
        return made

    def freeze_through(self, parameter: Tensor, requires_grad: Answer) -> None:
        """``p.requires_grad = ...`` in a loop over a module's parameters tells of them all."""
        if parameter.op == "parameters" and parameter.of is not None:
            conditional = any(b.kind == "arm" for b in self._arms_inside_loop())
            answer = None if requires_grad is None or conditional else not requires_grad
            self.freeze(parameter.of, answer)
        elif requires_grad is not False:
            self.thaw()

    def thaw(self) -> None:
        """Parameters of a module that can't be told were switched on: what was frozen may be no more."""
        for (owner, slot), held in list(self.state.data.items()):
            if slot == "@frozen" and held is True:
                self.state.set(owner, "@frozen", None)

    def _arms_inside_loop(self) -> list[Any]:
        found = []
        for block in self.block.enclosing():
            if block.kind in ("loop", "again", "root"):
                break
            found.append(block)
        return found

    def freeze(self, module: Value, frozen: Answer, parts: bool = True) -> None:
        """All parameters of a module are switched off (True), on (False), or some of them (None).

        ``parts`` False: its parts are left as they are.
        """
        if not parts:
            for (owner, slot), held in list(self.state.data.items()):
                if owner is module and isinstance(held, Object) and slot[:1] == ".":
                    self.state.set(held, "@frozen", self.frozen(held))
        for owner, slot in list(self.state.data):
            if parts and slot == "@frozen" and owner is not module and self.holds(module, owner):
                if frozen is None:
                    self.state.set(owner, "@frozen", None)
                else:
                    self.state.drop(owner, "@frozen")
        self.state.set(module, "@frozen", frozen)
        up = self.parent(module)
        for _ in range(20):
            if up is None:
                break
            if self.frozen(up) is not frozen:
                self.state.set(up, "@frozen", None)
            up = self.parent(up)

    def gradients_dropped(self, owner: Value, node: ast.AST) -> None:
        """``p.grad = None``."""
        of = owner.of if isinstance(owner, Tensor) and owner.role == "parameter" and owner.of is not None else owner
        self.emit(ZeroGrad(node, of))

    def call_tensor_method(
        self, tensor: Tensor, name: str, arguments: list[Value], keywords: dict[str, Value], node: ast.AST
    ) -> Value:
        """``tensor.name(...)``."""
        if name == "backward":
            self.backward(tensor, arguments, keywords, node)
            return Const(None)
        if name == "detach":
            return self.detached(tensor, name, node)
        if name == "detach_":
            made = self.detached(tensor, "detach", node)
            self.state.set(tensor, "@now", made)
            return made
        if name == "requires_grad_":
            enabled = arguments[0] if arguments else keywords.get("requires_grad")
            answer = True if enabled is None else enabled.value if isinstance(enabled, Const) else None
            if answer is True and self.is_computed_number(tensor):
                return self.made_leaf(tensor, node)
            self.state.set(tensor, "@requires_grad", answer)
            if tensor.role == "parameter":
                self.freeze_through(tensor, answer)
            return tensor
        if name == "retain_grad":
            self.state.set(tensor, "@retained", True)
            return Const(None)
        if name == "numpy":
            return Array(tensor.dtype, node, tensor)
        if name in NUMBERS:
            return Symbol("", "result", tensor, node)
        if name in CASTS or name in ("to", "type", "cpu", "cuda", "type_as"):
            return self.cast(tensor, name, arguments, keywords, node)
        operation = tensor_method(name)
        if operation is not None and operation.mutates:
            return self._in_place_method(tensor, name, operation, arguments, keywords, node)
        full = operation.name if operation is not None else f"torch.Tensor.{name}"
        return self.tensor_operation(full, [tensor, *arguments], keywords, node)

    def cast(
        self, tensor: Tensor, name: str, arguments: list[Value], keywords: dict[str, Value], node: ast.AST
    ) -> Tensor:
        """``to``, ``float``, ``cuda`` and their like: the tensor itself or a copy with the same history."""
        made = self._result(f"torch.Tensor.{name}", None, [tensor], (tensor,), node, keywords)
        made.shape, made.dtype, made.role, made.of, made.name = (
            tensor.shape,
            tensor.dtype,
            tensor.role if tensor.role in ("batch", "output") else "",
            tensor.of if tensor.role in ("batch", "output") else None,
            tensor.name,
        )
        made.scores = tensor.scores
        given = [*arguments, *keywords.values()]
        if name in CASTS:
            made.dtype = CASTS[name]
        elif name in ("cpu", "cuda"):
            made.device = name
        for value in given:
            dtype = self.dtype_of(value)
            if dtype is not None:
                made.dtype = dtype
            device = self.device_of(value)
            if device is not None:
                made.device = device
        if any(isinstance(v, Symbol) for v in given):
            made.device = None if name in ("to", "cuda") else made.device
        if made.dtype is not None and made.dtype not in FLOATING:
            made.requires_grad, made.leaf = False, True
        return made

    def dtype_of(self, value: Value | None) -> str | None:
        """The dtype that an argument names: ``float32`` for torch.float."""
        from torchlint.program.values import External

        if isinstance(value, External) and value.qualname.startswith("torch."):
            name = value.qualname[len("torch.") :]
            full = {**CASTS, "cfloat": "complex64", "cdouble": "complex128"}.get(name, name)
            return full if full in FLOATING or full in CASTS.values() else None
        if isinstance(value, External) and value.qualname in ("builtins.float", "builtins.int", "builtins.bool"):
            return {"float": "float64", "int": "int64", "bool": "bool"}[value.qualname[9:]]
        return None

    def device_of(self, value: Value | None) -> str | None:
        """The kind of device that an argument names: ``cuda`` for "cuda:0"."""
        if isinstance(value, Const) and isinstance(value.value, str):
            kind = value.value.partition(":")[0]
            return kind if kind in ("cpu", "cuda", "mps", "meta", "xpu") else None
        return None

    # ---------------------------------------------------------------- in-place changes

    def _in_place_method(
        self,
        tensor: Tensor,
        name: str,
        operation: Operation,
        arguments: list[Value],
        keywords: dict[str, Value],
        node: ast.AST,
    ) -> Value:
        self.change(tensor, node, "method", name)
        later = self._result(
            operation.name,
            operation,
            [tensor, *arguments],
            self._inputs([tensor, *arguments], keywords),
            node,
            keywords,
        )
        return self._succeed(tensor, later)

    def _succeed(self, tensor: Tensor, later: Tensor) -> Tensor:
        later.base = tensor
        later.role, later.of, later.name = tensor.role, tensor.of, tensor.name
        later.dtype, later.device, later.shape = tensor.dtype, tensor.device, tensor.shape
        requires = self.requires_grad(tensor)
        if tensor.leaf and (self.grad is False or requires):
            # A leaf that requires grad stays one: either nothing records, or torch refuses the change.
            later.leaf, later.requires_grad = tensor.leaf, requires
        self.state.set(tensor, "@now", later)
        return later

    def augmented(self, tensor: Tensor, name: str, other: Value, node: ast.AST) -> Tensor:
        """``tensor += other``."""
        operation = tensor_method(f"{name}_")
        self.change(tensor, node, "augmented", f"{name}_")
        later = self._result(
            operation.name if operation else f"torch.Tensor.{name}_",
            operation,
            [tensor, other],
            self._inputs([tensor, other], {}),
            node,
            {},
        )
        return self._succeed(tensor, later)

    def item_changed(self, tensor: Tensor, index: Value, value: Value, node: ast.AST) -> None:
        """``tensor[index] = value``."""
        event = self.change(tensor, node, "index")
        event.view = event.view or self.is_partial(index)
        later = self._result("torch.Tensor.setitem", None, [tensor, value], self._inputs([tensor, value], {}), node, {})
        self._succeed(tensor, later)

    def is_partial(self, index: Value) -> bool:
        """Whether writing through an index goes through a view of a part (measured on torch 2.13).

        Integers, None and bounded slices do; full slices, Ellipsis, masks, lists and index tensors write to the whole.
        """
        if isinstance(index, Sequence) and index.kind == "slice":
            bounds = self.items(index)[0]
            return not all(isinstance(b, Const) and b.value is None for b in bounds)
        if isinstance(index, Sequence) and index.kind == "tuple":
            return any(self.is_partial(part) for part in self.items(index)[0])
        if isinstance(index, Const):
            return index.value is not Ellipsis
        return isinstance(index, Symbol)

    def change(self, target: Value, node: ast.AST, how: str, name: str = "") -> InPlaceChange:
        """Record that a value's memory is changed."""
        event = InPlaceChange(node, target, how, name)
        if isinstance(target, Tensor):
            root = target.storage
            history: Tensor | None = target
            event.view = False
            while history is not None:
                if history.op in ("torch.Tensor.data", "torch.Tensor.detach"):
                    event.through_data = True
                if history.base is not None and not history.op.endswith("_") and history.op != "torch.Tensor.setitem":
                    event.view = True
                history = history.base
            owner = target if event.through_data else root
            event.leaf = owner.leaf if owner.leaf is not None else None
            event.requires_grad = self.requires_grad(owner)
            if any(t.op.endswith("_") and t.leaf is False for t in _history(target)):
                event.leaf = False
        self.emit(event)
        if isinstance(target, Tensor):
            self.state.set(target.storage, "@changed", event)
        return event

    # ---------------------------------------------------------------- backward

    def backward(
        self, loss: Value, arguments: list[Value], keywords: dict[str, Value], node: ast.AST, functional: bool = False
    ) -> Backward:
        """Run a Backward from a loss: note what it finds freed or changed, and free what it passes."""
        event = Backward(node, loss)
        event.functional = functional
        named = {
            **dict(zip(("gradient", "retain_graph", "create_graph"), arguments if not functional else ())),
            **keywords,
        }
        event.arguments = named
        event.gradient = named.get("gradient") or named.get("grad_outputs") or named.get("grad_tensors")
        if isinstance(event.gradient, Const) and event.gradient.value is None:
            event.gradient = None
        event.create_graph = _answer(named.get("create_graph"), False)
        event.retain = _answer(named.get("retain_graph"), event.create_graph)
        if event.create_graph is not False:
            self.state.set(GRAD, "higher", True)
        self.emit(event)
        losses = self.items(loss)[0] if isinstance(loss, (Sequence, Dict)) else (loss,)
        roots = [v for v in losses if isinstance(v, Tensor)]
        event.has_graph = self._any_grad(losses)
        event.scalar = self.scalar(losses[0]) if len(losses) == 1 else None
        graph = self._graph(roots)
        for tensor in graph:
            if event.freed is None and not tensor.many and (tensor.saved or tensor.role == "output"):
                freed = self.state.get(tensor, "@freed")
                if freed is not None:
                    event.freed, event.at = freed, tensor
            for saved in tensor.saved:
                change = self.state.get(saved.storage, "@changed")
                if change is not None and change.order > tensor.order and not change.through_data:
                    event.changed.append((saved, change))
            stepped = self._stepped(tensor)
            if stepped is not None:
                event.changed.append((tensor, stepped))
        if event.retain is False:
            for tensor in graph:
                self.state.set(tensor, "@freed", event)
        return event

    def _any_grad(self, losses: tuple[Value, ...]) -> Answer:
        answers = [self.requires_grad(v) if isinstance(v, Tensor) else None for v in losses]
        return True if True in answers else None if None in answers or not answers else False

    def _graph(self, roots: list[Tensor]) -> list[Tensor]:
        """The tensors that a backward from ``roots`` passes for sure, roots first."""
        order = [t for t in roots if self.requires_grad(t) is not False and t.op != "phi"]
        seen = set(order)
        for tensor in order:
            if len(order) > 3000:
                break
            for value in tensor.inputs:
                if (
                    isinstance(value, Tensor)
                    and value not in seen
                    and value.op != "phi"
                    and value.leaf is not True
                    and value.requires_grad
                ):
                    seen.add(value)
                    order.append(value)
        return order

    def _stepped(self, tensor: Tensor) -> Event | None:
        """An optimizer's step since ``tensor`` was made that changed weights which its backward reads."""
        module = tensor.module
        if module is None or tensor.role == "loss":
            return None
        reads_weights = tensor.role == "output" and not tensor.saved and not isinstance(module, Object)
        if isinstance(module, Object):
            reads_weights = any(isinstance(v, Tensor) and v.requires_grad for v in tensor.inputs)
            if module.spec is not None and module.cls is None and module.spec.kind not in _READS_WEIGHTS:
                return None
        if not reads_weights:
            return None
        owner: Value | None = module
        for _ in range(20):
            if owner is None:
                return None
            step: OptimizerStep | None = self.state.get(owner, "@stepped")
            if step is not None:
                return step if step.order > tensor.order else None
            owner = self.parent(owner)
        return None

    def stepped(self, event: OptimizerStep) -> None:
        """An optimizer has changed what it holds."""
        optimizer = event.optimizer
        if not isinstance(optimizer, Optimizer) or optimizer.params is None:
            return
        for source in self.sources(optimizer.params):
            self.state.set(source, "@stepped", event)

    def sources(self, params: Value | None, depth: int = 0) -> list[Value]:
        """The modules (or parameters) that an optimizer's ``params`` argument draws from."""
        if isinstance(params, Parameters):
            return list(params.sources)
        if isinstance(params, Tensor):
            return [params]
        if depth < 4 and isinstance(params, Sequence):
            return [s for item in self.items(params)[0] for s in self.sources(item, depth + 1)]
        if depth < 4 and isinstance(params, Dict):
            return [
                s
                for key, value in self.items(params)[0]
                if isinstance(key, Const) and key.value == "params"
                for s in self.sources(value, depth + 1)
            ]
        return []


_READS_WEIGHTS = frozenset(("linear", "conv", "rnn", "attention", "transformer", "other", "norm"))


def result_shape(operation: Operation | None, has_dim: bool) -> str:
    """``one`` tensor, ``many`` of them, named ``fields``, or ``other``: no tensor."""
    if operation is None:
        return "one"
    kinds = operation.result.split("|")
    if operation.fields and (len(kinds) == 1 or has_dim):
        return "fields"
    if kinds[0] in ("tensors", "list"):
        return "many"
    return "one" if kinds[0] in ("tensor", "?", "") or operation.fields else "other"


def _history(tensor: Tensor) -> list[Tensor]:
    found = [tensor]
    while found[-1].base is not None:
        found.append(found[-1].base)
    return found


def _answer(value: Value | None, default: Answer) -> Answer:
    if value is None:
        return default
    if isinstance(value, Const):
        return default if value.value is None else bool(value.value)
    return None
