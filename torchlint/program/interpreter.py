"""The abstract interpreter: follows a file's code and leaves a Trace of what it does.

It runs only what concerns training and autograd: functions that call something of interest, those that lead to them,
and the module's body where it does. Everything is bounded: calls in depth, loops to two passes, each root in steps.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from torchlint.program import interest
from torchlint.program.classes import ClassInfo
from torchlint.program.evaluate import BINARY, Evaluator
from torchlint.program.events import Block, Trace
from torchlint.program.index import Scope
from torchlint.program.machine import GRAD, Frame, OutOfSteps
from torchlint.program.module import FunctionInfo, Module
from torchlint.program.uncalled import METHODS, MODES
from torchlint.program.values import (
    Array,
    Class,
    Const,
    Context,
    Dict,
    External,
    Function,
    Object,
    Sequence,
    State,
    Symbol,
    Tensor,
    Value,
)

STEPS = 12_000
"""Expressions evaluated for one root."""
STEPS_PER_LINE = 8
"""Expressions evaluated for a file, per line of it, with STEPS as the floor."""
FOREIGN_STEPS = 1_000
"""The same in other files that a file's functions call into."""
SHALLOW_STEPS = 2_000
"""The same for a root that is followed for what it does itself."""
_BORN = frozenset((Sequence, Dict, Const, Symbol))
"""Kinds of values of which it is known where they were bound first."""

LOGS = frozenset("debug info warning warn error exception critical log".split())
LOGGERS = frozenset(("logger", "logging", "log", "warnings"))
INIT_STEPS = 600
"""Expressions evaluated to learn what a class's __init__ keeps on self."""


class Interpreter(Evaluator):
    """Follows one file."""

    def __init__(self, module: Module) -> None:
        super().__init__(module)
        self.homes: dict[Module, Frame] = {}
        self.module_like: set[Value] = set()
        self.visited: set[ast.AST] = set()
        self.inside_module = 0
        self.foreign_steps = FOREIGN_STEPS
        self.receivers: dict[ClassInfo, Object] = {}
        self.base = self.state
        self._breaks: list[list[State]] = []
        self._continues: list[list[State]] = []
        self.budget = STEPS

    # ---------------------------------------------------------------- roots

    def run(self) -> list[Trace]:
        """Traces of everything of interest in the file: the module's body first, then what it didn't reach."""
        wanted = interest.wanted(self.module)
        traces: list[Trace] = []
        if not wanted:
            return traces
        self.budget = max(STEPS, STEPS_PER_LINE * self.module.source.text.count("\n"))
        scope = self.module.scope
        if scope in wanted:
            frame = self.home_frame(self.module)
            self.state.set(GRAD, GRAD, True)
            self.shallow = not wanted[scope]
            traces.append(self._trace(frame))
        self.base = self.state
        self.base.data.pop((GRAD, GRAD), None)
        for inner, deep in wanted.items():
            if inner is scope or inner.node in self.visited:
                continue
            if self.budget <= 0:
                break
            self.shallow = not deep
            traces.append(self._function_root(inner))
        return traces

    def _trace(self, frame: Frame) -> Trace:
        root = Block("root", frame.scope.node, None, frame)
        self.frame, self.block, frame.block = frame, root, root
        self.steps = min(SHALLOW_STEPS if self.shallow else STEPS, max(self.budget, 1000))
        start = self.steps
        self.inside_module = self.passes = self.quiet = self.depth = 0
        try:
            body = frame.scope.node.body
            self.run_body(body if isinstance(body, list) else [], frame)
        except OutOfSteps:
            root.ends = "out of steps"
        except RecursionError:
            root.ends = "out of steps"
        self.budget -= start - max(self.steps, 0)
        frame.returned = []
        return Trace(root, frame, self.self_savers)

    def _function_root(self, scope: Scope) -> Trace:
        info = self.module.function(scope)
        self.visited.add(info.node)
        receiver = None
        if info.cls is not None and not info.is_static and info.parameters:
            self.state = self.base
            receiver = self._receiver(info)
        self.state = self.base.fork()
        self.state.outer = None
        home = self.home_frame(self.module)
        frame = Frame(self.module, scope, info, home)
        root = Block("root", info.node, None, frame)
        self.frame, self.block = frame, root
        self.steps = min(STEPS, max(self.budget, 1000))
        self.quiet = 0
        arguments: list[Value] = []
        if receiver is not None:
            arguments = [receiver]
            frame.receiver = receiver
        if info.scope.parent is not None and info.scope.parent.is_function:
            frame.closure = Frame(self.module, info.scope.parent, None, home)
        self._bind(info.node.args, frame, arguments, {"**": Symbol("**", "argument")} if info.parameters else {})
        for default, parameter in _defaulted(info):
            if isinstance(default, ast.Constant) and default.value is not None:
                # a default may be overridden by a caller that isn't seen
                self.state.set(frame, parameter.arg, self.argument_symbol(parameter, frame))
        decorated = self.decorator_grad(info)
        self.grad = decorated.enabled if decorated is not None else None
        return self._trace(frame)

    def _receiver(self, info: FunctionInfo) -> Value:
        """A self for a method looked at on its own: what __init__ makes of unknown arguments, once a class."""
        cls = info.cls
        assert cls is not None
        if info.is_classmethod:
            return Class(cls)
        if info.name != "__init__" and cls in self.receivers:
            return self.receivers[cls]
        made = Object(cls.node, cls=cls, spec=self.external_spec(cls), known=False)
        init = cls.method("__init__")
        if init is not None and info.name != "__init__":
            self.receivers[cls] = made
            home = self.home_frame(self.module)
            self.frame, self.block = home, Block("root", cls.node, None, home)
            self.steps = min(INIT_STEPS, max(self.budget, 0))
            self.quiet = 1
            with contextlib.suppress(OutOfSteps, RecursionError):
                self.call_function(
                    Function(init, made), [Symbol("*", "argument")], {"**": Symbol("**", "argument")}, init.node
                )
            self.quiet = 0
        self.state.set(made, "@mode", None)
        return made

    # ---------------------------------------------------------------- statements

    def execute(self, body: list[ast.stmt]) -> str:
        """Run statements in order; how control leaves them: ``return``, ``raise``, ``break``, ``continue`` or empty."""
        for statement in body:
            method = _STATEMENTS.get(type(statement))
            if method is not None:
                flow = method(self, statement)
                if flow:
                    return flow
        return ""

    def expression(self, node: ast.Expr) -> str:
        value = node.value
        kind = type(value)
        if kind is ast.Constant or (kind is ast.Call and _only_tells(value)):  # type: ignore[arg-type]
            return ""
        if kind is ast.Attribute and value.attr in METHODS:  # type: ignore[attr-defined]
            value = self._called(value)
        self.eval(value)
        return ""

    def _called(self, named: ast.expr) -> ast.Call:
        """What was meant where something is named and not called; TL116 tells it, and other rules go on from there."""
        memo = self.frame.module.memo
        if named not in memo:
            parents = self.frame.scope.parents
            memo[named] = ast.copy_location(ast.Call(named, [], []), named)
            parents[memo[named]] = parents[named]
        return memo[named]  # type: ignore[no-any-return]

    def assignment(self, node: ast.Assign) -> str:
        value = self.eval(node.value)
        for target in node.targets:
            self.assign(target, value, node)
        if type(value) in _BORN:
            self._born_here(value)
        return ""

    def annotated(self, node: ast.AnnAssign) -> str:
        if node.value is not None:
            value = self.eval(node.value)
            self.assign(node.target, value, node)
            self._born_here(value)
        return ""

    def _born_here(self, value: Value) -> None:
        if type(value) in _BORN and value not in self.births:
            block = self.block
            self.births[value] = (block.loops, next(block.enclosing("loop"), None) if block.loops else None)

    def augmented_assignment(self, node: ast.AugAssign) -> str:
        target = node.target
        old = self.current(self.eval(_loaded(target)))
        value = self.eval(node.value)
        name = BINARY[type(node.op)][0]
        if isinstance(old, Tensor) and name != "matmul":
            if isinstance(target, ast.Subscript):
                self._augmented_item(node, target, old, value, f"{name}_")
                return ""
            if old.role == "loss" or (isinstance(value, Tensor) and old.shape == ()):
                self.accumulate(node, old, value, "sum", _spelling(target)).result = old
            later = self.augmented(old, name, value, node)
            if isinstance(target, ast.Name):
                self.assign(target, later, node)
            return ""
        if isinstance(old, Sequence) and name == "add":
            self.accumulate(node, old, value, "append", "+=")
            items, exact = self.items(old)
            more, known = self.items(value) if isinstance(value, Sequence) else ((self.element(value, node),), False)
            self.set_items(old, (*items, *more)[:64], exact and known and not self._in_loop_since(old))
            return ""
        result = self.combine(node, BINARY[type(node.op)], old, value)
        if name in ("add", "sub"):
            event = self.accumulate(node, old, value, "sum", _spelling(target))
            event.result = result
            if old in self.births:
                self.births[result] = self.births[old]
        if (isinstance(old, (Symbol, Array)) and isinstance(target, ast.Subscript)) or (
            isinstance(old, Symbol) and old.of is not None
        ):
            pass
        if isinstance(old, Symbol) and isinstance(target, ast.Attribute) and target.attr in ("data", "grad"):
            self.change(old, node, "augmented", f"{name}_")
        self.assign(target, result, node)
        return ""

    def _augmented_item(self, node: ast.AugAssign, target: ast.Subscript, old: Tensor, value: Value, name: str) -> None:
        """``container[index] += value``: a change of the item, then an assignment of it."""
        self.quiet += 1
        container = self.current(self.eval(target.value))
        index = self.slice(target.slice) if isinstance(target.slice, ast.Slice) else self.eval(target.slice)
        self.quiet -= 1
        if not isinstance(container, Tensor):
            self.change(old, node, "augmented", name)
            return
        if old.base is None:  # an index tensor or mask: the item is a copy
            self.item_changed(container, index, value, node)
            return
        self.change(old, node, "augmented", name)
        inputs = self._inputs([container, value], {})
        self._succeed(container, self._result("torch.Tensor.setitem", None, [container, value], inputs, node, {}))

    def returning(self, node: ast.Return) -> str:
        self.returns(node, self.eval(node.value))
        return "return"

    def raising(self, node: ast.Raise) -> str:
        return "raise"  # what an exception is made of matters to nobody

    def breaking(self, node: ast.Break) -> str:
        if self._breaks:  # there is no loop where Python's grammar allows what its compiler refuses
            self._breaks[-1].append(self.state)
        return "break"

    def continuing(self, node: ast.Continue) -> str:
        if self._continues:
            self._continues[-1].append(self.state)
        return "continue"

    def condition(self, node: ast.If) -> str:
        test = self.eval(node.test)
        truth = self.truth(test)
        if truth is not None:
            return self.execute(node.body if truth else node.orelse)
        return self._branches(node, [node.body, node.orelse])

    def _branches(self, node: ast.AST, bodies: list[list[ast.stmt]]) -> str:
        base = self.state
        block = self.enter("branch", node)
        going: list[State] = []
        flows: set[str] = set()
        for body in bodies:
            self.state = base.fork()
            arm = self.enter("arm", body[0] if body else node)
            flow = self.execute(body)
            arm.ends = flow
            self.leave(arm)
            flows.add(flow)
            if not flow:
                going.append(self.state)
        self.leave(block)
        if not going:
            self.state = base
            flows.discard("")
            return flows.pop() if len(flows) == 1 else "return" if "return" in flows else next(iter(flows), "raise")
        self.state = self.join(base, going)
        return ""

    def match(self, node: ast.Match) -> str:
        self.eval(node.subject)
        for case in node.cases:
            for part in ast.walk(case.pattern):
                name = getattr(part, "name", None) or getattr(part, "rest", None)
                if isinstance(name, str):
                    self.state.set(self.frame, name, Symbol(name, "element"))
        bodies = [case.body for case in node.cases]
        last = node.cases[-1] if node.cases else None
        if last is None or not (isinstance(last.pattern, ast.MatchAs) and last.pattern.pattern is None):
            bodies.append([])
        return self._branches(node, bodies)

    def loop(self, node: ast.For | ast.AsyncFor) -> str:
        source = self.eval(node.iter)
        block = self.enter("loop", node)
        block.value = source
        self._consume_iterated(source, node.iter)
        self._breaks.append([])
        self._continues.append([])
        flow = ""
        items = self.known_items(source)
        if items:
            for item in items:
                self.assign(node.target, item, node)
                flow = self._pass(node.body)
                if flow in ("return", "raise", "break"):
                    break
        elif items is None:
            self.assign(node.target, self.element(source, node.iter), node)
            notable = self.notable
            flow = self._pass(node.body)
            if flow not in ("return", "raise", "break") and self.notable != notable:
                flow = self._second_pass(node, lambda: self.assign(node.target, self.element(source, node.iter), node))
        return self._after_loop(node, block, flow)

    def _consume_iterated(self, source: Value, node: ast.AST) -> None:
        self.consume(source, node, "for")
        for inner in self.state.get(source, "@iterates", ()):
            self.consume(inner, node, "for")

    def _pass(self, body: list[ast.stmt]) -> str:
        """One pass through a loop's body; joins the states of its ``continue``s."""
        outer = self.state.outer
        mark = len(self._continues[-1])
        flow = self.execute(body)
        states = self._continues[-1][mark:]
        del self._continues[-1][mark:]
        if flow in ("", "continue"):
            if not flow:
                states.append(self.state)
            if states:
                self.state = self.meet(states)
                self.state.outer = outer
            return ""
        if states:  # some path went on
            self.state = self.meet(states)
            self.state.outer = outer
            return ""
        return flow

    def _second_pass(self, node: ast.AST, rebind: object) -> str:
        if self.passes > isinstance(node, ast.While):
            return ""  # in a second pass of a loop around this one: what a turn leaves to the next was seen before
        again = self.enter("again", node)
        self.passes += 1
        try:
            if callable(rebind):
                rebind()
            self._pass(node.body)  # type: ignore[attr-defined]
        finally:
            self.passes -= 1
            self.leave(again)
        return ""

    def _after_loop(self, node: ast.For | ast.AsyncFor | ast.While, block: Block, flow: str) -> str:
        breaks = self._breaks.pop()
        self._continues.pop()
        self.leave(block)
        if flow in ("return", "raise") and not breaks:
            return "" if flow == "raise" else self._maybe_left(flow)
        if breaks:
            states = breaks if flow in ("return", "raise", "break") else [*breaks, self.state]
            self.state = self.meet(states)
            self.state.outer = None
        if node.orelse and flow != "break":
            return self.execute(node.orelse)
        return ""

    def _maybe_left(self, flow: str) -> str:
        # a loop whose first pass always returns: what comes after runs only for an empty iterable
        return ""

    def while_loop(self, node: ast.While) -> str:
        truth = self.truth(self.eval(node.test))
        if truth is False:
            return self.execute(node.orelse)
        block = self.enter("loop", node)
        self._breaks.append([])
        self._continues.append([])
        flow = self._pass(node.body)
        if flow not in ("return", "raise", "break"):
            flow = self._second_pass(node, lambda: self.eval(node.test))
        forever = truth is True and isinstance(node.test, ast.Constant)
        broke = bool(self._breaks[-1])
        if forever and broke:
            flow = "break"
        return self._after_loop(node, block, flow)

    def with_block(self, node: ast.With | ast.AsyncWith) -> str:
        saved = (self.grad, self.state.get(GRAD, "inference"), self.state.get("autocast", "autocast"))
        block = self.enter("with", node)
        entered: list[Value] = []
        before = self.grad
        for item in node.items:
            context = self.eval(item.context_expr)
            if isinstance(context, External) and context.qualname in MODES:
                context = self.eval(self._called(item.context_expr))
            self.grad = before if not entered else self.grad
            entered.append(context)
            self._enter_context(context)
            if item.optional_vars is not None:
                value = context if not isinstance(context, Context) else Symbol(node=item.context_expr)
                self.assign(item.optional_vars, value, item.context_expr)
            before = self.grad
        block.value = entered
        flow = self.execute(node.body)
        self.leave(block)
        if any(isinstance(c, Context) for c in entered):
            grad, inference, autocast = saved
            self.grad = grad
            self.state.set(GRAD, "inference", inference)
            self.state.set("autocast", "autocast", autocast)
        return flow

    def _enter_context(self, context: Value) -> None:
        if isinstance(context, Context):
            if context.kind == "autocast":
                self.state.set("autocast", "autocast", context)
                return
            self.grad = context.enabled
            if context.kind == "inference_mode" and context.enabled is False:
                self.state.set(GRAD, "inference", True)

    def trying(self, node: ast.Try) -> str:
        block = self.enter("try", node)
        base = self.state.fork()
        flow = self.execute(node.body)
        if not flow and node.orelse:
            flow = self.execute(node.orelse)
        going = [] if flow else [self.state]
        flows = {flow}
        branch = self.enter("branch", node) if node.handlers else None
        for handler in node.handlers:
            self.state = base.fork()
            arm = self.enter("arm", handler)
            if handler.name:
                self.state.set(self.frame, handler.name, Symbol(handler.name))
            arm.ends = self.execute(handler.body)
            self.leave(arm)
            flows.add(arm.ends)
            if not arm.ends:
                going.append(self.state)
        if branch is not None:
            arm = self.enter("arm", node)
            self.leave(arm)
            self.leave(branch)
        self.leave(block)
        if going:
            self.state = self.meet(going)
            self.state.outer = None
        left = "" if going else "return" if "return" in flows else next((f for f in flows if f), "")
        final = self.execute(node.finalbody) if node.finalbody else ""
        return final or left

    def define_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
        scope = self.frame.scope.child(node)
        if scope is None:  # inside a class body
            return ""
        for decorator in node.decorator_list:
            self.eval(decorator)
        self.frame.captured = True
        self.state.set(self.frame, node.name, Function(self.frame.module.function(scope), None, self.frame))
        return ""

    def define_class(self, node: ast.ClassDef) -> str:
        scope = self.frame.scope.child(node)
        if scope is not None:
            self.state.set(self.frame, node.name, Class(self.frame.module.class_at(scope), node))
        return ""

    def deleting(self, node: ast.Delete) -> str:
        for target in node.targets:
            if isinstance(target, ast.Name):
                self.state.drop(self.frame, target.id)
            else:
                self.eval(_loaded(target))
        return ""

    def asserting(self, node: ast.Assert) -> str:
        self.eval(node.test)
        return ""

    def importing(self, node: ast.Import | ast.ImportFrom) -> str:
        return ""


def _only_tells(call: ast.Call) -> bool:
    """Whether a statement only logs, or declares an option of the command line."""
    func = call.func
    if type(func) is not ast.Attribute:
        return False
    if func.attr == "add_argument":
        return True
    if func.attr not in LOGS:
        return False
    value = func.value
    name = value.id if type(value) is ast.Name else value.attr if type(value) is ast.Attribute else ""
    return name.lower().lstrip("_") in LOGGERS


def _defaulted(info: FunctionInfo) -> Iterator[tuple[ast.expr | None, ast.arg]]:
    a = info.node.args
    positional = [*a.posonlyargs, *a.args]
    yield from zip(reversed(a.defaults), reversed(positional))
    yield from zip(a.kw_defaults, a.kwonlyargs)


def _loaded(target: ast.expr) -> ast.expr:
    """A target as an expression that reads it."""
    return target


def _spelling(target: ast.expr) -> str:
    return ast.unparse(target) if isinstance(target, (ast.Name, ast.Attribute)) else ""


_STATEMENTS: dict[type[ast.stmt], Callable[[Any, Any], str]] = {
    ast.AnnAssign: Interpreter.annotated,
    ast.Assert: Interpreter.asserting,
    ast.Assign: Interpreter.assignment,
    ast.AsyncFor: Interpreter.loop,
    ast.AsyncFunctionDef: Interpreter.define_function,
    ast.AsyncWith: Interpreter.with_block,
    ast.AugAssign: Interpreter.augmented_assignment,
    ast.Break: Interpreter.breaking,
    ast.ClassDef: Interpreter.define_class,
    ast.Continue: Interpreter.continuing,
    ast.Delete: Interpreter.deleting,
    ast.Expr: Interpreter.expression,
    ast.For: Interpreter.loop,
    ast.FunctionDef: Interpreter.define_function,
    ast.If: Interpreter.condition,
    ast.Match: Interpreter.match,
    ast.Raise: Interpreter.raising,
    ast.Return: Interpreter.returning,
    ast.Try: Interpreter.trying,
    ast.While: Interpreter.while_loop,
    ast.With: Interpreter.with_block,
}
if hasattr(ast, "TryStar"):
    _STATEMENTS[ast.TryStar] = Interpreter.trying


def trace_module(module: Module) -> list[Trace]:
    """Everything of interest that a file does, a Trace for each root; release them when they have been looked at."""
    interpreter = Interpreter(module)
    traces = interpreter.run()
    interpreter.base.data.clear()
    interpreter.state.data.clear()
    return traces
