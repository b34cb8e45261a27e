"""TL113 shared-default-module."""

from __future__ import annotations

import ast

from torchlint.check import Check, FunctionInfo, Report, Severity, on


class SharedDefaultModule(Check):
    """A layer or parameter as a default argument is built once: every object that takes the default shares it.

    ## Why

    Python evaluates a default when the function is defined. Two models made with it hold the very same weights:
    training one trains the other, their gradients add up, and a checkpoint stores the weights twice.

    ## Bad

        class Branch(nn.Module):
            def __init__(self, encoder, projector=nn.Linear(32, 16)):
                super().__init__()
                self.projector = projector

    ## Good

        class Branch(nn.Module):
            def __init__(self, encoder, projector=None):
                super().__init__()
                self.projector = projector if projector is not None else nn.Linear(32, 16)

    ## Known limits

    Classes, factories and parameter-free layers (`act=nn.ReLU()`) are harmless defaults and left alone, and so is a
    default that is only used through `copy.deepcopy`.
    """

    code = "TL113"
    name = "shared-default-module"
    severity = Severity.WARNING
    failures = ("X-36",)
    mentions = ("def ",)

    @on(FunctionInfo)
    def check(self, function: FunctionInfo, report: Report) -> None:
        arguments = function.node.args
        if not arguments.defaults and not arguments.kw_defaults:
            return
        positional = [*arguments.posonlyargs, *arguments.args]
        pairs = [
            *zip(positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True),
            *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
        ]
        for argument, default in pairs:
            if (
                isinstance(default, ast.Call)
                and _is_shared(function, default)
                and not _is_copied(function, argument.arg)
            ):
                report(
                    default,
                    f"This default is built once, so everything that takes it shares the weights of one "
                    f"{ast.unparse(default.func)}; make {argument.arg} default to None and build it inside.",
                )


def _is_shared(function: FunctionInfo, default: ast.Call) -> bool:
    instances = function.module.instances
    found = instances.makes(default, function.scope.parent or function.module.scope)
    return any(
        made.fresh and (made.kind == "parameter" or (made.kind == "module" and instances.has_parameters(made) is True))
        for made in found
    )


def _is_copied(function: FunctionInfo, name: str) -> bool:
    """Whether every use of a parameter is as the argument of ``copy.deepcopy``."""
    copied = {
        id(call.args[0])
        for call, scope in function.scope.all_calls("deepcopy")
        if call.args and function.module.qualname(call.func, scope) == "copy.deepcopy"
    }
    uses = [n for n in ast.walk(function.node) if isinstance(n, ast.Name) and n.id == name]
    return bool(uses) and all(id(use) in copied for use in uses)
