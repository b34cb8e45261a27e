"""What a module keeps: what is registered (TP114), whether eval mode repeats itself (TP112), and whether the state
dict is all there is (TP113)."""

from __future__ import annotations

import copy
import dataclasses
import io
import pickle
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from .building import Broken, describe
from .registry import Problem, Skip, check
from .running import assignment_in_forward
from .sites import Site
from .subject import Subject, seed_all
from .tracing import LayerTrace, Op, Watched
from .values import first_difference, tensors

# ---- TP114


@dataclass(frozen=True)
class Unregistered:
    """Something a module holds that nn.Module doesn't know of."""

    path: str
    name: str
    kind: str
    value: Any

    @property
    def attribute(self) -> str:
        """The attribute as the user writes it."""
        return f"{self.path}.{self.name}" if self.path else f"self.{self.name}"

    @property
    def cause(self) -> str:
        """The fault's identity for all checks that meet it."""
        return f"attribute:{self.path}.{self.name}"

    def tensors(self) -> Iterator[torch.Tensor]:
        """The tensors in it."""
        if isinstance(self.value, nn.Module):
            yield from self.value.parameters()
            yield from self.value.buffers()
        elif isinstance(self.value, torch.Tensor):
            yield self.value


def unregistered(model: nn.Module) -> list[Unregistered]:
    """Modules, parameters and tensors that are reachable from a model's attributes and not registered anywhere."""
    known: set[int] = {id(module) for module in model.modules()}
    known.update(id(tensor) for tensor in [*model.parameters(), *model.buffers()])
    found: list[Unregistered] = []
    for path, module in list(model.named_modules()):
        if type(module).__module__.startswith("torch.nn.") and type(module).__module__ != "torch.nn.modules.module":
            continue
        for name, value in list(vars(module).items()):
            if name.startswith("_") and name in _OWN:
                continue
            seen: set[int] = set()
            for kind, item in _reach(value, known, seen, 0, isinstance(value, torch.Tensor)):
                found.append(Unregistered(path, name, kind, item))
    return found


_OWN = {
    "_parameters",
    "_buffers",
    "_modules",
    "_non_persistent_buffers_set",
    "_backward_hooks",
    "_backward_pre_hooks",
    "_forward_hooks",
    "_forward_pre_hooks",
    "_state_dict_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_forward_pre_hooks_with_kwargs",
    "_state_dict_pre_hooks",
    "_is_full_backward_hook",
}


def _reach(value: Any, known: set[int], seen: set[int], depth: int, direct: bool) -> Iterator[tuple[str, Any]]:
    if id(value) in seen or depth > 4:
        return
    seen.add(id(value))
    if isinstance(value, nn.Module):
        if id(value) not in known:
            yield "module", value
    elif isinstance(value, nn.Parameter):
        if id(value) not in known:
            yield "parameter", value
    elif isinstance(value, torch.Tensor):
        if id(value) not in known:
            yield ("non-leaf" if value.requires_grad and not value.is_leaf else "tensor"), value
    elif isinstance(value, Mapping):
        for item in list(value.values())[:1000]:
            yield from _reach(item, known, seen, depth + 1, False)
    elif isinstance(value, (list, tuple, set, frozenset)):
        for item in list(value)[:1000]:
            yield from _reach(item, known, seen, depth + 1, False)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from _reach(getattr(value, field.name, None), known, seen, depth + 1, False)


def _matters(module: nn.Module) -> bool:
    """Whether it harms that a module isn't registered: it has parameters to train or a mode to switch."""
    if any(parameter.requires_grad for parameter in module.parameters()) or any(True for _ in module.buffers()):
        return True
    return any(isinstance(part, nn.modules.dropout._DropoutNd) for part in module.modules())


@check("TP114", on_fake=True)
def registration(subject: Subject) -> Iterable[Problem]:
    """Everything that is trained or moved is registered."""
    by_attribute: dict[tuple[str, str], list[Unregistered]] = {}
    for entry in unregistered(subject.built.model):
        if entry.kind == "module" and not _matters(entry.value):
            continue
        if entry.kind == "tensor" and not entry.value.requires_grad:
            continue
        by_attribute.setdefault((entry.path, entry.name), []).append(entry)
    for (path, name), entries in by_attribute.items():
        first = entries[0]
        site = subject.attribute_site(path, name) or subject.class_site
        count = sum(tensor.numel() for entry in entries for tensor in entry.tensors())
        message, hint = _registration_text(first, len(entries), count)
        yield Problem(message, site, hint, "T-D3" if count else "X-36", layer=path, cause=first.cause)


def _registration_text(first: Unregistered, many: int, count: int) -> tuple[str, str]:
    attribute = first.attribute
    if first.kind == "module":
        name = type(first.value).__name__
        what = f"{many} modules ({name}, ...)" if many > 1 else f"a module ({name})"
        effect = (
            f"{count:,} parameters that no optimizer, .to() or state_dict() sees"
            if count
            else "train() and eval() don't reach it"
        )
        return (
            f"{attribute} holds {what} that isn't registered: {effect}",
            "use nn.ModuleList or nn.ModuleDict, or set it as an attribute",
        )
    if first.kind == "parameter":
        return (
            f"{attribute} holds {many} parameter{'s' * (many > 1)} that no optimizer, .to() or state_dict() sees",
            "use nn.ParameterList or nn.ParameterDict",
        )
    if first.kind == "non-leaf":
        return (
            f"{attribute} is a result of an operation on a parameter, not a parameter: it isn't a leaf and gets no "
            ".grad",
            "make the value first and wrap it last: nn.Parameter(value)",
        )
    return (
        f"{attribute} is a tensor that requires grad and isn't registered: no optimizer, .to() or state_dict() sees it",
        "wrap it in nn.Parameter",
    )


# ---- TP112


@check("TP112", mode="eval")
def eval_determinism(subject: Subject) -> Iterable[Problem]:
    """Two calls in eval mode on the same input give the same."""
    model = subject.fresh()
    args, kwargs = subject.inputs()
    seed_all(subject.options.seed)
    with torch.no_grad():
        first, marks = _marked(model, args, kwargs)
        args, kwargs = subject.inputs()
        second, again = _marked(model, args, kwargs)
    difference = first_difference(first, second, 1e-5)
    if difference is None:
        return
    subject.memo["varies"] = True
    op, name = _first_change(marks, again)
    site = (op.site if op is not None else None) or subject.forward_site
    if name not in _DROPOUTS and name not in _RANDOM:
        site = _changing_state(subject, model) or site
    if name in _DROPOUTS:
        message = f"{name} is on in eval mode: two calls on the same input differ"
        hint = "give it training=self.training, or use the nn module, which eval() switches off"
    elif name in _RANDOM:
        message = f"{name} draws random values in eval mode: two calls on the same input differ"
        hint = "draw only if self.training"
    else:
        where = f" from {name} on" if name else ""
        message = f"two eval-mode calls on the same input differ{where}: state changes between the calls"
        hint = "change state only if self.training"
    severity = "error" if name in _DROPOUTS else "warning"
    yield Problem(
        message,
        site,
        hint,
        "T-H2",
        severity,
        op.layer if op is not None else "",
        details=[difference],
        cause=f"{site.file}:{site.row}" if site else "",
    )


def _changing_state(subject: Subject, model: nn.Module) -> Site | None:
    """The statement in forward that sets an attribute whose value the calls have changed."""
    before = dict(subject.built.model.named_modules())
    for path, module in model.named_modules():
        original = before.get(path)
        if original is None:
            continue
        values = {**vars(module), **module._buffers}
        for name, value in values.items():
            old = {**vars(original), **original._buffers}.get(name)
            changed = (
                not torch.equal(value, old)
                if isinstance(value, torch.Tensor) and isinstance(old, torch.Tensor) and value.shape == old.shape
                else ((isinstance(value, (torch.Tensor, int, float))) and type(value) is not type(old))
                or (isinstance(value, (int, float)) and value != old)
            )
            if changed and name != "training":
                site = assignment_in_forward(module, name)
                if site is not None:
                    return site
    return None


_DROPOUTS = {
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "alpha_dropout",
    "feature_alpha_dropout",
    "dropout_",
    "feature_dropout",
    "scaled_dot_product_attention",
    "multi_head_attention_forward",
    "rrelu",
}
_RANDOM = {
    "rand",
    "randn",
    "rand_like",
    "randn_like",
    "randint",
    "randint_like",
    "randperm",
    "normal",
    "normal_",
    "uniform_",
    "bernoulli",
    "bernoulli_",
    "multinomial",
    "exponential_",
    "gumbel_softmax",
    "poisson",
    "random_",
    "log_normal_",
    "geometric_",
    "cauchy_",
}


def _marked(model: nn.Module, args: Any, kwargs: Any) -> tuple[Any, list[tuple[Op, str, float]]]:
    """A call's output, and a number for the result of each of its operations."""
    layers = LayerTrace(model)
    marks: list[tuple[Op, str, float]] = []

    def mark(op: Op, _args: Any, _kwargs: Any, output: Any) -> None:
        total = 0.0
        for index, (_, tensor) in enumerate(tensors(output)):
            if tensor.numel() and not tensor.is_complex() and tensor.layout == torch.strided:
                flat = tensor.detach().reshape(-1)[:100_000].double()
                total += float(flat.sum()) * (index + 1) + float(flat[:: max(1, flat.numel() // 7)].sum())
        marks.append((op, op.name, total))

    with layers.recording(), Watched(layers, mark):
        output = model(*args, **kwargs)
    return output, marks


def _first_change(one: list[tuple[Op, str, float]], other: list[tuple[Op, str, float]]) -> tuple[Op | None, str]:
    for (op, name, a), (_, other_name, b) in zip(one, other, strict=False):
        if name != other_name:
            return op, name
        # NaN marks compare unequal to themselves and say nothing.
        if a == a and b == b and a != b and abs(a - b) > 1e-9 * max(1.0, abs(a)) and not name.startswith("empty"):
            return op, name
    return None, ""


# ---- TP113


@check("TP113")
def state_dict(subject: Subject) -> Iterable[Problem]:
    """The state dict makes a fresh instance the same model; the model can be copied and pickled."""
    model = subject.fresh()
    state = copy.deepcopy(model.state_dict())
    try:
        other = subject.builder.build(subject.options.seed + 1).model.to(subject.device).eval()
    except Broken as broken:
        raise Skip(f"a second instance can't be built: {broken.message}") from broken
    try:
        other.load_state_dict(state, strict=True)
    except (RuntimeError, KeyError, AttributeError, TypeError, ValueError) as error:
        yield Problem(
            f"a fresh instance doesn't take the state dict: {describe(error)}",
            subject.class_site,
            "build the same parameters in __init__ every time, not in forward",
            "T-D6",
        )
        return
    yield from _outputs_after_load(subject, model, other)
    yield from _copies(subject)


def _outputs_after_load(subject: Subject, model: nn.Module, other: nn.Module) -> Iterable[Problem]:
    results = []
    for instance in (model, other):
        args, kwargs = subject.inputs()
        seed_all(subject.options.seed)
        with torch.no_grad():
            results.append(instance(*args, **kwargs))
    difference = first_difference(results[0], results[1], 1e-4)
    if difference is None:
        return
    differing = _differing_attribute(model, other)
    if differing is not None:
        yield Problem(
            f"outputs differ after load_state_dict: {differing.attribute} differs between two instances and isn't "
            "in the state dict",
            subject.attribute_site(differing.path, differing.name) or subject.class_site,
            "register it: nn.Parameter, register_buffer, or nn.ModuleList",
            "T-D6",
            layer=differing.path,
            cause=differing.cause,
            details=[difference],
        )
        return
    yield Problem(
        "outputs differ after load_state_dict: something drawn at construction isn't in the state dict",
        subject.class_site,
        "keep it in a buffer",
        "T-D6",
        details=[difference],
    )


def _differing_attribute(model: nn.Module, other: nn.Module) -> Unregistered | None:
    ours, theirs = unregistered(model), unregistered(other)
    for one, two in zip(ours, theirs, strict=False):
        for a, b in zip(one.tensors(), two.tensors(), strict=False):
            if a.shape != b.shape or not torch.equal(a.detach(), b.detach()):
                return one
    modules = dict(other.named_modules())
    for path, module in model.named_modules():
        for name, value in vars(module).items():
            twin = vars(modules[path]).get(name) if path in modules else None
            if (
                isinstance(value, (int, float, str))
                and not name.startswith("_")
                and value != twin
                and name != "training"
            ):
                return Unregistered(path, name, "value", value)
    return None


def _copies(subject: Subject) -> Iterable[Problem]:
    model = subject.built.model
    registered = {entry.cause for entry in unregistered(model)}
    try:
        copy.deepcopy(model)
    except Exception as error:
        entry = _first_that_fails(model, copy.deepcopy)
        cause = f"attribute:{entry[0]}.{entry[1]}" if entry else ""
        yield Problem(
            f"the model can't be deep-copied{_because(entry)}: {describe(error)}",
            _attribute_site(subject, entry) or subject.class_site,
            "EMA, DataParallel and torch.export copy models",
            severity="warning",
            cause=cause if cause in registered else f"copy:{cause}",
        )
        return
    try:
        torch.save(model, io.BytesIO())
    except Exception as error:
        entry = _first_that_fails(model, lambda value: pickle.dumps(value))
        yield Problem(
            f"the model can't be pickled{_because(entry)}: {describe(error)}",
            _attribute_site(subject, entry) or subject.class_site,
            "a named function at module level instead of a lambda or a local one; spawning processes and "
            "torch.save(model) pickle it",
            severity="warning",
            cause=f"pickle:{entry}",
        )


def _because(entry: tuple[str, str] | None) -> str:
    return f" because of {entry[0]}.{entry[1]}".replace(" .", " self.") if entry else ""


def _attribute_site(subject: Subject, entry: tuple[str, str] | None) -> Site | None:
    return subject.attribute_site(*entry) if entry else None


def _first_that_fails(model: nn.Module, action: Any) -> tuple[str, str] | None:
    for path, module in model.named_modules():
        for name, value in vars(module).items():
            if name == "_modules":
                continue
            try:
                action(value)
            except Exception:
                return path, name
    return None
