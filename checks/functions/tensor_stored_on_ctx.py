"""TL605 tensor-stored-on-ctx."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from torchlint.check import Applicability, Check, ClassInfo, Fix, FunctionClass, FunctionInfo, Report, Severity, on
from torchlint.source.edits import add_argument, delete_statement, replace, replace_statement, safe

from .common import Form, Tensors, forward_tensors, is_saved, returned, stores


class TensorStoredOnCtx(Check):
    """A tensor is kept as an attribute of an autograd.Function's ctx instead of with `ctx.save_for_backward`.

    It is an error for an input or output of forward, a warning for what is computed on the way.

    ## Why

    A saved tensor is checked: when it is changed in place before backward, torch raises. A tensor hung on ctx isn't:
    the gradient is computed from the changed values, silently. An output kept this way also makes a cycle with its own
    graph, which holds its memory until Python's cyclic garbage collector runs.

    ## Bad

        @staticmethod
        def forward(ctx, x):
            ctx.x = x
            return x * x

        @staticmethod
        def backward(ctx, grad):
            return 2 * ctx.x * grad

    ## Good

        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 2 * x * grad

    ## Known limits

    Reported where the value is known to be a tensor: by its annotation, by what is done with it, or because backward
    returns a gradient for it. Numbers, shapes, flags and callables belong on ctx.
    """

    code = "TL605"
    name = "tensor-stored-on-ctx"
    severity = Severity.ERROR
    fixable = Applicability.SAFE
    failures = ("T-H6",)
    mentions = ("Function",)

    @on(FunctionClass)
    def check(self, cls: ClassInfo, report: Report) -> None:
        """Look at what forward and setup_context keep on ctx."""
        form = Form(cls)
        there = forward_tensors(form)
        fixed = False
        for method, ctx in form.saving:
            if method.cls is not cls or there is None:
                continue
            ends = _Ends(form, method, there)
            for target, value in stores(method.scope):
                if not isinstance(target, ast.Attribute) or not isinstance(target.value, ast.Name) or value is None:
                    continue
                if target.value.id != ctx:
                    continue
                # Two fixes of one class would both write the save_for_backward: the second waits for the next round.
                fixed = self._kept(form, method, _Kept(target, value, ctx), ends, report, fix=not fixed) or fixed

    def _kept(self, form: Form, method: FunctionInfo, kept: _Kept, ends: _Ends, report: Report, *, fix: bool) -> bool:
        parts = kept.value.elts if isinstance(kept.value, (ast.Tuple, ast.List)) else [kept.value]
        found = next((end for part in parts if (end := ends.end(part)) is not None), None)
        if found is not None:
            what, name = found
            known = all(ends.end(part) is not None or ends.tensors.sure(part) for part in parts)
            repair = _repaired(form, method, kept) if fix and known else None
            report(
                kept.target,
                f"{kept.spelling} keeps the {what} {name} without torch's knowledge: if it is changed in place before "
                f"backward, the gradient is silently wrong{', and its graph leaks' if what == 'output' else ''}; "
                f"use {kept.ctx}.save_for_backward({name}).",
                fix=repair,
            )
            return repair is not None
        if any(ends.tensors.sure(part) for part in parts) and not _in_own_graph(method, kept.target):
            report(
                kept.target,
                f"{kept.spelling} keeps a tensor without save_for_backward: torch can't see it changed in place, nor "
                "free it after backward.",
                severity=Severity.WARNING,
            )
        return False


@dataclass(frozen=True)
class _Kept:
    """``ctx.x = value``."""

    target: ast.Attribute
    value: ast.expr
    ctx: str

    @property
    def spelling(self) -> str:
        return f"{self.ctx}.{self.target.attr}"


class _Ends:
    """Which expressions of forward or setup_context are inputs or outputs of forward, and tensors."""

    def __init__(self, form: Form, method: FunctionInfo, there: Tensors) -> None:
        self.forward = method is form.forward
        self.tensors = there if self.forward else Tensors(method.module, method.scope, set())
        self.inputs = [parameter.arg if parameter.arg in there.known else None for parameter in form.inputs]
        self.parameters = [parameter.arg for parameter in method.parameters]
        assert form.forward is not None
        values = returned(form.forward)
        tuples = [value.elts for value in values if isinstance(value, ast.Tuple)]
        self.single = not tuples and bool(values)
        items = [item for items in tuples for item in items] if tuples else values
        self.outputs = {i.id for i in items if isinstance(i, ast.Name) and (self.single or there.sure(i))}
        self.tensor_outputs = [all(there.sure(item) for item in place) for place in zip(*tuples, strict=False)]

    def end(self, node: ast.expr) -> tuple[str, str] | None:
        """``input`` or ``output``, and how to call it; None for anything else."""
        if self.forward:
            if isinstance(node, ast.Name):
                if node.id in self.outputs:
                    return "output", node.id
                if node.id in self.inputs and not self.tensors.rebound(node.id):
                    return "input", node.id
            return None
        if isinstance(node, ast.Name):
            values = self.tensors.values(node.id)
            if len(values) == 1 and values[0] is not None:
                found = self._piece(values[0])
                return (found, node.id) if found else None
            if self.parameters[2:3] == [node.id] and self.single and not values:
                return "output", node.id
        found = self._piece(node)
        return (found, ast.unparse(node)) if found else None

    def _piece(self, node: ast.expr) -> str | None:
        """Whether this is ``inputs[0]`` or ``output[0]`` of setup_context, and a tensor."""
        if not (
            isinstance(node, ast.Subscript)
            and isinstance(node.value, ast.Name)
            and isinstance(node.slice, ast.Constant)
            and isinstance(node.slice.value, int)
        ):
            return None
        for what, name, tensors in (
            ("input", self.parameters[1:2], self.inputs),
            ("output", self.parameters[2:3], self.tensor_outputs),
        ):
            if name == [node.value.id] and node.slice.value < len(tensors) and tensors[node.slice.value]:
                return what
        return None


def _in_own_graph(method: FunctionInfo, node: ast.AST) -> bool:
    """Whether forward builds a graph of its own here, to go back through it in backward."""
    block = method.scope.enclosing(node, ast.With)
    while isinstance(block, ast.With):
        for item in block.items:
            entered = item.context_expr
            called = entered.func if isinstance(entered, ast.Call) else entered
            if method.module.qualname(called, method.scope) in ("torch.enable_grad", "torch.set_grad_enabled"):
                return True
        block = method.scope.enclosing(block, ast.With)
    return False


def _repaired(form: Form, method: FunctionInfo, kept: _Kept) -> Fix | None:
    """Save the tensor, and take it out of saved_tensors where backward read the attribute."""
    backward, source, scope = form.backward, method.module.source, method.scope
    statement = next((s for s in scope.of_type(ast.Assign) if s.targets == [kept.target]), None)  # type: ignore[attr-defined]
    reads = _reads(form, kept.target.attr)
    if backward is None or backward.cls is not method.cls or reads is None or not isinstance(statement, ast.Assign):
        return None
    saves = [call for call, _ in scope.all_calls("save_for_backward")]
    unpackings = [node for node in backward.scope.of_type(ast.Assign) if is_saved(node.value)]  # type: ignore[attr-defined]
    spelling = f"{form.ctx(backward)}.saved_tensors"
    several = kept.value.elts if isinstance(kept.value, (ast.Tuple, ast.List)) else None
    text = ", ".join(map(source.segment, several or [kept.value]))
    if not saves and not unpackings:
        taken = []
        for read in reads:
            whole = backward.scope.statement(read)
            if several is not None:
                taken.append(replace(source, read, spelling))
            elif isinstance(whole, ast.Assign) and whole.value is read and isinstance(whole.targets[0], ast.Name):
                taken.append(replace(source, whole.targets[0], f"({whole.targets[0].id},)"))
                taken.append(replace(source, read, spelling))
            else:
                taken.append(replace(source, read, f"{spelling}[0]"))
        saved = replace_statement(source, statement, f"{kept.ctx}.save_for_backward({text})")
        return safe("Use save_for_backward", saved, *taken)
    if len(saves) != 1 or len(unpackings) != 1 or not isinstance(kept.value, ast.Name):
        return None
    return _joined(method, backward, kept.value.id, statement, saves[0], unpackings[0], reads)  # type: ignore[arg-type]


def _joined(
    method: FunctionInfo,
    backward: FunctionInfo,
    name: str,
    statement: ast.Assign,
    save: ast.Call,
    unpacking: ast.Assign,
    reads: list[ast.Attribute],
) -> Fix | None:
    """Save the tensor together with those that are saved already."""
    source = method.module.source
    target = unpacking.targets[0]
    starred = any(isinstance(argument, ast.Starred) for argument in save.args)
    bound_late = any(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store) and node.lineno > save.lineno
        for node in ast.walk(method.node)
    )
    same_suite = method.scope.parents[method.scope.statement(save)] is method.scope.parents[statement]
    if (
        starred
        or bound_late
        or not same_suite
        or not isinstance(target, ast.Tuple)
        or len(target.elts) != len(save.args)
    ):
        return None
    copies = [backward.scope.statement(read) for read in reads]
    plain = [s for s, read in zip(copies, reads, strict=True) if isinstance(s, ast.Assign) and s.value is read]
    if name in backward.scope.stores:
        if len(plain) != len(reads) or any(ast.unparse(s.targets[0]) != name for s in plain):
            return None
        if (
            sum(
                isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)
                for n in ast.walk(backward.node)
            )
            > 1
        ):
            return None
        taken = [delete_statement(source, s) for s in plain]
    else:
        taken = [replace(source, read, name) for read in reads]
    if any(read.lineno < unpacking.lineno for read in reads):
        return None
    listed = ", ".join([*(source.segment(item) for item in target.elts), name])
    return safe(
        "Use save_for_backward",
        delete_statement(source, statement),
        add_argument(source, save, name),
        replace(source, target, listed),
        *taken,
    )


def _reads(form: Form, attribute: str) -> list[ast.Attribute] | None:
    """Where backward reads the attribute; None where it is used in another way or place too."""
    backward = form.backward
    if backward is None:
        return None
    inside = set(ast.walk(backward.node))
    ctx = form.ctx(backward)
    found: list[ast.Attribute] = []
    written = 0
    for node in ast.walk(form.cls.node):
        if isinstance(node, ast.Attribute) and node.attr == attribute and isinstance(node.value, ast.Name):
            if isinstance(node.ctx, ast.Store):
                written += 1
            elif node in inside and node.value.id == ctx:
                found.append(node)
            elif node.value.id in {form.ctx(method) for method in form.own}:
                return None
    return found if written == 1 else None
