"""What a model is fed: the specification of one input, its text form, and its JSON form.

The text form is what ``--input`` and the configuration take and what the report prints, so that a choice the probe
made can be copied into pyproject.toml:

    3x224x224                  float32, the batch is put in front
    int64[128]<30522           integers from 0 up to 30522
    float32[3,32,32]=0..1      uniform in a range
    float32[16,B,64]           the batch stands second
    float32[3,3]!              no batch dimension
    name=int64[]<10            a keyword; no dimension but the batch
    steps=5  causal=true       a Python value
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

FLOATS = ("float32", "float64", "float16", "bfloat16")
INTEGERS = ("int64", "int32", "int16", "int8", "uint8")
DTYPES = (*FLOATS, *INTEGERS, "bool", "complex64", "complex128")
_ALIASES = {"float": "float32", "double": "float64", "half": "float16", "long": "int64", "int": "int64"}


class SpecError(ValueError):
    """The text of an input can't be read; the message shows what can."""


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A tensor: its sizes without the batch, where the batch goes (None: nowhere), its dtype and range of values."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    batch_dim: int | None = 0
    low: float = 0
    high: float | None = None

    @property
    def is_integer(self) -> bool:
        """Whether it holds indices, labels or tokens."""
        return self.dtype in INTEGERS


@dataclass(frozen=True, slots=True)
class ValueSpec:
    """A plain Python value: a number, a flag, a string, None."""

    value: Any


@dataclass(frozen=True, slots=True)
class ListSpec:
    """A list or tuple of inputs."""

    items: tuple[Spec, ...]
    as_tuple: bool = False


@dataclass(frozen=True, slots=True)
class DictSpec:
    """A dictionary of inputs."""

    items: tuple[tuple[str, Spec], ...]


Spec: TypeAlias = "TensorSpec | ValueSpec | ListSpec | DictSpec"

_PLAIN = re.compile(r"^\d+(x\d+)*$")
_TYPED = re.compile(
    r"^(?P<dtype>[a-z]+\d*)\[(?P<dims>[^\]]*)\](?P<nobatch>!)?"
    r"(?:<(?P<below>[-\d.e+]+)|=(?P<low>[-\d.e+]+?)\.\.(?P<high>[-\d.e+]+))?$"
)
_NAMED = re.compile(r"^(?P<name>[A-Za-z_]\w*)=(?P<rest>.*)$", re.S)
_WORDS = {"true": True, "false": False, "none": None, "null": None}


def parse_input(text: str) -> tuple[str | None, Spec]:
    """The keyword (None for a positional input) and the specification that a text stands for. Raises SpecError."""
    text = text.strip()
    named = _NAMED.match(text)
    if named and not _TYPED.match(text):
        return named["name"], parse_spec(named["rest"], named=True)
    return None, parse_spec(text)


def parse_spec(text: str, *, named: bool = False) -> Spec:
    """The specification that a text without a keyword stands for. Raises SpecError."""
    text = text.strip()
    if _PLAIN.match(text) and not (named and "x" not in text):
        return TensorSpec(tuple(int(part) for part in text.split("x")))
    typed = _TYPED.match(text)
    if typed:
        return _typed(typed, text)
    if text.lower() in _WORDS:
        return ValueSpec(_WORDS[text.lower()])
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        raise SpecError(
            f"can't read the input {text!r}; it is 3x224x224, int64[128]<30522, float32[3,8,8]=0..1, "
            "or name=... of these, or name=5"
        ) from None
    return ValueSpec(value)


def _typed(match: re.Match[str], text: str) -> TensorSpec:
    dtype = _ALIASES.get(match["dtype"], match["dtype"])
    if dtype not in DTYPES:
        raise SpecError(f"{text!r}: {dtype!r} is not a dtype; known are {', '.join(DTYPES)}")
    dims = [part.strip() for part in re.split(r"[x,]", match["dims"])] if match["dims"].strip() else []
    batch_dim: int | None = None if match["nobatch"] else 0
    shape = []
    for index, part in enumerate(dims):
        if part in ("B", "N") and not match["nobatch"]:
            batch_dim = index
        elif part.isdigit():
            shape.append(int(part))
        else:
            raise SpecError(f"{text!r}: {part!r} is not a size; sizes are numbers, and B marks the batch")
    if match["below"] is not None:
        return TensorSpec(tuple(shape), dtype, batch_dim, 0, float(match["below"]))
    if match["low"] is not None:
        return TensorSpec(tuple(shape), dtype, batch_dim, float(match["low"]), float(match["high"]))
    return TensorSpec(tuple(shape), dtype, batch_dim)


def to_text(spec: Spec, name: str | None = None) -> str:
    """The text form of a specification."""
    prefix = f"{name}=" if name else ""
    if isinstance(spec, ValueSpec):
        return f"{prefix}{spec.value!r}"
    if isinstance(spec, ListSpec):
        inner = ", ".join(to_text(item) for item in spec.items)
        return f"{prefix}({inner})" if spec.as_tuple else f"{prefix}[{inner}]"
    if isinstance(spec, DictSpec):
        return prefix + "{" + ", ".join(f"{key}: {to_text(item)}" for key, item in spec.items) + "}"
    dims = [str(size) for size in spec.shape]
    if spec.batch_dim:
        dims.insert(spec.batch_dim, "B")
    suffix = "!" if spec.batch_dim is None else ""
    if spec.high is not None:
        high, low = _number(spec.high), _number(spec.low)
        suffix += f"<{high}" if spec.low == 0 and spec.is_integer else f"={low}..{high}"
    return f"{prefix}{spec.dtype}[{','.join(dims)}]{suffix}"


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else str(value)


def to_json(spec: Spec) -> dict[str, Any]:
    """A specification as JSON can carry it."""
    if isinstance(spec, TensorSpec):
        return {
            "shape": list(spec.shape),
            "dtype": spec.dtype,
            "batch_dim": spec.batch_dim,
            "low": spec.low,
            "high": spec.high,
        }
    if isinstance(spec, ListSpec):
        return {"list": [to_json(item) for item in spec.items], "tuple": spec.as_tuple}
    if isinstance(spec, DictSpec):
        return {"dict": {key: to_json(item) for key, item in spec.items}}
    return {"value": spec.value}


def from_json(data: Mapping[str, Any]) -> Spec:
    """The inverse of ``to_json``."""
    if "shape" in data:
        return TensorSpec(tuple(data["shape"]), data["dtype"], data["batch_dim"], data["low"], data["high"])
    if "list" in data:
        return ListSpec(tuple(from_json(item) for item in data["list"]), data["tuple"])
    if "dict" in data:
        return DictSpec(tuple((key, from_json(item)) for key, item in data["dict"].items()))
    return ValueSpec(data["value"])
