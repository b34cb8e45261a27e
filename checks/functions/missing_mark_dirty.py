"""TL609 missing-mark-dirty."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchlint.check import Applicability, Check, ClassInfo, FunctionClass, FunctionInfo, Report, Severity, on
from torchlint.source.edits import insert_statement_before, safe

from .common import Form, Tensors, forward_tensors, returned

_NOT_IN_PLACE = frozenset({"requires_grad_", "retain_grad_", "share_memory_", "rename_"})


class MissingMarkDirty(Check):
    """An input of an autograd.Function is changed in place and returned without `ctx.mark_dirty`.

    Who uses the changed input afterwards gets the gradient of the old one: silently wrong.

    ## Why

    torch can't see what happens inside forward. Unless `ctx.mark_dirty(x)` says so, the input keeps the history it had:
    the backward of this Function is skipped for everything that is computed from the input later, and a leaf that
    requires grad is overwritten without the usual error.

    ## Bad

        @staticmethod
        def forward(ctx, x, value):
            x.add_(value)
            return x

    ## Good

        @staticmethod
        def forward(ctx, x, value):
            ctx.mark_dirty(x)
            x.add_(value)
            return x

    ## Known limits

    An input that is bound to something else first (`x = x.clone()`) is left alone, and so are inputs that are changed
    but not returned.
    """

    code = "TL609"
    name = "missing-mark-dirty"
    severity = Severity.ERROR
    fixable = Applicability.SAFE
    failures = ("T-H6", "T-B3")
    mentions = ("Function",)

    @on(FunctionClass)
    def check(self, cls: ClassInfo, report: Report) -> None:
        """Look for changed inputs among what forward returns."""
        form = Form(cls)
        forward = form.forward
        tensors = forward_tensors(form)
        if forward is None or tensors is None or forward.cls is not cls:
            return
        marked = {name for method, _ in form.saving for name in _marked(method)}
        if "*" in marked:
            return
        ctx = form.ctx(forward)
        inputs = {parameter.arg for parameter in form.inputs} - marked
        given = {name for value in returned(forward) for name in _names_in(value)}
        for name, node in _changes(forward, inputs):
            if name not in tensors.known or _bound_before(tensors, name) or not given & _aliases(tensors, name):
                continue
            statement = forward.scope.statement(node)
            report(
                node,
                f"{name} is changed in place and returned, but torch isn't told: what is computed from {name} later "
                f"gets the wrong gradient; call {ctx or 'ctx'}.mark_dirty({name}) first.",
                fix=None
                if ctx is None
                else safe(
                    "Mark the input as changed",
                    insert_statement_before(forward.module.source, statement, f"{ctx}.mark_dirty({name})"),
                ),
            )
            return


def _marked(method: FunctionInfo) -> Iterator[str]:
    """What is given to ctx.mark_dirty; ``*`` where that isn't a plain name."""
    for call, _ in method.scope.all_calls("mark_dirty"):
        for argument in call.args:
            yield argument.id if isinstance(argument, ast.Name) else "*"
    if method.name == "setup_context" and any(True for _ in method.scope.all_calls("mark_dirty")):
        yield "*"


def _names_in(value: ast.expr) -> Iterator[str]:
    """The variables that a returned value gives back as they are."""
    for item in value.elts if isinstance(value, (ast.Tuple, ast.List)) else [value]:
        while isinstance(item, ast.Call) and isinstance(item.func, ast.Attribute) and _is_in_place(item.func.attr):
            item = item.func.value
        if isinstance(item, ast.Name):
            yield item.id


def _is_in_place(name: str) -> bool:
    return name.endswith("_") and not name.endswith("__") and name not in _NOT_IN_PLACE


def _changes(forward: FunctionInfo, inputs: set[str]) -> Iterator[tuple[str, ast.expr]]:
    """In-place changes of inputs, with the node to point at."""
    found: list[tuple[str, ast.expr]] = []
    for name, calls in forward.scope.calls.items():
        for call in calls:
            func = call.func
            if isinstance(func, ast.Attribute) and _is_in_place(name):
                if isinstance(func.value, ast.Name) and func.value.id in inputs:
                    found.append((func.value.id, call))
                elif call.args and isinstance(call.args[0], ast.Name) and call.args[0].id in inputs:
                    qualname = forward.module.qualname(func, forward.scope) or ""
                    if qualname.startswith("torch."):
                        found.append((call.args[0].id, call))
            for keyword in call.keywords:
                value = keyword.value
                if keyword.arg == "out" and isinstance(value, ast.Name) and value.id in inputs:
                    found.append((value.id, call))
                if keyword.arg == "inplace" and isinstance(value, ast.Constant) and value.value is True and call.args:
                    first = call.args[0]
                    if isinstance(first, ast.Name) and first.id in inputs:
                        found.append((first.id, call))
    for node in forward.scope.of_type(ast.AugAssign):
        found += _stored(node.target, inputs)  # type: ignore[attr-defined]
        target = node.target  # type: ignore[attr-defined]
        if isinstance(target, ast.Name) and target.id in inputs:
            found.append((target.id, target))
    for node in forward.scope.of_type(ast.Assign):
        for target in node.targets:  # type: ignore[attr-defined]
            found += _stored(target, inputs)
    yield from sorted(found, key=lambda each: (each[1].lineno, each[1].col_offset))


def _stored(target: ast.expr, inputs: set[str]) -> list[tuple[str, ast.expr]]:
    """``x[...] = value``."""
    if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name) and target.value.id in inputs:
        return [(target.value.id, target)]
    return []


def _aliases(tensors: Tensors, name: str) -> set[str]:
    """The variables that are the same tensor: ``out = x.add_(1)``."""
    found = {name}
    for other in list(tensors.bound):
        values = tensors.values(other)
        if other != name and len(values) == 1 and values[0] is not None and name in set(_names_in(values[0])):
            found.add(other)
    return found


def _bound_before(tensors: Tensors, name: str) -> bool:
    """Whether the name comes to mean something else than the input."""
    return any(
        value is None or not (_is_augmented(value) or name in set(_names_in(value))) for value in tensors.values(name)
    )


def _is_augmented(value: ast.expr) -> bool:
    """Whether this stands for ``x += y``."""
    return isinstance(value, ast.BinOp) and isinstance(value.left, ast.Name) and isinstance(value.left.ctx, ast.Store)
