"""What a computation keeps for its backward, found by changing things and watching backward refuse.

A tensor that backward needs carries a version counter. Changing it in place after the forward makes backward raise
"one of the variables needed for gradient computation has been modified by an inplace operation". So: run, bump the
version of one input or output under no_grad, call backward, and see.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

Call = Callable[..., Any]
MODIFIED = "modified by an inplace operation"


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


def as_results(value: Any) -> Any:
    """The same structure with every floating tensor a non-leaf that requires grad."""
    if is_floating(value) and value.layout is torch.strided:
        return value.detach().clone().requires_grad_().clone()
    if type(value) in (tuple, list):
        return type(value)(as_results(item) for item in value)
    return value


def run_backward(result: Any) -> None:
    """Backward through everything of the result that has a graph."""
    reachable = [tensor for tensor in tensors_in(result) if tensor.grad_fn is not None]
    torch.autograd.backward(reachable, [torch.ones_like(tensor) for tensor in reachable])


def bump(tensor: torch.Tensor) -> None:
    """Count a change in place, without changing the values that the backward then works with."""
    torch._C._autograd._unsafe_set_version_counter((tensor,), (tensor._version + 1,))


def differentiable_arguments(call: Call, arguments: Sequence[Any]) -> tuple[int, ...]:
    """The positions whose tensors may require grad; torch refuses some (soft_margin_loss and its target)."""
    candidates = [index for index, argument in enumerate(arguments) if any(map(is_floating, tensors_in(argument)))]
    accepted = []
    for index in candidates:
        given = [as_results(argument) if at == index else argument for at, argument in enumerate(arguments)]
        try:
            result = call(*given)
        except RuntimeError as error:
            if "not differentiable with respect to argument" in str(error) or "derivative" in str(error):
                continue
            raise
        if any(tensor.requires_grad for tensor in tensors_in(result)):
            accepted.append(index)
    return tuple(accepted)


def refuses(
    call: Call,
    arguments: Sequence[Any],
    followed: Sequence[int],
    pick: Callable[[Sequence[Any], Any], list[torch.Tensor]],
) -> bool:
    """Whether backward refuses after the tensors that ``pick`` chooses were changed in place."""
    given = [as_results(argument) if index in followed else fresh(argument) for index, argument in enumerate(arguments)]
    result = call(*given)
    for tensor in pick(given, result):
        bump(tensor)
    try:
        run_backward(result)
    except RuntimeError as error:
        if MODIFIED in str(error):
            return True
        raise
    return False


def fresh(value: Any) -> Any:
    """A copy of the tensors, so that a changed version counter stays with one run."""
    if isinstance(value, torch.Tensor):
        return value.clone()
    if type(value) in (tuple, list):
        return type(value)(fresh(item) for item in value)
    return value


def saved_inputs(call: Call, arguments: Sequence[Any], followed: Sequence[int]) -> tuple[int, ...]:
    """Which positions hold tensors that backward needs."""
    return tuple(
        index
        for index, argument in enumerate(arguments)
        if tensors_in(argument) and refuses(call, arguments, followed, lambda given, _, at=index: tensors_in(given[at]))
    )


def saves_output(call: Call, arguments: Sequence[Any], followed: Sequence[int]) -> bool:
    """Whether backward needs the result itself, by its own right and not as one of the inputs or a view of one."""

    def results(given: Sequence[Any], result: Any) -> list[torch.Tensor]:
        storages = {tensor.untyped_storage()._cdata for tensor in tensors_in(list(given))}
        return [
            tensor
            for tensor in tensors_in(result)
            if tensor.grad_fn is not None and tensor.untyped_storage()._cdata not in storages
        ]

    return refuses(call, arguments, followed, results)
