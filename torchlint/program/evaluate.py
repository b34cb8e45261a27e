"""What expressions evaluate to."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from torchlint.program.calls import Caller
from torchlint.program.events import AttributeStore
from torchlint.program.machine import MISSING, Frame, OutOfSteps
from torchlint.program.module import NEVER_SEARCHED, Assigned, Binding, FunctionInfo, Imported, Unread
from torchlint.program.values import (
    Array,
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
    Super,
    Symbol,
    Tensor,
    Unseen,
    Value,
)
from torchlint.torchapi.hierarchy import canonical

_BINARY: dict[type[ast.operator], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("add", operator.add),
    ast.Sub: ("sub", operator.sub),
    ast.Mult: ("mul", operator.mul),
    ast.Div: ("div", operator.truediv),
    ast.FloorDiv: ("floor_divide", operator.floordiv),
    ast.Mod: ("remainder", operator.mod),
    ast.Pow: ("pow", operator.pow),
    ast.MatMult: ("matmul", operator.matmul),
    ast.BitAnd: ("bitwise_and", operator.and_),
    ast.BitOr: ("bitwise_or", operator.or_),
    ast.BitXor: ("bitwise_xor", operator.xor),
    ast.LShift: ("bitwise_left_shift", operator.lshift),
    ast.RShift: ("bitwise_right_shift", operator.rshift),
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}
_FOLDABLE = (int, float, complex, str, bool, type(None))
_KNOWN_NOT_NONE = (
    Object,
    Tensor,
    Sequence,
    Dict,
    Optimizer,
    Scheduler,
    Loader,
    Parameters,
    Class,
    Function,
    Array,
    Unseen,
)
_OPTIMIZERS = frozenset(("torch.optim.Optimizer", "torch.optim.optimizer.Optimizer"))
_NUMBER_LIMIT = 1 << 64


class Evaluator(Caller):
    """Evaluates expressions; statements are the Interpreter's."""

    def eval(self, node: ast.expr | None) -> Value:
        """The value of an expression; what it does is put into the trace."""
        if node is None:
            return Const(None)
        self.steps -= 1
        if self.steps < 0:
            raise OutOfSteps
        kind = type(node)
        if kind is ast.Name:
            found: Value | None = self.state.data.get((self.frame, node.id))  # type: ignore[attr-defined]
            if found is not None:
                return found
        elif kind is ast.Constant:
            return Const(node.value, node)  # type: ignore[attr-defined]
        method = _METHODS.get(kind)
        if method is None:
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.expr):
                    self.eval(child)
            return Symbol(node=node)
        return method(self, node)

    # ---------------------------------------------------------------- names

    def name(self, node: ast.Name) -> Value:
        return self.variable(node.id, node)

    def variable(self, name: str, node: ast.AST) -> Value:
        """What a name holds in the current frame."""
        frame: Frame | None = self.frame
        data = self.state.data
        while frame is not None:
            found = data.get((frame, name), MISSING)
            if found is not MISSING:
                return found  # type: ignore[no-any-return]
            if name in frame.scope.stores and frame.scope.parent is not None:
                local = frame.module.local_import(frame.scope, name)
                if local is not None:
                    return self.imported(local, frame)
                break
            if frame.closure is None or frame.closure.scope.parent is None:
                around = self._import_around(frame, name)
                if around is not None:
                    return around
            frame = frame.closure
        module = self.frame.module
        home = self.home_frame(module)
        found = data.get((home, name), MISSING)
        if found is MISSING:
            found = self.bound_value(module.lookup(name, None), name, module, node)
            self.state.set(home, name, found)
        return found  # type: ignore[no-any-return]

    def _import_around(self, frame: Frame, name: str) -> Value | None:
        """What a name is by an import in a function around this one's class, whose own frame isn't known."""
        scope = frame.scope.parent
        while scope is not None and scope.parent is not None:
            if name in scope.stores and not isinstance(scope.node, ast.ClassDef):
                local = frame.module.local_import(scope, name)
                return None if local is None else self.imported(local, frame)
            scope = scope.parent
        return None

    def bound_value(self, bound: Binding | None, name: str, module: Any, node: ast.AST) -> Value:
        """The value of a module-level binding."""
        if bound is None:
            if name == "__name__":
                return Const("__main__" if module is self.module else module.name)
            return Symbol(name, "global")
        if isinstance(bound, Imported):
            return self.imported(bound.qualname, self.home_frame(module))
        if isinstance(bound, FunctionInfo):
            return Function(bound)
        if isinstance(bound, Assigned):
            if bound.many or bound.value is None or not self.simple(bound.value):
                return Symbol(name, "global")
            return self.quietly(bound.value, self.home_frame(module))
        return Class(bound, node)

    def imported(self, dotted: str, frame: Frame) -> Value:
        """What an imported name stands for."""
        if self.shallow and dotted.partition(".")[0] not in NEVER_SEARCHED:
            return Unseen(canonical(dotted), dotted, frame.module)
        found = self.module.project.leads(dotted, frame.module) if "." in dotted else Imported(dotted)
        if isinstance(found, Unread):
            return Unseen(found.qualname, dotted, frame.module)
        return self._led_to(found, dotted, frame)

    def see(self, value: Unseen) -> Value:
        """What a name of another file stands for, which is read now."""
        if value.seen is None:
            found = self.module.project.definition(value.dotted, value.asker)
            value.seen = self._led_to(found, value.dotted, self.home_frame(value.asker))
        return value.seen

    def _led_to(self, found: Binding | None, dotted: str, frame: Frame) -> Value:
        if isinstance(found, Imported):
            return External(found.qualname)
        if found is None:
            return External(dotted)
        if isinstance(found, Assigned):
            home = self._module_of(dotted, frame)
            if home is None or found.many or found.value is None or not self.simple(found.value):
                return Symbol(dotted.rpartition(".")[2], "global")
            return self.quietly(found.value, self.home_frame(home))
        return self.bound_value(found, dotted, frame.module, found.node)

    def _module_of(self, dotted: str, frame: Frame) -> Any:
        return self.module.project.imported(dotted.rpartition(".")[0], frame.module)

    def simple(self, node: ast.expr, budget: int = 60) -> bool:
        """Whether a module-level value may be evaluated on demand, out of order."""
        for count, part in enumerate(ast.walk(node)):
            if count > budget or isinstance(part, (ast.Lambda, ast.Await, ast.Yield, ast.NamedExpr)):
                return False
        return True

    def quietly(self, node: ast.expr, frame: Frame) -> Value:
        """Evaluate in another frame without leaving events."""
        if self.depth > 12:
            return Symbol()
        outer, self.frame = self.frame, frame
        self.quiet += 1
        self.depth += 1
        try:
            return self.eval(node)
        finally:
            self.frame = outer
            self.quiet -= 1
            self.depth -= 1

    # ---------------------------------------------------------------- attributes

    def attribute(self, node: ast.Attribute) -> Value:
        return self.get_attribute(self.eval(node.value), node.attr, node)

    def get_attribute(self, value: Value, name: str, node: ast.AST) -> Value:
        """What ``value.name`` is."""
        kind = type(value)
        if kind is External:
            return self.imported(f"{value.qualname}.{name}", self.frame)  # type: ignore[attr-defined]
        if kind is Unseen:
            return self.get_attribute(self.see(value), name, node)  # type: ignore[arg-type]
        if kind is Object:
            return self.object_attribute(value, name, node)  # type: ignore[arg-type]
        if kind is Tensor:
            return self.tensor_attribute(value, name, node)  # type: ignore[arg-type]
        if kind is Symbol:
            return self.symbol_attribute(value, name, node)  # type: ignore[arg-type]
        if kind is Class:
            return self.class_member(value, name, node)  # type: ignore[arg-type]
        if kind is Super:
            return self.super_member(value, name, node)  # type: ignore[arg-type]
        if isinstance(value, Compiled):
            return value.module if name == "_orig_mod" else self.get_attribute(value.module, name, node)
        stored = self.state.get(value, f".{name}")
        return stored if stored is not None else Bound(value, name, node)

    def symbol_attribute(self, value: Symbol, name: str, node: ast.AST) -> Value:
        """An attribute of something unknown: the same Symbol each time it is read."""
        slot = f".{name}"
        found: Value | None = self.state.get(value, slot)
        if found is None:
            found = Symbol(f"{value.name}.{name}" if value.name else "", "attribute", value, node)
            self.state.set(value, slot, found)
        return found

    def object_attribute(self, value: Object, name: str, node: ast.AST) -> Value:
        """An attribute of an instance: set on it, in its class, or made by its torch base."""
        slot = f".{name}"
        found: Value | None = self.state.get(value, slot)
        if found is not None:
            return found
        if value.cls is not None:
            method = value.cls.method(name)
            if method is not None:
                if method.is_property:
                    return self.call_function(Function(method, value), [], {}, node)
                return Function(method, None if method.is_static else value)
            default = value.cls.class_attribute(name)
            if default is not None:
                owner = next(c for c in value.cls.mro if hasattr(c, "class_attributes") and name in c.class_attributes)  # type: ignore[union-attr]
                if self.simple(default):
                    found = self.quietly(default, self.home_frame(owner.module))  # type: ignore[union-attr]
                    self.state.set(value, slot, found)
                    return found
        made = self.layer_attribute(value, name, node)
        if name == "param_groups" and value.cls is not None and any(b in _OPTIMIZERS for b in value.cls.mro):
            made = self.parameter_groups(node)
        if made is None:
            if self.is_library_method(value, name):
                return Bound(value, name, node)
            made = Symbol(f"self.{name}" if value is self.frame.receiver else "", "attribute", value, node)
        self.state.set(value, slot, made)
        return made

    def parameter_groups(self, node: ast.AST) -> Value:
        """What an optimizer of the project's own holds: groups of leaves that require grad, and options."""
        parameter = Tensor("parameters", (), node, requires_grad=True, leaf=True, role="parameter")
        group = Dict(node)
        self.set_items(group, [(Const("params"), self.sequence("list", [parameter], node, exact=False))], exact=False)
        return self.sequence("list", [group], node, exact=False)

    def class_member(self, value: Class, name: str, node: ast.AST) -> Value:
        """``Class.name``."""
        method = value.info.method(name)
        if method is not None:
            return Function(method, value if method.is_classmethod else None)
        default = value.info.class_attribute(name)
        if default is not None and self.simple(default):
            return self.quietly(default, self.home_frame(value.info.module))
        return Bound(value, name, node)

    def super_member(self, value: Super, name: str, node: ast.AST) -> Value:
        """``super().name``: the next definition above the class."""
        method = value.cls.inherited(name)
        if method is None:
            return Bound(value, name, node)
        return Function(method, None if method.is_static else value.receiver)

    # ---------------------------------------------------------------- operators

    def binary(self, node: ast.BinOp) -> Value:
        return self.combine(node, _BINARY[type(node.op)], self.eval(node.left), self.eval(node.right))

    def combine(self, node: ast.AST, op: tuple[str, Callable[[Any, Any], Any]], left: Value, right: Value) -> Value:
        """The value of an arithmetic operator."""
        name, compute = op
        left, right = self.current(left), self.current(right)
        if isinstance(left, Const) and isinstance(right, Const):
            return self.fold(compute, left, right, node)
        if isinstance(left, Tensor) or isinstance(right, Tensor):
            if name == "mod" and isinstance(left, Const):
                return Symbol(node=node)
            return self.tensor_operation(f"torch.{name}", [left, right], {}, node)
        if isinstance(left, Sequence) and isinstance(right, Sequence) and name == "add":
            (a, exact_a), (b, exact_b) = self.items(left), self.items(right)
            return self.sequence(left.kind, [*a, *b], node, exact_a and exact_b)
        if isinstance(left, Sequence) and name == "mul":
            items, exact = self.items(left)
            times = right.value if isinstance(right, Const) and isinstance(right.value, int) else None
            if times is not None and exact and 0 <= times * len(items) <= 64:
                return self.sequence(left.kind, list(items) * times, node)
            return self.sequence(left.kind, list(items), node, exact=False)
        if isinstance(left, Array) or isinstance(right, Array):
            return Array(None, node)
        return self.derived(node, left, right)

    def derived(self, node: ast.AST, *parts: Value) -> Value:
        """Something unknown that is computed from ``parts``."""
        unknown = next((p for p in parts if isinstance(p, Symbol)), None)
        return Symbol("", "result", unknown, node)

    def fold(self, compute: Callable[[Any, Any], Any], left: Const, right: Const, node: ast.AST) -> Value:
        """Arithmetic on constants, as far as it is cheap and defined."""
        a, b = left.value, right.value
        if not isinstance(a, _FOLDABLE) or not isinstance(b, _FOLDABLE):
            return Symbol(node=node)
        if compute in (operator.pow, operator.lshift) and not (isinstance(b, (int, float)) and abs(b) <= 64):
            return Symbol(node=node)
        if compute is operator.mul and isinstance(a, str) | isinstance(b, str):
            return Symbol(node=node)
        try:
            result = compute(a, b)
        except Exception:
            return Symbol(node=node)
        if (isinstance(result, int) and abs(result) > _NUMBER_LIMIT) or (
            isinstance(result, str) and len(result) > 1000
        ):
            return Symbol(node=node)
        return Const(result, node) if isinstance(result, _FOLDABLE) else Symbol(node=node)

    def unary(self, node: ast.UnaryOp) -> Value:
        value = self.eval(node.operand)
        if isinstance(node.op, ast.Not):
            truth = self.truth(value)
            return Symbol(node=node) if truth is None else Const(not truth, node)
        if isinstance(value, Const) and isinstance(value.value, (int, float)):
            if isinstance(node.op, ast.USub):
                return Const(-value.value, node)
            if isinstance(node.op, ast.UAdd):
                return value
        if isinstance(value, Tensor):
            names = {ast.USub: "neg", ast.Invert: "bitwise_not", ast.UAdd: "positive"}
            return self.tensor_operation(f"torch.{names[type(node.op)]}", [value], {}, node)
        return self.derived(node, value)

    def boolean(self, node: ast.BoolOp) -> Value:
        is_and = isinstance(node.op, ast.And)
        result: Value | None = None
        for i, part in enumerate(node.values):
            if i and result is not None:
                # what comes after may not be evaluated
                block = self.enter("branch", node)
                arm = self.enter("arm", part)
                base, self.state = self.state, self.state.fork()
                value = self.eval(part)
                self.state = self.join(base, [self.state, base.fork()])
                self.leave(arm)
                self.leave(block)
            else:
                value = self.eval(part)
            truth = self.truth(value)
            if truth is not None and truth is not is_and:
                if result is None:
                    return value
                return self.join_values(result, value)  # type: ignore[no-any-return]
            if truth is None or i == len(node.values) - 1:
                result = value if result is None else self.join_values(result, value)
        return result if result is not None else Symbol(node=node)

    def compare(self, node: ast.Compare) -> Value:
        left = self.eval(node.left)
        values = [self.eval(c) for c in node.comparators]
        if len(values) == 1:
            right, op = values[0], node.ops[0]
            if isinstance(left, Const) and isinstance(right, Const):
                compute = _COMPARE.get(type(op))
                if compute is not None:
                    return self.fold(compute, left, right, node)
                return Symbol(node=node)
            if isinstance(op, (ast.Is, ast.IsNot)) and isinstance(right, Const) and right.value is None:
                if isinstance(left, _KNOWN_NOT_NONE):
                    return Const(isinstance(op, ast.IsNot), node)
                return Symbol(node=node)
            if (isinstance(left, Tensor) or isinstance(right, Tensor)) and not isinstance(
                op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)
            ):
                names = {ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge"}
                return self.tensor_operation(f"torch.{names[type(op)]}", [left, right], {}, node)
        return Symbol(node=node)

    def truth(self, value: Value) -> bool | None:
        """Whether a value counts as true, where that is known."""
        if isinstance(value, Const):
            return bool(value.value)
        if isinstance(value, (Sequence, Dict)):
            items, exact = self.items(value)
            return bool(items) if exact else None
        if isinstance(value, (Object, Optimizer, Scheduler, Class, Function, Unseen)):
            cls = value.cls if isinstance(value, Object) else None
            return None if cls is not None and (cls.method("__len__") or cls.method("__bool__")) else True
        return None

    # ---------------------------------------------------------------- displays

    def constant(self, node: ast.Constant) -> Value:
        return Const(node.value, node)

    def list_display(self, node: ast.List | ast.Tuple | ast.Set) -> Value:
        items: list[Value] = []
        exact = True
        for element in node.elts:
            if isinstance(element, ast.Starred):
                inner = self.eval(element.value)
                if isinstance(inner, Sequence):
                    part, known = self.items(inner)
                    items.extend(part)
                    exact = exact and known
                else:
                    items.append(self.element(inner, element))
                    exact = False
            else:
                items.append(self.eval(element))
        kind = {ast.List: "list", ast.Tuple: "tuple", ast.Set: "set"}[type(node)]
        return self.sequence(kind, items, node, exact)

    def dict_display(self, node: ast.Dict) -> Value:
        made = Dict(node)
        items: list[tuple[Value, Value]] = []
        exact = True
        for key, value in zip(node.keys, node.values):
            if key is None:
                inner = self.eval(value)
                if isinstance(inner, Dict):
                    part, known = self.items(inner)
                    items.extend(part)
                    exact = exact and known
                else:
                    exact = False
            else:
                items.append((self.eval(key), self.eval(value)))
        self.set_items(made, items, exact)
        return made

    def comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Value:
        unrolled = self._unrolled(node)
        if unrolled is not None:
            return unrolled
        block = self.enter("loop", node)
        self.comprehending += 1
        drawn: list[Value] = []
        for generator in node.generators:
            source = self.eval(generator.iter)
            drawn.append(source)
            block.value = source
            self.assign(generator.target, self.element(source, generator.iter), generator.iter)
            for condition in generator.ifs:
                self.eval(condition)
        if isinstance(node, ast.DictComp):
            pair = (self.eval(node.key), self.eval(node.value))
            self.comprehending -= 1
            self.leave(block)
            made = Dict(node)
            self.set_items(made, [pair], exact=False)
            return made
        element = self.eval(node.elt)
        self.comprehending -= 1
        self.leave(block)
        if (
            isinstance(node, ast.GeneratorExp)
            and isinstance(element, Tensor)
            and element.role == "parameter"
            and isinstance(drawn[0], Parameters)
        ):
            return Parameters(drawn[0].sources, False, node)
        kind = {ast.ListComp: "list", ast.SetComp: "set", ast.GeneratorExp: "generator"}[type(node)]
        size = self.known_length(drawn[0]) if len(drawn) == 1 and not node.generators[0].ifs else None
        if size is not None and size <= 8 and not isinstance(element, Object):
            return self.sequence(kind, [element] * size, node, exact=True)
        return self.sequence(kind, [element], node, exact=False)

    def _unrolled(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Value | None:
        """A comprehension over few known items, evaluated for each; None where it isn't one."""
        if len(node.generators) != 1 or node.generators[0].ifs:
            return None
        generator = node.generators[0]
        self.quiet += 1
        try:
            items = self.known_items(self.eval(generator.iter))
        finally:
            self.quiet -= 1
        if items is None:
            return None
        block = self.enter("loop", node)
        block.value = self.eval(generator.iter)
        results: list[object] = []
        for item in items:
            self.assign(generator.target, item, generator.iter)
            if isinstance(node, ast.DictComp):
                results.append((self.eval(node.key), self.eval(node.value)))
            else:
                results.append(self.eval(node.elt))
        self.leave(block)
        if isinstance(node, ast.DictComp):
            made = Dict(node)
            self.set_items(made, results)
            return made
        kind = {ast.ListComp: "list", ast.SetComp: "set", ast.GeneratorExp: "generator"}[type(node)]
        return self.sequence(kind, results, node)  # type: ignore[arg-type]

    def known_length(self, value: Value) -> int | None:
        """How many items iterating over a value gives, where known."""
        if isinstance(value, Sequence):
            items, exact = self.items(value)
            return len(items) if exact else None
        return None

    def subscript(self, node: ast.Subscript) -> Value:
        value = self.eval(node.value)
        index = self.eval(node.slice) if not isinstance(node.slice, ast.Slice) else self.slice(node.slice)
        return self.get_item(value, index, node)

    def slice(self, node: ast.Slice) -> Value:
        parts = [self.eval(p) if p is not None else Const(None) for p in (node.lower, node.upper, node.step)]
        return self.sequence("slice", parts, node)

    def get_item(self, value: Value, index: Value, node: ast.AST) -> Value:
        """What ``value[index]`` is."""
        if isinstance(value, Tensor):
            return self.tensor_item(value, index, node)
        if isinstance(value, Sequence):
            items, exact = self.items(value)
            if isinstance(index, Const) and isinstance(index.value, int) and exact:
                if -len(items) <= index.value < len(items):
                    return items[index.value]  # type: ignore[no-any-return]
                return Symbol(node=node)
            if isinstance(index, Sequence) and index.kind == "slice" and exact:
                bounds = [p.value if isinstance(p, Const) else MISSING for p in self.items(index)[0]]
                if MISSING not in bounds and all(b is None or isinstance(b, int) for b in bounds) and bounds[2] != 0:
                    return self.sequence(value.kind, items[slice(*bounds)], node)
            return self.element(value, node)
        if isinstance(value, Dict):
            items, exact = self.items(value)
            if isinstance(index, Const):
                for key, held in reversed(items):
                    if isinstance(key, Const) and key.value == index.value:
                        return held  # type: ignore[no-any-return]
                if any(not isinstance(key, Const) for key, _ in items) and len(items) == 1:
                    return items[0][1]  # type: ignore[no-any-return]
            elif len(items) == 1:
                return items[0][1]  # type: ignore[no-any-return]
            slot = f"[{index.value!r}]" if isinstance(index, Const) else "[?]"
            return self.item_of(value, slot, node)
        if isinstance(value, Object):
            return self.module_item(value, index, node)
        if isinstance(value, Symbol):
            slot = f"[{index.value!r}]" if isinstance(index, Const) else f"[{index!r}]"
            return self.item_of(value, slot, node)
        if isinstance(value, Array):
            return Array(value.dtype, node, value.of)
        return Symbol("", "element", value, node)

    def item_of(self, value: Value, slot: str, node: ast.AST) -> Value:
        found: Value | None = self.state.get(value, slot)
        if found is None:
            name = value.name if isinstance(value, Symbol) else ""
            found = Symbol(f"{name}{slot}" if name and "?" not in slot else "", "element", value, node)
            self.state.set(value, slot, found)
        return found

    # ---------------------------------------------------------------- the rest

    def conditional(self, node: ast.IfExp) -> Value:
        truth = self.truth(self.eval(node.test))
        if truth is not None:
            return self.eval(node.body if truth else node.orelse)
        base = self.state
        block = self.enter("branch", node)
        results, states = [], []
        for part in (node.body, node.orelse):
            self.state = base.fork()
            arm = self.enter("arm", part)
            results.append(self.eval(part))
            self.leave(arm)
            states.append(self.state)
        self.leave(block)
        self.state = self.join(base, states)
        return self.join_values(results[0], results[1])  # type: ignore[no-any-return]

    def named(self, node: ast.NamedExpr) -> Value:
        value = self.eval(node.value)
        self.assign(node.target, value, node)
        return value

    def lambda_(self, node: ast.Lambda) -> Value:
        self.frame.captured = True
        return Function(node, None, self.frame, self.frame.owner)

    def joined(self, node: ast.JoinedStr) -> Value:
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                self.eval(part.value)
        return Symbol(node=node)

    def awaited(self, node: ast.Await | ast.YieldFrom) -> Value:
        self.eval(node.value)
        return Symbol(node=node)

    def yielded(self, node: ast.Yield) -> Value:
        value = self.eval(node.value)
        self.frame.yielded.append(value)
        return Symbol(node=node)

    def starred(self, node: ast.Starred) -> Value:
        return self.eval(node.value)

    # ---------------------------------------------------------------- assignment

    def assign(self, target: ast.expr, value: Value, node: ast.AST) -> None:
        """Bind a target to a value."""
        if isinstance(target, ast.Name):
            frame = self.frame
            if target.id in frame.scope.globals:
                frame = self._frame_of(target.id)
            if type(value) is Symbol and not value.name:
                value = Symbol(target.id, value.origin, value.of, value.node, value.annotation)
            self.state.set(frame, target.id, value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self._unpack(target, value, node)
        elif isinstance(target, ast.Attribute):
            self.set_attribute(self.eval(target.value), target.attr, value, target)
        elif isinstance(target, ast.Subscript):
            container = self.eval(target.value)
            index = self.eval(target.slice) if not isinstance(target.slice, ast.Slice) else self.slice(target.slice)
            self.set_item(container, index, value, target)
        elif isinstance(target, ast.Starred):
            self.assign(target.value, self.sequence("list", [value], node, exact=False), node)

    def _frame_of(self, name: str) -> Frame:
        frame = self.frame.closure
        while frame is not None:
            if (frame, name) in self.state.data:
                return frame
            frame = frame.closure
        return self.home_frame(self.frame.module)

    def _unpack(self, target: ast.Tuple | ast.List, value: Value, node: ast.AST) -> None:
        starred = next((i for i, t in enumerate(target.elts) if isinstance(t, ast.Starred)), None)
        if isinstance(value, Sequence):
            items, exact = self.items(value)
            if exact and starred is None and len(items) == len(target.elts):
                for part, item in zip(target.elts, items):
                    self.assign(part, item, node)
                return
            if exact and starred is not None and len(items) >= len(target.elts) - 1:
                after = len(target.elts) - starred - 1
                for part, item in zip(target.elts[:starred], items):
                    self.assign(part, item, node)
                middle = self.sequence("list", items[starred : len(items) - after], node)
                self.assign(target.elts[starred].value, middle, node)  # type: ignore[attr-defined]
                for part, item in zip(target.elts[starred + 1 :], items[len(items) - after :]):
                    self.assign(part, item, node)
                return
        for i, part in enumerate(target.elts):
            if isinstance(value, (Symbol, Tensor)) and not isinstance(part, ast.Starred):
                self.assign(part, self.get_item(value, Const(i), part), node)
            else:
                self.assign(part, self.element(value, part), node)

    def set_attribute(self, owner: Value, name: str, value: Value, node: ast.Attribute) -> None:
        """``owner.name = value``."""
        if isinstance(owner, Compiled):
            owner = owner.module
        self.emit(AttributeStore(node, owner, name, value))
        if isinstance(owner, Tensor):
            self.set_tensor_attribute(owner, name, value, node)
            return
        self.state.set(owner, f".{name}", value)
        if isinstance(owner, Object) and isinstance(value, Object) and owner.is_module and value.is_module:
            if self.frozen(owner) is not self.frozen(value):  # a part that is added keeps its own state
                self.state.set(value, "@frozen", self.frozen(value))
                self.freeze(owner, None, parts=False)
            self.state.set(value, "@parent", owner)
        if isinstance(owner, Object) and isinstance(value, Tensor) and value.role == "parameter" and value.of is None:
            value.of = owner
            value.name = name
        if name == "requires_grad" and isinstance(owner, Symbol):
            self.state.set(owner, "@requires_grad", value.value if isinstance(value, Const) else None)
            if not (isinstance(value, Const) and not value.value):
                self.thaw()
        if name == "grad" and isinstance(value, Const) and value.value is None:
            self.gradients_dropped(owner, node)


_METHODS: dict[type[ast.expr], Callable[[Any, Any], Value]] = {
    ast.Attribute: Evaluator.attribute,
    ast.Await: Evaluator.awaited,
    ast.BinOp: Evaluator.binary,
    ast.BoolOp: Evaluator.boolean,
    ast.Call: Evaluator.call,
    ast.Compare: Evaluator.compare,
    ast.Constant: Evaluator.constant,
    ast.Dict: Evaluator.dict_display,
    ast.DictComp: Evaluator.comprehension,
    ast.GeneratorExp: Evaluator.comprehension,
    ast.IfExp: Evaluator.conditional,
    ast.JoinedStr: Evaluator.joined,
    ast.Lambda: Evaluator.lambda_,
    ast.List: Evaluator.list_display,
    ast.ListComp: Evaluator.comprehension,
    ast.Name: Evaluator.name,
    ast.NamedExpr: Evaluator.named,
    ast.Set: Evaluator.list_display,
    ast.SetComp: Evaluator.comprehension,
    ast.Starred: Evaluator.starred,
    ast.Subscript: Evaluator.subscript,
    ast.Tuple: Evaluator.list_display,
    ast.UnaryOp: Evaluator.unary,
    ast.Yield: Evaluator.yielded,
    ast.YieldFrom: Evaluator.awaited,
}
BINARY = _BINARY
