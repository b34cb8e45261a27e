"""TL602 function-not-static."""

import ast
from collections.abc import Iterator

from torchlint.check import Applicability, Check, ClassInfo, FunctionClass, FunctionInfo, Report, Severity, on
from torchlint.source.edits import add_decorator, safe

from .common import instantiations
from .modernized import modernized

METHODS = ("forward", "setup_context", "backward", "vjp", "vmap", "jvp")


class FunctionNotStatic(Check):
    """A method of an autograd.Function has no `@staticmethod`: it is written for instances, which can't be called.

    It is an error where the file also makes instances of the class, a warning elsewhere.

    ## Why

    Functions with state on `self` went away in torch 1.5: calling an instance raises "Legacy autograd function with
    non-static forward method is deprecated". Today `Scale.apply(x)` calls `Scale.forward(ctx, x)`, where `ctx` is
    torch's own object: what `__init__` kept on `self` isn't there.

    ## Bad

        class Scale(torch.autograd.Function):
            def forward(self, x, factor):
                self.factor = factor
                return x * factor

            def backward(self, grad):
                return grad * self.factor, None

    ## Good

        class Scale(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, factor):
                ctx.factor = factor
                return x * factor

            @staticmethod
            def backward(ctx, grad):
                return grad * ctx.factor, None

    ## Known limits

    A method with a decorator that torchlint doesn't know is left alone: it may make the method static. The fix adds
    `@staticmethod`; where an `__init__` only keeps what it is given, it makes that an input of `apply`, and leaves any
    other `__init__` to be rewritten by hand.
    """

    code = "TL602"
    name = "function-not-static"
    severity = Severity.ERROR
    fixable = Applicability.SAFE
    failures = ("T-F1",)
    mentions = ("Function",)

    @on(FunctionClass)
    def check(self, cls: ClassInfo, report: Report) -> None:
        """Report a class once, at its first method that should be static."""
        bound = list(_bound_methods(cls))
        if not bound:
            return
        names = " and ".join(m.name for m in bound) if len(bound) < 3 else ", ".join(m.name for m in bound)
        made = next(instantiations(cls), None)
        source = cls.module.source
        if made is not None:
            then = "and instances of it can't be called any more"
        elif "__init__" in cls.methods:
            then = "and what __init__ keeps on self isn't there when apply runs"
        else:
            then = "torch calls it through apply, with ctx in the place of self"
        first = bound[0].node
        report(
            (source.position(first.lineno, first.col_offset), source.position(first.lineno, _end_of_name(first))),
            f"{names} of {cls.name} {'is' if len(bound) == 1 else 'are'} not static: {then}; "
            f"add @staticmethod and use {cls.name}.apply(...).",
            severity=Severity.ERROR if made is not None else Severity.WARNING,
            fix=safe("Pass the state to apply", *modernized(cls))
            if "__init__" in cls.methods
            else safe(
                "Add @staticmethod", *(add_decorator(source, m.node, "staticmethod", outermost=True) for m in bound)
            ),
        )


def _bound_methods(cls: ClassInfo) -> Iterator[FunctionInfo]:
    rebound = cls.class_attributes
    for name in METHODS:
        method = cls.methods.get(name)
        if method is None or name in rebound:  # forward = staticmethod(forward)
            continue
        decorators = method.decorators
        if all(d is not None and d.startswith("torch.") for d in decorators):
            yield method


def _end_of_name(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    keyword = "async def " if isinstance(node, ast.AsyncFunctionDef) else "def "
    return node.col_offset + len(keyword) + len(node.name.encode())
