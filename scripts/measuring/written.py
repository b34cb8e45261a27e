"""Python signatures as the tables write them: no annotations, named defaults by their torch name."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import Any

import torch


def signature_text(parameters: list[inspect.Parameter]) -> str:
    """``in_features, out_features, bias=True``: what torchlint.torchapi.signatures reads back."""
    written: list[str] = []
    starred = False
    for parameter in parameters:
        if parameter.kind is parameter.VAR_POSITIONAL:
            starred = True
            written.append(f"*{parameter.name}")
            continue
        if parameter.kind is parameter.VAR_KEYWORD:
            written.append(f"**{parameter.name}")
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            starred = True
            written.append("*")
        if parameter.default is parameter.empty:
            written.append(parameter.name)
        else:
            written.append(f"{parameter.name}={default_text(parameter.default)}")
    return ", ".join(written)


def default_text(default: Any) -> str:
    """A literal, or the dotted name of what the default is."""
    if default is None or isinstance(default, (bool, int, float, str)):
        return repr(default)
    if isinstance(default, (tuple, list)):
        return repr(type(default)(default)) if all(isinstance(item, (int, float, str)) for item in default) else "..."
    if isinstance(default, (torch.dtype, torch.layout, torch.memory_format)):
        return str(default)
    if isinstance(default, (types.FunctionType, types.BuiltinFunctionType, type)):
        return f"{default.__module__}.{default.__qualname__}" if "<" not in default.__qualname__ else "..."
    return "..."


def parameters_of(function: Callable[..., Any], *, skip_self: bool) -> list[inspect.Parameter]:
    """The parameters of a Python callable, without ``self`` where it is a method."""
    parameters = list(inspect.signature(function).parameters.values())
    return parameters[1:] if skip_self else parameters
