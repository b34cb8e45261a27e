"""Gradients: which parameters get none (TP110), whether all is finite (TP111), how large they are by depth (TP122)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

from .building import describe
from .precision import first_not_finite
from .registry import Problem, Skip, check
from .running import Backward, Cut, backward_run, sites_in, trainable
from .sites import Site
from .subject import Subject, seed_all
from .tracing import Op
from .values import map_tensors, scalar, tensors


def _needs_gradient(run: Backward) -> None:
    if not trainable(run.model):
        raise Skip("no parameter requires a gradient")
    if run.outcome.error is not None:
        raise Skip("forward fails in train mode")
    if run.error is not None:
        raise Skip("backward fails")


@check("TP110", on_fake=True, mode="train")
def dead_parameters(subject: Subject) -> Iterable[Problem]:
    """Every parameter that asks for a gradient gets one, and not always zero."""
    run = backward_run(subject)
    _needs_gradient(run)
    if run.loss is None:
        raise Skip("no output hangs on the parameters (TP105)")
    if not subject.is_fake and not all(
        bool(t.isfinite().all()) for _, t in tensors(run.outcome.output) if t.is_floating_point()
    ):
        raise Skip("the output isn't finite (TP111)")
    wanting = {name: p for name, p in run.model.named_parameters() if p.requires_grad}
    without = [name for name in wanting if run.grads.get(name) is None]
    zero = [] if subject.is_fake else [name for name, grad in run.grads.items() if grad is not None and _is_zero(grad)]
    if zero:
        zero = _zero_again(subject, zero)
    called = {call.path for call in run.outcome.layers.calls}
    for cut, names in _by_cut(run, wanting, without):
        without = [name for name in without if name not in names]
        layers = _layers(names)
        site = cut.op.site
        yield Problem(
            f"{_listed(layers)} get{'s' * (len(layers) == 1)} no gradient: {cut.how} cuts the graph behind "
            f"{'it' if len(layers) == 1 else 'them'}",
            site or subject.forward_site,
            "remove the cut, or freeze these parameters on purpose with requires_grad_(False)",
            "L-16",
            "warning",
            layer=layers[0],
            cause=f"{site.file}:{site.row}" if site is not None else "",
        )
    yield from _unused(subject, without, called)
    for layer in _layers(zero):
        names = [name for name in zero if _layer(name) == layer]
        yield Problem(
            f"{_listed(names)} always get{'s' * (len(names) == 1)} a gradient of zero",
            subject.tensor_site(names[0]) or subject.class_site,
            "what it feeds doesn't change the output: look for a product with zero, a dead activation, argmax or "
            "rounding",
            "L-16",
            "warning",
            layer=layer,
        )


def _is_zero(grad: torch.Tensor) -> bool:
    dense = grad.coalesce().values() if grad.is_sparse else grad
    return dense.numel() > 0 and not bool((dense != 0).any())


def _zero_again(subject: Subject, names: list[str]) -> list[str]:
    """Those that stay zero with other inputs and slightly other weights: zero initialization alone is no fault."""
    left = set(names)
    for seed in (1, 2):
        model = subject.fresh(train=subject.options.mode != "eval")
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.is_floating_point():
                    noise = torch.randn(tuple(parameter.shape), generator=generator) * 0.05
                    parameter.add_(noise.to(parameter.device, parameter.dtype))
        args, kwargs = subject.inputs(seed=seed)
        seed_all(subject.options.seed + seed)
        try:
            # The second call: a state carried over is zero in the first.
            model(*args, **kwargs)
            loss = scalar(model(*args, **kwargs), seed)
            if loss is None:
                return []
            torch.autograd.backward(loss)
        except Exception:
            # The perturbed model may leave the domain of its own operations; then nothing is proven.
            return []
        grads = {name: parameter.grad for name, parameter in model.named_parameters()}
        left = {name for name in left if (grad := grads[name]) is not None and _is_zero(grad)}
    return [name for name in names if name in left]


def _by_cut(run: Backward, wanting: dict[str, nn.Parameter], without: list[str]) -> list[tuple[Cut, list[str]]]:
    """For each place where the graph is cut, the parameters behind it that get no gradient."""
    names = {id(parameter): name for name, parameter in wanting.items() if name in set(without)}
    found: dict[str, tuple[Cut, list[str]]] = {}
    taken: set[str] = set()
    for cut in reversed(run.trace.cuts):
        behind = [names[key] for key in cut.behind if key in names and names[key] not in taken]
        if behind:
            taken.update(behind)
            site = cut.op.site
            key = f"{site.file}:{site.row}" if site is not None else cut.how
            found.setdefault(key, (cut, []))[1].extend(behind)
    return list(found.values())


def _unused(subject: Subject, names: list[str], called: set[str]) -> Iterable[Problem]:
    layers = _layers(names)
    # Below a layer that is never called there is nothing more to say.
    top: dict[str, list[str]] = {}
    for layer in layers:
        owner = layer
        parent = layer
        while parent and parent not in called:
            owner, parent = parent, parent.rpartition(".")[0]
        top.setdefault(owner, []).extend(name for name in names if _layer(name) == layer)
    for owner, members in list(top.items())[:12]:
        is_called = owner in called
        what = _listed(members) if is_called or not owner else owner
        count = sum(p.numel() for n, p in subject.built.model.named_parameters() if n in members)
        effect = "gets no gradient" if len(members) == 1 or not is_called else "get no gradient"
        why = "its result reaches no output" if is_called else "forward never calls it"
        site = (subject.tensor_site(members[0]) if is_called or not owner else None) or subject.layer_site(owner)
        yield Problem(
            f"{what} {effect} ({count:,} parameters): {why}",
            site or subject.tensor_site(members[0]) or subject.class_site,
            "use it in forward, remove it, or freeze it; DistributedDataParallel waits for such parameters and fails",
            "X-16",
            "warning",
            layer=owner,
            cause=f"unused:{owner}",
        )


def _layer(name: str) -> str:
    return name.rpartition(".")[0]


def _layers(names: list[str]) -> list[str]:
    return list(dict.fromkeys(_layer(name) or name for name in names))


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:4])
    return shown + (f" and {len(names) - 4} more" if len(names) > 4 else "")


# ---- TP111


@check("TP111")
def finite(subject: Subject) -> Iterable[Problem]:
    """No NaN and no infinity in outputs, loss and gradients."""
    for train in (False, True):
        if (train and subject.options.mode == "eval") or (not train and subject.options.mode == "train"):
            continue
        wrong = _wrong_output(subject, train, positive=False)
        # A guess of the probe's may lie outside the domain of a logarithm or a root: numbers in [0, 1] are asked too.
        if wrong is None or (subject.options.inputs == () and _wrong_output(subject, train, positive=True) is None):
            continue
        op = _first_bad(subject, train)
        yield Problem(
            f"the output holds {wrong}" + (f", first made by {op.name}" if op is not None else ""),
            (op.site if op is not None else None) or subject.forward_site,
            "guard the operation: log(x + eps), sqrt(x + eps), x / (y + eps), a mask that leaves something to softmax",
            "L-17",
            layer=op.layer if op is not None else "",
            cause=f"finite:{op.site}" if op is not None else "",
        )
        return
    if subject.options.mode != "eval":
        yield from _bad_gradients(subject)


def _positive(value: Any) -> Any:
    return map_tensors(value, lambda t: torch.rand_like(t) if t.is_floating_point() else t)


def _wrong_output(subject: Subject, train: bool, positive: bool) -> str | None:
    model = subject.fresh(train=train)
    args, kwargs = subject.inputs()
    if positive:
        args, kwargs = _positive(args), _positive(kwargs)
    seed_all(subject.options.seed)
    try:
        with torch.no_grad():
            output = model(*args, **kwargs)
    except Exception:
        return None
    for path, tensor in tensors(output):
        if not tensor.is_floating_point() or not tensor.numel():
            continue
        nans, highs = int(tensor.isnan().sum()), int(tensor.isposinf().sum())
        # Minus infinity is what masks are made of; alone it is no fault.
        if nans or highs:
            return f"{f'{nans} NaN' if nans else f'{highs} infinities'} of {tensor.numel()} (output{path})"
    return None


def _first_bad(subject: Subject, train: bool) -> Op | None:
    args, kwargs = subject.inputs()
    seed_all(subject.options.seed)
    op = first_not_finite(subject.fresh(train=train), args, kwargs, nan_only=True)
    if op is not None:
        return op
    args, kwargs = subject.inputs()
    seed_all(subject.options.seed)
    return first_not_finite(subject.fresh(train=train), args, kwargs)


def _bad_gradients(subject: Subject) -> Iterable[Problem]:
    run = backward_run(subject)
    if run.error is not None or run.outcome.error is not None or run.loss is None:
        return
    bad = [name for name, grad in run.grads.items() if grad is not None and not _all_finite(grad)]
    if not bad:
        return
    site = _nan_backward(subject)
    yield Problem(
        f"the gradient of {_listed(bad)} is not finite though the output is",
        site or subject.tensor_site(bad[0]) or subject.forward_site,
        "the derivative of sqrt, norm, log or a power is infinite at zero: add eps inside",
        "L-17",
        layer=_layer(bad[0]),
    )


def _all_finite(grad: torch.Tensor) -> bool:
    dense = grad.coalesce().values() if grad.is_sparse else grad
    return bool(dense.isfinite().all())


def _nan_backward(subject: Subject) -> Site | None:
    """The user's forward line whose backward made the NaN, from anomaly mode."""
    model = subject.fresh(train=subject.options.mode != "eval")
    args, kwargs = subject.inputs()
    seed_all(subject.options.seed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with torch.enable_grad(), torch.autograd.set_detect_anomaly(True, check_nan=True):
                loss = scalar(model(*args, **kwargs))
                if loss is not None:
                    torch.autograd.backward(loss)
        except Exception as error:
            text = describe(error)
            if "nan" not in text:
                return None
    places = [site for warning in caught for site in sites_in(str(warning.message))]
    return places[-1] if places else None


# ---- TP122

_MIN_DEPTH = 6
_RATIO = 1e4


@check("TP122", mode="train")
def gradient_scale(subject: Subject) -> Iterable[Problem]:
    """At initialization the gradient neither vanishes nor explodes between the last layer and the first."""
    model = subject.fresh(train=subject.options.mode != "eval")
    if not trainable(model):
        raise Skip("no parameter requires a gradient")
    seen: list[tuple[str, torch.Tensor]] = []
    handles = []
    for path, module in model.named_modules():
        if isinstance(module, (nn.Linear, nn.modules.conv._ConvNd)):

            def keep(layer: nn.Module, inputs: Any, output: Any, path: str = path) -> None:
                if isinstance(output, torch.Tensor) and output.requires_grad:
                    output.retain_grad()
                    seen.append((path, output))

            handles.append(module.register_forward_hook(keep))
    args, kwargs = subject.inputs()
    seed_all(subject.options.seed)
    try:
        loss = scalar(model(*args, **kwargs))
        if loss is not None:
            torch.autograd.backward(loss)
    except Exception as error:
        raise Skip(f"there is no backward pass to measure ({describe(error)})") from error
    finally:
        for handle in handles:
            handle.remove()
    norms = [(path, float(t.grad.double().norm())) for path, t in seen if t.grad is not None]
    norms = [(path, norm) for path, norm in norms if norm > 0 and math.isfinite(norm)]
    if len(norms) < _MIN_DEPTH:
        raise Skip(f"fewer than {_MIN_DEPTH} layers with weights in a row")
    first, last = norms[0], norms[-1]
    # A trend over the whole depth, not one odd layer: the thirds must agree with the ends.
    third = max(1, len(norms) // 3)
    early = sorted(norm for _, norm in norms[:third])[third // 2]
    late = sorted(norm for _, norm in norms[-third:])[third // 2]
    ratio, trend = first[1] / last[1], early / late
    if ratio < 1 / _RATIO and trend < _RATIO**-0.5:
        verb, cure, failure = (
            "vanishes",
            "use ReLU-like activations, residual connections, normalization, or fitting initialization",
            "L-07",
        )
    elif ratio > _RATIO and trend > _RATIO**0.5:
        verb, cure, failure = (
            "explodes",
            "normalize, scale the initialization down, or add residual connections",
            "L-06",
        )
    else:
        return
    yield Problem(
        f"the gradient {verb} with depth at initialization: {first[1]:.1e} at {first[0]}, {last[1]:.1e} at {last[0]}, "
        f"over {len(norms)} layers",
        subject.layer_site(first[0]) or subject.class_site,
        cure,
        failure,
        "warning",
        layer=first[0],
    )
