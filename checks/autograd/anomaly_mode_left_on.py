"""TL215 anomaly-mode-left-on."""

from __future__ import annotations

import ast

from torchlint.check import Applicability, Check, Module, Report, Scope, Severity, on
from torchlint.source.edits import delete_statement, safe

NAMES = frozenset({"torch.autograd.set_detect_anomaly", "torch.autograd.detect_anomaly"})


class AnomalyModeLeftOn(Check):
    """Anomaly detection is on for the whole training: it makes every step many times slower.

    ## Why

    `set_detect_anomaly(True)` records a traceback for every operation and checks every gradient for NaN. It finds a
    fault and is then taken out, or hangs on a debug option.

    ## Bad

        torch.autograd.set_detect_anomaly(True)

    ## Good

        if args.debug:
            torch.autograd.set_detect_anomaly(True)

    ## Known limits

    Any condition around it counts as a guard.
    """

    code = "TL215"
    name = "anomaly-mode-left-on"
    severity = Severity.INFO
    fixable = Applicability.SAFE
    failures = ("T-B4",)
    calls = ("detect_anomaly", "set_detect_anomaly")

    @on(Module)
    def check(self, module: Module, report: Report) -> None:
        stem = module.name.rpartition(".")[2]
        if stem.startswith("test_") or stem.endswith("_test"):
            return
        for name in ("set_detect_anomaly", "detect_anomaly"):
            for call, scope in module.scope.all_calls(name):
                if module.qualname(call.func, scope) not in NAMES or _is_guarded(scope, call):
                    continue
                first = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "mode"), None)
                if name == "set_detect_anomaly" and not (isinstance(first, ast.Constant) and first.value is True):
                    continue
                statement = scope.statement(call)
                alone = isinstance(statement, ast.Expr)
                report(
                    call,
                    "Anomaly detection stays on for the whole run and slows every step; guard it with a debug option, "
                    "or take it out",
                    fix=safe("removed", delete_statement(module.source, statement)) if alone else None,
                )


def _is_guarded(scope: Scope, call: ast.Call) -> bool:
    """Whether a condition decides: around the call, or before it with a return."""
    if scope.enclosing(call, ast.If, ast.IfExp):
        return True
    return scope.is_function and any(
        isinstance(test, ast.If) and isinstance(test.body[-1], ast.Return) and test.lineno < call.lineno
        for test in getattr(scope.node, "body", ())
    )
