"""The fixes of the rules on autograd that take more than a line."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from torchlint.check import (
    Backward,
    Call,
    Event,
    Fix,
    InferenceTensorSaved,
    InPlaceChange,
    Module,
    ModuleCall,
    Object,
    Sequence,
    Tensor,
    TensorOp,
)
from torchlint.source.edits import (
    Edits,
    append,
    belongs,
    insert_statement_after,
    insert_statement_before,
    insert_text,
    move_statement,
    name_for,
    remove_argument,
    rename_attribute,
    replace,
    replace_callee,
    replace_statement,
    safe,
    statement_of,
    surround,
    unsafe,
    wrap_statements,
)

OPERATORS = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.MatMult: "@",
    ast.Pow: "**",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
}


# ---------------------------------------------------------------------------------------------------- TL202


def detached_between_steps(call: ModuleCall, backward: Backward, carried: list[Tensor]) -> Fix | None:
    """Cut the state off at the end of each step: ``state = state.detach()``."""
    loop = next((block.node for block in backward.block.enclosing("again")), None)
    if (
        not isinstance(loop, (ast.For, ast.While))
        or call.frame is not backward.frame
        or not isinstance(call.node, ast.Call)
    ):
        return None
    lines = list(dict.fromkeys(_cut_off(call, carried)))
    if not lines:
        return None
    names = {line.partition(" = ")[0] for line in lines}
    last = max(
        (
            index
            for index, statement in enumerate(loop.body)
            if any(node is backward.node or _stores(node, names) or _steps(node) for node in ast.walk(statement))
        ),
        default=None,
    )
    if last is None:
        return None
    text = "\n".join(lines)
    return safe(text.replace("\n", "; "), insert_statement_after(call.module.source, loop.body[last], text))


def _stores(node: ast.AST, names: set[str]) -> bool:
    return isinstance(getattr(node, "ctx", None), ast.Store) and ast.unparse(node) in names


def _steps(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "step"


def _cut_off(call: ModuleCall, carried: list[Tensor]) -> Iterator[str]:
    assert isinstance(call.node, ast.Call)
    given = [*zip(call.node.args, call.arguments, strict=False)]
    given += [(k.value, call.keywords[k.arg]) for k in call.node.keywords if k.arg in call.keywords]
    for node, value in given:
        parts = node.elts if isinstance(node, ast.Tuple) else [node]
        if not all(isinstance(part, (ast.Name, ast.Attribute)) for part in parts):
            continue
        for part in parts:
            text = ast.unparse(part)
            if value in carried or isinstance(node, ast.Tuple):
                yield f"{text} = {text}.detach()"
            elif isinstance(value, Sequence) and value.kind in ("tuple", "list"):
                brackets = ("tuple(", ")") if value.kind == "tuple" else ("[", "]")
                yield f"{text} = {brackets[0]}tensor.detach() for tensor in {text}{brackets[1]}"


# ---------------------------------------------------------------------------------------------------- TL205


def detached_for_numpy(call: Call) -> Fix | None:
    """Cut off what is converted: ``x.detach().numpy()``, ``np.array([tensor.detach() for tensor in losses])``."""
    node, source = call.node, call.module.source
    if not isinstance(node, ast.Call):
        return None
    if call.receiver is not None:
        if not isinstance(node.func, ast.Attribute):
            return None
        return safe(".detach()", append(source, node.func.value, ".detach()"))
    parts: list[Edits | None] = []
    for argument, value in zip(node.args, call.arguments, strict=False):
        if isinstance(value, Tensor) and value in call.attached and not value.many:
            parts.append(append(source, argument, ".detach()"))
        elif isinstance(value, Sequence) and isinstance(argument, (ast.Name, ast.Attribute)):
            parts.append(surround(source, argument, "[tensor.detach() for tensor in ", "]"))
    return safe(".detach()", *parts)


# ---------------------------------------------------------------------------------------------------- TL206


def leaf_made_last(module: Module, outer: ast.AST, leaf: ast.AST) -> Fix | None:
    """Compute first, and ask for gradients of the result."""
    if (
        not isinstance(outer, ast.expr)
        or not isinstance(leaf, ast.Call)
        or outer is leaf
        or not belongs(module.source, outer)
    ):
        return None
    source = module.source
    for keyword in leaf.keywords:
        if keyword.arg == "requires_grad":
            asked = append(source, outer, ".requires_grad_()")
            return safe("Ask for gradients last", remove_argument(source, leaf, keyword), asked)
    func = leaf.func
    if isinstance(func, ast.Attribute) and func.attr == "requires_grad_" and not leaf.args:
        moved = replace(source, leaf, source.segment(func.value))
        return safe("Ask for gradients last", moved, append(source, outer, ".requires_grad_()"))
    if len(leaf.args) == 1 and not leaf.keywords and isinstance(leaf.args[0], (ast.Call, ast.Name, ast.Attribute)):
        bare = replace(source, leaf, source.segment(leaf.args[0]))
        return safe("Make the parameter last", bare, surround(source, outer, f"{source.segment(func)}(", ")"))
    return None


# ---------------------------------------------------------------------------------------------------- TL207


def no_grad_instead(saved: InferenceTensorSaved) -> Fix | None:
    """Compute the tensor under ``no_grad`` rather than in inference mode."""
    module = saved.module
    uses = [
        node
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call)
        and not node.args
        and not node.keywords
        and module.qualname(node.func) == "torch.inference_mode"
    ]
    made = saved.tensor.node
    around = [use for use in uses if _covers(module, use, made)]
    chosen = around or uses
    if len(chosen) != 1:
        return None
    name = name_for(module.source, "torch.no_grad", chosen[0])
    if name is None:
        return None
    return safe("torch.no_grad()", replace_callee(module.source, chosen[0], name.spelling), name.edits)


def _covers(module: Module, use: ast.Call, made: ast.AST | None) -> bool:
    """Whether a block entered with, or a function decorated with, ``use`` holds what was made."""
    statement = statement_of(module.source, use)
    return made is not None and statement is not None and any(child is made for child in ast.walk(statement))


# ---------------------------------------------------------------------------------------------------- TL210


def out_of_place(change: InPlaceChange) -> Fix | None:
    """Write the form that makes a new tensor: ``x += y`` -> ``x = x + y``, ``x.mul_(y)`` -> ``x = x.mul(y)``."""
    source, node, statement = change.module.source, change.node, change.statement
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and type(node.op) in OPERATORS:
        target, value = source.segment(node.target), source.segment(node.value)
        if not isinstance(node.value, (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant)):
            value = f"({value})"
        text = f"{target} = {target} {OPERATORS[type(node.op)]} {value}"
        return safe(text, replace_statement(source, statement, text) if "\n" not in value else None)
    is_function = isinstance(node, ast.Call) and change.module.qualname(node.func, change.frame.scope) is not None
    if (
        change.how == "method"
        and not is_function
        and isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
    ):
        method = node.func.attr.rstrip("_")
        renamed = replace(source, node.func, f"{source.segment(node.func.value)}.{method}")
        if isinstance(statement, ast.Expr) and statement.value is node and isinstance(node.func.value, ast.Name):
            start = source.span(statement)[0]
            return safe(f".{method}(...)", renamed, insert_text(start, f"{node.func.value.id} = "))
        return None if isinstance(statement, ast.Expr) else safe(f".{method}(...)", renamed)
    if change.how == "index":
        changed = node.value if isinstance(node, ast.Subscript) else None
        if isinstance(changed, ast.Name):
            text = f"{changed.id} = {changed.id}.clone()"
            return safe(text, insert_statement_before(source, statement, text))
    if change.how == "layer" and not (isinstance(node, ast.Call) and _inplace(node)):
        return _new_tensor_from_layer(change)
    return _function_out_of_place(change, node) if isinstance(node, ast.Call) else None


def _inplace(call: ast.Call) -> ast.keyword | None:
    return next((keyword for keyword in call.keywords if keyword.arg == "inplace"), None)


def _function_out_of_place(change: InPlaceChange, call: ast.Call) -> Fix | None:
    """``F.relu(x, inplace=True)`` -> ``x = F.relu(x)``, ``torch.relu_(x)`` -> ``x = torch.relu(x)``."""
    source, flag, changed = change.module.source, _inplace(call), call.args[0] if call.args else None
    if flag is not None:
        plain = remove_argument(source, call, flag)
    elif isinstance(call.func, ast.Attribute) and call.func.attr.endswith("_"):
        plain = rename_attribute(source, call.func, call.func.attr.rstrip("_"))
    else:
        return None
    statement = change.statement
    if not isinstance(statement, ast.Expr) or statement.value is not call:
        return safe("out of place", plain)
    if not isinstance(changed, ast.Name):
        return None
    return safe("out of place", plain, insert_text(source.span(statement)[0], f"{changed.id} = "))


def _new_tensor_from_layer(change: InPlaceChange) -> Fix | None:
    """Build the layer, or call the function, without ``inplace=True``."""
    source, call = change.module.source, change.node
    for event in change.block.events(ModuleCall):
        if event.node is change.node and isinstance(event.target, Object):
            call = event.target.node or call
    if not isinstance(call, ast.Call) or not belongs(source, call):
        return None
    for keyword in call.keywords:
        if keyword.arg == "inplace":
            return safe("without inplace=True", remove_argument(source, call, keyword))
    flags = [a for a in call.args if isinstance(a, ast.Constant) and a.value is True]
    return safe("inplace=False", replace(source, flags[0], "False")) if len(flags) == 1 else None


def forward_after_step(backward: Backward, step: Event) -> Fix | None:
    """Compute the loss of a backward behind the step that changes the weights it goes through."""
    node, source = backward.node, backward.module.source
    if backward.frame is not step.frame or not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    loss, stepped, statement = node.func.value, step.statement, backward.statement
    suite = next((suite for suite in _suites_around(source.tree, stepped) if statement in suite), None)
    if suite is None or not isinstance(loss, ast.Name):
        return None
    at = suite.index(stepped)
    made = [
        i for i, each in enumerate(suite[:at]) if isinstance(each, ast.Assign) and _names(each.targets) == {loss.id}
    ]
    if not made or at > suite.index(statement):
        return None
    between = suite[made[-1] + 1 : at + 1]
    needed = _names([suite[made[-1]]])
    if any(_stored(each) & needed or loss.id in _names([each]) for each in between):
        return None
    return safe("Compute the loss after the step", move_statement(source, suite[made[-1]], "after", stepped))


def _suites_around(tree: ast.Module, statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    for holder in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            suite = getattr(holder, name, None)
            if isinstance(suite, list) and any(each is statement for each in suite):
                yield suite


def _names(nodes: Iterable[ast.AST]) -> set[str]:
    return {child.id for node in nodes for child in ast.walk(node) if isinstance(child, ast.Name)}


def _stored(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}


# ---------------------------------------------------------------------------------------------------- TL211


def without_data(op: TensorOp, node: ast.Attribute) -> Fix | None:
    """Read through ``detach()``; change under ``no_grad`` what was changed through ``.data``."""
    source, statement = op.module.source, op.statement
    plain = replace(source, node, source.segment(node.value))
    changes = isinstance(statement, ast.AugAssign) and statement.target is node
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        func = statement.value.func
        changes = isinstance(func, ast.Attribute) and func.value is node and func.attr.endswith("_")
    if changes:
        name = name_for(source, "torch.no_grad", statement)
        if name is None:
            return None
        wrapped = wrap_statements(source, [statement], f"with {name.spelling}():")
        return unsafe("with torch.no_grad():", plain, wrapped, name.edits)
    if isinstance(node.ctx, ast.Load):
        return unsafe(".detach()", rename_attribute(source, node, "detach()"))
    return None
