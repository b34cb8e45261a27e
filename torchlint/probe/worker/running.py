"""The model runs: forward (TP103), train mode (TP104), backward (TP105), in-place changes (TP119)."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from .building import describe
from .inference import Outcome
from .registry import Problem, Skip, check
from .sites import USER, Site, error_site
from .subject import Subject, seed_all
from .tracing import LayerTrace, Op, OpTrace, is_in_place
from .values import scalar, signature, tensors


@check("TP103", on_fake=True)
def forward(subject: Subject) -> Iterable[Problem]:
    """forward runs in eval mode (in train mode with ``--train``) and gives the shape that was asked for."""
    model = subject.fresh(train=subject.options.mode == "train")
    outcome = subject.run(model)
    subject.memo["forward"] = outcome
    if outcome.error is not None:
        if _is_in_place(outcome.message):
            yield from _leaf_change(subject, outcome)
            return
        problem = subject.diagnose(outcome)
        problem.details.append(f"with {', '.join(subject.feed.shown())} and a batch of {subject.batch}")
        yield problem
        return
    if not any(True for _ in tensors(outcome.output)) and outcome.output is None:
        yield Problem("forward returns None: is a return missing?", subject.forward_site, failure="X-37")
    wanted = subject.options.output
    if wanted is not None:
        shapes = [tuple(tensor.shape[1:]) for _, tensor in tensors(outcome.output)]
        if tuple(wanted) not in shapes:
            yield Problem(
                f"forward gives {signature(outcome.output)} where {[subject.batch, *wanted]} was expected",
                subject.forward_site,
            )


@check("TP104", on_fake=True, mode="train")
def train_mode(subject: Subject) -> Iterable[Problem]:
    """forward runs in train mode too."""
    model = subject.fresh(train=True)
    outcome = subject.run(model, grad=True)
    if outcome.error is not None and not _is_in_place(outcome.message):
        problem = subject.diagnose(outcome, "forward in train mode")
        if "more than 1 value per channel" in outcome.message:
            problem.failure, problem.cause = "T-C7", "single-sample"
        yield problem


# ---- backward


@dataclass
class Cut:
    """An operation whose input hung on the graph and whose output doesn't; ``behind`` are the ids of the leaves."""

    op: Op
    how: str
    behind: frozenset[int] = frozenset()


@dataclass
class InPlace:
    """An in-place change: the operation, and what made the tensor it changed."""

    op: Op
    made_by: str
    shape: tuple[int, ...]
    leaf: bool


_CUTTING = {
    "detach": "detach()",
    "detach_": "detach_()",
    "data": ".data",
    "numpy": "numpy()",
    "item": "item()",
    "tolist": "tolist()",
    "argmax": "argmax",
    "argmin": "argmin",
    "argsort": "argsort",
    "bernoulli": "a sampled value",
    "multinomial": "a sampled value",
    "sign": "sign",
    "round": "round",
}


class GradTrace(OpTrace):
    """Notes where the graph is cut and what is changed in place."""

    def __init__(self, layers: LayerTrace) -> None:
        super().__init__(layers)
        self.cuts: list[Cut] = []
        self.changes: list[InPlace] = []

    def before(self, op: Op, args: Any, kwargs: Any) -> Any:
        """Whether some input hangs on the graph; for an in-place change what it is about to change."""
        hangs = any(tensor.requires_grad for _, tensor in tensors([args, kwargs]))
        if is_in_place(op.name, kwargs) and args and isinstance(args[0], torch.Tensor):
            target = args[0]
            made_by = type(target.grad_fn).__name__ if target.grad_fn is not None else ""
            self.changes.append(InPlace(op, made_by, tuple(target.shape), target.is_leaf and target.requires_grad))
        return hangs

    def after(self, op: Op, args: Any, kwargs: Any, output: Any, seen: Any) -> None:
        """A cut: something went in that hung on the graph, and nothing that comes out does."""
        if not seen or (op.name in ("size", "shape") or op.code is None):
            return
        made = [tensor for _, tensor in tensors(output)]
        if len(self.cuts) >= _MAX_CUTS:
            return
        if op.name in ("item", "tolist", "numpy"):
            self.cuts.append(Cut(op, _CUTTING[op.name], _leaves(args, kwargs)))
            return
        cuts = made and not any(tensor.requires_grad for tensor in made) and not is_in_place(op.name, kwargs)
        if cuts and (any(tensor.is_floating_point() for tensor in made) or op.name in _CUTTING):
            how = _CUTTING.get(op.name, "" if torch.is_grad_enabled() else "no_grad()")
            self.cuts.append(Cut(op, how or op.name, _leaves(args, kwargs)))


_MAX_CUTS = 200


def _leaves(*values: Any) -> frozenset[int]:
    """The ids of the leaves that some tensors' graphs hang on."""
    found: set[int] = set()
    seen: set[Any] = set()
    stack: list[Any] = []
    for _, tensor in tensors(list(values)):
        if tensor.requires_grad and tensor.grad_fn is None:
            found.add(id(tensor))
        elif tensor.grad_fn is not None:
            stack.append(tensor.grad_fn)
    while stack:
        node = stack.pop()
        if node in seen or len(seen) > 20_000:
            continue
        seen.add(node)
        variable = getattr(node, "variable", None)
        if variable is not None:
            found.add(id(variable))
        stack.extend(following for following, _ in node.next_functions if following is not None)
    return frozenset(found)


@dataclass
class Backward:
    """What two training iterations without an optimizer showed."""

    outcome: Outcome
    trace: GradTrace
    model: nn.Module
    loss: torch.Tensor | None
    error: BaseException | None = None
    second: BaseException | None = None
    grads: dict[str, torch.Tensor | None] = field(default_factory=dict)
    anomaly: list[Site] = field(default_factory=list)


def backward_run(subject: Subject) -> Backward:
    """Forward and backward in train mode, twice, noted; the same for all checks that ask."""
    known = subject.memo.get("backward")
    if isinstance(known, Backward):
        return known
    model = subject.fresh(train=subject.options.mode != "eval")
    run = _once(subject, model)
    run.grads = {name: parameter.grad for name, parameter in model.named_parameters() if parameter.requires_grad}
    if run.error is None and run.outcome.error is None and run.loss is not None and not subject.is_fake:
        again = _once(subject, model, keep=True)
        run.second = again.error or again.outcome.error
    if run.error is not None and not subject.is_fake:
        run.anomaly = _anomaly(subject)
    subject.memo["backward"] = run
    return run


def _once(subject: Subject, model: nn.Module, keep: bool = False) -> Backward:
    layers = LayerTrace(model)
    trace = GradTrace(layers)
    args, kwargs = subject.inputs()
    seed_all(subject.options.seed)
    output, error = None, None
    try:
        with torch.enable_grad(), layers.recording(), trace:
            output = subject.call(model, args, kwargs)
    except KeyboardInterrupt:
        raise
    except BaseException as caught:
        error = caught
    outcome = Outcome(output, error, layers, trace)
    run = Backward(outcome, trace, model, None)
    if error is not None:
        return run
    if keep:
        model.zero_grad(set_to_none=True)
    try:
        run.loss = _backward(subject, output)
    except KeyboardInterrupt:
        raise
    except BaseException as caught:
        run.error = caught
    return run


def _backward(subject: Subject, output: Any) -> torch.Tensor | None:
    if subject.is_fake:
        with subject.built.fake_mode:
            loss = None
            for _, tensor in tensors(output):
                if tensor.requires_grad and tensor.is_floating_point():
                    loss = tensor.sum() if loss is None else loss + tensor.sum()
            if loss is not None:
                torch.autograd.backward(loss)
            return loss
    loss = scalar(output)
    if loss is not None:
        torch.autograd.backward(loss)
    return loss


def _anomaly(subject: Subject) -> list[Site]:
    """The user's lines of the forward operation whose gradient failed, from anomaly mode."""
    model = subject.fresh(train=subject.options.mode != "eval")
    args, kwargs = subject.inputs()
    seed_all(subject.options.seed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with torch.enable_grad(), torch.autograd.set_detect_anomaly(True, check_nan=False):
                loss = scalar(model(*args, **kwargs))
                if loss is not None:
                    torch.autograd.backward(loss)
        except Exception:
            pass
    return [site for warning in caught for site in sites_in(str(warning.message))]


_TRACE_LINE = re.compile(r'File "([^"]+)", line (\d+)')


def sites_in(text: str) -> list[Site]:
    """The user's places that a printed traceback names, innermost last."""
    found = []
    for file, row in _TRACE_LINE.findall(text):
        if file in USER:
            import linecache

            line = linecache.getline(file, int(row)).rstrip()
            indent = len(line) - len(line.lstrip())
            found.append(Site(file, int(row), indent + 1, int(row), max(len(line), indent + 1) + 1))
    return found


_IN_PLACE = re.compile(r"modified by an inplace operation|in-place operation|is being modified inplace|inplace update")


def _is_in_place(message: str) -> bool:
    return bool(_IN_PLACE.search(message))


def trainable(model: nn.Module) -> bool:
    """Whether any parameter asks for a gradient."""
    return any(parameter.requires_grad for parameter in model.parameters())


@check("TP105", on_fake=True, mode="train")
def backward(subject: Subject) -> Iterable[Problem]:
    """The gradient of a scalar made from the outputs can be computed, and again in the next iteration."""
    run = backward_run(subject)
    if run.outcome.error is not None:
        if _is_in_place(run.outcome.message):
            raise Skip("forward changes a leaf in place (TP119)")
        raise Skip("forward fails in train mode (TP104)")
    if not trainable(run.model):
        raise Skip("no parameter requires a gradient")
    if run.error is not None:
        if _is_in_place(str(run.error)):
            return
        site = error_site(run.error) or (run.anomaly[-1] if run.anomaly else None) or subject.forward_site
        failure, hint = _backward_known(str(run.error))
        yield Problem(f"backward fails: {describe(run.error)}", site, hint, failure)
        return
    if run.loss is None:
        yield _no_graph(subject, run)
        return
    if run.second is not None:
        text = str(run.second)
        if "backward through the graph a second time" in text:
            kept, cause = _kept_tensor(subject, run)
            yield Problem(
                "backward works once and fails in the next iteration: something kept on the module still hangs on "
                "the first iteration's graph",
                kept or subject.forward_site,
                "detach what is carried over: self.state = state.detach()",
                "T-A1",
                cause=cause,
                details=[f"torch says: {describe(run.second)}"],
            )
        elif not _is_in_place(text):
            site = error_site(run.second) or subject.forward_site
            yield Problem(f"the second iteration fails: {describe(run.second)}", site)


def _backward_known(message: str) -> tuple[str, str]:
    if "incorrect number of gradients" in message:
        return "T-F2", "backward returns one gradient per argument of forward, None for those without"
    if "second time" in message:
        return "T-A1", "keep the graph of one iteration out of the next: detach what is carried over"
    if "Inference tensors" in message:
        return "T-A6", "use torch.no_grad() instead of inference_mode"
    return "", ""


def _no_graph(subject: Subject, run: Backward) -> Problem:
    outputs = [tensor for _, tensor in tensors(run.outcome.output)]
    cause = run.trace.cuts[-1] if run.trace.cuts else None
    if not outputs:
        return Problem(f"forward returns no tensor ({signature(run.outcome.output)})", subject.forward_site)
    if cause is not None:
        return Problem(
            f"no output hangs on the parameters: the graph is cut by {cause.how}",
            cause.op.site or subject.forward_site,
            "a loss on these outputs can't train the model",
            "T-A2",
            cause=_cause(cause.op.site),
        )
    return Problem("no output hangs on the parameters: a loss on it has no gradient", subject.forward_site, "", "T-A2")


def _cause(site: Site | None) -> str:
    return f"{site.file}:{site.row}" if site is not None else ""


def _kept_tensor(subject: Subject, run: Backward) -> tuple[Site | None, str]:
    """Where a tensor with a graph was stored on a module, and the name of that fault."""
    for path, module in run.model.named_modules():
        for name, value in vars(module).items():
            if name.startswith("_"):
                continue
            if any(tensor.grad_fn is not None for _, tensor in tensors(value)):
                site = assignment_in_forward(module, name)
                if site is not None:
                    return site, _cause(site)
                return subject.attribute_site(path, name), f"attribute:{path}.{name}"
    return None, ""


def assignment_in_forward(module: nn.Module, name: str) -> Site | None:
    """The statement outside ``__init__`` in which a module sets one of its attributes."""
    import ast
    import inspect

    try:
        file = inspect.getsourcefile(type(module))
        lines, first = inspect.getsourcelines(type(module))
        tree = ast.parse("".join(["if True:\n", *lines]) if lines[0][:1].isspace() else "".join(lines))
    except (OSError, TypeError, SyntaxError):
        return None
    shift = first - 1 - (1 if lines[0][:1].isspace() else 0)
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef) or function.name == "__init__":
            continue
        for node in ast.walk(function):
            targets = (
                node.targets
                if isinstance(node, ast.Assign)
                else [node.target]
                if isinstance(node, ast.AugAssign)
                else []
            )
            flat = [e for target in targets for e in (target.elts if isinstance(target, ast.Tuple) else [target])]
            for target in flat:
                if isinstance(target, ast.Attribute) and target.attr == name and file:
                    row, column = target.lineno + shift, target.col_offset + 1
                    return Site(file, row, column, row, (target.end_col_offset or column) + 1)
    return None


@check("TP119", mode="train")
def in_place(subject: Subject) -> Iterable[Problem]:
    """No in-place change breaks the backward pass."""
    run = backward_run(subject)
    if run.outcome.error is not None:
        if _is_in_place(run.outcome.message):
            yield from _leaf_change(subject, run.outcome)
            return
        raise Skip("forward fails in train mode (TP104)")
    error = run.error or run.second
    if error is None or not _is_in_place(str(error)):
        if run.loss is None:
            raise Skip("there is no backward pass to break")
        return
    message = str(error)
    change = _guilty(message, run.trace.changes)
    needed = run.anomaly[-1] if run.anomaly else None
    site = (change.op.site if change is not None else None) or needed or error_site(error) or subject.forward_site
    what = f"{change.op.name} changes" if change is not None else "something changes"
    where = f" (line {needed.row}: {needed.text})" if needed is not None else ""
    yield Problem(
        f"{what} in place what backward still needs",
        site,
        "write the result to a new tensor: x = x + 1 instead of x += 1, or "
        f"inplace=False{where and f'; needed by{where}'}",
        "T-B3",
        layer=change.op.layer if change is not None else "",
        cause=_cause(site),
        details=[f"torch says: {describe(error)}"],
    )


def _leaf_change(subject: Subject, outcome: Outcome) -> Iterable[Problem]:
    site = error_site(outcome.error) if outcome.error is not None else None
    message = outcome.message
    failure = "T-B1" if message.startswith("a leaf") else "T-B2" if "leaf" in message else "X-28"
    yield Problem(
        f"forward changes a parameter or a view in place while autograd records: {message.splitlines()[0]}",
        site or subject.forward_site,
        "write the result to a new tensor, or change it under torch.no_grad()",
        failure,
        cause=_cause(site),
    )


_OUTPUT_OF = re.compile(r"\[(?:torch\.)?\w+ \[([\d, ]*)\]\].*?which is output \d+ of (\w+)", re.S)


def _guilty(message: str, changes: list[InPlace]) -> InPlace | None:
    """The in-place change that hit the tensor that the message describes: the last of that size and maker."""
    match = _OUTPUT_OF.search(message)
    if match:
        shape = tuple(int(part) for part in match[1].split(",") if part.strip())
        # After the change the message names the changer; before it the tensor had the maker's name.
        named = [change for change in changes if change.shape == shape and change.made_by == match[2]]
        base = match[2].removesuffix("Backward0").removesuffix("Backward1").lower()
        by_change = [
            change
            for change in changes
            if change.shape == shape and base and base in change.op.name.lower().replace("_", "")
        ]
        sized = [change for change in changes if change.shape == shape]
        for candidates in (named, by_change, sized):
            if candidates:
                return candidates[0] if candidates is not named else candidates[-1]
    return changes[-1] if changes else None
