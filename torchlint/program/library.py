"""What calls of torch, of Python and of the packages around them do."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchlint.program.events import (
    HOLDING,
    Call,
    ClipGrad,
    Held,
    LossCall,
    ModeChange,
    OptimizerMade,
    OptimizerStep,
    ScalerCall,
    SchedulerStep,
    ZeroGrad,
)
from torchlint.program.handlers import HANDLERS
from torchlint.program.machine import GRAD, MISSING, NEVER, Frame
from torchlint.program.tensors import Tensors
from torchlint.program.values import (
    Array,
    Bound,
    Class,
    Const,
    Context,
    Dict,
    External,
    Function,
    Loader,
    Object,
    Optimizer,
    Parameters,
    Scaler,
    Scheduler,
    Sequence,
    StateDict,
    Super,
    Symbol,
    Tensor,
    Value,
)
from torchlint.torchapi.modules import module_attributes, module_class
from torchlint.torchapi.operations import function, tensor_method

if TYPE_CHECKING:
    from torchlint.program.module import Module

GRAD_CONTEXTS = {
    "torch.no_grad": ("no_grad", False),
    "torch.autograd.no_grad": ("no_grad", False),
    "torch.autograd.grad_mode.no_grad": ("no_grad", False),
    "torch.inference_mode": ("inference_mode", False),
    "torch.autograd.inference_mode": ("inference_mode", False),
    "torch.autograd.grad_mode.inference_mode": ("inference_mode", False),
    "torch.enable_grad": ("enable_grad", True),
    "torch.autograd.enable_grad": ("enable_grad", True),
    "torch.autograd.grad_mode.enable_grad": ("enable_grad", True),
    "torch.set_grad_enabled": ("set_grad_enabled", None),
    "torch.autograd.set_grad_enabled": ("set_grad_enabled", None),
    "torch.autograd.grad_mode.set_grad_enabled": ("set_grad_enabled", None),
}
AUTOCASTS = frozenset(
    (
        "torch.autocast",
        "torch.amp.autocast",
        "torch.cuda.amp.autocast",
        "torch.cpu.amp.autocast",
        "torch.amp.autocast_mode.autocast",
    )
)
SCALERS = frozenset(
    ("torch.amp.GradScaler", "torch.cuda.amp.GradScaler", "torch.cpu.amp.GradScaler", "torch.GradScaler")
)
WRAPPERS = frozenset(
    (
        "torch.nn.DataParallel",
        "torch.nn.parallel.DataParallel",
        "torch.nn.parallel.DistributedDataParallel",
        "torch.distributed.fsdp.FullyShardedDataParallel",
        "torch.nn.SyncBatchNorm.convert_sync_batchnorm",
    )
)
PREFIXING = frozenset(
    (
        "torch.nn.DataParallel",
        "torch.nn.parallel.DataParallel",
        "torch.nn.parallel.DistributedDataParallel",
        "torch.nn.parallel.distributed.DistributedDataParallel",
    )
)
"""Wrappers whose state dict has ``module.`` before all names."""
FACTORIES = frozenset(
    "zeros ones rand randn empty full arange linspace logspace eye randint randperm tensor as_tensor normal "
    "zeros_like ones_like rand_like randn_like empty_like full_like randint_like Tensor FloatTensor "
    "scalar_tensor".split()
)
LOADERS = frozenset(("torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader"))
PURE_PREFIXES = frozenset(
    "torch numpy math builtins os random time json logging tqdm collections itertools functools operator "
    "sys re pathlib argparse typing dataclasses enum datetime string warnings contextlib abc types "
    "inspect glob shutil tempfile csv pickle gzip yaml matplotlib pandas scipy sklearn PIL cv2 "
    "torchvision torchaudio torchmetrics wandb tensorboardX einops statistics hashlib struct subprocess "
    "platform gc uuid textwrap".split()
)
"""Packages whose functions leave the modules and optimizers that they are given as they were (their modes included)."""

MODULE_METHODS = frozenset(
    "train eval parameters named_parameters zero_grad state_dict load_state_dict requires_grad_ modules children "
    "named_modules named_children buffers named_buffers half bfloat16 register_forward_hook".split()
)
"""Methods that only a module has (or is asked for): calling one says that its receiver is a module."""
SELF_RETURNING = frozenset("to cuda cpu float double half bfloat16 type apply share_memory to_empty xpu".split())
CONTAINER_METHODS = frozenset(("append", "add", "appendleft", "extend", "insert", "update", "setdefault"))
CLIPS = frozenset(
    f"torch.nn.utils.{prefix}clip_grad_{kind}"
    for prefix in ("", "clip_grad.")
    for kind in ("norm_", "value_", "norm", "norms_with_norm_")
) | {"torch.nn.utils.clip_grads_with_norm_"}
RECURRENT = frozenset(("torch.nn.LSTM", "torch.nn.GRU", "torch.nn.RNN"))


class Library(Tensors):
    """Library calls of the interpreter. The other halves (calls, expressions) are below this class."""

    homes: dict[Module, Frame]
    module_like: set[Value]
    inside_module: int
    foreign_steps: int

    # ---------------------------------------------------------------- modules

    def build_layer(self, made: Object, arguments: list[Value], keywords: dict[str, Value], node: ast.AST) -> Object:
        """Give an instance of a torch module class its arguments and children."""
        spec = made.spec
        assert spec is not None
        for value in (*arguments, *keywords.values()):
            self.adopt(made, value)
        names = [a.name for a in spec.signature.arguments if a.kind == "positional"]
        bound = dict(zip(names, arguments))
        bound.update({k: v for k, v in keywords.items() if k != "**"})
        made.arguments.update(bound)
        if "**" in keywords:
            made.known = False
        if spec.name in ("torch.nn.Sequential", "torch.nn.ModuleList"):
            children: list[Value] = list(arguments)
            exact = not any(isinstance(a, Symbol) and a.name == "*" for a in arguments)
            if len(arguments) == 1 and isinstance(arguments[0], (Sequence, Dict)):
                items, exact = self.items(arguments[0])
                children = [i[1] if isinstance(arguments[0], Dict) else i for i in items]
            self.state.set(made, "@children", tuple(children))
            self.state.set(made, "@children exact", exact)
        elif spec.name == "torch.nn.ModuleDict" and arguments and isinstance(arguments[0], Dict):
            pairs, exact = self.items(arguments[0])
            self.state.set(made, "@children", tuple(v for _, v in pairs))
            self.state.set(made, "@keys", tuple(k for k, _ in pairs) if exact else None)
        elif spec.kind == "wrapper" or spec.name in WRAPPERS:
            inner = arguments[0] if arguments else keywords.get("module")
            if inner is not None:
                self.state.set(made, ".module", inner)
                self.state.set(made, "@children", (inner,))
        return made

    def adopt(self, owner: Object, value: Value, depth: int = 0) -> None:
        if isinstance(value, Object) and value.is_module:
            self.state.set(value, "@parent", owner)
        elif isinstance(value, (Sequence, Dict)) and depth < 2:
            for item in self.items(value)[0]:
                self.adopt(owner, item[1] if isinstance(value, Dict) else item, depth + 1)

    def layer_attribute(self, owner: Object, name: str, node: ast.AST) -> Value | None:
        """A parameter, buffer, child or argument that a torch module has of itself."""
        children = self.state.get(owner, "@children")
        if children is not None and name.isdigit() and int(name) < len(children):
            return children[int(name)]  # type: ignore[no-any-return]
        spec = owner.spec
        if spec is None or spec.name == "torch.nn.Module":
            return None
        known = spec.parameter_names(self.plain_arguments(owner))
        if known is not None and name in known:
            return Tensor(
                "parameter", (), owner.node, requires_grad=True, leaf=True, role="parameter", of=owner, name=name
            )
        if name in owner.arguments:
            return owner.arguments[name]
        return None

    def plain_arguments(self, owner: Object) -> dict[str, object]:
        """Constructor arguments as torchapi wants them: Python values, or UNKNOWN."""
        return {k: v.value if isinstance(v, Const) else ... for k, v in owner.arguments.items()}

    def mode_dependent(self, module: Object) -> bool | None:
        """Whether train() and eval() make a difference for a module, by all that it holds; None unknown."""
        held: dict[Value, list[Value]] = {}
        for (owner, slot), value in self.state.data.items():
            if slot[:1] in ".[" and isinstance(value, Object) and isinstance(owner, Object):
                held.setdefault(owner, []).append(value)
        return self._mode_dependent(module, held, set())

    def _mode_dependent(self, module: Value, held: dict[Value, list[Value]], seen: set[Value]) -> bool | None:
        if not isinstance(module, Object):
            return None
        if module in seen:
            return False
        seen.add(module)
        answers: set[bool | None] = set()
        for alternative in self.state.get(module, "@alternatives", ()):
            answers.add(self._mode_dependent(alternative, held, seen))
        if module.cls is not None:
            for cls in (module.cls, *module.cls.ancestors("training")):
                if "training" in cls.scope.self_reads:
                    return True
            if not module.known:
                answers.add(None)
        elif module.spec is None:
            answers.add(None)
        if module.spec is not None and module.spec.name != "torch.nn.Module":
            own = module.spec.is_mode_dependent(self.plain_arguments(module))
            children = self.state.get(module, "@children")
            if own is None and children is not None:
                own = (
                    False if self.state.get(module, "@children exact", False) or module.spec.kind == "wrapper" else None
                )
            answers.add(own)
        for child in (*self.state.get(module, "@children", ()), *held.get(module, ())):
            answers.add(self._mode_dependent(child, held, seen))
            if True in answers:
                return True
        return True if True in answers else None if None in answers else False

    def is_library_method(self, owner: Object, name: str) -> bool:
        """Whether nn.Module (or the torch class that it builds upon) gives the instance this method."""
        if (owner.is_module or self.state.get(owner, "@alternatives")) and name in module_attributes():
            return True
        return owner.spec is not None and owner.spec.has_attribute(name)

    def module_item(self, owner: Object, index: Value, node: ast.AST) -> Value:
        """``module[index]`` of a container."""
        children = self.state.get(owner, "@children")
        exact = self.state.get(owner, "@children exact", False)
        position = index.value if isinstance(index, Const) else None
        if children and exact and isinstance(position, int) and -len(children) <= position < len(children):
            return children[position]  # type: ignore[no-any-return]
        keys = self.state.get(owner, "@keys")
        if keys and isinstance(index, Const):
            for key, child in zip(keys, children):
                if isinstance(key, Const) and key.value == index.value:
                    return child  # type: ignore[no-any-return]
        if isinstance(index, Sequence) and index.kind == "slice":
            made = Object(node, None, owner.spec, {}, known=False)
            self.state.set(made, "@children", children or ())
            self.state.set(made, "@parent", owner)
            return made
        if children and len(children) == 1:
            return children[0]  # type: ignore[no-any-return]
        return self.item_of(owner, "[?]" if not isinstance(index, Const) else f"[{index.value!r}]", node)

    def loss_call(
        self, name: str, criterion: Value | None, arguments: list[Value], keywords: dict[str, Value], node: ast.AST
    ) -> Value:
        """A loss is computed."""
        names = ("input", "target") if "triplet" not in name.lower() else ("anchor", "positive")
        bound = {**dict(zip(names, arguments)), **keywords}
        event = LossCall(node, name, bound.get("input"), bound.get("target"))
        event.criterion, event.keywords = criterion, dict(keywords)
        self.emit(event)
        given = keywords.get("reduction")
        if given is None and isinstance(criterion, Object):
            given = criterion.arguments.get("reduction")
        inputs = tuple(v for v in (*arguments, *keywords.values()) if isinstance(v, (Tensor, Symbol)))
        reduced = given is None or (isinstance(given, Const) and given.value != "none")
        made = Tensor(
            name,
            inputs,
            node,
            requires_grad=self.grad_of(inputs, None),
            shape=() if reduced else None,
            role="loss",
            of=criterion,
            arguments=keywords,
        )
        made.leaf = None if made.requires_grad is None else not made.requires_grad
        if isinstance(given, Const) and given.value == "none":
            self.state.set(made, "@unreduced", True)
        made.order = self.order
        made.many = self.comprehending > 0
        if made.requires_grad:
            made.saved = tuple(v for v in inputs if isinstance(v, Tensor))
        event.result = made
        return made

    def layer_call(self, layer: Object, arguments: list[Value], keywords: dict[str, Value], node: ast.AST) -> Value:
        """A torch layer is applied."""
        spec = layer.spec
        assert spec is not None
        if spec.name == "torch.nn.Sequential":
            children = self.state.get(layer, "@children")
            if children and self.state.get(layer, "@children exact", False):
                value: Value = arguments[0] if arguments else Symbol()
                for child in children:
                    value = self.call_value(child, [value], {}, node)
                return value
        if spec.kind == "wrapper":
            inner = self.state.get(layer, ".module")
            if inner is not None:
                return self.call_value(inner, arguments, keywords, node)
        inputs = self._inputs(arguments, keywords)
        trainable = spec.has_parameters(self.plain_arguments(layer))
        requires = self.grad_of(inputs, None)
        if self.grad is not False and trainable and self.frozen(layer) is False:
            requires = True
        elif (self.grad is not False and trainable and self.frozen(layer) is None and requires is False) or (
            self.grad is not False and trainable is None and requires is False
        ):
            requires = None
        made = Tensor(
            spec.name,
            inputs,
            node,
            requires_grad=requires,
            leaf=None if requires is None else not requires,
            role="" if self.inside_module else "output",
            of=layer,
            module=layer,
        )
        first = inputs[0] if inputs else None
        made.scores = _layer_scores(spec.name, spec.kind) or (
            first.scores if isinstance(first, Tensor) and spec.kind in ("dropout", "identity", "reshape") else None
        )
        made.order = self.order
        made.many = self.comprehending > 0
        if self.state.get(GRAD, "inference"):
            self.state.set(made, "@inference", True)
        if requires:
            saved: list[Tensor] = []
            for need in spec.needs or ():
                of = arguments[need.gradient_of] if 0 <= need.gradient_of < len(arguments) else None
                wanted = (
                    trainable and self.frozen(layer) is False
                    if need.gradient_of < 0
                    else isinstance(of, Tensor) and bool(self.requires_grad(of))
                )
                if wanted:
                    saved.extend(
                        arguments[i]  # type: ignore[misc]
                        for i in need.inputs
                        if i < len(arguments) and isinstance(arguments[i], Tensor)
                    )
                    if need.outputs:
                        saved.append(made)
            self.keep(made, saved)
        inplace = layer.arguments.get("inplace")
        if spec.inplace_argument and isinstance(inplace, Const) and inplace.value and isinstance(first, Tensor):
            self.change(first, node, "layer", spec.name)
            made.order = self.order
            return self._succeed(first, made)
        if spec.view == "view" and isinstance(first, Tensor):
            made.base = first
        if spec.name in RECURRENT or spec.name == "torch.nn.LSTMCell":
            parts = ("hidden", "cell") if "LSTM" in spec.name else ("hidden",)
            states: list[Value] = []
            for part in parts:
                state = Tensor(f"{spec.name}.{part}", (made,), node, requires_grad=requires, leaf=made.leaf)
                state.order, state.saved = self.order, made.saved
                states.append(state)
            if spec.name == "torch.nn.LSTMCell":
                return self.sequence("tuple", [made, states[1]], node)
            hidden = self.sequence("tuple", states, node) if len(states) > 1 else states[0]
            return self.sequence("tuple", [made, hidden], node)
        if spec.name == "torch.nn.MultiheadAttention":
            return self.sequence("tuple", [made, Symbol(node=node)], node)
        return made

    def module_method(
        self, module: Object, name: str, arguments: list[Value], keywords: dict[str, Value], node: ast.AST
    ) -> Value:
        """A method that every nn.Module has."""
        event = Call(node, f"torch.nn.Module.{name}", module, arguments, keywords)
        self.emit(event)
        event.result = self._module_method(module, name, arguments, keywords, node)
        return event.result

    def _module_method(
        self, module: Value, name: str, arguments: list[Value], keywords: dict[str, Value], node: ast.AST
    ) -> Value:
        if name in ("train", "eval"):
            flag = arguments[0] if arguments else keywords.get("mode")
            mode: str | None = name
            if name == "train" and flag is not None:
                mode = ("train" if flag.value else "eval") if isinstance(flag, Const) else None
            self.emit(ModeChange(node, module, mode))
            self.set_mode(module, mode)
            return module
        if name in ("parameters", "named_parameters"):
            return Parameters((module,), name == "named_parameters", node)
        if name == "zero_grad":
            self.emit(ZeroGrad(node, module))
            return Const(None)
        if name == "requires_grad_":
            flag = arguments[0] if arguments else keywords.get("requires_grad")
            on = True if flag is None else bool(flag.value) if isinstance(flag, Const) else None
            self.freeze(module, None if on is None else not on)
            if on is not False and isinstance(module, Symbol):
                self.thaw()
            return module
        if name == "state_dict":
            return StateDict(module, node, self._prefix(module), self.order)
        if name in SELF_RETURNING:
            if name in ("to", "cuda", "cpu"):
                self.state.set(module, "@device", arguments[0] if arguments else Const(name))
            return module
        if name in ("register_buffer", "register_parameter", "add_module", "register_module") and len(arguments) > 1:
            if isinstance(arguments[0], Const):
                self.state.set(module, f".{arguments[0].value}", arguments[1])
                if isinstance(arguments[1], Object):
                    self.state.set(arguments[1], "@parent", module)
                if isinstance(arguments[1], Tensor) and name == "register_buffer":
                    arguments[1].role, arguments[1].of = "buffer", module
            return Const(None)
        if name in ("append", "extend", "insert") and isinstance(module, Object):
            children = list(self.state.get(module, "@children", ()))
            new = arguments[-1] if arguments else Symbol()
            exact = self.state.get(module, "@children exact", False)
            if name == "append":
                children.append(new)
            elif isinstance(new, Sequence) and name == "extend":
                items, known = self.items(new)
                children.extend(items)
                exact = exact and known
            else:
                exact = False
            self.adopt(module, new)
            self.state.set(module, "@children", tuple(children[:200]))
            self.state.set(module, "@children exact", exact and not self.passes and len(children) <= 200)
            return module
        keys = self.state.get(module, "@keys")
        if name in ("items", "values", "keys") and keys is not None:
            children = self.state.get(module, "@children", ())
            pairs = [self.sequence("tuple", pair, node) for pair in zip(keys, children)]
            return self.sequence("list", {"items": pairs, "values": children, "keys": keys}[name], node)
        if name in ("children", "modules") and isinstance(module, Object):
            children = self.state.get(module, "@children")
            if children is not None and name == "children":
                return self.sequence("tuple", list(children), node, self.state.get(module, "@children exact", False))
            return Symbol("", "element", module, node)
        if name == "forward" and isinstance(module, Object):
            return self.call_module(module, arguments, keywords, node)
        if name == "load_state_dict":
            return Symbol("", "result", None, node)
        if name == "__call__" and isinstance(module, Object):
            return self.call_module(module, arguments, keywords, node)
        return Symbol("", "result", module, node)

    def _prefix(self, module: Value) -> str:
        """What a wrapper puts before the names of its module's tensors, on some path at least."""
        for one in self.state.get(module, "@alternatives", (module,)):
            if isinstance(one, Object) and one.spec is not None and one.spec.name in PREFIXING:
                return "module."
        return ""

    def super_method(
        self, receiver: Super, name: str, arguments: list[Value], keywords: dict[str, Value], node: ast.AST
    ) -> Value:
        """``super().name(...)`` where the next definition is a library's."""
        owner = receiver.receiver
        if name == "__init__":
            if isinstance(owner, Object) and owner.spec is not None and owner.spec.name != "torch.nn.Module":
                self.build_layer(owner, arguments, keywords, node)
            return Const(None)
        if isinstance(owner, Object) and owner.is_module:
            if name == "forward" and owner.spec is not None and owner.spec.name != "torch.nn.Module":
                return self.layer_call(owner, arguments, keywords, node)
            return self.module_method(owner, name, arguments, keywords, node)
        return self.unknown_call(Bound(owner, name), arguments, keywords, node)

    def class_method(
        self, receiver: Class, name: str, arguments: list[Value], keywords: dict[str, Value], node: ast.AST
    ) -> Value:
        """``Class.name(...)`` where the class has no such method of its own."""
        info = receiver.info
        if info.is_autograd_function and name == "apply":
            inputs = tuple(v for v in arguments if isinstance(v, (Tensor, Symbol)))
            made = Tensor(f"{info.name}.apply", inputs, node, requires_grad=self.grad_of(inputs, None))
            made.leaf = None if made.requires_grad is None else not made.requires_grad
            made.order = self.order
            self.emit(Call(node, "torch.autograd.Function.apply", receiver, arguments, keywords))
            return made
        if info.is_module and name in ("from_pretrained", "load_from_checkpoint", "from_config"):
            made_module = Object(node, cls=info, spec=None, known=False)
            self.state.set(made_module, "@mode", "eval" if name == "from_pretrained" else None)
            return made_module
        if info.is_module and arguments and name in ("__init__", "forward"):
            return Const(None) if name == "__init__" else Symbol(node=node)
        return self.unknown_call(Bound(receiver, name), arguments, keywords, node)

    # ---------------------------------------------------------------- methods of the unknown

    def symbol_method(
        self,
        receiver: Value,
        name: str,
        arguments: list[Value],
        keywords: dict[str, Value],
        node: ast.AST,
        found: Value | None,
    ) -> Value:
        """A method of something unknown: what its name says wherever torch's objects have it."""
        first = arguments[0] if arguments else None
        if name == "backward":
            if (
                first is not None
                and (isinstance(first, Tensor) or not keywords.get("gradient"))
                and isinstance(first, (Tensor, Symbol))
            ):
                event = self.backward(first, arguments[1:], keywords, node, functional=True)
                event.via, event.functional = receiver, False
                event.has_graph = event.has_graph or None
                return Const(None)
            self.backward(receiver, arguments, keywords, node)
            return Const(None)
        if name == "manual_backward" and first is not None:
            self.backward(first, arguments[1:], keywords, node, functional=True).via = receiver
            return Const(None)
        if name == "step":
            if isinstance(first, Optimizer) or (first is not None and self.state.get(receiver, "@scaler")):
                step = OptimizerStep(node, first, receiver)
            elif not arguments or isinstance(first, Function) or "closure" in keywords:
                step = OptimizerStep(node, receiver, closure=bool(arguments or "closure" in keywords))
            else:
                return self.unknown_call(found or Bound(receiver, name), arguments, keywords, node)
            self.emit(step)
            self.stepped(step)
            if isinstance(first, Function):
                return self.call_value(first, [], {}, node)
            return Symbol(node=node)
        if name == "zero_grad":
            self.emit(ZeroGrad(node, receiver))
            return Const(None)
        of_scaler = name == "unscale_" or (name == "scale" and len(arguments) == 1)
        if of_scaler or (name == "update" and self.state.get(receiver, "@scaler")):
            return self.scaler_method(receiver, name, arguments, node)
        if name in MODULE_METHODS and not (name in ("half", "bfloat16") or isinstance(receiver, Object)):
            self.module_like.add(receiver)
            asked = Call(node, f"torch.nn.Module.{name}", receiver, arguments, keywords)
            self.emit(asked)
            asked.result = self._module_method(receiver, name, arguments, keywords, node)
            return asked.result
        if name in SELF_RETURNING or name in ("long", "int", "contiguous", "clone"):
            same = Call(node, f"?.{name}", receiver, arguments, keywords)
            self.emit(same)
            if name == "clone":
                return Symbol("", "result", receiver, node)
            same.result = receiver
            return receiver
        if name == "detach":
            made = Tensor("torch.Tensor.detach", (receiver,), node, requires_grad=False, leaf=True)
            made.order = self.order
            self.emit(Call(node, "?.detach", receiver, arguments, keywords))
            return made
        if name == "numpy":
            self.emit(Call(node, "?.numpy", receiver, arguments, keywords))
            return Array(None, node, receiver)
        if name in CONTAINER_METHODS and arguments:
            self.accumulate(node, receiver, arguments[-1], "append", name)
        operation = tensor_method(name) if name.endswith("_") and not name.endswith("__") else None
        if operation is not None and operation.mutates and name != "requires_grad_":
            self.change(receiver, node, "method", name)
            return receiver
        return self.unknown_call(found or Bound(receiver, name, node), arguments, keywords, node)

    def scaler_method(self, scaler: Value, name: str, arguments: list[Value], node: ast.AST) -> Value:
        """``scale``, ``unscale_`` and ``update`` of a GradScaler."""
        first = arguments[0] if arguments else None
        self.state.set(scaler, "@scaler", True)
        self.emit(ScalerCall(node, scaler, name, first))
        if name != "scale" or first is None:
            return Const(None)
        requires = self.requires_grad(first) if isinstance(first, Tensor) else None
        made = Tensor("scaled", (first,), node, requires_grad=requires, role="loss", of=scaler)
        made.leaf = False if requires else None
        made.order = self.order
        return made

    # ---------------------------------------------------------------- methods of known things

    def value_method(
        self, receiver: Value, name: str, arguments: list[Value], keywords: dict[str, Value], node: ast.AST
    ) -> Value:
        """A method of an optimizer, container, constant and the like."""
        if isinstance(receiver, Optimizer):
            return self._optimizer_method(receiver, name, arguments, keywords, node)
        if isinstance(receiver, Scheduler):
            if name == "step":
                self.emit(SchedulerStep(node, receiver, [*arguments, *keywords.values()]))
                return Const(None)
            return Symbol("", "result", receiver, node)
        if isinstance(receiver, Scaler):
            if name == "step" and arguments:
                step = OptimizerStep(node, arguments[0], receiver)
                self.emit(step)
                self.stepped(step)
                return Symbol(node=node)
            if name in ("scale", "unscale_", "update"):
                return self.scaler_method(receiver, name, arguments, node)
            return Symbol("", "result", receiver, node)
        if isinstance(receiver, Sequence):
            return self._sequence_method(receiver, name, arguments, node)
        if isinstance(receiver, Dict):
            return self._dict_method(receiver, name, arguments, keywords, node)
        if isinstance(receiver, Array) and name in ("item", "tolist", "tobytes"):
            return Symbol("", "result", receiver, node)
        if isinstance(receiver, Array):
            return (
                Array({"float32": "float32", "float64": "float64"}.get(_constant_name(arguments)), node, receiver.of)
                if name == "astype"
                else Array(receiver.dtype, node, receiver.of)
            )
        if isinstance(receiver, (StateDict, Parameters)):
            self.emit(Call(node, f"{type(receiver).__name__}.{name}", receiver, arguments, keywords))
            if name in ("values", "items", "copy"):
                return receiver
            return Symbol("", "result", receiver, node)
        if isinstance(receiver, Const):
            return Symbol(node=node)
        if isinstance(receiver, Context):
            return Symbol(node=node)
        return self.unknown_call(Bound(receiver, name, node), arguments, keywords, node)

    def _optimizer_method(
        self, optimizer: Optimizer, name: str, arguments: list[Value], keywords: dict[str, Value], node: ast.AST
    ) -> Value:
        if name == "step":
            closure = arguments[0] if arguments else keywords.get("closure")
            step = OptimizerStep(node, optimizer, closure=closure is not None)
            if isinstance(closure, Function):
                result = self.call_value(closure, [], {}, node)
                self.emit(step)
                self.stepped(step)
                return result
            self.emit(step)
            self.stepped(step)
            return Symbol(node=node)
        if name == "zero_grad":
            self.emit(ZeroGrad(node, optimizer))
            return Const(None)
        self.emit(Call(node, f"torch.optim.Optimizer.{name}", optimizer, arguments, keywords))
        return Symbol("", "result", optimizer, node)

    def _sequence_method(self, receiver: Sequence, name: str, arguments: list[Value], node: ast.AST) -> Value:
        items, exact = self.items(receiver)
        if name in ("append", "add") and arguments:
            self.accumulate(node, receiver, arguments[0], "append", name)
            in_loop = self._in_loop_since(receiver)
            if not any(arguments[0] is i for i in items) or not in_loop:
                items = (*items, arguments[0])[-64:]
            self.set_items(receiver, items, exact and not in_loop and len(items) < 64)
            return Const(None)
        if name in ("extend", "update") and arguments:
            self.accumulate(node, receiver, arguments[0], "append", name)
            more, known = (
                self.items(arguments[0])
                if isinstance(arguments[0], Sequence)
                else ((self.element(arguments[0], node),), False)
            )
            self.set_items(receiver, (*items, *more)[:64], exact and known and not self._in_loop_since(receiver))
            return Const(None)
        if name == "clear":
            self.set_items(receiver, ())
            return Const(None)
        if name in ("pop", "popleft"):
            value = items[-1] if items else Symbol("", "element", receiver, node)
            self.set_items(receiver, items, exact=False)
            return value
        if name == "copy":
            return self.sequence(receiver.kind, items, node, exact)
        if name in ("insert", "remove", "reverse", "sort"):
            self.set_items(receiver, (*items, *arguments[1:]), exact=False)
            return Const(None)
        return Symbol("", "result", receiver, node)

    def _in_loop_since(self, container: Value) -> bool:
        """Whether a loop has been entered since a container was made."""
        return self.block.loops > self.births.get(container, NEVER)[0]

    def _dict_method(
        self, receiver: Dict, name: str, arguments: list[Value], keywords: dict[str, Value], node: ast.AST
    ) -> Value:
        items, exact = self.items(receiver)
        if name in ("get", "pop", "setdefault") and arguments:
            for key, value in items:
                if isinstance(key, Const) and isinstance(arguments[0], Const) and key.value == arguments[0].value:
                    return value  # type: ignore[no-any-return]
            if exact and len(arguments) > 1 and isinstance(arguments[0], Const) and name == "get":
                return arguments[1]
            return Symbol("", "element", receiver, node)
        if name == "values":
            return self.sequence("list", [v for _, v in items], node, exact)
        if name == "keys":
            return self.sequence("list", [k for k, _ in items], node, exact)
        if name == "items":
            return self.sequence("list", [self.sequence("tuple", pair, node) for pair in items], node, exact)
        if name == "update":
            for value in arguments:
                self.accumulate(node, receiver, value, "store", name)
            more, known = self.items(arguments[0]) if arguments and isinstance(arguments[0], Dict) else ((), False)
            merged = {k.value if isinstance(k, Const) else k: (k, v) for k, v in (*items, *more)}
            for key, value in keywords.items():
                merged[key] = (Const(key), value)
            self.set_items(receiver, tuple(merged.values()), exact and known)
            return Const(None)
        if name == "copy":
            made = Dict(node)
            self.set_items(made, items, exact)
            return made
        return Symbol("", "result", receiver, node)

    def set_item(self, container: Value, index: Value, value: Value, node: ast.AST) -> None:
        """``container[index] = value``."""
        container = self.current(container)
        if isinstance(container, Tensor):
            self.item_changed(container, index, value, node)
            return
        self.accumulate(node, container, value, "store")
        if isinstance(container, Dict):
            items, exact = self.items(container)
            if isinstance(index, Const):
                kept = [i for i in items if not (isinstance(i[0], Const) and i[0].value == index.value)]
                self.set_items(container, (*kept, (index, value)), exact)
            else:
                self.set_items(container, (*items, (index, value))[-64:], exact=False)
        elif isinstance(container, Sequence):
            items, exact = self.items(container)
            if (
                exact
                and isinstance(index, Const)
                and isinstance(index.value, int)
                and -len(items) <= index.value < len(items)
            ):
                changed = list(items)
                changed[index.value] = value
                self.set_items(container, changed, exact)
            else:
                self.set_items(container, (*items, value)[-64:], exact=False)
        elif isinstance(container, Object):
            children = self.state.get(container, "@children")
            at = index.value if isinstance(index, Const) else None
            exact = self.state.get(container, "@children exact", False)
            if children and exact and isinstance(at, int) and -len(children) <= at < len(children):
                self.replace_child(container, list(children), at, value)
            elif children is not None:
                self.state.set(container, "@children", (*children, value))
                keys = self.state.get(container, "@keys")
                known = keys is not None and isinstance(index, Const) and not self._in_loop_since(container)
                self.state.set(container, "@keys", (*keys, index) if known else None)
                self.state.set(container, "@children exact", False)
                self.adopt(container, value)
            self.state.set(container, f"[{index.value!r}]" if isinstance(index, Const) else "[?]", value)
        else:
            slot = f"[{index.value!r}]" if isinstance(index, Const) else f"[{index!r}]"
            self.state.set(container, slot, value)

    def replace_child(self, container: Object, children: list[Value], at: int, value: Value) -> None:
        """``sequential[at] = layer``: what is put in keeps its own state."""
        children[at] = value
        self.state.set(container, "@children", tuple(children))
        if isinstance(value, Object) and self.frozen(container) is not self.frozen(value):
            self.state.set(value, "@frozen", self.frozen(value))
            self.freeze(container, None, parts=False)
        self.adopt(container, value)

    # ---------------------------------------------------------------- functions and classes of libraries

    def grad_context(
        self, name: str, arguments: list[Value], keywords: dict[str, Value], node: ast.AST
    ) -> Context | None:
        """A grad-mode or autocast context by its canonical name."""
        found = GRAD_CONTEXTS.get(name)
        first = arguments[0] if arguments else keywords.get("mode") or keywords.get("enabled")
        if found is not None:
            kind, enabled = found
            if kind in ("set_grad_enabled", "inference_mode") and isinstance(first, Const):
                on = bool(first.value)
                enabled = on if kind == "set_grad_enabled" else (False if on else None)
            elif kind == "inference_mode" and first is not None:
                enabled = None
            return Context(kind, enabled, node)
        if name in AUTOCASTS:
            flag = keywords.get("enabled")
            enabled = True if flag is None else bool(flag.value) if isinstance(flag, Const) else None
            return Context("autocast", enabled, node, keywords.get("dtype"))
        return None

    def call_external(self, name: str, arguments: list[Value], keywords: dict[str, Value], node: ast.AST) -> Value:
        """Call something of a library by canonical name."""
        handler = HANDLERS.get(name)
        event = Call(node, name, None, arguments, keywords)
        self.emit(event)
        if name in HOLDING:
            event.held = self.held([*arguments, *keywords.values()])
        if handler is not None:
            result = handler(self, name, arguments, keywords, node)
            if result is not None:
                event.result = result
                return result
        event.result = self._external(name, arguments, keywords, node)
        return event.result

    def held(self, values: list[Value]) -> Held:
        """What these values hold now, and what is in that, to a depth that programs keep to."""
        found = Held()
        pending = [(value, 0) for value in values]
        for value, depth in pending:
            now = self.current(value)
            if isinstance(now, Tensor):
                found.requires_grad[value] = self.requires_grad(now)
            elif isinstance(value, (Sequence, Dict)) and value not in found.items and depth < 5:
                items = found.items[value] = self.items(value)
                inner = [part for pair in items[0] for part in pair] if isinstance(value, Dict) else items[0]
                pending += [(part, depth + 1) for part in inner]
        return found

    def _external(self, name: str, arguments: list[Value], keywords: dict[str, Value], node: ast.AST) -> Value:
        top, _, rest = name.partition(".")
        tail = name.rpartition(".")[2]
        context = self.grad_context(name, arguments, keywords, node)
        if context is not None:
            if context.kind == "set_grad_enabled":
                self.grad = context.enabled  # takes effect at once, as a call
            return context
        if top == "torch":
            if rest.startswith("optim."):
                return self._optim(name, arguments, keywords, node)
            if name in SCALERS:
                return Scaler(dict(keywords), node)
            if name in LOADERS:
                names = ("dataset", "batch_size", "shuffle", "sampler", "batch_sampler", "num_workers", "collate_fn")
                bound = {**dict(zip(names, arguments)), **keywords}
                return Loader(bound.get("dataset"), bound, node)
            if name.startswith("torch.nn.functional.") and (tail.endswith("_loss") or tail in _LOSS_FUNCTIONS):
                return self.loss_call(name, None, arguments, keywords, node)
            if name in CLIPS:
                self.emit(ClipGrad(node, arguments[0] if arguments else keywords.get("parameters"), tail))
                if arguments:
                    self.consume(arguments[0], node, tail)
                return Symbol(node=node)
            if name.startswith("torch.nn.init.") and arguments:
                return self.current(arguments[0])
            if rest in FACTORIES:
                return self.factory(name, tail, arguments, keywords, node)
            if name in _BACKWARDS:
                event = self.backward(arguments[0] if arguments else Symbol(), [], keywords, node, functional=True)
                event.functional = tail == "grad"
                made = Tensor("grad", (), node, requires_grad=bool(event.create_graph) or False, role="gradient")
                return self.sequence("tuple", [made], node, exact=False) if tail == "grad" else Const(None)
        spec = module_class(name)
        if spec is not None:
            made_module = Object(node, None, spec, {}, known=True)
            self.build_layer(made_module, arguments, keywords, node)
            if name in WRAPPERS and arguments:
                self.state.set(made_module, "@mode", self.mode(arguments[0]))
                self.state.drop(made_module, "@mode")
                self._wrap(made_module, arguments[0])
            return made_module
        if top == "torch":
            operation = function(name)
            if operation is not None and (operation.result != "none" or operation.mutates):
                if operation.mutates and arguments:
                    at = operation.mutates[0]
                    target = self.current(arguments[at]) if at < len(arguments) else Const(None)
                    if isinstance(target, Tensor) and name.endswith("_"):
                        return self.call_tensor_method(target, tail, arguments[1:], keywords, node)
                    if isinstance(target, Symbol):
                        self.change(target, node, "method", tail)
                given = [self.current(a) for a in arguments]
                inplace = keywords.get("inplace")
                if isinstance(inplace, Const) and inplace.value is True and given and isinstance(given[0], Tensor):
                    changed = self.tensor_operation(name, given, keywords, node)
                    self.change(given[0], node, "method", tail)
                    if isinstance(changed, Tensor):
                        changed.order = self.order
                        return self._succeed(given[0], changed)
                    return changed
                return self.tensor_operation(name, given, keywords, node)
            return Symbol("", "result", arguments[0] if arguments else None, node)
        if top in ("numpy", "matplotlib"):
            last = self.block.items[-1] if self.block.items else None
            if isinstance(last, Call) and last.node is node:
                last.attached = self.attached(arguments)
        if top == "numpy":
            first = arguments[0] if arguments else None
            if isinstance(first, Sequence):
                first = next(iter(self.items(first)[0]), None)
            return Array(_numpy_dtype(tail, keywords), node, first)
        if top == "builtins" or top in PURE_PREFIXES:
            return Symbol("", "result", arguments[0] if arguments else None, node)
        return self.unknown_call(External(name), arguments, keywords, node)

    def attached(self, values: list[Value]) -> list[Tensor]:
        """The tensors among values (and their items) that require grad now."""
        found: list[Tensor] = []
        for value in values:
            for part in self.items(value)[0] if isinstance(value, Sequence) else (value,):
                current = self.current(part)
                if isinstance(current, Tensor) and self.requires_grad(current):
                    found.append(current)
        return found

    def _wrap(self, wrapper: Object, inner: Value) -> None:
        """A wrapper's mode is its module's, and the other way round."""
        if isinstance(inner, Object):
            self.state.set(inner, "@parent", wrapper)
            mode = self.state.get(inner, "@mode", MISSING)
            if mode is not MISSING:
                self.state.set(wrapper, "@mode", mode)
        elif isinstance(inner, Symbol):
            self.module_like.add(inner)
            self.state.set(wrapper, "@mode", self.mode(inner))

    def _optim(self, name: str, arguments: list[Value], keywords: dict[str, Value], node: ast.AST) -> Value:
        tail = name.rpartition(".")[2]
        first = arguments[0] if arguments else keywords.get("params")
        if ".lr_scheduler." in name and tail[:1].isupper():
            optimizer = arguments[0] if arguments else keywords.get("optimizer")
            return Scheduler(name, optimizer, {**{str(i): a for i, a in enumerate(arguments)}, **keywords}, node)
        if tail[:1].isupper() and not name.startswith("torch.optim.swa_utils."):
            return self.make_optimizer(name, first, arguments, keywords, node)
        if name.startswith("torch.optim.swa_utils.") and tail in ("AveragedModel", "SWALR"):
            return Scheduler(name, first, keywords, node) if tail == "SWALR" else Symbol("", "result", first, node)
        return Symbol(node=node)

    def make_optimizer(
        self, name: str, params: Value | None, arguments: list[Value], keywords: dict[str, Value], node: ast.AST
    ) -> Optimizer:
        """An optimizer over ``params``; iterators of parameters are consumed by it."""
        bound = {**dict(zip(("params", "lr"), arguments)), **keywords}
        made = Optimizer(name, params, bound, node)
        sources = self.sources(params)
        non_leaf = [p for p in sources if isinstance(p, Tensor) and self.is_attached_non_leaf(p)]
        answers = {self.frozen(s) if not isinstance(s, Tensor) else not self.requires_grad(s) for s in sources}
        self.emit(OptimizerMade(node, made, non_leaf, answers.pop() if len(answers) == 1 else None))
        if params is not None:
            self.consume(params, node, name.rpartition(".")[2])
        return made

    def factory(
        self, name: str, tail: str, arguments: list[Value], keywords: dict[str, Value], node: ast.AST
    ) -> Tensor:
        """A new tensor: ``torch.zeros(...)``, ``torch.tensor(...)``."""
        flag = keywords.get("requires_grad")
        requires = bool(flag.value) if isinstance(flag, Const) else False if flag is None else None
        first = arguments[0] if arguments else None
        dtype = self.dtype_of(keywords.get("dtype"))
        if dtype is None and "dtype" not in keywords:
            if tail in ("randint", "randperm", "randint_like"):
                dtype = "int64"
            elif tail in (
                "zeros",
                "ones",
                "rand",
                "randn",
                "empty",
                "linspace",
                "eye",
                "normal",
                "logspace",
                "FloatTensor",
            ):
                dtype = "float32"
            elif tail in ("tensor", "as_tensor"):
                dtype = first.dtype if isinstance(first, (Array, Tensor)) else self._literal_dtype(first)
            elif tail.endswith("_like") and isinstance(first, Tensor):
                dtype = first.dtype
        made = Tensor(
            name,
            tuple(v for v in arguments[:1] if isinstance(v, (Tensor, Symbol)) and tail in ("tensor", "as_tensor")),
            node,
            requires_grad=requires,
            leaf=True,
            dtype=dtype,
            device=self.device_of(keywords.get("device")) if "device" in keywords else None,
            role="factory",
            arguments=keywords,
            shape=self._shape(tail, arguments),
        )
        if tail in ("tensor", "as_tensor", "Tensor", "FloatTensor", "scalar_tensor") and first is not None:
            made.wraps = self.items(first)[0] if isinstance(first, Sequence) else (first,)
        if tail == "as_tensor" and isinstance(first, Tensor):
            made.requires_grad, made.leaf, made.base = self.requires_grad(first), first.leaf, first
        made.order = self.order
        if self.state.get(GRAD, "inference"):
            self.state.set(made, "@inference", True)
        return made

    def _literal_dtype(self, value: Value | None) -> str | None:
        if isinstance(value, Const):
            return {bool: "bool", int: "int64", float: "float32"}.get(type(value.value))
        if isinstance(value, Sequence):
            items, _ = self.items(value)
            kinds = {self._literal_dtype(i) for i in items}
            if kinds == {"int64", "float32"}:
                return "float32"
            return kinds.pop() if len(kinds) == 1 else None
        return None

    def _shape(self, tail: str, arguments: list[Value]) -> tuple[int | None, ...] | None:
        if tail not in ("zeros", "ones", "rand", "randn", "empty"):
            return None
        sizes = arguments
        if len(arguments) == 1 and isinstance(arguments[0], Sequence):
            sizes, exact = list(self.items(arguments[0])[0]), self.items(arguments[0])[1]
            if not exact:
                return None
        if any(isinstance(s, Symbol) and s.name == "*" for s in sizes):
            return None
        return tuple(s.value if isinstance(s, Const) and isinstance(s.value, int) else None for s in sizes)


_LOSS_FUNCTIONS = frozenset(
    ("cross_entropy", "binary_cross_entropy", "binary_cross_entropy_with_logits", "kl_div", "mse_loss", "l1_loss")
)
_BACKWARDS = frozenset(("torch.autograd.grad", "torch.autograd.backward"))


def _layer_scores(name: str, kind: str) -> str | None:
    tail = name.rpartition(".")[2]
    named = {
        "Softmax": "probabilities",
        "Softmax2d": "probabilities",
        "LogSoftmax": "log_probabilities",
        "Sigmoid": "sigmoid",
        "LogSigmoid": "log_sigmoid",
    }
    if tail in named:
        return named[tail]
    return "logits" if kind in ("linear", "conv") else None


def _constant_name(arguments: list[Value]) -> str:
    first = arguments[0] if arguments else None
    if isinstance(first, External):
        return first.qualname.rpartition(".")[2]
    return str(first.value) if isinstance(first, Const) else ""


def _numpy_dtype(tail: str, keywords: dict[str, Value]) -> str | None:
    given = keywords.get("dtype")
    if given is not None:
        name = _constant_name([given])
        return {"float": "float64", "int": "int64"}.get(name, name) or None
    if tail in ("zeros", "ones", "empty", "linspace", "rand", "randn", "random", "normal", "uniform", "eye", "full"):
        return "float64"
    return None
