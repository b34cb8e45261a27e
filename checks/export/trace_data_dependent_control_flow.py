"""TL801 trace-data-dependent-control-flow."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchlint.check import Check, FunctionInfo, Made, Module, Report, Scope, Severity, on

from .control_flow import DATA, Branch, Flow


class TraceDataDependentControlFlow(Check):
    """A traced model branches or loops on values of its tensors: the trace keeps only what the example input did.

    ## Why

    `torch.jit.trace`, and `torch.onnx.export(..., dynamo=False)` which uses it, run the model once and record the
    operations. A Python `if`, `while` or `for` is not an operation: the branch that the example took is replayed for
    every later input, with a `TracerWarning` at most.

    ## Bad

        def forward(self, x):
            heat = self.head(x)
            if heat.max() < self.threshold:
                return x.new_zeros(len(x), 2)
            return self.locate(heat)

        traced = torch.jit.trace(model, example)

    ## Good

        def forward(self, x):
            heat = self.head(x)
            found = heat.amax(dim=(1, 2, 3)) >= self.threshold
            return torch.where(found[:, None], self.locate(heat), 0.0)

        traced = torch.jit.trace(model, example)

    `torch.jit.script` and `torch.export` with `torch.cond` keep control flow, too.

    ## Known limits

    A branch or loop on one size of a tensor (`x.size(1)`) is a warning, as the size may never vary. Branches that
    only raise, warn or print are left alone, and so is what stands under a question for `self.training` or
    `torch.jit.is_tracing()`. The model must be recognised where it is traced: built in the same file, or annotated.
    """

    code = "TL801"
    name = "trace-data-dependent-control-flow"
    severity = Severity.ERROR
    failures = ("T-G3", "T-H7")

    @on(Module)
    def check(self, module: Module, report: Report) -> None:
        for call, tracer, target, scope, given in _traced(module):
            for function, name in _functions(call, target, module, scope):
                flow = Flow()
                flow.forward(function, given)
                for branch in flow.branches:
                    self._report(branch, name, tracer, call, module, report)

    def _report(self, branch: Branch, traced: str, tracer: str, call: ast.Call, module: Module, report: Report) -> None:
        source = branch.function.module.source
        text = " ".join(source.segment(branch.node).split())
        text = text if len(text) <= 60 else f"{text[:57]}..."
        word = "loop" if branch.is_loop else "branch"
        if branch.kind == DATA:
            message = f"This {word} depends on values of a tensor ({text}): {tracer} of {traced} will replay " + (
                "as many rounds as the example input took." if branch.is_loop else "the side that the example took."
            )
            severity = Severity.ERROR
        else:
            message = f"This {word} depends on a size ({text}): {tracer} of {traced} fixes it to that of the example."
            severity = Severity.WARNING
        if branch.function.module is module:
            report(
                branch.node,
                message,
                help="Write it with tensor operations such as torch.where, or use torch.jit.script.",
                severity=severity,
            )
        else:
            where = f"{branch.function.qualname}, line {branch.node.lineno}"
            report(call, f"{message[:-1]} ({where}).", severity=severity)


def _traced(module: Module) -> Iterator[tuple[ast.Call, str, ast.expr, Scope, int | None]]:
    """Calls that trace something: the call, its name, what is traced, and how many example tensors are given."""
    for last in ("trace", "trace_module", "export"):
        for call, scope in module.scope.all_calls(last):
            name = module.qualname(call.func, scope)
            keywords = {keyword.arg: keyword.value for keyword in call.keywords}
            if name == "torch.onnx.export":
                dynamo = keywords.get("dynamo")
                if not isinstance(dynamo, ast.Constant) or dynamo.value is not False:
                    continue
                tracer, first, example = "torch.onnx.export(dynamo=False)", keywords.get("model"), keywords.get("args")
            elif name in ("torch.jit.trace", "torch.jit.trace_module"):
                tracer, first = name, keywords.get("func", keywords.get("mod"))
                example = keywords.get("example_inputs")
            else:
                continue
            target = call.args[0] if call.args else first
            example = call.args[1] if len(call.args) > 1 else example
            if target is not None and not isinstance(target, ast.Starred):
                yield call, tracer, target, scope, _count(example)


def _count(example: ast.expr | None) -> int | None:
    if isinstance(example, ast.Tuple) and not any(isinstance(e, ast.Starred) for e in example.elts):
        return len(example.elts)
    return 1 if isinstance(example, ast.Call) else None


def _functions(call: ast.Call, target: ast.expr, module: Module, scope: Scope) -> Iterator[tuple[FunctionInfo, str]]:
    """What is run when ``target`` is traced: a module's forward or the methods that are named, or a function."""
    definition = module.definition(target, scope)
    if isinstance(definition, FunctionInfo):
        yield definition, definition.name
        return
    inputs = call.args[1] if len(call.args) > 1 else None
    names = (
        [k.value for k in inputs.keys if isinstance(k, ast.Constant)] if isinstance(inputs, ast.Dict) else ["forward"]
    )
    for made in module.instances.makes(target, scope):
        for name in names:
            yield from _methods(made, str(name))


def _methods(made: Made, name: str) -> Iterator[tuple[FunctionInfo, str]]:
    if made.kind != "module":
        return
    if made.cls is None:
        for inner in made.home.contents(made):
            yield from _methods(inner, name)
        return
    method = made.cls.method(name)
    if method is not None:
        yield method, made.cls.name if name == "forward" else f"{made.cls.name}.{name}"
