"""Modules and parameters that a class keeps in plain lists and dicts, where nn.Module doesn't see them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence

from torchlint.check import (
    AttributeUse,
    ClassInfo,
    Fix,
    FunctionInfo,
    Made,
    Module,
    Scope,
    last_name,
    module_class,
    operations,
)
from torchlint.source.edits import Edits, Name, name_for, replace, safe, surround, unsafe

REGISTERING = ("add_module", "register_module", "register_parameter", "setattr", "__setattr__")
_BY_HAND = frozenset(
    {
        *("parameters", "named_parameters", "modules", "named_modules", "children", "named_children", "_apply"),
        *("__setattr__", "_named_members"),
    }
)
"""Methods whose override means that a class sees to its members itself."""

_ATTRIBUTE = re.compile(r"\.(\w+)")
_HARMLESS = frozenset(
    f"builtins.{name}"
    for name in (
        *("len", "enumerate", "zip", "reversed", "range", "iter", "list", "tuple", "sorted", "sum", "next", "max"),
        *("isinstance", "print", "str", "repr", "map", "filter", "any", "all", "id", "type", "min", "set", "bool"),
    )
)
_LIST_METHODS = frozenset({"append", "extend", "insert", "pop"})
_DICT_METHODS = frozenset({"items", "keys", "values", "pop", "clear", "update"})


class PlainContainer:
    """``self.<name>`` holding a plain list or dict with modules or parameters that are registered nowhere.

    ``kind`` is ``sequence`` or ``mapping``, ``leaves`` the unregistered elements.
    """

    __slots__ = ("cls", "kind", "leaves", "made", "name", "use")

    def __init__(self, cls: ClassInfo, name: str, use: AttributeUse, made: Made, leaves: list[Made]) -> None:
        self.cls = cls
        self.name = name
        self.use = use
        self.made = made
        self.kind = made.kind
        self.leaves = leaves

    @property
    def what(self) -> str:
        """The classes of the elements, for a message."""
        names = list(dict.fromkeys(leaf.name for leaf in self.leaves if leaf.name))
        if not names:
            return "its modules"
        return f"its {names[0]}" if len(names) == 1 else f"its {', '.join(names[:-1])} and {names[-1]}"


def plain_containers(cls: ClassInfo) -> list[PlainContainer]:
    """All of a module class; worked out once for the rules that ask."""
    memo = cls.module.memo
    key = ("plain containers", cls.node)
    if key not in memo:
        memo[key] = list(_find(cls))
    return memo[key]  # type: ignore[no-any-return]


def _find(cls: ClassInfo) -> Iterator[PlainContainer]:
    candidates = [found for name in cls.written_attributes if (found := _candidate(cls, name))]
    candidates += [found for name in cls.class_attributes if (found := _class_candidate(cls, name))]
    listed = {name for name, _, _ in candidates}
    candidates = [
        (name, use, made)
        for name, use, made in candidates
        if _is_read(cls, name) and not _is_hidden_on_purpose(cls, name, made)
    ]
    if not candidates or any(cls.method(name) is not None for name in _BY_HAND):
        return
    registered = _registered(cls, listed)
    if registered is None:
        return
    for name, use, made in candidates:
        leaves = [leaf for leaf in made.leaves() if id(leaf.node) not in registered]
        leaves = [leaf for leaf in leaves if leaf.kind == "module" or (leaf.kind == "parameter" and leaf.fresh)]
        if leaves and not _escapes(cls, name, use):
            yield PlainContainer(cls, name, use, made, leaves)


def _is_read(cls: ClassInfo, name: str) -> bool:
    """Whether anything but ``__init__`` looks at the attribute: what only helps to build isn't part of the module."""
    if any(use.method.name != "__init__" for use in cls.reads(name)):
        return True
    memo = cls.module.memo
    key = ("attributes outside __init__", cls.node)
    if key not in memo:
        code = (line for line in _lines_outside(cls) if not line.lstrip().startswith(("import ", "from ", "#")))
        memo[key] = {found for line in code for found in _ATTRIBUTE.findall(line)}
    return name in memo[key]


def _lines_outside(cls: ClassInfo) -> Iterator[str]:
    lines = cls.module.source.lines
    init = cls.methods.get("__init__")
    if init is None:
        yield from lines
    else:
        yield from lines[: init.node.lineno - 1]
        yield from lines[init.node.end_lineno or 0 :]


def _candidate(cls: ClassInfo, name: str) -> tuple[str, AttributeUse, Made] | None:
    """The first plain container with a module or parameter that ``self.<name>`` is bound to, if nothing else is."""
    if name in cls.methods:
        return None
    values = [(at.value, scope) for node, scope in cls.written_attributes[name] if (at := scope.assigned.get(node))]
    if not any(
        value is not None and _may_be_container(value, scope, cls.module, cls) for value, scope in values
    ) or any(_is_of_self(call.func, scope) for call, scope in cls.scope.all_calls(name)):
        return None
    writes = cls.writes(name)
    found: tuple[str, AttributeUse, Made] | None = None
    instances = cls.module.instances
    fills = instances.fills(cls.scope).get(name, ())
    if all(value is None or _is_empty(value) for value, _ in values) and not any(map(_may_put_layer, fills)):
        return None
    for use in writes:
        value = use.value
        if value is None:
            if isinstance(use.method.parents.get(use.node), (ast.AugAssign, ast.Delete)):
                continue
            return None
        for made in instances.makes(value, use.scope):
            if made.kind in ("sequence", "mapping"):
                filled = instances.filled(made, fills, use.scope)
                if found is None and any(leaf.kind in ("module", "parameter") for leaf in filled.leaves()):
                    found = (name, use, filled)
            elif made.kind not in ("none", "plain"):
                return None
    return found


def _class_candidate(cls: ClassInfo, name: str) -> tuple[str, AttributeUse, Made] | None:
    """A container in the class body that methods fill through self: the first place that does."""
    instances = cls.module.instances
    value = cls.class_attributes[name]
    fills = instances.fills(cls.scope).get(name, ()) if name not in cls.written_attributes else ()
    if value is None or not fills or not _may_be_container(value, cls.scope, cls.module, None):
        return None
    for made in instances.makes(value, cls.scope):
        filled = instances.filled(made, fills, cls.scope)
        if made.kind in ("sequence", "mapping") and any(
            leaf.kind in ("module", "parameter") for leaf in filled.leaves()
        ):
            rows = {getattr(node, "lineno", 0) for _, node, _ in fills}
            use = next((read for read in cls.reads(name) if read.node.lineno in rows), None)
            return None if use is None else (name, use, filled)
    return None


_DISPLAYS = (ast.List, ast.Tuple, ast.Dict, ast.ListComp, ast.DictComp, ast.SetComp, ast.Set, ast.GeneratorExp)
_PLAIN = frozenset({"int", "float", "str", "bool", "len", "range", "round", "min", "max", "sum", "abs", "slice"})
"""Builtins that give no layer, whatever they are given."""
_OF_MODULES_TOO = frozenset(
    {*("to", "cuda", "cpu", "float", "double", "half", "bfloat16", "type", "requires_grad_", "apply", "xpu")}
)
"""Methods of tensors that modules have, too."""
_MAKERS = frozenset(
    {"list", "tuple", "dict", "set", "deque", "defaultdict", "OrderedDict", "sorted", "reversed", "map", "deepcopy"}
)


def _may_be_container(value: ast.expr, scope: Scope, module: Module, cls: ClassInfo | None, depth: int = 3) -> bool:
    """Whether an expression could be a list or dict of layers, by its looks: whether it is worth a closer look."""
    if isinstance(value, _DISPLAYS):
        return _may_hold_layers(value, scope)
    if isinstance(value, ast.BinOp):
        return any(_may_be_container(side, scope, module, cls, depth) for side in (value.left, value.right))
    if isinstance(value, ast.IfExp):
        return any(_may_be_container(side, scope, module, cls, depth) for side in (value.body, value.orelse))
    if isinstance(value, ast.Name) and depth and value.id in scope.stores:
        bound = [b.value for b in module.instances.bindings(scope).get(value.id, ()) if b.value is not None]
        return any(_may_be_container(each, scope, module, cls, depth - 1) for each in bound)
    if not isinstance(value, ast.Call) or not depth:
        return False
    func = value.func
    last = last_name(func)
    if last in _MAKERS:
        return True
    if last[:1].isupper():  # a class, which costs more to find than it is worth
        return False
    if cls is not None and _is_of_self(func, scope):
        found: object = cls.method(last)
    elif isinstance(func, ast.Attribute) and last_name(func.value)[:1].isupper():  # Net.from_pretrained(...)
        return False
    else:
        found = module.definition(func, scope)
    if not isinstance(found, FunctionInfo):
        return False
    returned = [n.value for n in found.scope.of_type(ast.Return) if n.value is not None]  # type: ignore[attr-defined]
    return any(_may_be_container(each, found.scope, found.module, found.cls, depth - 1) for each in returned)


def _is_of_self(node: ast.expr, scope: Scope) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == scope.self_name


def _may_hold_layers(display: ast.expr, scope: Scope) -> bool:
    """Whether a list or dict display is empty, to be filled later, or holds anything that could be a layer."""
    if isinstance(display, ast.Dict):
        held = display.values
    elif isinstance(display, (ast.List, ast.Tuple, ast.Set)):
        held = display.elts
    elif isinstance(display, ast.DictComp):
        held = [display.value]
    else:
        held = [display.elt]  # type: ignore[attr-defined]
    return not held or any(_may_be_layer(each, scope) for each in held)


def _may_put_layer(fill: tuple[str, ast.AST, Scope]) -> bool:
    """Whether what fills a container could be a layer."""
    _, node, scope = fill
    if isinstance(node, ast.Call):
        return any(_may_be_layer(each, scope) for each in (*node.args, *(k.value for k in node.keywords)))
    value = getattr(node, "value", None)
    return value is None or _may_be_layer(value, scope)


def _may_be_layer(node: ast.expr, scope: Scope) -> bool:
    if isinstance(node, ast.Constant):
        return node.value is None
    if isinstance(node, _DISPLAYS):
        return _may_hold_layers(node, scope)
    if _is_of_self(node, scope):  # an attribute of its own, which is registered by that
        return False
    if isinstance(node, ast.Call):
        return not _gives_no_layer(node)
    return not isinstance(node, (ast.JoinedStr, ast.Compare, ast.UnaryOp, ast.BinOp, ast.Lambda))


def _gives_no_layer(call: ast.Call) -> bool:
    """Whether a call is spelt as one of a builtin, of a tensor's method or of a function on tensors."""
    func = call.func
    if isinstance(func, ast.Name):
        return func.id in _PLAIN
    if not isinstance(func, ast.Attribute) or func.attr in _OF_MODULES_TOO:
        return False
    if isinstance(func.value, ast.Name) and func.value.id == "torch":
        return operations.function(f"torch.{func.attr}") is not None
    return operations.tensor_method(func.attr) is not None


def _is_empty(value: ast.expr) -> bool:
    """Whether a container is made without anything in it."""
    if isinstance(value, ast.Call):
        return not value.args and not value.keywords and isinstance(value.func, ast.Name) and value.func.id in _MAKERS
    return isinstance(value, (ast.List, ast.Tuple, ast.Dict)) and not getattr(value, "elts", getattr(value, "keys", ()))


def _registered(cls: ClassInfo, listed: set[str]) -> set[int] | None:
    """The expressions that make what the class registers; None where something unknown is registered by name.

    ``listed`` are the attributes that are plain containers.
    """
    found: set[int] = set()
    for base in (cls, *cls.ancestors()):
        home = base.module.instances
        for made in home.kept(base):
            _take(made, cls.module, found)
        for call, scope in home.registrations(base):
            if isinstance(call.func, ast.Name) and not _is_on_self(call, scope):
                continue
            value = call.args[-1] if call.args else None
            if value is not None and any(m.kind == "unknown" for m in home.makes(value, scope)):
                return None
        for name, fills in home.fills(base.scope).items():
            for _, node, scope in () if name in listed else fills:
                for made in home.put_in(node, scope):
                    _take(made, cls.module, found)
        for call, scope in base.scope.all_calls("__init__"):
            for argument in call.args:
                inner = argument.value if isinstance(argument, ast.Starred) else argument
                for made in home.makes(inner, scope):
                    for leaf in made.leaves():
                        _take(leaf, cls.module, found)
    return found


def _take(made: Made, module: Module, found: set[int], depth: int = 6) -> None:
    """Add the expression that makes a module, and those of the modules in it."""
    if made.kind in ("module", "parameter") and id(made.node) not in found and depth:
        found.add(id(made.node))
        for inner in module.instances.contents(made):
            for leaf in inner.leaves():
                _take(leaf, module, found, depth - 1)


def _is_on_self(call: ast.Call, scope: Scope) -> bool:
    return bool(call.args) and isinstance(call.args[0], ast.Name) and call.args[0].id == scope.self_name


def _is_hidden_on_purpose(cls: ClassInfo, name: str, made: Made) -> bool:
    """Whether this is the known idiom to hide a module: one in a list or tuple, read as ``self.x[0]`` alone."""
    node = made.node
    if not isinstance(node, (ast.List, ast.Tuple)) or len(node.elts) != 1:
        return False
    if isinstance(node.elts[0], ast.Name) and not all(leaf.fresh for leaf in made.leaves()):
        return True
    reads = cls.reads(name)
    return bool(reads) and all(_is_first_item(use) for use in reads)


def _is_first_item(use: AttributeUse) -> bool:
    parent = use.method.parents.get(use.node)
    return isinstance(parent, ast.Subscript) and isinstance(parent.slice, ast.Constant) and parent.slice.value == 0


# ---------------------------------------------------------------------------------------------------- escapes


def _escapes(cls: ClassInfo, name: str, use: AttributeUse) -> bool:
    """Whether the container, or the local it was made as, is handed to something that may register what it holds."""
    if any(_is_handed_over(read.node, read.scope, read.method, cls) for read in cls.reads(name)):
        return True
    if isinstance(use.value, ast.Name) and _local_escapes(use.value.id, use, cls):
        return True
    for _, node, scope in cls.module.instances.fills(cls.scope).get(name, ()):
        for argument in node.args if isinstance(node, ast.Call) else [getattr(node, "value", None)]:
            if isinstance(argument, ast.Name) and scope.self_name is not None:
                method = _method_of(scope, cls)
                if _name_is_handed_over(argument.id, argument, scope, method, cls):
                    return True
    return False


def _method_of(scope: Scope, cls: ClassInfo) -> Scope:
    while scope.parent is not None and scope.parent is not cls.scope:
        scope = scope.parent
    return scope


def _local_escapes(local: str, use: AttributeUse, cls: ClassInfo) -> bool:
    return _name_is_handed_over(local, None, use.scope, use.method, cls)


def _name_is_handed_over(local: str, but: ast.AST | None, scope: Scope, method: Scope, cls: ClassInfo) -> bool:
    uses = _names_read(scope, cls.module).get(local, ())
    return any(use is not but and _is_handed_over(use, scope, method, cls) for use in uses)


def _names_read(scope: Scope, module: Module) -> dict[str, list[ast.Name]]:
    """Where a scope and those below read each name; worked out once."""
    key = ("names read", scope)
    if key not in module.memo:
        table: dict[str, list[ast.Name]] = {}
        for node in ast.walk(scope.node):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                table.setdefault(node.id, []).append(node)
        module.memo[key] = table
    return module.memo[key]  # type: ignore[no-any-return]


def _is_handed_over(node: ast.AST, scope: Scope, method: Scope, cls: ClassInfo) -> bool:
    """Whether an expression is an argument of a call that could register it somewhere."""
    parents = method.parents
    while True:
        parent = parents.get(node)
        if isinstance(parent, (ast.Starred, ast.keyword, ast.List, ast.Tuple, ast.IfExp, ast.BinOp, ast.BoolOp)):
            node = parent
            continue
        if isinstance(parent, ast.Call) and node is not parent.func:
            harmless = _is_harmless(parent, scope, cls)
            if harmless is None:
                node = parent
                continue
            return not harmless
        return False


def _is_harmless(call: ast.Call, scope: Scope, cls: ClassInfo) -> bool | None:
    """Whether a call surely registers nothing that it is given; None where it passes it on as its result."""
    func = call.func
    if isinstance(func, ast.Attribute):
        if func.attr in ("append", "extend", "insert", "appendleft", *REGISTERING):
            return True  # what these register was looked at before
        if isinstance(func.value, ast.Name) and func.value.id == scope.self_name:
            method = cls.method(func.attr)
            return method is not None and _registers_nothing(method)
    name = cls.module.qualname(func, scope)
    if name in _HARMLESS:
        return None if name in ("builtins.list", "builtins.tuple", "builtins.reversed", "builtins.iter") else True
    if name == "builtins.setattr":
        return True
    definition = cls.module.definition(func, scope)
    if isinstance(definition, FunctionInfo):
        return _registers_nothing(definition)
    return name is not None and name.startswith("torch.") and not name.startswith(("torch.nn.", "torch.optim."))


def _registers_nothing(function: FunctionInfo) -> bool:
    for each in function.scope.walk():
        if any(name in each.calls for name in (*REGISTERING, "ModuleList", "ModuleDict", "Sequential", "__init__")):
            return False
    return True


# ---------------------------------------------------------------------------------------------------- the fix


def wrapped(found: PlainContainer, container: str) -> Fix | None:
    """Make a plain container one of torch's (``torch.nn.ModuleList``), together with the lists inside it."""
    cls, value = found.cls, found.use.value
    if value is None or len(cls.writes(found.name)) - _augmented(found) != 1 or not _is_used_plainly(found):
        return None
    kinds = {"parameter"} if "Parameter" in container else {"module"}
    fills = cls.module.instances.fills(cls.scope).get(found.name, ())
    if not all(leaf.kind in kinds for leaf in found.made.leaves()):
        return None
    source = cls.module.source
    spelling = name_for(source, container, value)
    if spelling is None:
        return None
    name = container.rpartition(".")[2]
    if found.kind == "mapping":
        if any(made.kind == "sequence" for made in found.made.items) or _is_defaultdict(found, value):
            return None
        fit = _keys_are_names([value, *(node for _, node, _ in fills)], _counters(cls))
        make = None if fit is False else safe if fit else unsafe
        return make and make(f"Use nn.{name}", _wrap(found, value, spelling.spelling), *_import(spelling))
    nested: list[ast.expr] = []
    for holder in (value, *(node for _, node, _ in fills)):
        inner = list(_inner_lists(holder))
        if any(each is None for each in inner):
            return None
        nested += [each for each in inner if each is not None]
    if any(made.kind == "sequence" for made in found.made.items) and not nested:
        return None
    if nested and "Parameter" in container:
        return None
    parts: list[Edits | None] = [_wrap(found, each, spelling.spelling) for each in (value, *nested)]
    return safe(f"Use nn.{name}", *parts, *_import(spelling))


def _is_defaultdict(found: PlainContainer, value: ast.expr) -> bool:
    if not isinstance(value, ast.Call):
        return False
    return found.cls.module.qualname(value.func, found.use.scope) == "collections.defaultdict"


def _import(spelling: Name) -> tuple[Edits, ...]:
    return (spelling.edits,) if spelling.edits else ()


def _augmented(found: PlainContainer) -> int:
    return sum(isinstance(use.method.parents.get(use.node), ast.AugAssign) for use in found.cls.writes(found.name))


def _is_used_plainly(found: PlainContainer) -> bool:
    """Whether nothing is asked of the container that torch's one can't do."""
    methods = _LIST_METHODS if found.kind == "sequence" else _DICT_METHODS
    for read in found.cls.reads(found.name):
        parent = read.method.parents.get(read.node)
        if isinstance(parent, ast.Attribute) and parent.attr not in methods:
            return False
        if isinstance(parent, (ast.BinOp, ast.Compare)) and not _is_membership(parent):
            return False
        if isinstance(parent, ast.Call):
            name = found.cls.module.qualname(parent.func, read.scope)
            if name == "builtins.isinstance":
                return False
        if (
            isinstance(parent, ast.Subscript)
            and isinstance(parent.slice, ast.Slice)
            and isinstance(parent.ctx, ast.Store)
        ):
            return False
    return True


def _is_membership(node: ast.AST) -> bool:
    return isinstance(node, ast.Compare) and all(isinstance(op, (ast.In, ast.NotIn)) for op in node.ops)


def _inner_lists(holder: ast.AST) -> Iterator[ast.expr | None]:
    """The list displays inside a list, None for a nested list that is made elsewhere."""
    if isinstance(holder, ast.Call):
        method = holder.func.attr if isinstance(holder.func, ast.Attribute) else ""
        if method in ("append", "insert") and holder.args:
            holder = holder.args[-1]
            if isinstance(holder, (ast.List, ast.Tuple, ast.ListComp)):
                yield holder
                yield from _inner_lists(holder)
        return
    elements: Iterable[ast.expr] = ()
    if isinstance(holder, (ast.List, ast.Tuple)):
        elements = holder.elts
    elif isinstance(holder, (ast.ListComp, ast.GeneratorExp)):
        elements = [holder.elt]
    for element in elements:
        if isinstance(element, (ast.List, ast.Tuple, ast.ListComp)):
            yield element
            yield from _inner_lists(element)


def _counters(cls: ClassInfo) -> set[str]:
    """The names that count in a loop of the class, over ``range`` or as the first of ``enumerate``."""
    counters: set[str] = set()
    for loop in ast.walk(cls.node):
        if isinstance(loop, (ast.For, ast.comprehension)) and isinstance(loop.iter, ast.Call):
            function, target = loop.iter.func, loop.target
            if isinstance(function, ast.Name) and function.id == "enumerate" and isinstance(target, ast.Tuple):
                target = target.elts[0]
            elif not isinstance(function, ast.Name) or function.id != "range":
                continue
            if isinstance(target, ast.Name):
                counters.add(target.id)
    return counters


def _keys_are_names(holders: Sequence[ast.AST], counters: set[str]) -> bool | None:
    """Whether all keys are strings that nn.ModuleDict takes: no dots, no names that every module has."""
    container = module_class("torch.nn.ModuleDict")
    answers: set[bool | None] = set()
    for holder in holders:
        for key in _keys(holder):
            if isinstance(key, ast.Constant):
                text = key.value
                known = isinstance(text, str) and bool(text) and "." not in text
                answers.add(known and container is not None and not container.has_attribute(str(text)))
            elif isinstance(key, ast.JoinedStr):
                answers.add(not any(isinstance(v, ast.Constant) and "." in str(v.value) for v in key.values))
            else:
                answers.add(False if isinstance(key, ast.Name) and key.id in counters else None)
    return False if False in answers else None if None in answers else True


def _keys(holder: ast.AST) -> Iterator[ast.expr | None]:
    """The keys that a dict is made with or filled with; None for those that can't be seen."""
    if isinstance(holder, ast.Dict):
        yield from holder.keys
    elif isinstance(holder, ast.DictComp):
        yield holder.key
    elif isinstance(holder, ast.Assign):
        yield from (target.slice for target in holder.targets if isinstance(target, ast.Subscript))
    elif isinstance(holder, ast.Call):
        yield from (ast.Constant(keyword.arg) if keyword.arg else None for keyword in holder.keywords)
        for argument in holder.args:
            pairs = argument.elts if isinstance(argument, (ast.List, ast.Tuple)) else [argument]
            for pair in pairs:
                yield pair.elts[0] if isinstance(pair, ast.Tuple) and pair.elts else None
    else:
        yield None


def _wrap(found: PlainContainer, node: ast.expr, spelling: str) -> Edits | None:
    source = found.cls.module.source
    holds = [*getattr(node, "elts", ()), *getattr(node, "keys", ()), *getattr(node, "args", ())]
    if isinstance(node, (ast.List, ast.Tuple, ast.Dict, ast.Call)) and not holds and not getattr(node, "keywords", ()):
        return replace(source, node, f"{spelling}()")
    return surround(source, node, f"{spelling}(", ")")
