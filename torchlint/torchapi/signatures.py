"""Signatures of torch's callables as the tables keep them, and how a call's arguments are bound to them.

A signature is written in the tables as Python writes it, without annotations: ``in_features, out_features, bias=True``.
A default that is no literal (``torch.nn.functional.relu``) is a ``Symbol``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

Value = TypeVar("Value")

POSITIONAL = "positional"
KEYWORD = "keyword"
VARIADIC = "variadic"
KEYWORDS = "keywords"


@dataclass(frozen=True, slots=True)
class Symbol:
    """A default that is named rather than written, as ``torch.nn.functional.relu``."""

    name: str


@dataclass(frozen=True, slots=True)
class Argument:
    """One parameter of a callable: ``kind`` is positional, keyword (only), variadic (``*x``) or keywords (``**x``)."""

    name: str
    required: bool = True
    default: object = None
    kind: str = POSITIONAL


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters of a callable, in order, without ``self`` for constructors and forwards."""

    arguments: tuple[Argument, ...]

    def argument(self, name: str) -> Argument | None:
        """The parameter of that name."""
        return next((argument for argument in self.arguments if argument.name == name), None)

    def position(self, name: str) -> int | None:
        """The 0-based position at which ``name`` can be given, None where it can't be given by position."""
        for index, argument in enumerate(self.arguments):
            if argument.name == name:
                return index if argument.kind == POSITIONAL else None
        return None

    @property
    def minimum(self) -> int:
        """How many arguments a call must give."""
        return sum(argument.required and argument.kind in (POSITIONAL, KEYWORD) for argument in self.arguments)

    @property
    def maximum(self) -> int | None:
        """How many arguments a call can give by position; None where there is no limit."""
        if any(argument.kind == VARIADIC for argument in self.arguments):
            return None
        return sum(argument.kind == POSITIONAL for argument in self.arguments)

    def bind(self, positional: Sequence[Value], keywords: Mapping[str, Value]) -> dict[str, Value] | None:
        """The given arguments by parameter name, None where the call doesn't fit.

        What falls to ``*args`` is named ``args[0]``, ``args[1]``; what falls to ``**kwargs`` keeps its own name.
        Parameters that aren't given are absent, required ones included: the call may be completed by ``**kwargs``
        that the caller can't see.
        """
        bound: dict[str, Value] = {}
        names = [argument for argument in self.arguments if argument.kind == POSITIONAL]
        variadic = next((argument.name for argument in self.arguments if argument.kind == VARIADIC), None)
        for index, value in enumerate(positional):
            if index < len(names):
                bound[names[index].name] = value
            elif variadic is not None:
                bound[f"{variadic}[{index - len(names)}]"] = value
            else:
                return None
        known = {argument.name for argument in self.arguments if argument.kind in (POSITIONAL, KEYWORD)}
        open_ended = any(argument.kind == KEYWORDS for argument in self.arguments)
        for name, value in keywords.items():
            if name in bound or (name not in known and not open_ended):
                return None
            bound[name] = value
        return bound

    def __str__(self) -> str:
        return ", ".join(_written(self.arguments))


def _written(arguments: Iterable[Argument]) -> Iterable[str]:
    starred = False
    for argument in arguments:
        if argument.kind == VARIADIC:
            starred = True
            yield f"*{argument.name}"
            continue
        if argument.kind == KEYWORDS:
            yield f"**{argument.name}"
            continue
        if argument.kind == KEYWORD and not starred:
            starred = True
            yield "*"
        if argument.required:
            yield argument.name
        elif isinstance(argument.default, Symbol):
            yield f"{argument.name}={argument.default.name}"
        else:
            yield f"{argument.name}={argument.default!r}"


def parse_signature(text: str) -> Signature:
    """Read a signature as the tables write it."""
    expression = ast.parse(f"lambda {text}: 0", mode="eval").body
    assert isinstance(expression, ast.Lambda)
    parameters = expression.args
    plain = [*parameters.posonlyargs, *parameters.args]
    missing = len(plain) - len(parameters.defaults)
    arguments = [Argument(arg.arg) for arg in plain[:missing]]
    arguments += [
        Argument(arg.arg, False, _default(value))
        for arg, value in zip(plain[missing:], parameters.defaults, strict=True)
    ]
    if parameters.vararg is not None:
        arguments.append(Argument(parameters.vararg.arg, False, None, VARIADIC))
    for arg, given in zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True):
        if given is None:
            arguments.append(Argument(arg.arg, kind=KEYWORD))
        else:
            arguments.append(Argument(arg.arg, False, _default(given), KEYWORD))
    if parameters.kwarg is not None:
        arguments.append(Argument(parameters.kwarg.arg, False, None, KEYWORDS))
    return Signature(tuple(arguments))


def _default(node: ast.expr) -> object:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return Symbol(ast.unparse(node))
