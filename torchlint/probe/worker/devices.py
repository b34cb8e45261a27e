"""TP106: the model on another device. Without one, fake tensors stand on a device that doesn't exist."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

from .building import describe, fake_like, new_fake_mode
from .inference import Outcome, _Swapped, run_model
from .registry import Problem, Skip, check
from .sites import Site, error_site
from .state import Unregistered, unregistered
from .subject import Subject, seed_all
from .tracing import LayerTrace, Op, OpTrace
from .values import first_difference, map_tensors, tensors

_MISMATCH = re.compile(
    r"same device|Unhandled FakeTensor Device Propagation|not at the same device|found two different devices"
    r"|at least two devices|on different devices|is on cpu|Mixing fake modes"
)
# A device that fake tensors can stand on whatever this torch was built for: gradients on a fake "cuda" abort the
# process where torch was built without CUDA.
_ELSEWHERE = "meta"


_LOOKUPS = {
    "embedding",
    "embedding_bag",
    "gather",
    "index_select",
    "scatter",
    "scatter_add",
    "take_along_dim",
    "nll_loss",
}


class Origins(OpTrace):
    """Follows every CPU tensor back to where it came from: an attribute of a module, or the line that made it."""

    def __init__(self, layers: LayerTrace, attributes: dict[int, Unregistered]) -> None:
        super().__init__(layers)
        self.attributes = attributes
        self.made: dict[int, Op] = {}
        self.kept: list[Any] = []

    def before(self, op: Op, args: Any, kwargs: Any) -> Any:
        """Fake tensors let a lookup with an index on another device pass, which a real device doesn't."""
        if op.name in _LOOKUPS:
            places = {t.device.type for _, t in tensors([args, kwargs]) if t.dim()}
            if len(places) > 1:
                raise RuntimeError(f"Expected all tensors to be on the same device, but {op.name} got two")
        return None

    def after(self, op: Op, args: Any, kwargs: Any, output: Any, seen: Any) -> None:
        """What stays on the CPU has the origin of what it was made of; without any, it was made here."""
        sources = [tensor for _, tensor in tensors([args, kwargs])]
        for _, tensor in tensors(output):
            if tensor.device.type != "cpu":
                continue
            self.kept.append(tensor)
            attribute = next((self.attributes[id(source)] for source in sources if id(source) in self.attributes), None)
            if attribute is not None:
                self.attributes[id(tensor)] = attribute
                continue
            earlier = next((self.made[id(source)] for source in sources if id(source) in self.made), None)
            self.made[id(tensor)] = earlier or op


@check("TP106", on_fake=True)
def device(subject: Subject) -> Iterable[Problem]:
    """Everything is where the module and its input are."""
    problems = list(_on_fake_device(subject))
    yield from problems
    if torch.cuda.is_available() and not subject.is_fake and not problems:
        yield from _on_cuda(subject)


def _on_fake_device(subject: Subject) -> Iterable[Problem]:
    model = subject.fresh()
    mode = subject.built.fake_mode if subject.is_fake else new_fake_mode()
    state = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    with torch.no_grad():
        moved = {name: fake_like(tensor.detach(), mode, _ELSEWHERE) for name, tensor in state.items()}
    made = subject.feed.make(subject.batch, subject.options.seed)
    args, kwargs = map_tensors(made, lambda tensor: fake_like(tensor, mode, _ELSEWHERE))
    owners = {id(tensor): entry for entry in unregistered(model) for tensor in entry.tensors()}
    layers = LayerTrace(_Swapped(model, moved))
    origins = Origins(layers, owners)
    output, error = None, None
    try:
        with mode, torch.no_grad(), layers.recording(), origins:
            output = layers.model(*args, **kwargs)
    except KeyboardInterrupt:
        raise
    except BaseException as caught:
        error = caught
    if error is None:
        yield from _left_behind(subject, origins, output)
    elif _MISMATCH.search(str(error)):
        yield _mixed(subject, origins, error, layers)
    elif not _works_on_fake_cpu(subject, mode):
        if not torch.cuda.is_available():
            raise Skip(f"fake tensors can't run this forward ({describe(error)}), and there is no CUDA device")
    elif isinstance(error, AssertionError) and "CUDA" in str(error):
        yield Problem(
            "forward moves a tensor to CUDA whatever device the model is on",
            error_site(error),
            "use the input's device: .to(x.device)",
            "L-11",
        )


def _works_on_fake_cpu(subject: Subject, mode: Any) -> bool:
    """Whether the failure is one of the device at all: the same run with everything fake on the CPU succeeds."""
    if subject.is_fake:
        return True
    model = subject.fresh()
    state = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    with torch.no_grad():
        twins = {name: fake_like(tensor.detach(), mode) for name, tensor in state.items()}
    args, kwargs = map_tensors(
        subject.feed.make(subject.batch, subject.options.seed), lambda tensor: fake_like(tensor, mode)
    )
    with mode:
        return run_model(_Swapped(model, twins), args, kwargs).error is None


def _mixed(subject: Subject, origins: Origins, error: BaseException, layers: LayerTrace) -> Problem:
    meeting = error_site(error)
    operands = [tensor for _, tensor in tensors(origins.failed_args)]
    for tensor in operands:
        if tensor.device.type != "cpu":
            continue
        attribute = origins.attributes.get(id(tensor))
        if attribute is not None:
            return _attribute_problem(subject, attribute, meeting)
        made = origins.made.get(id(tensor))
        if made is not None:
            return _creation_problem(made, meeting or subject.forward_site)
    layer = layers.failed.path if layers.failed is not None else ""
    owner = next(
        (
            origins.attributes[id(t)]
            for call in [layers.failed]
            if call
            for t in call.module.parameters()
            if id(t) in origins.attributes
        ),
        None,
    )
    if owner is not None:
        return _attribute_problem(subject, owner, meeting)
    return Problem(
        "tensors of two devices meet once the model has moved",
        meeting or subject.forward_site,
        "make tensors where the input is: device=x.device; keep constants with register_buffer",
        "R-02",
        layer=layer,
        details=[f"torch says: {describe(error)}"],
    )


def _attribute_problem(subject: Subject, attribute: Unregistered, meeting: Site | None) -> Problem:
    where = f"; it meets the input at line {meeting.row}: {meeting.text}" if meeting is not None else ""
    return Problem(
        f"{attribute.attribute} stays on the CPU when the module moves: it is a plain attribute{where}",
        subject.attribute_site(attribute.path, attribute.name) or meeting or subject.forward_site,
        f'self.register_buffer("{attribute.name}", ...) moves with the module',
        "L-11",
        layer=attribute.path,
        cause=attribute.cause,
    )


def _creation_problem(made: Op, meeting: Site | None) -> Problem:
    site = made.site
    where = ""
    if meeting is not None and site is not None and meeting.row != site.row:
        where = f"; it meets the input at line {meeting.row}: {meeting.text}"
    return Problem(
        f"{made.name} makes a tensor on the CPU wherever the model is{where}",
        site or meeting,
        "give it the input's device: device=x.device",
        "R-02",
        layer=made.layer,
        cause=f"made:{site.file}:{site.row}" if site is not None else "",
    )


def _left_behind(subject: Subject, origins: Origins, output: Any) -> Iterable[Problem]:
    for path, tensor in tensors(output):
        if tensor.device.type != "cpu" or not tensor.dim():
            continue
        attribute, made = origins.attributes.get(id(tensor)), origins.made.get(id(tensor))
        if attribute is not None:
            yield _attribute_problem(subject, attribute, None)
        elif made is not None and made.name not in ("cpu", "tolist", "numpy"):
            problem = _creation_problem(made, None)
            problem.message = f"output{path} stays on the CPU: {problem.message}"
            yield problem
        return


def _on_cuda(subject: Subject) -> Iterable[Problem]:
    """The same on a real device, and the results compared."""
    expected = _value(subject, subject.fresh().cpu(), "cpu")
    model = subject.fresh().to("cuda")
    tf32 = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    try:
        args, kwargs = map_tensors(
            subject.feed.make(subject.batch, subject.options.seed), lambda tensor: tensor.to("cuda")
        )
        seed_all(subject.options.seed)
        outcome = run_model(model, args, kwargs)
    finally:
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = tf32
    if outcome.error is not None:
        yield _cuda_failure(subject, outcome)
        return
    difference = first_difference(outcome.output, expected, 1e-3)
    if difference is not None and not subject.memo.get("varies"):
        yield Problem(f"CUDA and CPU disagree: {difference}", subject.forward_site, severity="warning")


def _value(subject: Subject, model: nn.Module, where: str) -> Any:
    args, kwargs = map_tensors(subject.feed.make(subject.batch, subject.options.seed), lambda tensor: tensor.to(where))
    seed_all(subject.options.seed)
    with torch.no_grad():
        return model(*args, **kwargs)


def _cuda_failure(subject: Subject, outcome: Outcome) -> Problem:
    problem = subject.diagnose(outcome, "forward on CUDA")
    problem.failure = "R-02" if _MISMATCH.search(outcome.message) else problem.failure
    return problem
