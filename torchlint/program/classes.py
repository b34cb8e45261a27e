"""Classes: their bases across files, their methods, and what they keep on self."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Union

from torchlint.program.index import Scope
from torchlint.program.module import FunctionInfo, Imported, Module, Unread

MODULE = "torch.nn.Module"
FUNCTION = "torch.autograd.Function"
DATASET = "torch.utils.data.Dataset"

MOST_BASES = 100
"""How many classes above one are told apart; those beyond count as unknown."""

Base = Union["ClassInfo", str, None]
"""A class whose source is at hand, the canonical name of one whose source isn't, or None: can't be told."""

Ancestor = Union["ClassInfo", Unread, str, None]
"""The same, or a class of another file that nothing was asked of yet."""


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
    def lineage(self) -> list[Ancestor]:
        """This class, its bases and theirs, each once, nearest first (depth first; enough for look-ups by name).

        What stands in other files is left unread.
        """
        self.__dict__["lineage"] = [self]  # what a base that is a member of this very class finds: class C(C.Base)
        order: list[Ancestor] = []
        seen: set[object] = set()
        pending: list[Ancestor] = [self]
        while pending:
            base = pending.pop()
            key = base.node if isinstance(base, ClassInfo) else base
            if key is not None and key in seen:
                continue
            if len(order) > MOST_BASES:
                order.append(None)
                break
            seen.add(key)
            order.append(base)
            if isinstance(base, ClassInfo):
                pending += [_base(node, base.module, base.scope.parent, base) for node in reversed(base.node.bases)]
            elif isinstance(base, Unread):
                pending += [_base(node, base.module, base.module.scope, None) for node in reversed(base.bases or ())]
        return order

    @cached_property
    def mro(self) -> list[Base]:
        """The same, all read."""
        return [_read(base) for base in self.lineage]

    @property
    def resolved(self) -> bool:
        """Whether every class above this one is known: its source is at hand or torchapi describes it."""
        project = self.module.project
        return all(project.knows_class(base) if isinstance(base, str) else base is not None for base in self.lineage)

    @property
    def bases(self) -> list[Base]:
        """Each base as written."""
        return [_read(_base(node, self.module, self.scope.parent, self)) for node in self.node.bases]

    def derives(self, qualname: str) -> bool | None:
        """Whether the class derives from ``qualname``; None where a base that can't be told may."""
        if qualname not in self._derives:
            self._derives[qualname] = False  # a class that derives from itself
            self._derives[qualname] = bases_derive(self.node.bases, qualname, self.module, self.scope.parent)
        return self._derives[qualname]

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

    def ancestors(self, *words: str) -> Iterator[ClassInfo]:
        """The classes above this one whose source is at hand, nearest first.

        With ``words``, a class of another file that says none of them is left out, and isn't parsed.
        """
        return _at_hand(self.lineage[1:], words)

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
        return _method(self.lineage, name)

    def inherited(self, name: str) -> FunctionInfo | None:
        """The method that ``super().name`` is, where its source is at hand."""
        return _method(self.lineage[1:], name)

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
        values = (base.class_attributes.get(name) for base in _at_hand(self.lineage, (name,)))
        return next((value for value in values if value is not None), None)

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
    def bases_here(self) -> list[ClassInfo]:
        """The bases that the class's own file defines and that it derives from by their plain names.

        Telling costs next to nothing, unlike ``bases``, for which other files are read: what these classes answer
        needn't be asked of others.
        """
        names = [base.id for base in self.node.bases if isinstance(base, ast.Name)]
        bound = [self.module.lookup(name, self.scope.parent) for name in names]
        return [base for base in bound if isinstance(base, ClassInfo) and base is not self]

    @property
    def subclasses(self) -> list[ClassInfo]:
        """Classes of the same file that derive from this one, as its names tell."""
        found: list[ClassInfo] = []
        pending = [self]
        while pending:
            for cls in self.module.subclasses.get(pending.pop(), ()):
                if cls not in found and cls is not self:
                    found.append(cls)
                    pending.append(cls)
        return found

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
                            target = info.cls.inherited(func.attr)
                        if target is not None and target not in seen:
                            seen.append(target)
        return seen


def _base(node: ast.expr, module: Module, scope: Scope | None, cls: ClassInfo | None) -> Ancestor:
    """What a base in a class statement is."""
    if isinstance(node, ast.Subscript):  # Generic[T], Dataset[int]
        node = node.value
    found = module.leads(node, scope)
    if isinstance(found, ClassInfo):
        return None if found is cls else found
    if isinstance(found, Unread):
        return found if found.bases is not None else None
    if isinstance(found, (Imported, FunctionInfo)) or found is None:
        return module.qualname(node, scope)
    return None


def _method(lineage: Sequence[Ancestor], name: str) -> FunctionInfo | None:
    return next((base.methods[name] for base in _at_hand(lineage, (name,)) if name in base.methods), None)


def _says(unread: Unread, words: Iterable[str]) -> bool:
    return any(unread.module.says(unread.name, word) for word in words)


def _at_hand(lineage: Iterable[Ancestor], words: Collection[str]) -> Iterator[ClassInfo]:
    """The classes whose source is at hand; given words, those of other files that say none of them stay unread."""
    for ancestor in lineage:
        if words and isinstance(ancestor, Unread) and not _says(ancestor, words):
            continue
        base = _read(ancestor)
        if isinstance(base, ClassInfo):
            yield base


def _read(base: Ancestor) -> Base:
    if isinstance(base, Unread):
        found = base.module.own(base.name)
        return found if isinstance(found, ClassInfo) else None
    return base


def bases_derive(bases: list[ast.expr], qualname: str, module: Module, scope: Scope | None) -> bool | None:
    """Whether one of the bases of a class statement in ``scope`` is ``qualname`` or derives from it; None: it may."""
    answer: bool | None = False
    for node in bases:
        derives = base_derives(node.value if isinstance(node, ast.Subscript) else node, qualname, module, scope)
        if derives:
            return True
        if derives is None:
            answer = None
    return answer


def base_derives(node: ast.expr, qualname: str, module: Module, scope: Scope | None) -> bool | None:
    """Whether the class that a name in ``scope`` stands for is ``qualname`` or derives from it; None: it may."""
    found = module.lookup_unread(node.id, scope) if isinstance(node, ast.Name) else None
    if isinstance(found, ClassInfo):
        return found.derives(qualname)
    dotted = module.dotted(node, scope)
    return None if dotted is None else module.project.derives(dotted, qualname, module)


def is_super_call(node: ast.expr) -> bool:
    """Whether an expression is ``super()`` or ``super(A, self)``."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"
