"""TL421 loss-arguments-swapped."""

from __future__ import annotations

from torchlint.check import Applicability, Check, Fix, LossCall, Report, Severity, Symbol, Tensor, Value, on, spelled
from torchlint.source.edits import replace, unsafe

ORDERED = ("cross_entropy", "nll_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits", "kl_div")
ORDERED_CLASSES = (
    "CrossEntropyLoss",
    "NLLLoss",
    "BCELoss",
    "BCEWithLogitsLoss",
    "KLDivLoss",
    "MultiLabelSoftMarginLoss",
)


class LossArgumentsSwapped(Check):
    """A loss gets the target first and the model's output second: it raises, or trains towards nonsense.

    ## Why

    torch's losses take (input, target). For losses that are not symmetric the gradient through the second argument is
    another one, and for class indices the call raises.

    ## Bad

        loss = criterion(labels, model(x))

    ## Good

        loss = criterion(model(x), labels)

    ## Known limits

    Told by where the values come from: one side computed with gradients, the other not.
    """

    code = "TL421"
    name = "loss-arguments-swapped"
    severity = Severity.ERROR
    fixable = Applicability.UNSAFE
    failures = ("L-16",)

    @on(LossCall)
    def check(self, loss: LossCall, report: Report) -> None:
        tail = loss.name.rpartition(".")[2]
        if tail not in ORDERED and tail not in ORDERED_CLASSES:
            return
        first, second = loss.input, loss.target
        if not isinstance(second, Tensor) or not second.requires_grad or second.leaf:
            return
        if not _is_given(first):
            return
        arguments = getattr(loss.node, "args", [])
        if len(arguments) < 2:
            return
        report(
            loss.node,
            f"`{spelled(loss.node)}` gets the target `{spelled(arguments[0])}` first and the prediction "
            f"`{spelled(arguments[1])}` second: the loss takes (input, target)",
            fix=_fix(loss, arguments),
        )


def _is_given(value: Value | None) -> bool:
    """Whether a value comes with the data: an element of a loader, or a tensor without a history."""
    if isinstance(value, Tensor):
        return value.requires_grad is False and not any(t.role == "output" for t in value.ancestry())
    depth = 0
    while isinstance(value, Symbol) and depth < 6:
        if value.origin == "element":
            return True
        value, depth = value.of, depth + 1
    return False


def _fix(loss: LossCall, arguments: list[object]) -> Fix | None:
    source = loss.module.source
    first, second = arguments[0], arguments[1]
    return unsafe(
        "arguments swapped",
        replace(source, first, source.segment(second)),  # type: ignore[arg-type]
        replace(source, second, source.segment(first)),  # type: ignore[arg-type]
    )
