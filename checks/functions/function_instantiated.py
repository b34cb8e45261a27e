"""TL601 function-instantiated."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from torchlint.check import (
    Applicability,
    Check,
    ClassInfo,
    Fix,
    Module,
    ModuleCall,
    Object,
    Report,
    Scope,
    Severity,
    on,
)
from torchlint.source.edits import replace, safe

from .common import Form
from .modernized import modernized


class FunctionInstantiated(Check):
    """An autograd.Function is instantiated and the instance is called: torch raises "Legacy autograd function".

    ## Why

    Functions with instances went away in torch 1.5. The message, "Legacy autograd function with non-static forward
    method is deprecated", points the wrong way: forward is usually static already, and only the call is old.

    ## Bad

        class Square(torch.autograd.Function):
            ...

        y = Square()(x)

    ## Good

        y = Square.apply(x)

    ## Known limits

    An instance that isn't called is left alone, as is a class with a `__call__` of its own. The fix is left out where
    the constructor gets arguments: they must become arguments of `apply`, in the order of forward.
    """

    code = "TL601"
    name = "function-instantiated"
    severity = Severity.ERROR
    fixable = Applicability.SAFE
    failures = ("T-F1",)

    @on(Module)
    def check(self, module: Module, report: Report) -> None:
        """Look at calls of what calls make, and at calls of variables and attributes that hold such."""
        called = module.scope.called
        for scope in module.scope.walk():
            for call in scope.calls.get("", ()):
                self._made(module, _Use(call.func, scope, lambda: True), report)
            for use in _uses(scope, called):
                self._made(module, use, report)

    @on(ModuleCall)
    def called(self, call: ModuleCall, report: Report) -> None:
        """Instances that reach the call through helpers, containers and branches."""
        instance = call.target
        if not isinstance(instance, Object) or instance.cls is None or not instance.cls.is_autograd_function:
            return
        made, name = instance.node, instance.cls.name
        here = made is not None and made in call.module.scope.parents
        report(
            made if here and made is not None else call.node,
            f'{name}(...) makes an instance of an autograd.Function, and calling it raises "Legacy autograd '
            f'function"; use {name}.apply({", ".join(p.arg for p in Form(instance.cls).inputs)}).',
        )

    def _made(self, module: Module, use: _Use, report: Report) -> None:
        for made in _makers(use.value):
            cls = _function_class(made.func, use.scope, module)
            if cls is None or cls.method("__call__") is not None:
                continue
            only_called = use.called()
            if only_called is None:
                continue
            text = module.source.segment(made.func)
            report(
                made,
                f'{text}(...) makes an instance of an autograd.Function, and calling it raises "Legacy autograd '
                f'function"; use {text}.apply({", ".join(p.arg for p in Form(cls).inputs)}).',
                fix=_fix(module, made, cls, text) if only_called else None,
            )


def _function_class(node: ast.expr, scope: Scope, module: Module) -> ClassInfo | None:
    """The autograd.Function that a name stands for. What isn't one, nearly always, is asked for once in a run."""
    if module.is_foreign(node):  # torch offers none to be called by its name
        return None
    found: object = module.lookup(node.id, scope) if isinstance(node, ast.Name) else None
    if not isinstance(found, ClassInfo):
        dotted = module.dotted(node, scope)
        if dotted is None or module.project.derives(dotted, "torch.autograd.Function", module) is not True:
            return None
        found = module.definition(node, scope)
    return found if isinstance(found, ClassInfo) and found.is_autograd_function else None


def _fix(module: Module, made: ast.Call, cls: ClassInfo, text: str) -> Fix | None:
    """``Square()`` becomes ``Square.apply``; what an ``__init__`` keeps becomes an input."""
    if "__init__" in cls.methods:
        return safe("Pass the state to apply", *modernized(cls))
    if made.args or made.keywords:
        return None
    return safe("Use apply", replace(module.source, made, f"{text}.apply"))


@dataclass(frozen=True)
class _Use:
    """An expression whose value may be called. ``called`` tells whether it is: and never anything else, or also (None:
    it isn't)."""

    value: ast.expr | None
    scope: Scope
    called: Callable[[], bool | None]


_MAKING = (ast.Call, ast.IfExp)


def _makers(node: ast.expr | None) -> Iterator[ast.Call]:
    """The calls whose result an expression is, both arms of a condition included."""
    if isinstance(node, ast.IfExp):
        yield from _makers(node.body)
        yield from _makers(node.orelse)
    elif isinstance(node, ast.Call) and isinstance(node.func, (ast.Name, ast.Attribute)):
        yield node


def _uses(scope: Scope, called: set[str]) -> Iterator[_Use]:
    """What a scope binds to names that the file calls."""
    node = scope.node
    if isinstance(node, ast.ClassDef):
        yield from _attributes(scope, called)
    elif not isinstance(node, ast.Module) and (node.args.defaults or node.args.kw_defaults):
        yield from _defaults(scope, node)
    if scope.of_type(ast.Assign) and not called.isdisjoint(scope.stores):
        yield from _variables(scope, called)


def _making(scope: Scope) -> Iterator[ast.Assign]:
    """A scope's assignments of what calls make."""
    for node in scope.of_type(ast.Assign):
        if isinstance(node, ast.Assign) and isinstance(node.value, _MAKING):
            yield node


def _variables(scope: Scope, called: set[str]) -> Iterator[_Use]:
    """``square = Square()``, later ``square(x)`` here or in a function below."""
    for node in _making(scope):
        for target in node.targets:
            if isinstance(target, ast.Name) and target.id in called:
                yield _Use(node.value, scope, partial(_called_name, scope, target.id))


def _called_name(scope: Scope, name: str, bindings: int = 1) -> bool | None:
    """Whether a variable of a scope, bound so often, is called there or below; False where it is used otherwise too."""
    calls = {
        call.func
        for below in _seeing(scope, name)
        for call in below.calls.get(name, ())
        if isinstance(call.func, ast.Name)
    }
    uses = [node for node in ast.walk(scope.node) if isinstance(node, ast.Name) and node.id == name]
    if not calls or sum(not isinstance(node.ctx, ast.Load) for node in uses) != bindings:
        return None
    return all(node in calls for node in uses if isinstance(node.ctx, ast.Load))


def _seeing(scope: Scope, name: str) -> Iterator[Scope]:
    """The scopes in which a variable of this one is visible."""
    yield scope
    pending = list(scope.children)
    while pending:
        below = pending.pop()
        if name not in below.stores or isinstance(below.node, ast.ClassDef):
            yield below
            pending += below.children


def _defaults(scope: Scope, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> Iterator[_Use]:
    """``def block(x, act=Square()): return act(x)``."""
    arguments = node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    pairs = [
        *zip(positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    for parameter, default in pairs:
        if isinstance(default, _MAKING) and parameter.arg in scope.calls and scope.parent is not None:
            yield _Use(default, scope.parent, partial(_called_name, scope, parameter.arg, 0))


def _attributes(scope: Scope, called: set[str]) -> Iterator[_Use]:
    """``self.square = Square()`` or a class attribute, later ``self.square(x)``."""
    for name, writes in scope.self_writes.items():
        if len(writes) > 1 or name not in called:
            continue
        written, method = writes[0]
        statement = method.assigned.get(written)
        if isinstance(statement, ast.Assign) and isinstance(statement.value, _MAKING):
            yield _Use(statement.value, method, partial(_called_attribute, scope, name))
    for node in _making(scope):
        for target in node.targets:
            if isinstance(target, ast.Name) and target.id in called and target.id not in scope.self_writes:
                yield _Use(node.value, scope, partial(_called_attribute, scope, target.id))


def _called_attribute(scope: Scope, name: str) -> bool | None:
    calls = {call.func for below in scope.walk() for call in below.calls.get(name, ())}
    reads = [read for read, _ in scope.self_reads.get(name, ())]
    if not any(read in calls for read in reads):
        return None
    return all(read in calls for read in reads)
