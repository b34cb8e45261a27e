"""TL114 layer-list-repeats-one-instance."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchlint.check import Applicability, Check, Fix, Made, Module, Report, Scope, Severity, on
from torchlint.source.edits import add_import, replace, unsafe

_CONTAINERS = ("ModuleList", "Sequential", "ModuleDict")
_ON_PURPOSE = re.compile(
    r"(?<![a-z])(un)?(tie[sd]?|tying|tied|shar(e|ed|es|ing)|reus(e|ed|es|ing)|recurrent|recursive|recurs)(?![a-z])",
    re.IGNORECASE,
)
_COPIES = frozenset({"copy.deepcopy", "copy.copy"})


class LayerListRepeatsOneInstance(Check):
    """A list of layers holds one layer several times: the layers share their weights, and depth adds nothing.

    ## Why

    `[layer] * 3` is a list of three references to one object. `nn.ModuleList` and `nn.Sequential` keep it as it is:
    `parameters()` counts the weights once, every "layer" computes the same function, and the gradients add up.

    ## Bad

        self.layers = nn.ModuleList([Block(width)] * depth)

    ## Good

        self.layers = nn.ModuleList([Block(width) for _ in range(depth)])

    ## Known limits

    Parameter-free layers may be repeated. Where the code says that weights are shared (a name or comment with "tied",
    "shared", "reuse") nothing is reported. The fix gives every layer weights of its own: it changes the model, and
    checkpoints of it.
    """

    code = "TL114"
    name = "layer-list-repeats-one-instance"
    severity = Severity.ERROR
    fixable = Applicability.UNSAFE
    failures = ("X-36",)

    @on(Module)
    def check(self, module: Module, report: Report) -> None:
        containers = [found for name in _CONTAINERS for found in module.scope.all_calls(name)]
        if not containers:
            return
        for call, scope in containers:
            if (module.qualname(call.func, scope) or "").startswith("torch.nn."):
                for node, made in _repeated(call, scope, module):
                    if not _is_on_purpose(node, scope, module):
                        self._report(node, made, module, report)
        for method in ("append", "insert"):
            for call, scope in module.scope.all_calls(method):
                element = call.args[-1] if call.args else None
                for node, made in _appended_in_loop(call, element, scope, module):
                    if _is_layer_list(call, scope, module) and not _is_on_purpose(node, scope, module):
                        self._report(node, made, module, report)

    def _report(self, node: ast.AST, made: Made, module: Module, report: Report) -> None:
        what = f"one {made.name}" if made.name else "one module"
        report(
            node,
            f"This repeats {what}: all of these layers share its weights. Build one for each.",
            fix=_one_each(node, module),
        )


def _is_layer_list(call: ast.Call, scope: Scope, module: Module) -> bool:
    """Whether what a call of ``append`` appends to is one of torch's containers."""
    if not isinstance(call.func, ast.Attribute):
        return False
    found = module.instances.makes(call.func.value, scope)
    return bool(found) and all(m.kind == "module" and m.spec is not None and m.spec.kind == "container" for m in found)


def _repeated(call: ast.Call, scope: Scope, module: Module) -> Iterator[tuple[ast.AST, Made]]:
    """Where a container's arguments hold one module with parameters several times."""
    for argument in call.args:
        value = argument.value if isinstance(argument, ast.Starred) else argument
        yield from _repeats(value, scope, module)
    yield from _named_twice(call.args, scope, module)


def _repeats(node: ast.expr, scope: Scope, module: Module) -> Iterator[tuple[ast.AST, Made]]:
    instances = module.instances
    if isinstance(node, ast.Name):
        yield from _appended(node, scope, module)
        for value in instances.values_of(node, scope):
            if not isinstance(value, ast.Name):
                yield from _repeats(value, scope, module)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        for side in (node.left, node.right):
            if isinstance(side, (ast.List, ast.Tuple)):
                made = _with_weights(side.elts, scope, module)
                if made is not None:
                    yield node, made
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        yield from _repeats(node.left, scope, module)
        yield from _repeats(node.right, scope, module)
    elif isinstance(node, ast.Call):
        name = module.qualname(node.func, scope)
        if name == "itertools.repeat" and node.args:
            made = _with_weights(node.args[:1], scope, module)
            if made is not None:
                yield node, made
        elif name in ("builtins.list", "builtins.tuple") and node.args:
            yield from _repeats(node.args[0], scope, module)
    elif isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        yield from _same_each_time(node, scope, module)
    elif isinstance(node, (ast.List, ast.Tuple)):
        yield from _named_twice(node.elts, scope, module)
        for element in node.elts:
            if isinstance(element, ast.Starred):
                yield from _repeats(element.value, scope, module)


def _same_each_time(
    node: ast.ListComp | ast.GeneratorExp, scope: Scope, module: Module
) -> Iterator[tuple[ast.AST, Made]]:
    """``[layer for _ in range(n)]``, with a layer that was built before."""
    bound = {n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}
    element = node.elt
    if (
        isinstance(element, (ast.Name, ast.Attribute))
        and not _names(element) & bound
        and not any(g.ifs for g in node.generators)
    ):
        made = _with_weights([element], scope, module)
        if made is not None and not _is_self_attribute_of_many(element):
            yield node, made


def _is_self_attribute_of_many(element: ast.expr) -> bool:
    return isinstance(element, ast.Attribute) and not isinstance(element.value, ast.Name)


def _names(node: ast.expr) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _named_twice(elements: list[ast.expr], scope: Scope, module: Module) -> Iterator[tuple[ast.AST, Made]]:
    seen: set[str] = set()
    for element in elements:
        if not isinstance(element, ast.Name):
            continue
        if element.id in seen:
            made = _with_weights([element], scope, module)
            if made is not None and made.name != "PReLU":
                yield element, made
        seen.add(element.id)


def _appended(node: ast.Name, scope: Scope, module: Module) -> list[tuple[ast.AST, Made]]:
    """One layer, built before a loop, that the loop appends to the list each time; worked out once for a list."""
    key = ("appended", scope, node.id)
    if key not in module.memo:
        module.memo[key] = [
            found
            for _, fill, where in module.instances.fills(scope).get(node.id, ())
            if isinstance(fill, ast.Call) and len(fill.args) == 1
            for found in _appended_in_loop(fill, fill.args[0], where, module)
        ]
    return module.memo[key]  # type: ignore[no-any-return]


def _is_same_in_loop(call: ast.Call, element: ast.Name, scope: Scope, module: Module) -> bool:
    """Whether a call stands in a loop that doesn't bind a name anew, by their rows: enough to pass over nearly all."""
    loops = [
        loop
        for kind in (ast.For, ast.While)
        for loop in scope.of_type(kind)
        if loop.lineno <= call.lineno <= loop.end_lineno  # type: ignore[attr-defined]
    ]
    if not loops:
        return False
    first, last = max((loop.lineno, loop.end_lineno) for loop in loops)  # type: ignore[attr-defined]
    bound = module.instances.bindings(scope).get(element.id, ())
    return not any(first <= getattr(each.node, "lineno", 0) <= last for each in bound)


def _appended_in_loop(
    fill: ast.Call, element: ast.expr | None, scope: Scope, module: Module
) -> Iterator[tuple[ast.AST, Made]]:
    if not isinstance(element, ast.Name) or not _is_same_in_loop(fill, element, scope, module):
        return
    loop = scope.enclosing(fill, ast.For, ast.While)
    if loop is None:
        return
    inside = {n.id for n in ast.walk(loop) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    if element.id in inside or scope.enclosing(fill, ast.If) not in (None, *_above(loop, scope)):
        return
    made = _with_weights([element], scope, module)
    if made is not None:
        yield element, made


def _above(node: ast.AST, scope: Scope) -> Iterator[ast.AST]:
    up = scope.parents.get(node)
    while up is not None:
        yield up
        up = scope.parents.get(up)


def _with_weights(elements: list[ast.expr], scope: Scope, module: Module) -> Made | None:
    """The first module among these expressions, if all that it may be has parameters."""
    for element in elements:
        found = module.instances.makes(element, scope)
        if found and all(m.kind == "module" and m.home.has_parameters(m) is True for m in found):
            return found[0]
    return None


def _is_on_purpose(node: ast.AST, scope: Scope, module: Module) -> bool:
    """Whether names or comments around say that the weights are shared."""
    statement = scope.statement(node)
    lines = module.source.lines
    first = max(statement.lineno - 4, 0)
    text = "\n".join(lines[first : statement.end_lineno])
    around = [scope.name, *(ast.unparse(up.test) for up in _above(statement, scope) if isinstance(up, ast.If))]
    if scope.owner is not None:
        around.append(scope.owner.name)
    names = " ".join([text, *around])
    return _ON_PURPOSE.search(re.sub(r"([a-z])([A-Z])", r"\1_\2", names)) is not None


# ---------------------------------------------------------------------------------------------------- the fix


def _one_each(node: ast.AST, module: Module) -> Fix | None:
    source = module.source
    if isinstance(node, ast.BinOp):
        listed, count = (
            (node.left, node.right) if isinstance(node.left, (ast.List, ast.Tuple)) else (node.right, node.left)
        )
        if not isinstance(listed, (ast.List, ast.Tuple)) or len(listed.elts) != 1:
            return None
        element, times = listed.elts[0], source.segment(count)
        if isinstance(element, ast.Call):
            text = f"[{source.segment(element)} for _ in range({times})]"
            return unsafe("Build a layer for each", replace(source, node, text))
        text = f"[copy.deepcopy({source.segment(element)}) for _ in range({times})]"
        return unsafe("Copy the layer for each", replace(source, node, text), add_import(source, "import copy", node))
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        copied = f"copy.deepcopy({source.segment(node.elt)})"
        return unsafe(
            "Copy the layer for each", replace(source, node.elt, copied), add_import(source, "import copy", node)
        )
    if isinstance(node, ast.Name):
        return unsafe(
            "Copy the layer",
            replace(source, node, f"copy.deepcopy({node.id})"),
            add_import(source, "import copy", node),
        )
    return None
