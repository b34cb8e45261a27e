"""From an exception to what a colleague would say: the layer, the user's line, the number that is wrong.

A correction is offered only where it is certain: the layer that failed takes N of something its input has M of, and
the call that made the layer spells N as a number.
"""

from __future__ import annotations

import ast
import functools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from .building import describe
from .inference import Outcome
from .registry import Change, Problem
from .sites import Construction, Site, error_site
from .tracing import Call


@dataclass(frozen=True)
class Known:
    """A message of torch or Python, the failure of the catalogue it is, and what to write instead."""

    pattern: re.Pattern[str]
    failure: str
    hint: str


def _known(pattern: str, failure: str, hint: str) -> Known:
    return Known(re.compile(pattern, re.S), failure, hint)


KNOWN = (
    _known(r"cannot be multiplied|same reduction dim|must match the reduction", "T-C1", ""),
    _known(
        r"must have the same dtype|expected m1 and m2 to have the same dtype",
        "T-C2",
        "convert one side: x.to(self.weight.dtype)",
    ),
    _known(r"at non-singleton dimension|broadcast a dimension of length", "T-C3", ""),
    _known(r"view size is not compatible|Cannot view a tensor with shape", "T-C4", "use reshape instead of view"),
    _known(r"Boolean value of Tensor with more than one value", "T-C5", "say which you mean: .any() or .all()"),
    _known(r"Tensor with \d+ elements cannot be converted to Scalar", "T-C6", "reduce it first, or index one element"),
    _known(
        r"Can't call numpy\(\) on Tensor that requires grad",
        "T-A4",
        "detach first: x.detach().cpu().numpy(), or stay in torch",
    ),
    _known(r"Legacy autograd function", "T-F1", "call Function.apply(...); don't create an instance"),
    _known(
        r"cannot assign '.*' as parameter", "T-D2", "wrap it in nn.Parameter, or copy into it under torch.no_grad()"
    ),
    _known(
        r"cannot assign (?:module|parameters?|buffers?) before Module.__init__", "T-D1", "call super().__init__() first"
    ),
    _known(r"object has no attribute", "T-D4", ""),
    _known(r"shape '\[.*\]' is invalid for input of size", "L-03", ""),
    _known(r"expected input.* to have \d+ channels, but got", "X-01", ""),
    _known(r"Sizes of tensors must match except", "X-04", ""),
    _known(r"Tensors must have same number of dimensions", "X-05", ""),
    _known(r"einsum\(\):", "X-06", ""),
    _known(
        r"Expected hidden\[?\d?\]? size", "X-07", "make the hidden state for x.size(0) samples, not for a fixed number"
    ),
    _known(r"missing the required \"forward\" function", "X-37", "define forward; check its spelling and indentation"),
    _known(r"in_channels must be divisible by groups|num_channels must be divisible by num_groups", "X-02", ""),
    _known(r"embed_dim must be divisible by num_heads", "X-03", ""),
    _known(r"index out of range in self", "L-02", "raise num_embeddings, or keep the indices below it"),
    _known(
        r"not compiled with CUDA|Found no NVIDIA driver|No CUDA GPUs|cuda\(\)",
        "L-11",
        "make tensors on the input's device: device=x.device",
    ),
    _known(r"Inference tensors cannot be saved", "T-A6", "use torch.no_grad() instead of inference_mode"),
)


def known(message: str) -> Known | None:
    """The entry for a message."""
    return next((entry for entry in KNOWN if entry.pattern.search(message)), None)


def construct_hint(error: BaseException) -> str:
    """What to write instead, for an exception of a constructor."""
    entry = known(str(error))
    return entry.hint if entry else ""


# ---- the layer that failed


@dataclass(frozen=True)
class Mismatch:
    """A layer takes ``takes`` of what its input has ``gets`` of; ``argument`` of its constructor says so."""

    argument: str
    position: int
    takes: int
    gets: int


def mismatch(call: Call) -> Mismatch | None:
    """Which number of a failed layer doesn't fit its input."""
    layer = call.module
    shape = call.shapes[0] if call.shapes else ()
    if not shape:
        return None
    found: Mismatch | None = None
    kind = type(layer).__name__
    if isinstance(layer, nn.Linear):
        found = Mismatch("in_features", 0, layer.in_features, shape[-1])
    elif isinstance(layer, nn.modules.conv._ConvNd):
        rank = int(next(digit for digit in kind if digit.isdigit())) if any(c.isdigit() for c in kind) else 2
        index = 1 if len(shape) == rank + 2 else 0
        if len(shape) in (rank + 1, rank + 2):
            found = Mismatch("in_channels", 0, layer.in_channels, shape[index])
    elif isinstance(layer, nn.modules.batchnorm._NormBase) and len(shape) > 1:
        found = Mismatch("num_features", 0, layer.num_features, shape[1])
    elif isinstance(layer, nn.LayerNorm) and len(layer.normalized_shape) == 1:
        found = Mismatch("normalized_shape", 0, layer.normalized_shape[0], shape[-1])
    elif isinstance(layer, nn.GroupNorm) and len(shape) > 1:
        found = Mismatch("num_channels", 1, layer.num_channels, shape[1])
    elif isinstance(layer, (nn.RNNBase, nn.RNNCellBase)):
        found = Mismatch("input_size", 0, layer.input_size, shape[-1])
    elif isinstance(layer, nn.MultiheadAttention):
        found = Mismatch("embed_dim", 0, layer.embed_dim, shape[-1])
    return found if found is not None and found.takes != found.gets else None


_UNIT = {
    "in_features": "features",
    "in_channels": "channels",
    "num_features": "channels",
    "normalized_shape": "features",
    "num_channels": "channels",
    "input_size": "features",
    "embed_dim": "features",
}
# Containers of torch that make the layer themselves: there the number has another name.
_OUTER = {"TransformerEncoderLayer": "d_model", "TransformerDecoderLayer": "d_model", "Transformer": "d_model"}


def change_for(found: Mismatch, layer: nn.Module, made: Site | None) -> Change | None:
    """The edit that makes a layer take what it gets, if the call that made it spells the number."""
    if made is None:
        return None
    call = _call_at(made)
    if call is None:
        return None
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    argument, position = found.argument, found.position
    if name in _OUTER:
        argument, position = _OUTER[name], 0
    elif name.replace("Lazy", "") != type(layer).__name__:
        return None
    node = next((keyword.value for keyword in call.keywords if keyword.arg == argument), None)
    if node is None and len(call.args) > position and not isinstance(call.args[position], ast.Starred):
        node = call.args[position]
    if node is None or _number(node) != found.takes:
        return None
    site = _node_site(made.file, node)
    return Change(site, str(found.takes), str(found.gets), f"{argument} {found.takes} -> {found.gets}")


@functools.lru_cache(maxsize=64)
def _parsed(file: str) -> ast.Module | None:
    try:
        return ast.parse(Path(file).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return None


@functools.lru_cache(maxsize=64)
def _lines(file: str) -> list[bytes]:
    return Path(file).read_bytes().splitlines()


def _call_at(site: Site) -> ast.Call | None:
    tree = _parsed(site.file)
    if tree is None:
        return None
    on_row = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.lineno == site.row]
    exact = [node for node in on_row if _node_site(site.file, node) == site]
    if exact:
        return exact[0]
    layers = [node for node in on_row if not isinstance(node.func, ast.Name) or node.func.id != "super"]
    return layers[0] if len(layers) == 1 else None


def _node_site(file: str, node: ast.expr) -> Site:
    end_row, end = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
    return Site(file, node.lineno, _column(file, node.lineno, node.col_offset), end_row, _column(file, end_row, end))


def _column(file: str, row: int, offset: int) -> int:
    lines = _lines(file)
    line = lines[row - 1] if row <= len(lines) else b""
    return len(line[:offset].decode("utf-8", "replace")) + 1


def _number(node: ast.expr) -> int | None:
    """The value of a number, or of arithmetic on numbers alone."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int) and not isinstance(node.value, bool):
        return node.value
    if isinstance(node, ast.BinOp):
        left, right = _number(node.left), _number(node.right)
        if left is not None and right is not None:
            if isinstance(node.op, ast.Mult):
                return left * right
            if isinstance(node.op, ast.Add):
                return left + right
            if isinstance(node.op, ast.Sub):
                return left - right
            if isinstance(node.op, ast.FloorDiv) and right:
                return left // right
    return None


# ---- the whole failure


def original_path(path: str) -> str:
    """A layer's path as the user knows it."""
    return path or "the model itself"


def shapes_up_to(outcome: Outcome, limit: int = 12) -> list[str]:
    """The leaf layers that ran before the failure, with the sizes they took and gave."""
    calls = outcome.layers.calls
    leaves = [
        call
        for index, call in enumerate(calls)
        if index + 1 >= len(calls) or calls[index + 1].depth <= call.depth or call is outcome.layers.failed
    ]
    lines = [
        f"  {call.path or '(model)'} ({type(call.module).__name__}): {call.inputs} -> "
        + (call.output if call.finished else "fails here")
        for call in leaves
    ]
    if len(lines) > limit:
        lines = [*lines[:2], f"  ... {len(lines) - limit} more", *lines[-(limit - 2) :]]
    return lines


def diagnose(
    outcome: Outcome, model: nn.Module, construction: Construction, pristine: nn.Module, what: str = "forward"
) -> Problem:
    """A problem for a forward pass that failed: the user's line, the layer, the correction."""
    error = outcome.error
    assert error is not None
    site = error_site(error)
    failed = outcome.layers.failed
    entry = known(str(error))
    failure = entry.failure if entry else ""
    hint = entry.hint if entry else ""
    details = []
    shapes = shapes_up_to(outcome)
    if shapes:
        details.append("sizes up to there:")
        details.extend(shapes)
    if outcome.ops.failed is not None and outcome.ops.failed.inputs:
        inputs = ", ".join(str(list(shape)) for shape in outcome.ops.failed.inputs)
        details.append(f"the operation that failed: {outcome.ops.failed.name} of {inputs}")
    details.append(f"torch says: {describe(error)}")
    if isinstance(error, SystemExit):
        return Problem(f"{what} ends the process: sys.exit({error.code!r})", site, layer=_path(failed))
    if isinstance(error, EOFError):
        return Problem(f"{what} asks for input(); there is no one to answer", site, layer=_path(failed))
    found = mismatch(failed) if failed is not None else None
    if failed is not None and found is not None:
        original = _same_layer(failed.path, pristine, failed.module)
        made = construction.made(original) if original is not None else None
        change = change_for(found, failed.module, made)
        unit = _UNIT[found.argument]
        message = (
            f"{what} fails in {original_path(failed.path)}: it takes {found.takes} {unit} and gets {found.gets}; "
            f"{found.argument} {found.takes} -> {found.gets}"
        )
        if site is not None:
            details.insert(0, f"called at {Path(site.file).name}:{site.row}: {site.text}")
        place = change.site if change is not None else site
        return Problem(message, place, hint, failure, layer=failed.path, change=change, details=details)
    where = f" in {failed.path}" if failed is not None and failed.path else ""
    return Problem(f"{what} fails{where}: {describe(error)}", site, hint, failure, layer=_path(failed), details=details)


def _same_layer(path: str, pristine: nn.Module, layer: nn.Module) -> nn.Module | None:
    if "<unregistered" in path:
        return layer
    try:
        return pristine.get_submodule(path)
    except AttributeError:
        return None


def _path(call: Call | None) -> str:
    return call.path if call is not None else ""


def is_shape_error(error: BaseException) -> bool:
    """Whether an exception speaks of sizes or dtypes, which other inputs might satisfy."""
    text = str(error)
    return bool(re.search(r"size|shape|dimension|channels|dtype|scalar type|elements|index|divisible|\d", text))


def line_text(site: Site | None) -> str:
    """The source line of a place, for messages."""
    return site.text if site is not None else ""


def find_assignment(tree_file: str, name: str) -> Any:
    """The first statement in a file that sets ``self.<name>``."""
    tree = _parsed(tree_file)
    if tree is None:
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Attribute) and target.attr == name:
                    return _node_site(tree_file, target)
    return None
