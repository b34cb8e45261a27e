"""TL107 parameter-overwritten."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchlint.check import AttributeUse, Check, ClassInfo, Module, ModuleClass, Report, Scope, Severity, on


class ParameterOverwritten(Check):
    """A plain tensor is assigned to an attribute that holds an `nn.Parameter`, which `nn.Module` refuses.

    It raises "cannot assign 'torch.FloatTensor' as parameter 'w' (torch.nn.Parameter or None expected)".

    ## Why

    Once a name is registered as a parameter, only another `nn.Parameter` or None may be assigned to it: a plain tensor
    would silently drop out of the optimizer and the checkpoint.

    ## Bad

        def update(self, returns):
            self.mean = 0.9 * self.mean + 0.1 * returns.mean(0)

    ## Good

        @torch.no_grad()
        def update(self, returns):
            self.mean.mul_(0.9).add_(returns.mean(0), alpha=0.1)

    What isn't trained at all belongs into `register_buffer`.

    ## Known limits

    The attribute must be a parameter in every case, and the value surely a tensor. Code that deletes the attribute
    first, or that handles `_parameters` itself, is left alone.
    """

    code = "TL107"
    name = "parameter-overwritten"
    severity = Severity.ERROR
    failures = ("T-D2",)
    mentions = ("nn", "weight", "Parameter")

    @on(ModuleClass)
    def check_class(self, cls: ClassInfo, report: Report) -> None:
        for name, writes in cls.written_attributes.items():
            if (len(writes) < 2 or not _calls_parameter(cls)) and all(scope.name == "__init__" for _, scope in writes):
                continue  # nothing overwrites here what this class has made: the bases needn't be asked
            if not _is_made_parameter(cls, name):
                continue
            uses = cls.writes(name)
            if len(uses) + len(list(_inherited_writes(cls, name))) < 2 or not _is_always_parameter(cls, name):
                continue
            for use in uses:
                if use.value is not None and _makes_tensor(use.value, use.scope, cls.module) and _comes_later(cls, use):
                    self._report(use.node, f"self.{name}", name, report)

    @on(Module)
    def check_outside(self, module: Module, report: Report) -> None:
        for scope in module.scope.walk():
            for node in scope.of_type(ast.Assign):
                for target in node.targets:  # type: ignore[attr-defined]
                    if not isinstance(target, ast.Attribute):
                        continue
                    if isinstance(target.value, ast.Name) and target.value.id == scope.self_name:
                        continue
                    if target.attr not in ("weight", "bias") and not any(
                        _makes_parameter(cls, target.attr) for cls in _writers(module).get(target.attr, ())
                    ):
                        continue
                    if not _makes_tensor(node.value, scope, module):  # type: ignore[attr-defined]
                        continue
                    if _is_parameter_of(target, scope, module):
                        self._report(target, ast.unparse(target), target.attr, report)

    def _report(self, node: ast.expr, spelling: str, name: str, report: Report) -> None:
        report(
            node,
            f'{spelling} is an nn.Parameter: assigning a plain tensor raises "cannot assign ... as parameter '
            f"'{name}'\". Change it in place under torch.no_grad(), or assign nn.Parameter(...).",
        )


def _writers(module: Module) -> dict[str, list[ClassInfo]]:
    """The classes of a file by the attributes that their methods write."""
    memo = module.memo
    if "writers" not in memo:
        table: dict[str, list[ClassInfo]] = {}
        for cls in module.classes:
            for name in cls.written_attributes:
                table.setdefault(name, []).append(cls)
        memo["writers"] = table
    return memo["writers"]  # type: ignore[no-any-return]


def _is_made_parameter(cls: ClassInfo, name: str) -> bool:
    """Whether something called Parameter is assigned to the attribute, by the looks of it."""
    return _makes_parameter(cls, name) or any(_makes_parameter(base, name) for base in cls.ancestors(name))


def _makes_parameter(cls: ClassInfo, name: str) -> bool:
    """Whether the class's own methods do."""
    for use in cls.writes(name) if _calls_parameter(cls) else ():
        value = use.value
        if isinstance(value, ast.Call) and isinstance(value.func, (ast.Name, ast.Attribute)):
            last = value.func.attr if isinstance(value.func, ast.Attribute) else value.func.id
            if "Param" in last:
                return True
    return False


def _calls_parameter(cls: ClassInfo) -> bool:
    """Whether the class calls something whose name says Parameter."""
    key = ("calls parameter", cls.node)
    memo = cls.module.memo
    if key not in memo:
        memo[key] = any("Param" in name for scope in cls.scope.walk() for name in scope.calls)
    return memo[key]  # type: ignore[no-any-return]


def _makes_tensor(value: ast.expr, scope: Scope, module: Module) -> bool:
    if isinstance(value, (ast.Constant, ast.JoinedStr)):
        return False
    found = module.instances.makes(value, scope)
    return bool(found) and all(made.kind == "tensor" for made in found)


def _inherited_writes(cls: ClassInfo, name: str) -> Iterator[AttributeUse]:
    for base in cls.ancestors(name):
        yield from base.writes(name)


def _is_always_parameter(cls: ClassInfo, name: str) -> bool:
    """Whether every ``__init__`` that sets the attribute sets it to a parameter, and nothing takes it away again."""
    found = False
    for base in (cls, *cls.ancestors()):
        if base.method("__setattr__") is not None or name in base.methods or name in base.class_attributes:
            return False
        for use in base.writes(name):
            if isinstance(use.node.ctx, ast.Del):
                return False
            if use.method.name != "__init__" or use.value is None:
                continue
            kinds = {made.kind for made in base.module.instances.makes(use.value, use.scope)}
            if kinds == {"parameter"}:
                found = found or not _is_in_branch(use)
            elif not kinds <= {"tensor", "parameter"} or _is_in_branch(use):
                return False
        if any(base.scope.self_reads.get(hidden) for hidden in ("_parameters", "_buffers")):
            return False
        for call, _ in base.module.instances.registrations(base):
            if any(isinstance(a, ast.Constant) and a.value == name for a in call.args):
                return False
        if any(True for _ in base.scope.all_calls("delattr")):
            return False
    return found


def _is_in_branch(use: AttributeUse) -> bool:
    return use.method.enclosing(use.node, ast.If, ast.Try, ast.IfExp, ast.Match) is not None


def _comes_later(cls: ClassInfo, use: AttributeUse) -> bool:
    """Whether the attribute is a parameter by the time of a write."""
    if use.method.name != "__init__":
        return True
    for other in cls.writes(use.node.attr):
        if other.method is use.method and other.node.lineno < use.node.lineno and other.value is not None:
            made = cls.module.instances.makes(other.value, other.scope)
            if made and all(m.kind == "parameter" for m in made):
                return True
    return False


def _is_parameter_of(target: ast.Attribute, scope: Scope, module: Module) -> bool:
    """Whether an attribute of something other than self is a parameter of a layer or of a class of the project."""
    owners = module.instances.makes(target.value, scope)
    if not owners or not all(made.kind == "module" for made in owners):
        return False
    for made in owners:
        if made.cls is not None:
            if not _is_always_parameter(made.cls, target.attr):
                return False
        elif not made.home.has_parameter(made, target.attr):
            return False
    return True
