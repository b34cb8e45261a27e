"""TL706 wrapped-state-dict."""

from __future__ import annotations

import ast

from torchlint.check import (
    Applicability,
    Call,
    Check,
    Compiled,
    Fix,
    Object,
    Report,
    Severity,
    StateDict,
    Trace,
    Value,
    on,
)
from torchlint.source.edits import insert_text, replace, safe

from .common import saved

_WRAPPERS = frozenset(
    {
        "torch.nn.DataParallel",
        "torch.nn.parallel.DataParallel",
        "torch.nn.parallel.DistributedDataParallel",
        "torch.nn.parallel.distributed.DistributedDataParallel",
    }
)
_SAVES = frozenset({"torch.save", "safetensors.torch.save_file"})


class WrappedStateDict(Check):
    """The state dict of a wrapper is saved: every key begins with `module.` or `_orig_mod.`, and the plain model
    refuses it.

    ## Why

    DataParallel and DistributedDataParallel hold the model under the name `module`, a model from torch.compile under
    `_orig_mod`, and state_dict() says so in every key. Loading the file into the model itself raises "Missing key(s)
    in state_dict", or with strict=False loads nothing.

    ## Bad

        model = torch.compile(model)
        torch.save(model.state_dict(), "model.pt")

    ## Good

        model = torch.compile(model)
        torch.save(model._orig_mod.state_dict(), "model.pt")

    `model.compile()` compiles in place and leaves the keys alone.

    ## Known limits

    It is a warning where the same file also loads into the wrapped model: then both sides agree until one of them
    changes. Keys that are renamed before they are saved are left alone.
    """

    code = "TL706"
    name = "wrapped-state-dict"
    severity = Severity.ERROR
    fixable = Applicability.SAFE
    failures = ("T-D7", "L-12")
    calls = ("state_dict", "load_state_dict")

    @on(Trace)
    def check(self, trace: Trace, report: Report) -> None:
        """Look at the state dicts that are saved."""
        calls = list(trace.root.events(Call, again=True))
        agreed = any(call.name == "torch.nn.Module.load_state_dict" and _wraps(call.receiver) for call in calls)
        for call in calls:
            if call.name not in _SAVES or call.frame.module is not report.module:
                continue
            for _, value in saved(call):
                if isinstance(value, StateDict) and value.prefix and not _peeled(value, report):
                    _tell(call, value, report, agreed=agreed, sometimes=_sometimes(value, calls))


def _tell(call: Call, state: StateDict, report: Report, *, agreed: bool, sometimes: bool) -> None:
    taken = state.node
    here = isinstance(taken, ast.Call) and taken in report.module.scope.parents
    path = state.prefix.rstrip(".")
    node: ast.AST = taken if here and taken is not None else call.node
    receiver = taken.func.value if isinstance(taken, ast.Call) and isinstance(taken.func, ast.Attribute) else None
    text = report.module.source.segment(receiver) if here and receiver is not None else "the model"
    refusal = "until both sides change" if agreed else "and the model without its wrapper refuses them"
    report(
        node,
        f"The keys saved here begin with {state.prefix} {refusal}; save {text}.{path}.state_dict().",
        severity=Severity.WARNING if agreed else Severity.ERROR,
        fix=_fix(report, receiver, path, sometimes=sometimes) if here and receiver is not None and not agreed else None,
    )


def _peeled(state: StateDict, report: Report) -> bool:
    """Whether the wrapper may be taken off before, under a condition that isn't followed: ``net = net.module``."""
    taken = state.node
    receiver = taken.func.value if isinstance(taken, ast.Call) and isinstance(taken.func, ast.Attribute) else None
    if not isinstance(receiver, ast.Name) or _wraps(state.of):
        return False
    return any(
        isinstance(node, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == receiver.id for target in node.targets)
        and any(
            isinstance(part, ast.Attribute) and part.attr in ("module", "_orig_mod") for part in ast.walk(node.value)
        )
        for scope in report.module.scope.walk()
        if receiver.id in scope.stores
        for node in scope.of_type(ast.Assign)
    )


def _fix(report: Report, receiver: ast.expr, path: str, *, sometimes: bool) -> Fix | None:
    source = report.module.source
    if not isinstance(receiver, (ast.Name, ast.Attribute)):
        return None
    if not sometimes:
        return safe("Save the module inside", insert_text(source.span(receiver)[1], f".{path}"))
    if "." in path:
        return None
    text = source.segment(receiver)
    return safe("Save the module inside", replace(source, receiver, f'getattr({text}, "{path}", {text})'))


def _wraps(value: Value | None) -> bool:
    return isinstance(value, Compiled) or (
        isinstance(value, Object) and value.spec is not None and value.spec.name in _WRAPPERS
    )


def _sometimes(state: StateDict, calls: list[Call]) -> bool:
    """Whether it depends on a condition if there is a wrapper."""
    if _wraps(state.of):
        return False
    made = [call for call in calls if isinstance(call.result, Compiled) and call.result.module is state.of]
    return not made or any(
        call.conditional or call.frame.scope.enclosing(call.node, ast.If, ast.IfExp) is not None for call in made
    )
