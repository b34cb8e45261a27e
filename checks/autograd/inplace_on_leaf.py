"""TL208 inplace-on-leaf."""

from __future__ import annotations

from torchlint.check import Applicability, Check, InPlaceChange, Report, Severity, on, spelled

from .common import changed_expression, is_leaf_change, is_recording, under_no_grad


class InplaceOnLeaf(Check):
    """A leaf tensor that requires grad is changed in place while autograd records: torch refuses and raises.

    The message is "a leaf Variable that requires grad is being used in an in-place operation".

    ## Why

    A leaf is where gradients end up: a parameter, or a tensor made with `requires_grad=True`. To change it in place
    would give it a history, and it would be a leaf no more. An update by hand belongs under `torch.no_grad()`.

    ## Bad

        w = torch.randn(3, requires_grad=True)
        loss(w).backward()
        w -= 0.1 * w.grad

    ## Good

        with torch.no_grad():
            w -= 0.1 * w.grad

    ## Known limits

    A tensor whose making isn't seen is never reported. A function on its own is reported only where something shows
    that it runs while autograd records: a backward, a module's `__init__` or `forward`, or a caller in the file.
    """

    code = "TL208"
    name = "inplace-on-leaf"
    severity = Severity.ERROR
    fixable = Applicability.SAFE
    failures = ("T-B1", "R-06")

    @on(InPlaceChange)
    def check(self, change: InPlaceChange, report: Report) -> None:
        if change.view or not raises_on_leaf(change):
            return
        node = changed_expression(change)
        report(
            node,
            f"`{spelled(node)}` is a leaf that requires grad: changing it in place raises while autograd records; "
            "put the change under `with torch.no_grad():`",
            fix=under_no_grad(change),
        )


def raises_on_leaf(change: InPlaceChange) -> bool:
    """Whether torch refuses an in-place change because of the leaf whose memory it is."""
    return is_leaf_change(change) and is_recording(change)
