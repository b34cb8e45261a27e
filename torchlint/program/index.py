"""One walk over a file's tree: its scopes, and in each the nodes that anyone may ask for.

The walk is written out per node type because it runs on every file that names torch: it must cost a fraction of
parsing. It records; it judges nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
ScopeNode = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

RECORDED: tuple[type[ast.AST], ...] = (
    ast.Assign,
    ast.AnnAssign,
    ast.AsyncFor,
    ast.AsyncWith,
    ast.AugAssign,
    ast.Delete,
    ast.For,
    ast.Import,
    ast.ImportFrom,
    ast.Raise,
    ast.Return,
    ast.While,
    ast.With,
    ast.Yield,
    ast.YieldFrom,
)
"""Node types that a scope keeps in lists of their own, in document order.

Besides these, ``ast.Expr`` of an attribute alone, and each ``ast.Subscript`` that is the target of an assignment.
"""

_RECORDED = frozenset(RECORDED)
_FUNCTIONS = frozenset((ast.FunctionDef, ast.AsyncFunctionDef))
_SKIPPED = frozenset(
    cls
    for base in (ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop)
    for cls in (base, *base.__subclasses__())
) | {ast.Constant, bool, int, str, type(None)}
"""Types of what stands in a field and holds nothing to record."""

_PLAIN = frozenset((ast.Constant, ast.Name))
"""Types of what stands in an expression that is read and holds nothing to record."""

_LEAVES = frozenset((ast.Constant, ast.Name, ast.alias, ast.Pass, ast.Break, ast.Continue, ast.Global, ast.Nonlocal))
"""Nodes without nodes below them."""


def _child_fields() -> dict[type[ast.AST], tuple[str, ...]]:
    skip = {"ctx", "op", "ops", "type_comment", "type_ignores", "kind", "attr", "id", "arg", "name", "lineno"}
    kinds = [c for c in vars(ast).values() if isinstance(c, type) and issubclass(c, ast.AST)]
    return {c: tuple(f for f in c._fields if f not in skip) for c in kinds}


_FIELDS = _child_fields()
_FIELDS_BACKWARDS = {kind: fields[::-1] for kind, fields in _FIELDS.items()} | {ast.Constant: ()}


_NO_NAMES: frozenset[str] = frozenset()


class Scope:
    """A module, class, function or lambda body, and what stands directly in it (comprehensions included).

    ``calls`` maps the last part of a call's name (``backward`` for ``loss.backward()``) to its nodes. ``stores`` are
    the names bound here. A class's ``self_reads`` and ``self_writes`` map an attribute to where its methods use it
    through their first argument, with the method scope each use stands in.
    """

    __slots__ = (
        "_assigned",
        "_below",
        "_called",
        "_children",
        "_parents",
        "calls",
        "children",
        "class_scope",
        "globals",
        "name",
        "node",
        "nodes",
        "owner",
        "parent",
        "self_name",
        "self_reads",
        "self_writes",
        "stores",
    )

    def __init__(self, node: ScopeNode, parent: Scope | None, name: str) -> None:
        self.node = node
        self.parent = parent
        self.name = name
        self.children: list[Scope] = []
        self.calls: dict[str, list[ast.Call]] = {}
        self.nodes: dict[type[ast.AST], list[ast.AST]] = {}
        self.stores: set[str] = set()
        self.globals: frozenset[str] = _NO_NAMES
        self.self_name: str | None = None
        self.owner: Scope | None = None  # the class scope whose instance `self_name` is
        is_class = type(node) is ast.ClassDef
        self.self_reads: _Uses = {} if is_class else _NO_USES
        self.self_writes: _Uses = {} if is_class else _NO_USES
        self._below: list[Scope] | None = None
        self._called: set[str] | None = None
        self._children: dict[ast.AST, Scope] | None = None
        self._parents: dict[ast.AST, ast.AST] | None = None
        self._assigned: dict[ast.expr, ast.Assign | ast.AnnAssign] | None = None

    def __repr__(self) -> str:
        return f"<Scope {self.name or 'module'}>"

    @property
    def is_function(self) -> bool:
        """Whether this is a function or method body (no lambda)."""
        return type(self.node) in _FUNCTIONS

    def walk(self) -> Sequence[Scope]:
        """This scope and all below it, in document order."""
        if self._below is None:
            below = [self]
            for child in self.children:
                below.extend(child.walk())
            self._below = below
        return self._below

    @property
    def called(self) -> set[str]:
        """The last parts of the names of all calls here and below."""
        if self._called is None:
            self._called = set()
            self._called.update(*(scope.calls for scope in self.walk()))
        return self._called

    def all_calls(self, name: str) -> Iterator[tuple[ast.Call, Scope]]:
        """Calls whose name ends in ``name``, here and below."""
        if name in self.called:
            for scope in self.walk():
                for call in scope.calls.get(name, ()):
                    yield call, scope

    def release(self) -> None:
        """Let go of the scopes around and below, so that memory goes without the cyclic garbage collector."""
        self.parent = self.owner = self._below = self._children = None
        self.children = []

    def child(self, node: ast.AST) -> Scope | None:
        """The scope right below this one that a definition is the node of."""
        if self._children is None or len(self._children) != len(self.children):
            self._children = {child.node: child for child in self.children}
        return self._children.get(node)

    def of_type(self, kind: type[ast.AST]) -> list[ast.AST]:
        """Recorded nodes of one of the types in ``RECORDED``, in document order."""
        return self.nodes.get(kind, [])

    @property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """Child to parent, for every node below this scope's node; made when first asked for."""
        scope: Scope | None = self
        while scope is not None:
            if scope._parents is not None:
                return scope._parents
            scope = scope.parent
        self._parents = _parents_below(self.node)
        return self._parents

    @property
    def assigned(self) -> dict[ast.expr, ast.Assign | ast.AnnAssign]:
        """Each target of a plain assignment in this scope, with the statement; parts of tuples aside."""
        if self._assigned is None:
            self._assigned = {}
            for statement in self.of_type(ast.Assign):
                for target in statement.targets:  # type: ignore[attr-defined]
                    self._assigned[target] = statement  # type: ignore[assignment]
            for statement in self.of_type(ast.AnnAssign):
                self._assigned[statement.target] = statement  # type: ignore[attr-defined, assignment]
        return self._assigned

    def statement(self, node: ast.AST) -> ast.stmt:
        """The innermost statement that holds ``node``."""
        parents = self.parents
        while not isinstance(node, ast.stmt):
            node = parents[node]
        return node

    def enclosing(self, node: ast.AST, *kinds: type[ast.AST]) -> ast.AST | None:
        """The nearest ancestor of one of ``kinds``, or None."""
        parents = self.parents
        up = parents.get(node)
        while up is not None and not isinstance(up, kinds):
            up = parents.get(up)
        return up


_Uses = dict[str, list[tuple[ast.Attribute, Scope]]]
_NO_USES: _Uses = {}
"""What functions share, whose own are never filled."""


def last_name(node: ast.expr | None) -> str:
    """The last part of a name or attribute chain: ``backward`` of ``loss.backward``; empty for anything else."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _parents_below(top: ast.AST) -> dict[ast.AST, ast.AST]:
    """Child to parent, contexts and operators aside, which trees share; several times faster than ast.walk."""
    table: dict[ast.AST, ast.AST] = {}
    pending = [top]
    pop, push = pending.pop, pending.append
    while pending:
        node = pop()
        for field in _FIELDS[type(node)]:
            value = getattr(node, field, None)
            if type(value) is list:
                for item in value:
                    if isinstance(item, ast.AST):
                        table[item] = node
                        if type(item) not in _LEAVES:
                            push(item)
            elif isinstance(value, ast.AST):
                table[value] = node
                if type(value) not in _LEAVES:
                    push(value)
    return table


def _first_argument(node: FunctionNode) -> str | None:
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Name) and decorator.id == "staticmethod":
            return None
    arguments = node.args.posonlyargs or node.args.args
    return arguments[0].arg if arguments else None


def build(tree: ast.Module) -> Scope:
    """Index a parsed file; the result is the module's scope."""
    root = Scope(tree, None, "")
    extend(root, tree.body)
    return root


def extend(root: Scope, statements: list[ast.stmt]) -> list[Scope]:
    """Index further statements of a module's body; the scopes right below the module's that they bring."""
    known = len(root.children)
    pending: list[tuple[Scope, Sequence[ast.AST]]] = [(root, statements)]
    while pending:
        scope, body = pending.pop()
        _fill(scope, body, pending)
    return root.children[known:]


def _fill(scope: Scope, body: Sequence[ast.AST], pending: list[tuple[Scope, Sequence[ast.AST]]]) -> None:
    calls, nodes, stores = scope.calls, scope.nodes, scope.stores
    self_name, owner = scope.self_name, scope.owner
    reads = owner.self_reads if owner is not None else None
    in_class = type(scope.node) is ast.ClassDef
    below: list[tuple[Scope, Sequence[ast.AST]]] = []
    stack: list[Any] = list(body[::-1])
    pop, push = stack.pop, stack.append
    while stack:
        node = pop()
        kind = type(node)
        if kind is ast.Expr:  # whatever is most frequent comes first
            if type(node.value) is ast.Attribute:
                nodes.setdefault(ast.Expr, []).append(node)
            node = node.value
            kind = type(node)
        if kind is ast.Call:
            for keyword in node.keywords[::-1]:
                value = keyword.value
                if type(value) not in _PLAIN:
                    push(value)
            for value in node.args[::-1]:
                if type(value) not in _PLAIN:
                    push(value)
            func = node.func
            kind = type(func)
            if kind is ast.Attribute:
                name = func.attr
                value = func.value
                if type(value) is not ast.Name:
                    push(value)
                elif reads is not None and value.id == self_name:
                    reads.setdefault(name, []).append((func, scope))
            elif kind is ast.Name:
                name = func.id
            else:
                name = ""
                push(func)
            calls.setdefault(name, []).append(node)
        elif kind is ast.Attribute:
            value = node.value
            if type(value) is not ast.Name:
                push(value)
            elif reads is not None and value.id == self_name:
                uses = reads if type(node.ctx) is ast.Load else owner.self_writes  # type: ignore[union-attr]
                uses.setdefault(node.attr, []).append((node, scope))
        elif kind is ast.Assign:
            nodes.setdefault(ast.Assign, []).append(node)
            value = node.value
            if type(value) not in _PLAIN:
                push(value)
            for target in node.targets[::-1]:
                if type(target) is ast.Name:
                    stores.add(target.id)
                else:
                    if type(target) is ast.Subscript:
                        nodes.setdefault(ast.Subscript, []).append(target)
                    push(target)
        elif kind is ast.BinOp:
            value = node.right
            if type(value) not in _PLAIN:
                push(value)
            value = node.left
            if type(value) not in _PLAIN:
                push(value)
        elif kind is ast.Subscript:
            value = node.slice
            if type(value) not in _PLAIN:
                push(value)
            value = node.value
            if type(value) is not ast.Name:
                push(value)
        elif kind is ast.Compare:
            for value in node.comparators[::-1]:
                if type(value) not in _PLAIN:
                    push(value)
            value = node.left
            if type(value) not in _PLAIN:
                push(value)
        elif kind is ast.If:
            stack += node.orelse[::-1]
            stack += node.body[::-1]
            value = node.test
            if type(value) not in _PLAIN:
                push(value)
        elif kind is ast.Name:
            if type(node.ctx) is not ast.Load:
                stores.add(node.id)
        elif kind is ast.Constant:
            pass
        elif kind in _FUNCTIONS or kind is ast.Lambda:
            child = Scope(node, scope, "<lambda>" if kind is ast.Lambda else node.name)
            scope.children.append(child)
            if kind is not ast.Lambda:
                stores.add(node.name)
                stack += node.decorator_list[::-1]
            arguments = node.args
            names = child.stores
            for parameter in arguments.args:
                names.add(parameter.arg)
            stack += arguments.defaults
            if arguments.posonlyargs or arguments.kwonlyargs or arguments.vararg or arguments.kwarg:
                stack += [default for default in arguments.kw_defaults if default is not None]
                names.update(a.arg for a in (*arguments.posonlyargs, *arguments.kwonlyargs))
                names.update(star.arg for star in (arguments.vararg, arguments.kwarg) if star is not None)
            if in_class and kind is not ast.Lambda:
                child.self_name = _first_argument(node)
                child.owner = scope
            elif self_name is not None and self_name not in names:
                child.self_name, child.owner = self_name, owner
            below.append((child, [node.body] if kind is ast.Lambda else node.body))
        elif kind is ast.ClassDef:
            stores.add(node.name)
            child = Scope(node, scope, node.name)
            scope.children.append(child)
            stack.extend(node.decorator_list)
            stack.extend(node.bases)
            stack.extend(k.value for k in node.keywords)
            below.append((child, node.body))
        else:
            if kind in _RECORDED:
                nodes.setdefault(kind, []).append(node)
                if kind is ast.Import or kind is ast.ImportFrom:
                    for alias in node.names:
                        stores.add(alias.asname or alias.name.partition(".")[0])
                    continue
            elif kind is ast.Global or kind is ast.Nonlocal:
                scope.globals = scope.globals.union(node.names)
                continue
            elif kind is ast.ExceptHandler or kind is ast.MatchAs or kind is ast.MatchStar:
                if node.name:
                    stores.add(node.name)
            elif kind is ast.MatchMapping and node.rest:
                stores.add(node.rest)
            for field in _FIELDS_BACKWARDS[kind]:
                value = getattr(node, field, None)
                value_kind = type(value)
                if value_kind is list:
                    for item in reversed(value):  # type: ignore[arg-type]
                        item_kind = type(item)
                        if item_kind is ast.Name:
                            if type(item.ctx) is not ast.Load:
                                stores.add(item.id)
                        elif item_kind not in _SKIPPED:
                            push(item)
                elif value_kind is ast.Name:
                    if type(value.ctx) is not ast.Load:  # type: ignore[union-attr]
                        stores.add(value.id)  # type: ignore[union-attr]
                elif value_kind not in _SKIPPED:
                    push(value)
    if scope.globals:
        stores -= scope.globals
    pending.extend(reversed(below))
