"""What the rules on saving and loading share."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchlint.check import Assigned, Call, Compiled, Const, Dict, Imported, Module, Scope, Value, last_name

PATH_MAKERS = frozenset(
    {"os.path.join", "os.path.abspath", "os.path.expanduser", "pathlib.Path", "pathlib.PurePath", "builtins.str"}
)


def calls_of(module: Module, *qualnames: str) -> Iterator[tuple[ast.Call, Scope]]:
    """Calls of functions by their qualified names: ``torch.load``, however it is imported."""
    wanted = frozenset(qualnames)
    names = {name.rpartition(".")[2] for name in qualnames}
    for name, bound in module.bindings.items():
        if (isinstance(bound, Imported) and bound.qualname in wanted) or (
            isinstance(bound, Assigned) and isinstance(bound.value, ast.Attribute) and bound.value.attr in names
        ):
            names.add(name)
    for scope in module.scope.walk():
        for name in names & scope.calls.keys():
            yield from ((call, scope) for call in scope.calls[name] if module.qualname(call.func, scope) in wanted)


def argument(call: ast.Call, position: int, name: str) -> ast.expr | None:
    """An argument given by position or by name; None where it isn't given, or where a star may give it."""
    if any(isinstance(given, ast.Starred) for given in call.args[: position + 1]):
        return None
    if len(call.args) > position:
        return call.args[position]
    return next((keyword.value for keyword in call.keywords if keyword.arg == name), None)


def may_be_given(call: ast.Call, position: int, name: str) -> bool:
    """Whether an argument is given, or may come with a star."""
    return (
        len(call.args) > position
        or any(isinstance(given, ast.Starred) for given in call.args)
        or any(keyword.arg in (name, None) for keyword in call.keywords)
    )


def is_constant(node: ast.expr | None, value: object) -> bool:
    """Whether an expression is this very constant."""
    return isinstance(node, ast.Constant) and node.value is value


def bindings(scope: Scope, name: str) -> list[ast.expr | None]:
    """What a scope's plain assignments bind a name to; None for anything but an expression of its own."""
    found: list[ast.expr | None] = []
    for node in scope.of_type(ast.Assign):
        for target in node.targets:  # type: ignore[attr-defined]
            if isinstance(target, ast.Name) and target.id == name:
                found.append(node.value)  # type: ignore[attr-defined]
            elif any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(target)):
                found.append(None)
    for kind in (ast.AnnAssign, ast.AugAssign, ast.For, ast.With):
        for node in scope.of_type(kind):
            targets = [item.optional_vars for item in node.items] if kind is ast.With else [node.target]  # type: ignore[attr-defined]
            for target in targets:
                if target is None:
                    continue
                if any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(target)):
                    found.append(node.value if kind is ast.AnnAssign else None)  # type: ignore[attr-defined]
    return found


def constant_of(module: Module, node: ast.expr, scope: Scope) -> ast.expr:
    """What a name stands for where it is bound once, here or at module level; anything else is itself."""
    if not isinstance(node, ast.Name):
        return node
    up: Scope | None = scope
    while up is not None and up.parent is not None:
        if node.id in up.stores and not isinstance(up.node, ast.ClassDef):
            values = bindings(up, node.id)
            return values[0] if len(values) == 1 and values[0] is not None else node
        up = up.parent
    bound = module.bindings.get(node.id)
    if isinstance(bound, Assigned) and bound.value is not None and not bound.many:
        return bound.value
    return node


def is_path(module: Module, node: ast.expr, scope: Scope) -> bool:
    """Whether an expression is surely the name of a file: a string, an f-string, ``os.path.join(...)``, a Path."""
    node = constant_of(module, node, scope)
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str)
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Div):
            return is_path(module, node.left, scope) or is_path(module, node.right, scope)
        return isinstance(node.op, (ast.Add, ast.Mod)) and is_path(module, node.left, scope)
    if isinstance(node, ast.Call):
        return module.qualname(node.func, scope) in PATH_MAKERS
    return isinstance(node, ast.JoinedStr)


FILE = "file"
"""Read from a file in this function."""
PARAMETER = "parameter"
"""Given to this function under the name of a checkpoint, or to a load_state_dict."""
_CHECKPOINT_WORDS = ("ckpt", "checkpoint", "weight", "pretrain")
MEMORY = "memory"
"""Made in this program: another module's state dict, a dict written out."""


def origins(module: Module, scope: Scope, call: ast.Call, name: str) -> set[str]:
    """Where the first argument of a call comes from, as far as its own function shows."""
    given = argument(call, 0, name)
    return _Origins(module, scope, call).of(given) if given is not None else set()


class _Origins:
    """Follows an expression back through the assignments of one function."""

    def __init__(self, module: Module, scope: Scope, use: ast.Call) -> None:
        self.module = module
        self.scope = scope
        self.use = use
        self.asked: set[str] = set()

    def of(self, node: ast.expr) -> set[str]:
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.Subscript):
            return self.of(node.value)
        if isinstance(node, ast.Attribute):
            return self.of(node.value)
        if isinstance(node, ast.DictComp):
            return self.of(node.generators[0].iter)
        if isinstance(node, ast.IfExp):
            return self.of(node.body) | self.of(node.orelse)
        if isinstance(node, ast.BoolOp):
            return set().union(*(self.of(value) for value in node.values))
        if isinstance(node, ast.Dict):
            spread = [value for key, value in zip(node.keys, node.values, strict=True) if key is None]
            return set().union(*(self.of(value) for value in spread)) if spread else {MEMORY}
        return self._name(node.id) if isinstance(node, ast.Name) else set()

    def _call(self, call: ast.Call) -> set[str]:
        func = call.func
        tail = last_name(func)
        if tail == "state_dict":
            return {MEMORY}
        if "load" in tail.lower() or tail == "from_pretrained":
            return {FILE}
        found: set[str] = set().union(*(self.of(given) for given in call.args))
        if isinstance(func, ast.Attribute) and self.module.dotted(func, self.scope) is None:
            found |= self.of(func.value)
        return found

    def _name(self, name: str) -> set[str]:
        if name in self.asked or name not in self.scope.stores or name == self.scope.self_name:
            return set()
        self.asked.add(name)
        found: set[str] = set()
        sure = False
        for value, binding in reversed(self._bindings(name)):
            if sure or binding.lineno > self.use.lineno:
                continue
            found |= self.of(value) if value is not None else set()
            sure = self._dominates(binding) and (isinstance(value, ast.Dict) or not _changes(value, name))
        node = self.scope.node
        if not sure and isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            arguments = node.args
            given = any(a.arg == name for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs))
            if given and (self.scope.name == "load_state_dict" or any(word in name for word in _CHECKPOINT_WORDS)):
                found.add(PARAMETER)
        return found

    def _bindings(self, name: str) -> list[tuple[ast.expr | None, ast.stmt]]:
        found: list[tuple[ast.expr | None, ast.stmt]] = []
        for kind in (ast.Assign, ast.AnnAssign, ast.For):
            for node in self.scope.of_type(kind):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]  # type: ignore[attr-defined]
                value = node.iter if isinstance(node, ast.For) else node.value  # type: ignore[attr-defined]
                stored = (part for target in targets for part in ast.walk(target) if isinstance(part, ast.Name))
                if any(part.id == name and isinstance(part.ctx, ast.Store) for part in stored):
                    found.append((value, node))  # type: ignore[arg-type]
        return sorted([*found, *self._filled(name)], key=lambda each: each[1].lineno)

    def _filled(self, name: str) -> list[tuple[ast.expr | None, ast.stmt]]:
        """``new[key] = value`` and ``new.update(other)`` put into a dict what it holds."""
        found: list[tuple[ast.expr | None, ast.stmt]] = []
        for node in self.scope.of_type(ast.Assign):
            for target in node.targets:  # type: ignore[attr-defined]
                if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name) and target.value.id == name:
                    found.append((node.value, node))  # type: ignore[attr-defined, arg-type]
        return found

    def _dominates(self, binding: ast.stmt) -> bool:
        """Whether a binding stands in a suite around the use, so that it is made whenever the use is reached."""
        parents = self.scope.parents
        parent = parents.get(binding)
        up: ast.AST | None = self.use
        below: ast.AST = self.use
        while up is not None and up is not parent:
            below = up
            up = parents.get(up)
        if up is None:
            return False
        for field in ("body", "orelse", "finalbody"):
            block = getattr(parent, field, None)
            if isinstance(block, list) and binding in block:
                return below in block
        return False


def _changes(value: ast.expr | None, name: str) -> bool:
    """Whether a binding makes something of the variable's own old value."""
    return value is not None and any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(value))


Held = tuple["str | None", Value]
"""Something that is saved: the key that it stands under (None for what is saved as a whole), and the value."""


def saved(call: Call) -> Iterator[Held]:
    """What a call of torch.save writes: the object itself, or what the containers that it is hold, under any key."""
    whole = call.arguments[0] if call.arguments else call.keywords.get("obj")
    if whole is not None:
        yield from _inside(call, None, whole, 0)


def _inside(call: Call, key: str | None, value: Value, depth: int) -> Iterator[Held]:
    items = call.held.items.get(value) if call.held is not None and depth < 5 else None
    if items is None:
        yield key, value.module if isinstance(value, Compiled) else value
    elif isinstance(value, Dict):
        for name, item in items[0]:
            inner = str(name.value) if isinstance(name, Const) else ""
            yield from _inside(call, f"{key}.{inner}" if key else inner, item, depth + 1)
    else:
        for item in items[0]:
            yield from _inside(call, key or "", item, depth + 1)


def written(call: Call, key: str | None) -> ast.expr | None:
    """The expression that a saved thing is written as, where the call itself, or a display in the file, shows it."""
    node = call.node
    if not isinstance(node, ast.Call):
        return None
    given = argument(node, 0, "obj")
    if key is None:
        return given
    whole = call.arguments[0] if call.arguments else call.keywords.get("obj")
    display = whole.node if isinstance(whole, Dict) else None
    if not isinstance(display, ast.Dict) or display not in call.module.scope.parents:
        return None
    for name, value in zip(display.keys, display.values, strict=True):
        if isinstance(name, ast.Constant) and str(name.value) == key:
            return value
    return None
