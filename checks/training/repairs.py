"""The fixes of the rules on training that take more than a line."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from torchlint.check import (
    AttributeStore,
    Backward,
    Edit,
    Event,
    Fix,
    LossCall,
    Module,
    Object,
    OptimizerMade,
    OptimizerStep,
    SchedulerStep,
    Tensor,
)
from torchlint.source.edits import (
    Edits,
    add_decorator,
    belongs,
    delete_statement,
    insert_statement_after,
    insert_text,
    move_statement,
    move_statements,
    name_for,
    remove_argument,
    rename_attribute,
    replace,
    replace_callee,
    safe,
    statement_of,
    surround,
    unsafe,
    wrap_statements,
)
from torchlint.source.file import SourceFile
from torchlint.source.layout import end_of

LOG_FORMS = {"softmax": "log_softmax", "sigmoid": "logsigmoid", "Softmax": "LogSoftmax", "Sigmoid": "LogSigmoid"}


def statement_within(suite: Sequence[ast.stmt], event: Event) -> ast.stmt | None:
    """The statement of a suite in which an event happens, in functions that it calls too."""
    nodes = [event.node, *(block.node for block in event.block.enclosing("call") if block.node is not None)]
    return next((s for s in suite if any(child is node for child in ast.walk(s) for node in nodes)), None)


# ---------------------------------------------------------------------------------------------------- losses


def squashing(tensor: Tensor) -> Tensor:
    """The tensor that an activation made, behind all that leaves its numbers as they are."""
    made = tensor
    for _ in range(20):
        parent = made.inputs[0] if made.inputs else None
        if not isinstance(parent, Tensor) or parent.scores != tensor.scores:
            break
        made = parent
    return made


def without_activation(module: Module, tensor: Tensor) -> Fix | None:
    """Give the loss what the activation got: ``F.softmax(x, 1)`` -> ``x``, and no nn.Softmax at a Sequential's end."""
    made, source = squashing(tensor), module.source
    layer = made.module.node if isinstance(made.module, Object) else None
    holder = _holder(source, layer) if isinstance(layer, ast.Call) else None
    if holder is not None and isinstance(layer, ast.Call):
        return unsafe("without the activation", remove_argument(source, holder, layer))
    call = made.node
    if not isinstance(call, ast.Call) or not belongs(source, call):
        return None
    if (
        isinstance(call.func, ast.Attribute)
        and module.qualname(call.func) is None
        and not isinstance(made.module, Object)
    ):
        inner: ast.expr | None = call.func.value
    else:
        inner = call.args[0] if call.args else None
    if inner is None:
        return None
    statement = statement_of(source, call)
    if (
        isinstance(statement, ast.Assign)
        and statement.value is call
        and len(statement.targets) == 1
        and ast.dump(statement.targets[0]) == ast.dump(inner).replace("Load()", "Store()")
    ):
        return unsafe("without the activation", delete_statement(source, statement))
    return unsafe("without the activation", replace(source, call, source.segment(inner)))


def _holder(source: SourceFile, layer: ast.Call) -> ast.Call | None:
    """The call, such as nn.Sequential's, that a layer is a plain argument of."""
    statement = statement_of(source, layer)
    if statement is None or not belongs(source, layer):
        return None
    return next((c for c in ast.walk(statement) if isinstance(c, ast.Call) and any(a is layer for a in c.args)), None)


def with_log_activation(module: Module, tensor: Tensor) -> Fix | None:
    """Make the activation the one that gives logarithms: softmax -> log_softmax, nn.Softmax -> nn.LogSoftmax."""
    made, source = squashing(tensor), module.source
    call = made.module.node if isinstance(made.module, Object) else made.node
    if not isinstance(call, ast.Call) or not belongs(source, call):
        return None
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if isinstance(call.func, ast.Attribute) and name in ("softmax", "Softmax"):
        return unsafe(LOG_FORMS[name], rename_attribute(source, call.func, LOG_FORMS[name]))
    return None


def with_loss(loss: LossCall, name: str) -> Fix | None:
    """Use another loss class, or its function: ``nn.NLLLoss`` -> ``nn.CrossEntropyLoss``."""
    module, functional = loss.module, FUNCTIONS[name]
    made = loss.criterion.node if loss.criterion is not None else None
    call, qualified = (
        (made, f"torch.nn.{name}") if made is not None else (loss.node, f"torch.nn.functional.{functional}")
    )
    if not isinstance(call, ast.Call) or not belongs(module.source, call):
        return None
    if isinstance(call.func, ast.Attribute):
        return unsafe(name, rename_attribute(module.source, call.func, qualified.rpartition(".")[2]))
    spelling = name_for(module.source, qualified, call)
    if spelling is None:
        return None
    return unsafe(name, replace_callee(module.source, call, spelling.spelling), spelling.edits)


FUNCTIONS = {
    "CrossEntropyLoss": "cross_entropy",
    "BCELoss": "binary_cross_entropy",
    "BCEWithLogitsLoss": "binary_cross_entropy_with_logits",
}


def activation_or_loss(loss: LossCall, given: Tensor) -> Fix | None:
    """Drop a sigmoid that only the loss sees; where the model itself ends in one, use the loss for probabilities."""
    made = squashing(given)
    seen_by_loss_alone = made.node is not None and any(child is made.node for child in ast.walk(loss.node))
    weighted = loss.criterion is not None and "pos_weight" in getattr(loss.criterion, "arguments", {})
    if seen_by_loss_alone or weighted or "pos_weight" in loss.keywords:
        return without_activation(loss.module, given)
    return with_loss(loss, "BCELoss")


# ---------------------------------------------------------------------------------------------------- steps


def divided_by_number(backward: Backward, test: ast.expr) -> Fix | None:
    """Divide what is backwarded by the number of batches that the step's condition counts: ``% k``."""
    source, call = backward.module.source, backward.node
    count = next((n.right for n in ast.walk(test) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mod)), None)
    if count is None or not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    if not isinstance(count, (ast.Name, ast.Attribute, ast.Constant)):
        return None
    loss, divisor = call.func.value, source.segment(count)
    if isinstance(loss, ast.Call) and len(loss.args) == 1 and _method(loss) == "scale":
        loss = loss.args[0]
        bare = isinstance(loss, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
        return unsafe(
            f"/ {divisor}", surround(source, loss, *(("", f" / {divisor}") if bare else ("(", f") / {divisor}")))
        )
    bare = isinstance(loss, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
    return unsafe(
        f"/ {divisor}", surround(source, loss, *(("(", f" / {divisor})") if bare else ("((", f") / {divisor})")))
    )


def _method(call: ast.AST) -> str:
    return call.func.attr if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) else ""


def _receiver(source: SourceFile, call: ast.AST) -> str:
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
        return source.segment(call.func.value)
    return ""


def scaled_by(backward: Backward, steps: Sequence[OptimizerStep]) -> Fix | None:
    """Scale the loss with the scaler that steps: ``scaler.scale(loss).backward()``."""
    source, call = backward.module.source, backward.node
    step = next((s for s in steps if s.frame is backward.frame and _method(s.node) == "step"), None)
    if step is None or not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    scaler = _receiver(source, step.node)
    return unsafe(f"{scaler}.scale(...)", surround(source, call.func.value, f"{scaler}.scale(", ")"))


def stepped_by_scaler(step: OptimizerStep, backwards: Sequence[Backward]) -> Fix | None:
    """Let the scaler step that scaled the loss, and update it."""
    source, call = step.module.source, step.node
    for backward in backwards:
        func = backward.node.func if isinstance(backward.node, ast.Call) else None
        scale = func.value if isinstance(func, ast.Attribute) else None
        if backward.frame is step.frame and scale is not None and _method(scale) == "scale":
            scaler = _receiver(source, scale)
            if not isinstance(call, ast.Call):
                return None
            written = replace(source, call, f"{scaler}.step({_receiver(source, call)})")
            updated = insert_statement_after(source, step.statement, f"{scaler}.update()")
            return unsafe(f"{scaler}.step(...)", written, updated)
    return None


def updated(step: OptimizerStep) -> Fix | None:
    """Update the scaler behind its step."""
    source = step.module.source
    text = f"{_receiver(source, step.node)}.update()"
    return unsafe(text, insert_statement_after(source, step.statement, text))


def behind_autocast(backward: Backward, block: ast.With) -> Fix | None:
    """Take the backward, and what follows it in the block, out of autocast."""
    source = backward.module.source
    at = next((i for i, each in enumerate(block.body) if each is backward.statement), 0)
    if not at:
        return None
    return unsafe("moved out of autocast", move_statements(source, block.body[at:], "after", block))


def after_optimizer(step: SchedulerStep, optimizer_step: OptimizerStep) -> Fix | None:
    """Step the scheduler after the statement of its own loop in which the optimizer steps."""
    loop = step.loop.node if step.loop is not None else None
    if not isinstance(loop, (ast.For, ast.While)) or not any(each is step.statement for each in loop.body):
        return None
    target = statement_within(loop.body, optimizer_step)
    if target is None:
        return None
    return safe("moved after the optimizer's step", move_statement(step.module.source, step.statement, "after", target))


def once_a_batch(step: SchedulerStep, optimizer_step: OptimizerStep) -> Fix | None:
    """Step the scheduler where the optimizer steps."""
    if step.frame is not optimizer_step.frame or optimizer_step.conditional:
        return None
    moved = move_statement(step.module.source, step.statement, "after", optimizer_step.statement)
    return safe("moved behind each optimizer step", moved)


def parameters_added(store: AttributeStore, made: OptimizerMade) -> Fix | None:
    """Give the optimizer the new module's parameters, if it can be reached from there."""
    source, node = store.module.source, store.node
    assigned = made.statement
    if not isinstance(assigned, ast.Assign) or len(assigned.targets) != 1 or not isinstance(node, ast.Attribute):
        return None
    target = assigned.targets[0]
    same_object = store.frame.scope.owner is not None and store.frame.scope.owner is made.frame.scope.owner
    reachable = store.frame is made.frame if isinstance(target, ast.Name) else same_object or store.frame is made.frame
    if not isinstance(target, (ast.Name, ast.Attribute)) or not reachable or store.module is not made.module:
        return None
    optimizer = source.segment(target)
    text = f'{optimizer}.add_param_group({{"params": {source.segment(node)}.parameters()}})'
    return unsafe(f"{optimizer}.add_param_group(...)", insert_statement_after(source, store.statement, text))


# ---------------------------------------------------------------------------------------------------- evaluation


def under_no_grad(module: Module, statement: ast.stmt | None) -> Fix | None:
    """Put a loop under ``no_grad``, or decorate a function with it."""
    source = module.source
    name = (
        name_for(source, "torch.no_grad", statement) if belongs(source, statement) and statement is not None else None
    )
    if name is None or statement is None:
        return None
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
        text = f"@{name.spelling}()"
        return safe(text, name.edits, add_decorator(source, statement, text))
    header = f"with {name.spelling}():"
    return safe(header, name.edits, wrap_statements(source, [statement], header))


# ---------------------------------------------------------------------------------------------------- numerics


def logarithm_of_one_plus(module: Module, call: ast.Call, rest: ast.expr) -> Fix | None:
    """``torch.log(1 + x)`` -> ``torch.log1p(x)``."""
    source = module.source
    if not isinstance(call.func, ast.Attribute) or not belongs(source, call):
        return None
    return safe(
        "Write log1p",
        rename_attribute(source, call.func, "log1p"),
        replace(source, call.args[0], source.segment(rest)),
    )


def exponential_minus_one(module: Module, difference: ast.BinOp, call: ast.Call) -> Fix | None:
    """``torch.exp(x) - 1`` -> ``torch.expm1(x)``."""
    source = module.source
    if not isinstance(call.func, ast.Attribute) or not belongs(source, call):
        return None
    torch, inside = source.segment(call.func.value), source.segment(call.args[0])
    if len(call.args) > 1 or call.keywords or "\n" in inside or "#" in source.segment(difference):
        return None
    return safe("Write expm1", replace(source, difference, f"{torch}.expm1({inside})"))


def logarithm_in_one(module: Module, call: ast.Call, inner: ast.expr) -> Fix | None:
    """``torch.log(F.softmax(x, 1))`` -> ``F.log_softmax(x, 1)``."""
    source = module.source
    if not isinstance(inner, ast.Call) or not isinstance(inner.func, ast.Attribute):
        return None
    if inner.func.attr == "softmax":
        return safe("log_softmax", *_only(source, call, inner), rename_attribute(source, inner.func, "log_softmax"))
    if inner.func.attr != "sigmoid":
        return None
    name = name_for(source, "torch.nn.functional.logsigmoid", call)
    applied = inner.args[0] if inner.args else inner.func.value
    if name is None:
        return None
    return safe("logsigmoid", replace(source, call, f"{name.spelling}({source.segment(applied)})"), name.edits)


def _only(source: SourceFile, outer: ast.expr, inner: ast.expr) -> list[Edits]:
    """Take away what is written around an inner expression."""
    (start, end), (first, last) = source.span(outer), source.span(inner)
    return [(Edit(start, first, ""),) if start != first else (), (Edit(last, end, ""),) if last != end else ()]


def with_eps(module: Module, call: ast.Call, inner: ast.expr) -> Fix | None:
    """Keep a root's argument off zero: ``sqrt(x)`` -> ``sqrt(x + 1e-8)``."""
    source = module.source
    if any(argument is inner for argument in call.args):
        return safe("+ 1e-8", insert_text(end_of(source, inner), " + 1e-8"))
    return safe("+ 1e-8", surround(source, inner, "(", " + 1e-8)"))
