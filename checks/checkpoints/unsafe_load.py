"""TL703 unsafe-load."""

from __future__ import annotations

import ast

from torchlint.check import Applicability, Check, Fix, Module, Report, Scope, Severity, on
from torchlint.source.edits import add_argument, set_argument, unsafe

from .common import argument, calls_of, constant_of, is_constant, may_be_given

SAFE_SINCE = (2, 6)
"""The torch release whose torch.load takes ``weights_only=True`` where nothing is said."""

_CHECKPOINTS = (".pt", ".pth", ".ckpt", ".bin", ".tar", ".pkl")
_CHECKPOINT_WORDS = ("checkpoint", "ckpt", "weights", "state_dict", "model")


class UnsafeLoad(Check):
    """A checkpoint is read so that it may run any code: a pickle can call what it likes while it is loaded.

    ## Why

    `torch.load(..., weights_only=False)` and `pickle.load` unpickle whatever the file says. A checkpoint from the
    internet, from a shared folder or from a colleague's broken-into account then runs as you. With
    `weights_only=True`, the default since torch 2.6, only tensors and plain containers are built.

    ## Bad

        state = torch.load("model.pt", weights_only=False)

    ## Good

        state = torch.load("model.pt", weights_only=True)

    Other types that a checkpoint needs are named, not let in wholesale:

        with torch.serialization.safe_globals([argparse.Namespace]):
            state = torch.load("model.pt")

    ## Known limits

    Without weights_only the call is reported only where `target-torch` is set to a version before 2.6. A pickle.load is
    reported where its result goes into load_state_dict, or its file's name says that it is a checkpoint. The fix is
    unsafe: a file that holds other objects can no longer be loaded.
    """

    code = "TL703"
    name = "unsafe-load"
    severity = Severity.WARNING
    fixable = Applicability.UNSAFE
    failures = ("T-G2",)
    mentions = ("load",)

    @on(Module)
    def check(self, module: Module, report: Report) -> None:
        """Look at the calls that read checkpoints."""
        target = module.project.target_torch
        for call, _ in calls_of(module, "torch.load", "torch.serialization.load"):
            text = module.source.segment(call.func)
            if is_constant(argument(call, 3, "weights_only"), False):
                report(
                    call.func,
                    f"{text} with weights_only=False runs whatever code the file holds; load with weights_only=True "
                    "and name other types with torch.serialization.safe_globals.",
                    fix=_fix(module, call),
                )
            elif target is not None and target < SAFE_SINCE and not may_be_given(call, 3, "weights_only"):
                report(
                    call.func,
                    f"Before torch 2.6 {text} runs whatever code the file holds, and your target is "
                    f"{target[0]}.{target[1]}; pass weights_only=True.",
                    fix=unsafe("Pass weights_only=True", add_argument(module.source, call, "weights_only=True")),
                )
        for call, scope in calls_of(module, "pickle.load"):
            if call.args and _is_checkpoint(module, call, scope):
                report(
                    call.func,
                    "Unpickling a checkpoint runs whatever code the file holds; save it with torch.save and load it "
                    "with torch.load(..., weights_only=True).",
                )


def _fix(module: Module, call: ast.Call) -> Fix | None:
    return unsafe("Pass weights_only=True", set_argument(module.source, call, "weights_only", "True"))


def _is_checkpoint(module: Module, call: ast.Call, scope: Scope) -> bool:
    """Whether what pickle.load gives is used as a state dict, or read from a file named as a checkpoint."""
    parent = scope.parents.get(call)
    targets = parent.targets if isinstance(parent, ast.Assign) else []
    names = {target.id for target in targets if isinstance(target, ast.Name)}
    for use in scope.calls.get("load_state_dict", ()):
        for given in use.args[:1]:
            root: ast.AST = given
            while isinstance(root, (ast.Subscript, ast.Attribute)):
                root = root.value
            if root is call or (isinstance(root, ast.Name) and root.id in names):
                return True
    opened = _opened(module, call.args[0], call, scope)
    name = constant_of(module, opened, scope) if opened is not None else None
    if isinstance(name, ast.Constant) and isinstance(name.value, str):
        words = name.value.lower()
        return words.endswith(_CHECKPOINTS) and any(word in words for word in (*_CHECKPOINT_WORDS, ".pth", ".ckpt"))
    return False


def _opened(module: Module, file: ast.expr, call: ast.Call, scope: Scope) -> ast.expr | None:
    """The name of the file that is open: ``open(name, "rb")``, or the with block that opened it."""
    if isinstance(file, ast.Name):
        name = file.id
        block = scope.enclosing(call, ast.With)
        while isinstance(block, ast.With):
            for item in block.items:
                if isinstance(item.optional_vars, ast.Name) and item.optional_vars.id == name:
                    file = item.context_expr
            block = scope.enclosing(block, ast.With)
    if isinstance(file, ast.Call) and file.args and module.qualname(file.func, scope) in ("builtins.open", "gzip.open"):
        return file.args[0]
    return None
