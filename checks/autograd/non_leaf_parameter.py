"""TL206 non-leaf-parameter."""

from __future__ import annotations

from torchlint.check import Applicability, Check, Fix, GradRead, OptimizerMade, Report, Severity, Tensor, on, spelled

from .repairs import leaf_made_last


class NonLeafParameter(Check):
    """A tensor made with `requires_grad=True` and moved or changed at once is no leaf: it never gets a gradient.

    An optimizer given it raises "can't optimize a non-leaf Tensor"; its `.grad` stays None, with a warning.

    ## Why

    `torch.randn(n, requires_grad=True).cuda() * 0.01` is the result of two operations. The leaf is the tensor before
    them, which nothing holds. Make the values first and ask for gradients last.

    ## Bad

        prompt = torch.randn(8, 64, requires_grad=True) * 0.02
        optimizer = torch.optim.Adam([prompt])

    ## Good

        prompt = (torch.randn(8, 64) * 0.02).requires_grad_()

    ## Known limits

    On a machine without the device it is moved to, `.to()` may return the leaf itself; it is reported all the same.
    """

    code = "TL206"
    name = "non-leaf-parameter"
    severity = Severity.ERROR
    fixable = Applicability.SAFE
    failures = ("T-A5", "X-12")
    mentions = ("requires_grad", "Parameter")

    @on(OptimizerMade)
    def optimized(self, made: OptimizerMade, report: Report) -> None:
        for tensor in made.non_leaf:
            if _is_transformed_leaf(tensor) and tensor.node is not None:
                report(
                    tensor.node,
                    f"`{spelled(tensor.node)}` is no leaf: the optimizer in line {made.node.lineno} refuses it "  # type: ignore[attr-defined]
                    '("can\'t optimize a non-leaf Tensor"); make the values first and call `.requires_grad_()` last',
                    fix=_fix(tensor, report),
                )

    @on(GradRead)
    def read(self, read: GradRead, report: Report) -> None:
        tensor = read.tensor
        if _is_transformed_leaf(tensor) and tensor.node is not None:
            report(
                tensor.node,
                f"`{spelled(tensor.node)}` is no leaf, so its `.grad`, read in line {read.node.lineno}, stays None; "  # type: ignore[attr-defined]
                "make the values first and call `.requires_grad_()` last",
                fix=_fix(tensor, report),
            )


def _fix(tensor: Tensor, report: Report) -> Fix | None:
    leaf = next(t for t in tensor.ancestry() if t.leaf and t.requires_grad)
    if tensor.node is None or leaf.node is None:
        return None
    return leaf_made_last(report.module, tensor.node, leaf.node)


def _is_transformed_leaf(tensor: Tensor) -> bool:
    """Whether a tensor was made from nothing but one leaf made in the same expression."""
    node = tensor.node
    sources = [t for t in tensor.ancestry() if t.leaf and t.requires_grad]
    if len(sources) != 1 or node is None:
        return False
    leaf = sources[0]
    if leaf.role not in ("factory", "parameter") or leaf.of is not None or leaf.node is None:
        return False
    return _covers(node, leaf.node)


def _covers(outer: object, inner: object) -> bool:
    def place(node: object, name: str) -> tuple[int, int]:
        return getattr(node, f"{name}lineno", 0) or 0, getattr(node, f"{name}col_offset", 0) or 0

    return place(outer, "") <= place(inner, "") and place(inner, "end_") <= place(outer, "end_")
