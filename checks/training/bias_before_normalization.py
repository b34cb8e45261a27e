"""TL423 bias-before-normalization."""

from __future__ import annotations

import ast

from torchlint.check import Applicability, Check, Const, Fix, ModuleCall, Object, Report, Severity, Tensor, on
from torchlint.source.edits import safe, set_argument

from .common import spelled


class BiasBeforeNormalization(Check):
    """A layer with a bias is followed by a batch norm, which subtracts the mean: the bias has no effect.

    ## Why

    Batch norm takes each channel's mean away and adds a shift of its own. The layer's bias is dead weight that is
    stored, synchronised and decayed.

    ## Bad

        nn.Conv2d(3, 64, 3), nn.BatchNorm2d(64)

    ## Good

        nn.Conv2d(3, 64, 3, bias=False), nn.BatchNorm2d(64)

    ## Known limits

    Only where the two are seen to be applied one after the other.
    """

    code = "TL423"
    name = "bias-before-normalization"
    severity = Severity.INFO
    fixable = Applicability.SAFE
    mentions = ("BatchNorm",)

    @on(ModuleCall)
    def check(self, call: ModuleCall, report: Report) -> None:
        norm = call.target
        given = call.arguments[0] if call.arguments else None
        if not isinstance(norm, Object) or norm.spec is None or "BatchNorm" not in norm.spec.name:
            return
        if not isinstance(given, Tensor) or not isinstance(given.module, Object):
            return
        layer = given.module
        spec = layer.spec
        if spec is None or layer.cls is not None or spec.kind not in ("linear", "conv") or given.op != spec.name:
            return
        bias = layer.arguments.get("bias")
        if bias is not None and not (isinstance(bias, Const) and bias.value is True):
            return
        affine = norm.arguments.get("affine")
        if isinstance(affine, Const) and not affine.value:
            return
        node = layer.node
        if not isinstance(node, ast.Call) or any(_may_switch_off(keyword) for keyword in node.keywords):
            return
        report(
            call.node,
            f"The batch norm in `{spelled(call.node)}` cancels the bias of the layer before it: build that with "
            "`bias=False`",
            fix=_fix(call, node),
        )


def _may_switch_off(keyword: ast.keyword) -> bool:
    """Whether an argument says, or may say, that there is no bias."""
    if keyword.arg == "bias":
        return not (isinstance(keyword.value, ast.Constant) and keyword.value.value is True)
    return keyword.arg is None


def _fix(call: ModuleCall, made: ast.Call) -> Fix | None:
    source = call.module.source
    inside = any(node is made for nodes in call.module.scope.walk() for calls in nodes.calls.values() for node in calls)
    return safe("bias=False", set_argument(source, made, "bias", "False")) if inside else None
