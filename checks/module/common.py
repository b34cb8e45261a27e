"""What several rules about modules share: places to report at, and how classes are put together."""

from __future__ import annotations

import ast
import re

from torchlint.check import ClassInfo, FunctionInfo, Imported, Module, Position, Scope, base_derives, is_super_call
from torchlint.source.file import SourceFile

REACHED_ANOTHER_WAY = frozenset({"__dict__", "__setstate__", "__init__", "__new__", "__class__"})
"""Attributes whose mention in an ``__init__`` may mean that nn.Module's is reached."""
_FAMILY = 32
_HEADING = re.compile(r"(?:async\s+)?(?:def|class)\s+\w+")


def heading(
    source: SourceFile, node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
) -> tuple[Position, Position]:
    """The ``class Name`` or ``def name`` of a definition: its body would be too much to point at."""
    start = source.position(node.lineno, node.col_offset)
    line = source.lines[start.row - 1]
    found = _HEADING.match(line, start.column - 1)
    return start, Position(start.row, (found.end() if found else len(line)) + 1)


def is_docstring(statement: ast.stmt) -> bool:
    """Whether a statement is a bare string."""
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def is_empty(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a body does nothing: docstring, ``pass``, ``...``, a bare ``return``."""
    return all(
        is_docstring(s)
        or isinstance(s, ast.Pass)
        or (isinstance(s, ast.Return) and s.value is None)
        or (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant) and s.value.value is ...)
        for s in function.body
    )


def only_raises(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a body surely ends by raising."""
    return isinstance(function.body[-1], ast.Raise)


def is_abstract(cls: ClassInfo) -> bool:
    """Whether a class says of itself that it is only to be derived from."""
    for base in cls.node.bases:
        if cls.module.qualname(base, cls.scope.parent) in ("abc.ABC", "typing.Protocol", "typing_extensions.Protocol"):
            return True
    if any(
        k.arg == "metaclass" and cls.module.qualname(k.value, cls.scope.parent) == "abc.ABCMeta"
        for k in cls.node.keywords
    ):
        return True
    return any("abc.abstractmethod" in m.decorators for m in cls.methods.values())


def reaches_module_init(base: ast.expr, module: Module, scope: Scope) -> bool | None:
    """Whether ``<base>.__init__(...)`` leads to nn.Module's; None where super() is given what leads past it.

    ``super(nn.Module, self)`` starts behind nn.Module, and ``super(Net)`` without self is bound to nothing.
    """
    if isinstance(base, ast.Call) and is_super_call(base):
        past = len(base.args) == 1 or (base.args and module.qualname(base.args[0], scope) == "torch.nn.Module")
        return None if past else True
    found = module.definition(base, scope)
    if isinstance(found, ClassInfo) and found.is_module is False:
        inherited = found.method("__init__")
        if inherited is None:
            return not found.resolved
        return cooperates(inherited) or not found.resolved
    if isinstance(found, Imported):
        return found.qualname.partition(".")[0] not in ("builtins", "abc", "typing")
    return True


def first_super_init(init: FunctionInfo) -> ast.Call | None:
    """The first ``super().__init__(...)`` in an ``__init__``; ``super(Net, self)`` in Net counts too."""
    for call in init.scope.calls.get("__init__", ()):
        base = call.func.value if isinstance(call.func, ast.Attribute) else None
        if isinstance(base, ast.Call) and is_super_call(base):
            starts = base.args[0] if len(base.args) == 2 else None
            if not base.args or (isinstance(starts, ast.Name) and init.cls and starts.id == init.cls.name):
                return call
    return None


def cooperates(init: FunctionInfo) -> bool:
    """Whether an ``__init__`` passes the call on in any way."""
    return any(
        isinstance(node, ast.Attribute) and node.attr in REACHED_ANOTHER_WAY for node in ast.walk(init.node)
    ) or any(is_super_call(call) for call, _ in init.scope.all_calls("super"))


def is_module_class(base: ast.expr, cls: ClassInfo) -> bool:
    """Whether a base of a class is known to be a module."""
    return base_derives(base, "torch.nn.Module", cls.module, cls.scope.parent) is True


def family_here(cls: ClassInfo) -> list[ClassInfo]:
    """A class and those above it that its own file defines, nearest first; of a very large family only the nearest."""
    found = [cls]
    for each in found:
        if len(found) > _FAMILY:
            break
        found += [base for base in each.bases_here if base not in found]
    return found


def methods_reached(cls: ClassInfo, name: str) -> list[FunctionInfo]:
    """The methods of a class's family in its file that a method may call, itself included, by the names it calls.

    More than ``cls.self_calls`` tells of this file, and much cheaper: a first look at what can't be there.
    """
    here = family_here(cls)
    names = [name]
    found: list[FunctionInfo] = []
    for each in names:
        methods = [owner.methods[each] for owner in here if each in owner.methods]
        found += methods
        for method in methods:
            for scope in method.scope.walk():
                names += [n for n in scope.calls if n not in names and any(n in owner.methods for owner in here)]
    return found


def is_template(module: Module) -> bool:
    """Whether a file is one of transformers' ``modular_*.py``, from which its converter writes what is run.

    The converter unrolls ``super().__init__()`` and drops what is deleted: the file's own order means nothing.
    """
    return module.name.rpartition(".")[2].startswith("modular_")
