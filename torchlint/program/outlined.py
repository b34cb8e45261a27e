"""A file that another file asks about: only what is asked for is parsed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from torchlint.program import index
from torchlint.program.index import Scope
from torchlint.program.module import Binding, Imported, Module, Unread
from torchlint.source.file import CANNOT_PARSE
from torchlint.source.outline import Outline

if TYPE_CHECKING:
    from torchlint.program.project import Project
    from torchlint.source.file import SourceFile

_GLOBAL = re.compile(r"^[ \t]+global[ \t]+([\w, \t]+)", re.MULTILINE)


class OutlinedModule(Module):
    """A module seen from other files: its top-level names, each definition parsed when it is first looked up.

    Its ``tree`` and ``scope`` hold what stands outside the definitions and the definitions looked up so far, so
    nothing may be concluded from what they do not hold. Raises what parsing raises.
    """

    def __init__(self, source: SourceFile, project: Project, name: str, is_package: bool) -> None:
        super().__init__(source, project, name, is_package)
        self._outline = Outline(source.text, source.filename)
        self._defined: dict[str, Binding | None] = {}
        self._unread: dict[str, Unread | None] = {}
        project.keep(self._outline.parsed)

    @property
    def tree(self) -> ast.Module:
        """What stands outside the definitions."""
        return self._outline.rest

    @cached_property
    def scope(self) -> Scope:
        """The file's scope, and in it those of the definitions looked up so far."""
        scope = index.build(self.tree)
        scope.stores.update(self._outline.definitions)
        return scope

    def own(self, name: str) -> Binding | None:
        """What the file itself binds a module-level name to."""
        outside = self.bindings.get(name)
        pieces = self._outline.definitions.get(name)
        if pieces is None or isinstance(outside, Imported):
            return outside
        if name not in self._defined:
            self._defined[name] = None
            before = self._outline.parsed
            try:
                statements = self._outline.parse(pieces[-1])
            except CANNOT_PARSE:
                return None
            self.project.keep(self._outline.parsed - before)
            self._defined[name] = self._define(name, statements)
        return self._defined[name]

    def leads_to(self, name: str) -> Binding | Unread | None:
        """What a module-level name is bound to; Unread where that is a definition that nobody needed yet."""
        pieces = self._outline.definitions.get(name)
        if pieces is None or isinstance(self.bindings.get(name), Imported):
            return self.binding(name)
        if name not in self._unread:
            try:
                self._unread[name] = Unread(name, self, self._outline.bases(pieces[-1]))
            except CANNOT_PARSE:
                self._unread[name] = None
        return self._unread[name]

    def says(self, name: str, word: str) -> bool:
        """Whether an identifier occurs in the text of a definition."""
        return word in self._outline.words(self._outline.definitions[name][-1])

    def _define(self, name: str, statements: list[ast.stmt]) -> Binding | None:
        table: dict[str, Binding] = {}
        scopes = index.extend(self.scope, statements)
        self._bind(statements, table, {scope.node: scope for scope in scopes})
        return table.get(name)

    @cached_property
    def global_names(self) -> frozenset[str]:
        """Names that functions of the file declare ``global``, as its text tells."""
        return frozenset(name.strip() for found in _GLOBAL.finditer(self.source.text) for name in found[1].split(","))

    def calls_of(self, name: str) -> Iterator[tuple[ast.Call, Scope]]:
        """Nothing: not all calls of an outlined file are known."""
        return iter(())
