"""An old-style autograd.Function with state on self, written as torch calls Functions today."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchlint.check import ClassInfo, FunctionInfo, is_super_call
from torchlint.source.edits import (
    Edits,
    add_argument,
    add_decorator,
    add_element,
    delete_definition,
    insert_first,
    insert_text,
    replace,
)
from torchlint.source.layout import end_of

from .common import Form, instantiations, positional, returned


def modernized(cls: ClassInfo) -> list[Edits | None]:
    """``GradReverse(strength)(x)`` becomes ``GradReverse.apply(x, strength)``, and what ``__init__`` kept an input.

    ``forward`` takes the state behind its own inputs and keeps it on ctx, under the names that ``backward`` reads it
    by, and ``backward`` returns None for it. A None in the list: it can't be done.
    """
    form, source = Form(cls), cls.module.source
    init, forward, backward = cls.methods.get("__init__"), form.forward, form.backward
    state = _state(init) if init is not None else None
    if (
        not state
        or init is None
        or forward is None
        or backward is None
        or forward.cls is not cls
        or form.setup is not None
    ):
        return [None]
    if backward.cls is not cls or form.star or forward.node.args.defaults or forward.node.args.kwonlyargs:
        return [None]
    if forward.scope.self_name is None or backward.is_static or forward.is_static:
        return [None]
    taken = {parameter.arg for parameter in positional(forward)} | forward.scope.stores
    if taken & set(state.values()):
        return [None]
    kept = [f"{forward.scope.self_name}.{name} = {parameter}" for name, parameter in state.items()]
    parameters = ", ".join(state.values())
    edits: list[Edits | None] = [
        delete_definition(source, init.node),
        insert_text(end_of(source, positional(forward)[-1]), f", {parameters}"),
        insert_first(source, forward.node, "\n".join(kept)),
        *(add_element(source, value, ", ".join(["None"] * len(state))) for value in returned(backward)),
        *(add_decorator(source, m.node, "staticmethod", outermost=True) for m in (forward, backward)),
    ]
    return [*edits, *_applied(cls, list(state.values()))]


def _state(init: FunctionInfo) -> dict[str, str] | None:
    """What ``__init__`` keeps, by attribute, if it does nothing but keep its parameters."""
    parameters = [parameter.arg for parameter in positional(init)[1:]]
    arguments = init.node.args
    if arguments.defaults or arguments.kwonlyargs or arguments.vararg or arguments.kwarg:
        return None
    state: dict[str, str] = {}
    for statement in init.node.body:
        if isinstance(statement, ast.Expr) and _does_nothing(statement.value):
            continue
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            return None
        target, value = statement.targets[0], statement.value
        if not isinstance(target, ast.Attribute) or not isinstance(target.value, ast.Name):
            return None
        if target.value.id != init.scope.self_name or not isinstance(value, ast.Name) or value.id not in parameters:
            return None
        state[target.attr] = value.id
    return state if sorted(state.values()) == sorted(parameters) else None


def _does_nothing(value: ast.expr) -> bool:
    """Whether an expression statement is a docstring, or ``super().__init__()``."""
    if isinstance(value, ast.Constant):
        return True
    called = value.func if isinstance(value, ast.Call) and not value.args and not value.keywords else None
    return isinstance(called, ast.Attribute) and called.attr == "__init__" and is_super_call(called.value)


def _applied(cls: ClassInfo, order: list[str]) -> Iterator[Edits | None]:
    """The calls of instances as calls of ``apply``; None for an instance that is used in any other way."""
    source = cls.module.source
    if any(isinstance(n, ast.Attribute) and n.attr == "apply" and _is(n.value, cls) for n in ast.walk(cls.module.tree)):
        yield None
    init = cls.methods["__init__"]
    names = [parameter.arg for parameter in positional(init)[1:]]
    for made, scope in instantiations(cls):
        call = scope.parents.get(made)
        given = dict(zip(names, made.args, strict=False)) | {k.arg or "": k.value for k in made.keywords}
        plain = not any(isinstance(a, ast.Starred) for a in made.args) and sorted(given) == sorted(names)
        if not plain or not isinstance(call, ast.Call) or call.func is not made or call.keywords:
            yield None
            return
        yield replace(source, made, f"{source.segment(made.func)}.apply")
        yield add_argument(source, call, ", ".join(source.segment(given[name]) for name in order))


def _is(node: ast.expr, cls: ClassInfo) -> bool:
    return isinstance(node, ast.Name) and node.id == cls.name
