"""TL422 batch-metric-averaging."""

from __future__ import annotations

import ast

from torchlint.check import Check, FunctionInfo, Report, Severity, on, spelled


class BatchMetricAveraging(Check):
    """Per-batch means are averaged over the number of batches: a smaller last batch counts as much as a full one.

    ## Why

    The mean of means is the mean only where all batches have one size. Weigh by `len(batch)` and divide by the number
    of samples, or use `drop_last=True`.

    ## Bad

        for x, y in loader:
            total += criterion(model(x), y).item()
        print(total / len(loader))

    ## Good

            total += criterion(model(x), y).item() * len(x)
        print(total / len(loader.dataset))

    ## Known limits

    Only running sums named in the same function as the division.
    """

    code = "TL422"
    name = "batch-metric-averaging"
    severity = Severity.INFO
    failures = ("L-18",)
    calls = ("item",)

    @on(FunctionInfo)
    def check(self, function: FunctionInfo, report: Report) -> None:
        scope = function.scope
        for node in scope.of_type(ast.AugAssign):
            if not isinstance(node.target, ast.Name) or not _is_item(node.value):  # type: ignore[attr-defined]
                continue
            loop = scope.enclosing(node, ast.For)
            if not isinstance(loop, ast.For):
                continue
            source = loop.iter
            if isinstance(source, ast.Call) and isinstance(source.func, ast.Name) and source.args:
                source = source.args[0]  # enumerate(loader), tqdm(loader)
            for division in _divisions(scope.node, node.target.id):  # type: ignore[attr-defined]
                if isinstance(division.right, ast.Call) and _is_len_of(division.right, source):
                    report(
                        division,
                        f"`{spelled(division)}` averages per-batch means: a smaller last batch counts too much; weigh "
                        "each by its size",
                    )


def _is_item(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "item"


def _divisions(node: ast.AST, name: str) -> list[ast.BinOp]:
    return [
        part
        for part in ast.walk(node)
        if isinstance(part, ast.BinOp)
        and isinstance(part.op, ast.Div)
        and isinstance(part.left, ast.Name)
        and part.left.id == name
    ]


def _is_len_of(call: ast.Call, source: ast.expr) -> bool:
    if not isinstance(call.func, ast.Name) or call.func.id != "len" or len(call.args) != 1:
        return False
    return ast.dump(call.args[0]) == ast.dump(source)
