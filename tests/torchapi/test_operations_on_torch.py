"""What operations.tsv says holds on torch: tensors are really changed, and torch is seen to refuse or not."""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from torchlint import torchapi
from torchlint.torchapi import operations
from torchlint.torchapi.tables import rows

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest", reason="torch's own operator samples need expecttest")

pytestmark = pytest.mark.torch

SEED = 20
ALWAYS_TESTED = [
    *(
        f"torch.{name}"
        for name in ("exp", "mul", "div", "matmul", "sqrt", "tanh", "sigmoid", "softmax", "cat", "chunk")
    ),
    *(
        f"torch.{name}"
        for name in ("reshape", "round", "argmax", "where", "max", "norm", "einsum", "var", "pow", "clamp")
    ),
    *(f"torch.Tensor.{name}" for name in ("add_", "mul_", "exp_", "view", "expand", "T", "__setitem__", "__getitem__")),
    *(
        f"torch.Tensor.{name}"
        for name in ("__iadd__", "copy_", "detach", "contiguous", "unbind", "item", "numpy", "to")
    ),
    *(f"torch.nn.functional.{name}" for name in ("relu", "linear", "cross_entropy", "layer_norm", "dropout", "conv2d")),
]


def measured() -> list[str]:
    names = sorted(rows("operations"))
    return [name for name in names if (found := torchapi.function(name)) is not None and found.measured]


CHOSEN = random.Random(SEED).sample(measured(), 250)
TESTED = [name for name in dict.fromkeys([*ALWAYS_TESTED, *CHOSEN]) if torchapi.function(name) is not None]


def callable_of(name: str) -> Callable[..., Any]:
    member: Any = torch
    for part in name.split(".")[1:]:
        member = getattr(member, part)
    return member  # type: ignore[no-any-return]


def invocations(name: str) -> Iterator[tuple[list[Any], dict[str, Any]]]:
    """Calls with fresh tensors."""
    from measuring.samples import function_samples, method_samples
    from measuring.saved import mapped

    method = name.startswith("torch.Tensor.")
    samples = method_samples(name.rpartition(".")[2]) if method else function_samples(name)
    for sample in samples:
        if not all(tensor.layout is torch.strided for tensor in tensors(list(sample.arguments))):
            continue
        yield (
            [mapped(argument, torch.clone) for argument in sample.arguments],
            {key: mapped(value, torch.clone) for key, value in sample.keywords.items()},
        )


def tensors(value: Any) -> list[Any]:
    from measuring.saved import tensors_in

    return tensors_in(value)


def accepted(call: Callable[..., Any], arguments: list[Any], keywords: dict[str, Any]) -> Any:
    """The result, or None where this call isn't one that torch takes (some samples are of the out-of-place form)."""
    try:
        return call(*arguments, **keywords)
    except (RuntimeError, TypeError, IndexError):
        return None


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def same(first: Any, second: Any) -> bool:
    return bool(((first == second) | ((first != first) & (second != second))).all())


@pytest.mark.parametrize("name", TESTED)
def test_in_place_operations_change_what_they_say_and_nothing_else(name: str) -> None:
    operation = torchapi.function(name)
    assert operation is not None
    call = callable_of(operation.name)
    for arguments, keywords in invocations(operation.name):
        before = [[(tensor.clone(), tensor._version) for tensor in tensors(argument)] for argument in arguments]
        with torch.no_grad():
            accepted(call, arguments, keywords)
        for position, (argument, old) in enumerate(zip(arguments, before, strict=True)):
            versions = [(tensor._version, was) for tensor, (_, was) in zip(tensors(argument), old, strict=False)]
            if position in operation.mutates:
                assert (
                    not versions
                    or any(now > was for now, was in versions)
                    or accepted(call, arguments, keywords) is None
                )
            elif position not in operation.maybe_mutates:
                assert all(now == was for now, was in versions)
                assert all(same(tensor, copy) for tensor, (copy, _) in zip(tensors(argument), old, strict=False))


@pytest.mark.parametrize("name", TESTED)
def test_results_share_storage_exactly_where_the_table_says(name: str) -> None:
    operation = torchapi.function(name)
    assert operation is not None
    call = callable_of(operation.name)
    for arguments, keywords in invocations(operation.name):
        with torch.no_grad():
            result = accepted(call, arguments, keywords)
        results = {tensor.untyped_storage().data_ptr() for tensor in tensors(result) if tensor.layout is torch.strided}
        for position, argument in enumerate(arguments):
            owned = {tensor.untyped_storage().data_ptr() for tensor in tensors(argument)}
            if position in operation.view_of and owned and results:
                assert owned & results
            elif position not in (
                *operation.mutates,
                *operation.maybe_mutates,
                *operation.maybe_view_of,
                *operation.view_of,
            ):
                assert not owned & results


@pytest.mark.parametrize("name", TESTED)
def test_results_hang_on_the_graph_where_the_table_says(name: str) -> None:
    operation = torchapi.function(name)
    assert operation is not None
    if operation.differentiable is None:
        pytest.skip("not measured")
    call = callable_of(operation.name)
    followed = {need.gradient_of for need in operation.needs}
    for arguments, keywords in invocations(operation.name):
        floating = [position for position, argument in enumerate(arguments) if has_floats(argument)]
        for position in floating:
            given = requiring_grad(arguments, position)
            result = accepted(call, given, keywords)
            if result is None or operation.unimplemented:
                continue
            hangs = any(tensor.requires_grad for tensor in tensors(result))
            if not operation.differentiable or position not in followed:
                assert not hangs or operation.factory
            assert hangs or position not in followed or not always_followed(operation)


def always_followed(operation: torchapi.Operation) -> bool:
    """Whether every call's result hangs on each followed argument; max(x, dim) has overloads, to(int) breaks off."""
    return "|" not in operation.result and not operation.maybe_view_of and not operation.is_inplace


def has_floats(argument: Any) -> bool:
    return any(tensor.is_floating_point() or tensor.is_complex() for tensor in tensors(argument))


def requiring_grad(arguments: list[Any], position: int) -> list[Any]:
    """Copies; those of one position are non-leaves that require grad."""
    from measuring.saved import mapped

    def grown(tensor: Any) -> Any:
        floating = tensor.is_floating_point() or tensor.is_complex()
        return tensor.detach().clone().requires_grad_().clone() if floating else tensor.clone()

    return [mapped(argument, grown if index == position else torch.clone) for index, argument in enumerate(arguments)]


REFUSED = r"modified by an inplace operation|its base or another view of its base has been modified inplace"


@pytest.mark.parametrize("name", [name for name in TESTED if (found := torchapi.function(name)) and found.needs])
def test_backward_refuses_after_a_saved_tensor_is_changed(name: str) -> None:
    operation = torchapi.function(name)
    assert operation is not None
    call = callable_of(operation.name)
    for need in operation.needs:
        if need.fails:
            continue
        for arguments, keywords in list(invocations(operation.name))[:4]:
            if need.gradient_of >= len(arguments) or not has_floats(arguments[need.gradient_of]):
                continue
            for position in range(len(arguments)):
                given = requiring_grad(arguments, need.gradient_of)
                torch.manual_seed(0)
                result = accepted(call, given, keywords)
                if operation.result == "none":
                    result = given[0]
                changed = tensors(given[position])
                if not any(tensor.grad_fn is not None for tensor in tensors(result)) or not changed:
                    continue
                in_place = position in operation.mutates
                expected = (0 in need.outputs) if in_place else position in need.inputs
                open_question = position in need.maybe_inputs or (in_place and 0 in need.maybe_outputs)
                if not open_question:
                    assert refuses(result, changed) in (expected, None), (position, need)


@pytest.mark.parametrize("name", [name for name in TESTED if (found := torchapi.function(name)) and found.saves_output])
def test_backward_refuses_after_a_saved_result_is_changed(name: str) -> None:
    operation = torchapi.function(name)
    assert operation is not None
    call = callable_of(operation.name)
    need = next(need for need in operation.needs if 0 in need.outputs)
    arguments, keywords = next(invocations(operation.name))
    result = accepted(call, requiring_grad(arguments, need.gradient_of), keywords)
    assert refuses(result, tensors(result)[:1])


def refuses(result: Any, changed: list[Any]) -> bool | None:
    """Whether backward complains once these tensors were really changed in place; None where it never works."""
    with torch.no_grad():
        for tensor in changed:
            tensor.zero_()
    reachable = [tensor for tensor in tensors(result) if tensor.requires_grad]
    try:
        torch.autograd.backward(reachable, [torch.ones_like(tensor) for tensor in reachable])
    except RuntimeError as error:
        if "not implemented" in str(error):
            return None
        assert re.search(REFUSED, str(error)), error
        return True
    return False


@pytest.mark.parametrize(
    "name", [name for name in measured() if (found := torchapi.function(name)) and found.zero_gradient]
)
def test_zero_gradients_are_zero(name: str) -> None:
    operation = torchapi.function(name)
    assert operation is not None
    call = callable_of(operation.name)
    for arguments, keywords in list(invocations(operation.name))[:3]:
        for need in operation.needs:
            given = requiring_grad(arguments, need.gradient_of)
            sources = [tensor for tensor in tensors(given[need.gradient_of]) if tensor.requires_grad]
            gradients: list[Any] = []
            for source in sources:
                source.register_hook(gradients.append)
            result = accepted(call, given, keywords)
            reachable = [tensor for tensor in tensors(result) if tensor.requires_grad]
            if reachable:
                torch.autograd.backward(reachable, [torch.ones_like(tensor) for tensor in reachable])
            assert all(gradient is None or not gradient.any() for gradient in gradients)


@pytest.mark.parametrize("name", TESTED)
def test_results_are_of_the_kind_the_table_says(name: str) -> None:
    from measuring.operations import described

    operation = torchapi.function(name)
    assert operation is not None
    known = {"item": {"number"}, "tolist": {"other"}}.get(operation.short_name, set(operation.result.split("|")))
    for arguments, keywords in invocations(operation.name):
        result = accepted(callable_of(operation.name), arguments, keywords)
        if result is not None and operation.short_name not in ("item", "tolist"):
            assert described(result) in known


RANGES: dict[str, Callable[[Any], Any]] = {
    operations.UNIT: lambda values: (values >= 0) & (values <= 1),
    operations.PROBABILITIES: lambda values: (values >= 0) & (values <= 1 + 1e-12),
    operations.LOG_PROBABILITIES: lambda values: values <= 0,
    operations.SIGNED_UNIT: lambda values: values.abs() <= 1 + 1e-9,
    operations.POSITIVE: lambda values: values > 0,
    operations.NONNEGATIVE: lambda values: values >= 0,
    operations.NONPOSITIVE: lambda values: values <= 0,
}


@pytest.mark.parametrize("name", [name for name in measured() if (found := torchapi.function(name)) and found.range])
def test_values_lie_in_the_range_that_the_table_gives(name: str) -> None:
    operation = torchapi.function(name)
    assert operation is not None
    call = callable_of(operation.name)
    checked = 0
    calls = list(invocations(operation.name))
    if len(operation.signature.arguments) and operation.signature.minimum <= 1 and calls and tensors(calls[0][0]):
        calls.append(([torch.randn(40, 5, dtype=torch.double) * 3], {}))
    for arguments, keywords in calls:
        result = accepted(call, arguments, keywords)
        for values in tensors(result)[:1]:
            if values.is_complex():
                continue
            known = values[~values.isnan()] if values.is_floating_point() else values
            assert bool(RANGES[operation.range](known).all())
            checked += 1
    assert checked or operation.result == "int"


def test_probabilities_sum_to_one() -> None:
    scores = torch.randn(5, 7, dtype=torch.double)
    for name in ("torch.softmax", "torch.nn.functional.softmin", "torch.nn.functional.gumbel_softmax"):
        operation = torchapi.function(name)
        assert operation is not None
        assert operation.range == operations.PROBABILITIES
        assert torch.allclose(callable_of(name)(scores, dim=1).sum(1), torch.ones(5, dtype=torch.double))


@pytest.mark.parametrize("name", [name for name in TESTED if (found := torchapi.function(name)) and found.dtype])
def test_result_dtypes_follow_the_rule(name: str) -> None:
    operation = torchapi.function(name)
    assert operation is not None
    for arguments, keywords in invocations(operation.name):
        given = [tensor for tensor in tensors(arguments) if tensor.is_floating_point()]
        result = tensors(accepted(callable_of(operation.name), arguments, keywords))
        if not result or "dtype" in keywords or any(isinstance(argument, torch.dtype) for argument in arguments):
            continue
        if operation.dtype in ("same", "float", "accumulate"):
            assert not given or result[0].dtype in {tensor.dtype for tensor in tensors(arguments)}
        elif operation.dtype == "default":
            assert result[0].dtype == torch.get_default_dtype()
        else:
            assert result[0].dtype == getattr(torch, operation.dtype)


@pytest.mark.parametrize(
    "name",
    [name for name in measured() if (found := torchapi.function(name)) and found.random and not found.is_inplace],
)
def test_random_operations_draw(name: str) -> None:
    operation = torchapi.function(name)
    assert operation is not None
    call = callable_of(operation.name)
    differences = 0
    for arguments, keywords in invocations(operation.name):
        torch.manual_seed(1)
        first = tensors(accepted(call, arguments, keywords))
        torch.manual_seed(2)
        second = tensors(accepted(call, arguments, keywords))
        differences += any(not same(a, b) for a, b in zip(first, second, strict=True) if a.shape == b.shape)
    assert differences


@pytest.mark.parametrize("name", ["split", "chunk", "unbind"])
def test_pieces_may_not_be_changed_in_place(name: str) -> None:
    operation = torchapi.tensor_method(name)
    assert operation is not None
    assert operation.pieces
    whole = torch.rand(2, 2, 2, requires_grad=True).clone()
    pieces = whole.unbind() if name == "unbind" else getattr(whole, name)(1)
    with pytest.raises(RuntimeError, match="multiple views"):
        pieces[0].add_(1)


def test_attributes_of_tensors_are_torchs() -> None:
    properties = {
        name for name in dir(torch.Tensor) if not name.startswith("_") and not callable(getattr(torch.Tensor, name))
    }
    assert properties <= set(operations.TENSOR_ATTRIBUTES)
    base = torch.rand(2, 2, requires_grad=True).clone()
    for attribute in operations.TENSOR_ATTRIBUTES.values():
        if attribute.is_view:
            value = getattr(base, attribute.name) if attribute.name != "imag" else (base + 0j).imag
            if attribute.name != "imag":
                assert value.untyped_storage().data_ptr() == base.untyped_storage().data_ptr()
            assert value.requires_grad == attribute.differentiable


def test_python_syntax_means_what_the_table_says() -> None:
    value = torch.rand(3) + 1
    for symbol in ("+", "-", "*", "/", "//", "%", "**", "@", "==", "<", "&"):
        operation = torchapi.operator(symbol)
        assert operation is not None
        operand = torch.ones(3, dtype=torch.int64) if symbol == "&" else value
        by_syntax = eval(f"a {symbol} b", {"a": operand, "b": operand})
        assert torch.equal(by_syntax, callable_of(operation.name)(operand, operand))
    for symbol in ("+=", "-=", "*=", "/=", "//=", "%=", "**="):
        operation = torchapi.operator(symbol)
        assert operation is not None
        scope = {"a": value.clone(), "b": value}
        before = scope["a"]
        exec(f"a {symbol} b", scope)
        assert scope["a"] is before
        assert operation.is_inplace
    scope = {"a": torch.eye(3), "b": torch.eye(3)}
    before = scope["a"]
    exec("a @= b", scope)
    assert scope["a"] is not before


def test_every_public_method_and_function_is_tabled() -> None:
    from measuring.operations import subjects

    assert {subject.name for subject in subjects()} == set(rows("operations"))
    methods = {name for name in dir(torch.Tensor) if not name.startswith("_") and callable(getattr(torch.Tensor, name))}
    assert all(torchapi.tensor_method(name) is not None for name in methods)
