"""The linted project as a whole: which file a dotted name is in, and what it leads to there.

Nothing is imported: modules are found by their path under the project's import roots, then under the site-packages of
the project's environment. Names of packages whose meaning torchapi tables hold (torch itself above all) are never
looked for on disk.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterable
from typing import TypeVar

from torchlint.program.classes import ClassInfo, bases_derive
from torchlint.program.module import NEVER_SEARCHED, Assigned, Binding, FunctionInfo, Imported, Module, Unread
from torchlint.program.outlined import OutlinedModule
from torchlint.source.file import CANNOT_PARSE, SourceFile
from torchlint.torchapi.hierarchy import canonical, external_class_derives, is_known_name, knows_external_class

KEPT_SOURCE = 3_000_000
"""Characters of source whose trees are kept for other files' questions; trees are some 40 times larger."""

STARS_FOLLOWED = 12

_M = TypeVar("_M", bound=Module)
"""A module with more star imports than this (a package's lazy namespace) is not searched through them."""

_FOLLOWED = 12


class Project:
    """The files that are linted together.

    ``roots`` are folders given by the user or the configuration (``src``); ``installed`` gives folders such as
    site-packages, asked last and only for what classes there derive from. ``read`` turns a path into a SourceFile.
    ``target_torch`` is the oldest torch that the code must run on, where the configuration says.
    """

    def __init__(
        self,
        roots: Iterable[str] = (),
        read: Callable[[str], SourceFile] | None = None,
        installed: Callable[[], Iterable[str]] | None = None,
        target_torch: tuple[int, int] | None = None,
    ) -> None:
        self.target_torch = target_torch
        self.roots = [os.path.abspath(r) for r in roots]
        self._find_installed = installed
        self._installed: Project | None = None
        self._read = read
        self._listings: dict[str, frozenset[str]] = {}
        self._modules: dict[str, OutlinedModule | None] = {}
        self._kept = 0
        self._paths: dict[tuple[str, str], str | None] = {}
        self._derived: dict[tuple[str, str, str], tuple[bool | None, frozenset[str]]] = {}
        self._homes: dict[str, tuple[str, str]] = {}
        self._dependencies: dict[str, set[str]] = {}

    # ---------------------------------------------------------------- files

    def _listing(self, folder: str) -> frozenset[str]:
        known = self._listings.get(folder)
        if known is None:
            try:
                known = frozenset(os.listdir(folder))
            except OSError:
                known = frozenset()
            self._listings[folder] = known
        return known

    def home(self, folder: str) -> tuple[str, str]:
        """The import root above a folder, and the dotted package that the folder is under it (may be empty)."""
        known = self._homes.get(folder)
        if known is None:
            parent, name = os.path.split(folder)
            if "__init__.py" in self._listing(folder) and name.isidentifier() and parent != folder:
                root, package = self.home(parent)
                known = (root, f"{package}.{name}" if package else name)
            else:
                known = (folder, "")
            self._homes[folder] = known
        return known

    def module(self, source: SourceFile) -> Module:
        """The module of a file that is linted now; its text, not what other files may have read, is what counts."""
        return self._make(source, Module)

    def done(self, module: Module) -> bool:
        """Say that a linted file's module is needed no more; whether all that was kept went with it.

        Trees and scopes are full of cycles, and the cyclic garbage collector is off during a run, so they are taken
        apart by hand: a linted file's at once, what other files asked about all together when it has grown too large
        (they may point at each other).
        """
        module.release()
        if self._kept <= KEPT_SOURCE:
            return False
        self.close()
        return True

    def keep(self, characters: int) -> None:
        """Say that so many characters of source have become trees that stay."""
        self._kept += characters

    def close(self) -> None:
        """Take all modules apart; those that are asked for again are read anew."""
        for kept in self._modules.values():
            if kept is not None:
                kept.release()
        self._modules.clear()
        self._kept = 0
        if self._installed is not None:
            self._installed.close()

    def _make(self, source: SourceFile, kind: type[_M]) -> _M:
        folder, base = os.path.split(os.path.abspath(source.path or source.filename or "stdin.py"))
        _, package = self.home(folder)
        stem = os.path.splitext(base)[0]
        is_package = stem == "__init__"
        name = package if is_package else f"{package}.{stem}" if package else stem
        module = kind(source, self, name or stem, is_package)
        if source.path:
            module.dependencies = self._dependencies.setdefault(source.path, module.dependencies)
        return module

    @property
    def listings(self) -> dict[str, frozenset[str]]:
        """The folders that were looked into for modules, and all that was in each."""
        return self._listings

    def dependencies(self, path: str) -> set[str]:
        """The other files whose content was consulted for one, directly or through another."""
        seen = {path}
        pending = [path]
        while pending:
            new = self._dependencies.get(pending.pop(), set()) - seen
            seen |= new
            pending.extend(new)
        return seen - {path}

    def _load(self, path: str) -> Module | None:
        if path in self._modules:
            return self._modules[path]
        if self._read is None:
            return None
        module: OutlinedModule | None
        try:
            module = self._make(self._read(path), OutlinedModule)
        except (OSError, *CANNOT_PARSE):
            module = None
        self._modules[path] = module
        return module

    def find(self, dotted: str, asker: Module) -> str | None:
        """The path of the file that ``import dotted`` would run, or None."""
        if not dotted or dotted.partition(".")[0] in NEVER_SEARCHED:
            return None
        folder = os.path.dirname(asker.source.path)
        root, _ = self.home(folder) if folder else ("", "")
        key = (folder, dotted)
        if key not in self._paths:
            roots = [r for r in (root, folder) if r]
            self._paths[key] = self._search(dotted, [*roots, *self.roots])
        return self._paths[key]

    def _search(self, dotted: str, roots: list[str]) -> str | None:
        parts = dotted.split(".")
        for root in dict.fromkeys(roots):
            folder = root
            for part in parts[:-1]:
                if part not in self._listing(folder):
                    break
                folder = os.path.join(folder, part)
            else:
                names = self._listing(folder)
                if parts[-1] in names and "__init__.py" in self._listing(os.path.join(folder, parts[-1])):
                    return os.path.join(folder, parts[-1], "__init__.py")
                if f"{parts[-1]}.py" in names:
                    return os.path.join(folder, f"{parts[-1]}.py")
        return None

    def imported(self, dotted: str, asker: Module) -> Module | None:
        """The module that a dotted name is, where its source is at hand; noted as a dependency of the asker."""
        if dotted == asker.name:
            return asker
        path = self.find(dotted, asker)
        if path is None or path == asker.source.path:
            return asker if path else None
        asker.dependencies.add(path)
        return self._load(path)

    # ---------------------------------------------------------------- names

    def star_binding(self, name: str, asker: Module) -> Imported | None:
        """What a module's star imports bind a name to; a package that stars in very many modules isn't searched."""
        if len(asker.stars) > STARS_FOLLOWED:
            return None
        for origin, node in reversed(asker.stars):
            if origin.partition(".")[0] in NEVER_SEARCHED:
                qualname = canonical(f"{origin}.{name}")
                if is_known_name(qualname):
                    return Imported(qualname, node)
                continue
            module = self.imported(origin, asker)
            if module is None or module is asker:
                continue
            exports = module.star_exports
            if (
                name in exports
                if exports is not None
                else not name.startswith("_") and module.binding(name) is not None
            ):
                return Imported(f"{origin}.{name}", node)
        return None

    def definition(self, dotted: str, asker: Module) -> Binding | None:
        """The class, function or variable that a dotted name leads to; an Imported where its source isn't at hand."""
        found, rest = self._lead(dotted, asker)
        if isinstance(found, Unread):
            found = found.module.own(found.name)
        if found is not None and rest:
            return self._member(found, rest)
        return found

    def leads(self, dotted: str, asker: Module) -> Binding | Unread | None:
        """The same, with the definitions of other files left unread."""
        found, rest = self._lead(dotted, asker)
        return self.definition(dotted, asker) if rest else found

    def _lead(self, dotted: str, asker: Module) -> tuple[Binding | Unread | None, list[str]]:
        """What a dotted name leads to, read no further than is needed to tell, and the parts of it behind that."""
        if dotted.partition(".")[0] in NEVER_SEARCHED:
            return Imported(canonical(dotted)), []
        known = asker.definitions.get(dotted)
        if known is None:
            before, asker.dependencies = asker.dependencies, set()
            consulted: list[Module] = []
            try:
                found, rest = self._follow(dotted, asker, consulted)
            finally:
                before |= asker.dependencies
                paths, asker.dependencies = asker.dependencies, before
            asker.definitions[dotted] = (found, rest, paths, consulted)
            return found, rest
        found, rest, paths, consulted = known
        asker.dependencies |= paths
        for module in consulted:  # what they consulted may have grown
            asker.dependencies |= module.dependencies
        return found, rest

    def _follow(self, dotted: str, asker: Module, consulted: list[Module]) -> tuple[Binding | Unread | None, list[str]]:
        origin = asker
        for _ in range(_FOLLOWED):
            parts = dotted.split(".")
            if parts[0] in NEVER_SEARCHED:
                return Imported(canonical(dotted)), []
            for cut in range(len(parts) - 1, 0, -1):
                module = self.imported(".".join(parts[:cut]), origin)
                if module is None:
                    continue
                if module.source.path == asker.source.path:  # also round a cycle of imports
                    module = asker
                bound = module.leads_to(parts[cut])
                if module is not asker:
                    consulted.append(module)
                    asker.dependencies |= {module.source.path, *module.dependencies}
                rest = parts[cut + 1 :]
                if bound is None:
                    if self.find(".".join(parts[: cut + 1]), origin) is not None and not rest:
                        return Imported(dotted), []
                    return None, []
                if isinstance(bound, Imported):
                    follow = ".".join([bound.qualname, *rest])
                    if follow == dotted:
                        return Imported(canonical(dotted)), []
                    dotted, origin = follow, module
                    break
                if isinstance(bound, Assigned) and not rest and not bound.many and bound.value is not None:
                    alias = module.dotted(bound.value)
                    if alias is not None and alias != dotted:
                        dotted, origin = alias, module
                        break
                return bound, rest
            else:
                return Imported(canonical(dotted)), []
        return None, []

    def _member(self, bound: Binding, rest: list[str]) -> Binding | None:
        if isinstance(bound, ClassInfo) and len(rest) == 1:
            method = bound.method(rest[0])
            if method is not None:
                return method
            for scope in bound.scope.children:
                if scope.name == rest[0] and isinstance(scope.node, ast.ClassDef):
                    return bound.module.class_at(scope)
        return None

    def canonical(self, dotted: str, asker: Module) -> str:
        """A dotted name with re-exports followed and torch's own aliases made one."""
        if dotted.partition(".")[0] in NEVER_SEARCHED:
            return canonical(dotted)
        found = self.leads(dotted, asker)
        return found.qualname if isinstance(found, (Imported, FunctionInfo, ClassInfo, Unread)) else dotted

    # ---------------------------------------------------------------- classes without source

    def knows_class(self, qualname: str) -> bool:
        """Whether everything about an external class's members is known."""
        return knows_external_class(qualname)

    def derives(self, dotted: str, qualname: str, asker: Module) -> bool | None:
        """Whether the class that a dotted name leads to derives from ``qualname``.

        Remembered for the whole run, so that a base is read once however many files derive from it.
        """
        if dotted.partition(".")[0] in NEVER_SEARCHED:
            return self.external_derives(canonical(dotted), qualname)
        key = (*self._home_and_rest(dotted, asker), qualname)
        if key not in self._derived:
            before, asker.dependencies = asker.dependencies, set()
            self._derived[key] = (False, frozenset())  # a class that derives from itself
            found = self.leads(dotted, asker)
            answer = None
            if isinstance(found, ClassInfo):
                answer = found.derives(qualname)
                asker.dependencies |= found.module.dependencies
            elif isinstance(found, Unread) and found.bases is not None:
                answer = bases_derive(found.bases, qualname, found.module, found.module.scope)
                asker.dependencies |= found.module.dependencies
            elif isinstance(found, Imported):
                answer = self.external_derives(found.qualname, qualname)
                if answer is None:
                    answer = self._installed_derives(found.qualname, qualname, asker)
            self._derived[key] = (answer, frozenset(asker.dependencies))
            before |= asker.dependencies
            asker.dependencies = before
        answer, consulted = self._derived[key]
        asker.dependencies |= consulted
        return answer

    def _installed_derives(self, dotted: str, qualname: str, asker: Module) -> bool | None:
        """What the source of an installed package says, where it is at hand."""
        if self._find_installed is None or self._read is None or dotted.partition(".")[0] in NEVER_SEARCHED:
            return None
        packages = self._installed
        if packages is None:
            packages = self._installed = Project(self._find_installed(), self._read)
            packages._listings = self._listings  # what was looked into is told with the rest
        nobody = Module(SourceFile("", ""), packages, "", is_package=False)
        answer = packages.derives(dotted, qualname, nobody)
        asker.dependencies |= nobody.dependencies
        packages.done(nobody)
        return answer

    def _home_and_rest(self, dotted: str, asker: Module) -> tuple[str, str]:
        """The file that a dotted name starts in and what of the name is left there; nothing is read for that."""
        parts = dotted.split(".")
        for cut in range(len(parts) - 1, 0, -1):
            path = self.find(".".join(parts[:cut]), asker)
            if path is not None:
                return path, ".".join(parts[cut:])
        return "", dotted

    def external_derives(self, base: str, qualname: str) -> bool | None:
        """Whether the external class ``base`` is or derives from ``qualname``; None where that can't be told."""
        return external_class_derives(base, qualname)
