"""Which branches and loops of a forward depend on its tensors: what tracing can't record."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from torchlint.check import FunctionInfo, Made, Module, Scope, last_name, operations

TENSOR = "tensor"
TENSORS = "tensors"
"""A list or tuple of tensors."""
DATA = "data"
"""A Python number read from a tensor's values."""
SHAPE = "shape"
"""All sizes of a tensor."""
SIZE = "size"
"""One of them, or a number computed from one."""
STATIC = "static"
"""The same for every input: settings, None, the number of dimensions."""
UNKNOWN = "unknown"

_DEPTH = 8
_PASSED_ON = frozenset(
    f"builtins.{name}" for name in ("enumerate", "reversed", "list", "tuple", "sorted", "iter", "range", "next")
)
_COMBINED = frozenset(f"builtins.{name}" for name in ("min", "max", "sum", "abs", "round", "pow", "zip", "any", "all"))
_CONVERTED = frozenset(f"builtins.{name}" for name in ("int", "float", "bool", "complex"))
_MODE_QUESTIONS = frozenset(
    {"is_tracing", "is_scripting", "is_in_onnx_export", "is_compiling", "is_exporting", "training"}
)
_SCRIPTED = frozenset({"torch.jit.script", "torch.jit.script_if_tracing", "torch.jit.export", "torch.jit.ignore"})


class Branch:
    """A branch (``if``, ``while``, a conditional expression) or loop whose course depends on an input.

    ``kind`` is ``data`` or ``size``; ``node`` the test or what is iterated over.
    """

    __slots__ = ("function", "is_loop", "kind", "node")

    def __init__(self, node: ast.expr, kind: str, is_loop: bool, function: FunctionInfo) -> None:
        self.node = node
        self.kind = kind
        self.is_loop = is_loop
        self.function = function


class Flow:
    """Follows functions with tensors as arguments and collects the branches that depend on them."""

    def __init__(self) -> None:
        self.branches: list[Branch] = []
        self._running: set[ast.AST] = set()

    def forward(self, function: FunctionInfo, given: int | None = None) -> None:
        """Follow a traced function whose first ``given`` arguments are tensors (None: those without a default)."""
        self._function(function, {}, inputs=given if given is not None else -1)

    def _function(self, function: FunctionInfo, given: dict[str, str], inputs: int | None = None) -> str:
        """What a function returns when its parameters are of these kinds."""
        if function.node in self._running or len(self._running) >= _DEPTH:
            return UNKNOWN
        if any(decorator in _SCRIPTED for decorator in function.decorators):
            return TENSOR
        self._running.add(function.node)
        try:
            run = _Run(self, function)
            run.kinds.update(_parameter_kinds(function, given, inputs))
            run.body(function.node.body)
            return run.returned or STATIC
        finally:
            self._running.discard(function.node)

    def module(self, made: Made, arguments: Sequence[str]) -> str:
        """What calling a module with arguments of these kinds returns."""
        if made.cls is not None:
            method = made.cls.method("forward")
            if method is None:
                return UNKNOWN
            names = [argument.arg for argument in method.parameters[1:]]
            return self._function(method, dict(zip(names, arguments, strict=False)))
        if made.spec is not None:
            for inner in made.home.contents(made):
                if inner.kind == "module" and inner.cls is not None:
                    self.module(inner, [TENSOR])
            return TENSORS if made.spec.kind in ("rnn", "attention") else TENSOR
        return UNKNOWN


def _parameter_kinds(function: FunctionInfo, given: dict[str, str], inputs: int | None) -> dict[str, str]:
    arguments = function.node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: dict[str, ast.expr] = {a.arg: d for a, d in zip(positional[::-1], arguments.defaults[::-1], strict=False)}
    defaults.update(
        {a.arg: d for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d is not None}
    )
    is_method = function.cls is not None and not function.is_static
    kinds: dict[str, str] = {}
    for index, argument in enumerate([*positional, *arguments.kwonlyargs]):
        name = argument.arg
        place = index - 1 if is_method else index
        if place < 0:
            kinds[name] = STATIC
        elif name in given:
            kinds[name] = given[name]
        elif inputs is not None and (place < inputs or (inputs < 0 and name not in defaults)):
            kinds[name] = _annotated(argument, function.module, function.scope.parent) or TENSOR
        else:
            kinds[name] = STATIC if name in defaults else UNKNOWN
    return kinds


def _annotated(argument: ast.arg, module: Module, scope: Scope | None) -> str | None:
    """What an annotation says of an example input: tensors in a list are still an input."""
    if isinstance(argument.annotation, (ast.Name, ast.Attribute)):
        name = module.qualname(argument.annotation, scope)
        if name in ("builtins.int", "builtins.float", "builtins.bool", "builtins.str"):
            return STATIC
        if name in ("builtins.list", "builtins.tuple", "builtins.dict"):
            return UNKNOWN
        return None
    return UNKNOWN if isinstance(argument.annotation, ast.Subscript) else None


class _Run:
    """One function, statement by statement; ``kinds`` is what each local name holds."""

    def __init__(self, flow: Flow, function: FunctionInfo) -> None:
        self.flow = flow
        self.info = function
        self.kinds: dict[str, str] = {}
        self.returned = ""
        self.quiet = 0

    # ---------------------------------------------------------------- statements

    def body(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            if node.value is not None:
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    self.bind(target, self.kind(node.value), node.value)
        elif isinstance(node, ast.AugAssign):
            kind = _strongest([self.kind(node.target), self.kind(node.value)])
            self.bind(node.target, kind, None)
        elif isinstance(node, ast.Return):
            kind = self.kind(node.value) if node.value is not None else STATIC
            self.returned = _joined(self.returned, kind) if self.returned else kind
        elif isinstance(node, ast.If):
            self.branch(node)
        elif isinstance(node, ast.While):
            self.while_loop(node)
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            self.for_loop(node)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            self.body(node.body)
        elif isinstance(node, ast.Try):
            for suite in (node.body, *(h.body for h in node.handlers), node.orelse, node.finalbody):
                self.body(suite)
        elif isinstance(node, ast.Expr):
            self.kind(node.value)

    def bind(self, target: ast.expr, kind: str, value: ast.expr | None) -> None:
        if isinstance(target, ast.Name):
            self.kinds[target.id] = kind
        elif isinstance(target, (ast.Tuple, ast.List)):
            if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
                for part, each in zip(target.elts, [self.kind(e) for e in value.elts], strict=True):
                    self.bind(part, each, None)
            else:
                for part in target.elts:
                    self.bind(part, _element(kind), None)
        elif isinstance(target, ast.Starred):
            self.bind(target.value, TENSORS if kind == TENSOR else UNKNOWN, None)
        elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            name = target.value.id
            self.kinds[name] = (
                TENSORS if (kind, self.kinds.get(name)) == (TENSOR, STATIC) else self.kinds.get(name, UNKNOWN)
            )

    def branch(self, node: ast.If) -> None:
        asked = _asks_for_mode(node.test)
        kind = self.kind(node.test)
        if not asked and not _only_complains(node):
            self.found(node.test, kind, False)
        before = dict(self.kinds)
        self.quiet += asked
        self.body(node.body)
        after, self.kinds = self.kinds, before
        self.body(node.orelse)
        self.quiet -= asked
        ends = _leaves(node.body)
        if not ends:
            self.merge(after)

    def merge(self, other: dict[str, str]) -> None:
        for name in {*self.kinds, *other}:
            mine, theirs = self.kinds.get(name), other.get(name)
            self.kinds[name] = _joined(mine, theirs) if mine and theirs else mine or theirs or UNKNOWN

    def while_loop(self, node: ast.While) -> None:
        before = self.kind(node.test)
        self.body(node.body)
        self.found(node.test, _strongest([before, self.kind(node.test)]), True)
        self.body(node.orelse)

    def for_loop(self, node: ast.For | ast.AsyncFor) -> None:
        kind = self.kind(node.iter)
        if kind in (TENSOR, SIZE):
            self.found(node.iter, SIZE, True)
        elif kind == DATA:
            self.found(node.iter, DATA, True)
        self.bind_elements(node.target, node.iter, kind)
        before = dict(self.kinds)
        self.quiet += 1
        self.body(node.body)
        self.quiet -= 1
        self.merge(before)
        self.bind_elements(node.target, node.iter, kind)
        self.body(node.body)
        self.merge(before)
        self.body(node.orelse)

    def bind_elements(self, target: ast.expr, iterated: ast.expr, kind: str) -> None:
        name = self.qualname(iterated.func) if isinstance(iterated, ast.Call) else None
        if (
            isinstance(target, ast.Tuple)
            and isinstance(iterated, ast.Call)
            and name in ("builtins.enumerate", "builtins.zip")
        ):
            parts = iterated.args if name == "builtins.zip" else [ast.Constant(0), *iterated.args[:1]]
            for each, source in zip(target.elts, parts, strict=False):
                self.bind_elements(each, source, self.kind(source))
        else:
            self.bind(target, _element(kind), None)

    def found(self, node: ast.expr, kind: str, is_loop: bool) -> None:
        if self.quiet or kind not in (TENSOR, DATA, SIZE):
            return
        if not any(branch.node is node for branch in self.flow.branches):
            self.flow.branches.append(Branch(node, SIZE if kind == SIZE else DATA, is_loop, self.info))

    # ---------------------------------------------------------------- expressions

    def qualname(self, node: ast.expr) -> str | None:
        return self.info.module.qualname(node, self.info.scope)

    def makes(self, node: ast.expr) -> list[Made]:
        return self.info.module.instances.makes(node, self.info.scope)

    def kind(self, node: ast.expr) -> str:
        if isinstance(node, (ast.Constant, ast.JoinedStr, ast.Lambda)):
            return STATIC
        if isinstance(node, ast.Name):
            return self.kinds.get(node.id, UNKNOWN)
        if isinstance(node, ast.Call):
            return self.call(node)
        if isinstance(node, ast.Attribute):
            return self.attribute(node)
        if isinstance(node, ast.Subscript):
            return self.subscript(node)
        if isinstance(node, ast.Compare):
            return self.compare(node)
        if isinstance(node, ast.BinOp):
            return _strongest([self.kind(node.left), self.kind(node.right)])
        if isinstance(node, ast.UnaryOp):
            return self.kind(node.operand)
        if isinstance(node, ast.BoolOp):
            kinds = [self.kind(value) for value in node.values]
            known = [kind for kind in kinds if kind in (TENSOR, DATA, SIZE)]
            return _strongest(known) if known else _strongest(kinds)
        if isinstance(node, ast.IfExp):
            if not _asks_for_mode(node.test):
                self.found(node.test, self.kind(node.test), False)
            return _joined(self.kind(node.body), self.kind(node.orelse))
        if isinstance(node, (ast.Tuple, ast.List)):
            kinds = [self.kind(element) for element in node.elts]
            return TENSORS if TENSOR in kinds else STATIC if all(kind == STATIC for kind in kinds) else UNKNOWN
        if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
            return self.comprehension(node)
        if isinstance(node, ast.NamedExpr):
            kind = self.kind(node.value)
            self.bind(node.target, kind, node.value)
            return kind
        return UNKNOWN

    def comprehension(self, node: ast.ListComp | ast.GeneratorExp) -> str:
        outer = dict(self.kinds)
        for generator in node.generators:
            self.bind_elements(generator.target, generator.iter, self.kind(generator.iter))
        kind = self.kind(node.elt)
        self.kinds = outer
        return TENSORS if kind == TENSOR else STATIC if kind == STATIC else UNKNOWN

    def compare(self, node: ast.Compare) -> str:
        if any(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops):
            return STATIC
        kinds = [self.kind(each) for each in (node.left, *node.comparators)]
        if SHAPE in kinds or kinds == [SIZE, SIZE]:
            return STATIC  # layers of one network agree or not, whatever the input
        if SIZE in kinds and UNKNOWN in kinds and not {TENSOR, DATA} & {*kinds}:
            return UNKNOWN
        return _strongest(kinds)

    def subscript(self, node: ast.Subscript) -> str:
        kind = self.kind(node.value)
        if kind == SHAPE:
            return SHAPE if isinstance(node.slice, ast.Slice) else SIZE
        if kind == TENSORS:
            return TENSORS if isinstance(node.slice, ast.Slice) else TENSOR
        return kind if kind in (TENSOR, STATIC, DATA) else UNKNOWN

    def attribute(self, node: ast.Attribute) -> str:
        if node.attr in _MODE_QUESTIONS:
            return STATIC
        instances = self.info.module.instances
        if instances.instance_of(node.value, self.info.scope) is not None:
            kinds = {made.kind for made in self.makes(node)}
            if kinds and kinds <= {"tensor", "parameter"}:
                return TENSOR
            return STATIC if kinds <= {"plain", "none", "module"} else UNKNOWN
        kind = self.kind(node.value)
        if kind == TENSOR:
            known = operations.tensor_attribute(node.attr)
            result = known.result if known is not None else ""
            return {"tensor": TENSOR, "size": SHAPE, "": UNKNOWN}.get(result, STATIC)
        return STATIC if kind == STATIC else UNKNOWN

    # ---------------------------------------------------------------- calls

    def call(self, node: ast.Call) -> str:
        arguments = [self.kind(a.value if isinstance(a, ast.Starred) else a) for a in node.args]
        keywords = [self.kind(keyword.value) for keyword in node.keywords]
        func = node.func
        name = self.qualname(func)
        if name is not None and name.startswith("builtins."):
            return self.builtin(name, arguments)
        definition = self.info.module.definition(func, self.info.scope)
        if isinstance(definition, FunctionInfo):
            return self.follow(definition, node, arguments)
        if name is not None:
            return self.external(name, [*arguments, *keywords])
        if isinstance(func, ast.Attribute):
            cls = self.info.module.instances.instance_of(func.value, self.info.scope)
            method = cls.method(func.attr) if cls is not None else None
            if method is not None:
                return self.follow(method, node, arguments)
            if cls is None:
                receiver = self.kind(func.value)
                if receiver in (TENSOR, TENSORS, SHAPE, SIZE, DATA):
                    return self.method(receiver, func, arguments)
        return self.module_call(func, arguments)

    def builtin(self, name: str, arguments: list[str]) -> str:
        strongest = _strongest(arguments)
        if name in _CONVERTED:
            return DATA if strongest in (TENSOR, DATA) else strongest
        if name == "builtins.len":
            return {TENSOR: SIZE, SHAPE: STATIC, TENSORS: STATIC}.get(strongest, UNKNOWN)
        if name in _PASSED_ON:
            if name == "builtins.range" and strongest == TENSOR:
                return DATA
            return strongest if strongest != SHAPE else STATIC
        if name in _COMBINED:
            return TENSOR if strongest == TENSORS else strongest
        if name == "builtins.getattr":
            return UNKNOWN
        return STATIC

    def external(self, name: str, arguments: list[str]) -> str:
        operation = operations.function(name)
        if operation is not None:
            return _result(operation, len(arguments) == 1)
        if name.startswith("math."):
            return DATA if _strongest(arguments) == TENSOR else _strongest(arguments)
        return STATIC if name.rpartition(".")[2] in _MODE_QUESTIONS else UNKNOWN

    def method(self, receiver: str, func: ast.Attribute, arguments: list[str]) -> str:
        if receiver == TENSORS:
            return UNKNOWN
        if receiver == SHAPE:
            return SIZE if func.attr == "numel" else STATIC
        if receiver in (SIZE, DATA):
            return receiver
        if func.attr in ("size", "numel", "nelement"):
            return SIZE if arguments or func.attr != "size" else SHAPE
        operation = operations.tensor_method(func.attr)
        return UNKNOWN if operation is None else _result(operation, not arguments)

    def module_call(self, func: ast.expr, arguments: list[str]) -> str:
        found = self.makes(func)
        if found and all(made.kind == "module" for made in found):
            kinds = {self.flow.module(made, arguments) for made in found}
            return kinds.pop() if len(kinds) == 1 else TENSOR if kinds == {TENSOR, UNKNOWN} else UNKNOWN
        return UNKNOWN

    def follow(self, function: FunctionInfo, node: ast.Call, arguments: list[str]) -> str:
        bound = function.cls is not None and not function.is_static
        names = [parameter.arg for parameter in function.parameters[1 if bound else 0 :]]
        given = dict(zip(names, arguments, strict=False))
        given.update({k.arg: self.kind(k.value) for k in node.keywords if k.arg})
        if self.quiet:
            inner = Flow()
            inner._running = self.flow._running
            return inner._function(function, given)
        return self.flow._function(function, given)


def _element(kind: str) -> str:
    return {TENSORS: TENSOR, SHAPE: SIZE, TENSOR: TENSOR, SIZE: SIZE, STATIC: STATIC, DATA: DATA}.get(kind, UNKNOWN)


def _strongest(kinds: Sequence[str]) -> str:
    for kind in (TENSOR, DATA, TENSORS, SIZE, SHAPE, UNKNOWN):
        if kind in kinds:
            return kind
    return STATIC


def _joined(one: str, other: str) -> str:
    return one if one == other else UNKNOWN


def _result(operation: operations.Operation, alone: bool) -> str:
    """What an operation returns; ``alone``: given a tensor and nothing else, as in ``x.max()``."""
    results = operation.result.split("|")
    if len(results) > 1 and "tensor" in results:
        named = any("," in result for result in results)
        return TENSOR if alone else TENSORS if named else UNKNOWN
    result = results[0] if len(results) == 1 else "?"
    if result == "tensor":
        return TENSOR
    if result in ("tensors", "list") or "," in result:
        return TENSORS
    if result == "?":
        return UNKNOWN
    return SHAPE if result == "size" else DATA if operation.syncs else STATIC


def _asks_for_mode(test: ast.expr) -> bool:
    """Whether a test (or part of it) is about training, tracing or exporting: whoever wrote it knows what is traced."""
    return any(isinstance(n, ast.Attribute) and n.attr in _MODE_QUESTIONS for n in ast.walk(test)) or any(
        isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id in _MODE_QUESTIONS
        for n in ast.walk(test)
    )


def _only_complains(node: ast.If) -> bool:
    """Whether a branch only raises, warns or prints: what the trace computes is right without it."""
    return (
        not node.orelse
        and all(
            isinstance(s, (ast.Raise, ast.Pass, ast.Assert))
            or (isinstance(s, ast.Expr) and isinstance(s.value, ast.Call))
            for s in node.body
        )
        and not any(_changes_something(s) for s in node.body)
    )


def _changes_something(statement: ast.stmt) -> bool:
    """Whether an expression statement may do more than complain: ``outputs.append(x)``, ``x.clamp_(0)``."""
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return False
    func = statement.value.func
    name = last_name(func)
    return name not in ("print", "warn", "warning", "info", "debug", "error", "warn_once", "write")


def _leaves(body: Sequence[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], (ast.Return, ast.Raise, ast.Continue, ast.Break))
