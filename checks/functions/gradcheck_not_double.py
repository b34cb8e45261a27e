"""TL604 gradcheck-not-double."""

from __future__ import annotations

import ast

from torchlint.check import Applicability, Call, Check, Const, Fix, Report, Sequence, Severity, Tensor, Value, on
from torchlint.source.edits import name_for, rename_attribute, safe, set_argument

_SINGLE = frozenset({"float32", "float16", "bfloat16", "complex64", "complex32"})
_NUMERIC = frozenset({"eps", "atol"})


class GradcheckNotDouble(Check):
    """A gradcheck gets an input that isn't double, or none that requires grad: it fails whatever the gradient is.

    ## Why

    gradcheck compares the gradient with finite differences of size 1e-6, which single precision can't resolve: torch
    warns that "Input #0 requires gradient and is not a double precision floating point or complex" and then reports a
    Jacobian mismatch. With no input that requires grad there is nothing to check, and it raises.

    ## Bad

        x = torch.randn(4, requires_grad=True)
        assert gradcheck(Square.apply, (x,))

    ## Good

        x = torch.randn(4, dtype=torch.double, requires_grad=True)
        assert gradcheck(Square.apply, (x,))

    ## Known limits

    A call that states its own `eps` and `atol` for single precision is left alone, as is a file that sets torch's
    default dtype. Inputs whose dtype isn't known are left alone.
    """

    code = "TL604"
    name = "gradcheck-not-double"
    severity = Severity.ERROR
    fixable = Applicability.SAFE
    failures = ("T-F4", "T-F3")
    calls = ("gradcheck", "gradgradcheck")

    @on(Call)
    def check(self, call: Call, report: Report) -> None:
        """Look at the inputs of each call."""
        if not call.name.startswith("torch.autograd.") or not call.name.endswith(("gradcheck", "gradgradcheck")):
            return
        if not isinstance(call.node, ast.Call) or "**" in call.keywords:
            return
        inputs = call.arguments[1] if len(call.arguments) > 1 else call.keywords.get("inputs")
        given = None if inputs is None else _tensors(call, inputs)
        if given is None:
            return
        name = call.name.rpartition(".")[2]
        requires = [call.held.requires_grad.get(value, value.requires_grad) for value in given if call.held]
        if given and all(answer is False for answer in requires):
            report(
                call.node.func,
                f"None of {name}'s inputs requires grad, so it has nothing to check and raises; "
                "make them with requires_grad=True.",
                fix=_fix(call, given, "requires_grad", "True"),
            )
            return
        text = call.module.source.text
        if _NUMERIC & call.keywords.keys() or "set_default_" in text:
            return
        single = [v for v, answer in zip(given, requires, strict=True) if answer is not False and v.dtype in _SINGLE]
        if single:
            report(
                call.node.func,
                f"{name} compares with finite differences that {single[0].dtype} can't resolve: it will report a "
                "mismatch for a right gradient; give it double inputs (dtype=torch.double).",
                fix=_fix(call, single, "dtype", "torch.double"),
            )


def _tensors(call: Call, inputs: Value) -> list[Tensor] | None:
    """The tensors among the inputs, or None where there may be others than those that are known."""
    if isinstance(inputs, Tensor):
        return [inputs]
    if not isinstance(inputs, Sequence) or call.held is None:
        return None
    items, exact = call.held.items.get(inputs, ((), False))
    if not exact or not all(isinstance(item, (Tensor, Const)) for item in items):
        return None
    return [item for item in items if isinstance(item, Tensor)]


def _fix(call: Call, tensors: list[Tensor], keyword: str, value: str) -> Fix | None:
    """Make the inputs so, where they are made in this file by a factory or a conversion."""
    source = call.module.source
    parts = []
    for tensor in tensors:
        made = tensor.node
        if not isinstance(made, ast.Call) or made not in call.module.scope.parents:
            return None
        if tensor.op == "torch.Tensor.float" and keyword == "dtype" and isinstance(made.func, ast.Attribute):
            parts.append(rename_attribute(source, made.func, "double"))
            continue
        if tensor.role != "factory":
            return None
        text = value
        if value.startswith("torch."):
            name = name_for(source, value, made)
            if name is None:
                return None
            parts.append(name.edits)
            text = name.spelling
        parts.append(set_argument(source, made, keyword, text))
    return safe(f"Pass {keyword}={value}", *parts)
