"""Functions of Python, torch and other packages that the interpreter understands one by one, by canonical name."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from torchlint.program.values import (
    Array,
    Compiled,
    Const,
    Dict,
    Object,
    Parameters,
    Partial,
    Sequence,
    StateDict,
    Symbol,
    Tensor,
    Value,
)

Handler = Callable[["Any", str, "list[Value]", "dict[str, Value]", ast.AST], "Value | None"]


def _parameter(self: Any, name: str, arguments: list[Value], keywords: dict[str, Value], node: ast.AST) -> Value:
    flag = keywords.get("requires_grad") or (arguments[1] if len(arguments) > 1 else None)
    requires = True if flag is None else bool(flag.value) if isinstance(flag, Const) else None
    first = self.current(arguments[0]) if arguments else None
    made = Tensor("parameter", (), node, requires_grad=requires, leaf=True, role="parameter")
    if isinstance(first, Tensor):
        made.shape, made.dtype, made.device = first.shape, first.dtype, first.device
    return made


def _enumerate(self: Any, name: str, arguments: list[Value], keywords: dict[str, Value], node: ast.AST) -> Value | None:
    if not arguments:
        return None
    source = arguments[0]
    made = Symbol("", "result", source, node)

    def element(at: ast.AST) -> Value:
        return self.sequence("tuple", [Symbol("", "result", None, at), self.element(source, at)], at)  # type: ignore[no-any-return]

    self.state.set(made, "@element", element)
    self.state.set(made, "@iterates", (source,))
    return made


def _zip(self: Any, name: str, arguments: list[Value], keywords: dict[str, Value], node: ast.AST) -> Value:
    made = Symbol("", "result", arguments[0] if arguments else None, node)

    def element(at: ast.AST) -> Value:
        return self.sequence("tuple", [self.element(a, at) for a in arguments], at)  # type: ignore[no-any-return]

    self.state.set(made, "@element", element)
    self.state.set(made, "@iterates", tuple(arguments))
    return made


def _same(self: Any, name: str, arguments: list[Value], keywords: dict[str, Value], node: ast.AST) -> Value | None:
    return arguments[0] if arguments else None


def _first_keyword(
    self: Any, name: str, arguments: list[Value], keywords: dict[str, Value], node: ast.AST
) -> Value | None:
    return arguments[0] if arguments else next(iter(keywords.values()), None)


def _number(self: Any, name: str, arguments: list[Value], keywords: dict[str, Value], node: ast.AST) -> Value:
    first = arguments[0] if arguments else None
    if isinstance(first, Const) and len(arguments) == 1:
        try:
            kinds: dict[str, Callable[[Any], Any]] = {"int": int, "float": float, "bool": bool, "str": str, "abs": abs}
            return Const(kinds[name[9:]](first.value), node)
        except Exception:
            return Symbol(node=node)
    return Symbol("", "result", first, node)


def _sum(self: Any, name: str, arguments: list[Value], keywords: dict[str, Value], node: ast.AST) -> Value | None:
    first = arguments[0] if arguments else None
    if isinstance(first, Sequence):
        items, _ = self.items(first)
        tensors = [i for i in items if isinstance(i, Tensor)]
        if tensors:
            return self.tensor_operation("torch.add", list(items), {}, node)  # type: ignore[no-any-return]
    return Symbol("", "result", first, node)


def _len(self: Any, name: str, arguments: list[Value], keywords: dict[str, Value], node: ast.AST) -> Value:
    first = arguments[0] if arguments else None
    size = self.known_length(first) if first is not None else None
    return Const(size, node) if size is not None else Symbol("", "result", first, node)


def _list(self: Any, name: str, arguments: list[Value], keywords: dict[str, Value], node: ast.AST) -> Value:
    kind = {"sorted": "list", "reversed": "list"}.get(name[9:], name[9:])
    first = arguments[0] if arguments else None
    if first is None:
        return self.sequence(kind, (), node)  # type: ignore[no-any-return]
    if isinstance(first, Parameters):
        self.consume(first, node, kind)
        return self.sequence(kind, [self.element(Parameters(first.sources, first.named), node)], node, exact=False)  # type: ignore[no-any-return]
    if isinstance(first, Sequence):
        items, exact = self.items(first)
        return self.sequence(kind, items, node, exact and name != "builtins.set")  # type: ignore[no-any-return]
    return self.sequence(kind, [self.element(first, node)], node, exact=False)  # type: ignore[no-any-return]


def _dict(self: Any, name: str, arguments: list[Value], keywords: dict[str, Value], node: ast.AST) -> Value:
    made = Dict(node)
    items: list[tuple[Value, Value]] = []
    exact = "**" not in keywords
    if arguments and isinstance(arguments[0], Dict):
        old, known = self.items(arguments[0])
        items.extend(old)
        exact = exact and known
    elif arguments and isinstance(arguments[0], StateDict):
        return arguments[0]
    elif arguments:
        exact = False
        if isinstance(arguments[0], Sequence):
            for pair in self.items(arguments[0])[0]:
                if isinstance(pair, Sequence) and len(self.items(pair)[0]) == 2:
                    items.append(self.items(pair)[0])
    items.extend((Const(k), v) for k, v in keywords.items() if k != "**")
    self.set_items(made, items, exact)
    return made


def _filter(self: Any, name: str, arguments: list[Value], keywords: dict[str, Value], node: ast.AST) -> Value | None:
    if len(arguments) > 1 and isinstance(arguments[1], Parameters):
        return Parameters(arguments[1].sources, arguments[1].named, node)
    return None


def _chain(self: Any, name: str, arguments: list[Value], keywords: dict[str, Value], node: ast.AST) -> Value | None:
    if arguments and all(isinstance(a, Parameters) for a in arguments):
        return Parameters(tuple(s for a in arguments for s in a.sources), False, node)  # type: ignore[attr-defined]
    return None


def _partial(self: Any, name: str, arguments: list[Value], keywords: dict[str, Value], node: ast.AST) -> Value | None:
    return Partial(arguments[0], arguments[1:], keywords) if arguments else None


def _getattr(self: Any, name: str, arguments: list[Value], keywords: dict[str, Value], node: ast.AST) -> Value | None:
    if len(arguments) == 2 and isinstance(arguments[1], Const) and isinstance(arguments[1].value, str):
        return self.get_attribute(arguments[0], arguments[1].value, node)  # type: ignore[no-any-return]
    return Symbol("", "result", arguments[0] if arguments else None, node)


def _setattr(self: Any, name: str, arguments: list[Value], keywords: dict[str, Value], node: ast.AST) -> Value | None:
    if len(arguments) == 3 and isinstance(arguments[1], Const):
        self.state.set(arguments[0], f".{arguments[1].value}", arguments[2])
        if isinstance(arguments[0], Object):
            self.adopt(arguments[0], arguments[2])
    return Const(None)


def _deepcopy(self: Any, name: str, arguments: list[Value], keywords: dict[str, Value], node: ast.AST) -> Value | None:
    value = arguments[0] if arguments else None
    if isinstance(value, Object):
        made = Object(node, value.cls, value.spec, value.arguments, value.known)
        for (owner, slot), held in list(self.state.data.items()):
            if owner is value and slot not in ("@parent", "@stepped") and not isinstance(held, (Tensor, Object)):
                self.state.set(made, slot, held)
        self.state.set(made, "@copy of", value)
        return made
    if isinstance(value, Tensor):
        return Tensor(
            "copy", (), node, requires_grad=self.requires_grad(value), leaf=True, role=value.role, dtype=value.dtype
        )
    if isinstance(value, StateDict):
        return value if name == "copy.copy" else Symbol("", "result", None, node)
    return Symbol("", "result", value, node)


def _compile(self: Any, name: str, arguments: list[Value], keywords: dict[str, Value], node: ast.AST) -> Value | None:
    first = arguments[0] if arguments else keywords.get("model")
    return Compiled(first, node) if isinstance(first, (Object, Symbol)) else first


def _from_numpy(self: Any, name: str, arguments: list[Value], keywords: dict[str, Value], node: ast.AST) -> Value:
    first = arguments[0] if arguments else None
    dtype = first.dtype if isinstance(first, Array) else None
    return Tensor(name, (), node, requires_grad=False, leaf=True, dtype=dtype, role="factory")


def _variable(self: Any, name: str, arguments: list[Value], keywords: dict[str, Value], node: ast.AST) -> Value | None:
    first = self.current(arguments[0]) if arguments else None
    flag = keywords.get("requires_grad") or (arguments[1] if len(arguments) > 1 else None)
    if isinstance(flag, Const) and flag.value and isinstance(first, (Tensor, Symbol)):
        made = Tensor(name, (), node, requires_grad=True, leaf=True, role="factory")
        made.wraps = (first,)
        return made
    return first


def _checkpoint(
    self: Any, name: str, arguments: list[Value], keywords: dict[str, Value], node: ast.AST
) -> Value | None:
    if not arguments:
        return None
    given = {k: v for k, v in keywords.items() if k not in ("use_reentrant", "preserve_rng_state", "context_fn")}
    return self.call_value(arguments[0], arguments[1:], given, node)  # type: ignore[no-any-return]


def _next(self: Any, name: str, arguments: list[Value], keywords: dict[str, Value], node: ast.AST) -> Value | None:
    return self.element(arguments[0], node) if arguments else None


HANDLERS: dict[str, Handler] = {
    "torch.nn.Parameter": _parameter,
    "torch.nn.parameter.Parameter": _parameter,
    "torch.autograd.Variable": _variable,
    "torch.autograd.variable.Variable": _variable,
    "torch.from_numpy": _from_numpy,
    "torch.compile": _compile,
    "torch.utils.checkpoint.checkpoint": _checkpoint,
    "builtins.enumerate": _enumerate,
    "builtins.zip": _zip,
    "builtins.iter": _same,
    "builtins.next": _next,
    "builtins.int": _number,
    "builtins.float": _number,
    "builtins.bool": _number,
    "builtins.str": _number,
    "builtins.abs": _number,
    "builtins.sum": _sum,
    "builtins.len": _len,
    "builtins.list": _list,
    "builtins.tuple": _list,
    "builtins.set": _list,
    "builtins.sorted": _list,
    "builtins.reversed": _list,
    "builtins.dict": _dict,
    "collections.OrderedDict": _dict,
    "builtins.filter": _filter,
    "itertools.chain": _chain,
    "functools.partial": _partial,
    "builtins.getattr": _getattr,
    "builtins.setattr": _setattr,
    "copy.deepcopy": _deepcopy,
    "copy.copy": _deepcopy,
    "tqdm.tqdm": _first_keyword,
    "tqdm.auto.tqdm": _first_keyword,
    "tqdm.notebook.tqdm": _first_keyword,
    "tqdm.std.tqdm": _first_keyword,
    "tqdm.trange": lambda self, name, arguments, keywords, node: Symbol(node=node),
    "rich.progress.track": _first_keyword,
}
