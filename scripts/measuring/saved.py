"""What a computation keeps for its backward, found by changing things and watching backward refuse.

A tensor that backward needs carries a version counter. Changing it in place after the forward makes backward raise
"one of the variables needed for gradient computation has been modified by an inplace operation". So: run with one
argument that requires grad, bump the version of one tensor, call backward, and see whether it raises.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

Call = Callable[..., Any]
REFUSALS = (
    "modified by an inplace operation",
    # Pieces of split, chunk and unbind know their base: once it changed, not even their grad_fn can be had.
    "is a view and its base or another view of its base has been modified inplace",
)


def tensors_in(value: Any) -> list[torch.Tensor]:
    """The tensors of a result, through tuples, lists and dicts, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (tuple, list)):
        return [tensor for item in value for tensor in tensors_in(item)]
    if isinstance(value, dict):
        return [tensor for item in value.values() for tensor in tensors_in(item)]
    return []


def is_floating(value: Any) -> bool:
    """Whether autograd can follow it."""
    return isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())


def mapped(value: Any, change: Callable[[torch.Tensor], Any]) -> Any:
    """The same structure of plain tuples and lists with every tensor changed."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if type(value) in (tuple, list):
        return type(value)(mapped(item, change) for item in value)
    return value


def as_result(tensor: torch.Tensor) -> torch.Tensor:
    """A copy that is a non-leaf with a graph, so that it may be changed in place."""
    if not is_floating(tensor):
        return tensor.clone()
    # The strides are kept: some operations copy what isn't contiguous, and then save the copy.
    return tensor.detach().clone().requires_grad_().clone()


def storage(tensor: torch.Tensor) -> int | None:
    """What tensors share that are views of each other; None where there is no storage (sparse layouts)."""
    return tensor.untyped_storage()._cdata if tensor.layout is torch.strided else None


def run_backward(result: Any) -> None:
    """Backward through everything of the result that has a graph."""
    reachable = [tensor for tensor in tensors_in(result) if tensor.grad_fn is not None]
    torch.autograd.backward(reachable, [torch.ones_like(tensor) for tensor in reachable])


def bump(tensor: torch.Tensor) -> None:
    """Count a change in place, without changing the values that the backward then works with."""
    torch._C._autograd._unsafe_set_version_counter((tensor,), (tensor._version + 1,))


@dataclass
class Needs:
    """What the gradient of one argument needs: positions of arguments, indices of results."""

    inputs: set[int] = field(default_factory=set)
    outputs: set[int] = field(default_factory=set)
    fails: bool = False
    """Whether backward raises although nothing was changed: torch has no derivative for it."""
    zero: bool = True
    """Whether the gradient is zero everywhere."""


def refuses(call: Call, arguments: Sequence[Any], followed: int, pick: Callable[[list[Any], Any], Any]) -> bool:
    """Whether backward refuses after the tensors that ``pick`` chooses were changed in place."""
    given = prepared(arguments, followed)
    result = call(*given)
    for tensor in tensors_in(pick(given, result)):
        bump(tensor)
    try:
        run_backward(result)
    except RuntimeError as error:
        if any(words in str(error) for words in REFUSALS):
            return True
        raise
    return False


def prepared(arguments: Sequence[Any], followed: int) -> list[Any]:
    """Copies of the arguments; the followed one requires grad and is no leaf."""
    return [
        mapped(argument, as_result if index == followed else torch.Tensor.clone)
        for index, argument in enumerate(arguments)
    ]


def gradient_is_zero(call: Call, arguments: Sequence[Any], followed: int) -> bool:
    """Whether the gradient of the followed argument is zero everywhere."""
    given = prepared(arguments, followed)
    sources = [tensor for tensor in tensors_in(given[followed]) if tensor.requires_grad]
    for tensor in sources:
        tensor.retain_grad()
    # A hook sees the gradient even of a tensor that the call then changes in place.
    seen: list[torch.Tensor | None] = []
    for tensor in sources:
        tensor.register_hook(seen.append)
    run_backward(call(*given))
    return all(gradient is None or not bool(gradient.abs().sum() != 0) for gradient in seen)


def has_graph(call: Call, arguments: Sequence[Any], followed: int) -> bool:
    """Whether the result hangs on the graph of the followed argument; torch may refuse that it requires grad."""
    if not any(is_floating(tensor) for tensor in tensors_in(arguments[followed])):
        return False
    try:
        result = call(*prepared(arguments, followed))
    except RuntimeError as error:
        if any(words in str(error) for words in ("not differentiable", "require")):
            return False
        if "derivative for" in str(error) and "not implemented" in str(error):
            return True
        raise
    return any(tensor.grad_fn is not None for tensor in tensors_in(result))


def needs(call: Call, arguments: Sequence[Any]) -> dict[int, Needs]:
    """For each position whose gradient flows: what backward needs unchanged for it."""
    found: dict[int, Needs] = {}
    for followed in range(len(arguments)):
        if not has_graph(call, arguments, followed):
            continue
        need = found[followed] = Needs()
        try:
            need.fails = refuses(call, arguments, followed, lambda given, result: ())
        except RuntimeError as error:
            if "derivative for" not in str(error) or "not implemented" not in str(error):
                raise
            need.fails = True
        if need.fails:
            need.zero = False
            continue
        need.zero = gradient_is_zero(call, arguments, followed)
        for index, argument in enumerate(arguments):
            if tensors_in(argument) and refuses(call, arguments, followed, lambda given, _, at=index: given[at]):
                need.inputs.add(index)
        for index in range(len(tensors_in(call(*prepared(arguments, followed))))):
            if refuses(call, arguments, followed, lambda given, result, at=index: own_result(given, result, at)):
                need.outputs.add(index)
    return found


def own_result(given: list[Any], result: Any, index: int) -> list[torch.Tensor]:
    """The result of that index, if it is neither an argument nor a view of one."""
    shared = {storage(tensor) for tensor in tensors_in(given)}
    tensor = tensors_in(result)[index]
    return [] if storage(tensor) in shared else [tensor]
