"""TP123: the custom autograd Functions a model uses, checked in double precision."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from .building import describe
from .registry import Problem, Skip, check
from .running import backward_run
from .sites import USER, Site, definition_site
from .subject import Subject
from .values import map_tensors, tensors

_LARGEST = 512


@check("TP123", mode="train")
def gradcheck(subject: Subject) -> Iterable[Problem]:
    """Numerical and analytical gradients agree, and the gradient doesn't follow later changes of the input."""
    run = backward_run(subject)
    if run.error is not None:
        raise Skip("backward fails (TP105)")
    model = subject.fresh(train=subject.options.mode == "train")
    used: dict[type, tuple[Any, ...]] = {}
    args, kwargs = subject.inputs()
    try:
        with _noting(used):
            model(*args, **kwargs)
    except Exception as error:
        raise Skip(f"forward fails with gradients on ({describe(error)})") from error
    if not used:
        raise Skip("the model uses no custom autograd Function")
    for function, inputs in used.items():
        yield from _check(function, inputs)


@contextmanager
def _noting(used: dict[type, tuple[Any, ...]]) -> Iterator[None]:
    """Note the arguments of every Function of the user's that is applied."""
    base: Any = torch.autograd.Function
    original = base.__dict__.get("apply")
    apply = base.apply.__func__

    def note(cls: Any, *args: Any, **kwargs: Any) -> Any:
        site = definition_site(cls)
        if cls not in used and site is not None and site.file in USER:
            used[cls] = map_tensors(args, lambda t: t.detach().clone())
        return apply(cls, *args, **kwargs)

    base.apply = classmethod(note)
    try:
        yield
    finally:
        if original is not None:
            base.apply = original
        else:
            del base.apply


def _shrunk(tensor: torch.Tensor) -> torch.Tensor:
    """A corner of a large tensor: numerical gradients cost two evaluations per element."""
    while tensor.numel() > _LARGEST:
        dim = max(range(tensor.dim()), key=lambda d: tensor.shape[d])
        tensor = tensor.narrow(dim, 0, max(1, tensor.shape[dim] // 2))
    return tensor


def _check(function: Any, inputs: tuple[Any, ...]) -> Iterable[Problem]:
    site = _backward_site(function)
    generator = torch.Generator().manual_seed(0)

    def double(tensor: torch.Tensor, shrink: bool) -> torch.Tensor:
        if not tensor.is_floating_point():
            return tensor
        made = (_shrunk(tensor) if shrink else tensor).double().contiguous().clone()
        # Away from zero, where relu-like functions have no derivative.
        made = torch.where(
            made.abs() < 0.05, made + 0.1 + 0.1 * torch.rand(made.shape, generator=generator, dtype=torch.float64), made
        )
        return made.requires_grad_()

    error: Exception | None = None
    for shrink in (True, False):
        try:
            doubles = map_tensors(inputs, lambda t, shrink=shrink: double(t, shrink))
            function.apply(*doubles)
            error = None
            break
        except Exception as caught:
            error = caught
    name = function.__name__
    if error is not None:
        yield Problem(f"{name} doesn't run in double precision: {describe(error)}", site, severity="warning")
        return
    try:
        passed = torch.autograd.gradcheck(
            lambda *a: function.apply(*a),
            doubles,
            raise_exception=True,
            fast_mode=False,
            check_undefined_grad=False,
            nondet_tol=1e-6,
        )
    except Exception as caught:
        text = str(caught)
        if "requires gradient" in text and "double" in text:
            return
        if "Jacobian mismatch" in text or "not equal" in text or "mismatch" in text:
            yield Problem(
                f"{name}.backward computes a wrong gradient: it disagrees with the numerical one",
                site,
                "derive backward again; mind factors, reductions and broadcasting",
                "T-F3",
                details=[f"torch says: {describe(caught)}"],
            )
        else:
            yield Problem(
                f"gradcheck of {name} fails: {describe(caught)}",
                site,
                "",
                "T-F2" if "number of gradients" in text else "T-F3",
            )
        return
    if passed:
        yield from _later_change(function, doubles)


def _backward_site(function: Any) -> Site | None:
    return definition_site(function.backward) or definition_site(function)


def _later_change(function: Any, inputs: tuple[Any, ...]) -> Iterable[Problem]:
    """Whether a change of the input between forward and backward goes unnoticed and changes the gradient."""
    sources = [t for _, t in tensors(inputs) if t.requires_grad]

    def gradients(change: bool) -> list[torch.Tensor | None]:
        made = [t.detach().clone().requires_grad_() for t in sources]
        copies = iter([t * 1 for t in made])
        replaced = map_tensors(inputs, lambda t: next(copies) if t.requires_grad else t)
        output = function.apply(*replaced)
        total = sum(t.sum() for _, t in tensors(output) if t.requires_grad)
        if change:
            with torch.no_grad():
                for _, t in tensors(replaced):
                    if t.is_floating_point():
                        t.mul_(3)
        if not isinstance(total, torch.Tensor):
            return []
        return list(torch.autograd.grad(total, made, allow_unused=True))

    try:
        before = gradients(False)
        after = gradients(True)
    except RuntimeError as error:
        # save_for_backward notices the change: that is what it is for.
        if "modified by an inplace operation" in str(error):
            return
        return
    for one, two in zip(before, after, strict=False):
        if one is not None and two is not None and not torch.allclose(one, two):
            yield Problem(
                f"{function.__name__} changes its gradient when its input is changed after forward: it keeps the "
                "tensor on ctx",
                definition_site(function.forward) or definition_site(function),
                "ctx.save_for_backward(x) notices such changes and raises; ctx.x = x doesn't",
                "T-H6",
            )
            return
