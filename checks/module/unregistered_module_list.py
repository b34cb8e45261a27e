"""TL103 unregistered-module-list."""

from __future__ import annotations

from torchlint.check import Applicability, Check, ClassInfo, Made, ModuleClass, Report, Severity, on

from .containers import PlainContainer, plain_containers, wrapped


class UnregisteredModuleList(Check):
    """Layers in a plain Python list or tuple are invisible to `nn.Module`: they are not trained, moved or saved.

    ## Why

    `nn.Module` registers what is assigned to an attribute when it is a module. A list is none, so `parameters()`
    misses the layers in it ("optimizer got an empty parameter list", or a loss that hardly falls), `.to(device)` and
    `.train()`/`.eval()` don't reach them, and `state_dict()` leaves their weights out.

    ## Bad

        self.layers = [nn.Linear(width, width) for _ in range(depth)]

    ## Good

        self.layers = nn.ModuleList([nn.Linear(width, width) for _ in range(depth)])

    ## Known limits

    Only lists whose elements are known to be modules with parameters, or modules that differ between training and
    evaluation, are reported: activations, losses and pooling layers lose nothing. A list is left alone when its
    elements are registered elsewhere or when it is handed to a function that may do so. The idiom
    `self.teacher = [teacher]`, read as `self.teacher[0]`, hides a module on purpose and is left alone too.
    """

    code = "TL103"
    name = "unregistered-module-list"
    severity = Severity.ERROR
    fixable = Applicability.SAFE
    failures = ("T-D3", "X-36")
    mentions = ("[", "list", "tuple")

    @on(ModuleClass)
    def check(self, cls: ClassInfo, report: Report) -> None:
        for found in plain_containers(cls):
            if found.kind == "sequence":
                report_modules(found, "torch.nn.ModuleList", report)


def report_modules(found: PlainContainer, container: str, report: Report) -> None:
    """Report a plain container of modules, if registering them would change anything."""
    modules = [leaf for leaf in found.leaves if leaf.kind == "module"]
    trained = [leaf for leaf in modules if leaf.home.has_parameters(leaf)]
    switched = [leaf for leaf in modules if leaf.home.mode_dependent(leaf)]
    if not trained and not switched:
        return
    kind = "list" if found.kind == "sequence" else "dict"
    name = container.rpartition(".")[2]
    report(
        found.use.node,
        f"self.{found.name} is a plain {kind}, so {_names(trained or switched)} in it {_fate(bool(trained))}; "
        f"use nn.{name}.",
        fix=wrapped(found, container),
    )


def _names(modules: list[Made]) -> str:
    names = list(dict.fromkeys(made.name for made in modules if made.name))
    if not names:
        return "the modules"
    listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    return f"the {listed}"


def _fate(trained: bool) -> str:
    if trained:
        return "will be missing from parameters() and state_dict() and stay behind on .to(device)"
    return "will not be reached by train() and eval()"
