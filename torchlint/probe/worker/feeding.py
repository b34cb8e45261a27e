"""Settling what a model is fed: what was told, what the project makes itself, or what inference finds."""

from __future__ import annotations

import inspect
import linecache
import re
from typing import Any

import torch
from torch import nn

from . import evidence
from .building import Broken, Builder, Built, Target, import_target, resolve
from .diagnosis import diagnose, is_shape_error, mismatch
from .inference import BATCH, Found, Guess, Outcome, Trials, infer, needs_values, run_model, shown
from .registry import Problem
from .sites import USER, definition_site, error_site
from .specs import Spec, TensorSpec, from_json
from .subject import Feed, Options, Subject
from .values import tensors

# A forward pass beyond these (operations, bytes of all results) is run on fake tensors only.
REAL_OPERATIONS = 200_000_000_000
REAL_BYTES = 12_000_000_000


class NoInput(Exception):
    """Nothing was found that forward accepts: a fault of the model (``problem``), or a question to the user."""

    def __init__(self, problem: Problem | None, reason: str, found: Found | None = None, code: str = "TP103") -> None:
        super().__init__(reason)
        self.problem = problem
        self.reason = reason
        self.code = code
        self.shown = [shown(found.guess)] if found is not None else []
        self.why = [f"{name}: {text}" for name, text in found.guess.why] if found is not None else []
        self.trials = found.trials if found is not None else 0


def find_feed(target: Target, builder: Builder, built: Built, options: Options) -> tuple[Subject, list[str]]:
    """A subject with inputs, and the reasons for them. Raises NoInput."""
    if options.inputs_from:
        return Subject(target, builder, built, options, _made_by_project(options.inputs_from, options.batch)), [
            f"made by {options.inputs_from}"
        ]
    told = _bind_told(built.model, options)
    if told is not None and _covers(built.model, told):
        keywords = {name for name, _ in _keyword_only(built.model)}
        keywords |= {name for name, _ in options.inputs if name is not None}
        guess = Guess(tuple(told.items()), tuple((name, "told") for name in told))
        return Subject(target, builder, built, options, Feed(guess, keywords)), ["told"]
    example = getattr(built.model, "example_input_array", None) if not told else None
    if example is not None and any(True for _ in tensors(example)):
        return Subject(target, builder, built, options, Feed(None, set(), _as_arguments(example))), [
            "the model's example_input_array"
        ]
    # Trial runs may leave traces in a model (caches, running statistics), so they have one of their own.
    rehearsal = built if built.is_fake else builder.build(options.seed)
    found = infer(rehearsal, told or {}, [])
    if not found.ok:
        dummy = _dummy_inputs(rehearsal.model)
        if dummy is not None:
            return Subject(target, builder, built, options, Feed(None, set(), dummy)), ["the model's dummy_inputs"]
        fitting = _other_batch(rehearsal, found) or _other_batch(rehearsal, found, unbatched=True)
        if fitting is None:
            raise _no_input(target, builder, built, options, found, told or {})
        found, batch = fitting
        subject = Subject(target, builder, built, options, Feed(found.guess, found.keywords), needs_batch=batch)
    else:
        subject = Subject(target, builder, built, options, Feed(found.guess, found.keywords))
    if found.cost is not None and (found.cost.operations > REAL_OPERATIONS or found.cost.bytes > REAL_BYTES):
        # It could be built, but to run it two dozen times would take minutes or all memory: fake tensors must do.
        subject.built = builder.build_fake(options.seed)
    subject.memo["trials"] = found.trials
    return subject, [f"{name.lstrip('*')}: {text}" for name, text in found.guess.why]


def _keyword_only(model: nn.Module) -> list[tuple[str, inspect.Parameter]]:
    named, _ = evidence.forward_parameters(model)
    return [(name, parameter) for name, parameter in named.items() if parameter.kind is parameter.KEYWORD_ONLY]


def _bind_told(model: nn.Module, options: Options) -> dict[str, Spec] | None:
    """The told inputs by the names of forward's parameters."""
    if not options.inputs:
        return None
    named, _ = evidence.forward_parameters(model)
    positional = [name for name, parameter in named.items() if parameter.kind is not parameter.KEYWORD_ONLY]
    told: dict[str, Spec] = {}
    for index, (name, data) in enumerate(options.inputs):
        key = name or (positional[index] if index < len(positional) else f"*input{index}")
        told[key] = from_json(data)
    return told


def _covers(model: nn.Module, told: dict[str, Spec]) -> bool:
    named, _ = evidence.forward_parameters(model)
    required = [name for name, parameter in named.items() if parameter.default is parameter.empty]
    return all(name in told for name in required)


def _as_arguments(value: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(value, dict):
        return (), dict(value)
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], dict) and isinstance(value[0], tuple):
        return value[0], dict(value[1])
    if isinstance(value, tuple):
        return value, {}
    return (value,), {}


def _dummy_inputs(model: nn.Module) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    try:
        dummy = getattr(model, "dummy_inputs", None)
    except Exception:
        return None
    if not isinstance(dummy, dict) or not any(True for _ in tensors(dummy)):
        return None
    batch = _as_arguments(dummy)
    with torch.no_grad():
        outcome = run_model(model, *batch)
    return batch if outcome.error is None else None


def _made_by_project(name: str, size: int) -> Feed:
    """The batch that a function of the project makes: a tensor, a tuple of arguments, or a dict of keywords."""
    value = load(name)
    try:
        if callable(value):
            takes = [p for p in inspect.signature(value).parameters.values() if p.default is p.empty]
            value = value(size) if takes else value()
    except Exception as error:
        problem = Problem(f"{name} fails: {type(error).__name__}: {error}", error_site(error))
        raise NoInput(problem, "the inputs can't be made") from error
    if isinstance(value, list):
        value = tuple(value)
    return Feed(None, set(), _as_arguments(value))


def load(name: str) -> Any:
    """What ``package.module:attribute`` or ``file.py:attribute`` stands for. Raises NoInput."""
    place, _, attribute = name.partition(":")
    is_file = place.endswith(".py")
    bare, _, call = attribute.partition("(")
    target = Target(name, place if is_file else None, None if is_file else place, bare, f"({call}" if call else None)
    try:
        module = import_target(target)
        value = resolve(module, target)
        return eval(f"value{target.call}", {**vars(module), "value": value}) if target.call else value
    except Broken as broken:
        raise NoInput(Problem(broken.message, broken.site), "it can't be loaded") from broken


def _other_batch(rehearsal: Built, found: Found, unbatched: bool = False) -> tuple[Found, int] | None:
    """A batch size that the model can run with where two samples fail: a literal one, as in ``view(32, -1)``."""
    trials = Trials(rehearsal)
    if unbatched:
        return None
    numbers: list[int] = []
    for frame_site in [error_site(found.outcome.error)] if found.outcome.error else []:
        if frame_site is not None:
            line = linecache.getline(frame_site.file, frame_site.row)
            numbers += [int(text) for text in re.findall(r"(?<![\w.-])\d+(?![\w.])", line)]
    numbers += [int(text) for text in re.findall(r"(?<![\w.-])\d+(?![\w.])", found.outcome.message)]
    numbers += [4, 8, 16, 32, 64]
    for batch in dict.fromkeys(number for number in numbers if 0 < number <= 128 and number != BATCH):
        outcome = trials.run(found.guess, found.keywords, batch)
        if outcome.error is None:
            return Found(found.guess, outcome, found.keywords, batch, found.trials + trials.count), batch
        if trials.count > 14:
            break
    return None


def _no_input(
    target: Target, builder: Builder, built: Built, options: Options, found: Found, told: dict[str, Spec]
) -> NoInput:
    """A fault where the failure doesn't hang on the inputs; a question where it may."""
    outcome = found.outcome
    model = built.model
    problem = diagnose(outcome, model, built.construction, model)
    site = definition_site(type(model).forward) or definition_site(type(model)) or definition_site(built.made_by)
    if problem.site is None:
        problem.site = site
    if is_fault(outcome, model, found.guess) or (told and options.inputs):
        problem.details.append(f"with {shown(found.guess)} and {found.trials - 1} other inputs that were tried")
        return NoInput(problem, "forward fails", found)
    ask = _ask(model, found)
    message = f"no input was found that forward accepts, after {found.trials} trials; {ask}"
    last = f"closest was {shown(found.guess)}: {problem.message}"
    if not options.named:
        return NoInput(None, f"{message}; {last}", found)
    return NoInput(Problem(message, site, last, details=problem.details), "no input found", found)


def _ask(model: nn.Module, found: Found) -> str:
    named, _ = evidence.forward_parameters(model)
    required = [name for name, parameter in named.items() if parameter.default is parameter.empty]
    flags = " ".join(f"--input '{name}=float32[...]'" for name in required) or "--input ..."
    return f"tell it with {flags}"


def is_fault(outcome: Outcome, model: nn.Module, guess: Guess) -> bool:
    """Whether a failed forward proves a fault of the model, rather than that it wants other inputs.

    It does where the exception isn't about inputs at all, or where layers with weights had already taken the input
    and a later one disagrees with what they made of it.
    """
    error = outcome.error
    if is_out_of_memory(error):
        return True
    if needs_values(error) or _refuses(error):
        return False
    if isinstance(error, (NameError, SystemExit, EOFError, ImportError, NotImplementedError)):
        return True
    if isinstance(error, AttributeError):
        return "Tensor" not in str(error) and "NoneType" not in str(error) and _of_module(error)
    calls = outcome.layers.calls
    done = sum(1 for call in calls if call.finished and any(True for _ in call.module.parameters(recurse=False)))
    failed = outcome.layers.failed
    # Sizes that were guessed as plain numbers may be what disagrees with the tensors.
    if any(not isinstance(spec, TensorSpec) for _, spec in guess.specs):
        return False
    if failed is not None and done and mismatch(failed) is not None:
        return True
    if len(guess.specs) > 2:
        return False
    if isinstance(error, (RuntimeError, ValueError, IndexError, TypeError)) and done:
        return is_shape_error(error) or isinstance(error, (RuntimeError, TypeError))
    return isinstance(error, RuntimeError) and not is_shape_error(error)


def _refuses(error: BaseException | None) -> bool:
    """Whether the model's own code raised the exception on purpose: a condition it sets, not an accident."""
    trace = error.__traceback__ if error is not None else None
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return False
    file, row = trace.tb_frame.f_code.co_filename, trace.tb_lineno
    return file in USER and linecache.getline(file, row).strip().startswith(("raise", "assert"))


def is_out_of_memory(error: BaseException | None) -> bool:
    """Whether an allocation failed."""
    return isinstance(error, MemoryError) or "allocate memory" in str(error) or "out of memory" in str(error)


def _of_module(error: AttributeError) -> bool:
    holder = getattr(error, "obj", None)
    return isinstance(holder, nn.Module) or "object has no attribute" in str(error)
