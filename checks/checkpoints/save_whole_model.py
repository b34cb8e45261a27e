"""TL701 save-whole-model."""

from __future__ import annotations

import ast

from torchlint.check import (
    Applicability,
    Call,
    Check,
    ClassInfo,
    Event,
    ModeChange,
    Object,
    Report,
    Severity,
    Symbol,
    Trace,
    Value,
    is_module_factory,
    module_class,
    on,
)

from .common import saved, written
from .loading import saved_as_state

_MODULES_ALONE = frozenset(
    f"torch.nn.Module.{name}"
    for name in (
        *("train", "eval", "parameters", "named_parameters", "modules", "named_modules", "children", "named_children"),
        *("buffers", "named_buffers", "requires_grad_", "register_forward_hook"),
    )
)
"""Methods whose receiver can be nothing but a module."""


class SaveWholeModel(Check):
    """`torch.save` is given a module instead of its state dict: the file holds the path to the class, not the class.

    ## Why

    Pickling a module writes its tensors and the name under which its class was imported. When the class is renamed,
    moved or edited, or the file is read in another project, loading raises `ModuleNotFoundError` or "Can't get
    attribute"; and since torch 2.6 torch.load refuses such a file unless `weights_only=False` lets it run any code.

    ## Bad

        torch.save(model, "model.pt")
        torch.save({"epoch": epoch, "net": net}, "checkpoint.pt")

    ## Good

        torch.save(model.state_dict(), "model.pt")
        torch.save({"epoch": epoch, "net": net.state_dict()}, "checkpoint.pt")

    ## Known limits

    Reported where the value is known to be a module: it is built in the file, annotated as one, or its train(),
    eval() or parameters() is called. Scripted, exported and quantized models are left alone. The fix is unsafe: what
    loads the file must build the model and give it the state dict.
    """

    code = "TL701"
    name = "save-whole-model"
    severity = Severity.WARNING
    fixable = Applicability.UNSAFE
    failures = ("T-G1", "L-13")
    mentions = ("save",)

    @on(Trace)
    def check(self, trace: Trace, report: Report) -> None:
        """Look at what each torch.save of the trace gets."""
        modules: set[Value] = set()
        quantized: set[Value] = set()
        built: set[ast.AST] = set()
        saves: list[Call] = []
        event: Event
        for event in trace.root.events(again=True):
            if isinstance(event, ModeChange):
                modules.add(event.target)
            elif isinstance(event, Call):
                if event.name == "torch.save" and event.frame.module is report.module:
                    saves.append(event)
                elif event.name in _MODULES_ALONE and event.receiver is not None:
                    modules.add(event.receiver)
                elif "quantiz" in event.name:
                    quantized.update(event.arguments)
                elif is_module_factory(event.name):
                    built.add(event.node)
        for call in saves:
            for key, value in saved(call):
                if _is_module(call, value, modules, built) and value not in quantized:
                    _tell(call, key, value, report)
                    break


def _is_module(call: Call, value: Value, modules: set[Value], built: set[ast.AST]) -> bool:
    """Whether a value is a module: an instance of one, or something that is used, made or annotated as one."""
    if isinstance(value, Object):
        return value.is_module is True
    if value in modules or not isinstance(value, Symbol):
        return value in modules
    if value.origin == "result":
        return value.node in built
    if value.annotation is None:
        return False
    declared = call.module.project.definition(value.annotation, call.module)
    if isinstance(declared, ClassInfo):
        return declared.is_module is True
    return module_class(value.annotation) is not None


def _tell(call: Call, key: str | None, value: Value, report: Report) -> None:
    expression = written(call, key)
    text = call.module.source.segment(expression) if expression is not None else ""
    name = text if text.isidentifier() or text.replace(".", "").isidentifier() else "the model"
    cls = value.cls.name if isinstance(value, Object) and value.cls is not None else "its class"
    where = "" if key is None else f' under "{key}"' if key else " in a list"
    report(
        call.node.func if isinstance(call.node, ast.Call) else call.node,
        f"This pickles {name} as a whole{where}: the file can be read only where {cls} can be imported from the same "
        f"place, and only with weights_only=False; save {name}.state_dict().",
        fix=saved_as_state(call.module, expression, key, value)
        if isinstance(expression, (ast.Name, ast.Attribute))
        else None,
    )
