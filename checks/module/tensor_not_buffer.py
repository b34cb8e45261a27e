"""TL108 tensor-not-buffer."""

from __future__ import annotations

import ast

from torchlint.check import (
    Applicability,
    AttributeUse,
    Check,
    ClassInfo,
    Edit,
    Fix,
    FunctionInfo,
    Module,
    ModuleClass,
    Report,
    Scope,
    Severity,
    last_name,
    on,
    operations,
)
from torchlint.source.edits import insert_text, safe

_MOVES = frozenset({"to", "type_as", "cuda", "cpu", "new_tensor", "xpu", "to_device"})
_ASKED = frozenset(
    {
        *("shape", "size", "dim", "ndim", "numel", "item", "tolist", "numpy", "device", "dtype", "is_cuda", "stride"),
        *("requires_grad", "nelement", "element_size", "ndimension", "is_contiguous"),
    }
)
_NUMBERS = frozenset({"int", "float", "bool", "str"})
_OWN_MOVES = ("_apply", "to", "cuda", "cpu")


class TensorNotBuffer(Check):
    """A constant tensor is a plain attribute: `.to(device)` leaves it behind, and the checkpoint doesn't have it.

    ## Why

    `nn.Module` moves parameters and buffers. A tensor that is merely assigned to self stays on the CPU when the model
    goes to the GPU, and `forward` raises "Expected all tensors to be on the same device".

    ## Bad

        self.table = torch.arange(256).float()

        def forward(self, x):
            return x + self.table

    ## Good

        self.register_buffer("table", torch.arange(256).float(), persistent=False)

        def forward(self, x):
            return x + self.table

    With `persistent=False` the buffer moves but stays out of the `state_dict`, which suits what `__init__` can compute
    again; leave it out for what must be saved.

    ## Known limits

    A tensor that is moved where it is used, made on a stated device, assigned anew elsewhere, a single number, or only
    asked for its shape or used as an index is left alone.
    """

    code = "TL108"
    name = "tensor-not-buffer"
    severity = Severity.WARNING
    fixable = Applicability.SAFE
    failures = ("L-11", "R-02")
    mentions = ("def forward",)

    @on(ModuleClass)
    def check(self, cls: ClassInfo, report: Report) -> None:
        candidates = [use for name in cls.written_attributes if (use := _constant_tensor(cls, name)) is not None]
        forward = cls.method("forward") if candidates else None
        if forward is None or any(cls.method(name) is not None for name in _OWN_MOVES):
            return
        reached = {id(scope) for method in cls.self_calls(forward) for scope in method.scope.walk()}
        for use in candidates:
            name = use.node.attr
            reads = [read for read in cls.reads(name) if id(read.scope) in reached]
            if any(_is_computed_with(read) for read in reads) and not any(_is_moved(read) for read in reads):
                report(
                    use.node,
                    f"self.{name} is a plain tensor that forward computes with: .to(device) will leave it behind; use "
                    f'self.register_buffer("{name}", ...).',
                    fix=_register(cls, use),
                )


# ---------------------------------------------------------------------------------------------------- constants


def _constant_tensor(cls: ClassInfo, name: str) -> AttributeUse | None:
    """Where ``__init__`` sets an attribute to a tensor that it makes, if a method reads it and nothing else sets it."""
    if all(scope.name == "__init__" for _, scope in cls.scope.self_reads.get(name, ())):
        return None
    uses = cls.writes(name)
    plain = [use for use in uses if use.value is not None and not _is_none(use.value)]
    if len(plain) != 1 or name in cls.methods or name in cls.class_attributes:
        return None
    use = plain[0]
    if use.value is None or not _may_be_tensor(use.value, use.scope, cls.module):
        return None
    if any(each.method.name != "__init__" or each.scope is not each.method for each in uses):
        return None
    if not _is_made_here(use.value, use.scope, cls.module):
        return None
    if any(name in base.written_attributes or name in base.methods for base in cls.ancestors(name)):
        return None
    if any(_is_changed_in_place(read) for read in cls.reads(name)):
        return None
    if any(made.kind != "tensor" for made in cls.module.instances.makes(use.value, use.scope)):
        return None
    for call, _ in cls.module.instances.registrations(cls):
        if any(isinstance(a, ast.Constant) and a.value == name for a in call.args):
            return None
    return use


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _may_be_tensor(node: ast.expr, scope: Scope, module: Module) -> bool:
    """Whether an expression could be a tensor made here, by its looks."""
    if isinstance(node, ast.Call):
        func = node.func
        name = last_name(func)
        return not name[:1].isupper() or name.endswith("Tensor")
    if isinstance(node, ast.Name):
        return any(b.how == "value" for b in module.instances.bindings(scope).get(node.id, ()))
    return isinstance(node, (ast.BinOp, ast.Subscript, ast.UnaryOp, ast.Compare))


class _Origins:
    """The calls that make the tensors in an expression; ``handed`` is set where one comes from elsewhere."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.factories: list[ast.Call] = []
        self.numbers: list[ast.Call] = []
        self.handed = False
        self.parameters: list[tuple[ast.Name, Scope]] = []  # that may be tensors
        self._seen: set[ast.AST] = set()

    def collect(self, node: ast.expr, scope: Scope, depth: int = 24) -> None:
        """Look for the makers behind an expression, through locals, methods and functions of the project."""
        if depth <= 0 or node in self._seen:
            return
        self._seen.add(node)
        if isinstance(node, ast.Call):
            self._call(node, scope, depth - 1)
        elif isinstance(node, ast.Name):
            self._name(node, scope, depth - 1)
        elif isinstance(node, ast.BinOp):
            self.collect(node.left, scope, depth - 1)
            self.collect(node.right, scope, depth - 1)
        elif isinstance(node, (ast.Subscript, ast.Attribute)):
            self.collect(node.value, scope, depth - 1)
        elif isinstance(node, ast.UnaryOp):
            self.collect(node.operand, scope, depth - 1)
        elif isinstance(node, (ast.List, ast.Tuple)):
            for element in node.elts:
                self.collect(element, scope, depth - 1)

    def takes_tensors(self) -> bool:
        """Whether a parameter that goes into the expression is a tensor."""
        instances = self.module.instances
        return any(made.kind == "tensor" for node, scope in self.parameters for made in instances.makes(node, scope))

    def _call(self, node: ast.Call, scope: Scope, depth: int) -> None:
        placed = any(k.arg in ("device", None) for k in node.keywords)
        dotted = self.module.dotted(node.func, scope)
        if dotted is not None and not dotted.startswith("torch.") and dotted.rpartition(".")[2][:1].isupper():
            return  # a class, which makes no tensor
        name = self.module.qualname(node.func, scope)
        operation = operations.function(name) if name is not None else None
        if name is not None and name.startswith("torch.") and name.endswith("Tensor") and name.count(".") == 1:
            self.factories.append(node)
        elif operation is not None and operation.factory and not operation.short_name.endswith("_like"):
            self.handed = self.handed or placed or operation.short_name in ("as_tensor", "asarray")
            (self.numbers if self._is_number(node, scope) else self.factories).append(node)
        elif name is not None and name.startswith("torch."):
            self.handed = self.handed or placed
            for argument in node.args:
                self.collect(argument, scope, depth)
        elif isinstance(node.func, ast.Attribute) and self._method(node.func, scope, depth):
            return
        else:
            found = self.module.definition(node.func, scope)
            if isinstance(found, FunctionInfo):
                self._function(found, placed, depth)

    def _is_number(self, call: ast.Call, scope: Scope) -> bool:
        """Whether a factory makes a tensor without dimensions, as far as can be told: any device may use it."""
        name = last_name(call.func)
        if not call.args:
            return False
        first = call.args[0]
        if name in ("tensor", "scalar_tensor"):
            return not any(made.kind == "sequence" for made in self.module.instances.makes(first, scope))
        return name in ("zeros", "ones", "empty", "randn", "rand") and isinstance(first, ast.Tuple) and not first.elts

    def _method(self, func: ast.Attribute, scope: Scope, depth: int) -> bool:
        cls = self.module.instances.instance_of(func.value, scope)
        method = cls.method(func.attr) if cls is not None else None
        if method is not None:
            self._function(method, False, depth)
            return True
        if self.module.dotted(func, scope) is not None:
            return False
        self.handed = self.handed or func.attr in _MOVES
        self.collect(func.value, scope, depth)
        return True

    def _function(self, function: FunctionInfo, placed: bool, depth: int) -> None:
        if placed or any(argument.arg == "device" for argument in function.parameters):
            self.handed = True
            return
        inner = _Origins(function.module)
        for node in function.scope.of_type(ast.Return):
            if node.value is not None:  # type: ignore[attr-defined]
                inner.collect(node.value, function.scope, depth)  # type: ignore[attr-defined]
        self.factories += inner.factories
        self.numbers += inner.numbers
        self.handed = self.handed or inner.handed
        if inner.factories and not self.handed:
            self.handed = inner.takes_tensors()

    def _name(self, node: ast.Name, scope: Scope, depth: int) -> None:
        if isinstance(scope.node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            arguments = scope.node.args
            parameters = {a.arg: a for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
            annotation = parameters[node.id].annotation if node.id in parameters else None
            if annotation is not None and not (isinstance(annotation, ast.Name) and annotation.id in _NUMBERS):
                self.parameters.append((node, scope))
        for value in self.module.instances.values_of(node, scope):
            if value is not node:
                self.collect(value, scope, depth)


def _is_made_here(node: ast.expr, scope: Scope, module: Module) -> bool:
    """Whether a tensor is a constant: made by torch's factories, on no stated device, with more than one number."""
    origins = _Origins(module)
    origins.collect(node, scope)
    return bool(origins.factories) and not origins.handed and not origins.takes_tensors()


# ---------------------------------------------------------------------------------------------------- uses


def _is_changed_in_place(use: AttributeUse) -> bool:
    """Whether a method other than ``__init__`` writes into the tensor: it is state, no constant."""
    if use.method.name == "__init__":
        return False
    parents = use.method.parents
    node: ast.AST = use.node
    parent = parents.get(node)
    while isinstance(parent, (ast.Subscript, ast.Attribute)):
        if isinstance(parent, ast.Attribute) and parent.attr.endswith("_") and not parent.attr.endswith("__"):
            return True
        if not isinstance(parent.ctx, ast.Load):
            return True
        node, parent = parent, parents.get(parent)
    return isinstance(parent, ast.AugAssign) and parent.target is node


def _top(use: AttributeUse) -> tuple[ast.AST, ast.AST | None]:
    """The end of the chain of subscripts and methods that a read begins, and what that end is part of."""
    parents = use.method.parents
    node: ast.AST = use.node
    while True:
        parent = parents.get(node)
        if isinstance(parent, ast.Attribute) and parent.attr not in _ASKED | _MOVES:
            call = parents.get(parent)
            if not isinstance(call, ast.Call) or call.func is not parent:
                return node, parent
            node = call
        elif parent is not None and _passes_on(parent, node):
            node = parent
        else:
            return node, parent


def _passes_on(parent: ast.AST, node: ast.AST) -> bool:
    """Whether an operation has this tensor and else only numbers."""
    if isinstance(parent, ast.Subscript):
        return parent.value is node and not _is_one_item(parent)
    if isinstance(parent, ast.BinOp):
        return _is_with_constant(parent)
    if isinstance(parent, ast.Call):
        return node is not parent.func and _is_its_only_tensor(parent)
    return isinstance(parent, (ast.UnaryOp, ast.IfExp))


def _is_one_item(node: ast.Subscript) -> bool:
    return isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, int)


def _is_with_constant(node: ast.BinOp) -> bool:
    return isinstance(node.left, ast.Constant) or isinstance(node.right, ast.Constant)


def _is_its_only_tensor(call: ast.Call) -> bool:
    """Whether one of torch's functions is given this tensor and else only constants: ``torch.sin(self.table)``."""
    others = [a for a in call.args if not isinstance(a, (ast.Constant, ast.UnaryOp))]
    if len(others) != 1 or call.keywords or not isinstance(call.func, ast.Attribute):
        return False
    root: ast.expr = call.func
    while isinstance(root, ast.Attribute):
        root = root.value
    return isinstance(root, ast.Name) and root.id in ("torch", "F", "th", "functional")


def _is_moved(use: AttributeUse) -> bool:
    """Whether a read moves the tensor to where it is needed."""
    node, parent = _top(use)
    if isinstance(parent, ast.Attribute):
        return parent.attr in _MOVES
    if isinstance(parent, ast.keyword) or (isinstance(parent, ast.Call) and node is not parent.func):
        call = parent if isinstance(parent, ast.Call) else use.method.parents.get(parent)
        if isinstance(call, ast.Call):
            last = call.func.attr if isinstance(call.func, ast.Attribute) else ""
            named = any(keyword.arg == "device" for keyword in call.keywords)
            return named or last in _MOVES or not _is_known_computation(call, use)
    local = _assigned_local(node, parent)
    if local is not None:
        return any(
            isinstance(n, ast.Attribute) and n.attr in _MOVES and isinstance(n.value, ast.Name) and n.value.id == local
            for n in ast.walk(use.method.node)
        ) or _is_handed_on(local, use)
    return False


def _is_handed_on(local: str, use: AttributeUse) -> bool:
    calls = (n for n in ast.walk(use.method.node) if isinstance(n, ast.Call))
    given = (c for c in calls if any(isinstance(a, ast.Name) and a.id == local for a in c.args))
    return any(not _is_known_computation(call, use) for call in given)


def _assigned_local(node: ast.AST, parent: ast.AST | None) -> str | None:
    if isinstance(parent, ast.Assign) and parent.value is node and isinstance(parent.targets[0], ast.Name):
        return parent.targets[0].id
    return None


def _is_known_computation(call: ast.Call, use: AttributeUse) -> bool:
    """Whether a call is one of torch's operations or of a layer on self, which compute with what they are given."""
    func = call.func
    if isinstance(func, ast.Name):
        return False
    root: ast.expr = func
    while isinstance(root, (ast.Attribute, ast.Subscript, ast.Call)):
        root = root.func if isinstance(root, ast.Call) else root.value
    if not isinstance(root, ast.Name):
        return False
    if root.id == use.scope.self_name:
        return isinstance(func, ast.Attribute) and not isinstance(func.value, ast.Name)
    return True


def _is_computed_with(use: AttributeUse) -> bool:
    """Whether a read takes part in a computation with other tensors."""
    node, parent = _top(use)
    if isinstance(parent, (ast.BinOp, ast.AugAssign)):
        return True
    if isinstance(parent, ast.Compare):
        return not any(isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for op in parent.ops)
    if isinstance(parent, ast.Call) and node is not parent.func:
        return _is_torch_operation(parent, use)
    if isinstance(parent, (ast.List, ast.Tuple)):
        call = use.method.parents.get(parent)
        return isinstance(call, ast.Call) and _is_torch_operation(call, use)
    local = _assigned_local(node, parent)
    return local is not None and _is_local_computed_with(local, use)


def _is_local_computed_with(local: str, use: AttributeUse) -> bool:
    for node in ast.walk(use.method.node):
        sides: list[ast.expr] = []
        if isinstance(node, ast.BinOp):
            sides = [node.left, node.right]
        elif isinstance(node, ast.Call) and _is_torch_operation(node, use):
            sides = list(node.args)
        for side in sides:
            while isinstance(side, ast.UnaryOp) or (isinstance(side, ast.Subscript) and not _is_one_item(side)):
                side = side.value if isinstance(side, ast.Subscript) else side.operand
            if isinstance(side, ast.Name) and side.id == local:
                return True
    return False


def _is_torch_operation(call: ast.Call, use: AttributeUse) -> bool:
    """Whether a call computes on its arguments where they are: torch's functions, methods of other tensors."""
    func = call.func
    if not isinstance(func, ast.Attribute):
        return False
    root: ast.expr = func
    while isinstance(root, ast.Attribute):
        root = root.value
    if isinstance(root, ast.Name) and root.id == use.scope.self_name:
        return False
    return func.attr not in _MOVES | _ASKED


# ---------------------------------------------------------------------------------------------------- the fix


def _register(cls: ClassInfo, use: AttributeUse) -> Fix | None:
    source = cls.module.source
    statement = use.statement
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1 or len(cls.writes(use.node.attr)) != 1:
        return None
    owner = source.segment(use.node.value)
    start, value = source.span(statement)[0], source.span(statement.value)
    between = source.span(use.node)[1]
    if value[1] != source.span(statement)[1] or between.row != value[0].row or "\n" in owner:
        return None
    if "(" in source.lines[between.row - 1][between.column - 1 : value[0].column - 1]:
        return None
    opening = (Edit(start, value[0], f'{owner}.register_buffer("{use.node.attr}", '),)
    return safe("Register it as a buffer", opening, insert_text(value[1], ", persistent=False)"))
