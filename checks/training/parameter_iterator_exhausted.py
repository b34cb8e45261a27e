"""TL414 parameter-iterator-exhausted."""

from __future__ import annotations

import ast

from torchlint.check import (
    Applicability,
    Bound,
    Check,
    Fix,
    Function,
    Object,
    Optimizer,
    OptimizerMade,
    Parameters,
    ParametersUsed,
    Report,
    Severity,
    on,
    spelled,
)
from torchlint.source.edits import append, safe, surround


class ParameterIteratorExhausted(Check):
    """`parameters()` is kept in a variable and run through twice: the second time it is empty.

    A second optimizer raises "optimizer got an empty parameter list"; clipping warns and does nothing.

    ## Why

    `model.parameters()`, `filter` and generator expressions are iterators: one pass empties them. A list isn't.

    ## Bad

        params = filter(lambda p: p.requires_grad, model.parameters())
        optimizer = torch.optim.Adam(params)
        clip_grad_norm_(params, 1.0)

    ## Good

        params = [p for p in model.parameters() if p.requires_grad]

    ## Known limits

    An iterator that a function which isn't seen runs through is not counted.
    """

    code = "TL414"
    name = "parameter-iterator-exhausted"
    severity = Severity.ERROR
    fixable = Applicability.SAFE
    failures = ("T-D3", "X-29")
    mentions = ("parameters",)

    @on(ParametersUsed)
    def exhausted(self, use: ParametersUsed, report: Report) -> None:
        if use.exhausted is None or (use.exhausted.node is use.node and not use.again):
            return
        made = use.parameters.node
        line = getattr(use.exhausted.node, "lineno", 0)
        report(
            use.node,
            f"The parameters given here are an iterator that line {line} has already emptied: `{use.by}` gets none; "
            "keep them in a list",
            fix=_fix(use, made),
        )

    @on(OptimizerMade)
    def not_parameters(self, made: OptimizerMade, report: Report) -> None:
        optimizer = made.optimizer
        if not isinstance(optimizer, Optimizer) or not isinstance(made.node, ast.Call) or not made.node.args:
            return
        given = made.node.args[0]
        source = made.module.source
        if isinstance(optimizer.params, Object) and optimizer.params.is_module:
            report(
                given,
                f"The optimizer wants `{spelled(given)}.parameters()`, not the module: it raises",
                fix=safe(".parameters()", append(source, given, ".parameters()")),
            )
        elif (
            isinstance(optimizer.params, (Bound, Function))
            and isinstance(given, ast.Attribute)
            and (given.attr == "parameters")
        ):
            report(
                given,
                f"`{spelled(given)}` is not called: the optimizer gets a method and raises; write `{spelled(given)}()`",
                fix=safe("()", append(source, given, "()")),
            )


def _fix(use: ParametersUsed, made: ast.AST | None) -> Fix | None:
    if not isinstance(made, ast.expr) or not isinstance(use.parameters, Parameters):
        return None
    return safe("list(...)", surround(use.module.source, made, "list(", ")"))
