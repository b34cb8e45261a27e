"""TL607 backward-breaks-graph."""

from __future__ import annotations

import ast

from torchlint.check import Check, ClassInfo, FunctionClass, FunctionInfo, Report, Severity, on, operations

from .common import Form, is_saved, stores

_LEAVING = frozenset({"item", "numpy", "tolist"})
_METADATA = frozenset({"shape", "dtype", "device", "size", "dim", "ndim", "numel", "requires_grad", "layout", "type"})
_REBUILDING = frozenset({"torch.tensor", "torch.from_numpy", "torch.as_tensor"})
_ENABLING = frozenset({"torch.enable_grad", "torch.set_grad_enabled"})
_NESTED = frozenset({"torch.autograd.grad", "torch.autograd.backward"})


class BackwardBreaksGraph(Check):
    """The backward of an autograd.Function leaves torch, or asks for a nested gradient where gradients are off.

    The gradient that it returns has no graph: a second derivative is wrong or raises. A nested gradient raises at once.

    ## Why

    With `create_graph=True` (gradient penalties, `gradgradcheck`, meta-learning) torch differentiates what backward
    does, and sees only what is computed with torch's own operations. `.item()`, `.numpy()`, `.data` and `torch.tensor`
    cut that. Without `create_graph` backward runs with gradients off: what is computed in it has no graph for
    `torch.autograd.grad` to go back through.

    ## Bad

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            x = x.detach().requires_grad_()
            out = ctx.layer(x)
            return torch.autograd.grad(out, x, grad)

    ## Good

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            with torch.enable_grad():
                x = x.detach().requires_grad_()
                out = ctx.layer(x)
            return torch.autograd.grad(out, x, grad)

    A backward that isn't meant to be differentiated says so, and raises where it is tried:

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, grad):
            ...

    ## Known limits

    Only values that come from the incoming gradients, or from saved inputs and outputs that have a gradient
    themselves, count; integers such as indices and lengths may leave torch. Kernels written in other languages aren't
    looked into.
    """

    code = "TL607"
    name = "backward-breaks-graph"
    severity = Severity.WARNING
    failures = ("T-A2",)
    mentions = ("Function",)

    @on(FunctionClass)
    def check(self, cls: ClassInfo, report: Report) -> None:
        """Look into the class's own backward."""
        form = Form(cls)
        backward = form.backward
        if backward is None or backward.cls is not cls:
            return
        once = any(name is not None and name.endswith(".once_differentiable") for name in backward.decorators)
        if not once:
            self._leaves(form, backward, report)
        if not any(name in _ENABLING for name in backward.decorators):
            self._nested(backward, report)

    def _leaves(self, form: Form, backward: FunctionInfo, report: Report) -> None:
        followed = _Followed(form, backward)
        for node in _in_order(backward.node):
            text = ""
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                if node.attr == "data" and followed.holds(node.value):
                    text = ".data"
                elif node.attr in _LEAVING and followed.holds(node.value):
                    text = f".{node.attr}()"
            elif isinstance(node, ast.Call) and any(followed.holds(argument) for argument in node.args):
                name = backward.module.qualname(node.func, backward.scope)
                text = name if name in _REBUILDING else ""
            if text:
                report(
                    node,
                    f"backward leaves torch at {text}: its gradient has no graph, so a second derivative is wrong or "
                    "raises; use torch operations, or mark backward with @once_differentiable.",
                )
                return

    def _nested(self, backward: FunctionInfo, report: Report) -> None:
        for name in ("grad", "backward"):
            for call in backward.scope.calls.get(name, ()):
                outputs = self._differentiated(backward, call)
                if outputs is None or _enabled(backward, call) or not self._made_without_graph(backward, outputs):
                    continue
                text = backward.module.source.segment(outputs)
                report(
                    call,
                    f"backward runs with gradients off: {text} has no graph here and {name} will raise; "
                    "compute it inside `with torch.enable_grad():`.",
                )

    @staticmethod
    def _differentiated(backward: FunctionInfo, call: ast.Call) -> ast.expr | None:
        """What a nested call goes back from."""
        qualname = backward.module.qualname(call.func, backward.scope)
        if qualname in _NESTED:
            named = (k.value for k in call.keywords if k.arg in ("outputs", "tensors"))
            return call.args[0] if call.args else next(named, None)
        func = call.func
        if qualname is None and isinstance(func, ast.Attribute) and func.attr == "backward":
            return func.value if isinstance(func.value, ast.Name) else None
        return None

    def _made_without_graph(self, backward: FunctionInfo, outputs: ast.expr) -> bool:
        """Whether every value of ``outputs`` is computed in backward itself, outside enable_grad."""
        if isinstance(outputs, (ast.Tuple, ast.List)):
            return bool(outputs.elts) and all(self._made_without_graph(backward, item) for item in outputs.elts)
        if isinstance(outputs, ast.Call) and isinstance(outputs.func, ast.Attribute):
            receiver = outputs.func.value
            if operations.tensor_method(outputs.func.attr) and self._made_without_graph(backward, receiver):
                return True
        if isinstance(outputs, (ast.Call, ast.BinOp)):
            return _computes(backward, outputs) and not _reads_ctx(backward, outputs)
        if not isinstance(outputs, ast.Name):
            return False
        made = [(t, v) for t, v in stores(backward.scope) if isinstance(t, ast.Name) and t.id == outputs.id]
        return bool(made) and all(
            value is not None
            and _computes(backward, value)
            and not _enabled(backward, target)
            and not _reads_ctx(backward, value)
            for target, value in made
        )


def _computes(backward: FunctionInfo, value: ast.expr) -> bool:
    """Whether a value is computed here, by nothing that turns gradients on for itself."""
    while isinstance(value, ast.Subscript):
        value = value.value
    if not isinstance(value, ast.Call):
        return isinstance(value, ast.BinOp)
    func = value.func
    called = backward.module.definition(func, backward.scope)
    if isinstance(called, FunctionInfo):
        return not any(name in called.scope.calls for name in ("enable_grad", "set_grad_enabled"))
    parameters = {parameter.arg for parameter in backward.parameters}
    if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id in parameters:
        return True
    return operations.function(backward.module.qualname(func, backward.scope) or "") is not None


def _in_order(node: ast.AST) -> list[ast.expr]:
    """The expressions in a node as they stand in the file."""
    found = [part for part in ast.walk(node) if isinstance(part, ast.expr)]
    return sorted(found, key=lambda part: (part.lineno, part.col_offset))


def _reads_ctx(backward: FunctionInfo, value: ast.expr) -> bool:
    """Whether tensors may come from ctx itself, with the graph they were kept with: a called ctx attribute aside."""
    parameters = backward.parameters
    ctx = parameters[0].arg if parameters else None
    called = {call.func for call in ast.walk(value) if isinstance(call, ast.Call)}
    return any(
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == ctx
        and node not in called
        for node in ast.walk(value)
    )


def _enabled(backward: FunctionInfo, node: ast.AST) -> bool:
    """Whether a node stands in a block, or a function, that turns gradients on (or that might)."""
    parents = backward.scope.parents
    while node is not backward.node:
        if isinstance(node, (ast.With, ast.AsyncWith)):
            for item in node.items:
                call = item.context_expr
                name = backward.module.qualname(call.func if isinstance(call, ast.Call) else call, backward.scope)
                if name is None or not name.startswith("torch.") or name in _ENABLING:
                    return True
        elif isinstance(node, (ast.FunctionDef, ast.Lambda)):
            return True
        if node not in parents:  # made up for an augmented assignment
            return False
        node = parents[node]
    return False


class _Followed:
    """The variables of backward that hold gradients, or saved tensors that themselves have a gradient."""

    def __init__(self, form: Form, backward: FunctionInfo) -> None:
        self.names = {parameter.arg for parameter in form.gradients}
        vararg = backward.node.args.vararg
        if vararg is not None:
            self.names.add(vararg.arg)
        saved = _saved_with_gradient(form)
        bound = [(t.id, v) for t, v in stores(backward.scope) if isinstance(t, ast.Name) and v is not None]
        for name, value in bound:
            if isinstance(value, ast.Subscript) and is_saved(value.value) and isinstance(value.slice, ast.Constant):
                index = value.slice.value
                if isinstance(index, int) and index in saved:
                    self.names.add(name)
        for _ in range(3):
            before = len(self.names)
            self.names |= {name for name, value in bound if self.holds(value)}
            if len(self.names) == before:
                break

    def holds(self, node: ast.expr) -> bool:
        """Whether a followed variable's numbers go into an expression."""
        pending: list[ast.AST] = [node]
        while pending:
            node = pending.pop()  # type: ignore[assignment]
            if isinstance(node, ast.Name) and node.id in self.names:
                return True
            if isinstance(node, ast.Attribute) and node.attr in _METADATA:
                continue
            if isinstance(node, ast.Compare):
                continue
            pending.extend(ast.iter_child_nodes(node))
        return False


def _saved_with_gradient(form: Form) -> set[int]:
    """Positions among the saved tensors that hold an input with a gradient."""
    wanted = {form.inputs[i].arg for i in form.differentiated if i < len(form.inputs)}
    if len(form.inputs) == 1:
        wanted = {form.inputs[0].arg}
    found: set[int] = set()
    for method, _ in form.saving:
        calls = [call for call, _ in method.scope.all_calls("save_for_backward")]
        if len(calls) != 1:
            continue
        for index, argument in enumerate(calls[0].args):
            if isinstance(argument, ast.Starred):
                break
            if isinstance(argument, ast.Name) and argument.id in wanted:
                found.add(index)
    return found
