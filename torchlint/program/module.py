"""A file as the program layer sees it: what its names mean, its classes and its functions."""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, Union

from torchlint.program import index
from torchlint.program.index import FunctionNode, Scope
from torchlint.torchapi.hierarchy import canonical

if TYPE_CHECKING:
    from torchlint.program.classes import ClassInfo
    from torchlint.program.instances import Instances
    from torchlint.program.outlined import OutlinedModule
    from torchlint.program.project import Project
    from torchlint.program.uncalled import Uncalled
    from torchlint.source.file import SourceFile

NEVER_SEARCHED = frozenset(sys.stdlib_module_names) | {"torch", "numpy", "builtins", "__future__", "scipy", "pandas"}
"""Packages whose source is never read: tables say what torch's names mean, and the others' don't matter."""

_BUILTINS = frozenset(dir(builtins))
_DEFINING = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class Imported:
    """A name bound by an import: ``qualname`` is what it stands for, ``torch.nn.functional`` for ``F``."""

    __slots__ = ("node", "qualname")

    def __init__(self, qualname: str, node: ast.stmt | None = None) -> None:
        self.qualname = qualname
        self.node = node

    def __repr__(self) -> str:
        return f"Imported({self.qualname})"


class Assigned:
    """A module-level variable: its last value, and whether it is assigned more than once (then it may be either)."""

    __slots__ = ("many", "node", "value")

    def __init__(self, value: ast.expr | None, node: ast.stmt, many: bool = False) -> None:
        self.value = value
        self.node = node
        self.many = many


class Unread:
    """A function or class of another file of which only the name and the bases are read."""

    __slots__ = ("bases", "module", "name")

    def __init__(self, name: str, module: OutlinedModule, bases: list[ast.expr] | None) -> None:
        self.name = name
        self.module = module
        self.bases = bases  # None for a function

    @property
    def qualname(self) -> str:
        """Dotted name with its module."""
        return f"{self.module.name}.{self.name}"


class FunctionInfo:
    """A function or method: where it is and how it is called."""

    __slots__ = ("cls", "module", "node", "scope")

    def __init__(self, node: FunctionNode, module: Module, scope: Scope, cls: ClassInfo | None = None) -> None:
        self.node = node
        self.module = module
        self.scope = scope
        self.cls = cls

    def __repr__(self) -> str:
        return f"<function {self.qualname}>"

    @property
    def name(self) -> str:
        """The function's own name."""
        return self.node.name

    @property
    def qualname(self) -> str:
        """Dotted name with class and module."""
        return f"{self.cls.qualname if self.cls else self.module.name}.{self.node.name}"

    @property
    def decorators(self) -> list[str | None]:
        """Qualified names of the decorators, of what is called for a call; None where unknown."""
        return [
            self.module.qualname(d.func if isinstance(d, ast.Call) else d, self.scope.parent)
            for d in self.node.decorator_list
        ]

    @property
    def is_static(self) -> bool:
        """Whether it is a staticmethod."""
        return "builtins.staticmethod" in self.decorators

    @property
    def is_classmethod(self) -> bool:
        """Whether it is a classmethod."""
        return "builtins.classmethod" in self.decorators

    @property
    def is_property(self) -> bool:
        """Whether reading the attribute calls it."""
        return any(
            d in ("builtins.property", "functools.cached_property") or (d or "").endswith(".setter")
            for d in self.decorators
        )

    @property
    def parameters(self) -> list[ast.arg]:
        """Positional parameters in order (self included), then keyword-only ones; no stars."""
        a = self.node.args
        return [*a.posonlyargs, *a.args, *a.kwonlyargs]


Binding = Union[Imported, Assigned, FunctionInfo, "ClassInfo"]


class Module:
    """One file of the project (or of an installed package) and what it says.

    ``name`` is its dotted name as others import it. ``dependencies`` are the paths of other files whose content was
    consulted for it: a cached result is stale when one of them changes.
    """

    def __init__(self, source: SourceFile, project: Project, name: str, is_package: bool) -> None:
        self.source = source
        self.project = project
        self.name = name
        self.is_package = is_package
        self.dependencies: set[str] = set()
        # kept by Project: what a name leads to, the parts behind it, the paths and the modules consulted for it
        self.definitions: dict[str, tuple[Binding | Unread | None, list[str], set[str], list[Module]]] = {}
        self.stars: list[tuple[str, ast.ImportFrom]] = []  # filled with the bindings
        self._starred: dict[str, Binding | None] = {}
        self._foreign: dict[str, bool] = {}
        self._classes: dict[Scope, ClassInfo] = {}
        self._functions: dict[Scope, FunctionInfo] = {}

    def __repr__(self) -> str:
        return f"<module {self.name}>"

    def release(self) -> None:
        """Take the module apart so that its memory goes without the cyclic garbage collector; it is dead after."""
        scope = self.__dict__.get("scope")
        if scope is not None:
            for each in scope.walk():
                each.release()
        for each in (*self._classes.values(), self.__dict__.get("instances")):
            if each is not None:
                each.__dict__.clear()
        self.__dict__.clear()

    @property
    def tree(self) -> ast.Module:
        """The parsed file; raises what parsing raises."""
        return self.source.tree

    @cached_property
    def scope(self) -> Scope:
        """The file's scopes and the nodes in them."""
        return index.build(self.tree)

    @cached_property
    def bindings(self) -> dict[str, Binding]:
        """What each module-level name is bound to, ``if``, ``try`` and ``with`` bodies included.

        The first import of a name wins over a fallback in ``except ImportError``.
        """
        table: dict[str, Binding] = {}
        self._bind(self.tree.body, table, {child.node: child for child in self.scope.children})
        return table

    def _bind(self, body: list[ast.stmt], table: dict[str, Binding], scopes: dict[index.ScopeNode, Scope]) -> None:
        from torchlint.program.classes import ClassInfo

        for node in body:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    name = alias.asname or alias.name.partition(".")[0]
                    if not isinstance(table.get(name), Imported):
                        table[name] = Imported(alias.name if alias.asname else name, node)
            elif isinstance(node, ast.ImportFrom):
                origin = self.absolute(node)
                for alias in node.names:
                    if alias.name == "*":
                        self.stars.append((origin, node))
                    elif not isinstance(table.get(alias.asname or alias.name), Imported):
                        table[alias.asname or alias.name] = Imported(f"{origin}.{alias.name}", node)
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                if not isinstance(table.get(node.name), Imported):
                    table[node.name] = self.function(scopes[node])
            elif isinstance(node, ast.ClassDef):
                if not isinstance(table.get(node.name), Imported):
                    table[node.name] = self.class_at(scopes[node])
            elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target in targets:
                    for name, value in _names_of(target, node.value if not isinstance(node, ast.AugAssign) else None):
                        if not isinstance(table.get(name), (Imported, FunctionInfo, ClassInfo)):
                            table[name] = Assigned(value, node, many=name in table)
            elif isinstance(node, (ast.If, ast.Try, ast.With, ast.For, ast.While, ast.AsyncWith, ast.AsyncFor)):
                if isinstance(node, (ast.For, ast.AsyncFor)):
                    for name, _ in _names_of(node.target, None):
                        table.setdefault(name, Assigned(None, node, many=True))
                for field in ("body", "handlers", "orelse", "finalbody"):
                    for part in getattr(node, field, ()):
                        self._bind(part.body if isinstance(part, ast.ExceptHandler) else [part], table, scopes)

    def own(self, name: str) -> Binding | None:
        """What the file itself binds a module-level name to."""
        return self.bindings.get(name)

    def binding(self, name: str) -> Binding | None:
        """What a module-level name is bound to, star imports included."""
        found = self.own(name)
        if found is None and self.stars:
            if name not in self._starred:
                self._starred[name] = None  # a cycle of star imports ends here
                self._starred[name] = self.project.star_binding(name, self)
            found = self._starred[name]
        return found

    def leads_to(self, name: str) -> Binding | Unread | None:
        """What a module-level name is bound to; Unread where that is a definition that nobody needed yet."""
        return self.binding(name)

    @cached_property
    def star_exports(self) -> list[str] | None:
        """The names in ``__all__`` where it is a literal, else None."""
        bound = self.bindings.get("__all__")
        if isinstance(bound, Assigned) and isinstance(bound.value, (ast.List, ast.Tuple)) and not bound.many:
            names = [e.value for e in bound.value.elts if isinstance(e, ast.Constant) and isinstance(e.value, str)]
            return names if len(names) == len(bound.value.elts) else None
        return None

    def absolute(self, node: ast.ImportFrom) -> str:
        """The dotted module that a from-import names, relative ones resolved."""
        if not node.level:
            return node.module or ""
        parts = self.name.split(".")
        keep = len(parts) - node.level + (1 if self.is_package else 0)
        base = ".".join(parts[: max(keep, 0)])
        return f"{base}.{node.module}" if node.module and base else node.module or base

    # ---------------------------------------------------------------- names

    def local_import(self, scope: Scope, name: str) -> str | None:
        """What ``name`` stands for by an import inside this function, or None."""
        for node in scope.of_type(ast.Import):
            for alias in node.names:  # type: ignore[attr-defined]
                if (alias.asname or alias.name.partition(".")[0]) == name:
                    return str(alias.name if alias.asname else name)
        for node in scope.of_type(ast.ImportFrom):
            for alias in node.names:  # type: ignore[attr-defined]
                if (alias.asname or alias.name) == name:
                    return f"{self.absolute(node)}.{alias.name}"  # type: ignore[arg-type]
        return None

    def lookup(self, name: str, scope: Scope | None = None) -> Binding | None:
        """What a name is bound to at module level, unless a scope on the way binds it locally (then None)."""
        found = self.lookup_unread(name, scope)
        return self.own(found.name) if isinstance(found, Unread) else found

    def lookup_unread(self, name: str, scope: Scope | None = None) -> Binding | Unread | None:
        """The same, with an outlined file's definitions left unread."""
        while scope is not None and scope.parent is not None:
            if name in scope.stores and type(scope.node) is not ast.ClassDef:
                local = self.local_import(scope, name)
                if local is not None:
                    return Imported(local)
                for child in scope.children:
                    if child.name == name and isinstance(child.node, _DEFINING):
                        return self._definition(child)
                return None
            scope = scope.parent
        found = self.leads_to(name)
        return Imported(f"builtins.{name}") if found is None and name in _BUILTINS else found

    def is_foreign(self, node: ast.expr) -> bool:
        """Whether a dotted name starts at one that the file imports from a package whose source is never read."""
        while isinstance(node, ast.Attribute):
            node = node.value
        if not isinstance(node, ast.Name):
            return False
        known = self._foreign.get(node.id)
        if known is None:
            bound = self.own(node.id)
            known = isinstance(bound, Imported) and bound.qualname.partition(".")[0] in NEVER_SEARCHED
            self._foreign[node.id] = known
        return known

    def _definition(self, scope: Scope) -> Binding:
        return self.class_at(scope) if type(scope.node) is ast.ClassDef else self.function(scope)

    def dotted(self, node: ast.expr, scope: Scope | None = None) -> str | None:
        """The qualified name as imported, before re-exports are followed; None for anything that isn't a plain name."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return None
        bound = self.lookup_unread(node.id, scope)
        if bound is None:
            return None
        if isinstance(bound, Imported):
            base = bound.qualname
        elif isinstance(bound, Assigned):
            alias = bound.value
            if bound.many or not isinstance(alias, (ast.Name, ast.Attribute)) or _root(alias) == node.id:
                return None
            through = self.dotted(alias)
            if through is None:
                return None
            base = through
        else:
            base = bound.qualname
        parts.append(base)
        return ".".join(reversed(parts))

    def qualname(self, node: ast.expr, scope: Scope | None = None) -> str | None:
        """The canonical qualified name of a name or attribute chain: ``torch.nn.functional.dropout`` for ``F.dropout``.

        Aliases, re-exports and star imports of the project are followed; None where the chain starts at a local
        variable or anything else.
        """
        dotted = self.dotted(node, scope)
        return None if dotted is None else self.project.canonical(dotted, self)

    def definition(self, node: ast.expr, scope: Scope | None = None) -> Binding | None:
        """The class, function or variable that a name or attribute chain leads to, in this file or another one."""
        if isinstance(node, ast.Name):
            bound = self.lookup(node.id, scope)
            if not isinstance(bound, Imported):
                return bound
        dotted = self.dotted(node, scope)
        return None if dotted is None else self.project.definition(dotted, self)

    def leads(self, node: ast.expr, scope: Scope | None = None) -> Binding | Unread | None:
        """The same, with the definitions of other files left unread."""
        if isinstance(node, ast.Name):
            bound = self.lookup_unread(node.id, scope)
            if not isinstance(bound, Imported):
                return bound
        dotted = self.dotted(node, scope)
        return None if dotted is None else self.project.leads(dotted, self)

    @cached_property
    def instances(self) -> Instances:
        """Answers what expressions of the file make."""
        from torchlint.program.instances import Instances

        return Instances(self)

    @cached_property
    def uncalled(self) -> list[Uncalled]:
        """Methods that are named where they were meant to be called."""
        from torchlint.program.uncalled import find_uncalled

        return list(find_uncalled(self))

    @cached_property
    def memo(self) -> dict[object, Any]:
        """What rules have worked out about the file, kept for other rules."""
        return {}

    # ---------------------------------------------------------------- classes and functions

    @cached_property
    def classes(self) -> list[ClassInfo]:
        """Every class of the file, nested ones included, in document order."""
        return [self.class_at(scope) for scope in self.scope.walk() if type(scope.node) is ast.ClassDef]

    @property
    def functions(self) -> Iterator[FunctionInfo]:
        """Every function and method of the file, nested ones included."""
        return (self.function(scope) for scope in self.scope.walk() if scope.is_function)

    def class_at(self, scope: Scope) -> ClassInfo:
        """The class that this scope is the body of."""
        known = self._classes.get(scope)
        if known is None:
            from torchlint.program.classes import ClassInfo

            known = self._classes[scope] = ClassInfo(scope.node, self, scope)  # type: ignore[arg-type]
        return known

    def function(self, scope: Scope) -> FunctionInfo:
        """The function that this scope is the body of."""
        known = self._functions.get(scope)
        if known is None:
            above = scope.parent
            owner = self.class_at(above) if above is not None and type(above.node) is ast.ClassDef else None
            known = self._functions[scope] = FunctionInfo(scope.node, self, scope, owner)  # type: ignore[arg-type]
        return known

    def class_of(self, scope: Scope | None) -> ClassInfo | None:
        """The class whose method (or a function inside it) this scope is."""
        while scope is not None:
            if type(scope.node) is ast.ClassDef:
                return self.class_at(scope)
            scope = scope.parent
        return None

    @cached_property
    def subclasses(self) -> dict[ClassInfo, list[ClassInfo]]:
        """For each class that others of the file name as a base, those others in document order."""
        table: dict[ClassInfo, list[ClassInfo]] = {}
        for cls in self.classes:
            for base in cls.bases_here:
                table.setdefault(base, []).append(cls)
        return table

    @cached_property
    def global_names(self) -> frozenset[str]:
        """Names that functions of the file declare ``global``."""
        return frozenset(name for scope in self.scope.walk() for name in scope.globals)

    def calls_of(self, name: str) -> Iterator[tuple[ast.Call, Scope]]:
        """The file's calls of what ends in a name, with the scope of each."""
        return self.scope.all_calls(name)


def _root(node: ast.expr) -> str | None:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _names_of(target: ast.expr, value: ast.expr | None) -> Iterator[tuple[str, ast.expr | None]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, (ast.Tuple, ast.List)):
        same = isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts)
        for i, part in enumerate(target.elts):
            yield from _names_of(part, value.elts[i] if same and value is not None else None)  # type: ignore[attr-defined]
    elif isinstance(target, ast.Starred):
        yield from _names_of(target.value, None)


__all__ = ["Assigned", "Binding", "FunctionInfo", "Imported", "Module", "Unread", "canonical"]
