"""TL608 saved-tensors-mismatch."""

import ast
from collections.abc import Iterator

from torchlint.check import Check, ClassInfo, FunctionClass, FunctionInfo, Report, Scope, Severity, on

from .common import Form, Tensors, forward_tensors, is_saved

_TUPLE_ATTRIBUTES = frozenset({"index", "count"})


class SavedTensorsMismatch(Check):
    """What backward takes out of `ctx.saved_tensors` isn't what forward put in: another number, or nothing at all.

    ## Why

    `ctx.saved_tensors` is the tuple of the arguments of the last `ctx.save_for_backward(...)`. Unpacking it into
    another number of names raises, and so does using the tuple itself as a tensor. A second call of save_for_backward
    doesn't add to the first: it replaces it. Only tensors and None can be saved; anything else raises.

    ## Bad

        @staticmethod
        def forward(ctx, x, weight):
            ctx.save_for_backward(x)
            ctx.save_for_backward(weight)
            return x @ weight

        @staticmethod
        def backward(ctx, grad):
            x, weight = ctx.saved_tensors
            return grad @ weight.t(), x.t() @ grad

    ## Good

        @staticmethod
        def forward(ctx, x, weight):
            ctx.save_for_backward(x, weight)
            return x @ weight

    ## Known limits

    Unpacking with a star is left alone, and so is a Function that saves with a star or hands ctx to other code that may
    save. Where branches save different numbers, an unpacking must fit none of them to be reported.
    """

    code = "TL608"
    name = "saved-tensors-mismatch"
    severity = Severity.ERROR
    failures = ("T-F2",)
    mentions = ("save_for_backward", "saved_tensors", "saved_variables")

    @on(FunctionClass)
    def check(self, cls: ClassInfo, report: Report) -> None:
        """Compare what is saved with what is taken."""
        form = Form(cls)
        saves = [(method, call) for method, ctx in form.saving for call in _saves(method, ctx)]
        for method, _ in form.saving:
            if method.cls is cls:
                own = [call for place, call in saves if place is method]
                self._repeated(method, own, report)
                self._no_tensors(form, method, own, report)
        backward = form.backward
        if backward is None or cls not in (backward.cls, *(method.cls for method, _ in saves)):
            return
        if any(_may_save(method, ctx) for method, ctx in form.saving) or form.forward is None:
            return
        counts = {len(call.args) for _, call in saves if not any(isinstance(a, ast.Starred) for a in call.args)}
        if len(saves) != sum(1 for _, call in saves if not any(isinstance(a, ast.Starred) for a in call.args)):
            return
        self._taken(form, backward, counts or {0}, [call for _, call in saves], report)

    def _repeated(self, method: FunctionInfo, calls: list[ast.Call], report: Report) -> None:
        for index, call in enumerate(calls):
            for later in calls[index + 1 :]:
                if _follows(method.scope, call, later):
                    report(
                        later,
                        "This second save_for_backward replaces the first: its tensors are lost; "
                        "save all of them in one call.",
                    )
                    return

    def _no_tensors(self, form: Form, method: FunctionInfo, calls: list[ast.Call], report: Report) -> None:
        tensors = forward_tensors(form) if method is form.forward else Tensors(method.module, method.scope, set())
        for call in calls:
            for argument in call.args:
                if tensors is not None and _no_tensor(tensors, argument):
                    text = method.module.source.segment(argument)
                    report(
                        argument,
                        f"save_for_backward takes only tensors and raises for {text}: keep it as an attribute of ctx.",
                    )

    def _taken(
        self, form: Form, backward: FunctionInfo, counts: set[int], saves: list[ast.Call], report: Report
    ) -> None:
        source = backward.module.source
        what = ", ".join(source.segment(a) for a in saves[0].args) if len(saves) == 1 and saves[0].args else ""
        saved = f"forward saves {_numbers(counts)}{f' ({what})' if what and backward.module is form.cls.module else ''}"
        inherited = backward.cls is not form.cls
        for scope in backward.scope.walk():
            for node in scope.of_type(ast.Assign):
                for target in node.targets:  # type: ignore[attr-defined]
                    if not is_saved(node.value):  # type: ignore[attr-defined]
                        continue
                    place = saves[0] if inherited else node
                    wanted = _length(target)
                    if wanted is not None and wanted not in counts:
                        report(
                            place,
                            f"backward unpacks {wanted} saved tensors but {saved}: the backward pass will raise.",
                        )
                    elif isinstance(target, ast.Name) and not inherited and _used_as_tensor(backward.scope, target.id):
                        report(
                            node,
                            f"{target.id} is the whole tuple of saved tensors here and is used as a tensor, which will "
                            f"raise: write ({target.id},) = ctx.saved_tensors.",
                        )
        if not inherited:
            self._indexed(backward, max(counts), saved, report)

    def _indexed(self, backward: FunctionInfo, most: int, saved: str, report: Report) -> None:
        for node in ast.walk(backward.node):
            if (
                isinstance(node, ast.Subscript)
                and is_saved(node.value)
                and isinstance(node.slice, ast.Constant)
                and isinstance(node.slice.value, int)
                and node.slice.value >= most
            ):
                report(node, f"There is no saved tensor {node.slice.value}: {saved}; the backward pass will raise.")


def _numbers(counts: set[int]) -> str:
    return "nothing" if counts == {0} else " or ".join(str(count) for count in sorted(counts))


def _saves(method: FunctionInfo, ctx: str) -> Iterator[ast.Call]:
    """The calls of ctx.save_for_backward in document order."""
    found = [
        call
        for call, _ in method.scope.all_calls("save_for_backward")
        if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name) and call.func.value.id == ctx
    ]
    yield from sorted(found, key=lambda call: (call.lineno, call.col_offset))


def _may_save(method: FunctionInfo, ctx: str) -> bool:
    """Whether a method gives ctx to other code, which may save on it."""
    parents = method.scope.parents
    for node in ast.walk(method.node):
        if isinstance(node, ast.Name) and node.id == ctx and isinstance(node.ctx, ast.Load):
            up = parents[node]
            if not isinstance(up, ast.Attribute):
                return True
            if up.attr in ("to_save", "saved_tensors") or (
                up.attr == "save_for_backward" and not isinstance(parents[up], ast.Call)
            ):
                return True
    return False


def _length(target: ast.expr) -> int | None:
    """How many values an unpacking takes; None for a star or a plain name."""
    if not isinstance(target, (ast.Tuple, ast.List)) or any(isinstance(t, ast.Starred) for t in target.elts):
        return None
    return len(target.elts)


def _used_as_tensor(scope: Scope, name: str) -> bool:
    """Whether a name, bound once, has attributes read or arithmetic done that tuples don't have."""
    bound = 0
    used = False
    for node in ast.walk(scope.node):
        if isinstance(node, ast.Name) and node.id == name:
            bound += isinstance(node.ctx, ast.Store)
        elif isinstance(node, ast.Attribute):
            used = used or (
                isinstance(node.value, ast.Name) and node.value.id == name and node.attr not in _TUPLE_ATTRIBUTES
            )
        elif isinstance(node, ast.BinOp):
            sides = (node.left, node.right)
            loose = isinstance(node.op, ast.Add) or (
                isinstance(node.op, ast.Mult) and any(isinstance(side, ast.Constant) for side in sides)
            )
            used = used or (not loose and any(isinstance(side, ast.Name) and side.id == name for side in sides))
    return used and bound == 1


def _no_tensor(tensors: Tensors, node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return node.value is not None
    if isinstance(node, (ast.Tuple, ast.List, ast.Dict, ast.Set, ast.ListComp, ast.JoinedStr)):
        return True
    return tensors.plainly(node)


def _follows(scope: Scope, first: ast.Call, second: ast.Call) -> bool:
    """Whether every path that runs through the first call goes on to the second; loops aside."""
    parents = scope.parents
    trail: list[ast.AST] = [first]
    while trail[-1] is not scope.node:
        trail.append(parents[trail[-1]])
    node: ast.AST = second
    while parents[node] not in trail:
        node = parents[node]
    shared = parents[node]
    below = trail[trail.index(shared) - 1]
    if not isinstance(node, (ast.Expr, ast.With)):  # only some paths overwrite what was saved
        return False
    for field in ("body", "orelse", "handlers", "finalbody", "cases"):
        block = getattr(shared, field, None)
        if isinstance(block, list) and below in block:
            if node not in block:
                return field == "body" and node in getattr(shared, "finalbody", ())
            return field not in ("handlers", "cases") and not _leaves(trail[: trail.index(shared)])
    return False


def _leaves(trail: list[ast.AST]) -> bool:
    """Whether one of the blocks around a statement ends by returning or raising."""
    for node in trail[:-1]:
        for up in trail:
            for field in ("body", "orelse", "finalbody"):
                block = getattr(up, field, None)
                if isinstance(block, list) and node in block and isinstance(block[-1], (ast.Return, ast.Raise)):
                    return True
    return False
