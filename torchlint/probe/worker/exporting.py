"""What leaves PyTorch: traced, exported and ONNX models against the model itself (TP115), and whether a dynamic batch
and a whole-graph compilation work (TP116)."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import os
import tempfile
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn

from .building import describe
from .registry import NotAsked, Problem, Skip, check
from .running import sites_in
from .sites import USER, Site, error_site
from .subject import Subject, seed_all
from .tracing import LayerTrace, OpTrace
from .values import first_difference, map_tensors, tensors


def _asked(subject: Subject, code: str) -> None:
    # --select naming the code alone asks for it, too.
    if not subject.options.export and len(subject.options.select) > 3:
        raise NotAsked("give --export")
    if subject.needs_batch is not None:
        raise Skip("the model runs with one batch size only (TP108)")


class _Flat(nn.Module):
    """A model whose output is a tuple of its tensors, as exporters want it."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The tensors of the model's output."""
        output = self.model(*args, **kwargs)
        return output if isinstance(output, torch.Tensor) else tuple(t for _, t in tensors(output))


def _other_inputs(subject: Subject) -> list[tuple[str, Any, Any]]:
    """Batches unlike the example: other values, larger, negated, zero."""
    found = []
    for name, seed, change in (
        ("other values", 11, lambda t: t),
        ("values ten times as large", 12, lambda t: t * 10),
        ("negated values", 0, lambda t: -t),
        ("zeros", 0, torch.zeros_like),
    ):
        args, kwargs = subject.inputs(seed=seed)

        def changed(tensor: torch.Tensor, change: Callable[[torch.Tensor], torch.Tensor] = change) -> torch.Tensor:
            return change(tensor) if tensor.is_floating_point() else tensor

        found.append((name, *map_tensors((args, kwargs), changed)))
    return found


@check("TP115", mode="eval")
def export_equivalence(subject: Subject) -> Iterable[Problem]:
    """A traced, an exported and an ONNX model give what the model gives, on inputs other than the example."""
    _asked(subject, "TP115")
    model = _Flat(subject.fresh())
    args, kwargs = subject.inputs()
    ways: list[tuple[str, Any, list[Site]]] = []
    trouble: list[str] = []
    if not kwargs:
        traced, places, why = _traced(model, args)
        ways += [("torch.jit.trace", traced, places)] if traced is not None else []
        trouble += [f"torch.jit.trace: {why}"] if why else []
    try:
        with _still():
            program = torch.export.export(model, args, kwargs)
        ways.append(("torch.export", program.module(), []))
    except Exception as error:
        trouble.append(f"torch.export: {describe(error)}")
    onnx, why = _onnx(model, args, kwargs)
    ways += [("ONNX Runtime", onnx, [])] if onnx is not None else []
    trouble += [f"ONNX Runtime: {why}"]
    if not ways:
        raise Skip("; ".join(part for part in trouble if part))
    subject.memo["said:TP115"] = (
        "compared: "
        + ", ".join(name for name, _, _ in ways)
        + ("; not compared: " + "; ".join(part for part in trouble if part) if any(trouble) else "")
    )
    for name, exported, places in ways:
        problem = _compare(subject, model, name, exported, places)
        if problem is not None:
            yield problem


def _still() -> contextlib.AbstractContextManager[Any]:
    """No logs and warnings of the exporters."""
    stack = contextlib.ExitStack()
    stack.enter_context(warnings.catch_warnings())
    warnings.simplefilter("ignore")
    stack.enter_context(contextlib.redirect_stderr(io.StringIO()))
    stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
    return stack


def _traced(model: nn.Module, args: Any) -> tuple[Any, list[Site], str]:
    places: list[Site] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            seed_all(0)
            trace: Any = torch.jit.trace
            traced = trace(model, args, check_trace=False)
        except Exception as error:
            return None, [], describe(error)
    for warning in caught:
        if warning.filename in USER and "Tracer" in warning.category.__name__:
            places.append(_line(warning.filename, warning.lineno))
    return traced, places, ""


def _line(file: str, row: int) -> Site:
    import linecache

    line = linecache.getline(file, row).rstrip()
    indent = len(line) - len(line.lstrip())
    return Site(file, row, indent + 1, row, max(len(line), indent + 1) + 1)


def _onnx(model: nn.Module, args: Any, kwargs: Any) -> tuple[Any, str]:
    for package in ("onnx", "onnxscript", "onnxruntime"):
        if importlib.util.find_spec(package) is None:
            return None, f"{package} isn't installed"
    try:
        onnxruntime = importlib.import_module("onnxruntime")
        with _still(), tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.onnx")
            torch.onnx.export(model, args, path, kwargs=kwargs or None, dynamo=True)
            session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    except Exception as error:
        return None, describe(error)
    names = [entry.name for entry in session.get_inputs()]

    def run(*inputs: Any, **named: Any) -> Any:
        values = [t.detach().cpu().numpy() for _, t in tensors([*inputs, *named.values()])]
        return tuple(torch.from_numpy(value) for value in session.run(None, dict(zip(names, values, strict=False))))

    return run, ""


def _compare(subject: Subject, model: nn.Module, name: str, exported: Any, places: list[Site]) -> Problem | None:
    for what, args, kwargs in _other_inputs(subject):
        try:
            with torch.no_grad():
                seed_all(subject.options.seed)
                expected = model(*args, **kwargs)
        except Exception:
            # The model itself refuses these values; there is nothing to compare with.
            continue
        try:
            with torch.no_grad(), _still():
                seed_all(subject.options.seed)
                got = exported(*args, **kwargs)
        except Exception as error:
            return Problem(
                f"the model of {name} fails on {what}: {describe(error)}",
                (places[0] if places else None) or _value_branch(subject) or subject.forward_site,
                "",
                "T-H7",
            )
        expected_list = [t for _, t in tensors(expected)]
        got_list = [t for _, t in tensors(got)]
        difference = first_difference(got_list, expected_list, 1e-3)
        if difference is not None:
            rows = _rows(got_list, expected_list)
            return Problem(
                f"the model of {name} disagrees with the model on {what}: {difference}{rows}",
                (places[0] if places else None) or _value_branch(subject) or subject.forward_site,
                "a branch on values is frozen as the example went: use torch.where or torch.cond; numbers from "
                ".item() and "
                "numpy become constants",
                "T-G3" if places else "T-H7",
            )
    return None


def _rows(got: list[torch.Tensor], expected: list[torch.Tensor]) -> str:
    """Which rows of the batch differ."""
    if not got or not expected or got[0].shape != expected[0].shape or not got[0].dim():
        return ""
    wrong = [
        index
        for index in range(got[0].shape[0])
        if not torch.allclose(got[0][index].float(), expected[0][index].float(), rtol=1e-3, atol=1e-3)
    ]
    return f" in row{'s' * (len(wrong) > 1)} {', '.join(map(str, wrong[:8]))} of {got[0].shape[0]}" if wrong else ""


def _value_branch(subject: Subject) -> Site | None:
    """The first user's line that turns a tensor into a Python number or truth value."""
    found: list[Site] = []

    class Conversions(OpTrace):
        def before(self, op: Any, args: Any, kwargs: Any) -> Any:
            if not found and op.name in (
                "__bool__",
                "item",
                "__int__",
                "__float__",
                "__index__",
                "tolist",
                "numpy",
                "__contains__",
            ):
                site = op.site
                if site is not None:
                    found.append(site)
            return None

    model = subject.fresh()
    args, kwargs = subject.inputs()
    layers = LayerTrace(model)
    with torch.no_grad(), contextlib.suppress(Exception), layers.recording(), Conversions(layers):
        model(*args, **kwargs)
    return found[0] if found else None


@check("TP116", mode="eval")
def export(subject: Subject) -> Iterable[Problem]:
    """torch.export takes a dynamic batch, and compilation makes one graph."""
    _asked(subject, "TP116")
    problem = _dynamic_batch(subject)
    if problem is not None:
        yield problem
    compiled = _whole_graph(subject)
    if compiled is not None and (problem is None or str(problem.site) != str(compiled.site)):
        yield compiled


def _dynamic_batch(subject: Subject) -> Problem | None:
    model = _Flat(subject.fresh())
    args, kwargs = subject.inputs()
    size = subject.batch
    if size < 2:
        return None
    batch = torch.export.Dim("batch", min=1, max=1024)
    dims = subject.feed.batch_dims

    def shape_of(tensor: torch.Tensor) -> dict[int, Any]:
        return {d: batch for d in dims if tensor.dim() > d and tensor.shape[d] == size}

    dynamic = (map_tensors(args, shape_of), map_tensors(kwargs, shape_of))
    shapes: dict[str, Any] = {"args": dynamic[0]}
    if kwargs:
        shapes["kwargs"] = dynamic[1]
    try:
        with _still():
            torch.export.export(model, args, kwargs, dynamic_shapes=shapes)
    except Exception as error:
        text = str(error)
        specialized = (
            "specialized" in text
            or "Constraints violated" in text
            or "not fully general" in text
            or "Not all values" in text
        )
        data = "data-dependent" in text or "Data-dependent" in text or "Dynamic control flow" in text
        what = (
            "it makes the batch a constant"
            if specialized
            else "a branch hangs on a tensor's values"
            if data
            else describe(error)
        )
        return Problem(
            f"torch.export with a dynamic batch fails: {what}",
            _exported_site(error)
            or (_literal_site(subject) if specialized else _value_branch(subject))
            or subject.forward_site,
            "use x.shape[0] without turning it into a number"
            if specialized
            else "torch.cond or torch.where instead of if"
            if data
            else "",
            "X-21" if specialized else "X-20" if data else "",
            cause=f"export:{_exported_site(error)}",
            details=[f"torch says: {describe(error)}"],
        )
    return None


def _exported_site(error: BaseException) -> Site | None:
    text = str(error)
    places = sites_in(text.split("from user code:")[-1]) if "from user code:" in text else []
    if not places:
        stack = getattr(error, "real_stack", None)
        if stack is not None:
            places = [_line(f.filename, f.lineno) for f in stack if f.filename in USER and f.lineno]
    return places[-1] if places else (error_site(error) or next(iter(reversed(sites_in(text))), None))


def _literal_site(subject: Subject) -> Site | None:
    """The first line that turns a size into a Python number."""
    import ast
    import inspect

    forward = type(subject.built.model).forward
    try:
        lines, first = inspect.getsourcelines(forward)
        file = inspect.getsourcefile(forward) or ""
    except (OSError, TypeError):
        return None
    for offset, line in enumerate(lines):
        with contextlib.suppress(SyntaxError):
            tree = ast.parse(line.strip())
            for node in ast.walk(tree):
                if (
                    isinstance(node, ast.Call)
                    and getattr(node.func, "id", "") in ("int", "float")
                    and ("shape" in line or "size" in line)
                ):
                    return _line(file, first + offset)
    return None


def _whole_graph(subject: Subject) -> Problem | None:
    import torch._dynamo as dynamo

    dynamo.reset()
    model = subject.fresh()
    args, kwargs = subject.inputs()
    try:
        # The eager backend needs no compiler: what is asked is whether one graph comes out.
        with _still(), torch.no_grad():
            torch.compile(model, fullgraph=True, backend="eager")(*args, **kwargs)
    except Exception as error:
        site = _exported_site(error)
        return Problem(
            f"torch.compile(fullgraph=True) breaks: {_first_line(error)}",
            site or _value_branch(subject) or subject.forward_site,
            "a branch on values, .item(), numpy or print inside forward breaks the graph",
            "T-I3",
            "warning",
            cause=f"export:{site}",
        )
    finally:
        dynamo.reset()
    return None


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__
