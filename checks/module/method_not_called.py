"""TL116 method-not-called."""

from __future__ import annotations

import ast

from torchlint.check import Applicability, Check, Module, Report, Severity, on
from torchlint.source.edits import append, safe

_EFFECTS = {
    "eval": "the model stays in training mode",
    "train": "the model stays in evaluation mode",
    "step": "nothing is updated",
    "zero_grad": "the gradients of all steps add up",
    "backward": "no gradient is computed",
}


class MethodNotCalled(Check):
    """A method is named but not called: the line does nothing.

    ## Why

    `model.eval` without parentheses is an expression that Python evaluates and forgets. The model keeps dropping out,
    the optimizer never steps, and no error says so. `with torch.no_grad:` does raise, and `torch.no_grad()` alone on a
    line makes an object that is thrown away.

    ## Bad

        model.eval
        with torch.no_grad:
            scheduler.step

    ## Good

        model.eval()
        with torch.no_grad():
            scheduler.step()

    ## Known limits

    Only `eval`, `train`, `step`, `zero_grad`, `backward` and the gradient modes are looked for.
    """

    code = "TL116"
    name = "method-not-called"
    severity = Severity.ERROR
    fixable = Applicability.SAFE
    failures = ("X-36",)

    @on(Module)
    def check(self, module: Module, report: Report) -> None:
        for found in module.uncalled:
            spelling = ast.unparse(found.node)
            if found.is_called:
                report(
                    found.node,
                    f"{spelling} alone on a line changes nothing: it must enclose the code, as in with {spelling}: ...",
                )
                continue
            if found.is_entered:
                message = f"with {spelling}: enters a class and raises; write {spelling}()."
            else:
                message = f"{spelling} is named but not called, so {_EFFECTS[found.name]}; write {spelling}()."
            fix = safe(f"Call {found.name}()", append(module.source, found.node, "()"))
            report(found.node, message, fix=fix)
