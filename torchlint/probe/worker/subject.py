"""One target while it is probed: its model, its inputs, and what the checks need of both."""

from __future__ import annotations

import copy
import random
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from .building import Builder, Built, Target, fake_like
from .diagnosis import diagnose
from .inference import Guess, Outcome, arguments, run_model
from .registry import Problem
from .sites import Site, definition_site
from .specs import to_text
from .values import make, map_tensors, signature, tensors


@dataclass
class Options:
    """What the command line and the configuration ask for one target."""

    batch: int = 2
    device: str = "cpu"
    seed: int = 0
    mode: str = ""
    select: tuple[str, ...] = ()
    export: bool = False
    memory: int | None = None
    checkpoint: str | None = None
    data: str | None = None
    loss: str | None = None
    inputs: tuple[tuple[str | None, dict[str, Any]], ...] = ()
    inputs_from: str | None = None
    output: tuple[int, ...] | None = None
    arguments: str | None = None
    named: bool = True

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Options:
        """From the request; keys that are absent keep their defaults."""
        known = {name: data[name] for name in cls.__dataclass_fields__ if data.get(name) is not None}
        for name in ("select", "output", "inputs"):
            if name in known:
                known[name] = tuple(tuple(item) if isinstance(item, list) else item for item in known[name])
        return cls(**known)


class Feed:
    """Where a model's inputs come from: a specification, or a batch that the project's own code made."""

    def __init__(
        self, guess: Guess | None, keywords: set[str], batch: tuple[tuple[Any, ...], dict[str, Any]] | None = None
    ):
        self.guess = guess
        self.keywords = keywords
        self.batch = batch
        self.batch_size = _batch_size(batch) if batch is not None else None

    def make(self, size: int, seed: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments for a batch of a size."""
        if self.batch is not None:
            own = self.batch_size
            if own is None:
                return copy.deepcopy(self.batch)
            index = torch.arange(size) % own

            def resized(tensor: torch.Tensor) -> torch.Tensor:
                if tensor.dim() and tensor.shape[0] == own:
                    return tensor.detach()[index].clone()
                return tensor.detach().clone()

            args, kwargs = map_tensors(self.batch, resized)
            return args, kwargs
        assert self.guess is not None
        generator = torch.Generator().manual_seed(seed)
        return arguments(self.guess, self.keywords, lambda spec: make(spec, size, generator))

    def shown(self) -> list[str]:
        """The inputs in the words of ``--input``."""
        if self.batch is not None:
            args, kwargs = self.batch
            return [signature(arg) for arg in args] + [f"{name}: {signature(arg)}" for name, arg in kwargs.items()]
        assert self.guess is not None
        return [to_text(spec, name.lstrip("*")) for name, spec in self.guess.specs]

    @property
    def batch_dims(self) -> set[int]:
        """The dimensions in which the batch stands in some input."""
        if self.guess is None:
            return {0}
        return {spec.batch_dim for _, spec in self.guess.tensors() if spec.batch_dim is not None}


def _batch_size(batch: tuple[tuple[Any, ...], dict[str, Any]]) -> int | None:
    sizes = [tensor.shape[0] for _, tensor in tensors(batch) if tensor.dim()]
    return sizes[0] if sizes else None


@dataclass
class Subject:
    """A built model with inputs that the checks run."""

    target: Target
    builder: Builder
    built: Built
    options: Options
    feed: Feed
    needs_batch: int | None = None
    causes: dict[str, str] = field(default_factory=dict)
    memo: dict[str, Any] = field(default_factory=dict)

    @property
    def is_fake(self) -> bool:
        """Whether the model exists on fake tensors only."""
        return self.built.is_fake

    @property
    def batch(self) -> int:
        """The batch size the checks run with."""
        return self.needs_batch or self.options.batch

    @property
    def device(self) -> str:
        """The device the checks run on."""
        return self.options.device

    def fresh(self, *, train: bool = False) -> nn.Module:
        """A model that nothing has run on yet, in the asked mode, on the device."""
        if self.is_fake:
            model = self.built.model
        else:
            try:
                model = copy.deepcopy(self.built.model)
            except Exception:
                # A non-leaf tensor or an open file can't be copied (TP113 says so); building anew always works.
                model = self.builder.build(self.options.seed).model
            model = model.to(self.device)
        model.zero_grad(set_to_none=True)
        for hidden in hidden_modules(model):
            # TP114 reports these; the other checks are about what else there is.
            hidden.train(train)
        return model.train(train)

    def inputs(self, size: int | None = None, seed: int = 0) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments for forward on the device."""
        made = self.feed.make(size or self.batch, self.options.seed + seed)
        if self.is_fake:
            mode = self.built.fake_mode
            args, kwargs = map_tensors(made, lambda tensor: fake_like(tensor, mode))
        else:
            args, kwargs = map_tensors(made, lambda tensor: tensor.to(self.device))
        return args, kwargs

    def run(
        self, model: nn.Module, size: int | None = None, *, seed: int = 0, grad: bool = False, reseed: bool = True
    ) -> Outcome:
        """Run a model once on a batch of a size; its layers and operations are noted."""
        args, kwargs = self.inputs(size, seed)
        if reseed:
            seed_all(self.options.seed + seed)
        if self.is_fake:
            with self.built.fake_mode:
                return run_model(model, args, kwargs, grad=grad)
        return run_model(model, args, kwargs, grad=grad)

    def call(self, model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Call a model, under fake tensors where it is fake; exceptions pass through."""
        if self.is_fake:
            with self.built.fake_mode:
                return model(*args, **kwargs)
        return model(*args, **kwargs)

    def diagnose(self, outcome: Outcome, what: str = "forward") -> Problem:
        """What is wrong, for a run that failed."""
        problem = diagnose(outcome, self.built.model, self.built.construction, self.built.model, what)
        if problem.site is None:
            problem.site = self.forward_site
        return problem

    @property
    def forward_site(self) -> Site | None:
        """The model's forward, the place of a fault that has no line of its own."""
        model = self.built.model
        return (
            definition_site(type(model).forward) or definition_site(type(model)) or definition_site(self.built.made_by)
        )

    @property
    def class_site(self) -> Site | None:
        """The model's class."""
        return definition_site(type(self.built.model)) or definition_site(self.built.made_by)

    def layer_site(self, path: str) -> Site | None:
        """The call in the user's source that made a layer."""
        try:
            layer = self.built.model.get_submodule(path)
        except AttributeError:
            return None
        return self.built.construction.made(layer)

    def attribute_site(self, path: str, name: str) -> Site | None:
        """The statement in the user's source that set an attribute of a layer."""
        try:
            layer = self.built.model.get_submodule(path)
        except AttributeError:
            return None
        found = self.built.construction.assigned(layer, name)
        return found or self.built.construction.made(layer)

    def tensor_site(self, full_name: str) -> Site | None:
        """The statement that made a parameter or buffer: its own assignment, or the call that made its layer."""
        path, _, name = full_name.rpartition(".")
        return self.attribute_site(path, name)


def hidden_modules(model: nn.Module) -> list[nn.Module]:
    """The modules a model holds in plain lists and dictionaries, where train() and to() don't reach them."""
    known = {id(module) for module in model.modules()}
    found = []
    for module in model.modules():
        for value in vars(module).values():
            items = (
                value.values()
                if type(value) is dict and value is not module._modules
                else value
                if type(value) in (list, tuple)
                else ()
            )
            found += [item for item in items if isinstance(item, nn.Module) and id(item) not in known]
    return found


def seed_all(seed: int) -> None:
    """Seed what user code may draw from."""
    torch.manual_seed(seed)
    random.seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed % (2**32))
