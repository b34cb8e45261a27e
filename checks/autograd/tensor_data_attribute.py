"""TL211 tensor-data-attribute."""

from __future__ import annotations

import ast

from torchlint.check import Applicability, Backward, Check, Report, Severity, TensorOp, on

from .common import spelled
from .repairs import without_data

INITIALIZING = frozenset({"__init__", "reset_parameters", "init_weights", "_init_weights", "initialize"})


class TensorDataAttribute(Check):
    """A tensor's `.data` is used: what is changed through it autograd can't see, and its gradients come out wrong.

    ## Why

    `.data` shares the memory and not the version counter, so that a change between forward and backward isn't noticed.
    `detach()` shares both; an update by hand belongs under `torch.no_grad()`.

    ## Bad

        for p in model.parameters():
            p.data.clamp_(-0.01, 0.01)

    ## Good

        with torch.no_grad():
            for p in model.parameters():
                p.clamp_(-0.01, 0.01)

    ## Known limits

    Only in code that runs a backward, and where the object is known to be a tensor. Initialization is left alone.
    """

    code = "TL211"
    name = "tensor-data-attribute"
    severity = Severity.WARNING
    fixable = Applicability.UNSAFE
    failures = ("T-B1",)
    mentions = (".data",)

    @on(TensorOp)
    def check(self, op: TensorOp, report: Report) -> None:
        if op.op != "torch.Tensor.data" or op.frame.name in INITIALIZING or not isinstance(op.node, ast.Attribute):
            return
        root = next(op.block.enclosing("root"))
        if next(root.events(Backward), None) is None:
            return
        base = spelled(op.node.value)
        report(
            op.node,
            f"`{base}.data` hides changes from autograd; use `{base}.detach()` to read, and "
            "`with torch.no_grad():` to change it",
            fix=without_data(op, op.node),
        )
