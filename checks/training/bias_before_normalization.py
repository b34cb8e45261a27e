"""TL423 bias-before-normalization."""

from __future__ import annotations

import ast

from torchlint.check import (
    Applicability,
    Check,
    Const,
    Fix,
    ModuleCall,
    Object,
    Report,
    Severity,
    Tensor,
    last_name,
    on,
    spelled,
)
from torchlint.source.edits import safe, set_argument

from .common import layer_in_sequential, stands_in


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
        if not _is_named(norm):  # a class that an argument or condition chose may be another one next time
            return
        node = layer.node
        if not isinstance(node, ast.Call) or any(_may_switch_off(keyword) for keyword in node.keywords):
            return
        inside = stands_in(node, call)
        report(
            node if inside else call.node,
            f"the batch norm in line {_line(call)} cancels this layer's bias: build it with `bias=False`"
            if inside
            else f"the batch norm in `{spelled(call.node)}` cancels the bias of the layer before it: build that with "
            "`bias=False`",
            fix=_fix(call, node) if inside else None,
        )


def _is_named(norm: Object) -> bool:
    built = norm.node.func if isinstance(norm.node, ast.Call) else None
    name = last_name(built)
    return "Norm" in name


def _may_switch_off(keyword: ast.keyword) -> bool:
    """Whether an argument says, or may say, that there is no bias."""
    if keyword.arg == "bias":
        return not (isinstance(keyword.value, ast.Constant) and keyword.value.value is True)
    return keyword.arg is None


def _line(call: ModuleCall) -> int:
    """Where the norm is: built in a Sequential, or applied."""
    return getattr(layer_in_sequential(call) or call.node, "lineno", 0)


def _fix(call: ModuleCall, made: ast.Call) -> Fix | None:
    return safe("bias=False", set_argument(call.module.source, made, "bias", "False"))
