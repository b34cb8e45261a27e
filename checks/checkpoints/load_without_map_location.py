"""TL704 load-without-map-location."""

from __future__ import annotations

import ast

from torchlint.check import Applicability, Check, Module, Report, Scope, Severity, on
from torchlint.source.edits import add_argument, unsafe

from .common import calls_of, may_be_given

_CHOOSING = frozenset({"torch.device", "torch.cuda.is_available", "torch.backends.mps.is_available"})


class LoadWithoutMapLocation(Check):
    """`torch.load` without map_location puts tensors back on the device they were saved from, in code that has its own.

    ## Why

    A checkpoint written on `cuda:1` wants `cuda:1` when it is read. On a machine without a GPU that raises "Attempting
    to deserialize object on a CUDA device but torch.cuda.is_available() is False"; with one it fills a device that the
    program didn't choose, and parts of the model may end up on different devices.

    ## Bad

        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        model.load_state_dict(torch.load("model.pt"))
        model.to(device)

    ## Good

        model.load_state_dict(torch.load("model.pt", map_location="cpu"))
        model.to(device)

    ## Known limits

    Reported only in files that choose a device themselves, or say `"cpu"`. The fix loads to the CPU, from where
    load_state_dict copies to wherever the model is.
    """

    code = "TL704"
    name = "load-without-map-location"
    severity = Severity.INFO
    fixable = Applicability.UNSAFE
    failures = ("X-18", "R-02")
    mentions = ("load",)

    @on(Module)
    def check(self, module: Module, report: Report) -> None:
        """Look at the calls of torch.load in files that choose devices."""
        loads = [
            call
            for call, _ in calls_of(module, "torch.load", "torch.serialization.load")
            if not may_be_given(call, 1, "map_location")
        ]
        if not loads or not _chooses_device(module):
            return
        for call in loads:
            report(
                call.func,
                "The tensors go back to the device they were saved from, which may not be there; "
                'pass map_location="cpu", or your device.',
                fix=unsafe('Pass map_location="cpu"', add_argument(module.source, call, 'map_location="cpu"')),
            )


def _chooses_device(module: Module) -> bool:
    return any(_in_scope(module, scope) for scope in module.scope.walk())


def _in_scope(module: Module, scope: Scope) -> bool:
    for name in ("device", "is_available"):
        if any(module.qualname(call.func, scope) in _CHOOSING for call in scope.calls.get(name, ())):
            return True
    for call in (*scope.calls.get("to", ()), *scope.calls.get("cpu", ())):
        if not call.args and isinstance(call.func, ast.Attribute) and call.func.attr == "cpu":
            continue
        for given in (*call.args, *(keyword.value for keyword in call.keywords if keyword.arg == "device")):
            if isinstance(given, ast.Constant) and given.value == "cpu":
                return True
            if isinstance(given, (ast.Name, ast.Attribute)) and "device" in ast.unparse(given).rpartition(".")[2]:
                return True
    return False
