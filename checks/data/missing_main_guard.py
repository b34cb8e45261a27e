"""TL501 missing-main-guard."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from torchlint.check import Applicability, Check, Fix, FunctionInfo, Made, Module, Report, Scope, Severity, on
from torchlint.source.edits import unsafe, wrap_statements

_STARTERS = {
    "spawn": ("torch.multiprocessing", "torch_xla.distributed.xla_multiprocessing"),
    "start_processes": ("torch.multiprocessing",),
    "Pool": ("multiprocessing", "torch.multiprocessing", "multiprocess"),
    "Manager": ("multiprocessing", "torch.multiprocessing", "multiprocess"),
    "ProcessPoolExecutor": ("concurrent.futures", "concurrent.futures.process"),
    "notebook_launcher": ("accelerate", "accelerate.launchers"),
}
"""Calls that start processes at once, and the modules that offer them."""
_PROCESSES = frozenset(
    {
        "multiprocessing.Process",
        "torch.multiprocessing.Process",
        "multiprocess.Process",
        "multiprocessing.process.Process",
    }
)
_CORES = frozenset(
    {"os.cpu_count", "multiprocessing.cpu_count", "torch.multiprocessing.cpu_count", "os.process_cpu_count"}
)
_LIGHTNING = ("lightning.", "pytorch_lightning.")
_DEPTH = 5
_EXPORTED_NOTEBOOK = re.compile(r"^# In ?\[[\d ]*\]:|get_ipython\(", re.MULTILINE)


class MissingMainGuard(Check):
    """A script starts worker processes while it is being imported, without an `if __name__ == "__main__":`.

    ## Why

    Where processes are spawned (Windows, macOS, CUDA in workers, and every platform from Python 3.14 on, which no
    longer forks) each worker imports the script again. Without the guard it runs the same lines, tries to start
    workers of its own, and Python stops it: "An attempt has been made to start a new process before the current
    process has finished its bootstrapping phase".

    ## Bad

        loader = DataLoader(dataset, batch_size=32, num_workers=4)
        for images, labels in loader:
            train_step(images, labels)

    ## Good

        loader = DataLoader(dataset, batch_size=32, num_workers=4)
        if __name__ == "__main__":
            for images, labels in loader:
                train_step(images, labels)

    ## Known limits

    The number of workers must be known to be above zero: a constant, a default of the command line, the number of
    cores. Functions called at module level are followed in the same file. Notebooks, also exported ones, are left
    alone, and so are scripts that ask for the "fork" start method.
    """

    code = "TL501"
    name = "missing-main-guard"
    severity = Severity.ERROR
    fixable = Applicability.UNSAFE
    failures = ("T-E1",)
    mentions = ("num_workers", "DataLoader", "multiprocess")
    calls = ("ProcessPoolExecutor", "notebook_launcher")

    @on(Module)
    def check(self, module: Module, report: Report) -> None:
        source = module.source
        if source.is_notebook or _forks(module):
            return
        for statement, top in _unguarded(module.tree.body):
            start = _first_start(statement, module.scope, module, _DEPTH)
            if start is not None and _EXPORTED_NOTEBOOK.search(source.text) is None:
                node, what = start
                report(
                    node,
                    f"{what} while the script is imported, and every spawned worker imports it again; "
                    'put it under if __name__ == "__main__".',
                    fix=_guard(module, top),
                )
                return


def _forks(module: Module) -> bool:
    """Whether the script asks for forked processes, which don't import it again."""
    for name in ("set_start_method", "get_context"):
        for call, _ in module.scope.all_calls(name):
            if call.args and isinstance(call.args[0], ast.Constant) and call.args[0].value == "fork":
                return True
    return False


# ---------------------------------------------------------------------------------------------------- statements


def _unguarded(body: list[ast.stmt], top: ast.stmt | None = None) -> Iterator[tuple[ast.stmt, ast.stmt]]:
    """Simple statements and headers that importing runs, each with the statement of the module that holds it."""
    for statement in body:
        above = top or statement
        if isinstance(statement, ast.If) and _is_guard(statement.test) is not None:
            if _is_guard(statement.test):
                yield from _unguarded(statement.orelse, above)
            elif statement.body and _leaves(statement.body[-1]):
                return
            else:
                yield from _unguarded(statement.body, above)
            continue
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)):
            continue
        yield statement, above
        for field in ("body", "orelse", "finalbody"):
            yield from _unguarded(getattr(statement, field, []), above)
        for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
            yield from _unguarded(part.body, above)


def _is_guard(test: ast.expr) -> bool | None:
    """True for ``__name__ == "__main__"``, False for its opposite, None for any other test."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return True if any(_is_guard(value) for value in test.values) else None
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = _is_guard(test.operand)
        return None if inner is None else not inner
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        sides = [test.left, test.comparators[0]]
        names = any(isinstance(side, ast.Name) and side.id == "__name__" for side in sides)
        if names or any(isinstance(side, ast.Constant) and side.value == "MainProcess" for side in sides):
            return isinstance(test.ops[0], (ast.Eq, ast.In))
        if any(isinstance(n, ast.Attribute) and n.attr == "parent_process" for n in ast.walk(test)):
            return isinstance(test.ops[0], ast.Is)
    return None


def _leaves(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Raise) or (
        isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
    )


def _own_expressions(statement: ast.stmt) -> Iterator[ast.expr]:
    """The expressions of a statement, without those of the statements inside it."""
    for child in ast.iter_child_nodes(statement):
        if isinstance(child, ast.expr):
            yield child
        elif isinstance(child, ast.withitem):
            yield child.context_expr


def _calls(node: ast.AST) -> Iterator[ast.Call]:
    """The calls that evaluating an expression makes, inner ones first; bodies of lambdas aside."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.Lambda):
            yield from _calls(child)
    if isinstance(node, ast.Call):
        yield node


# ---------------------------------------------------------------------------------------------------- starts


def _first_start(statement: ast.stmt, scope: Scope, module: Module, depth: int) -> tuple[ast.expr, str] | None:
    """Where a statement (its suites aside) starts processes, and what does."""
    if isinstance(statement, (ast.For, ast.AsyncFor)) and _is_iterated_by_workers(statement.iter, scope, module):
        return statement.iter, _iterating(statement.iter, module)
    for expression in _own_expressions(statement):
        for node in ast.walk(expression):
            if isinstance(node, ast.comprehension) and _is_iterated_by_workers(node.iter, scope, module):
                return node.iter, _iterating(node.iter, module)
        for call in _calls(expression):
            what = _what_starts(call, scope, module, depth)
            if what:
                return call, what
    return None


def _what_starts(call: ast.Call, scope: Scope, module: Module, depth: int) -> str:
    """What a call does to start processes, in words; empty where it does nothing of the kind."""
    func = call.func
    name = module.qualname(func, scope) or ""
    origin, _, last = name.rpartition(".")
    if last in _STARTERS and origin in _STARTERS[last]:
        return f"{ast.unparse(func)}(...) starts processes"
    if name in ("builtins.next", "builtins.list", "builtins.tuple", "builtins.iter", "builtins.sorted"):
        if call.args and _is_iterated_by_workers(call.args[0], scope, module):
            return _iterating(call.args[0], module)
        return ""
    if isinstance(func, ast.Attribute):
        if func.attr == "start" and not call.args and _is_process(func.value, scope, module):
            return f"{ast.unparse(func)}() starts a process"
        if func.attr in _STARTERS and _is_context(func.value, scope, module):
            return f"{ast.unparse(func)}(...) starts processes"
        if func.attr in ("fit", "validate", "test", "predict") and _is_lightning(func.value, scope, module):
            arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
            if any(_is_iterated_by_workers(argument, scope, module) for argument in arguments):
                return f"{ast.unparse(func)}(...) iterates a DataLoader with workers"
            return ""
    if depth and any(_starts(function, depth - 1) for function in _callees(func, scope, module)):
        return f"{ast.unparse(func)}() starts worker processes"
    return ""


def _iterating(node: ast.expr, module: Module) -> str:
    text = " ".join(module.source.segment(node).split())
    return f"Iterating {text if len(text) <= 40 else 'this DataLoader'} starts its worker processes"


def _callees(func: ast.expr, scope: Scope, module: Module) -> Iterator[FunctionInfo]:
    """The functions of the file that a call runs."""
    found = module.lookup(func.id, scope) if isinstance(func, ast.Name) else None
    if isinstance(found, FunctionInfo):
        yield found
    elif isinstance(func, ast.Attribute) and module.dotted(func, scope) is None:
        cls = module.instances.instance_of(func.value, scope)
        classes = [cls] if cls else [made.cls for made in module.instances.makes(func.value, scope)]
        for each in classes:
            method = each.method(func.attr) if each is not None else None
            if method is not None and method.module is module:
                yield method


def _starts(function: FunctionInfo, depth: int) -> bool:
    memo = function.module.memo
    key = ("starts", function.node, depth)
    if key not in memo:
        memo[key] = any(
            _first_start(statement, function.scope, function.module, depth) is not None
            for statement, _ in _unguarded(function.node.body)
        )
    return bool(memo[key])


def _is_process(node: ast.expr, scope: Scope, module: Module) -> bool:
    def is_one(made: ast.AST, where: Scope, home: Module) -> bool:
        if not isinstance(made, ast.Call):
            return False
        if home.qualname(made.func, where) in _PROCESSES:
            return True
        func = made.func
        return isinstance(func, ast.Attribute) and func.attr == "Process" and _is_context(func.value, where, home)

    return any(is_one(made.node, made.scope, made.home.module) for made in module.instances.makes(node, scope))


def _is_context(node: ast.expr, scope: Scope, module: Module) -> bool:
    """Whether an expression is what ``multiprocessing.get_context("spawn")`` returns."""
    for made in module.instances.makes(node, scope):
        call = made.node
        if isinstance(call, ast.Call):
            name = made.home.module.qualname(call.func, made.scope) or ""
            if name.endswith("multiprocessing.get_context"):
                return True
    return False


def _is_lightning(node: ast.expr, scope: Scope, module: Module) -> bool:
    for made in module.instances.makes(node, scope):
        if isinstance(made.node, ast.Call):
            name = made.home.module.qualname(made.node.func, made.scope) or ""
            if name.startswith(_LIGHTNING) and name.endswith("Trainer"):
                return True
    return False


# ---------------------------------------------------------------------------------------------------- loaders


def _is_iterated_by_workers(node: ast.expr, scope: Scope, module: Module) -> bool:
    """Whether iterating an expression iterates a DataLoader that surely has workers."""
    while isinstance(node, ast.Call) and node.args:
        name = module.qualname(node.func, scope) or ""
        last = name.rpartition(".")[2]
        if last not in ("enumerate", "tqdm", "trange", "track", "zip", "iter", "islice", "cycle", "chain", "reversed"):
            break
        if last in ("zip", "chain"):
            return any(_is_iterated_by_workers(argument, scope, module) for argument in node.args)
        node = node.args[0]
    found = module.instances.makes(node, scope)
    return bool(found) and all(made.kind == "loader" and _has_workers(made) for made in found)


def _has_workers(loader: Made) -> bool:
    call = loader.node
    if not isinstance(call, ast.Call) or loader.cls is not None:
        return False
    home, scope = loader.home.module, loader.scope
    for keyword in call.keywords:
        if keyword.arg == "num_workers":
            return _is_positive(keyword.value, scope, home)
    if len(call.args) > 5 and not any(isinstance(a, ast.Starred) for a in call.args):
        return _is_positive(call.args[5], scope, home)
    unpacked = [keyword.value for keyword in call.keywords if keyword.arg is None]
    return any(_unpacks_workers(value, scope, home) for value in unpacked)


def _unpacks_workers(value: ast.expr, scope: Scope, module: Module) -> bool:
    """Whether ``**value`` surely gives a number of workers above zero."""
    found = module.instances.makes(value, scope)
    return bool(found) and all(_holds_workers(made) for made in found)


def _holds_workers(made: Made) -> bool:
    node, module = made.node, made.home.module
    if isinstance(node, ast.Dict):
        pairs: Iterable[tuple[object, ast.expr]] = (
            (key.value if isinstance(key, ast.Constant) else None, value)
            for key, value in zip(node.keys, node.values, strict=True)
        )
    elif isinstance(node, ast.Call):
        pairs = ((keyword.arg, keyword.value) for keyword in node.keywords)
    else:
        return False
    return any(key == "num_workers" and _is_positive(value, made.scope, module) for key, value in pairs)


def _is_positive(node: ast.expr, scope: Scope, module: Module, depth: int = _DEPTH) -> bool:
    """Whether a number of workers is surely above zero."""
    if depth <= 0:
        return False
    if isinstance(node, ast.Call):
        name = module.qualname(node.func, scope) or ""
        if name in _CORES:
            return True
        if name in ("builtins.min", "builtins.max", "builtins.int") and node.args:
            answers = [_is_positive(argument, scope, module, depth - 1) for argument in node.args]
            return any(answers) if name == "builtins.max" else all(answers)
        return False
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Add, ast.FloorDiv)):
        return _is_positive(node.left, scope, module, depth - 1) and _is_positive(node.right, scope, module, depth - 1)
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
        return any(_is_positive(value, scope, module, depth - 1) for value in node.values)
    if isinstance(node, ast.Attribute):
        default = _command_line_default(node, scope, module)
        if default is not None:
            return _is_positive(default, scope, module, depth - 1)
    found = module.instances.makes(node, scope)
    return bool(found) and all(_is_positive_made(made, node, depth) for made in found)


def _is_positive_made(made: Made, asked: ast.expr, depth: int) -> bool:
    node = made.node
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int) and node.value > 0
    if node is asked or not isinstance(node, (ast.Call, ast.BinOp, ast.Attribute)):
        return False
    return _is_positive(node, made.scope, made.home.module, depth - 1)


def _command_line_default(node: ast.Attribute, scope: Scope, module: Module) -> ast.expr | None:
    """The default of the option that ``args.workers`` is, where args comes from a parser of the file."""
    if not isinstance(node.value, ast.Name):
        return None
    for made in module.instances.makes(node.value, scope):
        call = made.node
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            return None
        if call.func.attr not in ("parse_args", "parse_known_args"):
            return None
    for call, _ in module.scope.all_calls("add_argument"):
        names = [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        long = next((name for name in names if name.startswith("--")), names[0] if names else "")
        keywords = {keyword.arg: keyword.value for keyword in call.keywords}
        dest = keywords.get("dest")
        stored = dest.value if isinstance(dest, ast.Constant) else long.lstrip("-").replace("-", "_")
        if stored == node.attr:
            return keywords.get("default")
    return None


# ---------------------------------------------------------------------------------------------------- the fix


def _guard(module: Module, first: ast.stmt) -> Fix | None:
    """Put the statement and all behind it under a guard, unless something behind it must stay importable."""
    body = module.tree.body
    rest = body[body.index(first) :]
    if any(
        isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)) for s in rest
    ):
        return None
    return unsafe(
        'Put it under if __name__ == "__main__":', wrap_statements(module.source, rest, 'if __name__ == "__main__":')
    )
