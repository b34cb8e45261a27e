"""TL413 optimizer-holds-stale-parameters."""

from __future__ import annotations

from torchlint.check import (
    Applicability,
    AttributeStore,
    Call,
    Check,
    Object,
    Optimizer,
    OptimizerMade,
    OptimizerStep,
    Report,
    Severity,
    Trace,
    Value,
    on,
    spelled,
)

from .common import sources
from .repairs import parameters_added


class OptimizerHoldsStaleParameters(Check):
    """A part of the model is replaced after the optimizer was built: the optimizer trains the old weights, not the new.

    Nothing raises. The new layer stays as it was initialized.

    ## Why

    An optimizer keeps the tensors it was given. A new layer's weights are other tensors; they must be added with
    `add_param_group`, or the optimizer built after the model is complete.

    ## Bad

        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model.fc = nn.Linear(512, 20)

    ## Good

        model.fc = nn.Linear(512, 20)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    ## Known limits

    Only replacements in the same flow of code as the optimizer's making are seen.
    """

    code = "TL413"
    name = "optimizer-holds-stale-parameters"
    severity = Severity.ERROR
    fixable = Applicability.UNSAFE
    failures = ("L-16",)
    mentions = ("optim",)

    @on(Trace)
    def check(self, trace: Trace, report: Report) -> None:
        made = [m for m in trace.root.events(OptimizerMade) if isinstance(m.optimizer, Optimizer)]
        if not made:
            return
        steps = list(trace.root.events(OptimizerStep))
        for store in trace.root.events(AttributeStore):
            new = store.value
            if not isinstance(new, Object) or not new.is_module or store.module is not report.module:
                continue
            if new.spec is not None and new.cls is None and new.spec.has_parameters() is False:
                continue
            for optimizer in made:
                if optimizer.order < store.order and self._is_stale(trace, optimizer, store, made, steps):
                    report(
                        store.node,
                        f"The optimizer of line {optimizer.node.lineno} was built before and never gets the weights of "  # type: ignore[attr-defined]
                        f"the new `{spelled(store.node)}`: build it after this, or add them with `add_param_group`",
                        fix=parameters_added(store, optimizer),
                    )
                    break

    def _is_stale(
        self,
        trace: Trace,
        optimizer: OptimizerMade,
        store: AttributeStore,
        made: list[OptimizerMade],
        steps: list[OptimizerStep],
    ) -> bool:
        held = optimizer.optimizer
        assert isinstance(held, Optimizer)
        if not _holds(sources(held), store.target) or _made_before(store.value, optimizer):
            return False
        if any(m.order > store.order for m in made):
            return False
        if any(call.name == "torch.optim.Optimizer.add_param_group" for call in trace.root.events(Call)):
            return False
        return any(step.optimizer is held and step.order > store.order for step in steps)


def _holds(modules: tuple[Value, ...], target: Value) -> bool:
    return any(module is target for module in modules)


def _made_before(value: Value, optimizer: OptimizerMade) -> bool:
    """Whether a module is older than the optimizer in the same function (it may then be one of its own)."""
    line = getattr(value.node, "lineno", 0)
    return optimizer.frame.function is None and line < getattr(optimizer.node, "lineno", 0)
