"""TL117 unused-submodule."""

from __future__ import annotations

import ast
import re
from collections import Counter

from torchlint.check import AttributeUse, Check, ClassInfo, Module, ModuleClass, Report, Severity, on

_ITERATING = ("children", "named_children", "modules", "named_modules", "get_submodule", "__getattr__")
_WORD = re.compile(r"\w+")
_KEPT = re.compile(r"#.*\b(compat|checkpoint|legacy|unused|not used|kept|state.?dict|backward)", re.IGNORECASE)


class UnusedSubmodule(Check):
    """A layer is registered in `__init__` and nothing ever uses it: dead weights that are saved, moved and optimized.

    ## Why

    Weights that `forward` never touches get no gradient. DistributedDataParallel stops with "Expected to have finished
    reduction in the prior iteration", and everybody who reads the model looks for where the layer is used.

    ## Bad

        def __init__(self):
            super().__init__()
            self.fc1 = nn.Linear(3, 3)
            self.fc2 = nn.Linear(3, 3)

        def forward(self, x):
            return self.fc1(self.fc1(x))

    ## Good

        def __init__(self):
            super().__init__()
            self.fc1 = nn.Linear(3, 3)
            self.fc2 = nn.Linear(3, 3)

        def forward(self, x):
            return self.fc2(self.fc1(x))

    ## Known limits

    Uses in other files aren't seen, which is why the rule is off unless it is selected. A class that walks over its
    children, reads attributes by computed names, or says in a comment that the layer is kept for old checkpoints is
    left alone.
    """

    code = "TL117"
    name = "unused-submodule"
    severity = Severity.INFO
    failures = ("X-16",)
    mentions = ("def forward",)

    @on(ModuleClass)
    def check(self, cls: ClassInfo, report: Report) -> None:
        if cls.method("forward") is None or not _is_in_sight(cls) or _reads_by_computed_name(cls):
            return
        for name in cls.written_attributes:
            uses = cls.writes(name)
            first = uses[0]
            if first.method.name != "__init__" or not all(_is_layer(use, cls) for use in uses):
                continue
            if not _is_used(cls, name) and not _is_kept_on_purpose(first, cls):
                report(
                    first.node,
                    f"Nothing uses self.{name}: its weights are saved and optimized for nothing, and "
                    "DistributedDataParallel stops at them.",
                )


def _is_layer(use: AttributeUse, cls: ClassInfo) -> bool:
    """Whether a layer with parameters is made and assigned."""
    if not isinstance(use.value, ast.Call):
        return False
    made = cls.module.instances.makes(use.value, use.scope)
    return bool(made) and all(m.kind == "module" and m.fresh and m.home.has_parameters(m) is True for m in made)


def _is_in_sight(cls: ClassInfo) -> bool:
    """Whether all methods that could use a layer are read: every base but nn.Module itself is a class at hand."""
    return all(
        isinstance(base, ClassInfo)
        or (base is not None and (base == "torch.nn.Module" or base.partition(".")[0] in ("abc", "builtins", "typing")))
        for base in cls.mro
    )


def _is_used(cls: ClassInfo, name: str) -> bool:
    """Whether the name stands anywhere else in the files of the class and its bases, in code or in a string."""
    own = cls.module
    others = {base.module for base in cls.ancestors()} - {own}
    return _words(own)[name] > len(cls.writes(name)) or any(name in _words(module) for module in others)


def _words(module: Module) -> Counter[str]:
    """How often each word stands in a file."""
    key = ("words",)
    if key not in module.memo:
        module.memo[key] = Counter(_WORD.findall(module.source.text))
    return module.memo[key]  # type: ignore[no-any-return]


def _is_kept_on_purpose(use: AttributeUse, cls: ClassInfo) -> bool:
    lines = cls.module.source.lines
    return any(_KEPT.search(line) for line in lines[max(use.node.lineno - 2, 0) : use.node.end_lineno])


def _reads_by_computed_name(cls: ClassInfo) -> bool:
    for base in (cls, *cls.ancestors()):
        if any(any(base.scope.all_calls(name)) for name in _ITERATING) or "__getattr__" in base.methods:
            return True
        for call, _ in base.scope.all_calls("getattr"):
            if len(call.args) > 1 and not isinstance(call.args[1], ast.Constant):
                return True
        if base.scope.self_reads.get("_modules") or base.scope.self_reads.get("__dict__"):
            return True
    return False
