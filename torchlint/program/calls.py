"""Calls: followed into the project's own functions, understood for torch's, noted where they can't be seen into."""

from __future__ import annotations

import ast
from typing import Any

from torchlint.program.classes import MODULE, ClassInfo
from torchlint.program.events import (
    Accumulate,
    Call,
    ModuleCall,
    ParametersUsed,
    Return,
    UnknownCall,
)
from torchlint.program.library import Library
from torchlint.program.machine import GRAD, MISSING, NEVER, Frame
from torchlint.program.module import FunctionInfo, Module
from torchlint.program.values import (
    Array,
    Bound,
    Class,
    Compiled,
    Const,
    Dict,
    External,
    Function,
    Object,
    Parameters,
    Partial,
    Sequence,
    StateDict,
    Super,
    Symbol,
    Tensor,
    Unseen,
    Value,
)

DEPTH = 6
"""How many calls deep the project's functions are followed."""

FOREIGN_CALL = 25
"""How many steps it counts for that a function of another file must be read to be followed."""

SHALLOW_DEPTH = 2
"""The same from a root that is followed for what it does itself."""

CONTEXT_MANAGERS = ("contextlib.contextmanager", "contextlib.asynccontextmanager")
"""Decorators that make a generator run around a with block: what it does is undone after, and not followed."""

UNROLLED = 8
"""A loop over up to this many known items is followed item by item."""
QUIET_DEPTH = 2
"""The same while only learning what a class keeps on self."""

FIELD_BASES = ("dataclasses.dataclass", "attr.s", "attrs.define", "attr.dataclass")


class Caller(Library):
    """Calls of every kind."""

    visited: set[ast.AST]

    def call(self, node: ast.Call) -> Value:
        func = node.func
        if type(func) is ast.Attribute:
            receiver = self.eval(func.value)
            arguments, keywords = self.arguments(node)
            return self.call_method(receiver, func.attr, arguments, keywords, node)
        if type(func) is ast.Name:
            if func.id == "super":
                return self._super(node)
            if func.id == "isinstance" and node.args:  # what it asks for may be defined far away
                return Symbol("", "result", self.eval(node.args[0]), node)
        callee = self.eval(func)
        arguments, keywords = self.arguments(node)
        return self.call_value(callee, arguments, keywords, node)

    def arguments(self, node: ast.Call) -> tuple[list[Value], dict[str, Value]]:
        """The values of a call's arguments; what a star brings in is unknown unless it is a known sequence."""
        positional: list[Value] = []
        keywords: dict[str, Value] = {}
        for argument in node.args:
            if type(argument) is ast.Starred:
                inner = self.eval(argument.value)
                if isinstance(inner, Sequence):
                    items, exact = self.items(inner)
                    positional.extend(items)
                    if exact:
                        continue
                positional.append(Symbol("*", "element", inner, argument))
            else:
                positional.append(self.eval(argument))
        for keyword in node.keywords:
            value = self.eval(keyword.value)
            if keyword.arg is not None:
                keywords[keyword.arg] = value
            elif isinstance(value, Dict):
                items, exact = self.items(value)
                for key, held in items:
                    if isinstance(key, Const) and isinstance(key.value, str):
                        keywords[key.value] = held
                if not exact:
                    keywords["**"] = value
            else:
                keywords["**"] = value
        return positional, keywords

    def _super(self, node: ast.Call) -> Value:
        frame: Frame | None = self.frame
        while frame is not None and frame.owner is None:
            frame = frame.closure
        if frame is None or frame.owner is None:
            return Symbol(node=node)
        cls: ClassInfo = frame.owner
        if node.args:
            named = self.eval(node.args[0])
            if isinstance(named, Class):
                cls = named.info
        receiver = frame.receiver
        if receiver is None and node.args[1:]:
            receiver = self.eval(node.args[1])
        return Super(cls, receiver or Symbol("self", "argument"))

    # ---------------------------------------------------------------- dispatch

    def call_value(self, callee: Value, arguments: list[Value], keywords: dict[str, Value], node: ast.AST) -> Value:
        """Call a value."""
        if isinstance(callee, Function):
            return self.call_function(callee, arguments, keywords, node)
        if type(callee) is Unseen and self._follows_others():
            return self.call_value(self.see(callee), arguments, keywords, node)
        if isinstance(callee, External):
            return self.call_external(callee.qualname, arguments, keywords, node)
        if isinstance(callee, Class):
            return self.instantiate(callee.info, arguments, keywords, node)
        if isinstance(callee, Object):
            return self.call_object(callee, arguments, keywords, node)
        if isinstance(callee, Bound):
            return self.call_method(callee.receiver, callee.method, arguments, keywords, node)
        if isinstance(callee, Compiled):
            return self.call_value(callee.module, arguments, keywords, node)
        if isinstance(callee, Partial):
            return self.call_value(
                callee.callee, [*callee.arguments, *arguments], {**callee.keywords, **keywords}, node
            )
        if isinstance(callee, Symbol) and callee.origin in (
            "argument",
            "attribute",
            "global",
            "join",
            "element",
            "result",
        ):
            event = ModuleCall(node, callee, arguments, keywords)
            event.mode = self.mode(callee)
            event.evidence = self.module_like
            event.tensors = [v for v in self._inputs(arguments, keywords) if isinstance(v, Tensor)]
            event.inner = self.inside_module > 0
            event.autocast = self.state.get("autocast", "autocast")
            self.emit(event)
            result = self.unknown_call(callee, arguments, keywords, node)
            event.result = result
            return result
        return self.unknown_call(callee, arguments, keywords, node)

    def call_method(
        self, receiver: Value, name: str, arguments: list[Value], keywords: dict[str, Value], node: ast.AST
    ) -> Value:
        """Call ``receiver.name(...)``."""
        if isinstance(receiver, Tensor):
            receiver = self.current(receiver)
            assert isinstance(receiver, Tensor)
            event = Call(node, f"torch.Tensor.{name}", receiver, arguments, keywords)
            if name == "numpy":
                event.attached = self.attached([receiver])
            self.emit(event)
            event.result = self.call_tensor_method(receiver, name, arguments, keywords, node)
            return event.result
        if type(receiver) is Unseen:
            if self._follows_others():
                return self.call_method(self.see(receiver), name, arguments, keywords, node)
            return self.call_external(f"{receiver.qualname}.{name}", arguments, keywords, node)
        if isinstance(receiver, External):
            return self.call_value(self.imported(f"{receiver.qualname}.{name}", self.frame), arguments, keywords, node)
        if isinstance(receiver, Compiled):
            return self.compiled_method(receiver, name, arguments, keywords, node)
        if isinstance(receiver, Object):
            found = self.object_attribute(receiver, name, node)
            if isinstance(found, Bound) and found.receiver is receiver:
                return self.module_method(receiver, name, arguments, keywords, node)
            if isinstance(found, Symbol) and found.of is receiver:
                return self.symbol_method(receiver, name, arguments, keywords, node, found)
            return self.call_value(found, arguments, keywords, node)
        if isinstance(receiver, Symbol):
            stored = self.state.get(receiver, f".{name}")
            if stored is not None and not isinstance(stored, Symbol):
                return self.call_value(stored, arguments, keywords, node)
            return self.symbol_method(receiver, name, arguments, keywords, node, None)
        if isinstance(receiver, Super):
            found = self.super_member(receiver, name, node)
            if isinstance(found, Function):
                return self.call_function(found, arguments, keywords, node)
            return self.super_method(receiver, name, arguments, keywords, node)
        if isinstance(receiver, Class):
            found = self.class_member(receiver, name, node)
            if isinstance(found, Bound):
                return self.class_method(receiver, name, arguments, keywords, node)
            return self.call_value(found, arguments, keywords, node)
        return self.value_method(receiver, name, arguments, keywords, node)

    def compiled_method(
        self, receiver: Compiled, name: str, arguments: list[Value], keywords: dict[str, Value], node: ast.AST
    ) -> Value:
        """A method of a compiled module: its module's, but for the names in its state dict."""
        if name == "load_state_dict":
            event = Call(node, f"torch.nn.Module.{name}", receiver, arguments, keywords)
            self.emit(event)
            event.result = Symbol("", "result", None, node)
            return event.result
        result = self.call_method(receiver.module, name, arguments, keywords, node)
        if name == "state_dict" and isinstance(result, StateDict):
            return StateDict(result.of, node, f"_orig_mod.{result.prefix}", result.order)
        return receiver if result is receiver.module else result

    def unknown_call(self, callee: Value, arguments: list[Value], keywords: dict[str, Value], node: ast.AST) -> Value:
        """A call that can't be followed: what it was given may be changed by it."""
        event = UnknownCall(node, callee, arguments, keywords)
        self.emit(event)
        for value in (*arguments, *keywords.values()):
            self.escape(value)
        receiver = callee.receiver if isinstance(callee, Bound) else None
        if isinstance(receiver, Object) and receiver.is_module is not False:
            self.escape(receiver)
        name = callee.name if isinstance(callee, Symbol) else ""
        made = Symbol(f"{name}()" if name else "", "result", callee, node)
        event.result = made
        return made

    def escape(self, value: Value, depth: int = 0) -> None:
        """Something unseen holds this value now and may have changed it."""
        if isinstance(value, Compiled):
            value = value.module
        if isinstance(value, (Object, Symbol)) and (
            self.state.get(value, "@mode", MISSING) is not MISSING or isinstance(value, Object)
        ):
            self.state.set(value, "@mode", None)
        if isinstance(value, Object) and self.state.get(value, "@frozen", MISSING) is not MISSING:
            self.state.set(value, "@frozen", None)
        if isinstance(value, (Sequence, Dict)) and depth < 3:
            items, _ = self.items(value)
            if isinstance(value, Dict) or value.kind == "list":
                self.set_items(value, items, exact=False)
            for item in items:
                if isinstance(item, Value):
                    self.escape(item, depth + 1)

    # ---------------------------------------------------------------- the project's functions

    def home_frame(self, module: Module) -> Frame:
        """The frame of a module's body, whether or not it was run."""
        frame = self.homes.get(module)
        if frame is None:
            frame = self.homes[module] = Frame(module, module.scope)
        return frame

    def call_function(
        self, function: Function, arguments: list[Value], keywords: dict[str, Value], node: ast.AST
    ) -> Value:
        """Follow a call into a function of the project."""
        info = function.info
        if isinstance(info, ast.Lambda):
            return self._call_lambda(function, info, arguments, keywords, node)
        active = self.frame
        frames = 0
        while active is not None and active.block is not None:
            if active.function is not None and active.function.node is info.node:
                return self.unknown_call(Symbol(info.name, "result"), arguments, keywords, node)
            frames += 1
            up = active.block.parent
            active = up.frame if up is not None else None  # type: ignore[assignment]
        foreign = info.module is not self.module
        if (
            frames > (QUIET_DEPTH if self.quiet else SHALLOW_DEPTH if self.shallow else DEPTH)
            or (info.scope.of_type(ast.Yield) and any(d in CONTEXT_MANAGERS for d in info.decorators))
            or (foreign and not self._follows_others())
            or self.quiet > 3
        ):
            return self.unknown_call(Symbol(info.name, "result"), arguments, keywords, node)
        if function.receiver is not None:
            arguments = [function.receiver, *arguments]
        closure = function.closure if isinstance(function.closure, Frame) else self.home_frame(info.module)
        frame = Frame(info.module, info.scope, info, closure)
        parameters = info.parameters
        if info.cls is not None and not info.is_static and parameters:
            frame.receiver = function.receiver or (arguments[0] if arguments else None)
        self.visited.add(info.node)
        outer_frame, outer_steps = self.frame, self.steps
        block = self.enter("call", node)
        self.frame = block.frame = frame
        frame.block = block
        grad = self.grad
        decorated = self.decorator_grad(info)
        self._bind(info.node.args, frame, arguments, keywords)
        inference = self.state.get(GRAD, "inference")
        if decorated is not None:
            self.grad = decorated.enabled
            if decorated.kind == "inference_mode" and decorated.enabled is False:
                self.state.set(GRAD, "inference", True)
        try:
            self.run_body(info.node.body, frame)
        finally:
            self.frame = outer_frame
            frame.block = None  # it is active no more, and a block that no trace keeps must not keep it
            self.leave(block)
            if foreign:
                self.foreign_steps -= outer_steps - self.steps + FOREIGN_CALL
        if decorated is not None:
            self.grad = grad
            self.state.set(GRAD, "inference", inference)
        return self._results(frame, node)

    def _follows_others(self) -> bool:
        """Whether calls into other files are followed now."""
        return not self.quiet and not self.shallow and self.foreign_steps > 0

    def _results(self, frame: Frame, node: ast.AST) -> Value:
        if frame.yielded:  # a generator: followed where it is called, as if it were drained at once
            frame.returned = []
            return self.sequence("generator", frame.yielded, node, exact=False)
        if not frame.returned:
            return Const(None)
        result = frame.returned[0][0]
        for value, _ in frame.returned[1:]:
            result = self.join_values(result, value)
        frame.returned = []
        return result

    def run_body(self, body: list[ast.stmt], frame: Frame) -> None:
        """Run a function's body to all its ends and join their states."""
        dirty, outer = self.state.dirty, self.state.outer
        self.state.dirty, self.state.outer = set(), None
        flow = self.execute(body)
        if flow == "":
            frame.returned.append((Const(None), self.state))
        if frame.returned:
            self.state = self.meet([state for _, state in frame.returned])
        if not frame.captured and frame.function is not None:
            data = self.state.data
            for key in [key for key in self.state.dirty if key[0] is frame]:
                data.pop(key, None)
                self.state.dirty.discard(key)
        self.state.dirty |= dirty
        self.state.outer = outer

    def _call_lambda(
        self, function: Function, info: ast.Lambda, arguments: list[Value], keywords: dict[str, Value], node: ast.AST
    ) -> Value:
        closure = function.closure
        if not isinstance(closure, Frame) or self.depth > DEPTH:
            return self.unknown_call(Symbol("lambda", "result"), arguments, keywords, node)
        scope = next((s for s in closure.scope.walk() if s.node is info), closure.scope)
        frame = Frame(closure.module, scope, None, closure, closure.receiver)
        frame.owner = function.owner
        outer = self.frame
        self.depth += 1
        block = self.enter("call", node)
        self.frame = block.frame = frame
        frame.block = block
        self._bind(info.args, frame, arguments, keywords)
        try:
            return self.eval(info.body)
        finally:
            self.frame = outer
            frame.block = None
            self.leave(block)
            self.depth -= 1

    def _bind(self, signature: ast.arguments, frame: Frame, arguments: list[Value], keywords: dict[str, Value]) -> None:
        positional = [*signature.posonlyargs, *signature.args]
        left = dict(keywords)
        extra = left.pop("**", None)
        starred = next((i for i, v in enumerate(arguments) if isinstance(v, Symbol) and v.name == "*"), len(arguments))
        defaults: dict[str, ast.expr | None] = {
            a.arg: d for a, d in zip(reversed(positional), reversed(signature.defaults))
        }
        defaults.update({a.arg: d for a, d in zip(signature.kwonlyargs, signature.kw_defaults)})
        for i, parameter in enumerate(positional):
            name = parameter.arg
            if i < starred:
                value = arguments[i]
            elif name in left:
                value = left.pop(name)
            elif starred < len(arguments) or extra is not None:
                value = self.argument_symbol(parameter, frame)
            else:
                value = self._default(defaults.get(name), parameter, frame)
            self.state.set(frame, name, value)
        for parameter in signature.kwonlyargs:
            if parameter.arg in left:
                value = left.pop(parameter.arg)
            else:
                value = self._default(defaults.get(parameter.arg), parameter, frame)
            self.state.set(frame, parameter.arg, value)
        if signature.vararg is not None:
            rest = arguments[len(positional) :]
            self.state.set(frame, signature.vararg.arg, self.sequence("tuple", rest, None, starred >= len(arguments)))
        if signature.kwarg is not None:
            made = Dict(signature.kwarg)
            self.set_items(made, [(Const(k), v) for k, v in left.items()], extra is None)
            self.state.set(frame, signature.kwarg.arg, made)

    def _default(self, default: ast.expr | None, parameter: ast.arg, frame: Frame) -> Value:
        if default is None:
            return self.argument_symbol(parameter, frame)
        if isinstance(default, ast.Constant):
            return Const(default.value, default)
        return self.quietly(default, self.home_frame(frame.module))

    def argument_symbol(self, parameter: ast.arg, frame: Frame) -> Symbol:
        """An argument that nothing is known of but its annotation."""
        annotation = None
        if parameter.annotation is not None:
            node = parameter.annotation
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                annotation = node.value
            else:
                annotation = frame.module.qualname(node, frame.scope.parent)
        symbol = Symbol(parameter.arg, "argument", None, parameter, annotation)
        if annotation is not None and self.annotates_module(annotation, parameter, frame):
            self.module_like.add(symbol)
        return symbol

    def annotates_module(self, annotation: str, parameter: ast.arg, frame: Frame) -> bool:
        """Whether an annotation names an nn.Module class."""
        from torchlint.torchapi.modules import module_class

        if module_class(annotation) is not None:
            return True
        if annotation.startswith("builtins.") or parameter.annotation is None:
            return False
        module = frame.module
        dotted = module.dotted(parameter.annotation, frame.scope.parent)
        return dotted is not None and module.project.derives(dotted, MODULE, module) is True

    def decorator_grad(self, info: FunctionInfo) -> Any:
        """The grad mode that a decorator puts around a function, as a Context, or None."""
        for decorator in info.node.decorator_list:
            name = info.module.qualname(
                decorator.func if isinstance(decorator, ast.Call) else decorator, info.scope.parent
            )
            if name is not None:
                context = self.grad_context(name, [], {}, decorator)
                if context is not None and context.kind != "autocast":
                    if isinstance(decorator, ast.Call) and decorator.args:
                        first = decorator.args[0]
                        value = first.value if isinstance(first, ast.Constant) else None
                        context = self.grad_context(name, [Const(value)], {}, decorator)
                    return context
        return None

    # ---------------------------------------------------------------- classes and instances

    def instantiate(self, info: ClassInfo, arguments: list[Value], keywords: dict[str, Value], node: ast.AST) -> Value:
        """Build an instance of a class of the project."""
        made = Object(node, cls=info, spec=self.external_spec(info), known=True)
        if info.method("__new__") is not None and info.is_module is not True:
            return self.unknown_call(Class(info), arguments, keywords, node)
        init = info.method("__init__")
        if init is not None and self.shallow and not self.quiet and info.is_module:
            made.known = False
        elif init is not None:
            made.known = info.resolved
            self.call_function(Function(init, made), arguments, keywords, node)
        elif made.spec is not None and made.spec.name != "torch.nn.Module":
            self.build_layer(made, arguments, keywords, node)
        elif any(d in FIELD_BASES for c in info.mro if isinstance(c, ClassInfo) for d in _decorators(c)):
            self._fields(info, made, arguments, keywords)
        elif info.resolved is False:
            made.known = False
        return made

    def external_spec(self, info: ClassInfo) -> Any:
        """The torch class that a module class of the project builds upon, or None."""
        from torchlint.torchapi.modules import module_class

        if not info.is_module:
            return None
        for base in info.mro:
            if isinstance(base, str):
                spec = module_class(base)
                if spec is not None:
                    return spec
        return None

    def _fields(self, info: ClassInfo, made: Object, arguments: list[Value], keywords: dict[str, Value]) -> None:
        names: list[str] = []
        for cls in reversed([c for c in info.mro if isinstance(c, ClassInfo)]):
            for statement in cls.scope.of_type(ast.AnnAssign):
                target = statement.target  # type: ignore[attr-defined]
                if isinstance(target, ast.Name) and target.id not in names:
                    names.append(target.id)
        for name, value in (*zip(names, arguments), *keywords.items()):
            self.state.set(made, f".{name}", value)

    def call_object(self, callee: Object, arguments: list[Value], keywords: dict[str, Value], node: ast.AST) -> Value:
        """``instance(...)``: a module's forward, or ``__call__``."""
        if callee.is_module:
            return self.call_module(callee, arguments, keywords, node)
        method = callee.cls.method("__call__") if callee.cls is not None else None
        if method is not None:
            return self.call_function(Function(method, callee), arguments, keywords, node)
        event = ModuleCall(node, callee, arguments, keywords)
        event.mode = self.mode(callee)
        self.emit(event)
        event.result = self.unknown_call(callee, arguments, keywords, node)
        return event.result

    def call_module(self, callee: Object, arguments: list[Value], keywords: dict[str, Value], node: ast.AST) -> Value:
        """Apply a module."""
        if callee.spec is not None and callee.spec.kind == "loss" and callee.cls is None:
            return self.loss_call(callee.spec.name, callee, arguments, keywords, node)
        arguments = [self.current(v) for v in arguments]
        event = ModuleCall(node, callee, arguments, keywords)
        event.mode = self.mode(callee)
        event.autocast = self.state.get("autocast", "autocast")
        event.inner = self.inside_module > 0
        event.tensors = [v for v in self._inputs(arguments, keywords) if isinstance(v, Tensor)]
        if not event.inner and event.mode != "eval":
            event.mode_dependent = self.mode_dependent(callee)
        self.emit(event)
        self.inside_module += 1
        try:
            forward = callee.cls.method("forward") if callee.cls is not None else None
            if forward is not None:
                result = self.call_function(Function(forward, callee), arguments, keywords, node)
            elif callee.spec is not None and callee.spec.name != "torch.nn.Module":
                result = self.layer_call(callee, arguments, keywords, node)
            else:
                result = Symbol("", "output", callee, node)
        finally:
            self.inside_module -= 1
        event.result = self._output(result, callee, node, event.inner)
        return event.result

    def _output(self, result: Value, callee: Object, node: ast.AST, inner: bool) -> Value:
        if inner:
            return result
        for part in self.items(result)[0] if isinstance(result, Sequence) else (result,):
            if isinstance(part, Tensor) and part.role != "parameter":
                part.role, part.of = "output", callee
        if type(result) is Symbol and result.origin not in ("argument",):
            return Symbol(result.name, "output", callee, node)
        return result

    # ---------------------------------------------------------------- iteration

    def known_items(self, value: Value) -> tuple[Value, ...] | None:
        """What iterating over a value gives, item by item, where all of it is known and little."""
        items: tuple[Value, ...] = ()
        exact = False
        if isinstance(value, Sequence):
            items, exact = self.items(value)
        elif isinstance(value, Object) and self.state.get(value, "@children exact", False):
            items, exact = self.state.get(value, "@children", ()), True
        elif isinstance(value, Dict):
            pairs, exact = self.items(value)
            items = tuple(k for k, _ in pairs)
        return items if exact and len(items) <= UNROLLED else None

    def element(self, value: Value, node: ast.AST) -> Value:
        """What iterating over a value gives."""
        if isinstance(value, Parameters):
            return self.parameter_element(value, node)
        if isinstance(value, Sequence):
            items, _ = self.items(value)
            if not items:
                return Symbol("", "element", value, node)
            joined = items[0]
            for item in items[1:]:
                joined = self.join_values(joined, item)
            return joined  # type: ignore[no-any-return]
        if isinstance(value, Dict):
            keys = [k for k, _ in self.items(value)[0]]
            return keys[0] if len(keys) == 1 else Symbol("", "element", value, node)
        if isinstance(value, Tensor):
            return self.tensor_item(value, Symbol(), node)
        if isinstance(value, Array):
            return Array(value.dtype, node, value.of)
        if isinstance(value, Object):
            children = self.state.get(value, "@children")
            if children:
                joined = children[0]
                for item in children[1:]:
                    joined = self.join_values(joined, item)
                return joined  # type: ignore[no-any-return]
        special = self.state.get(value, "@element")
        if special is not None:
            return special(node)  # type: ignore[no-any-return]
        found: Value | None = self.state.get(value, "[*]")
        if found is None:
            found = Symbol("", "element", value, node)
            self.state.set(value, "[*]", found)
        return found

    def consume(self, value: Value, node: ast.AST, by: str) -> None:
        """Something runs through an iterator of parameters."""
        if isinstance(value, Parameters):
            event = ParametersUsed(node, value, by)
            event.exhausted = self.state.get(value, "@exhausted")
            self.emit(event)
            self.state.set(value, "@exhausted", event)
        elif isinstance(value, Sequence) and value.kind == "list":
            for item in self.items(value)[0]:
                if isinstance(item, Dict):
                    for key, held in self.items(item)[0]:
                        if isinstance(key, Const) and key.value == "params":
                            self.consume(held, node, by)

    def parameter_element(self, value: Parameters, node: ast.AST) -> Value:
        """One of a module's parameters, the same Tensor for each pass over the same module."""
        key = value.sources[0] if len(value.sources) == 1 else value
        element: Tensor | None = self.state.get(key, "@parameter")
        if element is None:
            element = Tensor("parameters", (), node, requires_grad=True, leaf=True, role="parameter")
            element.of = value.sources[0] if len(value.sources) == 1 else None
            self.state.set(key, "@parameter", element)
        if value.named:
            return self.sequence("tuple", [Symbol("name", "element", value, node), element], node)
        return element

    def returns(self, node: ast.Return, value: Value) -> None:
        """A return statement."""
        self.emit(Return(node, value, self.items(value)[0] if isinstance(value, Sequence) else ()))
        self.frame.returned.append((value, self.state))

    def accumulate(self, node: ast.AST, container: Value, value: Value, how: str, name: str = "") -> Accumulate:
        """Something is kept in a container or a running sum."""
        event = Accumulate(node, container, value, how, name)
        event.born = self.births.get(container, NEVER)[1]
        self.emit(event)
        return event


def _decorators(cls: ClassInfo) -> list[str | None]:
    return [
        cls.module.qualname(d.func if isinstance(d, ast.Call) else d, cls.scope.parent) for d in cls.node.decorator_list
    ]
