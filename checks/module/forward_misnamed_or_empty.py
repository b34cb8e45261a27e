"""TL111 forward-misnamed-or-empty."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchlint.check import Check, ClassInfo, FunctionInfo, Module, ModuleClass, Report, Scope, Severity, on

from .common import heading, is_abstract, is_empty, is_template, only_raises

_MISSPELT_FORWARD = frozenset(
    {
        *("foward", "forwad", "forwrd", "foraward", "fordward", "forwward", "forwars", "froward", "farward", "forwar"),
        *("forwared", "forrward", "fowrard", "forwardd", "orward", "forwaard", "fwd_pass", "forword", "forwarrd"),
    }
)
"""Nobody means these."""
_NEAR_FORWARD = frozenset(
    {*_MISSPELT_FORWARD, "forwards", "Forward", "FORWARD", "call", "__forward__", "__forward", "_forward_", "forward_"}
)
"""Names that may be meant, unless the module is called."""
_MISSPELT_INIT = frozenset(
    {
        *("_init_", "__int__", "__init", "_init__", "__init_", "__inti__", "__iint__", "__initt__", "__inint__"),
        *("__ini__", "__intit__", "__nit__", "__innit__", "__init___", "___init__", "__Init__"),
    }
)


class ForwardMisnamedOrEmpty(Check):
    """A module has no `forward` to run: the method has another name, returns nothing, or `__init__` is misspelt.

    Calling it raises NotImplementedError ("Module [Net] is missing the required "forward" function"), or gives None.

    ## Why

    `nn.Module` calls the method named `forward`; one named `foward`, `forwards` or (as in Keras) `call` is never run,
    nor is one that its indentation puts inside `__init__`.
    A `forward` without a `return` hands None to the loss. A constructor named `_init_` is never run either, and the
    layers it would make don't exist.

    ## Bad

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(3, 1)

            def foward(self, x):
                return self.fc(x)

    ## Good

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(3, 1)

            def forward(self, x):
                return self.fc(x)

    ## Known limits

    Names that could be meant (`call`, `forwards`) are reported only where an object of the class is called in the same
    file, and an empty `forward` only where the result of such a call is used.
    """

    code = "TL111"
    name = "forward-misnamed-or-empty"
    severity = Severity.ERROR
    failures = ("X-37",)
    mentions = ("def ",)

    @on(ModuleClass)
    def check(self, cls: ClassInfo, report: Report) -> None:
        source = cls.module.source
        for method in _misspelt_inits(cls):
            report(
                heading(source, method.node),
                f"{cls.name}.{method.name} is not __init__: Python never calls it, so what it sets up doesn't exist.",
            )
        forward = cls.methods.get("forward")
        if forward is None:
            self._check_missing(cls, report)
        elif _returns_nothing(forward) and not is_abstract(cls) and any(_calls_of(cls)):
            report(
                heading(source, forward.node),
                f"{cls.name}.forward returns nothing on any path: the result of calling it is None.",
            )

    def _check_missing(self, cls: ClassInfo, report: Report) -> None:
        near = [method for name, method in cls.methods.items() if name in _NEAR_FORWARD]
        nested = _nested_forward(cls)
        if not (near or nested) or cls.method("forward") is not None or not _has_no_forward(cls):
            return
        if nested is not None:
            report(
                heading(cls.module.source, nested.node),
                f"This forward stands inside {cls.name}.__init__, so {cls.name} has none and calling it raises "
                "NotImplementedError. Indent it like __init__.",
            )
            return
        method = near[0]
        if method.name not in _MISSPELT_FORWARD and not any(True for _ in _calls_of(cls)):
            return
        report(
            heading(cls.module.source, method.node),
            f"{cls.name} has no forward, only {method.name}: calling the module raises NotImplementedError. Rename it "
            "to forward.",
        )


def _nested_forward(cls: ClassInfo) -> FunctionInfo | None:
    """A forward that slipped into ``__init__`` by its indentation: defined there and never used."""
    init = cls.methods.get("__init__")
    for child in init.scope.children if init is not None else ():
        if child.name == "forward" and child.is_function and init is not None:
            function = cls.module.function(child)
            takes_self = bool(function.parameters) and function.parameters[0].arg == init.scope.self_name
            used = any(isinstance(n, ast.Name) and n.id == "forward" for n in ast.walk(init.node))
            return function if takes_self and not used else None
    return None


def _misspelt_inits(cls: ClassInfo) -> Iterator[FunctionInfo]:
    for name, method in cls.methods.items():
        if name not in _MISSPELT_INIT or "__init__" in cls.methods:
            continue
        if name == "__int__" and len(method.parameters) < 2 and not any(method.scope.all_calls("super")):
            continue  # int(module)
        if not cls.scope.self_reads.get(name) and not any(True for _ in cls.module.scope.all_calls(name)):
            yield method


def _has_no_forward(cls: ClassInfo) -> bool:
    """Whether no class above has a forward or another way to be called, and none is set as an attribute."""
    if cls.method("__call__") is not None or cls.method("__getattr__") is not None:
        return False
    for base in (cls, *cls.ancestors("forward")):
        if "forward" in base.class_attributes or "forward" in base.written_attributes:
            return False
    return all(
        base == "torch.nn.Module" or (base or "").partition(".")[0] in ("builtins", "abc", "typing")
        for base in cls.lineage
        if base is None or isinstance(base, str)
    )


def _returns_nothing(forward: FunctionInfo) -> bool:
    """Whether a forward does something and hands nothing back."""
    if is_template(forward.module):
        return False  # super().forward(...) stands for the base's body there
    if is_empty(forward.node) or only_raises(forward.node):
        return False
    returns = forward.scope.of_type(ast.Return)
    if any(r.value is not None and not _is_none(r.value) for r in returns):  # type: ignore[attr-defined]
        return False
    generates = forward.scope.of_type(ast.Yield) or forward.scope.of_type(ast.YieldFrom)
    return not generates and not _never_ends(forward.node.body) and "abc.abstractmethod" not in forward.decorators


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _never_ends(body: list[ast.stmt]) -> bool:
    """Whether a body raises on every path."""
    last = body[-1]
    if isinstance(last, ast.If):
        return bool(last.orelse) and _never_ends(last.body) and _never_ends(last.orelse)
    return isinstance(last, ast.Raise)


def _calls_of(cls: ClassInfo) -> Iterator[bool]:
    """Every call of an object of this class in its file; whether the result is used."""
    module: Module = cls.module
    for scope in module.scope.walk():
        for calls in scope.calls.values():
            for call in calls:
                if _may_be_object(call.func) and _is_object_of(cls, call.func, scope, module):
                    parent = scope.parents.get(call)
                    yield not isinstance(parent, ast.Expr)


def _may_be_object(func: ast.expr) -> bool:
    """Whether what is called could be an object, by its looks: not a class, not a function of a module."""
    if isinstance(func, ast.Name):
        return not func.id[:1].isupper()
    return isinstance(func, (ast.Attribute, ast.Call, ast.Subscript))


def _is_object_of(cls: ClassInfo, func: ast.expr, scope: Scope, module: Module) -> bool:
    if isinstance(func, ast.Attribute) and module.dotted(func, scope) is not None:
        return False
    found = module.instances.makes(func, scope)
    return any(made.kind == "module" and made.cls is not None and made.cls.node is cls.node for made in found)
