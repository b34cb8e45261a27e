"""TL211 tensor-data-attribute."""

from __future__ import annotations

import ast

from torchlint.check import Applicability, Backward, Check, Report, Severity, TensorOp, on, spelled

from .repairs import without_data

INITIALIZING = frozenset({"__init__", "reset_parameters", "init_weights", "_init_weights", "initialize"})
METADATA = frozenset("is_sparse shape dtype device ndim size dim numel layout is_cuda data_ptr element_size".split())


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

    Only in code that runs a backward, and where the object is known to be a tensor. Initialization is left
    alone, and so is what happens under `no_grad` or asks for no more than a shape or dtype.
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
        if op.grad is False or _is_only_asked_about(op, op.node):
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


def _is_only_asked_about(op: TensorOp, node: ast.Attribute) -> bool:
    """Whether no more than a tensor's type, shape, dtype or place is read through ``.data``."""
    around = op.frame.scope.parents.get(node)
    if isinstance(around, ast.Attribute):
        return around.attr in METADATA
    return (
        isinstance(around, ast.Call) and isinstance(around.func, ast.Name) and around.func.id in ("isinstance", "type")
    )
