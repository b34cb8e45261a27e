"""TL202 recurrent-state-not-detached."""

from __future__ import annotations

from torchlint.check import Applicability, Backward, Check, ModuleCall, Report, Severity, Tensor, on, spelled

from .repairs import detached_between_steps


class RecurrentStateNotDetached(Check):
    """A hidden state is carried from one training step into the next without detach: the second backward raises.

    The message is "Trying to backward through the graph a second time"; with `retain_graph=True` it becomes memory that
    grows with every step instead.

    ## Why

    The state hangs on the graph of the step that made it. Fed into the next step, it makes that step's backward run
    through the old graph too, which has been freed. Truncated backpropagation through time cuts it off.

    ## Bad

        for x, y in chunks:
            logits, state = model(x, state)
            loss = criterion(logits, y)
            loss.backward()

    ## Good

        for x, y in chunks:
            state = state.detach()
            logits, state = model(x, state)

    ## Known limits

    A state that passes through a function that isn't seen is believed to be detached there.
    """

    code = "TL202"
    name = "recurrent-state-not-detached"
    severity = Severity.ERROR
    fixable = Applicability.SAFE
    failures = ("T-A1", "L-05")
    calls = ("backward", "manual_backward")

    @on(Backward)
    def check(self, backward: Backward, report: Report) -> None:
        call = carrying_call(backward)
        if call is not None and call.module is report.module and backward.freed is not None:
            carried = [tensor for tensor in call.tensors if _carried(tensor, backward.freed)]
            report(
                call.node,
                f"`{spelled(call.node)}` gets a state that still hangs on the last step's graph, which "
                "`backward` has freed: the next backward raises; detach the state between steps",
                fix=detached_between_steps(call, backward, carried),
            )


def carrying_call(backward: Backward) -> ModuleCall | None:
    """The module call fed with what the loop's last turn computed, where that makes a backward meet a freed graph."""
    freed = backward.freed
    if freed is None or freed.node is not backward.node:
        return None
    again = next(backward.block.enclosing("again"), None)
    if again is None:
        return None
    calls = [
        call
        for call in again.events(ModuleCall)
        if freed.order < call.order < backward.order and any(_carried(t, freed) for t in call.tensors)
    ]
    return min(calls, key=lambda call: call.inner, default=None)  # else the module itself has kept it


def _carried(tensor: Tensor, freed: Backward) -> bool:
    return 0 < tensor.order < freed.order and tensor.leaf is False and bool(tensor.requires_grad)
