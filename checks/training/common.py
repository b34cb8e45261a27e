"""What the rules on training and evaluation loops share."""

from __future__ import annotations

import ast
import re

from torchlint.check import (
    EVALUATION_NAME,
    Backward,
    Block,
    Event,
    ModuleCall,
    Optimizer,
    OptimizerStep,
    Parameters,
    Symbol,
    Tensor,
    Trace,
    Value,
    ZeroGrad,
    last_name,
    spelled,
)

SCHEDULER_NAME = re.compile(r"sched|(^|[._])lr($|[._])|warmup", re.IGNORECASE)
MODEL_NAME = re.compile(r"^(the_)?(model|net|network|classifier|regressor)$")
LOADER_NAME = re.compile(r"loader|(^|_)(dl|batches)$")
_MODES = re.compile(r"eval\(|train|grad|mode\b|dropout")
OPTIMIZER_NAME = re.compile(r"opt(im|$|_|[^a-z])|(^|[._])opt", re.IGNORECASE)


def receiver(node: ast.AST, otherwise: str) -> str:
    """How the object is spelt whose method is called, or a word for it."""
    return (
        spelled(node.func.value) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else otherwise
    )


def steps_an_optimizer(step: OptimizerStep) -> bool:
    """Whether a ``.step()`` is an optimizer's, as far as is known: a Symbol spelt like a scheduler's isn't."""
    if isinstance(step.optimizer, Symbol):
        return SCHEDULER_NAME.search(step.optimizer.name) is None
    return isinstance(step.optimizer, Optimizer)


def concerns(zero: ZeroGrad, optimizer: Value) -> bool:
    """Whether gradients cleared there may be those that an optimizer steps with: only a known other is told apart."""
    target = zero.target
    if target is optimizer:
        return True
    if isinstance(target, Optimizer) and isinstance(optimizer, Optimizer):
        return bool(set(sources(target)) & set(sources(optimizer))) or not sources(target) or not sources(optimizer)
    return True


def sources(optimizer: Optimizer) -> tuple[Value, ...]:
    """The modules whose parameters an optimizer was given, where that is plain."""
    return optimizer.params.sources if isinstance(optimizer.params, Parameters) else ()


def looks_like_optimizer(value: Value, trace: Trace) -> bool:
    """Whether something that is stepped is an optimizer: known to be one, declared so, or spelt so."""
    if isinstance(value, Optimizer):
        return True
    if isinstance(value, Symbol):
        declared = (value.annotation or "").startswith("torch.optim.")
        return declared or OPTIMIZER_NAME.search(value.name) is not None
    return False


def runs_once(loop: Block) -> bool:
    """Whether a loop is left after its first turn, or is over ``range(1)``."""
    node = loop.node
    body = getattr(node, "body", None)
    if isinstance(body, list) and body and isinstance(body[-1], (ast.Break, ast.Return, ast.Raise)):
        return True
    if isinstance(node, ast.For) and isinstance(node.iter, ast.Call):
        called = node.iter.func
        arguments = node.iter.args
        return (
            isinstance(called, ast.Name)
            and called.id == "range"
            and len(arguments) == 1
            and isinstance(arguments[0], ast.Constant)
            and arguments[0].value == 1
        )
    return False


def evaluation(event: Event) -> Block | None:
    """The evaluation that an event is part of: a loop over a loader named for it, under no_grad, or the body of a
    function named for it; None where nothing says so."""
    for block in event.block.enclosing("loop", "call", "root"):
        if block.kind == "loop":
            evaluates = event.grad is False or (isinstance(event, ModuleCall) and event.mode == "eval")
            if evaluates and isinstance(block.node, (ast.For, ast.AsyncFor)):
                spoken = ast.unparse(block.node.iter)
                if any(EVALUATION_NAME.search(word) for word in re.findall(r"\w+", spoken.lower())):
                    return block
        elif EVALUATION_NAME.search(block.frame.name.lower()) and not _is_test(block) and not _is_of_module(block):
            return block
    return None


def is_unattended(call: ModuleCall) -> bool:
    """Whether a model is run over a loader by a function of a file that trains, which is named for evaluating, is given
    both, says nothing of any mode, and is neither called nor named by the rest of the file.

    Whoever calls it may set the modes first. That the file's training function sets its own, and this one neither
    eval() nor no_grad, says that they were forgotten.
    """
    function, target, loop = call.frame.function, call.target, call.loop
    if function is None or function.cls is not None or function.scope.parent is not call.module.scope:
        return False
    if loop is None or loop.frame is not call.frame or next(call.block.enclosing("call"), None) is not None:
        return False
    text = call.module.source.text
    return (
        EVALUATION_NAME.search(function.name.lower()) is not None
        and not function.name.startswith("test_")
        and _is_argument(target, MODEL_NAME)
        and _is_argument(loop.value, LOADER_NAME)
        and _MODES.search(ast.unparse(function.node)) is None
        and ".train()" in text
        and ".backward()" in text
        and not _is_named(call.module.tree, function.name)
    )


def _is_named(tree: ast.Module, name: str) -> bool:
    """Whether a file calls a function of it, passes it on, or exports it by name."""
    said: object
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            said = node.id
        elif isinstance(node, ast.Attribute):
            said = node.attr
        elif isinstance(node, ast.Constant):
            said = node.value
        else:
            continue
        if said == name:
            return True
    return False


def _is_argument(value: object, name: re.Pattern[str]) -> bool:
    return isinstance(value, Symbol) and value.origin == "argument" and name.search(value.name) is not None


def _is_of_module(block: Block) -> bool:
    """Whether a function is a module's own method: what it computes may be trained on, and its mode is its user's."""
    owner = block.frame.owner
    return owner is not None and owner.is_module is not False


def is_backwarded(call: ModuleCall, trace: Trace) -> bool:
    """Whether a result is part of what a backward in the same trace runs through."""
    results = {call.result} if isinstance(call.result, Tensor) else set()
    return any(
        not results.isdisjoint(backward.loss.ancestry())
        for backward in trace.root.events(Backward)
        if isinstance(backward.loss, Tensor)
    )


def _is_test(block: Block) -> bool:
    """Whether a function is a test of the code, as pytest collects them, rather than of a model."""
    stem = block.frame.module.name.rpartition(".")[2]
    return block.frame.name.startswith("test_") and (stem.startswith("test_") or stem.endswith("_test"))


def origin_of_scores(tensor: Tensor) -> int:
    """The line that made a tensor's numbers what they are (a softmax, a last layer); 0 where that isn't seen."""
    made = tensor
    for _ in range(20):
        parent = made.inputs[0] if made.inputs else None
        if not isinstance(parent, Tensor) or parent.scores != tensor.scores:
            break
        made = parent
    return getattr(made.node, "lineno", 0)


def layer_in_sequential(call: ModuleCall) -> ast.Call | None:
    """Where a layer is built in this file that a Sequential applies: its call node is the whole Sequential's."""
    given = call.arguments[0] if call.arguments else None
    layer = call.target.node
    if not isinstance(given, Tensor) or given.node is not call.node or not isinstance(layer, ast.Call):
        return None
    return layer if stands_in(layer, call) else None


def stands_in(made: ast.Call, event: Event) -> bool:
    """Whether a call is one of the file that an event is in."""
    name = last_name(made.func)
    return any(found is made for found, _ in event.module.scope.all_calls(name))
