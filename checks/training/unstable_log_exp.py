"""TL416 unstable-log-exp."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchlint.check import Applicability, Check, Module, Report, Scope, Severity, last_name, on, spelled

from .repairs import exponential_minus_one, logarithm_in_one, logarithm_of_one_plus, with_eps

SQUASHED = {"softmax": "log_softmax", "sigmoid": "logsigmoid"}
LOSS_WORDS = ("loss", "distance", "criterion", "penalty", "contrastive", "triplet")


class UnstableLogExp(Check):
    """A logarithm or root is taken where its argument can be 0: the loss or its gradient becomes infinite or NaN.

    ## Why

    `log(softmax(x))` underflows to `log(0)`; `log_softmax` doesn't. `sqrt` has an infinite slope at 0, so the gradient
    of a distance between equal points is NaN. `log(1 + x)` and `exp(x) - 1` lose small `x`.

    ## Bad

        log_prob = torch.log(F.softmax(scores, dim=1))
        distance = torch.sqrt(((a - b) ** 2).sum(1))

    ## Good

        log_prob = F.log_softmax(scores, dim=1)
        distance = torch.sqrt(((a - b) ** 2).sum(1) + 1e-12)

    ## Known limits

    Roots are reported in losses only (by the name of the function or class), `log(1 + x)` and `exp(x) - 1` there
    and in files that train, unless what is lost is added to something larger anyway. A value that a clamp or an eps
    keeps away from 0 is fine.
    """

    code = "TL416"
    name = "unstable-log-exp"
    severity = Severity.WARNING
    fixable = Applicability.SAFE
    failures = ("L-06", "L-17")
    mentions = ("exp", "log", "sqrt")

    @on(Module)
    def check(self, module: Module, report: Report) -> None:
        for call, scope in module.scope.all_calls("log"):
            inner = _argument(module, scope, call, "log")
            squashing = _squashing(module, scope, inner) if inner is not None else None
            if squashing is not None:
                report(
                    call,
                    f"`{spelled(call)}` is log(0) where {squashing} underflows, and its gradient NaN; use "
                    f"`{SQUASHED[squashing]}`",
                    fix=logarithm_in_one(module, call, inner) if inner is not None else None,
                )
        text = module.source.text
        trains = ".backward(" in text
        if not trains and "loss" not in text and "Loss" not in text:
            return
        for call, scope in (*module.scope.all_calls("log"), *module.scope.all_calls("exp")):
            if trains or _is_loss(scope):
                self._small_difference(module, scope, call, report)
        for call, scope in module.scope.all_calls("sqrt"):
            if not _is_loss(scope):
                continue
            inner = _argument(module, scope, call, "sqrt")
            if inner is not None and _is_sum_of_squares(inner):
                report(
                    call,
                    f"`{spelled(call)}` has a NaN gradient where its argument is 0 (equal inputs); add an eps inside",
                    fix=with_eps(module, call, inner),
                )

    def _small_difference(self, module: Module, scope: Scope, call: ast.Call, report: Report) -> None:
        """``torch.log(1 + x)`` and ``torch.exp(x) - 1``, of which torch has exact forms."""
        qualname = module.qualname(call.func, scope)
        if qualname == "torch.log" and len(call.args) == 1 and not call.keywords:
            rest = _added_to_one(call.args[0])
            if rest is not None and not isinstance(rest, ast.Constant) and not _was_integer(rest):
                report(
                    call,
                    f"`{spelled(call)}` is 0 where `{spelled(rest)}` is small; write `torch.log1p(...)`",
                    fix=logarithm_of_one_plus(module, call, rest),
                )
        elif qualname == "torch.exp" and call.args:
            whole = scope.parents.get(call)
            if (
                isinstance(whole, ast.BinOp)
                and isinstance(whole.op, ast.Sub)
                and whole.left is call
                and _is_number(whole.right, 1)
                and not _is_added(scope, whole, call)
            ):
                report(
                    whole,
                    f"`{spelled(whole)}` is 0 where its argument is small; write `torch.expm1(...)`",
                    fix=exponential_minus_one(module, whole, call),
                )


def _is_added(scope: Scope, difference: ast.expr, exponential: ast.Call) -> bool:
    """Whether the difference, scaled perhaps, is added to something else, beside which a small one is nothing."""
    node: ast.expr = difference
    up = scope.parents.get(node)
    while isinstance(up, ast.UnaryOp) or (isinstance(up, ast.BinOp) and isinstance(up.op, ast.Mult)):
        node, up = up, scope.parents.get(up)
    if not (isinstance(up, ast.BinOp) and isinstance(up.op, ast.Add)):
        return False
    other = up.right if up.left is node else up.left
    exponents = {part.id for part in ast.walk(exponential.args[0]) if isinstance(part, ast.Name)}
    return not any(isinstance(part, ast.Name) and part.id in exponents for part in ast.walk(other))


def _was_integer(node: ast.expr) -> bool:
    """Whether a value is spelt as a count made a float: ``lengths.float()``."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("float", "double")


def _added_to_one(node: ast.expr) -> ast.expr | None:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        if _is_number(node.left, 1):
            return node.right
        if _is_number(node.right, 1):
            return node.left
    return None


def _argument(module: Module, scope: Scope, call: ast.Call, name: str) -> ast.expr | None:
    """What a torch function or tensor method of that name is applied to."""
    if module.qualname(call.func, scope) == f"torch.{name}":
        return call.args[0] if len(call.args) == 1 else None
    if isinstance(call.func, ast.Attribute) and not call.args and not call.keywords:
        return call.func.value
    return None


def _squashing(module: Module, scope: Scope, node: ast.expr) -> str | None:
    """``softmax`` or ``sigmoid`` where an expression is one, directly or through a name assigned once."""
    if isinstance(node, ast.Name) and scope.is_function:
        values = list(_assigned(scope, node.id))
        return _squashing(module, scope, values[0]) if len(values) == 1 and isinstance(values[0], ast.Call) else None
    if not isinstance(node, ast.Call):
        return None
    name = last_name(node.func)
    if name not in SQUASHED:
        return None
    qualname = module.qualname(node.func, scope)
    if qualname in (f"torch.{name}", f"torch.nn.functional.{name}", f"torch.special.{name}"):
        return name
    return name if qualname is None and isinstance(node.func, ast.Attribute) and _is_tensor_call(node, scope) else None


def _is_tensor_call(node: ast.Call, scope: Scope) -> bool:
    """Whether ``x.softmax(...)`` is a tensor's method: self has no method of that name here."""
    func = node.func
    assert isinstance(func, ast.Attribute)
    return not (isinstance(func.value, ast.Name) and func.value.id == scope.self_name)


def _assigned(scope: Scope, name: str) -> Iterator[ast.expr | None]:
    for node in scope.of_type(ast.Assign):
        for target in node.targets:  # type: ignore[attr-defined]
            for part in ast.walk(target):
                if isinstance(part, ast.Name) and part.id == name:
                    yield node.value if part is target else None  # type: ignore[attr-defined]
    for kind in (ast.AugAssign, ast.AnnAssign, ast.For):
        for node in scope.of_type(kind):
            target = node.target  # type: ignore[attr-defined]
            if any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(target)):
                yield None


def _is_loss(scope: Scope) -> bool:
    """Whether a function or class around is named for a loss."""
    up: Scope | None = scope
    while up is not None:
        if any(word in up.name.lower() for word in LOSS_WORDS):
            return True
        up = up.parent
    return False


def _is_sum_of_squares(node: ast.expr) -> bool:
    """``sum((a - b) ** 2)`` of a difference, with nothing added."""
    if not isinstance(node, ast.Call):
        return False
    name = last_name(node.func)
    if name not in ("sum", "mean"):
        return False
    method = isinstance(node.func, ast.Attribute) and _is_square(node.func.value)
    return method or any(_is_square(argument) for argument in node.args[:1])


def _is_square(node: ast.expr) -> bool:
    base: ast.expr | None = None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and _is_number(node.right, 2):
        base = node.left
    elif isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if name == "square" or (name == "pow" and node.args and _is_number(node.args[-1], 2)):
            method = isinstance(node.func, ast.Attribute) and len(node.args) < (1 if name == "square" else 2)
            base = node.func.value if method else node.args[0]  # type: ignore[attr-defined]
    return isinstance(base, ast.BinOp) and isinstance(base.op, ast.Sub)


def _is_number(node: ast.expr, number: int) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float) and node.value == number
