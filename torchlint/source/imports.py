"""How a file can spell a qualified name, by its own imports, and the import it needs where it can't yet."""

from __future__ import annotations

import ast
import itertools
import sys
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from torchlint.finding import Edit
from torchlint.source.file import SourceFile
from torchlint.source.layout import Standing, end_of_row, path_to, standing, start_of

Function = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass(frozen=True, slots=True)
class Name:
    """What to write for a qualified name, and the import that takes (no edits when the file has one)."""

    spelling: str
    edits: tuple[Edit, ...]


@dataclass(frozen=True, slots=True)
class _Binding:
    name: str
    target: str


class _Imports:
    """What a module's own imports and assignments bind, read once for all the findings of a file."""

    def __init__(self, body: list[ast.stmt]) -> None:
        self.statements = [node for node in _flat(body) if isinstance(node, (ast.Import, ast.ImportFrom))]
        self.rows = [node.lineno for node in self.statements]
        self.dumps = [ast.dump(node) for node in self.statements]
        self.head = [node for node in _head_imports(body) if not _is_future(node)]
        self.head_rows = [node.lineno for node in self.head]
        self.stored = frozenset(_module_names(body))
        self.bound = frozenset(binding.name for _, binding in _imported(self.statements))
        self.added: dict[tuple[str, int, int], tuple[Edit, ...] | None] = {}
        self._by_target: dict[str, list[tuple[int, _Binding]]] = {}
        for row, binding in _imported(self.statements):
            if binding.name not in self.stored:
                self._by_target.setdefault(binding.target, []).append((row, binding))
        self._own_names: dict[ast.stmt, frozenset[str]] = {}
        self._own_imports: dict[ast.stmt, list[tuple[int, _Binding]]] = {}

    def leading_to(self, qualified: str, row: int) -> Iterator[_Binding]:
        """The module's imports above a row through which a name can be reached."""
        parts = qualified.split(".")
        for length in range(1, len(parts) + 1):
            for at, binding in self._by_target.get(".".join(parts[:length]), ()):
                if at < row:
                    yield binding

    def of_function(self, function: ast.stmt) -> list[tuple[int, _Binding]]:
        """What the imports within a function bind, with their rows."""
        found = self._own_imports.get(function)
        if found is None:
            found = self._own_imports[function] = list(_imported(_flat(_body(function))))
        return found

    def names_of(self, function: ast.stmt) -> frozenset[str]:
        """The names that are a function's own."""
        names = self._own_names.get(function)
        if names is None:
            own = (binding.name for _, binding in self.of_function(function))
            names = self._own_names[function] = frozenset((*_stored_names(function), *own))
        return names


_read: WeakKeyDictionary[ast.Module, _Imports] = WeakKeyDictionary()


def _imports_of(source: SourceFile) -> _Imports:
    imports = _read.get(source.tree)
    if imports is None:
        imports = _read[source.tree] = _Imports(source.tree.body)
    return imports


def name_for(source: SourceFile, qualified: str, at: ast.AST) -> Name | None:
    """The spelling of ``torch.nn.ModuleList`` that works at a node: ``nn.ModuleList`` under ``from torch import nn``.

    None when the name can be neither reached nor imported without getting in the way of another name.
    """
    row: int = getattr(at, "lineno", 1)
    imports = _imports_of(source)
    functions = [place.statement for place in path_to(source, at) if isinstance(place.statement, Function)]
    functions = [function for function in functions if function is not at]
    hidden = [imports.names_of(function) for function in functions]
    local = [binding for function in functions for at_row, binding in imports.of_function(function) if at_row < row]
    module = [b for b in imports.leading_to(qualified, row) if not any(b.name in names for names in hidden)]
    spellings = [spelling for binding in (*local, *module) if (spelling := _through(binding, qualified))]
    if spellings:
        return Name(min(spellings, key=lambda spelling: (spelling.count("."), len(spelling))), ())
    for statement, bound, target in _ways_to_import(qualified):
        if not any(bound in names for names in (imports.stored, imports.bound, *hidden)):
            edits = add_import(source, statement, before=at)
            spelling = _through(_Binding(bound, target), qualified)
            return None if edits is None or spelling is None else Name(spelling, edits)
    return None


def add_import(source: SourceFile, statement: str, before: ast.AST | None = None) -> tuple[Edit, ...] | None:
    """Import something at module level: beside imports of the same package, else in its place among the imports.

    Nothing is to be done when the very import is there. ``before`` is the node that needs it.
    """
    row: int = getattr(before, "lineno", sys.maxsize)
    imports = _imports_of(source)
    above = bisect_left(imports.rows, row)
    head_above = bisect_left(imports.head_rows, row)
    key = (statement, above, head_above)
    if key not in imports.added:
        imports.added[key] = _addition(source, statement, imports.dumps[:above], imports.head[:head_above])
    return imports.added[key]


def _addition(source: SourceFile, statement: str, there: list[str], head: list[ast.stmt]) -> tuple[Edit, ...] | None:
    """The edits that import something, given the imports that are there and those that stand above all else."""
    new = ast.parse(statement).body[0]
    if ast.dump(new) in there:
        return ()
    kin = [node for node in head if _section(node) == _section(new)]
    family = [node for node in kin if _package(node) == _package(new)]
    if family or kin:
        return _among(source, family or kin, new, statement)
    earlier = [node for node in head if _section(node) < _section(new)]
    if earlier:
        # A new section is set off by a blank line; the one that follows has its own.
        return _behind(source, earlier[-1], f"{source.newline}{statement}")
    if head:
        return _in_front(source, head[0], f"{statement}{source.newline}")
    return _at_the_top(source, statement)


def _ways_to_import(qualified: str) -> Iterator[tuple[str, str, str]]:
    """Import statements that make a name reachable, with the name each binds and what that stands for."""
    parts = qualified.split(".")
    if qualified.startswith("torch.nn.functional."):
        yield "import torch.nn.functional as F", "F", "torch.nn.functional"
    elif qualified.startswith("torch.nn."):
        yield "from torch import nn", "nn", "torch.nn"
    elif len(parts) > (3 if parts[0] == "torch" else 2):
        yield f"from {'.'.join(parts[:-1])} import {parts[-1]}", parts[-1], qualified
    module = parts[0] if parts[0] == "torch" else ".".join(parts[:-1])
    if module:
        yield f"import {module}", parts[0], parts[0]
        yield f"from {'.'.join(parts[:-1])} import {parts[-1]}", parts[-1], qualified
    else:
        yield f"import {qualified}", qualified, qualified


def _through(binding: _Binding, qualified: str) -> str | None:
    if qualified == binding.target:
        return binding.name
    if qualified.startswith(f"{binding.target}."):
        return binding.name + qualified[len(binding.target) :]
    return None


def _body(function: ast.stmt) -> list[ast.stmt]:
    body: list[ast.stmt] = function.body  # type: ignore[attr-defined]
    return body


def _flat(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a scope, those in branches included, but not those of functions, classes or type checking."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.If):
            if "TYPE_CHECKING" not in ast.dump(statement.test):
                yield from _flat(statement.body)
            yield from _flat(statement.orelse)
        elif isinstance(statement, ast.Try):
            yield from _flat([*statement.body, *statement.orelse, *statement.finalbody])
        elif isinstance(statement, (ast.With, ast.AsyncWith, ast.For, ast.AsyncFor, ast.While)):
            yield from _flat(statement.body)


def _imported(statements: Iterable[ast.stmt]) -> Iterator[tuple[int, _Binding]]:
    """What imports bind, with their rows."""
    for statement in statements:
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                root = alias.name.split(".")[0]
                yield statement.lineno, _Binding(alias.asname, alias.name) if alias.asname else _Binding(root, root)
        elif isinstance(statement, ast.ImportFrom) and not statement.level:
            for alias in statement.names:
                if alias.name != "*":
                    yield statement.lineno, _Binding(alias.asname or alias.name, f"{statement.module}.{alias.name}")


def _module_names(body: Iterable[ast.stmt]) -> Iterator[str]:
    """The names a module binds other than by import: an import of the same name can't be relied on."""
    for statement in _flat(body):
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield statement.name
        elif isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.For, ast.AsyncFor, ast.With)):
            targets = ast.walk(statement) if not hasattr(statement, "body") else _header_nodes(statement)
            yield from (node.id for node in targets if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))


def _header_nodes(statement: ast.stmt) -> Iterator[ast.AST]:
    for name, value in ast.iter_fields(statement):
        if name not in ("body", "orelse"):
            for node in value if isinstance(value, list) else [value]:
                if isinstance(node, ast.AST):
                    yield from ast.walk(node)


def _stored_names(function: ast.stmt) -> Iterator[str]:
    """The names that are a function's own: parameters and whatever it assigns; its imports are read elsewhere."""
    for node in ast.walk(function):
        if isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and node is not function:
            yield node.name


# ---------------------------------------------------------------------------------------------------- where it goes


def _head_imports(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The module-level imports that stand above the first class or function."""
    for statement in body:
        if isinstance(statement, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            return
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            yield statement


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def _package(node: ast.stmt) -> str:
    if isinstance(node, ast.ImportFrom):
        return "." * node.level if node.level else (node.module or "").split(".")[0]
    assert isinstance(node, ast.Import)
    return node.names[0].name.split(".")[0]


def _section(node: ast.stmt) -> int:
    """Standard library, then packages, then the project's relative imports, as isort and Ruff order them."""
    package = _package(node)
    if package.startswith("."):
        return 2
    return 0 if package in sys.stdlib_module_names else 1


def _order(node: ast.stmt) -> tuple[bool, str, str]:
    """Plain imports before from-imports, then by module and first name."""
    assert isinstance(node, (ast.Import, ast.ImportFrom))
    first = node.names[0].name.lower()
    if isinstance(node, ast.ImportFrom):
        return True, (node.module or "").lower(), first
    return False, first, ""


def _among(source: SourceFile, neighbours: list[ast.stmt], new: ast.stmt, statement: str) -> tuple[Edit, ...] | None:
    """Into the alphabetical order of its neighbours where they keep it, else behind them."""
    in_order = all(_order(a) <= _order(b) for a, b in itertools.pairwise(neighbours))
    follower = next((node for node in neighbours if _order(node) > _order(new)), None)
    if in_order and follower is not None:
        return _in_front(source, follower, statement)
    return _behind(source, neighbours[-1], statement)


def _behind(source: SourceFile, node: ast.stmt, text: str) -> tuple[Edit, ...] | None:
    if standing(source, node) is None:
        return None
    place = end_of_row(source, node.end_lineno or node.lineno)
    return (Edit(place, place, source.newline + text),)


def _in_front(source: SourceFile, node: ast.stmt, text: str) -> tuple[Edit, ...] | None:
    if standing(source, node) is not Standing.OWN_LINE:
        return None
    place = start_of(source, node)
    return (Edit(place, place, text + source.newline),)


def _at_the_top(source: SourceFile, statement: str) -> tuple[Edit, ...] | None:
    """Into a file without imports: behind its docstring and future imports, else in front of its first statement."""
    body = source.tree.body
    preamble = [node for index, node in enumerate(body) if _is_future(node) or (not index and _is_docstring(node))]
    if preamble:
        return _behind(source, preamble[-1], f"{source.newline}{statement}")
    return _in_front(source, body[0], f"{statement}{source.newline}") if body else None


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
