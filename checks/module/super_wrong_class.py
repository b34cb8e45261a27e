"""TL112 super-wrong-class."""

from __future__ import annotations

import ast

from torchlint.check import Applicability, Check, ClassInfo, Imported, ModuleClass, Report, Severity, on
from torchlint.source.edits import replace, safe


class SuperWrongClass(Check):
    """A copied `super(Other, self)` names a class that this one doesn't derive from.

    It raises "super(type, obj): obj must be an instance or subtype of type" when the first object is made.

    ## Why

    The first argument of `super` must be the class that the method stands in, or a class that it derives from. Python 3
    needs neither argument.

    ## Bad

        class Decoder(nn.Module):
            def __init__(self):
                super(Encoder, self).__init__()

    ## Good

        class Decoder(nn.Module):
            def __init__(self):
                super().__init__()

    ## Known limits

    `super(Parent, self)` with a class that this one does derive from skips that class on purpose and is left alone. A
    class with a base that can't be found is left alone.
    """

    code = "TL112"
    name = "super-wrong-class"
    severity = Severity.ERROR
    fixable = Applicability.SAFE
    failures = ("T-D1",)
    calls = ("super",)

    @on(ModuleClass)
    def check(self, cls: ClassInfo, report: Report) -> None:
        for method in cls.methods.values():
            for call in method.scope.calls.get("super", ()):
                if len(call.args) == 2 and _is_foreign(cls, call.args[0], method.scope.self_name, call.args[1]):
                    named = ast.unparse(call.args[0])
                    report(
                        call,
                        f"super({named}, ...) inside {cls.name}, which doesn't derive from {named}: it will raise "
                        "TypeError. Write super().",
                        fix=safe("Write super()", replace(cls.module.source, call, "super()")),
                    )


def _is_foreign(cls: ClassInfo, named: ast.expr, self_name: str | None, instance: ast.expr) -> bool:
    """Whether a class is known to be neither ``cls`` nor one that it derives from."""
    if not isinstance(instance, ast.Name) or instance.id != self_name:
        return False
    if isinstance(named, ast.Name) and named.id == cls.name:
        return False
    if any(base is None for base in cls.mro):
        return False
    module = cls.module
    found = module.definition(named, cls.scope.parent)
    if isinstance(found, ClassInfo):
        return not any(isinstance(base, ClassInfo) and base.node is found.node for base in cls.mro)
    if isinstance(found, Imported):
        name = module.project.canonical(found.qualname, module)
        answers = {module.project.external_derives(base, name) for base in cls.mro if isinstance(base, str)}
        return name.startswith("torch.") and answers <= {False}
    return found is None and isinstance(named, ast.Name) and _is_unbound(named.id, cls)


def _is_unbound(name: str, cls: ClassInfo) -> bool:
    """Whether nothing in the file binds a name."""
    module = cls.module
    scope = cls.scope.parent
    while scope is not None:
        if name in scope.stores:
            return False
        scope = scope.parent
    stars = any(
        alias.name == "*" for node in ast.walk(module.tree) if isinstance(node, ast.ImportFrom) for alias in node.names
    )
    return module.lookup(name) is None and not stars
