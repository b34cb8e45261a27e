"""TL115 requires-grad-has-no-effect."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchlint.check import Applicability, Check, Fix, Module, Report, Scope, Severity, on
from torchlint.source.edits import rename_attribute, replace_statement, safe, statement_of

_RIGHT = "requires_grad"
_LOOKALIKE = re.compile(r"re?q\w*_?g\w*r\w*a?\w*d\w*", re.IGNORECASE)
_COMPARED = re.compile(r"\.requires_grad[ \t]*==")
_COPIES = frozenset({"detach", "clone", "cpu", "cuda", "numpy", "float", "double", "half", "contiguous"})
_INTEGERS = frozenset(
    f"torch.{name}" for name in ("int", "int8", "int16", "int32", "int64", "long", "short", "uint8", "bool")
)
_INTEGER_FACTORIES = frozenset(
    f"torch.{name}"
    for name in ("randint", "randperm", "LongTensor", "IntTensor", "ShortTensor", "ByteTensor", "BoolTensor")
)
_FACTORIES = frozenset(f"torch.{name}" for name in ("zeros", "ones", "empty", "full", "eye", "arange", "tensor"))


class RequiresGradHasNoEffect(Check):
    """An attempt to set `requires_grad` reaches nothing: a misspelt name, a module, a copy, or an integer tensor.

    ## Why

    Python lets any attribute be set. `param.require_grad = False` makes a new attribute that autograd never reads, and
    `module.requires_grad = False` one that none of the module's parameters reads: what was to be frozen is trained.
    Set on `.data`, on a clone or on an entry of `state_dict()`, it changes a tensor that is thrown away. An integer
    tensor can't require gradients at all and raises.

    ## Bad

        for param in model.features.parameters():
            param.require_grad = False
        model.head.requires_grad = False

    ## Good

        for param in model.features.parameters():
            param.requires_grad = False
        model.head.requires_grad_(False)

    ## Known limits

    The object must be known to be a parameter, a tensor or a module. A class that has an attribute of that name of its
    own is left alone.
    """

    code = "TL115"
    name = "requires-grad-has-no-effect"
    severity = Severity.ERROR
    fixable = Applicability.SAFE
    failures = ("X-36",)
    mentions = ("grad",)

    @on(Module)
    def check(self, module: Module, report: Report) -> None:
        for scope in module.scope.walk():
            for node in scope.of_type(ast.Assign):
                for target in node.targets:  # type: ignore[attr-defined]
                    if not isinstance(target, ast.Attribute) or target.attr[0] not in "rR":
                        continue
                    if _LOOKALIKE.fullmatch(target.attr):
                        self._check_target(target, node, scope, module, report)  # type: ignore[arg-type]
        for compared in _compared(module):
            report(
                compared,
                f"{ast.unparse(compared)} compares and throws the answer away; assign with =.",
                fix=_assigned(compared, module),
            )
        for node, name in _switched_on(module):
            report(
                node,
                f"{name} makes an integer tensor, which can't require gradients: this raises RuntimeError. "
                "Make it a floating point tensor.",
            )

    def _check_target(
        self, target: ast.Attribute, node: ast.Assign, scope: Scope, module: Module, report: Report
    ) -> None:
        owner = ast.unparse(target.value)
        if target.attr == _RIGHT:
            if _is_copy(target.value, scope, module):
                report(target, f"{owner} is a copy: setting requires_grad on it leaves the original as it is.")
            elif _is_module(target.value, scope, module):
                report(
                    target,
                    f"{owner} is a module: setting requires_grad on it changes none of its parameters; call "
                    f"{owner}.requires_grad_({ast.unparse(node.value)}).",
                    fix=_call_instead(target, node, module),
                )
            elif _is_true(node.value) and _is_integer_tensor(target.value, scope, module):
                report(
                    target, f"{owner} is an integer tensor, which can't require gradients: this raises RuntimeError."
                )
            return
        if _distance(target.attr, _RIGHT) <= 3 and _is_tensor_or_module(target.value, scope, module):
            report(
                target,
                f"{owner}.{target.attr} is a new attribute that autograd never reads: write requires_grad.",
                fix=_spelt_right(target, node, scope, module),
            )


def _compared(module: Module) -> Iterator[ast.Compare]:
    """Statements such as ``param.requires_grad == False``."""
    if _COMPARED.search(module.source.text):
        for node in ast.walk(module.tree):
            value = node.value if isinstance(node, ast.Expr) else None
            if not isinstance(value, ast.Compare) or not isinstance(value.ops[0], ast.Eq):
                continue
            if isinstance(value.left, ast.Attribute) and value.left.attr == _RIGHT:
                yield value


def _assigned(compared: ast.Compare, module: Module) -> Fix | None:
    statement = statement_of(module.source, compared)
    if statement is None or len(compared.ops) != 1 or not isinstance(compared.ops[0], ast.Eq):
        return None
    left, right = module.source.segment(compared.left), module.source.segment(compared.comparators[0])
    return safe("Assign it", replace_statement(module.source, statement, f"{left} = {right}"))


def _kinds(node: ast.expr, scope: Scope, module: Module) -> set[str]:
    if isinstance(node, ast.Name) and node.id == scope.self_name:
        return set()
    return {made.kind for made in module.instances.makes(node, scope)} - {"none"}


def _is_tensor_or_module(node: ast.expr, scope: Scope, module: Module) -> bool:
    kinds = _kinds(node, scope, module)
    return bool(kinds) and kinds <= {"parameter", "tensor", "module"}


def _is_module(node: ast.expr, scope: Scope, module: Module) -> bool:
    if _kinds(node, scope, module) != {"module"}:
        return False
    for made in module.instances.makes(node, scope):
        cls = made.cls
        if cls is not None and (
            cls.method(_RIGHT) is not None
            or cls.class_attribute(_RIGHT) is not None
            or any(base.scope.self_reads.get(_RIGHT) for base in (cls, *cls.ancestors(_RIGHT)))
        ):
            return False
    return True


def _is_copy(node: ast.expr, scope: Scope, module: Module) -> bool:
    """Whether an expression makes or reads a tensor that nobody else holds."""
    if isinstance(node, ast.Attribute) and node.attr == "data":
        return bool(_kinds(node.value, scope, module) & {"parameter", "tensor"})
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _COPIES:
        return bool(_kinds(node.func.value, scope, module) & {"parameter", "tensor"})
    if isinstance(node, ast.Subscript):
        return _is_state_dict(node.value, scope, module)
    if isinstance(node, ast.Name):
        for binding in module.instances.bindings(scope).get(node.id, ()):
            iterated = binding.value
            if binding.how == "element" and isinstance(iterated, ast.Call) and isinstance(iterated.func, ast.Attribute):
                place = () if iterated.func.attr == "values" else (1,) if iterated.func.attr == "items" else None
                if binding.path == place and _is_state_dict(iterated.func.value, scope, module):
                    return True
    return False


def _is_state_dict(node: ast.expr, scope: Scope, module: Module) -> bool:
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and node.func.attr == "state_dict"
    if isinstance(node, ast.Name):
        values = module.instances.values_of(node, scope)
        return bool(values) and all(isinstance(v, ast.Call) and _is_state_dict(v, scope, module) for v in values)
    return False


# ---------------------------------------------------------------------------------------------------- integers


def _is_true(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def _switched_on(module: Module) -> Iterator[tuple[ast.expr, str]]:
    """Integer tensors that are to require gradients by an argument or by requires_grad_()."""
    for name in ("tensor", "arange", "randint", "randperm", "zeros", "ones", "full", "empty", "eye"):
        for call, scope in module.scope.all_calls(name):
            if any(k.arg == _RIGHT and _is_true(k.value) for k in call.keywords) and _makes_integers(
                call, scope, module
            ):
                yield call, ast.unparse(call.func)
    for call, scope in module.scope.all_calls("requires_grad_"):
        off = [*call.args, *(k.value for k in call.keywords)]
        if isinstance(call.func, ast.Attribute) and all(_is_true(value) for value in off):
            made = call.func.value
            if isinstance(made, ast.Call) and _makes_integers(made, scope, module):
                yield call, ast.unparse(made.func)
            elif isinstance(made, ast.Name) and _is_integer_tensor(made, scope, module):
                yield call, made.id


def _is_integer_tensor(node: ast.expr, scope: Scope, module: Module) -> bool:
    if not isinstance(node, ast.Name):
        return False
    bindings = module.instances.bindings(scope).get(node.id, [])
    return (
        len(bindings) == 1
        and isinstance(bindings[0].value, ast.Call)
        and bindings[0].how == "value"
        and (not bindings[0].path and _makes_integers(bindings[0].value, scope, module))
    )


def _makes_integers(call: ast.Call, scope: Scope, module: Module) -> bool:
    """Whether a call surely makes a tensor of integers."""
    name = module.qualname(call.func, scope)
    if name is None:
        return (
            isinstance(call.func, ast.Attribute)
            and call.func.attr in ("long", "int", "short", "bool")
            and (not call.args and bool(_kinds(call.func.value, scope, module) & {"tensor"}))
        )
    for keyword in call.keywords:
        if keyword.arg == "dtype":
            return name in _FACTORIES | _INTEGER_FACTORIES and module.qualname(keyword.value, scope) in _INTEGERS
    if name in _INTEGER_FACTORIES:
        return True
    if name == "torch.arange":
        return bool(call.args) and all(_is_integer(argument) for argument in call.args)
    if name == "torch.tensor":
        return bool(call.args) and _holds_integers(call.args[0])
    return False


def _is_integer(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp):
        node = node.operand
    return isinstance(node, ast.Constant) and type(node.value) in (int, bool)


def _holds_integers(node: ast.expr) -> bool:
    if isinstance(node, (ast.List, ast.Tuple)):
        return bool(node.elts) and all(_holds_integers(element) for element in node.elts)
    return _is_integer(node)


# ---------------------------------------------------------------------------------------------------- the fix


def _call_instead(target: ast.Attribute, node: ast.Assign, module: Module) -> Fix | None:
    source = module.source
    statement = statement_of(source, target)
    if statement is not node or len(node.targets) != 1:
        return None
    text = f"{source.segment(target.value)}.requires_grad_({source.segment(node.value)})"
    return None if "\n" in text else safe("Call requires_grad_()", replace_statement(source, node, text))


def _spelt_right(target: ast.Attribute, node: ast.Assign, scope: Scope, module: Module) -> Fix | None:
    if _kinds(target.value, scope, module) == {"module"}:
        return _call_instead(target, node, module)
    return safe("Write requires_grad", rename_attribute(module.source, target, _RIGHT))


def _distance(one: str, other: str) -> int:
    """Levenshtein's distance, neighbours swapped counting once."""
    table = [[0] * (len(other) + 1) for _ in range(len(one) + 1)]
    for i in range(len(one) + 1):
        for j in range(len(other) + 1):
            if not i or not j:
                table[i][j] = i + j
                continue
            cost = one[i - 1] != other[j - 1]
            table[i][j] = min(table[i - 1][j] + 1, table[i][j - 1] + 1, table[i - 1][j - 1] + cost)
            if i > 1 and j > 1 and one[i - 1] == other[j - 2] and one[i - 2] == other[j - 1]:
                table[i][j] = min(table[i][j], table[i - 2][j - 2] + 1)
    return table[-1][-1]
