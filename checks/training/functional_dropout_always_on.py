"""TL420 functional-dropout-always-on."""

from __future__ import annotations

import ast

from torchlint.check import Applicability, Check, ClassInfo, Fix, ModuleClass, Report, Scope, Severity, on, spelled
from torchlint.source.edits import add_argument, replace, safe

DROPOUTS = frozenset(
    f"torch.nn.functional.{name}"
    for name in (
        "dropout",
        "dropout1d",
        "dropout2d",
        "dropout3d",
        "alpha_dropout",
        "feature_alpha_dropout",
    )
)
RRELU = "torch.nn.functional.rrelu"
ATTENTION = "torch.nn.functional.scaled_dot_product_attention"
NAMES = ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout", "rrelu")


class FunctionalDropoutAlwaysOn(Check):
    """A module calls `F.dropout` without `training=`: it keeps dropping in eval mode.

    Nothing raises. Two evaluations differ, and both are worse than the model.

    ## Why

    `F.dropout` knows nothing of the module it is called in; its `training` is True unless told. The same holds for
    `dropout_p` of `scaled_dot_product_attention`. (`F.alpha_dropout` and `F.rrelu` default to False, and are
    left alone.)

    ## Bad

        x = F.dropout(x, p=0.5)

    ## Good

        x = F.dropout(x, p=0.5, training=self.training)

    ## Known limits

    Only in nn.Module classes; one that says it wants Monte-Carlo dropout by its name is left alone.
    """

    code = "TL420"
    name = "functional-dropout-always-on"
    severity = Severity.ERROR
    fixable = Applicability.SAFE
    failures = ("T-H2", "L-18")
    mentions = ("dropout",)
    calls = ("rrelu", "rrelu_", "scaled_dot_product_attention")

    @on(ModuleClass)
    def check(self, cls: ClassInfo, report: Report) -> None:
        if any(word in cls.name.lower() for word in ("mcdrop", "montecarlo", "bayes", "always")):
            return
        for name in NAMES:
            for call, scope in cls.scope.all_calls(name):
                qualname = cls.module.qualname(call.func, scope)
                if qualname in DROPOUTS | {RRELU} and scope.self_name is not None:
                    self._dropout(call, qualname or "", scope, cls, report)
        for call, scope in cls.scope.all_calls("scaled_dot_product_attention"):
            if cls.module.qualname(call.func, scope) == ATTENTION:
                given = next((k.value for k in call.keywords if k.arg == "dropout_p"), None)
                if isinstance(given, ast.Constant) and isinstance(given.value, float) and given.value > 0:
                    by_mode = f"{given.value} if {scope.self_name or 'self'}.training else 0.0"
                    report(
                        given,
                        f"`dropout_p={given.value}` drops in eval mode too; write `{by_mode}`",
                        fix=safe(by_mode, replace(cls.module.source, given, by_mode)) if scope.self_name else None,
                    )

    def _dropout(self, call: ast.Call, qualname: str, scope: Scope, cls: ClassInfo, report: Report) -> None:
        if any(k.arg is None for k in call.keywords) or any(isinstance(a, ast.Starred) for a in call.args):
            return
        position = 3 if qualname == RRELU else 2
        given = next((k.value for k in call.keywords if k.arg == "training"), None)
        if given is None and len(call.args) > position:
            given = call.args[position]
        rate = next((k.value for k in call.keywords if k.arg == "p"), call.args[1] if len(call.args) > 1 else None)
        if isinstance(rate, ast.Constant) and rate.value == 0:
            return
        on_by_default = qualname not in OFF_BY_DEFAULT
        if given is not None or not on_by_default or _asks_for_mode(call, scope) or _is_stated(call, cls):
            return
        if any(word in scope.name.lower() for word in ("mc_", "monte", "sample")):
            return
        report(
            call,
            f"`{spelled(call)}` drops in eval mode too: pass `training={scope.self_name}.training`",
            fix=_fix(call, scope, cls),
        )


def _asks_for_mode(call: ast.Call, scope: Scope) -> bool:
    """Whether a condition around a call speaks of the mode: ``if self.training and ...``."""
    parents = scope.parents
    up = parents.get(call)
    while up is not None and up is not scope.node:
        if isinstance(up, (ast.If, ast.IfExp)) and any(
            isinstance(part, ast.Attribute) and part.attr == "training" for part in ast.walk(up.test)
        ):
            return True
        up = parents.get(up)
    return False


def _is_stated(call: ast.Call, cls: ClassInfo) -> bool:
    """Whether a comment just above says that the randomness is meant."""
    above = cls.module.source.lines[max(call.lineno - 3, 0) : call.lineno]
    comments = " ".join(line.partition("#")[2] for line in above).lower()
    return any(word in comments for word in ("determinis", "always", "monte", "eval", "inference", "on purpose"))


OFF_BY_DEFAULT = frozenset(
    {"torch.nn.functional.alpha_dropout", "torch.nn.functional.feature_alpha_dropout", "torch.nn.functional.rrelu"}
)


def _fix(call: ast.Call, scope: Scope, cls: ClassInfo) -> Fix | None:
    text = f"training={scope.self_name}.training"
    return safe(text, add_argument(cls.module.source, call, text))
