"""TL116 method-not-called."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchlint.check import Applicability, Check, Module, Report, Scope, Severity, on
from torchlint.source.edits import append, safe

_METHODS = frozenset({"eval", "train", "step", "zero_grad", "backward"})
_EFFECTS = {
    "eval": "the model stays in training mode",
    "train": "the model stays in evaluation mode",
    "step": "nothing is updated",
    "zero_grad": "the gradients of all steps add up",
    "backward": "no gradient is computed",
}
_MODES = frozenset({"torch.no_grad", "torch.inference_mode", "torch.enable_grad"})
_SUSPECT = re.compile(
    r"^[^#\n]*\.(?:eval|train|step|zero_grad|backward)[ \t]*(?:[;#].*)?$"
    r"|^[ \t]*(?:async[ \t]+)?with\b[^#\n]*\b(?:no_grad|inference_mode|enable_grad)[ \t]*(?:[:,]|as\b)"
    r"|(?:^|[;:])[ \t]*[\w.]*\b(?:no_grad|inference_mode|enable_grad)\([^()\n]*\)[ \t]*(?:[;#].*)?$",
    re.MULTILINE,
)


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
    mentions = (*(f".{method}" for method in sorted(_METHODS)), "no_grad", "inference_mode", "enable_grad")

    @on(Module)
    def check(self, module: Module, report: Report) -> None:
        if not _SUSPECT.search(module.source.text):
            return
        source = module.source
        for node, scope in _statements(module):
            if isinstance(node, (ast.With, ast.AsyncWith)):
                for item in node.items:
                    if module.qualname(item.context_expr, scope) in _MODES:
                        spelling = ast.unparse(item.context_expr)
                        report(
                            item.context_expr,
                            f"with {spelling}: enters a class and raises; write {spelling}().",
                            fix=safe(f"Call {spelling}()", append(source, item.context_expr, "()")),
                        )
            elif isinstance(node.value, ast.Attribute):
                name = node.value.attr
                if name in _METHODS and module.dotted(node.value, scope) is None:
                    spelling = ast.unparse(node.value)
                    report(
                        node.value,
                        f"{spelling} is named but not called, so {_EFFECTS[name]}; write {spelling}().",
                        fix=safe(f"Call {name}()", append(source, node.value, "()")),
                    )
            elif isinstance(node.value, ast.Call) and module.qualname(node.value.func, scope) in _MODES:
                spelling = ast.unparse(node.value)
                report(
                    node.value,
                    f"{spelling} alone on a line changes nothing: it must enclose the code, as in with {spelling}: ...",
                )


def _statements(module: Module) -> Iterator[tuple[ast.Expr | ast.With | ast.AsyncWith, Scope]]:
    """Expression and with statements of the file, each with its scope."""
    for scope in module.scope.walk():
        if isinstance(scope.node, ast.Lambda):
            continue
        pending: list[ast.stmt] = list(scope.node.body)
        while pending:
            node = pending.pop()
            if isinstance(node, (ast.Expr, ast.With, ast.AsyncWith)):
                yield node, scope
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                continue
            for field in ("body", "orelse", "finalbody"):
                pending += getattr(node, field, ())
            for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
                pending += part.body
