"""One worker's work: for each target import, build, find inputs, then run the checks one after the other.

Everything is told as soon as it is known, and what is about to run is told before it runs: when the process dies, the
launcher knows which check it died in, and starts another worker for the rest.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import os
import time
import types
from collections.abc import Iterator
from typing import IO, Any

import torch

from .building import Broken, Builder, Built, Needs, Target, describe, import_target, models_in, quiet_defaults
from .channel import Channel
from .feeding import NoInput, find_feed
from .names import NAMES
from .registry import NotAsked, Problem, Skip, in_order, problem_json, site_json
from .sites import definition_site, error_site
from .subject import Options, Subject, seed_all
from .table import layer_table

from . import (  # noqa: F401  isort: skip  (each registers its checks)
    running,
    state,
    devices,
    precision,
    batches,
    gradients,
    training,
    functions,
    memory,
    exporting,
    checkpoints,
    datasets,
)


class Session:
    """Serves one request."""

    def __init__(self, request: dict[str, Any], channel: Channel, crashes: IO[str]) -> None:
        self.channel = channel
        self.crashes = crashes
        self.targets = [
            (Target.from_json(entry), Options.from_json(entry.get("options", {}))) for entry in request["targets"]
        ]
        self.timeout = float(request.get("timeout") or 60)
        self.skip = {(label, code) for label, code in request.get("skip", [])}
        self.dead = set(request.get("dead", []))
        self.threads = request.get("threads")

    def run(self) -> None:
        """Probe every target of the request that isn't finished."""
        # A batch of two keeps no more than half of the cores busy; more threads only wait for one another.
        torch.set_num_threads(int(self.threads or max(1, (os.cpu_count() or 2) // 2)))
        for target, options in self.targets:
            if target.label in self.dead:
                continue
            with quiet_defaults():
                if target.name is None:
                    self._expand(target, options)
                else:
                    self._probe(target, options)

    # ---- one step, told before and after, under the clock

    @contextlib.contextmanager
    def _step(self, label: str, code: str, what: str) -> Iterator[None]:
        self.channel.send("start", target=label, code=code, name=NAMES.get(code, ""), what=what)
        self.crashes.seek(0, 2)
        # The stack of a step that hangs is written by a thread that needs no lock of Python's; then the process ends.
        faulthandler.dump_traceback_later(self.timeout, exit=True, file=self.crashes)
        try:
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()

    def _tell(
        self, label: str, code: str, status: str, problems: list[Problem], reason: str = "", seconds: float = 0
    ) -> None:
        self.channel.send(
            "check",
            target=label,
            code=code,
            name=NAMES.get(code, ""),
            status=status,
            reason=reason,
            problems=[problem_json(problem) for problem in problems],
            seconds=round(seconds, 3),
        )

    # ---- files and modules

    def _expand(self, target: Target, options: Options) -> None:
        """Probe every model that a file or module defines; those that need arguments are listed with them."""
        with self._step(target.label, "TP101", "importing"):
            module = self._import(target)
        if module is None:
            return
        models = models_in(module)
        if options.named and not models:
            self._tell(target.label, "TP101", "failed", [Problem(f"{module.__name__} defines no nn.Module")])
        for name, value in models:
            label = f"{target.label}:{name}"
            if label in self.dead:
                continue
            part = Target(label, target.file, target.module, name)
            needs = Builder(part, module).needs()
            self.channel.send(
                "model", target=target.label, label=label, needs=needs, site=site_json(definition_site(value))
            )
            if not needs:
                part_options = Options(**{**vars(options), "named": False})
                self._probe(part, part_options, module)

    def _import(self, target: Target) -> types.ModuleType | None:
        started = time.perf_counter()
        try:
            module = import_target(target)
        except Broken as broken:
            problem = Problem(broken.message, broken.site, broken.hint)
            self._tell(target.label, "TP101", "failed", [problem], seconds=time.perf_counter() - started)
            return None
        self._tell(target.label, "TP101", "passed", [], seconds=time.perf_counter() - started)
        return module

    # ---- one model

    def _probe(self, target: Target, options: Options, module: types.ModuleType | None = None) -> None:
        if not _has_device(options.device):
            self._tell(target.label, "TP103", "error", [], f"there is no device {options.device!r} here")
            self._finish(target)
            return
        if module is None:
            with self._step(target.label, "TP101", "importing"):
                module = self._import(target)
        if module is None:
            self._finish(target)
            return
        builder, built = self._build(target, options, module)
        if builder is not None and built is not None:
            subject = self._feed(target, options, builder, built)
            if subject is not None:
                self._checks(subject)
        self._finish(target)

    def _finish(self, target: Target) -> None:
        # Modules are full of cycles; the next model may need the memory.
        gc.collect()
        self.channel.send("finished", target=target.label)

    def _build(self, target: Target, options: Options, module: types.ModuleType) -> tuple[Builder | None, Built | None]:
        started = time.perf_counter()
        try:
            with self._step(target.label, "TP102", "building the model"):
                builder = Builder(target, module, options.arguments)
                built = builder.build(options.seed)
        except Needs as needs:
            flag = ", ".join(f"{name}=..." for name in needs.names)
            problem = Problem(
                f"the constructor needs {_listed(needs.names)}: give them as '{target.label}({flag})'",
                needs.site,
                "or as `arguments` of the target in the configuration",
            )
            self._tell(target.label, "TP102", "failed", [problem], "needs arguments", time.perf_counter() - started)
            return None, None
        except Broken as broken:
            problem = Problem(broken.message, broken.site, broken.hint)
            self._tell(target.label, broken.code, "failed", [problem], seconds=time.perf_counter() - started)
            return None, None
        self._tell(target.label, "TP102", "passed", [], built.said, time.perf_counter() - started)
        self._tell_built(target, built)
        return builder, built

    def _tell_built(self, target: Target, built: Built) -> None:
        parameters = sum(p.numel() for p in {id(p): p for p in built.model.parameters()}.values())
        self.channel.send(
            "built",
            target=target.label,
            model=type(built.model).__name__,
            parameters=parameters,
            fake=built.is_fake,
            site=site_json(definition_site(type(built.model)) or definition_site(built.made_by)),
        )

    def _feed(self, target: Target, options: Options, builder: Builder, built: Built) -> Subject | None:
        """The subject with inputs that its forward accepts; tells TP103 where there are none."""
        started = time.perf_counter()
        try:
            with self._step(target.label, "TP103", "running forward"):
                subject, why = find_feed(target, builder, built, options)
        except NoInput as none:
            status = "failed" if none.problem is not None else "skipped"
            problems = [none.problem] if none.problem is not None else []
            code = none.code
            self._tell(target.label, code, status, problems, none.reason, time.perf_counter() - started)
            self.channel.send(
                "inputs", target=target.label, shown=none.shown, why=none.why, trials=none.trials, ok=False
            )
            return None
        except Exception as error:
            self._tell(target.label, "TP103", "error", [], f"the probe itself failed: {describe(error)}")
            return None
        if subject.is_fake and not built.is_fake:
            self._tell_built(target, subject.built)
        self.channel.send(
            "inputs",
            target=target.label,
            shown=subject.feed.shown(),
            why=why,
            ok=True,
            trials=subject.memo.get("trials", 0),
            batch=subject.batch,
        )
        return subject

    def _checks(self, subject: Subject) -> None:
        label, options = subject.target.label, subject.options
        blocked = ""
        for code, check in in_order():
            if options.select and code not in options.select:
                continue
            if (label, code) in self.skip:
                continue
            started = time.perf_counter()
            if blocked:
                self._tell(label, code, "skipped", [], blocked)
                continue
            opposite = {"train": "eval", "eval": "train"}.get(check.mode)
            if opposite and options.mode == opposite:
                self._tell(label, code, "skipped", [], f"--{opposite} asks for {opposite} mode only")
                continue
            if subject.is_fake and not check.on_fake:
                self._tell(
                    label,
                    code,
                    "skipped",
                    [],
                    "the model is too large to be built for real; fake tensors carry no values",
                )
                continue
            status, reason, problems = "passed", "", []
            try:
                with self._step(label, code, check.name), quiet_defaults():
                    seed_all(options.seed)
                    problems = list(check.function(subject))
            except Skip as skip:
                status, reason = "not asked" if isinstance(skip, NotAsked) else "skipped", str(skip)
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                place = error_site(error)
                if place is not None:
                    # The project's code fails where this check needs it to run; the check that is about that says so.
                    status, reason = "skipped", f"the model fails at line {place.row}: {describe(error)}"
                else:
                    status, reason = "error", f"the check itself failed: {describe(error)}"
                    self.channel.send("trouble", target=label, code=code, text=_traceback(error))
            reason = reason or subject.memo.get(f"said:{code}", "")
            problems, same = _unreported(subject, code, problems)
            if problems or same:
                status = "failed"
                reason = reason if problems else f"the same fault as {same}"
            self._tell(label, code, status, problems, reason, time.perf_counter() - started)
            if code == "TP103" and status == "failed":
                blocked = "forward fails (TP103)"
            if code == "TP103" and not blocked:
                with contextlib.suppress(Exception):
                    self.channel.send("table", target=label, **layer_table(subject))


def _has_device(name: str) -> bool:
    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError, NotImplementedError):
        return False
    return True


def _unreported(subject: Subject, code: str, problems: list[Problem]) -> tuple[list[Problem], str]:
    """The problems whose cause no earlier check has reported, and the check that reported one of the others."""
    fresh, same = [], ""
    for problem in problems:
        known = subject.causes.get(problem.cause) if problem.cause else None
        if known is not None and known != code:
            same = known
            continue
        if problem.cause:
            subject.causes[problem.cause] = code
        fresh.append(problem)
    return fresh, same


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names[:-1]) + (" and " if len(names) > 1 else "") + names[-1]


def _traceback(error: BaseException) -> str:
    import traceback

    return "".join(traceback.format_exception(type(error), error, error.__traceback__))[-4000:]
