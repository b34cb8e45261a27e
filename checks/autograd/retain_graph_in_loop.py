"""TL214 retain-graph-in-loop."""

from __future__ import annotations

import ast

from torchlint.check import Backward, Check, Report, Severity, on, spelled


class RetainGraphInLoop(Check):
    """A training loop keeps each graph with `retain_graph=True` and nothing uses it again.

    Memory stays taken until the loss is gone, or the argument hides a missing `detach()` and memory grows with every
    step.

    ## Why

    `retain_graph=True` is for a second backward through the same graph. Put there to silence "backward through the
    graph a second time", it makes every step go back through all earlier ones.

    ## Bad

        loss.backward(retain_graph=True)
        optimizer.step()

    ## Good

        loss.backward()
        optimizer.step()

    ## Known limits

    Any other backward or `autograd.grad` in the same iteration is believed to need the graph.
    """

    code = "TL214"
    name = "retain-graph-in-loop"
    severity = Severity.WARNING
    failures = ("L-05", "L-08", "R-03")
    calls = ("backward", "manual_backward")

    @on(Backward)
    def check(self, backward: Backward, report: Report) -> None:
        loops = backward.loops
        if not loops or backward.retain is not True or backward.create_graph is not False or backward.functional:
            return
        if any(_path(other) != _path(backward) for loop in loops for other in loop.events(Backward)):
            return
        report(
            backward.node,
            f"`{spelled(backward.node)}` keeps the graph though nothing in this iteration runs through it again: "
            "memory stays taken, or grows if a tensor is carried over; drop `retain_graph=True` and detach what is "
            "carried over",
        )


def _path(backward: Backward) -> list[ast.AST | None]:
    """Where a backward stands and by which calls it is reached: the same in each turn of a loop."""
    return [backward.node, *(block.node for block in backward.block.enclosing("call"))]
