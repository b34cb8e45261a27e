"""TL205 numpy-on-grad-tensor."""

from __future__ import annotations

import ast

from torchlint.check import Applicability, Call, Check, Report, Severity, on, spelled

from .common import is_recording
from .repairs import detached_for_numpy


class NumpyOnGradTensor(Check):
    """A tensor that requires grad is turned into a numpy array: torch raises.

    The message is "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."

    ## Why

    numpy knows nothing of the graph, so torch asks for the cut to be written: `detach()`. Under `no_grad`, results
    require no grad and convert as they are; parameters require grad there too.

    ## Bad

        curve.append(loss.numpy())
        np.save("vectors.npy", model.embedding.weight.numpy())

    ## Good

        curve.append(loss.item())
        np.save("vectors.npy", model.embedding.weight.detach().numpy())

    ## Known limits

    A tensor of unknown making is never reported.
    """

    code = "TL205"
    name = "numpy-on-grad-tensor"
    severity = Severity.ERROR
    fixable = Applicability.SAFE
    failures = ("T-A4", "X-19")
    mentions = ("np", "numpy", "plt")

    @on(Call)
    def check(self, call: Call, report: Report) -> None:
        if not call.attached or "force" in call.keywords or (call.arguments and call.receiver is not None):
            return
        tensor = call.attached[0]
        if tensor.role != "parameter" and not is_recording(call):
            return
        node = call.node
        what = node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else node
        if call.receiver is None:
            what = node.args[0] if isinstance(node, ast.Call) and node.args else node
        report(
            node,
            f"`{spelled(node)}` raises: `{spelled(what)}` requires grad, and numpy can't hold that; write "
            f"`{spelled(what)}.detach()` first",
            fix=detached_for_numpy(call),
        )
