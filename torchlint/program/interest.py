"""Which functions of a file are worth following: found from its index, so that most of most files never are.

Following code costs some hundred times what indexing it does. A function is followed for what it does itself (it
trains, evaluates, saves, traces, changes leaves in place), and those that lead to it are followed so that its
arguments are known.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterable, Iterator

from torchlint.program.index import Scope, last_name
from torchlint.program.module import Module
from torchlint.torchapi.operations import tensor_method

TRAINING = frozenset(
    [
        "backward",
        "manual_backward",
        "zero_grad",
        "clip_grad_norm_",
        "clip_grad_value_",
        "unscale_",
        "gradcheck",
        "gradgradcheck",
    ]
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

OPTIMIZERS = frozenset("Adam AdamW SGD RMSprop Adagrad NAdam RAdam Adamax Adadelta Rprop LBFGS".split())
"""Optimizers whose construction is looked at where nothing in the function trains."""

LOADING = frozenset(("load_state_dict",))
MODULE_ONLY = frozenset("eval train parameters named_parameters forward cuda to cpu half".split())
"""Methods that say of what a file holds that it is taken for a module."""
GRAD_NEVER = frozenset(("no_grad", "inference_mode"))
"""Names of what surely turns gradients off: no leaf is wrongly changed under it."""
GRAD_OFF = frozenset(("no_grad", "inference_mode", "set_grad_enabled"))
EVALUATION_NAME = re.compile(
    r"(^|_)(val|valid|validate|validation|eval|evaluate|evaluation|test|infer|inference|predict)(_|$)"
)
LEAF_WORDS = (".weight", ".bias", "requires_grad", "parameters(", "Parameter(")
"""Words without one of which a function changes no leaf that it could be told of."""

LEAF_ATTRIBUTES = ("weight", "bias")
LEAF_SPEECH = frozenset((*LEAF_ATTRIBUTES, "Parameter", "parameters", "named_parameters"))
"""Attributes that say that an expression gives a leaf."""

TRANSFORMING = frozenset("to cuda cpu double float half view reshape mul div t transpose unsqueeze expand".split())
"""Methods that give a new tensor, called on a leaf as it is made."""

NOTABLE = TRAINING | RESOLVED.keys() | OPTIMIZERS | LOADING | {"state_dict", "numpy"}
"""Names of calls without which only what happens to leaves makes a function worth following."""

LEVELS = 6
"""How many callers up a function is followed from."""


def wanted(module: Module) -> dict[Scope, bool]:
    """The scopes to follow, in document order: the module's own and functions.

    The value is whether what it calls must be followed in depth; a function that only changes leaves or loads weights
    is followed for what it does itself.
    """
    scopes = list(module.scope.walk())
    seeds: set[Scope] = set()
    alone: set[Scope] = set()
    trains = False
    text = module.source.text
    makes_leaves = "Parameter(" in text or "requires_grad" in text
    notable = NOTABLE | TRANSFORMING if makes_leaves else NOTABLE
    for scope in scopes:
        calls = scope.calls
        if not notable.isdisjoint(calls):
            if not TRAINING.isdisjoint(calls):
                seeds.add(scope)
                trains = True
                continue
            if _calls_resolved(module, scope) or (not LOADING.isdisjoint(calls) and _is_program(module)):
                seeds.add(scope)
                continue
            if (
                (not LOADING.isdisjoint(calls) and _goes_on_after_loading(scope, scopes))
                or ("state_dict" in calls and _keeps_the_best(scope))
                or (makes_leaves and _transforms_leaf(scope))
                or ("numpy" in calls and _turns_leaf_to_numpy(scope))
                or (not OPTIMIZERS.isdisjoint(calls) and _hands_over_parameters(scope))
            ):
                alone.add(scope)
                continue
        if _changes_leaves(module, scope) or (scope.name == "forward" and _breaks_backward(scope)):
            alone.add(scope)
    evaluations = [scope for scope in scopes if _evaluates(scope)] if trains or _is_program(module) else []
    callers = _callers(scopes) if seeds or alone or evaluations else {}
    seeds.update(evaluations)
    helpers = [s for s in scopes if s.is_function and s not in alone and _changes_argument(s)] if seeds or alone else []
    for scope in helpers:
        leading = [up for up in callers.get(scope, ()) if _names_leaves(module, up)]
        if leading:
            alone.update(leading)
    level = list(seeds)
    for _ in range(LEVELS):
        level = [up for scope in level for up in _leading_to(scope, callers) if up not in seeds]
        seeds.update(level)
    return {s: s in seeds for s in scopes if (s in seeds or s in alone) and (s.is_function or s.parent is None)}


def _hands_over_parameters(scope: Scope) -> bool:
    """Whether a function builds optimizers in a way that can be wrong: several, or of what isn't a call."""
    calls = [call for name in OPTIMIZERS & scope.calls.keys() for call in scope.calls[name]]
    return len(calls) > 1 or any(
        call.args and isinstance(call.args[0], ast.Attribute) and call.args[0].attr == "parameters" for call in calls
    )


def _goes_on_after_loading(scope: Scope, scopes: list[Scope]) -> bool:
    """Whether a function that loads weights does what they, or the report of their keys, matter for.

    That is: it asks for them not to be strict, keeps the report, trains, or predicts with the model, itself or in what
    it hands the model to.
    """
    calls = scope.calls
    if "step" in calls or (not MODULE_ONLY.isdisjoint(calls) and _loads_weights_only(calls.get("load", ()))):
        return True
    kept = {node.value for node in scope.of_type(ast.Assign)}  # type: ignore[attr-defined]
    for load in calls["load_state_dict"]:
        if not isinstance(load.func, ast.Attribute):
            continue
        if load in kept or len(load.args) > 1 or any(_may_be_lenient(keyword, scope) for keyword in load.keywords):
            return True
        receiver = _last_name(load.func.value)
        if receiver in ("", "super"):
            continue
        if any(receiver in other.calls for other in (scope, *_called_by(scope, scopes))):
            return True
        for call in itertools.chain.from_iterable(calls.values()):
            if call.func is not load.func and any(_last_name(argument) == receiver for argument in call.args):
                return True
            if any(_last_name(keyword.value) == receiver for keyword in call.keywords):
                return True
    return False


def _loads_weights_only(loads: Iterable[ast.Call]) -> bool:
    return any(k.arg == "weights_only" for call in loads for k in call.keywords)


def _may_be_lenient(keyword: ast.keyword, scope: Scope) -> bool:
    """Whether a keyword of load_state_dict says ``strict=False``, or names something of the file that may be False."""
    value = keyword.value
    if keyword.arg != "strict":
        return False
    if isinstance(value, ast.Name):
        arguments = scope.node.args if isinstance(scope.node, (ast.FunctionDef, ast.AsyncFunctionDef)) else None
        return arguments is None or all(a.arg != value.id for a in (*arguments.args, *arguments.kwonlyargs))
    return isinstance(value, ast.Constant) and value.value is False


def _called_by(scope: Scope, scopes: list[Scope]) -> list[Scope]:
    """The functions of the file that a function calls, and those that they call, told by name."""
    found: list[Scope] = []
    names = scope.calls.keys()
    for _ in range(2):
        new = [s for s in scopes if s.name in names and s.is_function and s not in found]
        found += new
        names = {name for each in new for name in each.calls}  # type: ignore[assignment]
    return found


def _keeps_the_best(scope: Scope) -> bool:
    """Whether a method keeps something under a name such as ``self.best_state``."""
    return any(
        isinstance(target, ast.Attribute) and "best" in target.attr.lower()
        for node in scope.of_type(ast.Assign)
        for target in node.targets  # type: ignore[attr-defined]
    )


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


def _calls_resolved(module: Module, scope: Scope) -> bool:
    """Whether a function calls what is worth following, by a name that says so only when it is looked up."""
    return any(
        module.qualname(call.func, scope) in names
        for name, names in RESOLVED.items()
        for call in scope.calls.get(name, ())
    )


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
    """Whether a function changes in place what may be a leaf, as far as the spelling tells."""
    changed = list(_changed(scope))
    if not changed or _is_decorated(scope, GRAD_NEVER):
        return False
    off = [
        (node.lineno, node.end_lineno or node.lineno)  # type: ignore[attr-defined]
        for node in (scope.of_type(ast.With) if not GRAD_NEVER.isdisjoint(scope.calls) else ())
        if any(_last_name(item.context_expr) in GRAD_NEVER for item in node.items)  # type: ignore[attr-defined]
    ]
    if off:
        changed = [node for node in changed if not any(first <= node.lineno <= last for first, last in off)]
    names: set[str] = set()
    for target in changed:
        node: ast.expr = target
        while isinstance(node, (ast.Subscript, ast.Call, ast.Attribute, ast.Starred)):
            if isinstance(node, ast.Attribute):
                if node.attr in ("data", "detach"):
                    break
                if node.attr in LEAF_ATTRIBUTES:
                    return True
                if _is_parameter_of_self(node, scope) and _names_leaves(module, scope):
                    return True
                node = node.value
            else:
                node = node.func if isinstance(node, ast.Call) else node.value
        if isinstance(node, ast.Name):
            names.add(node.id)
    return bool(names) and _holds_leaf(scope, names)


def _is_decorated(scope: Scope, names: frozenset[str]) -> bool:
    return any(_last_name(decorator) in names for decorator in getattr(scope.node, "decorator_list", ()))


def _last_name(node: ast.expr) -> str:
    """The last part of the name of what is called or named."""
    return last_name(node.func if isinstance(node, ast.Call) else node)


def _changed(scope: Scope) -> Iterator[ast.expr]:
    """What a function changes in place: operands of ``op=``, of index assignments and of methods named ``x_``."""
    for name, calls in scope.calls.items():
        if name[-1:] == "_" and name[-2:] != "__" and name[:1] != "_":
            for call in calls:
                func = call.func
                if (
                    isinstance(func, ast.Attribute)
                    and not _is_init(func.value)
                    and tensor_method(func.attr) is not None
                ):
                    yield func.value
    for node in scope.of_type(ast.AugAssign):
        yield node.target  # type: ignore[attr-defined]
    for node in scope.of_type(ast.Subscript):
        yield node.value  # type: ignore[attr-defined]


def _changes_argument(scope: Scope) -> bool:
    """Whether a function changes one of its arguments in place: its callers say what that is."""
    node = scope.node
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    names = {a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)} - {scope.self_name}
    for target in _changed(scope):
        inner = target
        while isinstance(inner, ast.Subscript):
            inner = inner.value
        if isinstance(inner, ast.Name) and inner.id in names:
            return True
    return False


def _is_parameter_of_self(node: ast.Attribute, scope: Scope) -> bool:
    if scope.owner is None or not isinstance(node.value, ast.Name) or node.value.id != scope.self_name:
        return False
    for written, inner in scope.owner.self_writes.get(node.attr, ()):
        parent = inner.statement(written)
        if (
            isinstance(parent, (ast.Assign, ast.AnnAssign))
            and parent.value is not None
            and _speaks_of_leaf(parent.value)
        ):
            return True
    return False


def _holds_leaf(scope: Scope, names: set[str]) -> bool:
    """Whether one of these local names may hold a leaf: bound to what speaks of one, or drawn from parameters()."""
    for node in scope.of_type(ast.Assign):
        if any(_binds(target, names) for target in node.targets) and _speaks_of_leaf(node.value):  # type: ignore[attr-defined]
            return True
    return any(
        _binds(node.target, names) and _speaks_of_leaf(node.iter)  # type: ignore[attr-defined]
        for node in (*scope.of_type(ast.For), *scope.of_type(ast.AsyncFor))
    )


def _binds(target: ast.expr, names: set[str]) -> bool:
    """Whether a target binds one of these names, or something in what it stands for."""
    while isinstance(target, (ast.Attribute, ast.Subscript, ast.Starred)):
        target = target.value
    if isinstance(target, ast.Name):
        return target.id in names
    return isinstance(target, (ast.Tuple, ast.List)) and any(_binds(part, names) for part in target.elts)


def _speaks_of_leaf(value: ast.expr) -> bool:
    pending: list[ast.AST] = [value]
    for node in pending:
        kind = type(node)
        if kind is ast.Constant:
            continue
        if kind is ast.Name:
            if node.id == "Parameter":  # type: ignore[attr-defined]
                return True
        elif kind is ast.Attribute:
            if node.attr in LEAF_SPEECH:  # type: ignore[attr-defined]
                return True
            pending.append(node.value)  # type: ignore[attr-defined]
        elif kind is ast.keyword and node.arg == "requires_grad":  # type: ignore[attr-defined]
            return True
        else:
            pending += ast.iter_child_nodes(node)
    return False


def _transforms_leaf(scope: Scope) -> bool:
    """Whether a leaf is moved or reshaped in the expression that makes it."""
    return any(
        isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Call) and _makes_leaf(call.func.value)
        for name in TRANSFORMING & scope.calls.keys()
        for call in scope.calls[name]
    )


def _makes_leaf(call: ast.Call) -> bool:
    func = call.func
    name = last_name(func)
    return name == "Parameter" or any(k.arg == "requires_grad" for k in call.keywords)


def _turns_leaf_to_numpy(scope: Scope) -> bool:
    """Whether ``.numpy()`` is called on what is spelt like a weight, without a detach."""
    for call in scope.calls["numpy"]:
        node: ast.expr = call.func
        while isinstance(node, (ast.Attribute, ast.Call, ast.Subscript)):
            if isinstance(node, ast.Attribute):
                if node.attr in ("detach", "data"):
                    break
                if node.attr in LEAF_ATTRIBUTES or _is_parameter_of_self(node, scope):
                    return True
            node = node.func if isinstance(node, ast.Call) else node.value
    return False


def _is_init(node: ast.expr) -> bool:
    """Whether an expression is spelt like the torch.nn.init module."""
    return last_name(node) == "init"


def _breaks_backward(scope: Scope) -> bool:
    """Whether a forward changes in place what an operation that keeps its result has made, as far as names tell."""
    if scope.owner is None:
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
    if not changed:
        return False
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
        name = last_name(value.func)
        operation = tensor_method(name)
        return operation is not None and operation.saves_output
    return False
