"""TL105 unregistered-parameter-collection."""

from __future__ import annotations

from torchlint.check import Applicability, Check, ClassInfo, ModuleClass, Report, Severity, on

from .containers import plain_containers, wrapped


class UnregisteredParameterCollection(Check):
    """Parameters in a plain list or dict are invisible to `nn.Module`: the optimizer never gets them.

    ## Why

    `nn.Module` registers an `nn.Parameter` that is assigned to an attribute, not one inside a list. `parameters()`
    misses it ("optimizer got an empty parameter list"), `.to(device)` leaves it behind and `state_dict()` leaves it
    out.

    ## Bad

        self.centres = [nn.Parameter(torch.zeros(3)) for _ in range(n)]

    ## Good

        self.centres = nn.ParameterList([nn.Parameter(torch.zeros(3)) for _ in range(n)])

    ## Known limits

    Parameters that are registered elsewhere and only listed (for an optimizer, say) are left alone, and so is a
    container that is handed to a function that may register what it holds.
    """

    code = "TL105"
    name = "unregistered-parameter-collection"
    severity = Severity.ERROR
    fixable = Applicability.SAFE
    failures = ("T-D3", "X-36")
    mentions = ("Parameter",)

    @on(ModuleClass)
    def check(self, cls: ClassInfo, report: Report) -> None:
        for found in plain_containers(cls):
            if any(leaf.kind == "module" for leaf in found.leaves):
                continue
            kind, container = ("list", "ParameterList") if found.kind == "sequence" else ("dict", "ParameterDict")
            report(
                found.use.node,
                f"self.{found.name} is a plain {kind}, so the parameters in it will be missing from parameters() and "
                f"state_dict() and are never trained; use nn.{container}.",
                fix=wrapped(found, f"torch.nn.{container}"),
            )
