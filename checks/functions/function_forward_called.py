"""TL606 function-forward-called."""

from __future__ import annotations

import ast

from torchlint.check import Applicability, Check, ClassInfo, Fix, Module, Report, Scope, Severity, on
from torchlint.source.edits import remove_argument, rename_attribute, safe

from .common import Form, in_a_function_class, is_none

_GRADIENTS_OFF = frozenset({"torch.no_grad", "torch.inference_mode"})


class FunctionForwardCalled(Check):
    """The forward or backward of an autograd.Function is called directly: its own backward never gets into a graph.

    ## Why

    Only `apply` makes a node in the graph and calls forward with a ctx. A direct call runs forward as ordinary code:
    the custom gradient is ignored, and for what only a custom gradient lets through (rounding, thresholds, straight-
    through estimators) there is no gradient at all.

    ## Bad

        code = HardSign.forward(None, logits)

    ## Good

        code = HardSign.apply(logits)

    ## Known limits

    Calls from the methods of another autograd.Function, from tests, under `torch.no_grad()`, and with the ctx that a
    function was given are left alone, and outside of modules those with a stand-in for ctx: they mean the raw
    arithmetic.
    """

    code = "TL606"
    name = "function-forward-called"
    severity = Severity.ERROR
    fixable = Applicability.SAFE
    failures = ("T-F1",)

    @on(Module)
    def check(self, module: Module, report: Report) -> None:
        """Look at every call of a forward or backward by way of its class."""
        file = module.source.filename.replace("\\", "/").rpartition("/")[2]
        if file.startswith(("test_", "conftest")) or file.endswith("_test.py"):
            return
        for name in ("forward", "backward"):
            for call, scope in module.scope.all_calls(name):
                func = call.func
                if not isinstance(func, ast.Attribute) or not isinstance(func.value, (ast.Name, ast.Attribute)):
                    continue
                cls = module.definition(func.value, scope)
                if isinstance(cls, ClassInfo) and cls.is_autograd_function:
                    self._called(module, call, func, scope, cls, report)

    def _called(
        self, module: Module, call: ast.Call, func: ast.Attribute, scope: Scope, cls: ClassInfo, report: Report
    ) -> None:
        form = Form(cls)
        method = cls.method(func.attr)
        if method is None or method not in (form.forward, form.backward) or not _means_apply(module, call, scope, form):
            return
        text = module.source.segment(func.value)
        if func.attr == "forward":
            message = (
                f"{text}.forward is called directly: no node of {cls.name} gets into the graph and its backward is "
                f"never used; call {text}.apply({', '.join(p.arg for p in form.inputs)})."
            )
        else:
            message = f"{text}.backward is called directly: torch calls it, for what {text}.apply(...) has computed."
        report(func, message, fix=_fix(module, call, func, form))


def _means_apply(module: Module, call: ast.Call, scope: Scope, form: Form) -> bool:
    """Whether nothing says that the raw arithmetic is wanted."""
    if in_a_function_class(module, scope) or _gradients_off(module, call, scope):
        return False
    up: Scope | None = scope
    while up is not None:
        if up.is_function and up.name.startswith("test"):
            return False
        up = up.parent
    if isinstance(call.func, ast.Attribute) and call.func.attr == "forward" and form.setup is not None:
        return True
    if not call.args or any(isinstance(argument, ast.Starred) for argument in call.args):
        return False
    ctx = call.args[0]
    if is_none(ctx):
        return True
    cls = module.class_of(scope)
    in_module = cls is not None and cls.is_module is True
    if isinstance(ctx, ast.Name):
        return in_module and (ctx.id == scope.self_name or not _is_parameter(scope, ctx.id))
    return in_module and isinstance(ctx, ast.Call)


def _is_parameter(scope: Scope, name: str) -> bool:
    node = scope.node
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        return False
    return any(a.arg == name for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs))


def _gradients_off(module: Module, call: ast.Call, scope: Scope) -> bool:
    if scope.is_function and any(d in _GRADIENTS_OFF for d in module.function(scope).decorators):
        return True
    block = scope.enclosing(call, ast.With)
    while isinstance(block, ast.With):
        for item in block.items:
            entered = item.context_expr
            name = module.qualname(entered.func if isinstance(entered, ast.Call) else entered, scope)
            if name in _GRADIENTS_OFF:
                return True
        block = scope.enclosing(block, ast.With)
    return False


def _fix(module: Module, call: ast.Call, func: ast.Attribute, form: Form) -> Fix | None:
    if func.attr != "forward" or call.keywords:
        return None
    source = module.source
    renamed = rename_attribute(source, func, "apply")
    given = len(call.args)
    if form.setup is not None:
        return safe("Call apply", renamed) if form.required <= given else None
    if not is_none(call.args[0]) or given - 1 < form.required:
        return None
    return safe("Call apply", renamed, remove_argument(source, call, call.args[0]))
