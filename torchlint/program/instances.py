"""What an expression makes, told from the expression and from what its names are bound to.

The interpreter follows programs; this answers one question about one expression, without running anything before it:
is it a module, of which class, does it hold parameters; a list of what; a parameter, a tensor. Rules about classes ask
it of what ``__init__`` keeps. Alternatives (branches, several callers) are all given; ``UNKNOWN`` is one of them where
something can't be told.
"""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from torchlint.program.classes import ClassInfo
from torchlint.program.index import FunctionNode, Scope
from torchlint.program.module import Assigned, FunctionInfo, Imported, Module
from torchlint.source.file import CANNOT_PARSE
from torchlint.torchapi import modules as torchapi
from torchlint.torchapi import operations

MODULE = "module"
MODULE_CLASS = "module class"
PARAMETER = "parameter"
TENSOR = "tensor"
LOADER = "loader"
SEQUENCE = "sequence"
MAPPING = "mapping"
NONE = "none"
PLAIN = "plain"
UNKNOWN = "unknown"
_CYCLE = "cycle"
"""What is being worked out: ``self.mean = 0.9 * self.mean`` tells nothing new about ``self.mean``."""

Answer = bool | None

_DEPTH = 12

_SAME_MODULE = frozenset(
    {
        *("to", "cuda", "cpu", "float", "double", "half", "bfloat16", "type", "to_empty", "xpu", "share_memory"),
        *("train", "eval", "requires_grad_", "apply", "compile"),
    }
)
"""Methods of a module that return the module itself."""

_SAME_TENSOR = frozenset(
    {
        *("to", "cuda", "cpu", "float", "double", "half", "bfloat16", "type", "type_as", "contiguous", "xpu"),
        *("positive", "share_memory_", "requires_grad_"),
    }
)
"""Methods of a tensor that may return the tensor itself."""

_FIRST_ARGUMENT = frozenset(
    {
        "copy.copy",
        "copy.deepcopy",
        "torch.compile",
        "torch.nn.utils.weight_norm",
        "torch.nn.utils.spectral_norm",
        "torch.nn.utils.remove_weight_norm",
        "torch.nn.utils.remove_spectral_norm",
        "torch.nn.utils.parametrizations.weight_norm",
        "torch.nn.utils.parametrizations.spectral_norm",
        "torch.nn.utils.parametrizations.orthogonal",
    }
)
"""Functions that return their first argument, a copy of it, or a module around it."""

_PARAMETERS = frozenset(
    {"torch.nn.Parameter", "torch.nn.UninitializedParameter", "torch.nn.parameter.UninitializedParameter"}
)

_LOADERS = frozenset(
    {
        "torch.utils.data.DataLoader",
        "torch_geometric.loader.DataLoader",
        "torch_geometric.data.DataLoader",
        "monai.data.DataLoader",
        "torchdata.stateful_dataloader.StatefulDataLoader",
    }
)
"""DataLoader and classes of packages that derive from it and take its arguments."""

_SEQUENCES = frozenset({"builtins.list", "builtins.tuple", "builtins.set", "builtins.frozenset", "collections.deque"})
_MAPPINGS = frozenset(
    {
        "builtins.dict",
        "collections.OrderedDict",
        "typing.OrderedDict",
        "collections.defaultdict",
        "types.MappingProxyType",
    }
)
_PASSED_ON = frozenset({"builtins.reversed", "builtins.sorted", "builtins.iter", "builtins.filter"})
_PLAIN_CALLS = frozenset(
    f"builtins.{name}"
    for name in (
        *("int", "float", "str", "bool", "bytes", "len", "range", "abs", "round", "repr", "format", "hash", "id"),
        *("isinstance", "issubclass", "hasattr", "callable", "open", "ord", "chr", "divmod", "pow", "object"),
    )
)

_TENSOR_TYPES = frozenset(
    f"torch.{name}Tensor"
    for name in ("", "Float", "Double", "Half", "Long", "Int", "Short", "Byte", "Bool", "cuda.Float")
)

_FILLING = (
    *("append", "extend", "insert", "update", "setdefault", "appendleft", "add", "add_module", "register_module"),
)
"""Methods that put something into a container, torch's containers included."""


_REGISTERING = ("register_parameter", "register_buffer", "add_module", "register_module", "setattr")


class Made:
    """One thing that an expression may make.

    ``kind`` is one of this module's constants. ``node`` is the expression that makes it, in ``scope``. A module has
    its class in ``cls`` (the project's) or ``spec`` (torch's or a package's), or neither where only that it is a
    module is known; ``fresh`` tells that the expression builds it, rather than passing on one built elsewhere.
    Sequences and mappings have ``items``: what their elements may be; ``repeated`` is set where one element stands for
    several (``[layer] * 3``). One of torch's containers has as ``items`` what is put into it after it was built.
    """

    __slots__ = ("cls", "fresh", "home", "items", "kind", "node", "repeated", "scope", "spec")

    def __init__(
        self,
        kind: str,
        node: ast.AST,
        context: Context,
        *,
        cls: ClassInfo | None = None,
        spec: torchapi.ModuleSpec | None = None,
        fresh: bool = False,
        items: Sequence[Made] = (),
        repeated: bool = False,
    ) -> None:
        self.kind = kind
        self.node = node
        self.scope = context.scope
        self.home = context.home
        self.cls = cls
        self.spec = spec
        self.fresh = fresh
        self.items = items
        self.repeated = repeated

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name}>"

    @property
    def name(self) -> str:
        """The class's own name, empty where unknown."""
        if self.cls is not None:
            return self.cls.name
        return self.spec.name.rpartition(".")[2] if self.spec is not None else ""

    def passed_on(self) -> Made:
        """The same thing, where an expression doesn't build it but reads it from somewhere."""
        return Made(
            self.kind,
            self.node,
            Context(self.home, self.scope),
            cls=self.cls,
            spec=self.spec,
            items=self.items,
            repeated=self.repeated,
        )

    def leaves(self) -> Iterator[Made]:
        """The elements of nested sequences and mappings; itself for anything else."""
        if self.kind in (SEQUENCE, MAPPING):
            for item in self.items:
                yield from item.leaves()
        else:
            yield self


class Context:
    """Where an expression stands: its scope, and what the names around it are bound to by comprehensions and calls."""

    __slots__ = ("depth", "home", "names", "scope")

    def __init__(
        self,
        home: Instances,
        scope: Scope,
        names: Mapping[str, Callable[[], list[Made]]] | None = None,
        depth: int = _DEPTH,
    ) -> None:
        self.home = home
        self.scope = scope
        self.names = names or {}
        self.depth = depth

    def inside(self, names: Mapping[str, Callable[[], list[Made]]]) -> Context:
        """The same place with more names bound."""
        return Context(self.home, self.scope, {**self.names, **names}, self.depth)


class Binding:
    """One place that binds a local name: ``how`` is ``value``, ``element`` (of what is iterated) or ``unknown``."""

    __slots__ = ("how", "node", "path", "value")

    def __init__(self, node: ast.AST, value: ast.expr | None, how: str, path: tuple[int, ...] = ()) -> None:
        self.node = node
        self.value = value
        self.how = how
        self.path = path  # positions in the tuples that are unpacked


class ClassFacts:
    """What an instance of a class of the project holds; None where it can't be told."""

    __slots__ = ("has_parameters", "mode_dependent")

    def __init__(self, has_parameters: Answer, mode_dependent: Answer) -> None:
        self.has_parameters = has_parameters
        self.mode_dependent = mode_dependent


class ClassParts:
    """What one class's own code puts into its instances: answers for its parameters and modes, and other classes."""

    __slots__ = ("classes", "modes", "parameters")

    def __init__(self) -> None:
        self.parameters: set[Answer] = set()
        self.modes: set[Answer] = set()
        self.classes: list[ClassInfo] = []

    def add(self, parameters: Answer, modes: Answer) -> None:
        """Note what one member is known to hold."""
        self.parameters.add(parameters)
        self.modes.add(modes)


class Instances:
    """Answers for one file. Ask ``module.instances``."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._tables: dict[Scope, dict[str, list[Binding]]] = {}
        self._fills: dict[Scope, dict[str, list[tuple[str, ast.AST, Scope]]]] = {}
        self._registrations: dict[Scope, list[tuple[ast.Call, Scope]]] = {}
        self._annotations: dict[ast.arg, list[Made]] = {}
        self._facts: dict[Scope, ClassFacts] = {}
        self._parts: dict[Scope, ClassParts] = {}
        self._busy: set[object] = set()

    # ---------------------------------------------------------------- questions

    def makes(self, node: ast.expr, scope: Scope) -> list[Made]:
        """What an expression in ``scope`` may make."""
        context = Context(self, scope)
        found = self._makes(node, context)
        return [made if made.kind != _CYCLE else Made(UNKNOWN, node, context) for made in found]

    def attribute(self, cls: ClassInfo, name: str) -> list[Made]:
        """What ``self.<name>`` may hold, by what methods of the class and of its ancestors assign to it."""
        return self._attribute(cls, name, _DEPTH)

    def elements(self, node: ast.expr, scope: Scope) -> list[Made]:
        """What iterating over an expression may give."""
        return self._elements(node, Context(self, scope))

    def values_of(self, name: ast.Name, scope: Scope) -> list[ast.expr]:
        """The expressions that a local name may have been assigned, where it is used in the same scope."""
        bindings = self.bindings(scope).get(name.id, [])
        return [b.value for b in self._reaching(bindings, name, scope) if b.how == "value" and b.value and not b.path]

    def builds(self, call: ast.Call, scope: Scope) -> list[Made]:
        """What a call makes where it calls a class or a function; nothing where it calls an object."""
        func = call.func
        if isinstance(func, ast.Attribute) and self.instance_of(func.value, scope) is not None:
            cls = self.instance_of(func.value, scope)
            if cls is None or cls.method(func.attr) is not None:
                return []
        elif self.module.dotted(func, scope) is None and not isinstance(func, ast.Name):
            return []
        return self.makes(call, scope)

    def may_be_module_class(self, func: ast.expr, scope: Scope) -> bool:
        """Whether a name could stand for a class of modules: false for what is known to be a class of another kind.

        What is known of a class elsewhere is remembered for the whole run, so that this is cheaper than ``builds``.
        """
        bound = self.module.lookup(func.id, scope) if isinstance(func, ast.Name) else None
        if isinstance(bound, ClassInfo):
            return bound.is_module is True
        dotted = self.module.dotted(func, scope)
        return dotted is None or self.module.project.derives(dotted, "torch.nn.Module", self.module) is not False

    def returns(self, function: FunctionInfo) -> list[Made]:
        """What a function may return."""
        return self._returned(function, {}, _DEPTH)

    # ---------------------------------------------------------------- expressions

    def _makes(self, node: ast.expr, context: Context) -> list[Made]:
        if context.depth <= 0:
            return [Made(UNKNOWN, node, context)]
        context = Context(context.home, context.scope, context.names, context.depth - 1)
        method = _BY_TYPE.get(type(node))
        found: list[Made] | None = getattr(self, method)(node, context) if method else None
        if not found:
            return [Made(UNKNOWN, node, context)]
        return [made for made in found if made.kind != _CYCLE] or found

    def _constant(self, node: ast.Constant, context: Context) -> list[Made]:
        return [Made(NONE if node.value is None else PLAIN, node, context)]

    def _plain(self, node: ast.expr, context: Context) -> list[Made]:
        return [Made(PLAIN, node, context)]

    def _any_of(self, nodes: Sequence[ast.expr], context: Context) -> list[Made]:
        return [made for node in nodes for made in self._makes(node, context)]

    def _conditional(self, node: ast.IfExp, context: Context) -> list[Made]:
        return self._any_of([node.body, node.orelse], context)

    def _boolean(self, node: ast.BoolOp, context: Context) -> list[Made]:
        return self._any_of(node.values, context)

    def _named(self, node: ast.NamedExpr, context: Context) -> list[Made]:
        return self._makes(node.value, context)

    def _display(self, node: ast.List | ast.Tuple | ast.Set, context: Context) -> list[Made]:
        items: list[Made] = []
        for element in node.elts:
            if isinstance(element, ast.Starred):
                items += self._elements(element.value, context)
            else:
                items += self._makes(element, context)
        return [Made(SEQUENCE, node, context, items=items, fresh=True)]

    def _dict(self, node: ast.Dict, context: Context) -> list[Made]:
        items: list[Made] = []
        for key, value in zip(node.keys, node.values, strict=True):
            made = self._makes(value, context)
            items += made if key is not None else [item for each in made for item in each.items]
        return [Made(MAPPING, node, context, items=items, fresh=True)]

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp, context: Context) -> list[Made]:
        inner = self._inside_generators(node.generators, context)
        return [Made(SEQUENCE, node, context, items=self._makes(node.elt, inner), fresh=True)]

    def _dict_comprehension(self, node: ast.DictComp, context: Context) -> list[Made]:
        inner = self._inside_generators(node.generators, context)
        return [Made(MAPPING, node, context, items=self._makes(node.value, inner), fresh=True)]

    def _inside_generators(self, generators: list[ast.comprehension], context: Context) -> Context:
        for generator in generators:
            names = {
                name: self._later(Binding(generator, generator.iter, "element", path), context)
                for name, path in _targets(generator.target)
            }
            context = context.inside(names)
        return context

    def _later(self, binding: Binding, context: Context) -> Callable[[], list[Made]]:
        return lambda: self._bound(binding, context)

    def _operation(self, node: ast.BinOp, context: Context) -> list[Made]:
        left, right = self._makes(node.left, context), self._makes(node.right, context)
        if isinstance(node.op, ast.Add) and any(m.kind == SEQUENCE for m in (*left, *right)):
            items = [item for made in (*left, *right) for item in (made.items if made.kind == SEQUENCE else [made])]
            return [Made(SEQUENCE, node, context, items=items, fresh=True)]
        if isinstance(node.op, ast.Mult):
            for made in (*left, *right):
                if made.kind == SEQUENCE:
                    return [Made(SEQUENCE, node, context, items=made.items, fresh=True, repeated=True)]
        return self._arithmetic([left, right], node, context)

    def _unary(self, node: ast.UnaryOp, context: Context) -> list[Made]:
        if isinstance(node.op, ast.Not):
            return [Made(PLAIN, node, context)]
        return self._arithmetic([self._makes(node.operand, context)], node, context)

    def _compare(self, node: ast.Compare, context: Context) -> list[Made]:
        if any(isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for op in node.ops):
            return [Made(PLAIN, node, context)]
        operands = [self._makes(each, context) for each in (node.left, *node.comparators)]
        return self._arithmetic(operands, node, context)

    def _arithmetic(self, operands: list[list[Made]], node: ast.expr, context: Context) -> list[Made]:
        if any(all(made.kind in (TENSOR, PARAMETER) for made in each) for each in operands):
            return [Made(TENSOR, node, context)]
        if all(made.kind == PLAIN for each in operands for made in each):
            return [Made(PLAIN, node, context)]
        if any(made.kind == _CYCLE for each in operands for made in each):
            return [Made(_CYCLE, node, context)]
        return [Made(UNKNOWN, node, context)]

    def _subscript(self, node: ast.Subscript, context: Context) -> list[Made]:
        found: list[Made] = []
        for made in self._makes(node.value, context):
            if made.kind in (TENSOR, PARAMETER):
                found.append(Made(TENSOR, node, context))
            elif made.kind == _CYCLE or (made.kind == SEQUENCE and isinstance(node.slice, ast.Slice)):
                found.append(made)
            elif made.kind in (SEQUENCE, MAPPING) and made.items:
                found += made.items
            else:
                found.append(Made(UNKNOWN, node, context))
        return found

    # ---------------------------------------------------------------- names

    def _name(self, node: ast.Name, context: Context) -> list[Made]:
        bound = context.names.get(node.id)
        if bound is not None:
            return self._once(bound, bound, node, context)
        scope: Scope | None = context.scope
        while scope is not None and scope.parent is not None:
            if node.id in scope.stores and not isinstance(scope.node, ast.ClassDef):
                if self.module.local_import(scope, node.id) is None:
                    return self._local(node, scope, context)
                break
            scope = scope.parent
        return self._global(node, context)

    def _once(self, key: object, question: Callable[[], list[Made]], node: ast.expr, context: Context) -> list[Made]:
        """Answer a question unless it is being answered."""
        if key in self._busy:
            return [Made(_CYCLE, node, context)]
        self._busy.add(key)
        try:
            return question()
        finally:
            self._busy.discard(key)

    def _local(self, node: ast.Name, scope: Scope, context: Context) -> list[Made]:
        bindings = self.bindings(scope).get(node.id, [])
        if scope is context.scope:
            bindings = self._reaching(bindings, node, scope)
        key = (scope, node.id, tuple(id(b) for b in bindings))
        inner = Context(self, scope, context.names if scope is context.scope else None, context.depth)

        def question() -> list[Made]:
            found: list[Made] = []
            for binding in bindings:
                found += self._bound(binding, inner)
            fills = self.fills(scope).get(node.id, ())
            return [self._filled(made, fills, inner) for made in found]

        return self._once(key, question, node, context)

    def _global(self, node: ast.Name, context: Context) -> list[Made]:
        bound = self.module.lookup(node.id, context.scope)
        if isinstance(bound, Assigned):
            top = self.module.scope
            inner = Context(self, top, None, context.depth)
            bindings = self.bindings(top).get(node.id, [])
            if context.scope is top:
                bindings = self._reaching(bindings, node, top)

            def question() -> list[Made]:
                found = [made.passed_on() for binding in bindings for made in self._bound(binding, inner)]
                if node.id in self.module.global_names:
                    found.append(Made(UNKNOWN, node, context))
                return [self._filled(made, self.fills(top).get(node.id, ()), inner) for made in found]

            return self._once((top, node.id), question, node, context)
        return self._reference(node, context)

    def _reference(self, node: ast.expr, context: Context) -> list[Made]:
        """What a class, function or imported name is, without calling it."""
        found = self.module.definition(node, context.scope)
        if isinstance(found, ClassInfo):
            return [Made(MODULE_CLASS if found.is_module else UNKNOWN, node, context, cls=found)]
        if isinstance(found, Imported):
            spec = torchapi.module_class(self.module.project.canonical(found.qualname, self.module))
            if spec is not None:
                return [Made(MODULE_CLASS, node, context, spec=spec)]
        return [Made(UNKNOWN, node, context)]

    def _attribute_access(self, node: ast.Attribute, context: Context) -> list[Made]:
        cls = self.instance_of(node.value, context.scope)
        if cls is not None:
            return [made.passed_on() for made in self._attribute(cls, node.attr, context.depth)]
        if self.module.dotted(node, context.scope) is not None:
            return self._reference(node, context)
        found: list[Made] = []
        for made in self._makes(node.value, context):
            if made.kind in (TENSOR, PARAMETER) and _is_tensor_attribute(node.attr):
                found.append(Made(TENSOR, node, context))
            elif made.kind == MODULE and made.cls is not None:
                held = made.cls.module.instances._attribute(made.cls, node.attr, context.depth)
                found += [each.passed_on() for each in held]
            elif made.kind == MODULE and self.has_parameter(made, node.attr):
                found.append(Made(PARAMETER, node, context))
            else:
                found.append(Made(UNKNOWN, node, context))
        return found

    def has_parameter(self, made: Made, name: str) -> bool:
        """Whether a layer of torch's has a parameter of that name."""
        names = made.spec.parameter_names(self._arguments(made)) if made.spec is not None else None
        return names is not None and name in names

    def instance_of(self, node: ast.expr, scope: Scope) -> ClassInfo | None:
        """The class whose instance a method's ``self`` is, None for any other expression."""
        if isinstance(node, ast.Name) and scope.self_name == node.id and scope.owner is not None:
            method: Scope = scope
            while method.parent is not None and method.parent is not scope.owner:
                method = method.parent
            if not any(isinstance(d, ast.Name) and d.id == "classmethod" for d in _decorators(method)):
                return self.module.class_of(scope.owner)
        return None

    def _attribute(self, cls: ClassInfo, name: str, depth: int) -> list[Made]:
        if depth <= 0:
            return []
        node: ast.expr = ast.Name(name, ast.Load(), lineno=1, col_offset=0)

        def question() -> list[Made]:
            found: list[Made] = []
            for base in (cls, *cls.ancestors(name, *_REGISTERING)):
                found += base.module.instances._assigned(base, name, depth)
            return found

        context = Context(cls.module.instances, cls.scope, None, depth)
        return self._once((cls.scope, "." + name), question, node, context)

    def _assigned(self, cls: ClassInfo, name: str, depth: int) -> list[Made]:
        """What one class's own body and methods assign to ``self.<name>``."""
        found: list[Made] = []
        fills = self.fills(cls.scope).get(name, ())
        for use in cls.writes(name):
            context = Context(self, use.scope, None, depth)
            for binding in _binding_of(use.node, use.scope, self):
                found += [self._filled(made, fills, context) for made in self._bound(binding, context)]
        value = cls.class_attributes.get(name)
        if value is not None:
            context = Context(self, cls.scope, None, depth)
            found += [self._filled(made, fills, context) for made in self._makes(value, context)]
        elif name in cls.class_attributes or name in cls.methods:
            found.append(Made(UNKNOWN, cls.node, Context(self, cls.scope)))
        for call, scope in self.registrations(cls):
            found += self._registered(call, name, Context(self, scope, None, depth))
        return found

    def registrations(self, cls: ClassInfo) -> list[tuple[ast.Call, Scope]]:
        """The calls in a class's methods that register something on self by name."""
        known = self._registrations.get(cls.scope)
        if known is None:
            known = self._registrations[cls.scope] = [
                (call, scope)
                for scope in cls.scope.walk()
                for method in _REGISTERING
                if method in scope.calls
                for call in scope.calls[method]
            ]
        return known

    def _registered(self, call: ast.Call, name: str, context: Context) -> list[Made]:
        arguments = call.args[1:] if isinstance(call.func, ast.Name) else call.args
        key = arguments[0] if arguments else next((k.value for k in call.keywords if k.arg == "name"), None)
        if not isinstance(key, ast.Constant) or key.value != name:
            return []
        value = arguments[1] if len(arguments) > 1 else next((k.value for k in call.keywords if k.arg != "name"), None)
        return self._makes(value, context) if value is not None else []

    # ---------------------------------------------------------------- bindings of a scope

    def bindings(self, scope: Scope) -> dict[str, list[Binding]]:
        """Where each local name of a scope is bound, parameters first."""
        table = self._tables.get(scope)
        if table is not None:
            return table
        table = self._tables[scope] = {}

        def add(target: ast.expr, node: ast.AST, value: ast.expr | None, how: str) -> None:
            if isinstance(target, ast.Name):
                table.setdefault(target.id, []).append(Binding(node, value, how))
            elif not isinstance(target, (ast.Attribute, ast.Subscript)):
                for name, path in _targets(target):
                    table.setdefault(name, []).append(Binding(node, value, how, path))

        if isinstance(scope.node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            arguments = scope.node.args
            for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
                table[argument.arg] = [Binding(argument, None, "parameter")]
            for star in (arguments.vararg, arguments.kwarg):
                if star is not None:
                    table[star.arg] = [Binding(star, None, "unknown")]
        for node in scope.of_type(ast.Assign):
            for target in node.targets:  # type: ignore[attr-defined]
                add(target, node, node.value, "value")  # type: ignore[attr-defined]
        for node in scope.of_type(ast.AnnAssign):
            if node.value is not None:  # type: ignore[attr-defined]
                add(node.target, node, node.value, "value")  # type: ignore[attr-defined]
        for node in (*scope.of_type(ast.For), *scope.of_type(ast.AsyncFor)):
            add(node.target, node, node.iter, "element")  # type: ignore[attr-defined]
        for node in (*scope.of_type(ast.With), *scope.of_type(ast.AsyncWith)):
            for item in node.items:  # type: ignore[attr-defined]
                if item.optional_vars is not None:
                    add(item.optional_vars, node, None, "unknown")
        for bindings in table.values():
            if len(bindings) > 1:
                bindings.sort(key=_row)
        return table

    def _reaching(self, bindings: list[Binding], use: ast.AST, scope: Scope) -> list[Binding]:
        """The bindings that a use in the same scope may see: from the last one that surely ran before it on.

        They are sorted by their rows, so that only those around the use are looked at, however many there are.
        """
        if len(bindings) < 2:
            return bindings
        parents = scope.parents
        below: dict[ast.AST, ast.AST] = {}  # each node around the use, with its child that the use stands in
        loops: list[ast.For | ast.While | ast.AsyncFor] = []
        node, up = use, parents.get(use)
        while up is not None:
            below[up] = node
            if isinstance(up, (ast.For, ast.While, ast.AsyncFor)):
                loops.append(up)
            node, up = up, parents.get(up)
        row = getattr(use, "lineno", 0)
        for loop in loops:
            for binding in _between(bindings, loop.lineno, loop.lineno):
                if binding.node is loop and binding.how == "element":
                    return [binding]
        found: list[Binding] = []
        certain = 0  # the row of what surely ran before the use: nothing comes round a loop that this stands in
        for binding in reversed(_between(bindings, 0, row - 1) or bindings[:1]):
            is_parameter = isinstance(binding.node, ast.arg)
            if is_parameter or getattr(binding.node, "end_lineno", 0) < row:
                found.append(binding)
                if is_parameter or _surely_ran(binding.node, below, parents):
                    certain = 0 if is_parameter else _row(binding)
                    break
        found.reverse()
        seen = set(found)
        for loop in loops:
            if certain > loop.lineno:
                break
            for binding in _between(bindings, max(row, loop.lineno + 1), loop.end_lineno or 0):
                if binding not in seen and binding.node not in below and not isinstance(binding.node, ast.arg):
                    seen.add(binding)
                    found.append(binding)
        return found or bindings

    def _bound(self, binding: Binding, context: Context) -> list[Made]:
        node = binding.node
        if binding.how == "parameter":
            return self._parameter(node, context)  # type: ignore[arg-type]
        if binding.value is None:
            return [Made(UNKNOWN, node, context)]
        if binding.how == "element":
            return self._element_at(binding.value, binding.path, context)
        return self._unpacked(binding.value, binding.path, context)

    def _unpacked(self, value: ast.expr, path: tuple[int, ...], context: Context) -> list[Made]:
        while path and isinstance(value, (ast.Tuple, ast.List)):
            if any(isinstance(e, ast.Starred) for e in value.elts) or path[0] >= len(value.elts) or path[0] < 0:
                return [Made(UNKNOWN, value, context)]
            value, path = value.elts[path[0]], path[1:]
        found = self._makes(value, context)
        for _ in path:
            found = [item for made in found for item in (made.items or [Made(UNKNOWN, value, context)])]
        return found

    def _element_at(self, iterated: ast.expr, path: tuple[int, ...], context: Context) -> list[Made]:
        """What the target at ``path`` of a loop over an expression is bound to."""
        if isinstance(iterated, ast.Call) and path:
            name = self.module.qualname(iterated.func, context.scope)
            if name == "builtins.enumerate" and iterated.args:
                if path[0] == 0:
                    return [Made(PLAIN, iterated, context)]
                return self._element_at(iterated.args[0], path[1:], context)
            if name == "builtins.zip" and 0 <= path[0] < len(iterated.args):
                return self._element_at(iterated.args[path[0]], path[1:], context)
            if isinstance(iterated.func, ast.Attribute) and not iterated.args and path[0] == 1:
                if iterated.func.attr == "items":
                    return self._elements(iterated.func.value, context)
                if iterated.func.attr in ("named_children", "named_modules"):
                    return [Made(MODULE, iterated, context)]
                if iterated.func.attr == "named_parameters":
                    return [Made(PARAMETER, iterated, context)]
        found = self._elements(iterated, context)
        for index in path:
            deeper: list[Made] = []
            for made in found:
                node = made.node
                if made.kind == SEQUENCE and isinstance(node, (ast.Tuple, ast.List)) and 0 <= index < len(node.elts):
                    deeper += made.home._makes(node.elts[index], Context(made.home, made.scope, None, context.depth))
                else:
                    deeper += made.items or [Made(UNKNOWN, iterated, context)]
            found = deeper
        return found

    def _elements(self, node: ast.expr, context: Context) -> list[Made]:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args:
            if node.func.attr in ("children", "modules"):
                return [Made(MODULE, node, context)]
            if node.func.attr == "parameters":
                return [Made(PARAMETER, node, context)]
            if node.func.attr == "values":
                node = node.func.value
        found: list[Made] = []
        for made in self._makes(node, context):
            if made.kind in (SEQUENCE, MAPPING):
                found += made.items
            elif made.kind == MODULE and made.spec is not None and made.spec.kind == "container":
                found += self.contents(made, context.depth)
            else:
                found.append(Made(UNKNOWN, node, context))
        return found

    # ---------------------------------------------------------------- parameters of functions

    def _parameter(self, argument: ast.arg, context: Context) -> list[Made]:
        function = context.scope.node
        if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return [Made(UNKNOWN, argument, context)]
        found = self._annotations.get(argument)
        if found is None:
            found = self._annotations[argument] = self._annotated(argument, context)
        if found and found[0].cls is not None:
            return found
        default = _default(function, argument)
        if default is not None:
            outer = Context(self, context.scope.parent or context.scope, None, context.depth)
            found = found + [m for m in self._makes(default, outer) if m.kind != NONE]
        given = [made.passed_on() for made in self._given(argument, context) if made.kind not in (UNKNOWN, NONE)]
        if any(made.kind == MODULE for made in given):
            found = [made for made in found if made.cls or made.spec]
        return found + given or [Made(UNKNOWN, argument, context)]

    def _annotated(self, argument: ast.arg, context: Context) -> list[Made]:
        annotation = argument.annotation
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            try:
                annotation = ast.parse(annotation.value, mode="eval").body
            except CANNOT_PARSE:
                return []
        outer = context.scope.parent
        if isinstance(annotation, ast.Subscript):
            outermost = self.module.qualname(annotation.value, outer)
            if outermost == "typing.Optional":
                annotation = annotation.slice
            else:
                return []
        elif isinstance(annotation, ast.BinOp) and isinstance(annotation.op, ast.BitOr):
            sides = [annotation.left, annotation.right]
            rest = [s for s in sides if not (isinstance(s, ast.Constant) and s.value is None)]
            annotation = rest[0] if len(rest) == 1 else None
        if not isinstance(annotation, (ast.Name, ast.Attribute)):
            return []
        qualname = self.module.qualname(annotation, outer)
        if qualname == "torch.Tensor":
            return [Made(TENSOR, argument, context)]
        if qualname in _PARAMETERS:
            return [Made(PARAMETER, argument, context)]
        if qualname is not None and qualname.partition(".")[0] == "builtins":
            return [Made(PLAIN, argument, context)]
        for made in self._reference(annotation, Context(self, outer or context.scope)):
            if made.kind == MODULE_CLASS:
                plain = made.spec is not None and made.spec.name == "torch.nn.Module"
                return [Made(MODULE, argument, context, cls=made.cls, spec=None if plain else made.spec)]
        return []

    def _given(self, argument: ast.arg, context: Context) -> list[Made]:
        """What the calls in the same file give for a parameter."""
        if context.depth < _DEPTH - 4:
            return []
        scope = context.scope
        cls = self.module.class_of(scope)
        is_method = cls is not None and scope.parent is cls.scope
        if is_method and scope.name != "__init__":
            return []
        callee = cls.name if is_method and cls is not None else scope.name
        found: list[Made] = []
        for call, where in self.module.calls_of(callee):
            if not isinstance(call.func, ast.Name) or any(isinstance(a, ast.Starred) for a in call.args):
                continue
            value = _argument(call, scope.node, argument.arg, skip=1 if is_method else 0)  # type: ignore[arg-type]
            if value is not None:
                found += self._makes(value, Context(self, where, None, min(context.depth, _DEPTH - 4)))
        return found

    # ---------------------------------------------------------------- calls

    def _call(self, node: ast.Call, context: Context) -> list[Made]:
        func = node.func
        if isinstance(func, ast.Attribute) and self.module.dotted(func, context.scope) is None:
            return self._method_call(node, func, context)
        if isinstance(func, ast.Call):
            return self._call_of_result(node, func, context)
        found = self.module.definition(func, context.scope)
        if isinstance(found, FunctionInfo):
            return self._function_call(found, node, context)
        if isinstance(found, ClassInfo):
            kind = MODULE if found.is_module else LOADER if found.derives("torch.utils.data.DataLoader") else UNKNOWN
            return [Made(kind, node, context, cls=found, fresh=True)]
        if isinstance(found, Imported):
            return self._external_call(found.qualname, node, context)
        return self._called(self._makes(func, context), node, context)

    def _called(self, callees: list[Made], node: ast.Call, context: Context) -> list[Made]:
        return [
            Made(MODULE, node, context, cls=made.cls, spec=made.spec, fresh=True)
            if made.kind == MODULE_CLASS
            else Made(UNKNOWN, node, context)
            for made in callees
        ]

    def _external_call(self, name: str, node: ast.Call, context: Context) -> list[Made]:
        first = node.args[0] if node.args and not isinstance(node.args[0], ast.Starred) else None
        if name in _PARAMETERS:
            return [Made(PARAMETER, node, context, fresh=True)]
        if name in _LOADERS:
            return [Made(LOADER, node, context, fresh=True)]
        spec = torchapi.module_class(name)
        if spec is not None:
            return [Made(MODULE, node, context, spec=spec, fresh=True)]
        if name == "torch.jit.script":
            return [Made(MODULE, node, context, fresh=True)]
        if name.startswith("torch.nn.init.") and name.endswith("_") and first is not None:
            return [made.passed_on() for made in self._makes(first, context)]
        if name in _FIRST_ARGUMENT and first is not None:
            return [self._as_new(made, node, context) for made in self._makes(first, context)]
        if name in _SEQUENCES or name in _MAPPINGS:
            return self._container(name, node, context)
        if name in _PASSED_ON and node.args:
            return [Made(SEQUENCE, node, context, items=self._elements(node.args[-1], context))]
        if name in ("itertools.repeat", "builtins.map", "builtins.zip", "builtins.enumerate", "itertools.chain"):
            return self._iterator(name, node, context)
        if name == "functools.partial" and first is not None:
            return [made for made in self._makes(first, context) if made.kind == MODULE_CLASS]
        operation = operations.function(name)
        if name in _TENSOR_TYPES or (operation is not None and operation.returns_tensor):
            return [Made(TENSOR, node, context, fresh=True)]
        if name in _PLAIN_CALLS:
            return [Made(PLAIN, node, context)]
        from torchlint.torchapi.third_party import is_module_factory

        if is_module_factory(name):
            return [Made(MODULE, node, context, fresh=True)]
        return [Made(UNKNOWN, node, context)]

    def _as_new(self, made: Made, node: ast.Call, context: Context) -> Made:
        return Made(made.kind, made.node, context, cls=made.cls, spec=made.spec, fresh=True, items=made.items)

    def _container(self, name: str, node: ast.Call, context: Context) -> list[Made]:
        if name in _SEQUENCES:
            items = [item for arg in node.args for item in self._elements(arg, context)]
            return [Made(SEQUENCE, node, context, items=items, fresh=True)]
        items = [made for k in node.keywords for made in self._makes(k.value, context)]
        for argument in node.args:
            if name == "collections.defaultdict" and argument is node.args[0]:
                items += self._of_factory(argument, context)
                continue
            for made in self._makes(argument, context):
                if made.kind == MAPPING:
                    items += made.items
                else:  # pairs
                    items += [value for pair in made.items for value in (list(pair.items)[1:] or [pair])]
        return [Made(MAPPING, node, context, items=items, fresh=True)]

    def _of_factory(self, factory: ast.expr, context: Context) -> list[Made]:
        if isinstance(factory, ast.Lambda):
            child = next((s for s in context.scope.walk() if s.node is factory), context.scope)
            return self._makes(factory.body, Context(self, child, context.names, context.depth))
        name = self.module.qualname(factory, context.scope)
        if name in _SEQUENCES or name in _MAPPINGS:
            return []
        return self._called(self._makes(factory, context), ast.Call(factory, [], []), context)

    def _iterator(self, name: str, node: ast.Call, context: Context) -> list[Made]:
        items: list[Made] = []
        if name == "itertools.repeat" and node.args:
            return [Made(SEQUENCE, node, context, items=self._makes(node.args[0], context), repeated=True)]
        if name == "builtins.map" and node.args:
            if isinstance(node.args[0], ast.Lambda):
                items = self._of_factory(node.args[0], context)
            elif self.module.qualname(node.args[0], context.scope) in _FIRST_ARGUMENT and len(node.args) > 1:
                items = [self._as_new(m, node, context) for m in self._elements(node.args[1], context)]
            else:
                items = self._called(self._makes(node.args[0], context), node, context)
        elif name == "itertools.chain":
            items = [item for argument in node.args for item in self._elements(argument, context)]
        return [Made(SEQUENCE, node, context, items=items or [Made(UNKNOWN, node, context)])]

    def _call_of_result(self, node: ast.Call, func: ast.Call, context: Context) -> list[Made]:
        """``getattr(nn, name)(...)``, ``partial(nn.Linear, 3)(...)``, ``make(...)(...)``."""
        if isinstance(func.func, ast.Name) and func.func.id == "getattr" and func.args:
            if self.module.qualname(func.args[0], context.scope) == "torch.nn":
                return [Made(MODULE, node, context, fresh=True)]
            return [Made(UNKNOWN, node, context)]
        return self._called(self._makes(func, context), node, context)

    def _method_call(self, node: ast.Call, func: ast.Attribute, context: Context) -> list[Made]:
        cls = self.instance_of(func.value, context.scope)
        if cls is not None:
            method = cls.method(func.attr)
            if method is not None:
                return self._function_call(method, node, context, bound=not method.is_static)
            return self._called(self._attribute(cls, func.attr, context.depth), node, context)
        found: list[Made] = []
        for made in self._makes(func.value, context):
            same_module = made.kind == MODULE and func.attr in _SAME_MODULE
            if same_module or made.kind == _CYCLE:
                found.append(made)
            elif made.kind == PARAMETER and (func.attr in _SAME_TENSOR or _changes_in_place(func.attr)):
                found.append(made.passed_on())
            elif made.kind in (TENSOR, PARAMETER) and _returns_tensor(func.attr):
                found.append(Made(TENSOR, node, context))
            elif made.kind in (SEQUENCE, MAPPING) and func.attr in ("copy", "values"):
                found.append(made)
            elif made.kind in (SEQUENCE, MAPPING) and func.attr in ("pop", "get") and made.items:
                found += made.items
            else:
                found.append(Made(UNKNOWN, node, context))
        return found

    def _function_call(
        self, function: FunctionInfo, node: ast.Call, context: Context, bound: bool = False
    ) -> list[Made]:
        names: dict[str, Callable[[], list[Made]]] = {}
        skip = 1 if bound or function.is_classmethod else 0
        for argument in function.parameters[skip:]:
            value = _argument(node, function.node, argument.arg, skip)
            if value is not None:
                names[argument.arg] = self._value_later(value, context)
        return function.module.instances._returned(function, names, context.depth, node)

    def _value_later(self, value: ast.expr, context: Context) -> Callable[[], list[Made]]:
        return lambda: self._makes(value, context)

    def _returned(
        self,
        function: FunctionInfo,
        names: Mapping[str, Callable[[], list[Made]]],
        depth: int,
        call: ast.Call | None = None,
    ) -> list[Made]:
        context = Context(self, function.scope, names, depth)
        if function.scope.of_type(ast.Yield) or function.scope.of_type(ast.YieldFrom):
            values = [n.value for n in function.scope.of_type(ast.Yield) if n.value is not None]  # type: ignore[attr-defined]
            items = [made for value in values for made in self._makes(value, context)]
            return [Made(SEQUENCE, call or function.node, context, items=items, fresh=True)]
        returned = [n.value for n in function.scope.of_type(ast.Return)]  # type: ignore[attr-defined]

        def question() -> list[Made]:
            return [
                made if made.kind != NONE or len(returned) == 1 else Made(NONE, call or function.node, context)
                for value in returned
                if value is not None
                for made in self._makes(value, context)
            ]

        unknown: ast.expr = call or ast.Name(function.name, ast.Load(), lineno=1, col_offset=0)
        return self._once(function.scope, question, unknown, context)

    # ---------------------------------------------------------------- containers filled later

    def fills(self, scope: Scope) -> dict[str, list[tuple[str, ast.AST, Scope]]]:
        """What is put into each local container of a function, or into each ``self.<name>`` of a class.

        Each as (how, the expression or statement that does it, its scope); how is ``append``, ``extend``, ``store`` or
        ``update``.
        """
        table = self._fills.get(scope)
        if table is None:
            table = self._fills[scope] = {}
            of_class = isinstance(scope.node, ast.ClassDef)
            for each in scope.walk() if of_class else (scope,):
                self_name = each.self_name if of_class and each.owner is scope else None
                if not of_class or self_name is not None:
                    for how, holder, node in _fillings(each):
                        name = _held_name(holder, self_name)
                        if name is not None:
                            table.setdefault(name, []).append((how, node, each))
        return table

    def filled(self, made: Made, fills: Sequence[tuple[str, ast.AST, Scope]], scope: Scope) -> Made:
        """A container with what is put into it later."""
        return self._filled(made, fills, Context(self, scope))

    def _filled(self, made: Made, fills: Sequence[tuple[str, ast.AST, Scope]], context: Context) -> Made:
        is_container = made.kind == MODULE and made.spec is not None and made.spec.kind == "container"
        if not fills or not (is_container or made.kind in (SEQUENCE, MAPPING)):
            return made
        items = list(made.items)
        for _, node, scope in fills:
            items += self.put_in(node, scope, context.depth, context.names if scope is context.scope else None)
        return Made(
            made.kind,
            made.node,
            Context(made.home, made.scope),
            spec=made.spec,
            items=items,
            fresh=made.fresh,
            repeated=made.repeated,
        )

    def put_in(
        self,
        node: ast.AST,
        scope: Scope,
        depth: int = _DEPTH,
        names: Mapping[str, Callable[[], list[Made]]] | None = None,
    ) -> list[Made]:
        """What a filling call or statement puts into its container."""
        context = Context(self, scope, names, depth)
        if isinstance(node, ast.Call):
            method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            if method in ("append", "add", "appendleft") and node.args:
                return self._makes(node.args[0], context)
            if method in ("insert", "setdefault", "add_module", "register_module") and len(node.args) > 1:
                return self._makes(node.args[1], context)
            if method in ("extend", "update") and node.args:
                return self._elements(node.args[0], context)
            return [made for k in node.keywords for made in self._makes(k.value, context)]
        if isinstance(node, ast.AugAssign):
            return self._elements(node.value, context)
        if isinstance(node, ast.Assign):
            return self._makes(node.value, context)
        return []

    # ---------------------------------------------------------------- what modules hold

    def contents(self, made: Made, depth: int = _DEPTH) -> list[Made]:
        """The modules that a container such as ``nn.Sequential(...)`` is given, as far as that is told."""
        call = made.node
        found: list[Made] = list(made.items)
        key = ("contents", call)
        if not isinstance(call, ast.Call) or key in self._busy:
            return found
        context = Context(made.home, made.scope, None, depth)
        self._busy.add(key)
        try:
            for argument in call.args:
                if isinstance(argument, ast.Starred):
                    found += made.home._elements(argument.value, context)
                else:
                    for value in made.home._makes(argument, context):
                        found += value.items if value.kind in (SEQUENCE, MAPPING) else [value]
        finally:
            self._busy.discard(key)
        return found

    def has_parameters(self, made: Made) -> Answer:
        """Whether a module holds parameters; None where it can't be told."""
        parts = ClassParts()
        self._take(made, parts, set())
        return _any({*parts.parameters, *(self.facts(cls).has_parameters for cls in parts.classes)})

    def mode_dependent(self, made: Made) -> Answer:
        """Whether train() and eval() differ for a module; a rate that isn't known (``nn.Dropout(p)``) counts as one."""
        parts = ClassParts()
        self._take(made, parts, set())
        return _any({*parts.modes, *(self.facts(cls).mode_dependent for cls in parts.classes)})

    def _arguments(self, made: Made) -> dict[str, object]:
        """A layer's constructor arguments as the tables want them."""
        call, spec = made.node, made.spec
        if not isinstance(call, ast.Call) or spec is None:
            return {}
        name = made.home.module.qualname(call.func, made.scope)
        unclear = any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords)
        if unclear or name is None or torchapi.canonical(name) != spec.name:
            return {argument.name: torchapi.UNKNOWN for argument in spec.signature.arguments}
        values = [_literal(a) for a in call.args]
        return spec.signature.bind(values, {k.arg or "": _literal(k.value) for k in call.keywords}) or {}

    def facts(self, cls: ClassInfo) -> ClassFacts:
        """What instances of a class hold, by what its methods and its ancestors' keep on self, however deep."""
        home = cls.module.instances
        known = home._facts.get(cls.scope)
        if known is None:
            parameters: set[Answer] = set()
            modes: set[Answer] = set()
            classes = [cls]
            for each in classes:
                parts = each.module.instances._parts_of(each)
                parameters |= parts.parameters
                modes |= parts.modes
                if True in parameters and True in modes:
                    break
                classes += [part for part in parts.classes if all(part.node is not c.node for c in classes)]
            known = home._facts[cls.scope] = ClassFacts(_any(parameters), _any(modes))
        return known

    def _parts_of(self, cls: ClassInfo) -> ClassParts:
        """What a class itself adds to what its instances hold, and the classes of its submodules."""
        parts = self._parts.get(cls.scope)
        if parts is None:
            parts = self._parts[cls.scope] = ClassParts()
            seen: set[ast.AST] = set()
            for base in cls.mro:
                if isinstance(base, ClassInfo):
                    parts.modes.add(bool(base.scope.self_reads.get("training")))
                    for made in base.module.instances.kept(base):
                        self._take(made, parts, seen)
                elif base is None:
                    parts.add(None, None)
                elif (spec := torchapi.module_class(base)) is not None and spec.name != "torch.nn.Module":
                    self._take(Made(MODULE, cls.node, Context(self, cls.scope), spec=spec), parts, seen)
        return parts

    def _take(self, made: Made, parts: ClassParts, seen: set[ast.AST]) -> None:
        """Add what one thing that a class keeps is known to hold; ``seen`` are the containers that were looked into."""
        if made.kind == PARAMETER:
            parts.parameters.add(True)
        elif made.kind == UNKNOWN:
            parts.add(None, None)
        elif made.kind == MODULE and made.cls is not None:
            parts.classes.append(made.cls)
        elif made.kind == MODULE and made.spec is None:
            parts.add(None, None)
        elif made.kind == MODULE and made.spec is not None:
            arguments = self._arguments(made)
            parameters, mode = made.spec.has_parameters(arguments), made.spec.is_mode_dependent(arguments)
            if made.spec.mode != torchapi.CONTENTS:
                parts.add(parameters, True if mode is None and made.spec.mode != "?" else mode)
            elif made.node not in seen:
                seen.add(made.node)
                inner = made.home.contents(made)
                for each in inner:
                    self._take(each, parts, seen)
                if not inner and not isinstance(made.node, ast.Call):
                    parts.add(None, None)

    def kept(self, cls: ClassInfo) -> Iterator[Made]:
        """Everything that a class's own methods keep on self: as attributes and by registering it."""
        for name in cls.written_attributes:
            for use in cls.writes(name):
                for binding in _binding_of(use.node, use.scope, self):
                    yield from self._bound(binding, Context(self, use.scope))
        for call, scope in self.registrations(cls):
            value = next((k.value for k in call.keywords if k.arg in ("module", "param")), None)
            if value is None and call.args:
                value = call.args[-1]
            if value is not None and not (isinstance(call.func, ast.Attribute) and call.func.attr == "register_buffer"):
                yield from self._makes(value, Context(self, scope))


_BY_TYPE: dict[type[ast.AST], str] = {
    ast.Constant: "_constant",
    ast.JoinedStr: "_plain",
    ast.Name: "_name",
    ast.Attribute: "_attribute_access",
    ast.Call: "_call",
    ast.List: "_display",
    ast.Tuple: "_display",
    ast.Set: "_display",
    ast.Dict: "_dict",
    ast.ListComp: "_comprehension",
    ast.SetComp: "_comprehension",
    ast.GeneratorExp: "_comprehension",
    ast.DictComp: "_dict_comprehension",
    ast.IfExp: "_conditional",
    ast.BoolOp: "_boolean",
    ast.NamedExpr: "_named",
    ast.BinOp: "_operation",
    ast.UnaryOp: "_unary",
    ast.Compare: "_compare",
    ast.Subscript: "_subscript",
}


def _returns_tensor(method: str) -> bool:
    operation = operations.tensor_method(method)
    return operation is not None and operation.returns_tensor


def _changes_in_place(method: str) -> bool:
    operation = operations.tensor_method(method)
    return operation is not None and operation.is_inplace


def _is_tensor_attribute(name: str) -> bool:
    attribute = operations.tensor_attribute(name)
    return attribute is not None and attribute.result == "tensor"


def _any(answers: Collection[Answer]) -> Answer:
    if True in answers:
        return True
    return None if None in answers else False


def _literal(node: ast.expr) -> object:
    return node.value if isinstance(node, ast.Constant) else torchapi.UNKNOWN


def _decorators(scope: Scope) -> list[ast.expr]:
    return getattr(scope.node, "decorator_list", [])


def _targets(target: ast.expr, path: tuple[int, ...] = ()) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The names that a target binds, each with its positions in the tuples that are unpacked (-1: by a star)."""
    if isinstance(target, ast.Name):
        yield target.id, path
    elif isinstance(target, (ast.Tuple, ast.List)):
        for index, part in enumerate(target.elts):
            yield from _targets(part, (*path, index))
    elif isinstance(target, ast.Starred):
        yield from _targets(target.value, (*path[:-1], -1))


def _binding_of(target: ast.Attribute, scope: Scope, home: Instances) -> Iterator[Binding]:
    """How an attribute that is stored to is bound."""
    statement = scope.assigned.get(target)
    if statement is not None:
        if statement.value is not None:
            yield Binding(statement, statement.value, "value")
        return
    node: ast.AST = target
    path: tuple[int, ...] = ()
    parents = scope.parents
    while True:
        parent = parents.get(node)
        if isinstance(parent, (ast.Tuple, ast.List)):
            path = (parent.elts.index(node), *path)  # type: ignore[arg-type]
            node = parent
            continue
        break
    if isinstance(parent, (ast.Assign, ast.AnnAssign)):
        if parent.value is not None:
            yield Binding(parent, parent.value, "value", path)
    elif isinstance(parent, (ast.For, ast.AsyncFor)):
        yield Binding(parent, parent.iter, "element", path)
    elif isinstance(parent, (ast.AugAssign, ast.Delete)):
        return
    else:
        yield Binding(target, None, "unknown")


def _row(binding: Binding) -> int:
    return getattr(binding.node, "lineno", 0)


def _between(bindings: list[Binding], first: int, last: int) -> list[Binding]:
    """Those of sorted bindings that begin in rows from ``first`` to ``last``."""
    return bindings[bisect_left(bindings, first, key=_row) : bisect_right(bindings, last, key=_row)]


def _surely_ran(statement: ast.AST, below: Mapping[ast.AST, ast.AST], parents: dict[ast.AST, ast.AST]) -> bool:
    """Whether an earlier statement stands in one of the suites around a use, given the nodes around that."""
    parent = parents.get(statement)
    beside = below.get(parent) if parent is not None else None
    if not isinstance(beside, ast.stmt) or not isinstance(statement, ast.stmt):
        return False
    for field in ("body", "orelse", "finalbody"):
        suite = getattr(parent, field, None)
        if isinstance(suite, list) and suite:
            rows = range(suite[0].lineno, suite[-1].lineno + 1)
            if statement.lineno in rows:
                return beside.lineno in rows
    return False


def _default(function: FunctionNode, argument: ast.arg) -> ast.expr | None:
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    for arg, default in zip(positional[::-1], arguments.defaults[::-1], strict=False):
        if arg is argument:
            return default
    for arg, given in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if arg is argument:
            return given
    return None


def _argument(call: ast.Call, function: FunctionNode, name: str, skip: int = 0) -> ast.expr | None:
    """What a call gives for a parameter of a function, None where nothing or it can't be told."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    positional = [*function.args.posonlyargs, *function.args.args][skip:]
    for index, argument in enumerate(positional):
        if argument.arg == name:
            given = call.args[: index + 1]
            if len(given) > index and not any(isinstance(a, ast.Starred) for a in given):
                return given[index]
    return None


def _fillings(scope: Scope) -> Iterator[tuple[str, ast.expr, ast.AST]]:
    """How, what and by which node containers are filled in a scope."""
    for method in _FILLING:
        for call in scope.calls.get(method, ()):
            if isinstance(call.func, ast.Attribute):
                how = "extend" if method in ("extend", "update") else "append"
                yield how, call.func.value, call
    for node in scope.of_type(ast.AugAssign):
        if isinstance(node.op, ast.Add):  # type: ignore[attr-defined]
            yield "extend", node.target, node  # type: ignore[attr-defined]
    for node in scope.of_type(ast.Assign):
        for target in node.targets:  # type: ignore[attr-defined]
            if isinstance(target, ast.Subscript):
                yield "store", target.value, node


def _held_name(holder: ast.expr, self_name: str | None) -> str | None:
    """The local name, or the attribute of self, that holds the container (through subscripts)."""
    while isinstance(holder, ast.Subscript):
        holder = holder.value
    if self_name is None:
        return holder.id if isinstance(holder, ast.Name) else None
    if isinstance(holder, ast.Attribute) and isinstance(holder.value, ast.Name) and holder.value.id == self_name:
        return holder.attr
    return None
