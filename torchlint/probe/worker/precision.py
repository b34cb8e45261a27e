"""TP107: float64 that creeps in, and what happens in bfloat16, float16 and under autocast."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from .registry import Problem, check
from .sites import Site, error_site
from .state import unregistered
from .subject import Subject, hidden_modules, seed_all
from .tracing import LayerTrace, Op, OpTrace, Watched
from .values import map_tensors, tensors

# This build of torch lacks a kernel; that says nothing about the model.
_NO_KERNEL = re.compile(
    r"not implemented|[Uu]nsupported|not supported|no kernel|Could not run|only supports|mkldnn|oneDNN"
)


@check("TP107")
def dtype(subject: Subject) -> Iterable[Problem]:
    """float32 in, float32 out; half precision runs and stays finite."""
    yield from _float64(subject)
    yield from _half(subject)


def _float64(subject: Subject) -> Iterable[Problem]:
    model = subject.fresh()
    args, kwargs = subject.inputs()
    if any(t.dtype == torch.float64 for _, t in tensors([args, kwargs, list(model.parameters())])):
        return
    first: list[Op] = []

    def watch(op: Op, op_args: Any, op_kwargs: Any, output: Any) -> None:
        if first or not any(t.dtype == torch.float64 and t.dim() for _, t in tensors(output)):
            return
        if not any(t.dtype == torch.float64 and t.dim() for _, t in tensors([op_args, op_kwargs])):
            first.append(op)

    layers = LayerTrace(model)
    seed_all(subject.options.seed)
    with torch.no_grad(), layers.recording(), Watched(layers, watch):
        output = model(*args, **kwargs)
    wide = [path for path, t in tensors(output) if t.dtype == torch.float64]
    if wide:
        op = first[0] if first else None
        where = f"{op.name} makes it so" if op is not None else "an attribute or constant makes it so"
        yield Problem(
            f"output{wide[0]} is float64 though the input and the parameters are float32: {where}",
            (op.site if op is not None else None) or subject.forward_site,
            "make constants float32: dtype=x.dtype, or .float() after from_numpy",
            "T-H3",
            layer=op.layer if op is not None else "",
        )


@dataclass
class _Trial:
    name: str
    error: BaseException | None
    site: Site | None
    overflow: Op | None
    broke: bool = False
    made: Op | None = None


def _half(subject: Subject) -> Iterable[Problem]:
    if not _finite_in_float32(subject):
        return
    if not any(p.is_floating_point() for p in subject.built.model.parameters()):
        return
    trials = [
        _run(subject, torch.bfloat16, False),
        _run(subject, torch.float16, False),
        _run(subject, torch.bfloat16, True),
    ]
    by_place: dict[tuple[str, int], list[_Trial]] = {}
    for trial in trials:
        if trial.error is not None and not _NO_KERNEL.search(str(trial.error)):
            site = (trial.made.site if trial.made is not None else None) or trial.site
            place = (site.file, site.row) if site is not None else ("", 0)
            by_place.setdefault(place, []).append(trial)
    for group in by_place.values():
        names = " and ".join(trial.name for trial in group)
        text = str(group[0].error).strip().splitlines()[0]
        made, meeting = group[0].made, group[0].site
        site = (made.site if made is not None else None) or meeting or subject.forward_site
        origin = f"; {made.name} makes float32 whatever the input's dtype" if made is not None else ""
        yield Problem(
            f"forward fails {names}{origin}: {text}",
            site,
            "make tensors in the input's dtype: dtype=x.dtype, or convert: .to(x.dtype)",
            "X-27",
            "warning",
            cause=f"made:{site.file}:{site.row}" if made is not None and site is not None else "",
            details=[f"it fails at line {meeting.row}: {meeting.text}"]
            if made is not None and meeting is not None
            else [],
        )
    overflows: dict[tuple[str, int], list[_Trial]] = {}
    for trial in trials:
        if trial.broke:
            site = trial.overflow.site if trial.overflow is not None else None
            overflows.setdefault((site.file, site.row) if site is not None else ("", 0), []).append(trial)
    for group in overflows.values():
        names = " and ".join(trial.name for trial in group)
        op = group[0].overflow
        yield Problem(
            f"values overflow {names}" + (f", first in {op.name}" if op is not None else ""),
            (op.site if op is not None else None) or subject.forward_site,
            "compute this part in float32: x.float(), or under torch.autocast(..., enabled=False)",
            "X-27",
            "warning",
        )


def _finite_in_float32(subject: Subject) -> bool:
    outcome = subject.run(subject.fresh())
    return outcome.error is None and all(
        bool(t.isfinite().all()) for _, t in tensors(outcome.output) if t.is_floating_point()
    )


def _run(subject: Subject, dtype: torch.dtype, autocast: bool) -> _Trial:
    short = str(dtype).removeprefix("torch.")
    name = f"under autocast ({short})" if autocast else f"in {short}"
    model = subject.fresh()
    args, kwargs = subject.inputs()
    if not autocast:
        model = _converted(model, dtype)
        args, kwargs = map_tensors((args, kwargs), lambda t: t.to(dtype) if t.is_floating_point() else t)
    seed_all(subject.options.seed)
    device_type = subject.device.split(":")[0]
    layers = LayerTrace(model)
    trace = _Float32(layers)
    output, error = None, None
    try:
        with torch.autocast(device_type, dtype=dtype, enabled=autocast), torch.no_grad(), layers.recording(), trace:
            output = model(*args, **kwargs)
    except KeyboardInterrupt:
        raise
    except BaseException as caught:
        error = caught
    if error is not None:
        made = None if autocast else trace.origin(dtype)
        return _Trial(name, error, error_site(error), None, made=made)
    broke = any(bool((~t.isfinite()).any()) for _, t in tensors(output) if t.is_floating_point())
    if not broke:
        return _Trial(name, None, None, None)
    args, kwargs = subject.inputs()
    if not autocast:
        args, kwargs = map_tensors((args, kwargs), lambda t: t.to(dtype) if t.is_floating_point() else t)
    with torch.autocast(device_type, dtype=dtype, enabled=autocast):
        op = first_not_finite(model, args, kwargs)
    return _Trial(name, None, None, op, True)


def _converted(model: nn.Module, dtype: torch.dtype) -> nn.Module:
    """The model in a dtype, with what it holds unregistered: that these stay behind is for TP106 and TP114 to say."""
    model = model.to(dtype)
    for hidden in hidden_modules(model):
        hidden.to(dtype)
    for entry in unregistered(model):
        for tensor in entry.tensors():
            if tensor.is_floating_point() and tensor.is_leaf:
                tensor.data = tensor.data.to(dtype)
    return model


class _Float32(OpTrace):
    """Follows float32 tensors back to the operation that made them of nothing."""

    def __init__(self, layers: LayerTrace) -> None:
        super().__init__(layers)
        self._made: dict[int, Op] = {}
        self._kept: list[torch.Tensor] = []

    def after(self, op: Op, args: Any, kwargs: Any, output: Any, seen: Any) -> None:
        """A float32 result has the origin of its float32 sources, or none."""
        wide = [t for _, t in tensors(output) if t.dtype == torch.float32 and t.dim()]
        if not wide:
            return
        sources = [t for _, t in tensors([args, kwargs])]
        origin = next((self._made[id(t)] for t in sources if id(t) in self._made), None)
        if origin is None and not any(t.is_floating_point() for t in sources):
            origin = op
        if origin is not None:
            for tensor in wide:
                self._kept.append(tensor)
                self._made[id(tensor)] = origin

    def origin(self, dtype: torch.dtype) -> Op | None:
        """Where the float32 operand of the failed operation came from."""
        return next((self._made[id(t)] for _, t in tensors(self.failed_args) if id(t) in self._made), None)


def first_not_finite(model: nn.Module, args: Any, kwargs: Any, nan_only: bool = False) -> Op | None:
    """The first operation that makes NaN or infinity of finite inputs (of NaN-free ones with ``nan_only``)."""
    found: list[Op] = []

    def bad(value: Any) -> bool:
        for _, t in tensors(value):
            if t.is_floating_point() and t.numel():
                wrong = t.isnan().any() if nan_only else (~t.isfinite()).any()
                if bool(wrong):
                    return True
        return False

    def watch(op: Op, op_args: Any, op_kwargs: Any, output: Any) -> None:
        if (
            not found
            and not op.name.startswith(("empty", "new_empty"))
            and bad(output)
            and not bad([op_args, op_kwargs])
        ):
            found.append(op)

    layers = LayerTrace(model)
    with torch.no_grad(), layers.recording(), Watched(layers, watch):
        model(*args, **kwargs)
    return found[0] if found else None
