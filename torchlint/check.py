"""What a check is made of. A check imports from torchlint only what this module offers.

A check is a class with a docstring (its page), a code, a name, and methods marked with ``@on(Kind)``. ``Kind`` says
what the method wants to see: a whole file (``Module``), a class (``ModuleClass``, ``FunctionClass``,
``DatasetClass``, ``AnyClass``), a function (``FunctionInfo``), an event of what the program does (``InPlaceChange``,
``Backward``, ...: those that stand in this file, second passes of loops included), or a whole ``Trace``. The method
gets the thing and ``report``.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, TypeVar

from torchlint.finding import Applicability, Edit, Finding, Fix, Position, RuleInfo, Severity
from torchlint.program.classes import AttributeUse, ClassInfo, base_derives, is_super_call
from torchlint.program.events import (
    Accumulate,
    AttributeStore,
    Backward,
    Block,
    Call,
    ClipGrad,
    Event,
    GradRead,
    InferenceTensorSaved,
    InPlaceChange,
    LossCall,
    ModeChange,
    ModuleCall,
    OptimizerMade,
    OptimizerStep,
    ParametersUsed,
    Return,
    ScalerCall,
    SchedulerStep,
    TensorOp,
    Trace,
    UnknownCall,
    ZeroGrad,
)
from torchlint.program.index import Scope, last_name
from torchlint.program.instances import Instances, Made
from torchlint.program.interest import EVALUATION_NAME
from torchlint.program.machine import Frame
from torchlint.program.module import Assigned, FunctionInfo, Imported, Module
from torchlint.program.values import (
    Array,
    Bound,
    Class,
    Compiled,
    Const,
    Context,
    Dict,
    External,
    Function,
    Loader,
    Object,
    Optimizer,
    Parameters,
    Partial,
    Scaler,
    Scheduler,
    Sequence,
    StateDict,
    Symbol,
    Tensor,
    Value,
)
from torchlint.torchapi import operations
from torchlint.torchapi.modules import module_class

__all__ = [
    "EVALUATION_NAME",
    "Accumulate",
    "AnyClass",
    "Applicability",
    "Array",
    "Assigned",
    "AttributeStore",
    "AttributeUse",
    "Backward",
    "Block",
    "Bound",
    "Call",
    "Check",
    "Class",
    "ClassInfo",
    "ClipGrad",
    "Compiled",
    "Const",
    "Context",
    "DatasetClass",
    "Dict",
    "Edit",
    "Event",
    "External",
    "Fix",
    "Frame",
    "Function",
    "FunctionClass",
    "FunctionInfo",
    "GradRead",
    "Imported",
    "InPlaceChange",
    "InferenceTensorSaved",
    "Instances",
    "Loader",
    "LossCall",
    "Made",
    "ModeChange",
    "Module",
    "ModuleCall",
    "ModuleClass",
    "Object",
    "Optimizer",
    "OptimizerMade",
    "OptimizerStep",
    "Parameters",
    "ParametersUsed",
    "Partial",
    "Position",
    "Report",
    "Return",
    "Scaler",
    "ScalerCall",
    "Scheduler",
    "SchedulerStep",
    "Scope",
    "Sequence",
    "Severity",
    "StateDict",
    "Symbol",
    "Tensor",
    "TensorOp",
    "Trace",
    "UnknownCall",
    "Value",
    "ZeroGrad",
    "base_derives",
    "is_module_factory",
    "is_super_call",
    "last_name",
    "module_class",
    "on",
    "operations",
    "returns_evaluating_module",
    "spelled",
]


@functools.cache
def is_module_factory(qualname: str) -> bool:
    """Whether calling a function of another package gives an nn.Module of a class that it chooses."""
    from torchlint.torchapi.third_party import is_module_factory

    return is_module_factory(qualname)


@functools.cache
def returns_evaluating_module(qualname: str) -> bool:
    """Whether the module that a function of another package gives is in eval mode already."""
    from torchlint.torchapi.third_party import returns_evaluating_module

    return returns_evaluating_module(qualname)


def spelled(node: ast.AST | None) -> str:
    """The user's own words for an expression, shortened."""
    text = ast.unparse(node) if isinstance(node, ast.expr) else ""
    return text if len(text) <= 60 else f"{text[:57]}..."


class AnyClass:
    """Kind: every class of the file."""


class ModuleClass:
    """Kind: every class of the file that is known to derive from nn.Module."""


class FunctionClass:
    """Kind: every class of the file that is known to derive from torch.autograd.Function."""


class DatasetClass:
    """Kind: every class of the file that is known to derive from torch.utils.data.Dataset."""


_F = TypeVar("_F", bound=Callable[..., None])


def on(*kinds: type) -> Callable[[_F], _F]:
    """Mark a method of a check as wanting to see every thing of these kinds."""

    def mark(method: _F) -> _F:
        method.kinds = kinds  # type: ignore[attr-defined]
        return method

    return mark


class Check:
    """One rule.

    ``mentions``: the file's text must hold one of these strings, or the file must call one of the names in ``calls``
    (their last part counts), or the check is not run on it (both empty: always).
    ``failures``: catalogue ids of what the user would have met. ``fixable``: what its fixes are, or None.
    """

    code: ClassVar[str]
    name: ClassVar[str]
    severity: ClassVar[Severity]
    fixable: ClassVar[Applicability | None] = None
    failures: ClassVar[tuple[str, ...]] = ()
    mentions: ClassVar[tuple[str, ...]] = ()
    calls: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def handlers(cls) -> Iterator[tuple[type, str]]:
        """Each kind that the check wants to see, with the method's name."""
        for name, method in vars(cls).items():
            for kind in getattr(method, "kinds", ()):
                yield kind, name

    @classmethod
    def info(cls) -> RuleInfo:
        """The rule's card; the docstring's first paragraph is its summary."""
        page = _dedent(cls.__doc__ or "")
        return RuleInfo(cls.code, cls.name, cls.severity, cls.fixable, page.split("\n\n")[0], page, cls.failures)


def _dedent(text: str) -> str:
    first, _, rest = text.strip().partition("\n")
    lines = rest.split("\n")
    indents = [len(line) - len(line.lstrip()) for line in lines if line.strip()]
    cut = min(indents, default=0)
    return "\n".join([first, *(line[cut:].rstrip() for line in lines)]).strip()


class Report:
    """Takes what one check has to say about one file."""

    def __init__(self, check: Check, module: Module, findings: list[Finding]) -> None:
        self.check = check
        self.module = module
        self.findings = findings
        self._said: set[tuple[Position, int | None]] = set()

    def __call__(
        self,
        node: ast.AST | tuple[Position, Position],
        message: str,
        *,
        help: str = "",
        fix: Fix | None = None,
        severity: Severity | None = None,
    ) -> None:
        """Report a fault at a node (or at a span of the file's text). The same fault at the same place counts once."""
        source = self.module.source
        start, end = node if isinstance(node, tuple) else source.span(node)
        placed = source.cell(start.row)
        noqa_row = end.row if isinstance(node, tuple) else getattr(node, "end_lineno", None) or start.row
        cell = None
        if placed is not None:
            cell, row = placed
            shift = start.row - row
            start, end = Position(row, start.column), Position(end.row - shift, end.column)
        check = self.check
        if (start, cell) in self._said:
            return
        self._said.add((start, cell))
        self.findings.append(
            Finding(
                code=check.code,
                name=check.name,
                message=message,
                severity=severity or check.severity,
                filename=source.filename,
                location=start,
                end_location=end,
                help=help,
                failure=check.failures[0] if check.failures else "",
                fix=fix,
                cell=cell,
                noqa_row=noqa_row,
            )
        )


_Handler = Callable[[Any, Report], None]

_CLASS_KINDS: dict[type, Callable[[ClassInfo], bool | None]] = {
    AnyClass: lambda c: True,
    ModuleClass: lambda c: c.is_module,
    FunctionClass: lambda c: c.is_autograd_function,
    DatasetClass: lambda c: c.is_dataset,
}


def _grouped(pairs: Iterable[tuple[str, Check]]) -> dict[str, set[Check]]:
    table: dict[str, set[Check]] = {}
    for word, check in pairs:
        table.setdefault(word, set()).add(check)
    return table


class Runner:
    """Runs a fixed set of checks over files; made once a run.

    ``failed`` is told of a check that raised: the check and the exception. The others go on.
    """

    def __init__(self, checks: Iterable[type[Check]]) -> None:
        self._checks = [each() for each in checks]
        self._handlers: dict[type, list[tuple[Check, _Handler]]] = {}
        for check in self._checks:
            for kind, method in check.handlers():
                self._handlers.setdefault(kind, []).append((check, getattr(check, method)))
        self._event_kinds = [kind for kind in self._handlers if issubclass(kind, (Event, Trace))]
        self._class_kinds = [(test, kind) for kind, test in _CLASS_KINDS.items() if kind in self._handlers]
        self._always = {check for check in self._checks if not check.mentions and not check.calls}
        self._calling = _grouped((name, check) for check in self._checks for name in check.calls)
        mentioning = _grouped((word, check) for check in self._checks for word in check.mentions)
        words = sorted(mentioning, key=len)  # a word is not looked for where a part of it is missing
        self._words = [(w, [part for part in words if part in w and part != w], mentioning[w]) for w in words]

    def run(self, module: Module, failed: Callable[[Check, Exception], None]) -> list[Finding]:
        """All findings of the checks on one file, in no particular order."""
        file = _FileRun(module, failed, self._handlers, self._concerned(module))
        file.tell(Module, module)
        for test, kind in self._class_kinds:
            if file.handlers(kind):
                for cls in module.classes:
                    if test(cls):
                        file.tell(kind, cls)
        if file.handlers(FunctionInfo):
            for function in module.functions:
                file.tell(FunctionInfo, function)
        if any(file.handlers(kind) for kind in self._event_kinds):
            self._follow(module, file)
        return file.findings

    def _concerned(self, module: Module) -> set[Check]:
        """The checks that have a say in a file, told by its words and by the names that it calls."""
        concerned = set(self._always)
        if self._calling:
            for name in self._calling.keys() & module.scope.called:
                concerned |= self._calling[name]
        text = module.source.text
        missing: set[str] = set()
        for word, parts, checks in self._words:
            if checks <= concerned:
                continue
            if missing.isdisjoint(parts) and word in text:
                concerned |= checks
            else:
                missing.add(word)
        return concerned

    def _follow(self, module: Module, file: _FileRun) -> None:
        """Show what the program does: events in the order they happen, then each trace as a whole."""
        from torchlint.program.interpreter import trace_module

        traces = trace_module(module)
        if not traces:
            return
        kinds = {kind for kind in self._event_kinds if file.handlers(kind)}
        if kinds - {Trace}:
            for trace in traces:
                events: Iterator[Event] = trace.root.events(again=True)
                for event in events:
                    if type(event) in kinds and event.frame.module is module:
                        file.tell(type(event), event)
        if Trace in kinds:
            for trace in traces:
                file.tell(Trace, trace)
        for trace in traces:
            trace.release()


class _FileRun:
    """One file's findings as they come, and the checks that have a say in it."""

    def __init__(
        self,
        module: Module,
        failed: Callable[[Check, Exception], None],
        handlers: dict[type, list[tuple[Check, _Handler]]],
        concerned: set[Check],
    ) -> None:
        self.findings: list[Finding] = []
        self._module = module
        self._failed = failed
        self._all = handlers
        self._concerned = concerned
        self._wanted: dict[type, list[tuple[Check, _Handler]]] = {}
        self._reports: dict[Check, Report] = {}

    def handlers(self, kind: type) -> list[tuple[Check, _Handler]]:
        """The methods that want to see things of a kind in this file."""
        wanted = self._wanted.get(kind)
        if wanted is None:
            concerned = self._concerned
            wanted = self._wanted[kind] = [pair for pair in self._all.get(kind, ()) if pair[0] in concerned]
        return wanted

    def tell(self, kind: type, subject: object) -> None:
        """Show a thing to the methods that want to see it."""
        for check, method in self.handlers(kind):
            report = self._reports.get(check)
            if report is None:
                report = self._reports[check] = Report(check, self._module, self.findings)
            try:
                method(subject, report)
            except Exception as error:
                self._concerned.discard(check)
                self._wanted = {}
                self._failed(check, error)
