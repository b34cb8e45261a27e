"""TL209 inplace-on-leaf-view."""

from __future__ import annotations

from torchlint.check import Applicability, Check, InPlaceChange, Report, Severity, on, spelled

from .common import changed_expression, under_no_grad
from .inplace_on_leaf import raises_on_leaf


class InplaceOnLeafView(Check):
    """A view of a leaf that requires grad is changed in place while autograd records: torch refuses and raises.

    The message is "a view of a leaf Variable that requires grad is being used in an in-place operation".

    ## Why

    `w[0]`, `w[:, 1]`, `w.view(-1)`, `w.t()` and the pieces of `chunk` share the leaf's memory, so changing one changes
    the leaf (see TL208).

    ## Bad

        nn.init.xavier_uniform_(embedding.weight)
        embedding.weight[pad] = 0

    ## Good

        with torch.no_grad():
            embedding.weight[pad] = 0

    ## Known limits

    As for TL208.
    """

    code = "TL209"
    name = "inplace-on-leaf-view"
    severity = Severity.ERROR
    fixable = Applicability.SAFE
    failures = ("T-B2", "X-28")

    @on(InPlaceChange)
    def check(self, change: InPlaceChange, report: Report) -> None:
        if not change.view or not raises_on_leaf(change):
            return
        node = changed_expression(change)
        report(
            node,
            f"`{spelled(node)}` is a view of a leaf that requires grad: changing it in place raises while autograd "
            "records; put the change under `with torch.no_grad():`",
            fix=under_no_grad(change),
        )
