"""TL201 backward-twice."""

from __future__ import annotations

from torchlint.check import Backward, Check, Report, Severity, on, spelled

from .recurrent_state_not_detached import carrying_call


class BackwardTwice(Check):
    """A second backward runs through a graph that an earlier one has freed: torch raises.

    The message is "Trying to backward through the graph a second time".

    ## Why

    A backward frees what it needed as it goes. A graph can be passed again only if the first pass kept it
    (`retain_graph=True`), or if the forward is run again. Two losses that share a part of the graph are added up and
    backwarded once, or one of them is cut off with `detach()`.

    ## Bad

        fake = generator(noise)
        d_loss = bce(discriminator(fake), zeros)
        d_loss.backward()
        g_loss = bce(discriminator(fake), ones)
        g_loss.backward()

    ## Good

        d_loss = bce(discriminator(fake.detach()), zeros)

    ## Known limits

    Graphs are told apart by how their tensors are made; what a function that isn't seen returns belongs to none.
    """

    code = "TL201"
    name = "backward-twice"
    severity = Severity.ERROR
    failures = ("T-A1", "L-05", "R-10")
    calls = ("backward", "manual_backward", "grad")

    @on(Backward)
    def check(self, backward: Backward, report: Report) -> None:
        freed = backward.freed
        if freed is None or carrying_call(backward) is not None:
            return
        first = getattr(freed.node, "lineno", 0)
        if freed.node is backward.node:
            message = (
                f"`{spelled(backward.node)}` runs through the same graph again in the loop's next turn, and the first "
                "turn has freed it: it raises; compute the loss inside the loop, or detach what is carried over"
            )
        else:
            message = (
                f"`{spelled(backward.node)}` runs through a graph that the backward in line {first} has freed: it "
                "raises; add the losses up and call backward once, detach the shared part, or keep the graph there "
                "with `retain_graph=True`"
            )
        report(backward.node, message)
