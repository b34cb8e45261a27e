"""What the rules on custom autograd Functions share: how such a class's methods fit together, and what is a tensor."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from torchlint.check import ClassInfo, FunctionInfo, Module, Scope, operations

GRADIENT = ("backward", "vjp")
"""The names under which torch looks for the gradient formula."""

_KEEPING = ("torch.", "functools.wraps", "builtins.staticmethod", "typing.")
"""Decorators of these names leave a method's parameters and its number of results as they are."""

_TENSOR_TYPES = frozenset({"torch.Tensor", "torch.FloatTensor", "torch.LongTensor", "torch.nn.Parameter"})
_PLAIN_TYPES = frozenset(
    {"builtins.int", "builtins.float", "builtins.bool", "builtins.str", "torch.dtype", "torch.device", "torch.Size"}
)

_PLAIN_RESULTS = frozenset({"bool", "int", "float", "complex", "number", "numbers", "size", "size|int", "str", "dtype"})

_SHARED_NAMES = frozenset(
    {
        *("apply", "bfloat16", "cpu", "cuda", "double", "float", "half", "index", "ipu", "register_hook", "to", "type"),
        *("requires_grad_", "share_memory", "share_memory_", "shape", "dtype", "device", "data", "T", "copy", "count"),
        *(
            "sort",
            "split",
            "sum",
            "mean",
            "min",
            "max",
            "all",
            "any",
            "real",
            "imag",
            "repeat",
            "round",
            "names",
            "name",
        ),
    }
)
"""Methods and attributes of tensors that modules, lists, strings, numbers or numpy's arrays have as well."""


class Form:
    """How the methods of one autograd.Function fit together.

    ``forward``, ``setup`` and ``backward`` may be inherited. ``inputs`` are forward's parameters without ctx, as
    ``apply`` takes them; ``star`` is whether any number may follow.
    """

    def __init__(self, cls: ClassInfo) -> None:
        self.cls = cls
        self.forward = cls.method("forward")
        self.setup = cls.method("setup_context")
        self.backward = next((found for name in GRADIENT if (found := cls.method(name)) is not None), None)

    @property
    def own(self) -> Iterator[FunctionInfo]:
        """Those of the three that stand in the class itself."""
        for method in (self.forward, self.setup, self.backward):
            if method is not None and method.cls is self.cls:
                yield method

    @cached_property
    def inputs(self) -> list[ast.arg]:
        """What ``apply`` takes, in order."""
        if self.forward is None:
            return []
        return positional(self.forward)[0 if self.setup is not None else ctx_position(self.forward) + 1 :]

    @property
    def star(self) -> bool:
        """Whether forward takes any number of further inputs."""
        return self.forward is not None and self.forward.node.args.vararg is not None

    @property
    def required(self) -> int:
        """How many inputs ``apply`` must be given at least."""
        defaults = len(self.forward.node.args.defaults) if self.forward is not None else 0
        return max(0, len(self.inputs) - defaults)

    @cached_property
    def gradients(self) -> list[ast.arg]:
        """What backward takes behind ctx."""
        return [] if self.backward is None else positional(self.backward)[ctx_position(self.backward) + 1 :]

    def ctx(self, method: FunctionInfo) -> str | None:
        """The name that a method gives to ctx; None for a forward that gets none."""
        if method is self.forward and self.setup is not None:
            return None
        parameters = positional(method)
        place = ctx_position(method)
        return parameters[place].arg if place < len(parameters) else None

    @cached_property
    def saving(self) -> list[tuple[FunctionInfo, str]]:
        """The methods that save for backward, each with its name for ctx."""
        return [(m, ctx) for m in (self.forward, self.setup) if m is not None and (ctx := self.ctx(m)) is not None]

    @cached_property
    def differentiated(self) -> set[int]:
        """Positions of the inputs for which backward returns something other than a plain None: those hold tensors."""
        found: set[int] = set()
        if self.backward is not None:
            for value in returned(self.backward):
                for index, item in enumerate(value.elts if isinstance(value, ast.Tuple) else ()):
                    if isinstance(item, ast.Starred):
                        break
                    if not is_none(item):
                        found.add(index)
        return found


def positional(method: FunctionInfo) -> list[ast.arg]:
    """A method's positional parameters."""
    return [*method.node.args.posonlyargs, *method.node.args.args]


def ctx_position(method: FunctionInfo) -> int:
    """Where ctx stands among the parameters: behind ``cls`` in a classmethod."""
    return 1 if method.is_classmethod else 0


def keeps_signature(method: FunctionInfo) -> bool:
    """Whether nothing that decorates a method may change what it takes and gives."""
    return all(name is not None and name.startswith(_KEEPING) for name in method.decorators)


def returned(method: FunctionInfo) -> list[ast.expr]:
    """What a method's return statements give; a bare ``return`` aside."""
    return [node.value for node in method.scope.of_type(ast.Return) if node.value is not None]  # type: ignore[attr-defined]


def is_none(node: ast.expr) -> bool:
    """Whether an expression is the constant None."""
    return isinstance(node, ast.Constant) and node.value is None


def is_saved(node: ast.expr) -> bool:
    """Whether an expression is ``ctx.saved_tensors`` (or its old name)."""
    return isinstance(node, ast.Attribute) and node.attr in ("saved_tensors", "saved_variables")


def is_attribute_of(node: ast.AST, name: str | None, attribute: str) -> bool:
    """Whether a node is ``name.attribute``."""
    return (
        isinstance(node, ast.Attribute)
        and node.attr == attribute
        and isinstance(node.value, ast.Name)
        and node.value.id == name
    )


def in_a_function_class(module: Module, scope: Scope) -> bool:
    """Whether code stands in a method of an autograd.Function (or a function inside one)."""
    cls = module.class_of(scope)
    return cls is not None and cls.is_autograd_function is True


Target = tuple[ast.expr, "ast.expr | None"]


def stores(scope: Scope) -> Iterator[Target]:
    """What a scope's statements bind, tuples taken apart: target and value; None where that isn't one expression."""
    for node in scope.of_type(ast.Assign):
        for target in node.targets:  # type: ignore[attr-defined]
            yield from _pairs(target, node.value)  # type: ignore[attr-defined]
    for node in scope.of_type(ast.AnnAssign):
        yield node.target, node.value  # type: ignore[attr-defined]
    for node in scope.of_type(ast.AugAssign):
        yield node.target, ast.BinOp(node.target, node.op, node.value)  # type: ignore[attr-defined]
    for kind in (ast.For, ast.AsyncFor):
        for node in scope.of_type(kind):
            yield from _pairs(node.target, None)  # type: ignore[attr-defined]
    for block in (ast.With, ast.AsyncWith):
        for node in scope.of_type(block):
            for item in node.items:  # type: ignore[attr-defined]
                if item.optional_vars is not None:
                    yield from _pairs(item.optional_vars, None)


def _pairs(target: ast.expr, value: ast.expr | None) -> Iterator[Target]:
    if isinstance(target, (ast.Tuple, ast.List)):
        known = isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts)
        for index, part in enumerate(target.elts):
            inner = value.elts[index] if known and isinstance(value, (ast.Tuple, ast.List)) else None
            if inner is None and value is not None and not isinstance(part, ast.Starred):
                inner = ast.Subscript(value, ast.Constant(index), ast.Load())
            yield from _pairs(part, inner)
    elif isinstance(target, ast.Starred):
        yield target.value, None
    else:
        yield target, value


class Tensors:
    """Which expressions of one method are surely tensors.

    ``known`` are names that are tensors from the start. A name counts where everything that it is bound to does.
    """

    def __init__(self, module: Module, scope: Scope, known: set[str], plain: set[str] | None = None) -> None:
        self.module = module
        self.scope = scope
        self.known = known
        self.plain = plain or set()
        self.bound: dict[str, list[ast.expr | None]] = {}
        for target, value in stores(scope):
            if isinstance(target, ast.Name):
                self.bound.setdefault(target.id, []).append(value)
        self._asked: set[str] = set()

    def rebound(self, name: str) -> bool:
        """Whether a parameter's name is bound to something else on the way."""
        return name in self.bound

    def values(self, name: str) -> list[ast.expr | None]:
        """All that a name is bound to."""
        return self.bound.get(name, [])

    def sure(self, node: ast.expr | None) -> bool:
        """Whether an expression is a tensor."""
        if isinstance(node, ast.Name):
            return self._name(node.id)
        if isinstance(node, ast.BinOp):
            return self.sure(node.left) or self.sure(node.right)
        if isinstance(node, ast.UnaryOp):
            return not isinstance(node.op, ast.Not) and self.sure(node.operand)
        if isinstance(node, ast.Compare):
            kinds = (ast.Is, ast.IsNot, ast.In, ast.NotIn)
            return not any(isinstance(op, kinds) for op in node.ops) and any(
                self.sure(side) for side in (node.left, *node.comparators)
            )
        if isinstance(node, ast.IfExp):
            sides = [side for side in (node.body, node.orelse) if not is_none(side)]
            return bool(sides) and all(self.sure(side) for side in sides)
        if isinstance(node, ast.Subscript):
            return self.sure(node.value) or is_saved(node.value)
        if isinstance(node, ast.Attribute):
            attribute = operations.tensor_attribute(node.attr)
            return attribute is not None and attribute.result == "tensor" and self.sure(node.value)
        if isinstance(node, ast.NamedExpr):
            return self.sure(node.value)
        return isinstance(node, ast.Call) and self._call(node)

    def _name(self, name: str) -> bool:
        values = self.bound.get(name)
        if not values:
            return name in self.known
        if name in self._asked:  # bound by way of itself: the other bindings decide
            return True
        self._asked.add(name)
        try:
            found = [value for value in values if value is not None and not is_none(value)]
            return (
                None not in values
                and bool(found)
                and (name in self.known or any(not names(value, name) for value in found))
                and all(self.sure(value) for value in found)
            )
        finally:
            self._asked.discard(name)

    def _call(self, call: ast.Call) -> bool:
        if isinstance(call.func, ast.Attribute) and self.sure(call.func.value):
            return _gives_a_tensor(operations.tensor_method(call.func.attr), call.args, call.keywords)
        name = self.module.qualname(call.func, self.scope)
        return name is not None and _gives_a_tensor(operations.function(name), call.args[1:], call.keywords)

    def plainly(self, node: ast.expr | None) -> bool:
        """Whether an expression surely isn't a tensor: a number, a string, a shape, a flag, None."""
        if isinstance(node, ast.Constant):
            return True
        if isinstance(node, ast.Name):
            values = self.bound.get(node.id)
            if not values:
                return node.id in self.plain
            if node.id in self._asked:  # bound by way of itself: the other bindings decide
                return True
            self._asked.add(node.id)
            answer = all(value is not None and self.plainly(value) for value in values)
            self._asked.discard(node.id)
            return answer
        if isinstance(node, ast.UnaryOp):
            return isinstance(node.op, ast.Not) or self.plainly(node.operand)
        if isinstance(node, ast.BinOp):
            return self.plainly(node.left) and self.plainly(node.right)
        if isinstance(node, ast.Attribute):
            attribute = operations.tensor_attribute(node.attr)
            return attribute is not None and attribute.result != "tensor" and self.sure(node.value)
        if isinstance(node, ast.Subscript):
            return self.plainly(node.value)
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and self.sure(node.func.value):
                method = operations.tensor_method(node.func.attr)
                return method is not None and method.result in _PLAIN_RESULTS
            return self.module.qualname(node.func, self.scope) in (
                *("builtins.len", "builtins.int", "builtins.float", "builtins.bool", "builtins.str"),
            )
        return False


def names(node: ast.expr, name: str) -> bool:
    """Whether an expression names a variable."""
    return any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(node))


def _gives_a_tensor(
    operation: operations.Operation | None, others: list[ast.expr], keywords: list[ast.keyword]
) -> bool:
    """Whether a call of an operation returns one tensor; ``others`` are its arguments but for the first."""
    if operation is None:
        return False
    if operation.short_name == "where":  # a mask alone gives a tuple of indices
        return bool(others)
    # max, min and median give one tensor of all elements, and values with indices of a dimension.
    return operation.returns_tensor or (operation.result == "tensor|values,indices" and not others and not keywords)


def forward_tensors(form: Form) -> Tensors | None:
    """What is known of the tensors in forward: by annotation, by use, or because backward returns a gradient for it."""
    method = form.forward
    if method is None:
        return None
    module, scope = method.module, method.scope
    known: set[str] = set()
    plain: set[str] = set()
    unpacked = {
        value.value.id
        for _, value in stores(scope)
        if isinstance(value, ast.Subscript) and isinstance(value.value, ast.Name)
    }
    only = len(form.inputs) == 1 and not form.star and form.inputs[0].arg not in unpacked
    defaults = method.node.args.defaults
    for index, parameter in enumerate(form.inputs):
        annotated = annotation(module, parameter.annotation, scope)
        if annotated is True or (annotated is None and (only or index in form.differentiated)):
            known.add(parameter.arg)
        elif annotated is False:
            plain.add(parameter.arg)
        else:
            default = index - (len(form.inputs) - len(defaults))
            if default >= 0 and isinstance(defaults[default], ast.Constant) and not is_none(defaults[default]):
                plain.add(parameter.arg)
    known -= plain
    unsure = {parameter.arg for parameter in form.inputs} - known - plain
    if unsure:
        known |= _used_as_tensors(module, scope, unsure, plain)
    return Tensors(module, scope, known, plain)


def annotation(module: Module, node: ast.expr | None, scope: Scope) -> bool | None:
    """Whether an annotation says tensor (True), says something else (False), or nothing (None)."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            node = ast.parse(node.value, mode="eval").body
        except SyntaxError:
            return None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        sides = [annotation(module, side, scope) for side in (node.left, node.right) if not is_none(side)]
        return sides[0] if len(sides) == 1 or len(set(sides)) == 1 else None
    if isinstance(node, ast.Subscript):
        outer = module.qualname(node.value, scope)
        if outer == "typing.Optional":
            return annotation(module, node.slice, scope)
        return None if outer in ("typing.Union", "typing.Annotated", None) else _tensor_type(outer)
    if node is None:
        return None
    name = module.qualname(node, scope)
    return None if name is None else _tensor_type(name)


def _tensor_type(name: str) -> bool | None:
    if name in _TENSOR_TYPES:
        return True
    if name in _PLAIN_TYPES or name.startswith(("typing.Callable", "typing.List", "typing.Tuple", "builtins.")):
        return False
    return None


def _used_as_tensors(module: Module, scope: Scope, unsure: set[str], plain: set[str]) -> set[str]:
    """Those of the names that are used as only tensors are."""
    found: set[str] = set()
    for node in ast.walk(scope.node):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in unsure:
            known = operations.tensor_method(node.attr) or operations.tensor_attribute(node.attr)
            if known is not None and (node.attr not in _SHARED_NAMES or node.attr == "shape"):
                found.add(node.value.id)
        elif isinstance(node, ast.Call) and node.args:
            name = module.qualname(node.func, scope)
            operation = operations.function(name) if name is not None else None
            if operation is not None and [a.name for a in operation.signature.arguments[:1]] in (["input"], ["self"]):
                found |= _one_tensor_of(node.args[0], unsure, plain)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            found |= {side.id for side in (node.left, node.right) if isinstance(side, ast.Name) and side.id in unsure}
    return found


def _one_tensor_of(node: ast.expr, unsure: set[str], plain: set[str]) -> set[str]:
    """The name that must be a tensor for an expression to be one, if only one can be."""
    while isinstance(node, (ast.UnaryOp, ast.BinOp)):
        if isinstance(node, ast.UnaryOp):
            node = node.operand
            continue
        sides = [side for side in (node.left, node.right) if not _is_plain(side, plain)]
        if len(sides) != 1:
            return set()
        node = sides[0]
    return {node.id} if isinstance(node, ast.Name) and node.id in unsure else set()


def _is_plain(node: ast.expr, plain: set[str]) -> bool:
    return isinstance(node, ast.Constant) or (isinstance(node, ast.Name) and node.id in plain)


def instantiations(cls: ClassInfo) -> Iterator[tuple[ast.Call, Scope]]:
    """Calls of a class in its own file, each with the scope it stands in."""
    for call, scope in cls.module.scope.all_calls(cls.name):
        if cls.module.definition(call.func, scope) is cls:
            yield call, scope
