"""torch's operations: what each changes, shares, saves for backward and returns.

The facts are measured on torch by ``scripts/generate_torchapi.py`` on the CPU and kept in ``operations.tsv``. Names
are qualified: ``torch.exp``, ``torch.nn.functional.relu``, ``torch.Tensor.exp_``, ``torch.Tensor.__iadd__``. Positions
count a call's arguments, self included for methods.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from torchlint.torchapi.modules import canonical
from torchlint.torchapi.saving import Need, parse_needs, saved_inputs, saved_outputs
from torchlint.torchapi.signatures import Signature, parse_signature
from torchlint.torchapi.tables import cells, rows

METHODS = "torch.Tensor."

# What a result's values are.
PROBABILITIES = "probabilities"
"""Between 0 and 1, and 1 in sum along the dimension that was asked for."""
LOG_PROBABILITIES = "log-probabilities"
"""Logarithms of such."""
UNIT = "unit"
"""Each between 0 and 1."""
SIGNED_UNIT = "signed-unit"
"""Each between -1 and 1."""
POSITIVE = "positive"
"""Above 0 but for underflow."""
NONNEGATIVE = "nonnegative"
NONPOSITIVE = "nonpositive"


@dataclass(frozen=True, slots=True)
class Operation:
    """What is known of one function, method or operator.

    name            ``torch.Tensor.add_``
    signature       parameters in order, with self for methods; ``out`` isn't listed, see ``takes_out``
    mutates         positions it changes in place, in every call
    maybe_mutates   positions it changes in some calls (running statistics in training)
    view_of         positions whose storage (one of) its results share in every call
    maybe_view_of   positions whose storage they share, or that they are, in some calls (reshape, contiguous, to)
    differentiable  whether its result has a grad_fn when an argument requires grad; None unknown
    zero_gradient   whether that gradient is zero everywhere (round, sign): training through it does nothing
    unimplemented   whether backward through it raises "derivative not implemented" (floor_divide)
    needs           what backward needs unchanged, per argument whose gradient is wanted
    result          tensor; tensors or list (of tensors); names of a named tuple (``values,indices``); number, bool,
                    int, float, complex, numpy, numbers, size, str, dtype, none, other; ``|`` between what calls differ
                    in; "?" unknown
    dtype           of the (first) result: a constant (bool, int64, float32), same as the first tensor's, float
                    (integers become the default dtype), accumulate (integers become int64), default (torch's default
                    dtype); "" unknown or by the arguments
    range           what the values of its result are, see the constants above; "" unknown
    syncs           whether the host waits for the device, or the values leave torch
    dynamic_shape   whether the result's shape depends on values
    random          whether it draws
    factory         whether it makes a tensor that hangs on no graph, of its own accord
    pointwise       whether each element of the result follows from elements at the same (broadcast) place
    pieces          whether its results are views none of which may be changed in place (split, chunk, unbind)
    takes_out       whether it takes ``out=``, a tensor that receives the result
    measured        whether torch was called to find this out; otherwise it follows from the native schema
    """

    name: str
    signature: Signature
    mutates: tuple[int, ...]
    maybe_mutates: tuple[int, ...]
    view_of: tuple[int, ...]
    maybe_view_of: tuple[int, ...]
    differentiable: bool | None
    zero_gradient: bool
    unimplemented: bool
    needs: tuple[Need, ...]
    result: str
    dtype: str
    range: str
    syncs: bool
    dynamic_shape: bool
    random: bool
    factory: bool
    pointwise: bool
    pieces: bool
    takes_out: bool
    measured: bool

    @property
    def short_name(self) -> str:
        """``add_`` of ``torch.Tensor.add_``."""
        return self.name.rpartition(".")[2]

    @property
    def is_method(self) -> bool:
        """Whether it is called on a tensor."""
        return self.name.startswith(METHODS)

    @property
    def is_inplace(self) -> bool:
        """Whether it changes its first argument."""
        return 0 in self.mutates

    @property
    def saves_inputs(self) -> frozenset[int]:
        """Positions that backward needs unchanged, when every argument requires grad."""
        return saved_inputs(self.needs)

    @property
    def saves_output(self) -> bool:
        """Whether backward needs the (first) result unchanged."""
        return 0 in saved_outputs(self.needs)

    @property
    def returns_tensor(self) -> bool:
        """Whether every call returns one tensor."""
        return self.result == "tensor"

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the named tuple that it can return: ``("values", "indices")``."""
        named = [kind for kind in self.result.split("|") if "," in kind]
        return tuple(named[0].split(",")) if named else ()


@dataclass(frozen=True, slots=True)
class TensorAttribute:
    """A property of torch.Tensor: ``result`` as in ``Operation``; how it relates to self where it is a tensor."""

    name: str
    result: str
    is_view: bool = False
    differentiable: bool = False


TENSOR_ATTRIBUTES = {
    attribute.name: attribute
    for attribute in (
        TensorAttribute("T", "tensor", is_view=True, differentiable=True),
        TensorAttribute("H", "tensor", is_view=True, differentiable=True),
        TensorAttribute("mT", "tensor", is_view=True, differentiable=True),
        TensorAttribute("mH", "tensor", is_view=True, differentiable=True),
        TensorAttribute("real", "tensor", is_view=True, differentiable=True),
        TensorAttribute("imag", "tensor", is_view=True, differentiable=True),
        TensorAttribute("data", "tensor", is_view=True),
        TensorAttribute("grad", "tensor"),
        TensorAttribute("grad_fn", "other"),
        TensorAttribute("grad_dtype", "dtype"),
        TensorAttribute("shape", "size"),
        TensorAttribute("dtype", "dtype"),
        TensorAttribute("device", "device"),
        TensorAttribute("layout", "other"),
        TensorAttribute("ndim", "int"),
        TensorAttribute("itemsize", "int"),
        TensorAttribute("nbytes", "int"),
        TensorAttribute("output_nr", "int"),
        TensorAttribute("name", "str"),
        TensorAttribute("names", "other"),
        TensorAttribute("volatile", "bool"),
        TensorAttribute("requires_grad", "bool"),
        TensorAttribute("is_leaf", "bool"),
        TensorAttribute("retains_grad", "bool"),
        *(TensorAttribute(f"is_{what}", "bool") for what in ("cpu", "cuda", "ipu", "maia", "meta", "mkldnn", "mps")),
        *(TensorAttribute(f"is_{what}", "bool") for what in ("mtia", "nested", "quantized", "sparse", "sparse_csr")),
        *(TensorAttribute(f"is_{what}", "bool") for what in ("vulkan", "xla", "xpu")),
        TensorAttribute("_version", "int"),
        TensorAttribute("_base", "tensor"),
    )
}
"""The properties of torch.Tensor (torch 2.13); ``data`` and ``grad`` are shared with the tensor but on no graph."""

_OPERATORS = {
    "+": "__add__",
    "-": "__sub__",
    "*": "__mul__",
    "/": "__truediv__",
    "//": "__floordiv__",
    "%": "__mod__",
    "**": "__pow__",
    "@": "__matmul__",
    "&": "__and__",
    "|": "__or__",
    "^": "__xor__",
    "<<": "__lshift__",
    ">>": "__rshift__",
    "==": "__eq__",
    "!=": "__ne__",
    "<": "__lt__",
    "<=": "__le__",
    ">": "__gt__",
    ">=": "__ge__",
    "+=": "__iadd__",
    "-=": "__isub__",
    "*=": "__imul__",
    "/=": "__itruediv__",
    "//=": "__ifloordiv__",
    "%=": "__imod__",
    "**=": "__ipow__",
    "&=": "__iand__",
    "|=": "__ior__",
    "^=": "__ixor__",
    "<<=": "__ilshift__",
    ">>=": "__irshift__",
    "unary -": "__neg__",
    "unary +": "__pos__",
    "~": "__invert__",
    "[]": "__getitem__",
    "[]=": "__setitem__",
    "in": "__contains__",
    "abs": "__abs__",
    "bool": "__bool__",
    "float": "__float__",
    "int": "__int__",
    "complex": "__complex__",
    "len": "__len__",
    "iter": "__iter__",
    "reversed": "__reversed__",
}
"""Python's spelling of an operator to Tensor's method; ``@=`` has none and rebinds the name to a new tensor."""


def function(qualname: str) -> Operation | None:
    """The operation of that (qualified) name; None where it is none of torch's."""
    return _operation(canonical(qualname))


def tensor_method(name: str) -> Operation | None:
    """The method of torch.Tensor of that name."""
    return _operation(METHODS + name)


def operator(symbol: str) -> Operation | None:
    """The operation behind Python's syntax: ``+``, ``+=``, ``unary -``, ``[]``, ``[]=``, ``bool``, ``len``, ``@``."""
    if symbol == "@=":
        return tensor_method("__matmul__")
    name = _OPERATORS.get(symbol)
    return tensor_method(name) if name is not None else None


def tensor_attribute(name: str) -> TensorAttribute | None:
    """The property of torch.Tensor of that name."""
    return TENSOR_ATTRIBUTES.get(name)


def plain_form(operation: Operation) -> Operation | None:
    """The operation that does out of place what this one does in place: ``add`` for ``add_`` and ``+=``."""
    short = operation.short_name
    if short.startswith("__i") and operation.is_inplace:
        return tensor_method(f"__{short[3:]}")
    if not short.endswith("_") or short.endswith("__"):
        return None
    plain = operation.name[:-1]
    return _operation(plain) or _operation(f"torch.{short[:-1]}")


def inplace_form(operation: Operation) -> Operation | None:
    """The operation that does in place what this one does: ``add_`` for ``torch.add`` and ``Tensor.add``."""
    short = operation.short_name
    if short.startswith("__"):
        changed = tensor_method(f"__i{short[2:]}")
        return changed if changed is not None and changed.is_inplace else None
    if short.endswith("_"):
        return None
    return _operation(f"{operation.name}_") or tensor_method(f"{short}_")


@functools.cache
def _operation(name: str) -> Operation | None:
    row = rows("operations").get(name)
    return None if row is None else _read(name, row)


def _read(name: str, row: str) -> Operation:
    signature, mutates, view, gradient, needs, result, dtype, range_, flags = cells(row, 9)
    words = flags.split()
    return Operation(
        name=name,
        signature=parse_signature(signature),
        mutates=_positions(mutates, maybe=False),
        maybe_mutates=_positions(mutates, maybe=True),
        view_of=_positions(view, maybe=False),
        maybe_view_of=_positions(view, maybe=True),
        differentiable=None if gradient == "?" else gradient != "no",
        zero_gradient=gradient == "zero",
        unimplemented=gradient == "unimplemented",
        needs=parse_needs(needs),
        result=result,
        dtype=dtype,
        range=range_,
        syncs="syncs" in words,
        dynamic_shape="dynamic" in words,
        random="random" in words,
        factory="factory" in words,
        pointwise="pointwise" in words,
        pieces="pieces" in words,
        takes_out="out" in words,
        measured="measured" in words,
    )


def _positions(cell: str, *, maybe: bool) -> tuple[int, ...]:
    """``0,~1``: always 0, sometimes 1."""
    written = cell.split(",") if cell else []
    return tuple(int(each.lstrip("~")) for each in written if each.startswith("~") == maybe)
