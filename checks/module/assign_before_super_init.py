"""TL102 assign-before-super-init."""

from __future__ import annotations

import ast

from torchlint.check import Applicability, Check, ClassInfo, Fix, FunctionInfo, ModuleClass, Report, Severity, on
from torchlint.source.edits import move_statement, safe, statement_of

from .common import first_super_init, is_docstring, is_template, reaches_module_init

_REGISTERING = ("register_buffer", "register_parameter", "add_module", "register_module")
_KINDS = {"module": "module", "parameter": "parameters"}


class AssignBeforeSuperInit(Check):
    """A layer or parameter is assigned to `self` before `super().__init__()` has made the place to register it.

    It raises "cannot assign module before Module.__init__() call".

    ## Why

    `nn.Module.__init__` makes the dictionaries that parameters, buffers and submodules are registered in. Numbers,
    strings and other plain attributes may be set before; modules, parameters and buffers may not.

    ## Bad

        def __init__(self, encoder: nn.Module, width: int):
            self.head = nn.Linear(width, 1)
            super().__init__(encoder)

    ## Good

        def __init__(self, encoder: nn.Module, width: int):
            super().__init__(encoder)
            self.head = nn.Linear(width, 1)

    ## Known limits

    Only the first such assignment of an `__init__` is reported. An argument counts as a module when its annotation,
    its default or a call in the same file says so. The fix is left out where the base's `__init__` reads what is set
    before it, or needs a name that is computed in between.
    """

    code = "TL102"
    name = "assign-before-super-init"
    severity = Severity.ERROR
    fixable = Applicability.SAFE
    failures = ("T-D1",)
    mentions = ("__init__",)

    @on(ModuleClass)
    def check(self, cls: ClassInfo, report: Report) -> None:
        init = cls.methods.get("__init__")
        if init is None or _begins_with_super(init) or is_template(cls.module):
            return
        reaching = _first_reaching(cls, init)
        if reaching is None:
            return
        early = _first_early(cls, init, reaching)
        if early is None or cls.method("__setattr__") is not None:
            return
        node, what, kind = early
        report(
            node,
            f'{what} comes before super().__init__(): it will raise "cannot assign {kind} before Module.__init__() '
            'call". Call super().__init__() first.',
            fix=_call_earlier(cls, node, reaching),
        )


def _begins_with_super(init: FunctionInfo) -> bool:
    """Whether the first thing that an ``__init__`` does is to call super's, as nearly all do."""
    call = first_super_init(init)
    first = next((s for s in init.node.body if not is_docstring(s)), None)
    return call is not None and first is not None and call.lineno == first.lineno


def _first_reaching(cls: ClassInfo, init: FunctionInfo) -> ast.Call | None:
    """The first call in ``__init__`` that leads to nn.Module's: of a base's __init__, or of a helper that calls it."""
    found: list[ast.Call] = []
    for call, scope in init.scope.all_calls("__init__"):
        if (
            isinstance(call.func, ast.Attribute)
            and reaches_module_init(call.func.value, init.module, scope) is not False
        ):
            found.append(call)
    for name, calls in init.scope.calls.items():
        of_self = [call for call in calls if _is_on_self(call, init)]
        helper = cls.method(name) if of_self and name != "__init__" else None
        if helper is not None and any(helper.scope.all_calls("__init__")):
            found += of_self
    return min(found, key=lambda call: (call.lineno, call.col_offset), default=None)


def _is_name(node: ast.expr, name: str | None) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _first_early(cls: ClassInfo, init: FunctionInfo, reaching: ast.Call) -> tuple[ast.expr, str, str] | None:
    """Where ``__init__`` first registers something too early: the node, what it does, and of which kind."""
    early: list[tuple[ast.expr, str, str]] = []
    for name in cls.written_attributes:
        for use in cls.writes(name):
            if use.method is init.scope and use.scope is init.scope and use.node.lineno < reaching.lineno:
                kind = _registered_kind(cls, use.value, init) if use.value is not None else None
                if kind is not None:
                    early.append((use.node, f"self.{name} = ...", kind))
    for method in _REGISTERING:
        for call in init.scope.calls.get(method, ()):
            if call.lineno < reaching.lineno and _is_on_self(call, init) and cls.method(method) is None:
                early.append((call, f"self.{method}(...)", "buffer" if "buffer" in method else "module"))
    for name, calls in init.scope.calls.items():
        before = [call for call in calls if call.lineno < reaching.lineno and _is_on_self(call, init)]
        helper = cls.method(name) if before else None
        attribute = _registered_by(helper) if helper is not None and helper is not init else None
        if attribute is not None:
            early += [(call, f"self.{name}(), which sets self.{attribute},", "module") for call in before]
    return min(early, key=lambda found: (found[0].lineno, found[0].col_offset), default=None)


def _is_on_self(call: ast.Call, init: FunctionInfo) -> bool:
    return isinstance(call.func, ast.Attribute) and _is_name(call.func.value, init.scope.self_name)


def _registered_by(helper: FunctionInfo) -> str | None:
    """The first attribute that a helper sets to a layer or parameter it makes."""
    for attribute in helper.cls.written_attributes if helper.cls is not None else ():
        for use in helper.cls.writes(attribute) if helper.cls is not None else ():
            if use.method is helper.scope and use.value is not None:
                made = helper.module.instances.makes(use.value, use.scope)
                if any(m.kind in _KINDS and m.fresh for m in made):
                    return attribute
    return None


def _registered_kind(cls: ClassInfo, value: ast.expr, init: FunctionInfo) -> str | None:
    for made in cls.module.instances.makes(value, init.scope):
        if made.kind in _KINDS:
            return _KINDS[made.kind]
    return None


# ---------------------------------------------------------------------------------------------------- the fix


def _call_earlier(cls: ClassInfo, early: ast.expr, reaching: ast.Call) -> Fix | None:
    """Move the statement that calls the base's ``__init__`` in front of the first that needs it."""
    source = cls.module.source
    init = cls.methods["__init__"].node
    base_init = statement_of(source, reaching)
    first = next((s for s in init.body if s.lineno <= early.lineno <= (s.end_lineno or 0)), None)
    if not isinstance(base_init, ast.Expr) or base_init.value is not reaching or first is None:
        return None
    if base_init not in init.body:
        return None
    me = init.args.args[0].arg if init.args.args else ""
    between = init.body[init.body.index(first) : init.body.index(base_init)]
    given = reaching.args[1:] if reaching.args and _is_name(reaching.args[0], me) else reaching.args
    arguments = [n for argument in (*given, *reaching.keywords) for n in ast.walk(argument)]
    needed = {n.id for n in arguments if isinstance(n, ast.Name)}
    inside = [n for statement in between for n in ast.walk(statement)]
    stored = {n.id for n in inside if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    if me in needed or needed & stored:
        return None
    set_before = {
        n.attr
        for n in inside
        if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store) and _is_name(n.value, me)
    }
    if any(set_before & base.scope.self_reads.keys() for base in cls.ancestors(*set_before)):
        return None
    return safe("Call super().__init__() first", move_statement(source, base_init, "before", first))
