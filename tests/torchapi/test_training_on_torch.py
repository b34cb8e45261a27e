"""What is said by hand about training holds on torch."""

from __future__ import annotations

import importlib
import inspect
import warnings
from typing import Any

import pytest

from torchlint.torchapi import training
from torchlint.torchapi.tables import rows

torch = pytest.importorskip("torch")

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore:reduction")]


def resolved(path: str) -> Any:
    """What Python finds under a dotted path."""
    parts = path.split(".")
    member: Any = importlib.import_module(parts[0])
    for index, part in enumerate(parts[1:], start=1):
        member = (
            getattr(member, part) if hasattr(member, part) else importlib.import_module(".".join(parts[: index + 1]))
        )
    return member


def test_every_optimizer_is_known_with_its_rate() -> None:
    for name in dir(torch.optim):
        cls = getattr(torch.optim, name)
        if not isinstance(cls, type) or not issubclass(cls, torch.optim.Optimizer) or cls is torch.optim.Optimizer:
            continue
        known = training.optimizer(f"torch.optim.{name}")
        assert known is not None
        assert known.learning_rate == inspect.signature(cls).parameters["lr"].default
        closure = inspect.signature(cls.step).parameters["closure"]
        assert known.needs_closure == (closure.default is inspect.Parameter.empty)


def test_every_scheduler_is_known() -> None:
    schedulers = torch.optim.lr_scheduler
    for name in dir(schedulers):
        cls = getattr(schedulers, name)
        if (
            not isinstance(cls, type)
            or not issubclass(cls, schedulers.LRScheduler)
            or name in ("LRScheduler", "_LRScheduler")
        ):
            continue
        known = training.scheduler(f"torch.optim.lr_scheduler.{name}")
        assert known is not None
        metric = inspect.signature(cls.step).parameters.get("metrics")
        assert known.needs_metric == (metric is not None)
        assert known.signature is not None


@pytest.mark.parametrize(
    "group", ["GRAD_MODES", "AUTOCASTS", "GRAD_SCALERS", "SAMPLERS", "DATASETS", "SPLITTERS", "CLIPPERS"]
)
def test_names_exist_and_are_canonical(group: str) -> None:
    for name in getattr(training, group):
        assert training.canonical(name) == name
        assert callable(resolved(name))


@pytest.mark.parametrize(
    "group",
    [
        "WRAPPERS",
        "TRACERS",
        "SCRIPTERS",
        "PROCESS_STARTERS",
        "SAVERS",
        "LOADERS",
        "SEEDERS",
        "DATA_LOADERS",
        "ANOMALY_MODES",
    ],
)
def test_torchs_names_are_canonical(group: str) -> None:
    for name in getattr(training, group):
        if name.startswith("torch."):
            assert training.canonical(name) == name


def test_grad_modes_do_what_they_are_called() -> None:
    recorded = {}
    for name, mode in training.GRAD_MODES.items():
        manager = resolved(name)
        with manager(False) if mode == "set_grad_enabled" else manager():
            recorded[mode] = (torch.is_grad_enabled(), torch.is_inference_mode_enabled())
    assert recorded == {
        "no_grad": (False, False),
        "inference_mode": (False, True),
        "enable_grad": (True, False),
        "set_grad_enabled": (False, False),
    }


def test_autocast_dtypes() -> None:
    for device in ("cuda", "cpu"):
        assert torch.get_autocast_dtype(device) == getattr(torch, training.AUTOCAST_DTYPES[device])


def test_initializers_fill_under_no_grad() -> None:
    assert not training.is_initializer("torch.nn.init.calculate_gain")
    weight = torch.nn.Parameter(torch.empty(4, 4))
    for name in ("uniform_", "normal_", "zeros_", "ones_", "eye_", "xavier_uniform_", "kaiming_normal_", "orthogonal_"):
        assert training.is_initializer(f"torch.nn.init.{name}")
        version = weight._version
        getattr(torch.nn.init, name)(weight)
        assert weight.is_leaf
        assert weight._version > version


def test_wrapped_state_dicts_get_the_prefix() -> None:
    linear = torch.nn.Linear(2, 2)
    for name in ("torch.nn.DataParallel", "torch.compile", "torch.optim.swa_utils.AveragedModel"):
        keys = resolved(name)(linear).state_dict()
        prefix = training.WRAPPERS[name]
        assert f"{prefix}weight" in keys


def loss_calls() -> list[Any]:
    return [
        found
        for name in sorted(training._losses())
        if name.startswith("torch.") and (found := training.loss(name)) is not None
    ]


@pytest.mark.parametrize("loss", loss_calls(), ids=lambda loss: loss.name)
def test_losses_take_the_arguments_that_are_named(loss: training.Loss) -> None:
    member = resolved(loss.name)
    called = member.forward if isinstance(member, type) else member
    assert loss.call is not None
    try:
        names = [name for name in inspect.signature(called).parameters if name != "self"]
    except ValueError:
        names = [argument.name for argument in loss.call.arguments]
    assert loss.call.arguments[0].name == loss.input
    assert loss.input in names
    assert not loss.target or loss.target in names


@pytest.mark.parametrize(
    "loss", [loss for loss in loss_calls() if "functional" in loss.name], ids=lambda loss: loss.name
)
def test_symmetric_losses_are(loss: training.Loss) -> None:
    first = torch.rand(3, 4, dtype=torch.double) * 0.8 + 0.1
    second = torch.rand(3, 4, dtype=torch.double) * 0.8 + 0.1
    extra = (torch.full((3, 4), 0.5, dtype=torch.double),) if "gaussian" in loss.name else ()
    member = resolved(loss.name)
    if loss.target_kind in (training.CLASSES, training.SIGNS):
        assert not loss.symmetric
        return
    if loss.symmetric:
        given = first.clone().requires_grad_()
        straight, swapped = member(given, second, *extra), member(second, given, *extra)
        assert torch.allclose(straight, swapped)
        assert torch.allclose(*(torch.autograd.grad(value, given)[0] for value in (straight, swapped)))
        return
    extra = (second.flip(0),) if not loss.target else ()
    assert not torch.allclose(member(first, second, *extra), member(second, first, *extra))


def test_signatures_are_torchs() -> None:
    checked = 0
    for name in rows("signatures"):
        built = training.signature(name)
        assert built is not None
        member = resolved(name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            function = member.__init__ if isinstance(member, type) else member
            names = list(inspect.signature(function).parameters)
        assert [argument.name for argument in built.arguments] == (names[1:] if isinstance(member, type) else names), (
            name
        )
        checked += 1
    assert checked > 500
