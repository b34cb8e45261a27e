"""Which functions of a file are worth following: found from its index, so that most of most files never are.

Following code costs some hundred times what indexing it does. A function is followed for what it does itself (it
trains, evaluates, saves, traces, changes leaves in place), and those that lead to it are followed so that its
arguments are known.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchlint.program.index import Scope
from torchlint.program.module import Module
from torchlint.torchapi.operations import tensor_method

TRAINING = frozenset(
    ["backward", "manual_backward", "zero_grad", "clip_grad_norm_", "clip_grad_value_", "unscale_", "gradcheck", "gradgradcheck"]
)
"""Names of calls that only training code makes."""

RESOLVED = {
    "save": ("torch.save",),
    "trace": ("torch.jit.trace",),
    "trace_module": ("torch.jit.trace_module",),
    "script": ("torch.jit.script",),
    "export": ("torch.export.export", "torch.onnx.export"),
    "grad": ("torch.autograd.grad",),
    "quantize_dynamic": ("torch.quantization.quantize_dynamic", "torch.ao.quantization.quantize_dynamic"),
}
"""Names that say nothing before they are looked up."""

LOADING = frozenset(("load_state_dict",))
GRAD_OFF = frozenset(("no_grad", "inference_mode", "set_grad_enabled"))
EVALUATION_NAME = re.compile(
    r"(^|_)(val|valid|validate|validation|eval|evaluate|evaluation|test|infer|inference|predict)(_|$)"
)
LEAF_WORDS = (".weight", ".bias", "requires_grad", "parameters(", "Parameter(")
"""Words without one of which a function changes no leaf that it could be told of."""

LEVELS = 6
"""How many callers up a function is followed from."""


def wanted(module: Module) -> list[Scope]:
    """The scopes to follow, in document order: the module's own and functions."""
    scopes = list(module.scope.walk())
    seeds: set[Scope] = set()
    alone: set[Scope] = set()
    evaluations: list[Scope] = []
    trains = False
    for scope in scopes:
        calls = scope.calls.keys()
        if not calls.isdisjoint(TRAINING):
            seeds.add(scope)
            trains = True
        elif any(_resolves(module, scope, name) for name in calls & RESOLVED.keys()):
            seeds.add(scope)
        elif not calls.isdisjoint(LOADING) or _changes_leaves(module, scope) or _breaks_backward(scope):
            alone.add(scope)
        if _evaluates(scope):
            evaluations.append(scope)
    callers = _callers(scopes) if seeds or alone or evaluations else {}
    if evaluations and (trains or _is_program(module)):
        seeds.update(evaluations)
    for scope in list(alone):
        alone.update(up for up in callers.get(scope, ()) if _names_leaves(module, up))
    level = list(seeds)
    for _ in range(LEVELS):
        level = [up for scope in level for up in _leading_to(scope, callers) if up not in seeds]
        seeds.update(level)
    return [s for s in scopes if (s in seeds or s in alone) and (s.is_function or s.parent is None)]


def _leading_to(scope: Scope, callers: dict[Scope, list[Scope]]) -> Iterator[Scope]:
    yield from callers.get(scope, ())
    if scope.parent is not None and not scope.is_function:  # a class body or lambda
        yield scope.parent


def _callers(scopes: list[Scope]) -> dict[Scope, list[Scope]]:
    """Which scopes call a function of the file, told by name."""
    names: dict[str, list[Scope]] = {}
    for scope in scopes:
        if scope.is_function:
            name = scope.parent.name if scope.name == "__init__" and scope.parent is not None else scope.name
            names.setdefault(name, []).append(scope)
    found: dict[Scope, list[Scope]] = {}
    for scope in scopes:
        for call in scope.calls.keys() & names.keys():
            for callee in names[call]:
                found.setdefault(callee, []).append(scope)
    return found


def _is_program(module: Module) -> bool:
    """Whether the file runs something itself: under ``if __name__``, or calls of its functions at module level."""
    scope = module.scope
    return any(child.is_function and child.name in scope.calls for child in scope.children)


def _resolves(module: Module, scope: Scope, name: str) -> bool:
    return any(module.qualname(call.func, scope) in RESOLVED[name] for call in scope.calls[name])


def _evaluates(scope: Scope) -> bool:
    if not scope.is_function or scope.name.startswith("test_"):
        return False
    if EVALUATION_NAME.search(scope.name):
        return True
    return not scope.calls.keys().isdisjoint(GRAD_OFF) and bool(scope.of_type(ast.For))


def _text(module: Module, scope: Scope) -> str:
    node = scope.node
    lines = module.source.lines
    first, last = (0, len(lines)) if isinstance(node, ast.Module) else (node.lineno - 1, node.end_lineno or node.lineno)
    return "\n".join(lines[first:last])


def _names_leaves(module: Module, scope: Scope) -> bool:
    """Whether a function's text speaks of parameters."""
    text = _text(module, scope)
    return any(word in text for word in LEAF_WORDS)


def _changes_leaves(module: Module, scope: Scope) -> bool:
    """Whether a function changes tensors in place and speaks of parameters."""
    changes = any(
        name[-1:] == "_" and name[-2:] != "__" and name[:1] != "_" and any(map(_is_in_place, calls))
        for name, calls in scope.calls.items()
    )
    if not changes:
        changes = any(
            isinstance(target, ast.Subscript)
            for node in scope.of_type(ast.Assign)
            for target in node.targets  # type: ignore[attr-defined]
        ) or bool(scope.of_type(ast.AugAssign))
    return changes and _names_leaves(module, scope)


def _is_in_place(call: ast.Call) -> bool:
    func = call.func
    if not isinstance(func, ast.Attribute) or _is_init(func.value):
        return False
    return tensor_method(func.attr) is not None


def _is_init(node: ast.expr) -> bool:
    """Whether an expression is spelt like the torch.nn.init module."""
    return (node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else "") == "init"


def _breaks_backward(scope: Scope) -> bool:
    """Whether a forward changes in place what an operation that keeps its result has made, as far as names tell."""
    if scope.owner is None or scope.name != "forward":
        return False
    changed = {
        node.target.id  # type: ignore[attr-defined]
        for node in scope.of_type(ast.AugAssign)
        if isinstance(node.target, ast.Name)  # type: ignore[attr-defined]
    }
    for name, calls in scope.calls.items():
        if name[-1:] == "_" and name[-2:] != "__":
            for call in calls:
                if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name):
                    changed.add(call.func.value.id)
    for node in scope.of_type(ast.Assign):
        target = node.targets[0]  # type: ignore[attr-defined]
        value = node.value  # type: ignore[attr-defined]
        if isinstance(target, ast.Name) and target.id in changed and _keeps_result(value):
            return True
    return False


def _keeps_result(value: ast.expr) -> bool:
    if isinstance(value, ast.BinOp):
        return isinstance(value.op, (ast.Div, ast.Pow))
    if isinstance(value, ast.Call):
        name = value.func.attr if isinstance(value.func, ast.Attribute) else getattr(value.func, "id", "")
        operation = tensor_method(name)
        return operation is not None and operation.saves_output
    return False
