"""TL110 forward-called-directly."""

from __future__ import annotations

import ast

from torchlint.check import Applicability, Check, ClassInfo, Made, Module, Report, Scope, Severity, is_super_call, on
from torchlint.source.edits import replace_callee, safe

_OTHER_CALLS = ("gpytorch.", "botorch.")
"""Packages whose modules do something else than ``forward`` when they are called."""


class ForwardCalledDirectly(Check):
    """Calling `model.forward(x)` runs the method alone: hooks, DistributedDataParallel and torch.compile are skipped.

    ## Why

    `model(x)` runs `forward` between the module's hooks, on which feature extractors, profilers, quantization, weight
    normalization and gradient synchronization rest. `model.forward(x)` leaves all of it out, silently.

    ## Bad

        features = self.encoder.forward(x)

    ## Good

        features = self.encoder(x)

    ## Known limits

    `self.forward(x)`, `super().forward(x)` and `Base.forward(self, x)` are left alone, and so is anything that isn't
    known to be a module, or whose class has a `__call__` of its own. A module that a function builds for one use,
    `return module.forward(x)`, has neither hooks nor wrappers.
    """

    code = "TL110"
    name = "forward-called-directly"
    severity = Severity.WARNING
    fixable = Applicability.SAFE
    failures = ("X-37",)

    @on(Module)
    def check(self, module: Module, report: Report) -> None:
        for call, scope in module.scope.all_calls("forward"):
            func = call.func
            if (
                isinstance(func, ast.Attribute)
                and _is_module(func.value, scope, module)
                and not _is_for_one_use(func.value, call, scope)
            ):
                spelling = module.source.segment(func.value)
                shown = spelling if len(spelling) <= 40 and "\n" not in spelling else "the module"
                report(
                    call.func,
                    f"{shown}.forward(...) skips the module's hooks, and DistributedDataParallel and torch.compile "
                    f"around it; call {shown}(...).",
                    fix=safe("Call the module itself", replace_callee(module.source, call, spelling)),
                )


def _is_module(node: ast.expr, scope: Scope, module: Module) -> bool:
    """Whether an expression is surely a module other than the method's own self."""
    if is_super_call(node) or isinstance(module.definition(node, scope), ClassInfo):
        return False
    if isinstance(node, ast.Name) and node.id == scope.self_name:
        return False
    found = [made for made in module.instances.makes(node, scope) if made.kind != "none"]
    return bool(found) and all(made.kind == "module" and not _calls_differently(made) for made in found)


def _is_for_one_use(node: ast.expr, call: ast.Call, scope: Scope) -> bool:
    """Whether a function builds the module, runs it once and returns what it gives: nobody can have hooked it."""
    if not isinstance(node, ast.Name) or not scope.is_function or not isinstance(scope.parents.get(call), ast.Return):
        return False
    uses = [part for part in ast.walk(scope.node) if isinstance(part, ast.Name) and part.id == node.id]
    built = [part for part in uses if isinstance(part.ctx, ast.Store)]
    return len(uses) == 2 and len(built) == 1 and isinstance(scope.parents.get(built[0]), ast.Assign)


def _calls_differently(made: Made) -> bool:
    """Whether calling the module isn't calling its forward."""
    if made.cls is None:
        return made.spec is not None and made.spec.name.startswith(_OTHER_CALLS)
    names = (base if isinstance(base, str) else base.qualname for base in made.cls.mro if base is not None)
    return made.cls.method("__call__") is not None or any(name.startswith(_OTHER_CALLS) for name in names)
