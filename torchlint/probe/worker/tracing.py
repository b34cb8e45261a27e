"""What happens inside a forward pass: which layers are called with what, and which operations the user's lines do."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

import torch
from torch import nn

from .sites import Site, code_site, user_frame
from .values import format_args, signature, tensors


@dataclass
class Call:
    """One call of a layer. ``inputs`` and ``output`` are texts: sizes and dtypes."""

    path: str
    module: nn.Module
    depth: int
    inputs: str
    shapes: tuple[tuple[int, ...], ...]
    output: str = ""
    finished: bool = False


@dataclass
class LayerTrace:
    """The calls of a model's layers, in order, and the innermost one that was running when an exception rose."""

    model: nn.Module
    calls: list[Call] = field(default_factory=list)
    failed: Call | None = None
    stack: list[Call] = field(default_factory=list)
    paths: dict[int, str] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """The path of the layer that is running."""
        return self.stack[-1].path if self.stack else ""

    @contextmanager
    def recording(self) -> Iterator[LayerTrace]:
        """Note every module call inside."""
        self.paths = {id(module): name for name, module in self.model.named_modules()}
        module_class: Any = nn.Module
        original = module_class.__call__
        trace = self

        def noting(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            call = trace._enter(module, args, kwargs)
            try:
                output = original(module, *args, **kwargs)
            except BaseException:
                if trace.failed is None:
                    trace.failed = call
                trace.stack.pop()
                raise
            call.output, call.finished = signature(output), True
            trace.stack.pop()
            return output

        module_class.__call__ = noting
        try:
            yield self
        finally:
            module_class.__call__ = original

    def _enter(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        path = self.paths.get(id(module))
        if path is None:
            path = f"{self.path}.<unregistered {type(module).__name__}>".lstrip(".")
        shapes = tuple(tuple(tensor.shape) for _, tensor in tensors([*args, kwargs]))
        call = Call(path, module, len(self.stack), format_args(args, kwargs), shapes)
        self.calls.append(call)
        self.stack.append(call)
        return call


@dataclass
class Op:
    """One operation of torch, as the user's line asked for it."""

    name: str
    func: Any
    layer: str
    inputs: tuple[tuple[int, ...], ...]
    code: CodeType | None
    lasti: int
    lineno: int

    @property
    def site(self) -> Site | None:
        """The user's line."""
        return code_site(self.code, self.lasti, self.lineno) if self.code is not None else None


# Reading an attribute is no operation, but these hand out a tensor that shares or cuts the graph.
_TENSOR_ATTRIBUTES = {"data", "T", "mT", "H", "mH", "real", "imag", "grad"}
_SILENT = {
    "dim",
    "size",
    "stride",
    "numel",
    "is_floating_point",
    "is_complex",
    "element_size",
    "get_device",
    "is_contiguous",
    "storage_offset",
    "data_ptr",
    "untyped_storage",
    "ndimension",
    "nelement",
    "__len__",
    "__hash__",
    "__repr__",
    "__format__",
    "has_names",
    "is_nonzero",
    "requires_grad_",
    "is_inference",
    "_is_view",
    "is_same_size",
    "is_signed",
    "is_conj",
    "is_neg",
    "result_type",
    "finfo",
    "iinfo",
    "broadcast_shapes",
}


def op_name(func: Any) -> str:
    """The name of an operation; of an attribute access the attribute's name; empty for what is no operation."""
    name = getattr(func, "__name__", "") or ""
    if name in ("__get__", "__set__", "__delete__"):
        attribute = getattr(getattr(func, "__self__", None), "__name__", "")
        return attribute if attribute in _TENSOR_ATTRIBUTES and name == "__get__" else ""
    return "" if name in _SILENT else name


class OpTrace(torch.overrides.TorchFunctionMode):
    """Sees every operation at the level the user wrote it: ``F.dropout`` is one, whatever it is made of.

    ``before`` and ``after`` are for subclasses; ``failed`` is the operation that raised.
    """

    def __init__(self, layers: LayerTrace | None = None) -> None:
        super().__init__()
        self.layers = layers
        self.count = 0
        self.failed: Op | None = None
        self.failed_args: tuple[Any, Any] = ((), {})

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = op_name(func)
        if not name:
            return func(*args, **kwargs)
        self.count += 1
        op = self._describe(name, func, args, kwargs)
        try:
            seen = self.before(op, args, kwargs)
            output = _grouped_in_bfloat16(func, args, kwargs) if name.endswith("grouped_mm") else func(*args, **kwargs)
        except BaseException:
            if self.failed is None:
                self.failed, self.failed_args = op, (args, kwargs)
            raise
        self.after(op, args, kwargs, output, seen)
        return output

    def _describe(self, name: str, func: Any, args: Any, kwargs: Any) -> Op:
        frame = user_frame(sys._getframe(2))
        shapes = tuple(tuple(tensor.shape) for _, tensor in tensors([args, kwargs]))
        layer = self.layers.path if self.layers is not None else ""
        if frame is None:
            return Op(name, func, layer, shapes, None, -1, 0)
        return Op(name, func, layer, shapes, frame.f_code, frame.f_lasti, frame.f_lineno)

    def before(self, op: Op, args: Any, kwargs: Any) -> Any:
        """Called before an operation; what it returns is handed to ``after``."""
        return None

    def after(self, op: Op, args: Any, kwargs: Any, output: Any, seen: Any) -> None:
        """Called after an operation that succeeded."""


def _grouped_in_bfloat16(func: Any, args: Any, kwargs: Any) -> Any:
    """A grouped product of fake tensors: torch's shape function knows it for bfloat16 alone, its CPU kernel doesn't."""
    from torch._subclasses.fake_tensor import FakeTensor

    dtypes = {arg.dtype for arg in args if isinstance(arg, FakeTensor) and arg.is_floating_point()}
    if len(dtypes) != 1 or torch.bfloat16 in dtypes:
        return func(*args, **kwargs)
    (dtype,) = dtypes
    narrow = [arg.bfloat16() if isinstance(arg, FakeTensor) and arg.is_floating_point() else arg for arg in args]
    return func(*narrow, **kwargs).to(dtype)


def is_in_place(name: str, kwargs: dict[str, Any]) -> bool:
    """Whether an operation changes its first argument: ``add_``, ``__iadd__``, ``__setitem__``, ``inplace=True``."""
    if name.startswith("__i") and name.endswith("__") and name not in ("__invert__", "__index__", "__int__"):
        return True
    if name == "__setitem__" or kwargs.get("out") is not None or kwargs.get("inplace") is True:
        return True
    return name.endswith("_") and not name.endswith("__")


class Watched(OpTrace):
    """An operation trace that calls a function after each operation; for checks that need no state of their own."""

    def __init__(self, layers: LayerTrace | None, after: Callable[[Op, Any, Any, Any], None]) -> None:
        super().__init__(layers)
        self._after = after

    def after(self, op: Op, args: Any, kwargs: Any, output: Any, seen: Any) -> None:
        """Hand the operation on."""
        self._after(op, args, kwargs, output)
