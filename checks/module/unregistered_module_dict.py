"""TL104 unregistered-module-dict."""

from __future__ import annotations

from torchlint.check import Applicability, Check, ClassInfo, ModuleClass, Report, Severity, on

from .containers import plain_containers
from .unregistered_module_list import report_modules


class UnregisteredModuleDict(Check):
    """Layers in a plain dict are invisible to `nn.Module`: they are not trained, moved or saved.

    ## Why

    `nn.Module` registers what is assigned to an attribute when it is a module. A dict is none, so `parameters()`
    misses the layers in it, `.to(device)` and `.train()`/`.eval()` don't reach them, and `state_dict()` leaves their
    weights out.

    ## Bad

        self.heads = {task: nn.Linear(width, n) for task, n in tasks.items()}

    ## Good

        self.heads = nn.ModuleDict({task: nn.Linear(width, n) for task, n in tasks.items()})

    ## Known limits

    `nn.ModuleDict` takes strings without dots for keys, and none that names an attribute of every module ("type",
    "forward"), and has no `get`: the fix is offered only where the keys are known to fit. What TL103 says of elements
    that lose nothing, and of containers that are handed on, holds here too.
    """

    code = "TL104"
    name = "unregistered-module-dict"
    severity = Severity.ERROR
    fixable = Applicability.SAFE
    failures = ("T-D3", "X-36")
    mentions = ("{", "dict", "Dict")

    @on(ModuleClass)
    def check(self, cls: ClassInfo, report: Report) -> None:
        for found in plain_containers(cls):
            if found.kind == "mapping":
                report_modules(found, "torch.nn.ModuleDict", report)
