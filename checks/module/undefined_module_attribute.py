"""TL106 undefined-module-attribute."""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Sequence

from torchlint.check import (
    AttributeUse,
    Check,
    ClassInfo,
    FunctionInfo,
    Module,
    ModuleClass,
    Report,
    Scope,
    Severity,
    module_class,
    on,
)

from .common import family_here, is_template

_DYNAMIC = ("__getattr__", "__getattribute__", "__setattr__", "__slots__", "__setstate__")
_HARMLESS = frozenset({"super", "__init__", "hasattr", "getattr", "isinstance", "type", "id", "str", "print", "len"})
_SET_BY_FRAMEWORKS = frozenset({"_gradient_checkpointing_func", "_hf_hook", "_is_hf_initialized"})
"""What transformers, diffusers and accelerate set on the modules of a model from outside."""
_NAMED = frozenset({"register_buffer", "register_parameter", "add_module", "register_module", "setattr", "__setattr__"})


class UndefinedModuleAttribute(Check):
    """`forward` reads an attribute that nothing defines: it raises "'Net' object has no attribute 'fc3'".

    ## Why

    A misspelt or forgotten layer isn't noticed until `forward` runs. An attribute that `__init__` makes in one branch
    only fails in the configurations that take the other one.

    ## Bad

        def __init__(self, use_norm=True):
            super().__init__()
            self.fc1 = nn.Linear(3, 3)
            if use_norm:
                self.norm = nn.LayerNorm(3)

        def forward(self, x):
            return self.norm(self.fc_1(x))

    ## Good

        def __init__(self, use_norm=True):
            super().__init__()
            self.fc1 = nn.Linear(3, 3)
            self.norm = nn.LayerNorm(3) if use_norm else nn.Identity()

        def forward(self, x):
            return self.norm(self.fc1(x))

    ## Known limits

    Only classes are judged whose bases are all known, that have no `__getattr__` and set no attribute under a computed
    name. A class that others in the file derive from may read what those define. For an attribute that is made in one
    branch only, `forward` itself must read it without any condition.
    """

    code = "TL106"
    name = "undefined-module-attribute"
    severity = Severity.ERROR
    failures = ("T-D4",)
    mentions = ("def forward",)

    @on(ModuleClass)
    def check(self, cls: ClassInfo, report: Report) -> None:
        forward = cls.methods.get("forward")
        if forward is None:
            return
        missing, branched = _not_defined_here(cls), _set_in_branches(cls, forward)
        if not (missing or branched) or is_template(cls.module) or not _is_closed(cls):
            return
        defined = [_defined_by(base) for base in cls.mro if isinstance(base, ClassInfo)]
        if None in defined:
            return
        known = [names for names in (*defined, _set_from_outside(cls.module)) if names is not None]
        missing = {name for name in missing if not any(name in names for names in known)}
        if missing:
            self._check_missing(cls, forward, missing, known, report)
        for name, read in branched:
            if _is_set_nowhere_else(cls, name):
                report(
                    read,
                    f"self.{name} is set in one branch of __init__ only, and forward reads it in any case: where the "
                    f"other branch is taken it will raise \"'{cls.name}' object has no attribute '{name}'\".",
                )

    def _check_missing(
        self, cls: ClassInfo, forward: FunctionInfo, missing: set[str], known: list[set[str]], report: Report
    ) -> None:
        told: set[str] = set()
        for method in cls.self_calls(forward):
            if method.module is not cls.module or method.cls is None:
                continue
            for name, reads in method.cls.scope.self_reads.items():
                if name not in missing or name in told or _is_everyones(cls, name):
                    continue
                for node, scope in reads:
                    use = AttributeUse(node, scope, method.scope)
                    if _is_within(scope, method) and not _is_guarded(use, cls):
                        told.add(name)
                        report(node, _message(cls, name, known))
                        break


def _message(cls: ClassInfo, name: str, known: list[set[str]]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, sorted(set().union(*known)), n=1, cutoff=0.75)
    hint = f"; did you mean self.{near[0]}?" if near else "."
    return f"Nothing defines self.{name} in {cls.name} or its bases: forward will raise AttributeError{hint}"


# ---------------------------------------------------------------------------------------------------- definitions


def _not_defined_here(cls: ClassInfo) -> set[str]:
    """The attributes that methods read and that neither nn.Module nor the classes of this file define.

    Most classes read none: only for the others is it worth the price to ask what their bases elsewhere define.
    """
    here = family_here(cls)
    names = {name for each in here for name in each.scope.self_reads}
    for each in here:
        names -= each.written_attributes.keys()
        names -= each.scope.stores
    return {name for name in names if not _is_every_modules(name)}


def _is_closed(cls: ClassInfo) -> bool:
    """Whether every attribute that an instance can have is in sight."""
    if cls in cls.module.subclasses or any(k.arg == "metaclass" for k in cls.node.keywords):
        return False
    for decorator in cls.node.decorator_list:
        name = cls.module.qualname(decorator.func if isinstance(decorator, ast.Call) else decorator, cls.scope.parent)
        if name is None or not name.startswith(("torch.", "dataclasses.", "typing.")):
            return False
    return cls.resolved


def _defined_by(cls: ClassInfo) -> set[str] | None:
    """The names that a class's own code defines on its instances; None where some are computed."""
    memo = cls.module.memo
    key = ("defined", cls.node)
    if key not in memo:
        memo[key] = _find_defined(cls)
    return memo[key]  # type: ignore[no-any-return]


def _find_defined(cls: ClassInfo) -> set[str] | None:
    names = {*cls.methods, *cls.class_attributes, *cls.written_attributes, *(c.name for c in cls.scope.children)}
    own = cls.methods.keys() | cls.class_attributes.keys()
    if any(name in own for name in _DYNAMIC) or cls.scope.self_reads.get("__dict__"):
        return None
    if any(cls.scope.all_calls("vars")) or cls.module.instances.fills(cls.scope).get("_modules"):
        return None
    for method in _NAMED:
        for call, _ in cls.scope.all_calls(method):
            key = _key(call)
            if key is None:
                return None
            names.add(key)
    handed = _set_by_functions(cls)
    return None if handed is None else names | handed


def _set_by_functions(cls: ClassInfo) -> set[str] | None:
    """The names under which functions that are given self may set something; None where they can't be told."""
    names: set[str] = set()
    for scope in cls.scope.walk():
        if scope.owner is not cls.scope or scope.self_name is None:
            continue
        for last, calls in scope.calls.items():
            if last in _NAMED or last in _HARMLESS or last[:1].isupper():
                continue
            for call in calls:
                given = any(_is_self(argument, scope.self_name) for argument in call.args)
                if given and _may_set_attributes(call, last, scope, cls):
                    keys = {a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)}
                    if not keys:
                        return None
                    names |= keys
    return names


def _may_set_attributes(call: ast.Call, last: str, scope: Scope, cls: ClassInfo) -> bool:
    """Whether a call that is given self may set attributes on it."""
    if isinstance(call.func, ast.Attribute) and (_is_self(call.func.value, scope.self_name) or cls.method(last)):
        return False  # a method of the class, which is read anyway
    if (cls.module.qualname(call.func, scope) or "").startswith(("builtins.", "torch.")):
        return False
    found = cls.module.definition(call.func, scope)
    return not isinstance(found, FunctionInfo) or _sets_attributes(found)


def _sets_attributes(function: FunctionInfo) -> bool:
    return any(
        isinstance(target, ast.Attribute) for scope in function.scope.walk() for target in scope.assigned
    ) or any(any(function.scope.all_calls(name)) for name in _NAMED)


def _key(call: ast.Call) -> str | None:
    """The name under which a call registers something, None where it is computed."""
    is_function = isinstance(call.func, ast.Name)
    position = 1 if is_function else 0
    key = call.args[position] if len(call.args) > position else None
    if key is None:
        key = next((k.value for k in call.keywords if k.arg == "name"), None)
    return key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else None


def _set_from_outside(module: Module) -> set[str]:
    """The attributes that the file sets on anything else than self: one of these may be the module."""
    memo = module.memo
    if "stored attributes" not in memo:
        names: set[str] = set()
        for scope in module.scope.walk():
            for target in scope.assigned:
                for part in target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]:
                    if isinstance(part, ast.Attribute) and not _is_self(part.value, scope.self_name):
                        names.add(part.attr)
            for call in scope.calls.get("setattr", ()):
                key = _key(call)
                if key is not None:
                    names.add(key)
        memo["stored attributes"] = names
    return memo["stored attributes"]  # type: ignore[no-any-return]


def _is_self(node: ast.expr, self_name: str | None) -> bool:
    return isinstance(node, ast.Name) and node.id == self_name


def _is_every_modules(name: str) -> bool:
    """Whether every module has the attribute."""
    spec = module_class("torch.nn.Module")
    return name.startswith("__") or name in _SET_BY_FRAMEWORKS or (spec is not None and spec.has_attribute(name))


def _is_everyones(cls: ClassInfo, name: str) -> bool:
    """Whether an external base has the attribute."""
    specs = [module_class(base) for base in cls.mro if isinstance(base, str)]
    return any(spec is not None and spec.has_attribute(name) for spec in specs)


# ---------------------------------------------------------------------------------------------------- reads


def _is_within(scope: Scope, method: FunctionInfo) -> bool:
    return any(each is scope for each in method.scope.walk())


def _is_guarded(use: AttributeUse, cls: ClassInfo) -> bool:
    """Whether something asks first if the attribute is there, or catches that it isn't."""
    for name in ("hasattr", "getattr"):
        for call, _ in cls.scope.all_calls(name):
            if len(call.args) > 1 and isinstance(call.args[1], ast.Constant) and call.args[1].value == use.node.attr:
                return True
    up = use.method.enclosing(use.node, ast.Try)
    while up is not None:
        if isinstance(up, ast.Try) and any(_catches_missing(handler) for handler in up.handlers):
            return True
        up = use.method.enclosing(up, ast.Try)
    return False


def _catches_missing(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    return any(
        isinstance(n, ast.Name) and n.id in ("AttributeError", "Exception", "BaseException")
        for n in ast.walk(handler.type)
    )


def _is_unconditional(node: ast.Attribute, forward: FunctionInfo) -> bool:
    """Whether forward reads the attribute whatever happens: under no condition, and behind no early exit."""
    conditions = (ast.If, ast.IfExp, ast.BoolOp, ast.Try, ast.While, ast.For, ast.Match, ast.comprehension, ast.Lambda)
    if forward.scope.enclosing(node, *conditions) is not None:
        return False
    for statement in forward.node.body:
        if statement.lineno >= node.lineno:
            break
        if any(isinstance(n, (ast.Return, ast.Raise)) for n in ast.walk(statement)):
            return False
    return not any(isinstance(n, ast.Assert) and n.lineno < node.lineno for n in forward.node.body)


def _set_in_branches(cls: ClassInfo, forward: FunctionInfo) -> list[tuple[str, ast.Attribute]]:
    """The attributes that one branch of ``__init__`` alone sets, and the read in ``forward`` that always happens."""
    init = cls.methods.get("__init__")
    if init is None:
        return []
    found: list[tuple[str, ast.Attribute]] = []
    always = set(init.node.body)
    for name, reads in cls.scope.self_reads.items():
        writes = cls.scope.self_writes.get(name, ())
        if len(writes) != 1 or writes[0][1] is not init.scope or init.scope.assigned.get(writes[0][0]) in always:
            continue
        read = next((node for node, scope in reads if scope is forward.scope), None)
        if read is None or not _is_at_top(read, forward.node.body) or not _is_in_one_branch(writes[0][0], init.scope):
            continue
        if _is_unconditional(read, forward) and not _sets_always(init.node.body, name, cls, init):
            found.append((name, read))
    return found


def _is_at_top(read: ast.Attribute, body: list[ast.stmt]) -> bool:
    """Whether a read may stand in no condition, by the statement of the body that holds it."""
    index = bisect_right(body, read.lineno, key=lambda statement: statement.lineno)
    return index > 0 and not isinstance(body[index - 1], (ast.If, ast.Try, ast.While, ast.For, ast.Match))


def _is_in_one_branch(write: ast.Attribute, init: Scope) -> bool:
    branch = init.enclosing(write, ast.If)
    if not isinstance(branch, ast.If):
        return False
    outer = init.parents.get(branch)
    return not (isinstance(outer, ast.If) and branch in outer.orelse)  # elif: one of several cases


def _is_set_nowhere_else(cls: ClassInfo, name: str) -> bool:
    """Whether nothing but one place of ``__init__`` sets or defines an attribute, in this class or above."""
    if name in cls.methods or name in cls.class_attributes or name in _set_from_outside(cls.module):
        return False
    for base in cls.ancestors():
        if name in base.written_attributes or name in base.methods or name in base.class_attributes:
            return False
    for call, _ in cls.module.instances.registrations(cls):
        if _key(call) in (name, None):
            return False
    if _is_every_modules(name):
        return False
    for use_name in ("hasattr", "getattr", "delattr"):
        for call, _ in cls.scope.all_calls(use_name):
            if any(isinstance(a, ast.Constant) and a.value == name for a in call.args):
                return False
    return True


def _sets_always(body: Sequence[ast.stmt], name: str, cls: ClassInfo, init: FunctionInfo) -> bool:
    """Whether every path through statements sets the attribute, leaves by an exception, or may do so unseen."""
    return any(_sets(statement, name, cls, init) for statement in body)


def _sets(node: ast.stmt, name: str, cls: ClassInfo, init: FunctionInfo) -> bool:
    if isinstance(node, ast.If):
        return _sets_always(node.body, name, cls, init) and _sets_always(node.orelse, name, cls, init)
    if isinstance(node, (ast.Raise, ast.Return)):
        return True
    if isinstance(node, ast.Assert):
        return isinstance(node.test, ast.Constant) and not node.test.value
    return any(_stores(each, name, init) for each in ast.walk(node))


def _stores(node: ast.AST, name: str, init: FunctionInfo) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and node.attr == name
        and isinstance(node.ctx, ast.Store)
        and _is_self(node.value, init.scope.self_name)
    )
