"""Working out what to feed a model when nobody tells: trial runs, corrected by what torch's messages ask for.

Trials run without a graph and in eval mode; a large model runs on fake tensors, where a trial costs no arithmetic
and no memory. The search is best-first: the trial that got furthest into the model is corrected first. It is bounded
in trials and in time.
"""

from __future__ import annotations

import ast
import heapq
import inspect
import linecache
import re
import textwrap
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any

import torch
from torch import nn

from . import evidence
from .building import Built, fake_like, new_fake_mode
from .specs import DictSpec, ListSpec, Spec, TensorSpec, ValueSpec, to_text
from .tracing import LayerTrace, OpTrace
from .values import make, map_tensors, tensors

MAX_TRIALS = 60
MAX_SECONDS = 25.0
# Up to this many bytes of parameters a trial on real tensors is as fast as one on fake ones, and its messages exact.
REAL_TRIAL = 80_000_000
BATCH = 2


@dataclass(frozen=True)
class Guess:
    """One specification per parameter, by name, and why each was chosen."""

    specs: tuple[tuple[str, Spec], ...]
    why: tuple[tuple[str, str], ...] = ()

    def spec(self, name: str) -> Spec | None:
        """The specification of one parameter."""
        return dict(self.specs).get(name)

    def tensors(self) -> list[tuple[str, TensorSpec]]:
        """The parameters that are tensors, or lists of like tensors (by their first)."""
        found = []
        for name, spec in self.specs:
            if isinstance(spec, ListSpec) and spec.items:
                spec = spec.items[0]
            if isinstance(spec, TensorSpec):
                found.append((name, spec))
        return found

    def with_spec(self, name: str, spec: Spec, why: str) -> Guess:
        """The guess with one parameter changed or added."""
        specs, reasons = dict(self.specs), dict(self.why)
        old = specs.get(name)
        if isinstance(old, ListSpec) and isinstance(spec, TensorSpec) and old.items:
            spec = ListSpec((spec,) * len(old.items), old.as_tuple)
        specs[name] = spec
        # Of several corrections of one kind the last is the one that counts.
        kept = [part for part in reasons.get(name, "").split("; ") if part and part.split()[:3] != why.split()[:3]]
        reasons[name] = "; ".join([*kept, why])
        return Guess(tuple(specs.items()), tuple(reasons.items()))


@dataclass
class Outcome:
    """What came of one run of a model."""

    output: Any
    error: BaseException | None
    layers: LayerTrace
    ops: OpTrace

    @property
    def progress(self) -> int:
        """How far it got: operations done."""
        return self.ops.count

    @property
    def message(self) -> str:
        """The exception's text."""
        return str(self.error) if self.error is not None else ""


def run_model(model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], *, grad: bool = False) -> Outcome:
    """Call a model once and note its layers and operations. Exceptions of any kind but Ctrl-C are the outcome."""
    layers = LayerTrace(model)
    ops = OpTrace(layers)
    output, error = None, None
    try:
        with torch.set_grad_enabled(grad), layers.recording(), ops:
            output = model(*args, **kwargs)
    except KeyboardInterrupt:
        raise
    except BaseException as caught:
        error = caught
    return Outcome(output, error, layers, ops)


class Trials:
    """Runs guesses on a model that was built for this and is thrown away afterwards."""

    def __init__(self, built: Built) -> None:
        self.model = built.model.eval()
        size = sum(p.numel() * p.element_size() for p in self.model.parameters())
        self.on_fake = built.is_fake or size > REAL_TRIAL
        self._fake_mode = built.fake_mode
        self._twins: dict[str, torch.Tensor] = {}
        if self.on_fake and not built.is_fake:
            self._fake_mode = new_fake_mode()
            state = {**dict(self.model.named_parameters()), **dict(self.model.named_buffers())}
            self._twins = {name: fake_like(tensor, self._fake_mode) for name, tensor in state.items()}
        self.count = 0

    def run(self, guess: Guess, keywords: set[str], batch: int = BATCH) -> Outcome:
        """One trial."""
        self.count += 1
        generator = torch.Generator().manual_seed(0)
        args, kwargs = arguments(guess, keywords, lambda spec: make(spec, batch, generator))
        if not self.on_fake:
            return run_model(self.model, args, kwargs)
        outcome = self._run_fake(args, kwargs)
        if self._twins and needs_values(outcome.error):
            # What forward reads has to be there: from here on the trials are real.
            self.on_fake = False
            return run_model(self.model, args, kwargs)
        return outcome

    def _run_fake(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Outcome:
        mode = self._fake_mode
        args, kwargs = map_tensors((args, kwargs), lambda tensor: fake_like(tensor, mode))
        with mode:
            if not self._twins:
                return run_model(self.model, args, kwargs)
            return run_model(_Swapped(self.model, self._twins), args, kwargs)


_NEEDS_VALUES = re.compile(
    r"DataDependentOutput|DynamicOutputShape|UnsupportedFakeTensor|UnsupportedOperator|DataDependentSymNode"
    r"|not supported for tensor subclasses|Cannot access data pointer|data pointer of|item\(\) (?:on|cannot)"
)


def needs_values(error: BaseException | None) -> bool:
    """Whether a run failed because fake tensors have no values, which says nothing about the model."""
    return error is not None and bool(_NEEDS_VALUES.search(f"{type(error).__name__}: {error}"))


class _Swapped(nn.Module):
    """A model that runs with other tensors in the place of its parameters and buffers."""

    def __init__(self, model: nn.Module, state: dict[str, torch.Tensor]) -> None:
        super().__init__()
        self.__dict__["inner"] = model
        self.__dict__["state"] = state

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the model on the other tensors."""
        from torch.func import functional_call

        return functional_call(self.__dict__["inner"], self.__dict__["state"], args, kwargs)

    def named_modules(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, nn.Module]]:
        """The inner model's."""
        inner: nn.Module = self.__dict__["inner"]
        yield from inner.named_modules(*args, **kwargs)


def arguments(
    guess: Guess, keywords: set[str], make_one: Callable[[Spec], Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Positional and keyword arguments for a guess."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for name, spec in guess.specs:
        if name in keywords or (kwargs and not name.startswith("*")):
            kwargs[name] = make_one(spec)
        else:
            args.append(make_one(spec))
    return tuple(args), kwargs


@dataclass
class Found:
    """The end of a search: the guess that ran, or the best one that didn't, and how it went."""

    guess: Guess
    outcome: Outcome
    keywords: set[str]
    batch: int
    trials: int
    tried: list[str] = field(default_factory=list)
    places: set[tuple[str, str]] = field(default_factory=set)

    cost: Cost | None = None

    @property
    def ok(self) -> bool:
        """Whether the model ran."""
        return self.outcome.error is None


@dataclass(frozen=True)
class Cost:
    """What one forward pass takes: floating point operations, and bytes of all results together."""

    operations: int
    bytes: int


class _Counting(OpTrace):
    """Adds up the sizes of all results."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0

    def after(self, op: Any, args: Any, kwargs: Any, output: Any, seen: Any) -> None:
        """Count what an operation made."""
        self.bytes += sum(t.numel() * t.element_size() for _, t in tensors(output))


def _cost(trials: Trials, guess: Guess, keywords: set[str]) -> Cost | None:
    """The cost of a forward pass, counted on fake tensors; None where it can't be."""
    from torch.utils.flop_counter import FlopCounterMode

    counting, operations = _Counting(), FlopCounterMode(display=False)
    try:
        with operations, counting:
            if trials.run(guess, keywords).error is not None:
                return None
    except Exception:
        return None
    return Cost(operations.get_total_flops(), counting.bytes)


def infer(built: Built, told: dict[str, Spec], first_guesses: list[Guess]) -> Found:
    """Search for inputs that the model's forward accepts, starting from what the model says of itself."""
    trials = Trials(built)
    model = trials.model
    hints = evidence.gather_hints(model, built.arguments)
    parameters, takes_more = evidence.forward_parameters(model)
    keywords = {name for name, p in parameters.items() if p.kind is p.KEYWORD_ONLY}
    search = _Search(trials, model, hints, parameters, keywords, told)
    for guess in first_guesses:
        search.add(guess, 0)
    for guess in _starting_guesses(model, hints, parameters, takes_more, told):
        search.add(guess, 0)
    found = search.run()
    if found.ok and trials.on_fake and not built.is_fake:
        found.cost = _cost(trials, found.guess, keywords)
    return found


def _starting_guesses(
    model: nn.Module,
    hints: evidence.Hints,
    parameters: dict[str, inspect.Parameter],
    takes_more: bool,
    told: dict[str, Spec],
) -> Iterator[Guess]:
    """The best alternative of every required parameter together, then one parameter's next alternative at a time."""
    configured = _from_config(model, hints, parameters)
    if configured is not None:
        yield configured
    sizes: dict[str, int] = {}
    choices: dict[str, list[evidence.Alternative]] = {}
    for name, parameter in parameters.items():
        if name in told:
            choices[name] = [evidence.Alternative(told[name], "told")]
        elif parameter.default is parameter.empty:
            choices[name] = evidence.alternatives_for(model, name, parameter, hints, sizes)
    for name, spec in told.items():
        choices.setdefault(name, [evidence.Alternative(spec, "told")])
    if not choices:
        optional = [name for name in parameters if name not in choices]
        yield Guess(())
        if optional and not takes_more:
            first = optional[0]
            for alternative in evidence.alternatives_for(model, first, parameters[first], hints, sizes)[:4]:
                yield Guess(((first, alternative.spec),), ((first, alternative.why),))
        if takes_more:
            leaf = evidence.first_leaf(model)
            fallback = evidence.from_consumer(leaf, hints) if leaf else []
            for alternative in [*fallback, *evidence.generic(hints)]:
                yield Guess((("*input", alternative.spec),), (("input", alternative.why),))
                yield Guess(
                    (("*input", alternative.spec), ("*input2", alternative.spec)), (("input", alternative.why),)
                )
        return
    best = {name: options[0] for name, options in choices.items()}
    yield _guess(best)
    longest = max(len(options) for options in choices.values())
    similar = [name for name, options in choices.items() if len(options) > 1 and name not in told]
    for index in range(1, longest):
        # Like parameters move together first: two images, two sequences.
        if len(similar) > 1:
            yield _guess({n: o[min(index, len(o) - 1)] if n in similar else o[0] for n, o in choices.items()})
        for name, options in choices.items():
            if index < len(options):
                yield _guess({**best, name: options[index]})


def _guess(chosen: dict[str, evidence.Alternative]) -> Guess:
    return Guess(
        tuple((name, alternative.spec) for name, alternative in chosen.items()),
        tuple((name, alternative.why) for name, alternative in chosen.items()),
    )


def _from_config(model: nn.Module, hints: evidence.Hints, parameters: dict[str, inspect.Parameter]) -> Guess | None:
    """By the conventions of transformers and timm: main_input_name with config, default_cfg's input_size."""
    default_cfg = getattr(model, "default_cfg", None) or getattr(model, "pretrained_cfg", None)
    size = default_cfg.get("input_size") if isinstance(default_cfg, dict) else None
    first = next(iter(parameters), None)
    if first and isinstance(size, (tuple, list)):
        return Guess(((first, TensorSpec(tuple(size))),), ((first, "default_cfg's input_size"),))
    name = getattr(model, "main_input_name", None)
    if not isinstance(name, str) or name not in parameters or not hasattr(model, "config"):
        return None
    why = f"the model's main_input_name is {name!r}"
    vocabulary = hints.number(evidence.VOCABULARY)
    if "pixel" in name or "image" in name:
        space = hints.sizes(evidence.SIZES, 2)
        spec = TensorSpec((evidence.channels(hints), *(space[0] if space else (224, 224))))
        return Guess(((name, spec),), ((name, f"{why}, sizes from its config"),))
    if name == "input_values":
        return Guess(((name, TensorSpec((16000,))),), ((name, f"{why}: a second of sound"),))
    if name == "input_features":
        mels = hints.number(["num_mel_bins", "input_feat_per_channel", "n_mels", "feature_size"])
        frames = hints.number(["max_source_positions"])
        shape = (mels[0] if mels else 80, 2 * frames[0] if frames else 3000)
        return Guess(((name, TensorSpec(shape)),), ((name, f"{why}, sizes from its config"),))
    if "id" in name:
        high = vocabulary[0] if vocabulary else 100
        spec = TensorSpec((evidence.LENGTH,), "int64", 0, 0, high)
        return Guess(((name, spec),), ((name, f"{why}, vocab_size is {high}"),))
    return None


# ---- the search


class _Search:
    """Best-first: trials that got far are corrected first; the same guess is never tried twice."""

    def __init__(
        self,
        trials: Trials,
        model: nn.Module,
        hints: evidence.Hints,
        parameters: dict[str, inspect.Parameter],
        keywords: set[str],
        told: dict[str, Spec],
    ) -> None:
        self.trials = trials
        self.model = model
        self.hints = hints
        self.parameters = parameters
        self.keywords = keywords
        self.told = told
        self.flat: dict[str, dict[int, int]] = {}
        self._heap: list[tuple[int, int, int, int, Guess]] = []
        self._seen: set[Any] = set()
        self._order = 0
        self._per_place: dict[tuple[str, str], int] = {}

    def add(self, guess: Guess, progress: int, depth: int = 0) -> None:
        """Put a guess in the queue unless it was there before."""
        for name, spec in self.told.items():
            if guess.spec(name) is not None and guess.spec(name) != spec:
                return
        key = repr(guess.specs)
        if key in self._seen or _too_big(guess):
            return
        self._seen.add(key)
        self._order += 1
        # What a message asked for goes before another start from nothing.
        heapq.heappush(self._heap, (-progress, -min(depth, 1), self._order, depth, guess))

    def run(self) -> Found:
        """Try until one runs, or the trials or the time are used up."""
        started = time.monotonic()
        best: tuple[int, Guess, Outcome] | None = None
        tried: list[str] = []
        places: set[tuple[str, str]] = set()
        while self._heap and self.trials.count < MAX_TRIALS and time.monotonic() - started < MAX_SECONDS:
            _, _, _, depth, guess = heapq.heappop(self._heap)
            outcome = self.trials.run(guess, self.keywords)
            tried.append(shown(guess))
            if outcome.error is None:
                return Found(guess, outcome, self.keywords, BATCH, self.trials.count, tried, places)
            place = (outcome.layers.failed.path if outcome.layers.failed else "", outcome.message[:40])
            places.add(place)
            if best is None or outcome.progress > best[0]:
                best = (outcome.progress, guess, outcome)
            # A fault of the model fails at one place whatever it is fed: after some corrections turn to other guesses.
            self._per_place[place] = self._per_place.get(place, 0) + 1
            if self._per_place[place] >= 14 and self.trials.count >= 30 and outcome.progress == best[0] > 3:
                break
            if depth < 16 and self._per_place[place] <= 14:
                for follow in corrections(guess, outcome, self):
                    self.add(follow, outcome.progress, depth + 1)
        if best is None:
            empty = Guess(())
            best = (0, empty, self.trials.run(empty, self.keywords))
        return Found(best[1], best[2], self.keywords, BATCH, self.trials.count, tried, places)


def shown(guess: Guess) -> str:
    """A guess in the words of ``--input``."""
    return ", ".join(to_text(spec, name.lstrip("*")) for name, spec in guess.specs) or "no arguments"


def _too_big(guess: Guess) -> bool:
    for _, spec in guess.tensors():
        size = 1
        for dim in spec.shape:
            size *= max(dim, 1)
        if size > 40_000_000:
            return True
    return False


# ---- corrections

_CONV_CHANNELS = re.compile(r"expected input\[([\d, ]+)\] to have (\d+) channels, but got (\d+) channels")
_MM = re.compile(
    r"cannot be multiplied \((\d+)x(\d+) and (\d+)x(\d+)\)|reduction dim, but got \[(\d+), (\d+)\] X \[(\d+), (\d+)\]"
)
_BMM = re.compile(r"batch2 tensor to be: \[(\d+), (\d+)\] but got: \[(\d+), (\d+)\]")
_RNN = re.compile(r"input\.size\(-1\) must be equal to input_size\. Expected (\d+), got (\d+)")
_CELL = re.compile(r"input has inconsistent input_size: got (\d+),? expected (\d+)")
_MHA = re.compile(r"embedding dimension of (\d+), but got (\d+)")
_NORM = re.compile(
    r"expected input with shape \[(?:\*, )?([\d, ]+)\], but got input of size (?:torch\.Size\()?\[([\d, ]+)\]"
)
_RUNNING = re.compile(
    r"running_mean should contain (\d+) elements not (\d+)|weight should contain (\d+) elements not (\d+)"
    r"|weight to be a vector of size equal to the number of channels in input, but got weight of shape \[(\d+)\]"
    r" and input of shape \[\d+, (\d+)"
)
_GROUPS = re.compile(r"divisible by num_groups, but got input of shape \[([\d, ]+)\] and num_groups\s*=\s*(\d+)")
_RANK = (
    re.compile(r"Expected (\d)D \(unbatched\) or (\d)D \(batched\) input"),
    re.compile(r"[Ee]xpected (\d)D(?: or (\d)D)? (?:input|tensor)"),
    re.compile(r"expected (\d) dims\. Received \d-dim|Expected (\d)-?D(?:imensional)?"),
    re.compile(r"not enough values to unpack \(expected (\d+), got \d+\)"),
    re.compile(r"too many values to unpack \(expected (\d+)"),
    re.compile(r"input\.dim\(\) = \d+ is not equal to len\(dims\) = (\d+)"),
    re.compile(r"expected a (\d)-D|must be (?:a )?(\d)[dD -]|got \d+ dim\w*,? (?:but )?expected (\d)"),
    re.compile(r"(?:for|of) (\d)D? input|to be (\d)-dimensional|should be (\d)-dimensional|must have (\d) dim"),
)
_MORE_DIMS = re.compile(
    r"too many indices for tensor of dimension (\d)|Dimension out of range \(expected to be in range of \[-(\d)"
    r"|Dimension specified as -?\d+ but tensor has no dimensions"
)
_SMALL = re.compile(
    r"Kernel size can't be greater|Output size is too small|Padding size should be less|more than 1 spatial element"
    r"|more than 1 value per channel|calculated output size|non-zero size|too small|smaller than|should be greater than"
    r"|at least|negative dimension|stride|Input and output sizes should be greater than 0"
    r"|Trying to create tensor with negative"
)
_INTEGER = re.compile(
    r"'indices' to have one of the following scalar types: Long|tensors used as indices must be long"
    r"|[Ee]xpected (?:dtype )?int64"
    r"|one_hot is only applicable to index|Expected dtype int32/int64|scalar type Long but found Float"
    r"|to have scalar type Long"
    r"|expected Long|must be Long|int or long"
)
_FLOAT = re.compile(
    r"Input type \((?:long int|int|unsigned char|bool|long)\) and|same dtype, but got (?:Long|Int|Bool|Byte)"
    r"|not implemented for '(?:Long|Int|Bool|Byte)'"
    r"|expected scalar type Float but found Long|floating point|floating types"
    r"|expected m1 and m2 to have the same dtype, but got: long"
    r"|Found dtype Long but expected Float|expected .*Float.* but (?:got|found) .*Long|with dtype=?(?:torch\.)?int64"
)
_WHOLE = re.compile(
    r"dtype:? (?:torch\.)?int64|[Ll]ong type|torch\.(?:int64|long)[^.]*\. ?Got|must be (?:an? )?(?:long|integer|int64)"
)
_NAMED_SHAPE = re.compile(r"[Ee]xpected (?:input )?shape:? \[([^\]]*)\]")
_BOOL = re.compile(r"(?:only supports|expected|must be|should be)[^.]*bool", re.I)
_BROADCAST = re.compile(
    r"size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\)(?: at non-singleton dimension (\d+))?"
)
_BROADCAST_FAKE = re.compile(
    r"broadcast a dimension of length (\d+) at (-?\d+).*had torch\.Size\(\[([\d, ]*)\]\)"
    r".*broadcastable to \[([\d, ]*)\]",
    re.S,
)
_CAT = re.compile(
    r"must match except in dimension \d+\. (?:Expected size (\d+) but got size (\d+)"
    r"|Expected (\d+) in dimension \d+ but got (\d+))"
)
_RESHAPE = re.compile(r"shape '\[([-\d, ]+)\]' is invalid for input of size (\d+)")
_EINOPS_DIVIDE = re.compile(r"can't divide axis of length (\d+) in chunks of (\d+)")
_EINOPS_LENGTH = re.compile(r"mismatch(?:, |: )(?:\S+ )?(\d+) != (\d+)")
_OUT_OF_RANGE = re.compile(
    r"index out of range in self|index (\d+) is out of bounds for dimension \d+ with size (\d+)|out of bounds"
)
_NUMBERS = re.compile(r"(?<![\w.])\d+(?![\w.]*\.?\d)")


def corrections(guess: Guess, outcome: Outcome, search: _Search) -> list[Guess]:
    """The guesses that a failed trial suggests, the most likely first."""
    error, message = outcome.error, outcome.message
    found: list[Guess] = []
    for rule in _RULES:
        try:
            found.extend(rule(guess, outcome, message, search))
        except (ValueError, IndexError, KeyError, TypeError, AttributeError, ZeroDivisionError, AssertionError):
            # A rule misread a message; the others may still know.
            continue
        if len(found) >= 4:
            break
    if not found and isinstance(error, (TypeError, AttributeError)):
        found.extend(_optional_parameters(guess, outcome, message, search))
    return found[:6]


def _resized(guess: Guess, old: int, new: int, why: str, prefer: str | None = None) -> list[Guess]:
    """Every guess with one dimension of size ``old`` (or all of them) made ``new``."""
    if old == new or new < 1 or new > 100_000:
        return []
    found = []
    names = sorted(guess.tensors(), key=lambda entry: entry[0] != prefer)
    everywhere = guess
    changed = 0
    for name, spec in names:
        for index, size in enumerate(spec.shape):
            if size == old:
                shape = (*spec.shape[:index], new, *spec.shape[index + 1 :])
                found.append(guess.with_spec(name, replace(spec, shape=shape), why))
        if old in spec.shape:
            shape = tuple(new if size == old else size for size in spec.shape)
            changed += 1
            everywhere = everywhere.with_spec(name, replace(spec, shape=shape), why)
    if len(found) > 1:
        found = (
            [everywhere, *found]
            if changed > 1 or len(set(names[0][1].shape)) < len(names[0][1].shape)
            else [*found, everywhere]
        )
    return found


def _layer_inputs(outcome: Outcome) -> set[tuple[int, ...]]:
    shapes = set(outcome.ops.failed.inputs) if outcome.ops.failed else set()
    if outcome.layers.failed:
        shapes.update(outcome.layers.failed.shapes)
    return shapes


def _full_shape(spec: TensorSpec) -> tuple[int, ...]:
    shape = list(spec.shape)
    if spec.batch_dim is not None:
        shape.insert(spec.batch_dim, BATCH)
    return tuple(shape)


def _blamed(
    guess: Guess, outcome: Outcome, kind: Callable[[TensorSpec], bool] | None = None
) -> list[tuple[str, TensorSpec]]:
    """The tensor parameters, those first that reached the failing operation unchanged."""
    shapes = _layer_inputs(outcome)
    entries = [entry for entry in guess.tensors() if kind is None or kind(entry[1])]
    return sorted(entries, key=lambda entry: _full_shape(entry[1]) not in shapes)


def _labels(guess: Guess, outcome: Outcome, message: str, search: _Search) -> list[Guess]:
    """A loss that wants its target as class indices: integers in the shape they have, or one dimension less."""
    if not _WHOLE.search(message) or _INTEGER.search(message):
        return []
    in_range = re.search(r"range \[0, (\d+)", message)
    high = int(in_range[1]) if in_range else 2
    floats = [(name, spec) for name, spec in guess.tensors() if not spec.is_integer]
    found = []
    for name, spec in sorted(floats, key=lambda entry: not re.search(r"label|target|gt|true", entry[0])):
        for shape in dict.fromkeys((spec.shape, spec.shape[1:])):
            found.append(
                guess.with_spec(name, TensorSpec(shape, "int64", spec.batch_dim, 0, high), "class indices are wanted")
            )
    return found[:4]


def _named_shape(guess: Guess, outcome: Outcome, message: str, search: _Search) -> list[Guess]:
    """A message that spells the shape it wants: ``Expected shape: ['B', '2', 'H', 'W']``."""
    match = _NAMED_SHAPE.search(message)
    if not match:
        return []
    parts = [part.strip(" '\"") for part in match[1].split(",") if part.strip(" '\"")]
    actual = re.search(r"(?:[Aa]ctual|[Gg]ot)[^\[]*\[([\d, ]*)\]", message)
    seen = tuple(int(part) for part in actual[1].split(",") if part.strip()) if actual else ()
    if parts and parts[0] == "*":
        parts[0] = "B"
    if not parts or "*" in parts:
        return []
    (wanted, *_) = evidence.from_pattern(" ".join(parts) + " ->", search.hints, f"the message asks for {match[0]}")
    assert isinstance(wanted.spec, TensorSpec)
    # Where the first dimension isn't the batch, points or lines are counted there; few are wanted rarely.
    found = []
    for name, spec in sorted(guess.tensors(), key=lambda entry: _full_shape(entry[1]) != seen):
        if seen and _full_shape(spec) != seen:
            continue
        for batch_dim in dict.fromkeys((wanted.spec.batch_dim, 0 if parts[0] == "N" else wanted.spec.batch_dim)):
            shape = wanted.spec.shape if batch_dim == wanted.spec.batch_dim else wanted.spec.shape[1:]
            found.append(guess.with_spec(name, replace(spec, shape=shape, batch_dim=batch_dim), wanted.why))
    return found


def _to_integer(guess: Guess, outcome: Outcome, message: str, search: _Search) -> list[Guess]:
    if not _INTEGER.search(message):
        return []
    layer = outcome.layers.failed.module if outcome.layers.failed else None
    count = getattr(layer, "num_embeddings", None) or 2
    found = []
    for name, spec in _blamed(guess, outcome, lambda spec: not spec.is_integer):
        shape = (
            spec.shape
            if len(spec.shape) <= 1 and max(spec.shape, default=1) <= 128
            else (evidence.length(search.hints),)
        )
        for option in dict.fromkeys((shape, spec.shape)):
            integer = TensorSpec(option, "int64", spec.batch_dim, 0, count)
            found.append(guess.with_spec(name, integer, f"{_where(outcome)} wants integers below {count}"))
    return found


def _to_float(guess: Guess, outcome: Outcome, message: str, search: _Search) -> list[Guess]:
    if not _FLOAT.search(message):
        return []
    found = []
    for name, spec in _blamed(guess, outcome, lambda spec: spec.is_integer or spec.dtype == "bool"):
        found.append(guess.with_spec(name, TensorSpec(spec.shape, "float32", spec.batch_dim), "floats are wanted"))
    return found


def _to_bool(guess: Guess, outcome: Outcome, message: str, search: _Search) -> list[Guess]:
    if not _BOOL.search(message):
        return []
    entries = sorted(guess.tensors(), key=lambda entry: "mask" not in entry[0])
    return [
        guess.with_spec(name, TensorSpec(spec.shape, "bool", spec.batch_dim), "a boolean mask is wanted")
        for name, spec in entries[:1]
        if spec.dtype != "bool"
    ]


def _conv_channels(guess: Guess, outcome: Outcome, message: str, search: _Search) -> list[Guess]:
    match = _CONV_CHANNELS.search(message)
    if not match:
        return []
    seen = tuple(int(part) for part in match[1].split(","))
    wanted, got = int(match[2]), int(match[3])
    why = f"{_where(outcome)} wants {wanted} channels"
    found = []
    for name, spec in _blamed(guess, outcome):
        full = _full_shape(spec)
        if full == seen and spec.batch_dim == 0:
            found.append(guess.with_spec(name, replace(spec, shape=(wanted, *spec.shape[1:])), why))
        elif seen == (1, *full) or len(seen) > len(full):
            # It was taken for an unbatched input: one dimension short.
            found.append(guess.with_spec(name, replace(spec, shape=(wanted, *spec.shape)), why))
    found.extend(_resized(guess, got, wanted, why))
    found.extend(_factored(guess, got, wanted, why))
    return found


def _factored(guess: Guess, got: int, wanted: int, why: str) -> list[Guess]:
    """A dimension that is a factor of what a layer gets, changed so that the product becomes what it wants."""
    found = []
    for name, spec in guess.tensors():
        for index, size in enumerate(spec.shape):
            if size > 1 and got != size and got % size == 0 and wanted % (got // size) == 0:
                new = wanted // (got // size)
                shape = (*spec.shape[:index], new, *spec.shape[index + 1 :])
                alike = [(n, s) for n, s in guess.tensors() if s.shape == spec.shape]
                if len(alike) > 1:
                    # Two images that are put together: both have half of the channels.
                    together = guess
                    for other, other_spec in alike:
                        together = together.with_spec(other, replace(other_spec, shape=shape), why)
                    found.append(together)
                found.append(guess.with_spec(name, replace(spec, shape=shape), why))
    return found


def _features(guess: Guess, outcome: Outcome, message: str, search: _Search) -> list[Guess]:
    got = wanted = 0
    mm = _MM.search(message)
    if mm:
        numbers = [int(part) for part in mm.groups() if part is not None]
        got, wanted = numbers[1], numbers[2]
    for pattern, order in ((_RNN, (1, 0)), (_CELL, (0, 1)), (_MHA, (1, 0))):
        match = pattern.search(message)
        if match:
            got, wanted = int(match.groups()[order[0]]), int(match.groups()[order[1]])
    running = _RUNNING.search(message)
    if running:
        numbers = [int(part) for part in running.groups() if part is not None]
        got, wanted = (numbers[0], numbers[1]) if "weight to be a vector" not in message else (numbers[1], numbers[0])
    norm = _NORM.search(message)
    if norm:
        shape = [int(part) for part in norm[1].split(",")]
        seen = [int(part) for part in norm[2].split(",")]
        got, wanted = seen[-1], shape[-1]
        if len(shape) > 1:
            return [
                guess.with_spec(name, replace(spec, shape=tuple(shape)), f"{_where(outcome)} normalizes over {shape}")
                for name, spec in _blamed(guess, outcome)[:1]
            ]
    groups = _GROUPS.search(message)
    if groups:
        got, count = int(groups[1].split(",")[1]), int(groups[2])
        wanted = getattr(outcome.layers.failed.module, "num_channels", count) if outcome.layers.failed else count
    if not got or not wanted:
        return []
    why = f"{_where(outcome)} wants {wanted} features"
    found: list[Guess] = []
    blamed = _blamed(guess, outcome)
    for name, spec in blamed:
        if spec.shape and spec.shape[-1] == got:
            found.append(guess.with_spec(name, replace(spec, shape=(*spec.shape[:-1], wanted)), why))
    found.extend(_resized(guess, got, wanted, why))
    found.extend(_factored(guess, got, wanted, why))
    found.extend(_solve(guess, outcome, got, wanted, search))
    if not found:
        for name, spec in blamed:
            shapes: tuple[tuple[int, ...], ...] = ((wanted,), (evidence.length(search.hints), wanted))
            for option in shapes:
                if option != spec.shape:
                    found.append(guess.with_spec(name, TensorSpec(option, batch_dim=spec.batch_dim), why))
    return found


def _solve(guess: Guess, outcome: Outcome, got: int, wanted: int, search: _Search) -> list[Guess]:
    """Find the image or sequence size at which a flattened stack has the wanted number of features.

    The number grows with the size, so a few trials bracket it; where neighbours bracket it, no size fits.
    """
    place = outcome.layers.failed.path if outcome.layers.failed else "?"
    found = []
    for name, spec in guess.tensors():
        rank = len(spec.shape) - 1
        if rank < 1 or spec.is_integer:
            continue
        free = spec.shape[1:] if rank >= 1 else spec.shape
        size = max(free)
        points = search.flat.setdefault(f"{place}/{name}/{spec.shape[0]}", {})
        points[size] = got
        below = [s for s, features in points.items() if features < wanted]
        above = [s for s, features in points.items() if features > wanted]
        ratio = (wanted / got) ** (1 / rank)
        step = max(1, round(size * ratio))
        if below and step <= max(below):
            step = max(below) + 1
        if above and step >= min(above):
            step = min(above) - 1
        if below and above and min(above) - max(below) <= 1:
            continue
        if step in points and below and above:
            step = (max(below) + min(above)) // 2
        candidates = [step]
        if not below or not above:
            candidates += [step + 1, step - 1]
        for candidate in candidates:
            if candidate >= 1 and candidate not in points:
                shape = (spec.shape[0], *(max(1, round(dim * candidate / size)) for dim in free))
                why = f"solved from {place or 'the model'}: {wanted} features need size {candidate}"
                found.append(guess.with_spec(name, replace(spec, shape=shape), why))
                break
    return found


def _reshape(guess: Guess, outcome: Outcome, message: str, search: _Search) -> list[Guess]:
    match = _RESHAPE.search(message)
    if not match:
        return []
    shape = [int(part) for part in match[1].split(",")]
    total = int(match[2])
    known = 1
    for size in shape:
        known *= abs(size) if size > 0 else 1
    if any(size < 0 for size in shape):
        if shape[0] == -1 and len(shape) == 2:
            return _solve(guess, outcome, total // BATCH, shape[1], search)
        known *= max(1, round(total / known))
    return _solve(guess, outcome, total, known, search)


def _rank(guess: Guess, outcome: Outcome, message: str, search: _Search) -> list[Guess]:
    ranks: list[int] = []
    for pattern in _RANK:
        match = pattern.search(message)
        if match:
            numbers = [int(part) for part in match.groups() if part]
            ranks.extend(reversed(numbers) if "batched" in message else numbers)
            break
    more = _MORE_DIMS.search(message)
    blamed = _blamed(guess, outcome)
    if not ranks and more and blamed:
        ranks = [len(_full_shape(blamed[0][1])) + 1, len(_full_shape(blamed[0][1])) + 2]
    found = []
    for rank in ranks:
        for name, spec in blamed:
            found.extend(_with_rank(guess, name, spec, rank, outcome, search))
    return found


def _with_rank(guess: Guess, name: str, spec: TensorSpec, rank: int, outcome: Outcome, search: _Search) -> list[Guess]:
    """The guess with a parameter of another rank (batch counted), its sizes by what the failing layer takes."""
    target = rank - (spec.batch_dim is not None)
    if target == len(spec.shape) or not 0 <= target <= 5:
        return []
    why = f"{_where(outcome)} wants {rank} dimensions"
    layer = outcome.layers.failed
    found = []
    if layer is not None:
        for alternative in evidence.from_consumer(evidence.Consumer(layer.module, layer.path), search.hints):
            if isinstance(alternative.spec, TensorSpec) and len(alternative.spec.shape) == target:
                found.append(guess.with_spec(name, replace(alternative.spec, dtype=spec.dtype, high=spec.high), why))
    channels, size = evidence.channels(search.hints), evidence.IMAGE
    if spec.is_integer:
        shapes = [(evidence.length(search.hints),) * target]
    elif target > len(spec.shape):
        shapes = [(*spec.shape[:-1], *(spec.shape[-1:] * (target - len(spec.shape) + 1)))] if spec.shape else []
        shapes += [(channels, *(size,) * (target - 1)) if target > 1 else (evidence.FEATURES,)]
        shapes += [(evidence.length(search.hints),) * (target - len(spec.shape)) + spec.shape]
    else:
        shapes = [spec.shape[:target], spec.shape[len(spec.shape) - target :]]
    for shape in dict.fromkeys(shapes):
        if len(shape) == target:
            found.append(guess.with_spec(name, replace(spec, shape=shape), why))
    return found


def _grow(guess: Guess, outcome: Outcome, message: str, search: _Search) -> list[Guess]:
    if not _SMALL.search(message):
        return []
    found = []
    for factor in (2, 4):
        grown = guess
        for name, spec in guess.tensors():
            if spec.is_integer and len(spec.shape) == 1 and spec.shape[0] * factor <= 512:
                grown = grown.with_spec(
                    name, replace(spec, shape=(spec.shape[0] * factor,)), "a longer input is wanted"
                )
            elif len(spec.shape) >= 2 and max(spec.shape) * factor <= 1024:
                shape = (spec.shape[0], *(size * factor for size in spec.shape[1:]))
                grown = grown.with_spec(name, replace(spec, shape=shape), f"{_where(outcome)} wants a larger input")
            elif len(spec.shape) == 1 and spec.shape[0] >= 256 and not spec.is_integer:
                grown = grown.with_spec(
                    name, replace(spec, shape=(spec.shape[0] * factor,)), "a longer input is wanted"
                )
        if grown != guess:
            found.append(grown)
    return found


def _divisible(guess: Guess, outcome: Outcome, message: str, search: _Search) -> list[Guess]:
    match = _EINOPS_DIVIDE.search(message) or re.search(r"(\d+)\D{1,40}divisible by\D{1,40}?(\d+)", message)
    if match:
        size, chunk = int(match[1]), int(match[2])
        resized = _resized(guess, size, max(1, round(size / chunk)) * chunk, f"a size divisible by {chunk} is wanted")
        return resized or _usual_sizes(guess)
    if "divisible" not in message:
        return []
    numbers = sorted({int(part) for part in _NUMBERS.findall(message) if 1 < int(part) <= 1024}, reverse=True)
    found = []
    for chunk in numbers[:3]:
        rounded = guess
        for name, spec in guess.tensors():
            shape = (*spec.shape[:1], *(-(-size // chunk) * chunk for size in spec.shape[1:]))
            if len(spec.shape) == 1:
                shape = (-(-spec.shape[0] // chunk) * chunk,)
            if shape != spec.shape:
                rounded = rounded.with_spec(name, replace(spec, shape=shape), f"sizes divisible by {chunk} are wanted")
        if rounded != guess:
            found.append(rounded)
    return [*found, *_usual_sizes(guess)]


def _usual_sizes(guess: Guess) -> list[Guess]:
    """The sizes that image models are made for."""
    found = []
    for size in (224, 256, 448, 32):
        usual = guess
        for name, spec in guess.tensors():
            if len(spec.shape) >= 3 and not spec.is_integer:
                shape = (*spec.shape[:-2], size, size)
                usual = usual.with_spec(name, replace(spec, shape=shape), f"{size} is a usual size")
        if usual != guess:
            found.append(usual)
    return found


def _broadcast(guess: Guess, outcome: Outcome, message: str, search: _Search) -> list[Guess]:
    pairs: list[tuple[int, int]] = []
    match = _BROADCAST.search(message) or _CAT.search(message) or _EINOPS_LENGTH.search(message)
    if match:
        one, other = [int(part) for part in match.groups() if part][:2]
        pairs = [(one, other), (other, one)]
    fake = _BROADCAST_FAKE.search(message)
    if fake:
        left = [int(part) for part in fake[3].split(",") if part.strip()]
        right = [int(part) for part in fake[4].split(",") if part.strip()]
        pairs = [
            pair for a, b in zip(reversed(left), reversed(right), strict=False) if a != b for pair in ((b, a), (a, b))
        ]
    bmm = _BMM.search(message)
    if bmm:
        wanted, got = [int(bmm[1]), int(bmm[2])], [int(bmm[3]), int(bmm[4])]
        pairs = [pair for w, g in zip(wanted, got, strict=False) if w != g for pair in ((g, w), (w, g))]
    found: list[Guess] = []
    for old, new in pairs:
        found.extend(_resized(guess, old, new, f"{_where(outcome)} wants size {new}"))
    for old, new in pairs:
        # A learned table of n + 1 rows: patches and a class token; sizes n*n come from squares.
        found.extend(_resized(guess, old - 1, new - 1, f"{_where(outcome)} wants size {new}"))
        if _near_square(old) and _near_square(new):
            found.extend(_scaled(guess, (new / old) ** 0.5, f"{_where(outcome)} wants {new} positions"))
        elif found == []:
            found.extend(_scaled(guess, new / old, f"{_where(outcome)} wants size {new}"))
    if _CAT.search(message) or (pairs and abs(pairs[0][0] - pairs[0][1]) == 1):
        for multiple in (32, 64, 128):
            found.append(_rounded(guess, multiple))
    return [follow for follow in found if follow != guess]


def _near_square(number: int) -> bool:
    return any(int(n**0.5) ** 2 == n for n in (number, number - 1) if n > 3)


def _scaled(guess: Guess, factor: float, why: str) -> list[Guess]:
    scaled = guess
    for name, spec in guess.tensors():
        if len(spec.shape) >= 2:
            shape = (spec.shape[0], *(max(1, round(size * factor)) for size in spec.shape[1:]))
        elif spec.shape:
            shape = (max(1, round(spec.shape[0] * factor)),)
        else:
            continue
        scaled = scaled.with_spec(name, replace(spec, shape=shape), why)
    return [scaled] if scaled != guess else []


def _rounded(guess: Guess, multiple: int) -> Guess:
    rounded = guess
    for name, spec in guess.tensors():
        if len(spec.shape) >= 2:
            shape = (spec.shape[0], *(-(-size // multiple) * multiple for size in spec.shape[1:]))
            if shape != spec.shape:
                rounded = rounded.with_spec(name, replace(spec, shape=shape), f"sizes divisible by {multiple}")
    return rounded


def _range(guess: Guess, outcome: Outcome, message: str, search: _Search) -> list[Guess]:
    if not _OUT_OF_RANGE.search(message):
        return []
    layer = outcome.layers.failed.module if outcome.layers.failed else None
    count = getattr(layer, "num_embeddings", None)
    match = _OUT_OF_RANGE.search(message)
    if count is None and match and match[2]:
        count = int(match[2])
    found = []
    for name, spec in _blamed(guess, outcome, lambda spec: spec.is_integer):
        for high in (count, 2, 1):
            if high and (spec.high is None or high < spec.high):
                found.append(
                    guess.with_spec(name, replace(spec, low=0, high=high), f"{_where(outcome)} has {high} entries")
                )
                break
    if layer is not None and isinstance(layer, nn.Embedding):
        # A table of positions: the sequence is too long.
        for name, spec in guess.tensors():
            if spec.shape and spec.shape[0] > layer.num_embeddings:
                shape = (layer.num_embeddings, *spec.shape[1:])
                found.append(
                    guess.with_spec(
                        name, replace(spec, shape=shape), f"{_where(outcome)} has {layer.num_embeddings} positions"
                    )
                )
    return found


_UNIT_RANGE = re.compile(
    r"negative entr|non-?negative|must be positive|between 0 and 1|in the range \[0|\[0, 1\]|probabilit"
    r"|values? (?:should|must) be in",
    re.I,
)


def _unit_range(guess: Guess, outcome: Outcome, message: str, search: _Search) -> list[Guess]:
    if not _UNIT_RANGE.search(message):
        return []
    changed = guess
    for name, spec in guess.tensors():
        if not spec.is_integer and spec.dtype != "bool" and spec.high is None:
            changed = changed.with_spec(name, replace(spec, low=0, high=1), "numbers in [0, 1] are wanted")
    return [changed] if changed != guess else []


def _containers(guess: Guess, outcome: Outcome, message: str, search: _Search) -> list[Guess]:
    """A parameter that is indexed by name is a dictionary; one that is unpacked or iterated a list."""
    error = outcome.error
    key = None
    if isinstance(error, KeyError) and error.args and isinstance(error.args[0], str):
        key = error.args[0]
    match = re.search(
        r"indices must be integers or slices, not str|only integers, slices|new\(\): invalid data type 'str'"
        r"|too many dimensions 'str'|can't index.*str",
        message,
    )
    names = _line_names(outcome)
    found: list[Guess] = []
    if key is not None:
        for name, spec in guess.specs:
            if isinstance(spec, DictSpec) and key not in dict(spec.items):
                named = evidence.from_name(key, search.model, search.hints)
                item = named[0].spec if named else evidence.generic(search.hints)[0].spec
                found.append(guess.with_spec(name, DictSpec((*spec.items, (key, item))), f"forward reads {key!r}"))
    elif match or "string indices" in message:
        for name, spec in guess.specs:
            if not isinstance(spec, DictSpec) and (not names or name in names):
                found.append(guess.with_spec(name, DictSpec(()), "forward reads it by name"))
    if isinstance(error, TypeError) and re.search(
        r"iteration over a 0-d tensor|len\(\) of a 0-d|object is not iterable|not subscriptable"
        r"|must be tuple of Tensors|argument 'tensors'",
        message,
    ):
        for name, spec in guess.specs:
            if (isinstance(spec, (TensorSpec, ValueSpec))) and (not names or name in names):
                item = spec if isinstance(spec, TensorSpec) else evidence.generic(search.hints)[0].spec
                found.append(guess.with_spec(name, ListSpec((item, item), True), "forward takes it apart"))
    return found


def _line_names(outcome: Outcome) -> set[str]:
    """The names on the line of source that failed."""
    frame = _last_frame(outcome.error)
    if frame is None:
        return set()
    return set(re.findall(r"[A-Za-z_]\w*", linecache.getline(frame[0].f_code.co_filename, frame[1])))


def _last_frame(error: BaseException | None) -> tuple[FrameType, int] | None:
    """The innermost frame outside torch that an exception came through."""
    trace = error.__traceback__ if error is not None else None
    found = None
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if "torch" + "/nn/" not in file and "/torch/" not in file and "probe/worker" not in file:
            found = (trace.tb_frame, trace.tb_lineno)
        trace = trace.tb_next
    return found


def _optional_parameters(guess: Guess, outcome: Outcome, message: str, search: _Search) -> list[Guess]:
    """A parameter with the default None that the failing line uses: give it a value."""
    if "NoneType" not in message and "None" not in message:
        return []
    names = _line_names(outcome)
    missing = [name for name in search.parameters if guess.spec(name) is None]
    found = []
    for name in sorted(missing, key=lambda name: name not in names):
        alternatives = evidence.alternatives_for(search.model, name, search.parameters[name], search.hints, {})
        for alternative in alternatives[:2]:
            found.append(guess.with_spec(name, alternative.spec, f"forward needs it; {alternative.why}"))
        if len(found) >= 4:
            break
    return found


def _asked_for(guess: Guess, outcome: Outcome, message: str, search: _Search) -> list[Guess]:
    """A message that names a parameter it misses: "You have to specify either input_ids or inputs_embeds"."""
    missing = [name for name in search.parameters if guess.spec(name) is None]
    found = []
    for name in missing:
        if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", message):
            for alternative in evidence.alternatives_for(search.model, name, search.parameters[name], search.hints, {})[
                :2
            ]:
                found.append(guess.with_spec(name, alternative.spec, "forward asks for it"))
    return found[:4]


def _conditions(guess: Guess, outcome: Outcome, message: str, search: _Search) -> list[Guess]:
    """The condition that an assert or a raise stands under, read from its source and evaluated where it failed."""
    last = _last_frame(outcome.error)
    if last is None:
        return []
    frame, row = last
    test = _failed_test(frame, row)
    if test is None:
        return []
    found: list[Guess] = []
    for node in ast.walk(test):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            size, chunk = _value(node.left, frame), _value(node.right, frame)
            if isinstance(size, int) and isinstance(chunk, int) and chunk > 0 and size % chunk:
                why = f"forward wants a size divisible by {chunk}"
                found.extend(_resized(guess, size, max(1, round(size / chunk)) * chunk, why))
                found.extend([_rounded(guess, chunk)])
        elif isinstance(node, ast.Compare) and len(node.ops) == 1:
            found.extend(_compared(node, frame, guess, outcome, search))
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance" and len(node.args) == 2:
            kinds = ast.unparse(node.args[1])
            name = ast.unparse(node.args[0])
            spec = guess.spec(name)
            if isinstance(spec, TensorSpec) and re.search(r"\b(list|tuple|Sequence)\b", kinds):
                found.append(
                    guess.with_spec(name, ListSpec((spec, spec), "tuple" in kinds), f"forward wants a {kinds}")
                )
            elif isinstance(spec, TensorSpec) and re.search(r"\b(dict|Mapping)\b", kinds):
                found.append(guess.with_spec(name, DictSpec(()), f"forward wants a {kinds}"))
    return [follow for follow in found if follow != guess]


def _failed_test(frame: FrameType, row: int) -> ast.expr | None:
    try:
        lines, first = inspect.getsourcelines(frame.f_code)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):
        return None
    row = row - (first or 1) + 1
    best: ast.expr | None = None
    for node in ast.walk(tree):
        start, end = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0)
        if not start <= row <= (end or 0):
            continue
        if isinstance(node, ast.Assert):
            return node.test
        if isinstance(node, ast.If) and any(
            isinstance(inner, ast.Raise) and inner.lineno <= row <= (inner.end_lineno or 0) for inner in node.body
        ):
            best = node.test
    return best


def _value(node: ast.expr, frame: FrameType) -> Any:
    """The value of an expression of the user's where it failed; only names, attributes, sizes and arithmetic."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Call):
            function = inner.func.attr if isinstance(inner.func, ast.Attribute) else getattr(inner.func, "id", "")
            if function not in ("size", "dim", "len", "ndimension", "int", "max", "min", "sum", "numel", "get_device"):
                return None
        elif isinstance(inner, (ast.Lambda, ast.Await, ast.NamedExpr, ast.ListComp, ast.GeneratorExp)):
            return None
    try:
        code = compile(ast.Expression(node), "<condition>", "eval")
        return eval(code, frame.f_globals, dict(frame.f_locals))
    except Exception:
        return None


def _compared(node: ast.Compare, frame: FrameType, guess: Guess, outcome: Outcome, search: _Search) -> list[Guess]:
    left, right = _value(node.left, frame), _value(node.comparators[0], frame)
    text = ast.unparse(node.left)
    found: list[Guess] = []
    if isinstance(node.ops[0], (ast.Is, ast.IsNot)) or (left is None and text in search.parameters):
        if text in search.parameters and guess.spec(text) is None:
            options = evidence.alternatives_for(search.model, text, search.parameters[text], search.hints, {})
            return [guess.with_spec(text, option.spec, "forward wants it") for option in options[:2]]
        return []
    is_rank = "ndim" in text or ".dim(" in text or (text.startswith("len(") and ("shape" in text or "size" in text))
    wanted = list(right) if isinstance(right, (tuple, list, set)) else [right]
    if is_rank and isinstance(left, int):
        for rank in wanted:
            if isinstance(rank, int) and rank != left:
                owner = re.findall(r"[A-Za-z_]\w*", text)
                for name, spec in sorted(guess.tensors(), key=lambda entry: entry[0] not in owner):
                    found.extend(_with_rank(guess, name, spec, rank, outcome, search))
        return found
    if isinstance(left, (torch.Size, tuple, list)) and isinstance(right, (torch.Size, tuple, list)):
        pairs = [(a, b) for a, b in zip(left, right, strict=False) if a != b] if len(left) == len(right) else []
    elif isinstance(left, int) and isinstance(right, int):
        pairs = [(left, right)]
    elif isinstance(left, int) and isinstance(right, (tuple, list)):
        pairs = [(left, option) for option in right]
    else:
        return []
    strict = isinstance(node.ops[0], (ast.Lt, ast.Gt))
    for a, b in pairs:
        if not isinstance(a, int) or not isinstance(b, int):
            continue
        why = f"forward wants {ast.unparse(node)}"
        down, up = (b - 1, b + 1) if strict else (b, b)
        found.extend(_resized(guess, a, down if isinstance(node.ops[0], ast.Lt) else up if strict else b, why))
        found.extend(_resized(guess, b, a, why))
    return found


def _numbers(guess: Guess, outcome: Outcome, message: str, search: _Search) -> list[Guess]:
    """Any message that quotes one of our sizes and another number: try the other number."""
    if "view size is not compatible" in message:
        return []
    numbers = list(dict.fromkeys(int(part) for part in _NUMBERS.findall(message[:400])))
    sizes = {size for _, spec in guess.tensors() for size in spec.shape}
    found: list[Guess] = []
    for ours in numbers:
        if ours in sizes and ours > 0:
            for other in numbers:
                if other != ours and 1 < other <= 8192:
                    found.extend(_resized(guess, ours, other, f"the message asks for {other}")[:2])
    return found[:3]


def _where(outcome: Outcome) -> str:
    failed = outcome.layers.failed
    return failed.path if failed is not None and failed.path else "forward"


_RULES: tuple[Callable[[Guess, Outcome, str, _Search], list[Guess]], ...] = (
    _to_integer,
    _named_shape,
    _labels,
    _to_float,
    _conv_channels,
    _features,
    _reshape,
    _unit_range,
    _containers,
    _conditions,
    _divisible,
    _broadcast,
    _rank,
    _range,
    _grow,
    _asked_for,
    _to_bool,
    _numbers,
)
