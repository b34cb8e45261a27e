"""TL109 module-created-in-forward."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchlint.check import (
    Check,
    ClassInfo,
    FunctionInfo,
    Imported,
    Made,
    Module,
    ModuleClass,
    Report,
    Scope,
    Severity,
    last_name,
    on,
)

from .common import methods_reached


class ModuleCreatedInForward(Check):
    """A layer with parameters is built inside `forward`: its weights are random and new at every call, and never learn.

    ## Why

    What `forward` builds did not exist when the optimizer was given the parameters, and is thrown away when the call
    returns. Where it is kept on self under an `if self.x is None`, its weights survive, but the optimizer still
    doesn't have them, and a checkpoint from before the first call doesn't either.

    ## Bad

        def forward(self, x):
            return nn.Linear(x.shape[1], 10)(x)

    ## Good

        def __init__(self):
            super().__init__()
            self.fc = nn.LazyLinear(10)

        def forward(self, x):
            return self.fc(x)

    ## Known limits

    Parameter-free modules may be built anywhere. A layer whose weights are then set from elsewhere (a hypernetwork, a
    fixed kernel) is left alone.
    """

    code = "TL109"
    name = "module-created-in-forward"
    severity = Severity.ERROR
    failures = ("X-36",)
    mentions = ("def forward",)

    @on(ModuleClass)
    def check(self, cls: ClassInfo, report: Report) -> None:
        forward = cls.methods.get("forward")
        if forward is None or not any(_layers_built_in(method) for method in methods_reached(cls, "forward")):
            return
        for method in cls.self_calls(forward):
            if method.module is not cls.module or method.name in ("__init__", "__setattr__"):
                continue
            for place in (method, *_helpers(method)):
                for call, scope in _built_in(place):
                    _report(cls, place, scope, call, report)


def _layers_built_in(method: FunctionInfo) -> bool:
    """Whether a method, or a function that it calls, builds a layer."""
    return method.name not in ("__init__", "__setattr__") and (bool(_built_in(method)) or any(_helpers(method)))


def _helpers(method: FunctionInfo) -> Iterator[FunctionInfo]:
    """The functions of the file that a method calls, that build layers and hand back none: they use what they build."""
    seen: set[ast.AST] = set()
    for scope in method.scope.walk():
        for name, calls in scope.calls.items():
            if _is_capitalised(name) or not isinstance(calls[0].func, ast.Name):
                continue
            found = method.module.lookup(name, scope)
            if not isinstance(found, FunctionInfo) or found.node in seen:
                continue
            seen.add(found.node)
            if _built_in(found) and not any(made.kind not in ("tensor", "unknown") for made in _returns(found)):
                yield found


def _returns(function: FunctionInfo) -> list[Made]:
    return [leaf for made in function.module.instances.returns(function) for leaf in made.leaves()]


def _built_in(function: FunctionInfo) -> list[tuple[ast.Call, Scope]]:
    """The calls in a function that build a layer with parameters, outermost only; worked out once."""
    memo = function.module.memo
    key = ("layers built", function.node)
    if key not in memo:
        memo[key] = [(call, scope) for scope in function.scope.walk() for call in _layers_built(function.module, scope)]
    return memo[key]  # type: ignore[no-any-return]


def _layers_built(module: Module, scope: Scope) -> list[ast.Call]:
    found: list[ast.Call] = []
    for name, calls in scope.calls.items():
        if not name or name in ("deepcopy", "copy", "type", "super"):
            continue
        look = _may_build if _is_capitalised(name) else _may_call_factory
        for call in calls:
            if not look(call, scope, module):
                continue
            made = module.instances.builds(call, scope)
            if made and all(m.kind == "module" and m.fresh and _has_new_weights(m, call, scope) for m in made):
                found.append(call)
    inner = {id(n) for call in found for n in ast.walk(call) if n is not call}
    return [call for call in found if id(call) not in inner]


def _may_build(call: ast.Call, scope: Scope, module: Module) -> bool:
    """Whether a call of something with a class's name could build a module."""
    root = call.func
    while isinstance(root, ast.Attribute):
        root = root.value
    return (
        isinstance(root, ast.Name)
        and (root is call.func or root.id != scope.self_name)
        and module.instances.may_be_module_class(call.func, scope)
    )


def _may_call_factory(call: ast.Call, scope: Scope, module: Module) -> bool:
    """Whether a call of anything else could: of a function that calls a class of modules."""
    if not isinstance(call.func, ast.Name):
        return False
    found: object = module.lookup(call.func.id, scope)
    if isinstance(found, Imported):
        found = module.definition(call.func, scope) if call in _used_as_layers(scope, module) else None
    return isinstance(found, FunctionInfo) and _calls_module_class(found)


def _calls_module_class(function: FunctionInfo) -> bool:
    memo = function.module.memo
    key = ("calls module class", function.node)
    if key not in memo:
        memo[key] = any(
            _is_capitalised(name) and function.module.instances.may_be_module_class(call.func, scope)
            for scope in function.scope.walk()
            for name, calls in scope.calls.items()
            for call in calls
        )
    return memo[key]  # type: ignore[no-any-return]


def _is_capitalised(name: str) -> bool:
    return name.lstrip("_")[:1].isupper()


def _used_as_layers(scope: Scope, module: Module) -> set[ast.expr]:
    """The calls in a scope whose results it calls: what a function of another file makes is only then worth a look."""
    memo = module.memo
    key = ("used as layers", scope)
    if key not in memo:
        used = [call.func for call in scope.calls.get("", ())]
        for target, statement in scope.assigned.items():
            name = last_name(target)
            if name in scope.calls and statement.value is not None:
                used.append(statement.value)
        memo[key] = {_receiver(made) for made in used}
    return memo[key]  # type: ignore[no-any-return]


def _receiver(node: ast.expr) -> ast.expr:
    """What a chain of methods starts with: ``make(x)`` for ``make(x).to(device)``."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Call):
        node = node.func.value
    return node


def _has_new_weights(made: Made, call: ast.Call, scope: Scope) -> bool:
    """Whether a module has parameters of its own making; those of a container are made by what it is given."""
    if made.spec is None or made.spec.kind not in ("container", "wrapper"):
        return made.home.has_parameters(made) is True
    if made.node is not call:
        return any(
            inner.kind == "module" and inner.fresh and inner.home.has_parameters(inner) is True
            for inner in made.home.contents(made)
        )
    return any(
        inner.fresh and inner.kind == "module" and inner.home.has_parameters(inner) is True
        for each in ast.walk(call)
        if isinstance(each, ast.Call) and each is not call and isinstance(each.func, (ast.Name, ast.Attribute))
        for inner in made.home.builds(each, scope)
    )


def _trains_itself(cls: ClassInfo) -> bool:
    """Whether the class makes an optimizer: its forward is an algorithm that may build what it trains."""
    return any(
        (cls.module.qualname(call.func, scope) or "").startswith("torch.optim.")
        for scope in cls.scope.walk()
        for calls in scope.calls.values()
        for call in calls
    )


def _is_kept_by_decorator(method: FunctionInfo) -> bool:
    """Whether a decorator that isn't known may keep what a method builds."""
    return any(not (name or "").startswith(("torch.", "typing.", "builtins.static")) for name in method.decorators)


def _report(cls: ClassInfo, method: FunctionInfo, scope: Scope, call: ast.Call, report: Report) -> None:
    statement = method.scope.statement(call)
    if _has_weights_set(statement, method) or _trains_itself(cls) or _is_kept_by_decorator(method):
        return
    layer = ast.unparse(call.func)
    where = "forward" if method.name == "forward" else f"{method.name}, which forward calls"
    kept = _kept_under_guard(statement, method)
    if kept:
        message = (
            f"{layer} is built in {where}, the first time: the optimizer that was made before doesn't have the weights "
            f"of self.{kept}. Build it in __init__, or use a Lazy layer."
        )
    else:
        message = (
            f"{layer} is built in {where}: its weights are random and new at every call, and the optimizer never sees "
            "them. Build it in __init__, or use a Lazy layer."
        )
    report(call, message)


def _kept_under_guard(statement: ast.stmt, method: FunctionInfo) -> str:
    """The attribute of self that the layer is kept in, where a branch decides whether to build it."""
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    if not isinstance(target, ast.Attribute) or not isinstance(target.value, ast.Name):
        return ""
    if target.value.id != method.scope.self_name:
        return ""
    guarded = method.name != "forward" or method.scope.enclosing(statement, ast.If) is not None
    return target.attr if guarded else ""


def _has_weights_set(statement: ast.stmt, method: FunctionInfo) -> bool:
    """Whether the weights of what a statement builds come from elsewhere."""
    names: set[str] = set()
    if isinstance(statement, ast.Assign):
        names = {n.id for target in statement.targets for n in ast.walk(target) if isinstance(n, ast.Name)}
        names |= {n.attr for target in statement.targets for n in ast.walk(target) if isinstance(n, ast.Attribute)}
        names.discard(method.scope.self_name or "")
    for node in ast.walk(statement):
        if isinstance(node, ast.Attribute) and node.attr in ("functional_call", "load_state_dict"):
            return True
    return any(_sets_weights(node, names) for node in ast.walk(method.node))


def _sets_weights(node: ast.AST, names: set[str]) -> bool:
    if isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Store):
        chain = _root(node)
        return bool(chain & names and chain & {"weight", "bias", "data"})
    if isinstance(node, ast.Call):
        func = node.func
        last = last_name(func)
        if last in ("load_state_dict", "copy_", "functional_call", "fill_", "vector_to_parameters", "constant_"):
            return any(_root(n) & names for n in ast.walk(node) if isinstance(n, (ast.Name, ast.Attribute)))
    return False


def _root(node: ast.expr) -> set[str]:
    """The names in an attribute chain."""
    names: set[str] = set()
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        if isinstance(node, ast.Attribute):
            names.add(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        names.add(node.id)
    return names
