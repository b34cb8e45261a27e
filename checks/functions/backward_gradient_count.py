"""TL603 backward-gradient-count."""

import ast
import sys
from collections.abc import Callable

from torchlint.check import Applicability, Check, ClassInfo, Edit, FunctionClass, FunctionInfo, Report, Severity, on
from torchlint.source.edits import add_element, replace, surround, unsafe

from .common import (
    Form,
    Tensors,
    forward_tensors,
    is_none,
    keeps_signature,
    names,
    positional,
    returned,
)

_LOOSE_OPERATORS = (ast.Add, ast.Mult)  # of tuples too


class BackwardGradientCount(Check):
    """The backward of an autograd.Function returns another number of gradients than forward has inputs, or takes
    another number than forward has outputs: the backward pass raises.

    ## Why

    torch hands each value that backward returns to the input of forward at the same place, ctx aside. Inputs that are
    no tensors count too: their gradient is `None`. In the other direction backward gets one gradient for each output
    of forward, whether it is a tensor or not.

    ## Bad

        class Scale(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, factor):
                ctx.factor = factor
                return x * factor

            @staticmethod
            def backward(ctx, grad):
                return grad * ctx.factor

    ## Good

            @staticmethod
            def backward(ctx, grad):
                return grad * ctx.factor, None

    ## Known limits

    Gradients beyond forward's inputs are allowed where they are all `None`: torch drops those. Inputs with a default
    need a gradient only where they are given. A tuple whose length can't be read from the code is left alone. The fix
    adds `None` for each missing gradient, which says that no gradient flows to those inputs: it is unsafe.
    """

    code = "TL603"
    name = "backward-gradient-count"
    severity = Severity.ERROR
    fixable = Applicability.UNSAFE
    failures = ("T-F2",)
    mentions = ("Function",)

    @on(FunctionClass)
    def check(self, cls: ClassInfo, report: Report) -> None:
        """Compare inputs with gradients, and outputs with the gradients that come in."""
        form = Form(cls)
        forward, backward = form.forward, form.backward
        if forward is None or backward is None or cls not in (forward.cls, backward.cls):
            return
        if keeps_signature(forward) and keeps_signature(backward):
            self._returned(form, forward, backward, report)
            self._taken(form, forward, backward, report)

    def _returned(self, form: Form, forward: FunctionInfo, backward: FunctionInfo, report: Report) -> None:
        counter = _Counter(backward, Tensors(backward.module, backward.scope, {p.arg for p in form.gradients}))
        inputs = [parameter.arg for parameter in form.inputs]
        most = sys.maxsize if form.star else len(inputs)
        for value in returned(backward):
            items = counter.items(value)
            if isinstance(value, (ast.List, ast.ListComp)):
                said = "returns a list, which torch takes for one gradient"
                wanted = "return a tuple"
                fix = unsafe("Return a tuple", _as_tuple(report, value))
            elif items is not None and (len(items) < form.required or not all(is_none(item) for item in items[most:])):
                said = (
                    f"returns {_gradients(len(items))} for the {_inputs(inputs, form.star)} of {form.cls.name}.forward"
                )
                wanted = "return one for each, None where there is none"
                missing = form.required - len(items)
                written = isinstance(value, ast.Tuple) or items == [value]
                fix = (
                    unsafe("Return None for the other inputs", _with_nones(report, value, missing)) if written else None
                )
            else:
                continue
            if backward.cls is form.cls:
                report(value, f"backward {said}: the backward pass will raise; {wanted}.", fix=fix)
            else:
                report(
                    _signature_end(forward),
                    f"the inherited backward {said}: the backward pass will raise; write another.",
                )
                return

    def _taken(self, form: Form, forward: FunctionInfo, backward: FunctionInfo, report: Report) -> None:
        outputs = _outputs(form, forward)
        most = len(form.gradients)
        least = most - len(backward.node.args.defaults)
        if backward.node.args.vararg is not None:
            most = sys.maxsize
        if not outputs or any(least <= count <= most for count in outputs):
            return
        place = backward if backward.cls is form.cls else forward
        count = max(outputs)
        report(
            _signature_end(place),
            f"backward of {form.cls.name} takes {_gradients(least)} but forward has {count} "
            f"output{'s' if count > 1 else ''}: the backward pass will raise; take one gradient for each output.",
        )


def _signature_end(method: FunctionInfo) -> ast.AST:
    """The last positional parameter, the place to add or drop one."""
    parameters = positional(method)
    return parameters[-1] if parameters else method.node


def _gradients(count: int) -> str:
    return f"{count} gradient{'' if count == 1 else 's'}"


def _inputs(names: list[str], star: bool) -> str:
    if not names:
        return "inputs" if star else "no inputs"
    listed = ", ".join([*names, *(["..."] if star else [])])
    return f"{len(names)} {'or more ' if star else ''}input{'' if len(names) == 1 and not star else 's'} ({listed})"


def _with_nones(report: Report, value: ast.expr, count: int) -> tuple[Edit, ...] | None:
    """The returned value with ``None`` behind it, as often as gradients are missing."""
    source = report.module.source
    if count <= 0 or isinstance(value, (ast.Yield, ast.YieldFrom)):
        return None
    return add_element(source, value, ", ".join(["None"] * count))


def _as_tuple(report: Report, value: ast.List | ast.ListComp) -> tuple[Edit, ...] | None:
    source = report.module.source
    if isinstance(value, ast.ListComp) or len(value.elts) < 2:
        return surround(source, value, "tuple(", ")")
    return replace(source, value, f"({source.segment(value)[1:-1]})")


def _outputs(form: Form, forward: FunctionInfo) -> set[int]:
    """How many outputs forward can have; empty where that isn't known of one of its returns."""
    counts: set[int] = set()
    tensors = forward_tensors(form)
    for value in returned(forward):
        items = None if tensors is None else _Counter(forward, tensors).items(value)
        if items is None:
            return set()
        counts.add(len(items))
    return counts


class _Counter:
    """Counts what the returned expressions of one method hold."""

    def __init__(self, method: FunctionInfo, tensors: Tensors) -> None:
        self.method = method
        self.tensors = tensors
        self.asked: set[str] = set()  # names whose values are being looked at

    def items(self, node: ast.expr) -> list[ast.expr] | None:
        """The values that torch sees when this is returned, or None where their number isn't known."""
        found = self._tuple(node)
        if found is not None:
            return found
        return [node] if self._single(node) else None

    def _tuple(self, node: ast.expr) -> list[ast.expr] | None:
        if isinstance(node, ast.Tuple):
            found: list[ast.expr] = []
            for item in node.elts:
                if isinstance(item, ast.Starred):
                    inner = self._sequence(item.value)
                    if inner is None:
                        return None
                    found += inner
                else:
                    found.append(item)
            return found
        if isinstance(node, ast.Name):
            values = self.tensors.values(node.id)
            if len(values) != 1 or values[0] is None or node.id in self.asked:
                return None
            self.asked.add(node.id)
            found_in_name = self._tuple(values[0])
            self.asked.discard(node.id)
            return found_in_name
        if isinstance(node, ast.BinOp):
            return self._joined(node, self._tuple)
        if isinstance(node, ast.Call) and len(node.args) == 1 and not isinstance(node.args[0], ast.Name):
            called = self.method.module.qualname(node.func, self.method.scope)
            return self._sequence(node.args[0]) if called == "builtins.tuple" else None
        return None

    def _sequence(self, node: ast.expr) -> list[ast.expr] | None:
        if isinstance(node, ast.List):
            return self._tuple(ast.Tuple(node.elts, ast.Load()))
        if isinstance(node, ast.BinOp):
            return self._joined(node, self._sequence)
        return self._tuple(node)

    def _joined(self, node: ast.BinOp, part: Callable[[ast.expr], list[ast.expr] | None]) -> list[ast.expr] | None:
        if isinstance(node.op, ast.Add):
            left, right = part(node.left), part(node.right)
            return None if left is None or right is None else [*left, *right]
        if isinstance(node.op, ast.Mult):
            for items, times in ((node.left, node.right), (node.right, node.left)):
                found = part(items) if isinstance(items, (ast.Tuple, ast.List, ast.BinOp)) else None
                if found is not None and isinstance(times, ast.Constant) and isinstance(times.value, int):
                    return found * times.value
        return None

    def _single(self, node: ast.expr) -> bool:
        """Whether this is one tensor or None, and surely no tuple."""
        if is_none(node) or self.tensors.sure(node):
            return True
        if isinstance(node, ast.UnaryOp):
            return isinstance(node.op, (ast.USub, ast.Invert))
        if isinstance(node, ast.BinOp):
            return not isinstance(node.op, _LOOSE_OPERATORS)
        if isinstance(node, ast.IfExp):
            return self._single(node.body) and self._single(node.orelse)
        if isinstance(node, ast.Name):
            values = self.tensors.values(node.id)
            others = [value for value in values if value is not None and not names(value, node.id)]
            if node.id in self.asked or None in values or not others:
                return False
            self.asked.add(node.id)
            single = all(self._single(value) for value in others)
            self.asked.discard(node.id)
            return single
        return False
