"""What modules.tsv and aliases.tsv say holds on torch."""

from __future__ import annotations

import importlib
import inspect
import itertools
import types
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from torchlint import torchapi
from torchlint.torchapi.signatures import KEYWORD, POSITIONAL, Symbol
from torchlint.torchapi.tables import rows

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest", reason="the measuring scripts need torch's own operator samples")
nn = torch.nn

pytestmark = pytest.mark.torch

PUBLIC = [
    name
    for name in dir(nn)
    if isinstance(getattr(nn, name), type) and issubclass(getattr(nn, name), nn.Module) and not name.startswith("_")
]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def samples() -> dict[str, Any]:
    from measuring.layers import SAMPLES

    return dict(SAMPLES)


def built(name: str, **keywords: Any) -> Any:
    """An instance as the measuring scripts build it."""
    from measuring.layers import build

    return build(getattr(nn, name), samples()[name], **keywords)


def resolved(path: str) -> Any:
    """What Python finds under a dotted path; where a function hides the module of its name, the module is asked too."""
    parts = path.split(".")
    member: Any = importlib.import_module(parts[0])
    for index, part in enumerate(parts[1:], start=1):
        if not hasattr(member, part) and not isinstance(member, types.ModuleType):
            member = importlib.import_module(".".join(parts[:index]))
        # torch.optim deletes the attributes of its modules, which can be imported all the same.
        member = (
            getattr(member, part) if hasattr(member, part) else importlib.import_module(".".join(parts[: index + 1]))
        )
    return member


def test_every_public_layer_is_tabled() -> None:
    assert [name for name in PUBLIC if torchapi.module_class(f"torch.nn.{name}") is None] == []


@pytest.mark.parametrize("name", PUBLIC)
def test_constructor_signatures_are_torchs(name: str) -> None:
    spec = torchapi.module_class(f"torch.nn.{name}")
    assert spec is not None
    cls = getattr(nn, name)
    if cls.__init__ is nn.Module.__init__:
        assert spec.signature.arguments == ()
        assert isinstance(cls(), nn.Module)
        return
    expected = list(inspect.signature(cls).parameters.values())
    if name in ("RNN", "LSTM", "GRU", "NLLLoss2d", "Container"):
        pytest.skip("written (*args, **kwargs) in torch")
    assert [argument.name for argument in spec.signature.arguments] == [parameter.name for parameter in expected]
    for argument, parameter in zip(spec.signature.arguments, expected, strict=True):
        if argument.kind in (POSITIONAL, KEYWORD):
            assert (argument.kind == KEYWORD) == (parameter.kind is parameter.KEYWORD_ONLY)
            assert argument.required == (parameter.default is parameter.empty)
            if not argument.required and not isinstance(argument.default, (Symbol, type(...))):
                assert argument.default == parameter.default


@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
def test_recurrent_layers_take_what_the_documentation_says(name: str) -> None:
    spec = torchapi.module_class(f"torch.nn.{name}")
    assert spec is not None
    values: dict[str, Any] = {
        "input_size": 3,
        "hidden_size": 4,
        "num_layers": 2,
        "nonlinearity": "relu",
        "dropout": 0.1,
    }
    given = {argument.name: values[argument.name] for argument in spec.signature.arguments if argument.name in values}
    by_name = getattr(nn, name)(**given)
    by_position = getattr(nn, name)(3, 4, 2)
    assert all(getattr(by_name, key) == value for key, value in given.items())
    assert by_position.num_layers == 2
    for argument in spec.signature.arguments:
        if not argument.required and argument.name not in ("device", "dtype", "proj_size"):
            assert getattr(getattr(nn, name)(3, 4), argument.name) == argument.default


@pytest.mark.parametrize("name", [name for name in PUBLIC if not name.startswith("Lazy")])
def test_parameters_and_buffers_follow_the_switches(name: str) -> None:
    spec = torchapi.module_class(f"torch.nn.{name}")
    assert spec is not None
    if name not in samples() or spec.parameters is None or spec.buffers is None:
        pytest.skip("holds what it is given")
    switches = sorted({switch for held in (*spec.parameters, *spec.buffers) for switch in held.needs})
    for values in itertools.product((True, False), repeat=len(switches)):
        arguments = dict(zip(switches, values, strict=True))
        module = built(name, **arguments)
        own = {key.replace("_l1", "_l0") for key, _ in module.named_parameters(recurse=False)}
        assert spec.parameter_names(arguments) == own
        assert spec.has_parameters(arguments) == any(True for _ in module.parameters())
        assert spec.has_buffers(arguments) == any(True for _ in module.buffers())


@pytest.mark.parametrize("name", PUBLIC)
def test_modes_differ_where_the_table_says(name: str) -> None:
    from measuring.layers import MODE_ARGUMENTS, modes_differ

    spec = torchapi.module_class(f"torch.nn.{name}")
    assert spec is not None
    case = samples().get(name)
    if case is None or case.inputs is None or spec.mode in (torchapi.modules.CONTENTS, "?"):
        pytest.skip("can't be run by itself")
    if spec.mode in ("", torchapi.modules.ALWAYS):
        assert modes_differ(built(name), case) == (spec.mode != "")
        return
    for value in MODE_ARGUMENTS[spec.mode]:
        arguments = {**case.keywords, spec.mode: value}
        assert spec.is_mode_dependent(arguments) == modes_differ(built(name, **{spec.mode: value}), case)


@pytest.mark.parametrize("name", [name for name in PUBLIC if name not in ("Container", "RNNBase", "RNNCellBase")])
def test_instances_have_the_attributes_and_no_others(name: str) -> None:
    spec = torchapi.module_class(f"torch.nn.{name}")
    assert spec is not None
    if name not in samples():
        pytest.skip("can't be built by itself")
    module = built(name)
    assert all(spec.has_attribute(attribute) for attribute in dir(module))
    if name.startswith("Lazy"):
        return  # once it has seen its input it is of the class that it became
    missing = {attribute for attribute in spec.attributes if not hasattr(module, attribute)}
    # Names that only some instances get, such as in_proj_weight or q_proj_weight.
    assert len(missing) <= max(3, len(spec.attributes) // 4)


@pytest.mark.parametrize("name", PUBLIC)
def test_backward_of_a_layer_needs_what_the_table_says(name: str) -> None:
    from measuring.saved import tensors_in

    spec = torchapi.module_class(f"torch.nn.{name}")
    assert spec is not None
    case = samples().get(name)
    if case is None or case.inputs is None or spec.needs is None:
        pytest.skip("not measured")
    for need in spec.needs:
        for position in range(len(case.inputs())):
            given = case.inputs()
            module = built(name).train()
            if need.gradient_of == torchapi.PARAMETERS:
                inputs = [value.clone() for value in given]
            else:
                module.requires_grad_(False)
                inputs = [
                    value.detach().clone().requires_grad_().clone() if index == need.gradient_of else value.clone()
                    for index, value in enumerate(given)
                ]
            result = [tensor for tensor in tensors_in(module(*inputs)) if tensor.requires_grad]
            with torch.no_grad():
                inputs[position].zero_()
            gradients = [torch.ones_like(tensor) for tensor in result]
            if position in need.inputs:
                with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                    torch.autograd.backward(result, gradients)
            else:
                torch.autograd.backward(result, gradients)


def test_bases_are_torchs() -> None:
    for name in rows("modules"):
        spec = torchapi.module_class(name)
        assert spec is not None
        cls = resolved(name)
        modules = [base for base in cls.__mro__[1:] if issubclass(base, nn.Module) and base is not nn.Module]
        assert [resolved(base) for base in spec.bases] == modules


def test_aliases_are_the_same_object() -> None:
    for name, paths in rows("aliases").items():
        member = resolved(name)
        for path in paths.split():
            assert resolved(path) is member, (name, path)


def test_ranges_of_layers() -> None:
    scores = torch.randn(4, 5, 3, 3, dtype=torch.double) * 3
    within = {
        "unit": lambda values: (values >= 0) & (values <= 1),
        "probabilities": lambda values: (values >= 0) & (values <= 1),
        "log-probabilities": lambda values: values <= 0,
        "nonnegative": lambda values: values >= 0,
        "nonpositive": lambda values: values <= 0,
        "positive": lambda values: values > 0,
        "signed-unit": lambda values: values.abs() <= 1 + 1e-9,
    }
    ranged = [name for name in PUBLIC if (spec := torchapi.module_class(f"torch.nn.{name}")) and spec.range]
    assert "Sigmoid" in ranged
    for name in ranged:
        spec = torchapi.module_class(f"torch.nn.{name}")
        assert spec is not None
        module = built(name)
        result = module(scores, -scores) if spec.kind == "distance" else module(scores)
        assert bool(within[spec.range](result).all()), name
        if spec.range == "probabilities":
            assert torch.allclose(result.sum(1), torch.ones_like(result.sum(1)))


def test_attributes_of_every_module() -> None:
    assert set(dir(nn.Module())) == torchapi.module_attributes()
