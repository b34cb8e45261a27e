"""Classes: their bases across files, their methods, and what they keep on self."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Union

from torchlint.program.index import Scope
from torchlint.program.module import FunctionInfo, Module

MODULE = "torch.nn.Module"
FUNCTION = "torch.autograd.Function"
DATASET = "torch.utils.data.Dataset"

Base = Union["ClassInfo", str, None]
"""A class whose source is at hand, the canonical name of one whose source isn't, or None: can't be told."""


class AttributeUse:
    """One place where a method reads or writes ``self.<name>``."""

    __slots__ = ("method", "node", "scope")

    def __init__(self, node: ast.Attribute, scope: Scope, method: Scope) -> None:
        self.node = node
        self.scope = scope  # the innermost function
        self.method = method  # the method it stands in

    @property
    def statement(self) -> ast.stmt:
        """The statement that the use stands in."""
        return self.method.statement(self.node)

    @property
    def value(self) -> ast.expr | None:
        """For a plain ``self.x = value`` (or annotated), the value; None for anything else."""
        statement = self.scope.assigned.get(self.node)
        return None if statement is None else statement.value


class ClassInfo:
    """A class with its bases resolved. ``cls.module`` is the file that it stands in."""

    def __init__(self, node: ast.ClassDef, module: Module, scope: Scope) -> None:
        self.node = node
        self.module = module
        self.scope = scope
        self._derives: dict[str, bool | None] = {}

    def __repr__(self) -> str:
        return f"<class {self.qualname}>"

    @property
    def name(self) -> str:
        """The class's own name."""
        return self.node.name

    @property
    def qualname(self) -> str:
        """Dotted name with its module."""
        return f"{self.module.name}.{self.node.name}"

    # ---------------------------------------------------------------- bases

    @cached_property
    def bases(self) -> list[Base]:
        """Each base as written: a ClassInfo, a canonical external name, or None where it can't be told."""
        return [self._base(b) for b in self.node.bases]

    def _base(self, node: ast.expr) -> Base:
        if isinstance(node, ast.Subscript):  # Generic[T], Dataset[int]
            node = node.value
        found = self.module.definition(node, self.scope.parent)
        if isinstance(found, ClassInfo):
            return None if found is self else found
        if found is not None and not hasattr(found, "qualname"):
            return None
        return self.module.qualname(node, self.scope.parent)

    @cached_property
    def mro(self) -> list[Base]:
        """This class, its bases and theirs, each once, nearest first (depth first; enough for look-ups by name)."""
        order: list[Base] = []
        seen: set[object] = set()
        pending: list[Base] = [self]
        while pending:
            base = pending.pop()
            key = base.node if isinstance(base, ClassInfo) else base
            if key is not None and key in seen:
                continue
            seen.add(key)
            order.append(base)
            if isinstance(base, ClassInfo):
                pending.extend(reversed(base.bases))
        return order

    @property
    def resolved(self) -> bool:
        """Whether every class above this one is known: its source is at hand or torchapi describes it."""
        return all(isinstance(b, ClassInfo) or (b is not None and self.module.project.knows_class(b)) for b in self.mro)

    def derives(self, qualname: str) -> bool | None:
        """Whether the class derives from ``qualname``; None where a base that can't be told may."""
        if qualname not in self._derives:
            self._derives[qualname] = False  # a class that derives from itself
            answers = {self._base_derives(base, qualname) for base in self.node.bases}
            self._derives[qualname] = True if True in answers else None if None in answers else False
        return self._derives[qualname]

    def _base_derives(self, node: ast.expr, qualname: str) -> bool | None:
        node = node.value if isinstance(node, ast.Subscript) else node
        found = self.module.lookup(node.id, self.scope.parent) if isinstance(node, ast.Name) else None
        if isinstance(found, ClassInfo):
            return found.derives(qualname)
        dotted = self.module.dotted(node, self.scope.parent)
        return None if dotted is None else self.module.project.derives(dotted, qualname, self.module)

    @cached_property
    def is_module(self) -> bool | None:
        """Whether instances are nn.Modules; None where that can't be told."""
        return self.derives(MODULE)

    @cached_property
    def is_autograd_function(self) -> bool | None:
        """Whether it derives from torch.autograd.Function."""
        return self.derives(FUNCTION)

    @cached_property
    def is_dataset(self) -> bool | None:
        """Whether it derives from torch.utils.data.Dataset."""
        return self.derives(DATASET)

    def ancestors(self) -> Iterator[ClassInfo]:
        """The classes above this one whose source is at hand, nearest first."""
        for base in self.mro[1:]:
            if isinstance(base, ClassInfo):
                yield base

    # ---------------------------------------------------------------- members

    @cached_property
    def methods(self) -> dict[str, FunctionInfo]:
        """The class's own methods by name; the last definition of a name wins, property setters aside."""
        table: dict[str, FunctionInfo] = {}
        for child in self.scope.children:
            if child.is_function:
                info = self.module.function(child)
                if child.name in table and any(
                    isinstance(d, ast.Attribute) and d.attr in ("setter", "deleter") for d in info.node.decorator_list
                ):
                    continue
                table[child.name] = info
        return table

    def method(self, name: str) -> FunctionInfo | None:
        """A method of the class or the nearest ancestor whose source is at hand."""
        for base in self.mro:
            if isinstance(base, ClassInfo) and name in base.methods:
                return base.methods[name]
        return None

    @cached_property
    def class_attributes(self) -> dict[str, ast.expr | None]:
        """Names bound in the class body (methods aside) and the value where it is a plain assignment."""
        table: dict[str, ast.expr | None] = {name: None for name in self.scope.stores if name not in self.methods}
        for node in (*self.scope.of_type(ast.Assign), *self.scope.of_type(ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]  # type: ignore[attr-defined]
            for target in targets:
                if isinstance(target, ast.Name):
                    table[target.id] = node.value  # type: ignore[attr-defined]
        return table

    def class_attribute(self, name: str) -> ast.expr | None:
        """The value of a class attribute here or in an ancestor at hand, None where there is none or no value."""
        for base in self.mro:
            if isinstance(base, ClassInfo) and base.class_attributes.get(name) is not None:
                return base.class_attributes[name]
        return None

    def reads(self, name: str) -> list[AttributeUse]:
        """Where the class's own methods read ``self.<name>``."""
        return [self._use(n, s) for n, s in self.scope.self_reads.get(name, ())]

    def writes(self, name: str) -> list[AttributeUse]:
        """Where the class's own methods bind or delete ``self.<name>``."""
        return [self._use(n, s) for n, s in self.scope.self_writes.get(name, ())]

    @property
    def written_attributes(self) -> dict[str, list[tuple[ast.Attribute, Scope]]]:
        """All ``self.<name>`` that own methods bind, by name, in document order."""
        return self.scope.self_writes

    def _use(self, node: ast.Attribute, scope: Scope) -> AttributeUse:
        method = scope
        while method.parent is not None and method.parent is not self.scope:
            method = method.parent
        return AttributeUse(node, scope, method)

    @property
    def subclasses(self) -> list[ClassInfo]:
        """Classes of the same file that derive from this one."""
        return self.module.subclasses.get(self, [])

    def self_calls(self, method: FunctionInfo) -> Sequence[FunctionInfo]:
        """The methods of this class that a method calls through self or super(), each once, itself included."""
        known = self._self_calls.get(method)
        if known is None:
            known = self._self_calls[method] = self._find_self_calls(method)
        return known

    @cached_property
    def _self_calls(self) -> dict[FunctionInfo, list[FunctionInfo]]:
        return {}

    def _find_self_calls(self, method: FunctionInfo) -> list[FunctionInfo]:
        seen: list[FunctionInfo] = [method]
        for info in seen:
            if info.cls is None:
                continue
            name = info.scope.self_name
            for scope in info.scope.walk():
                for calls in scope.calls.values():
                    for call in calls:
                        func = call.func
                        if not isinstance(func, ast.Attribute):
                            continue
                        target = None
                        if isinstance(func.value, ast.Name) and func.value.id == name:
                            target = self.method(func.attr)
                        elif is_super_call(func.value):
                            target = next(
                                (c.methods[func.attr] for c in info.cls.ancestors() if func.attr in c.methods), None
                            )
                        if target is not None and target not in seen:
                            seen.append(target)
        return seen


def is_super_call(node: ast.expr) -> bool:
    """Whether an expression is ``super()`` or ``super(A, self)``."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"
