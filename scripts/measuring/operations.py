"""The table of torch's operations: what each mutates, shares, saves for backward, and returns."""

from __future__ import annotations

import functools
import inspect
import types
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy
import torch
from torch import Tensor
from torch.overrides import get_testing_overrides

from measuring.needed import Tally
from measuring.samples import Invocation, function_samples, infos, method_samples
from measuring.saved import mapped, needs, storage, tensors_in
from measuring.written import signature_text

COLUMNS = ("name", "signature", "mutates", "view", "gradient", "needs", "result", "dtype", "range", "flags")

NAMESPACES = {
    "torch": torch,
    "torch.fft": torch.fft,
    "torch.linalg": torch.linalg,
    "torch.nn.functional": torch.nn.functional,
    "torch.special": torch.special,
}


def words(text: str) -> list[str]:
    """Names, apart by spaces."""
    return text.split()


# Public callables of these namespaces that compute nothing with tensors, or are no API.
NOT_OPERATIONS = frozenset(
    {
        "torch.nn.functional.Optional",
        "torch.nn.functional.assert_int_or_pair",
        "torch.nn.functional.boolean_dispatch",
        "torch.nn.functional.handle_torch_function",
        "torch.nn.functional.has_torch_function",
        "torch.nn.functional.has_torch_function_unary",
        "torch.nn.functional.has_torch_function_variadic",
    }
)
FACTORIES = frozenset({"torch.as_tensor", "torch.from_numpy", "torch.frombuffer", "torch.from_dlpack"})
"""Functions that make a tensor from what is none, and take no ``requires_grad``."""

# By the last part of the name. syncs: the host waits for the device; pieces: an in-place change of one of its results,
# which are views, raises.
FLAGS = {
    "item": "syncs",
    "tolist": "syncs",
    "numpy": "syncs",
    "cpu": "syncs",
    "__array__": "syncs",
    "__bool__": "syncs",
    "__contains__": "syncs",
    "__complex__": "syncs",
    "__float__": "syncs",
    "__index__": "syncs",
    "__int__": "syncs",
    "is_nonzero": "syncs",
    "equal": "syncs",
    "allclose": "syncs",
    "argwhere": "syncs dynamic",
    "unique": "syncs dynamic",
    "unique_consecutive": "syncs dynamic",
    "chunk": "pieces",
    "split": "pieces",
    "split_with_sizes": "pieces",
    "unbind": "pieces",
    "__iter__": "pieces",
    "__reversed__": "",
}

# What the values of a result are, whatever the arguments (the words are explained in torchlint.torchapi.operations),
# by the last part of the name; where a function and a Tensor method share it, both hold.
RANGES = {
    "probabilities": "softmax softmin gumbel_softmax",
    "log-probabilities": "log_softmax",
    "unit": "sigmoid expit hardsigmoid ndtr rand rand_like bernoulli one_hot eye ones ones_like zeros zeros_like i0e",
    "positive": "exp exp2 softplus cosh i0 erfc erfcx",
    "nonnegative": (
        "abs absolute __abs__ square sqrt rsqrt relu relu6 var std norm vector_norm matrix_norm svdvals cdist pdist "
        "dist pairwise_distance hypot l1_loss mse_loss smooth_l1_loss huber_loss cross_entropy "
        "triplet_margin_loss margin_ranking_loss "
        "multilabel_margin_loss soft_margin_loss argmax argmin argsort bincount histc count_nonzero numel"
    ),
    "signed-unit": "tanh sin cos erf softsign cosine_similarity sign frac sinc",
    "nonpositive": "logsigmoid log_ndtr log_sigmoid",
}
RANGE_OF = {name: words for words, names in RANGES.items() for name in names.split()}
# Signatures that Python and the schemas tell otherwise: sizes may be given one by one, and some names differ.
SIGNATURES = {
    **{
        f"torch.{name}": "*size, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False"
        for name in ("empty", "ones", "rand", "randn", "zeros")
    },
    **{
        f"torch.Tensor.{name}": "self, *size, dtype=None, device=None, requires_grad=False, layout=None"
        for name in ("new_empty", "new_ones", "new_zeros")
    },
    **{f"torch.Tensor.{name}": "self, *shape" for name in ("reshape", "view", "sum_to_size")},
    "torch.Tensor.expand": "self, *sizes",
    "torch.Tensor.permute": "self, *dims",
    "torch.Tensor.repeat": "self, *repeats",
    "torch.Tensor.tile": "self, *dims",
    "torch.Tensor.resize_": "self, *sizes, memory_format=torch.contiguous_format",
    "torch.Tensor.size": "self, dim=None",
    "torch.Tensor.to": (
        "self, *args, dtype=None, device=None, non_blocking=False, copy=False, memory_format=torch.preserve_format"
    ),
    "torch.Tensor.where": "self, condition, other",
    "torch.Tensor.copy_": "self, src, non_blocking=False",
    "torch.tensor": "data, *, dtype=None, device=None, requires_grad=False, pin_memory=False",
    "torch.as_tensor": "data, dtype=None, device=None",
    "torch.asarray": "obj, *, dtype=None, device=None, copy=None, requires_grad=False",
    "torch.from_numpy": "ndarray",
    "torch.full": "size, fill_value, *, dtype=None, layout=None, device=None, requires_grad=False",
    "torch.arange": "start, end=None, step=1, *, dtype=None, layout=None, device=None, requires_grad=False",
    "torch.randint": "low, high=None, size=None, *, dtype=None, layout=None, device=None, requires_grad=False",
    "torch.randperm": "n, *, dtype=None, layout=None, device=None, requires_grad=False, generator=None",
    "torch.eye": "n, m=None, *, dtype=None, layout=None, device=None, requires_grad=False",
    "torch.linspace": "start, end, steps, *, dtype=None, layout=None, device=None, requires_grad=False",
    "torch.max": "input, dim=None, keepdim=False",
    "torch.min": "input, dim=None, keepdim=False",
    "torch.Tensor.max": "self, dim=None, keepdim=False",
    "torch.Tensor.min": "self, dim=None, keepdim=False",
    "torch.clamp": "input, min=None, max=None",
    "torch.where": "condition, input=None, other=None",
    "torch.broadcast_tensors": "*tensors",
    "torch.meshgrid": "*tensors, indexing=None",
    "torch.einsum": "equation, *operands",
}
# Results that share or are the argument only where nothing has to be converted or moved, which one sample can't show.
MAYBE_VIEWS = frozenset(
    {
        "torch.as_tensor",
        "torch.asarray",
        *(
            f"torch.Tensor.{name}"
            for name in words(
                "bfloat16 bool byte cdouble cfloat chalf char contiguous cpu cuda double float half int ipu long mtia "
                "short to to_dense type type_as xpu pin_memory __array__"
            )
        ),
    }
)
# The dtype of what is made without a tensor: torch's default dtype, or integers.
DTYPES = {
    **dict.fromkeys(words("zeros ones rand randn empty eye linspace logspace fftfreq rfftfreq"), "default"),
    **dict.fromkeys(words("hann_window hamming_window bartlett_window blackman_window kaiser_window"), "default"),
    **dict.fromkeys(words("randint randperm tril_indices triu_indices"), "int64"),
    **dict.fromkeys(words("arange full tensor range scalar_tensor as_tensor asarray from_numpy frombuffer"), ""),
    **dict.fromkeys(words("new_tensor to type type_as bincount"), ""),
}

# What can't be called here, or has no result that a call would show.
RESULTS = {
    "torch.Tensor.as_subclass": "tensor",
    "torch.Tensor.item": "number",
    "torch.Tensor.tolist": "other",
    "torch.Tensor.backward": "none",
    "torch.Tensor.cuda": "tensor",
    "torch.Tensor.ipu": "tensor",
    "torch.Tensor.mtia": "tensor",
    "torch.Tensor.xpu": "tensor",
    "torch.Tensor.pin_memory": "tensor",
    "torch.Tensor.record_stream": "none",
    "torch.Tensor.register_hook": "other",
    "torch.Tensor.register_post_accumulate_grad_hook": "other",
    "torch.Tensor.retain_grad": "none",
    "torch.Tensor.set_": "tensor",
    "torch.Tensor.share_memory_": "tensor",
}

UNINITIALISED = ("empty", "resize", "set_", "new_empty", "data_ptr", "storage")


@dataclass(frozen=True)
class Subject:
    """What is measured: a function or a method, under its qualified name."""

    name: str
    call: Callable[..., Any]
    samples: tuple[Invocation, ...]

    @property
    def short(self) -> str:
        return self.name.rpartition(".")[2]


def subjects() -> Iterator[Subject]:
    """Every operation of torch's function namespaces, and every method of Tensor."""
    schemas = {schema.name.partition("::")[2] for schema in torch._C._jit_get_all_schemas()}
    overridable = get_testing_overrides()
    for namespace, module in NAMESPACES.items():
        for name, member in sorted(vars(module).items()):
            qualname = f"{namespace}.{name}"
            if name.startswith("_") or isinstance(member, (type, types.ModuleType)) or not callable(member):
                continue
            if qualname in NOT_OPERATIONS:
                continue
            samples = function_samples(qualname)
            known = name in schemas or member in overridable or f"{namespace}.{name}" != f"torch.{name}"
            if samples or (known and not is_setting(name)):
                yield Subject(qualname, member, samples)
    for name in sorted(dir(Tensor)):
        member = getattr(Tensor, name)
        if not callable(member) or (name.startswith("_") and not method_samples(name)):
            continue
        yield Subject(f"torch.Tensor.{name}", member, method_samples(name))


def is_setting(name: str) -> bool:
    """Whether the function asks or sets something global."""
    return name.startswith(("set_", "get_", "is_autocast", "is_grad", "is_inference_mode", "is_vulkan", "sym_"))


@dataclass
class Findings:
    """What the calls of one subject showed."""

    calls: int = 0
    mutated: Counter[int] = field(default_factory=Counter)
    shared: Counter[int] = field(default_factory=Counter)
    held: Counter[int] = field(default_factory=Counter)
    results: list[str] = field(default_factory=list)
    random: bool = False
    differentiated: bool = False
    tally: Tally = field(default_factory=Tally)
    problems: list[str] = field(default_factory=list)


def copied(call: Invocation) -> tuple[list[Any], dict[str, Any]]:
    """Arguments that the call may change."""
    return (
        [mapped(argument, Tensor.clone) for argument in call.arguments],
        {name: mapped(value, Tensor.clone) for name, value in call.keywords.items()},
    )


def scattered(tensor: Tensor) -> Tensor:
    """The same values at strides that no reshape can keep."""
    if tensor.layout is not torch.strided or tensor.dim() == 0:
        return tensor.clone()
    wide = torch.empty(*tensor.shape, 2, dtype=tensor.dtype)
    wide[..., 0] = tensor
    spread = wide[..., 0]
    if tensor.dim() > 1:
        turned = torch.empty(*reversed(tensor.shape), dtype=tensor.dtype)
        spread = turned.permute(*reversed(range(tensor.dim())))
        spread.copy_(tensor)
    return spread


def observe(subject: Subject) -> Findings:
    """Call it in every way that the samples offer, and look."""
    found = Findings()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call in subject.samples:
            try:
                observe_call(subject, call, found)
            except Exception as error:
                found.problems.append(f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
                continue
            try:
                observe_gradients(subject, call, found)
            except Exception as error:
                found.problems.append(
                    f"grad {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
                )
    return found


def observe_call(subject: Subject, call: Invocation, found: Findings) -> None:
    with torch.no_grad():
        arguments, keywords = copied(call)
        versions = [[tensor._version for tensor in tensors_in(argument)] for argument in arguments]
        torch.manual_seed(0)
        result = subject.call(*arguments, **keywords)
        found.calls += 1
        found.results.append(described(result))
        after = [[tensor._version for tensor in tensors_in(argument)] for argument in arguments]
        mutated = {
            index
            for index, (old, new) in enumerate(zip(versions, after, strict=True))
            if len(old) == len(new) and old != new
        }
        found.mutated.update(mutated)
        scattered_arguments, scattered_keywords = copied(call)
        scattered_arguments = [mapped(argument, scattered) for argument in call.arguments]
        try:
            scattered_result = subject.call(*scattered_arguments, **scattered_keywords)
        except RuntimeError:  # view refuses such strides; the plain call has shown what it shares
            scattered_arguments, scattered_result = arguments, result
        for index, argument in enumerate(arguments):
            if index in mutated or not tensors_in(argument):
                continue
            found.held[index] += 1
            found.shared[index] += shares(argument, result)
            found.held[index] += 1
            found.shared[index] += shares(scattered_arguments[index], scattered_result)
        if not subject.short.startswith(UNINITIALISED):
            other, other_keywords = copied(call)
            torch.manual_seed(1)
            found.random |= differ(result, subject.call(*other, **other_keywords))


def observe_gradients(subject: Subject, call: Invocation, found: Findings) -> None:
    _, keywords = copied(call)

    def run(*arguments: Any) -> Any:
        torch.manual_seed(0)
        result = subject.call(*arguments, **keywords)
        return arguments[0] if result is None else result  # __setitem__ changes its first argument

    if any(tensor.layout is not torch.strided for tensor in tensors_in(list(call.arguments))):
        return
    arguments, _ = copied(call)
    results = len(tensors_in(run(*arguments)))
    needed = needs(run, call.arguments)
    if 0 in found.mutated:
        # Once such an operation has run, its first argument is the result.
        for need in needed.values():
            if 0 in need.inputs:
                need.inputs.discard(0)
                need.outputs.add(0)
    found.tally.add(call.arguments, results, needed)
    found.differentiated = True


def shares(argument: Any, result: Any) -> bool:
    """Whether a tensor of the result lives in the argument's storage."""
    theirs = {storage(tensor) for tensor in tensors_in(argument)} - {None}
    return any(storage(tensor) in theirs for tensor in tensors_in(result))


def differ(first: Any, second: Any) -> bool:
    """Whether two results differ in value."""
    pairs = zip(tensors_in(first), tensors_in(second), strict=False)
    return any(
        a.layout is torch.strided and a.shape == b.shape and not bool(((a == b) | ((a != a) & (b != b))).all())
        for a, b in pairs
    )


def described(value: Any) -> str:
    """The kind of a result: tensor, the names of a named tuple, tensors, bool, int, float, ..."""
    if isinstance(value, Tensor):
        return "tensor"
    if isinstance(value, torch.Size):
        return "size"
    if isinstance(value, tuple) and hasattr(type(value), "n_fields"):
        kind: Any = type(value)
        members = [name for name in dir(kind) if isinstance(getattr(kind, name), types.MemberDescriptorType)]
        order = sorted(members, key=lambda name: next(i for i, v in enumerate(value) if v is getattr(value, name)))
        return ",".join(order)
    if isinstance(value, (tuple, list)):
        kinds = {described(item) for item in value}
        if kinds == {"tensor"}:
            return "tensors" if isinstance(value, tuple) else "list"
        return "numbers" if kinds <= {"int", "float"} else "other"
    if isinstance(value, numpy.ndarray):
        return "numpy"
    if value is None:
        return "none"
    if isinstance(value, (bool, int, float, complex, str, torch.dtype)):
        return type(value).__name__
    return "other"


def result_of(kinds: Sequence[str]) -> str:
    """The kinds of result seen, the most frequent first."""
    return "|".join(kind for kind, _ in Counter(kinds).most_common())


def positions(hits: Counter[int], chances: int | Counter[int]) -> str:
    """``0``: always; ``~0``: sometimes."""
    written = []
    for index, count in sorted(hits.items()):
        possible = chances if isinstance(chances, int) else chances[index]
        if count:
            written.append(str(index) if count == possible else f"~{index}")
    return ",".join(written)


def gradient_of(found: Findings) -> str:
    """yes, zero (a graph, and no gradient), unimplemented (a graph, and backward raises), no, or ? if unmeasured."""
    if not found.differentiated:
        return "?"
    if not found.tally.calls:
        return "no"
    if found.tally.never_works:
        return "unimplemented"
    return "yes" if found.tally.nonzero else "zero"


def result_dtype(subject: Subject) -> str:
    """How the result's dtype follows from the first tensor's: a constant, same, float, accumulate, or unknown."""
    seen: dict[torch.dtype, torch.dtype] = {}
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for dtype in (torch.float64, torch.float32, torch.int32, torch.bool):
            for call in subject.samples[:3]:
                if "dtype" in call.keywords or any(isinstance(value, torch.dtype) for value in call.arguments):
                    continue
                if not tensors_in(list(call.arguments)):
                    continue
                arguments = [mapped(argument, functools.partial(recast, dtype=dtype)) for argument in call.arguments]
                try:
                    result = tensors_in(subject.call(*arguments, **call.keywords))
                except Exception:
                    continue
                if result:
                    seen[dtype] = result[0].dtype
                    break
    return classified(seen)


def recast(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    """A copy in that dtype, unless it is an index or a mask of the call."""
    return tensor.to(dtype, copy=True) if tensor.is_floating_point() or tensor.is_complex() else tensor.clone()


def classified(seen: dict[torch.dtype, torch.dtype]) -> str:
    """The rule behind the observed dtypes; empty where none of ours fits."""
    if not seen:
        return ""
    results = set(seen.values())
    if len(results) == 1 and (len(seen) > 1 or not next(iter(results)).is_floating_point):
        return str(results.pop()).removeprefix("torch.")
    if any(dtype.is_floating_point and result != dtype for dtype, result in seen.items()):
        return ""
    integers = {result for dtype, result in seen.items() if not dtype.is_floating_point}
    if all(dtype == result for dtype, result in seen.items()):
        return "same"
    if integers == {torch.float32}:
        return "float"
    return "accumulate" if integers == {torch.int64} else ""


def aten_tags(name: str) -> set[torch.Tag]:
    """The tags of the native operation of that name."""
    packet = getattr(torch.ops.aten, name, None)
    if not isinstance(packet, torch._ops.OpOverloadPacket):
        return set()
    return {tag for overload in packet.overloads() for tag in getattr(packet, overload).tags}


def flags(subject: Subject, found: Findings) -> str:
    """What else is known, as words."""
    tags = aten_tags(native_name(subject)) or aten_tags(subject.short)
    words = set(FLAGS.get(subject.short, "").split())
    if torch.Tag.pointwise in tags and subject.short not in ("max", "min"):  # max(a, b) alone is
        words.add("pointwise")
    if torch.Tag.data_dependent_output in tags:
        words.add("syncs")
    if torch.Tag.dynamic_output_shape in tags:
        words |= {"syncs", "dynamic"}
    if found.random:
        words.add("random")
    if found.calls and subject.short != "requires_grad_" and is_factory(subject):
        words.add("factory")
    if takes_out(subject):
        words.add("out")
    if found.calls:
        words.add("measured")
    return " ".join(sorted(words))


def is_factory(subject: Subject) -> bool:
    """Whether it can be told to make a leaf: it takes ``requires_grad``."""
    call = subject.samples[0]
    arguments, keywords = copied(call)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = subject.call(*arguments, **{**keywords, "requires_grad": True})
        except (TypeError, RuntimeError):
            return subject.name in FACTORIES
    return isinstance(result, Tensor) and result.is_leaf and (result.requires_grad or not result.is_floating_point())


def takes_out(subject: Subject) -> bool:
    """Whether it takes ``out=``: a tensor that receives the result."""
    if subject.name.startswith("torch.Tensor."):
        return False
    for function in (subject.call, get_testing_overrides().get(subject.call)):
        try:
            if function is not None and "out" in inspect.signature(function).parameters:
                return True
        except (TypeError, ValueError):
            continue
    return False


def signature(subject: Subject) -> str:
    """Parameters in order: as documented below, or Python's own, or the native schema's, or torch.overrides'."""
    if subject.name in SIGNATURES:
        return SIGNATURES[subject.name]
    method = subject.name.startswith("torch.Tensor.")
    native = isinstance(subject.call, (types.BuiltinFunctionType, types.MethodDescriptorType))
    written = (
        python_signature(subject.call, method)
        or (schema_signature(subject) if native and not subject.short.startswith("__") else "")
        or python_signature(get_testing_overrides().get(subject.call), method)
    )
    return written or "*args, **kwargs"


def python_signature(function: Callable[..., Any] | None, method: bool) -> str:
    """The signature that Python knows; empty where it knows none."""
    try:
        parameters = list(inspect.signature(function).parameters.values()) if function is not None else []
    except (TypeError, ValueError):
        return ""
    if {parameter.name for parameter in parameters} <= {"args", "kwargs"}:
        return ""
    if method:
        parameters[0] = parameters[0].replace(name="self")
    return signature_text([parameter for parameter in parameters if parameter.name != "out"])


def schema_signature(subject: Subject) -> str:
    """The overload with the most parameters; what other overloads do without has a default."""
    schemas = [
        schema
        for schema in torch._C._jit_get_schemas_for_operator(f"aten::{native_name(subject)}")
        if not any(
            "Dimname" in str(argument.type) or argument.is_out or argument.name == "out"
            for argument in schema.arguments
        )
    ]
    tensors = [schema for schema in schemas if any("Tensor" in str(argument.type) for argument in schema.arguments)]
    tensors = [schema for schema in tensors if "list" not in schema.overload_name] or tensors
    plain = [schema for schema in tensors if "Scalar" not in schema.overload_name] or tensors or schemas
    if not plain:
        return ""
    chosen = max(plain, key=lambda each: (sum(not a.kwarg_only for a in each.arguments), len(each.arguments)))
    everywhere = set.intersection(*({argument.name for argument in schema.arguments} for schema in plain))
    parameters: list[inspect.Parameter] = []
    optional = False
    for argument in chosen.arguments:
        kind = inspect.Parameter.KEYWORD_ONLY if argument.kwarg_only else inspect.Parameter.POSITIONAL_OR_KEYWORD
        default = argument.default_value if argument.has_default_value() else inspect.Parameter.empty
        required = argument.name in everywhere and (argument.kwarg_only or not optional)
        if default is inspect.Parameter.empty and parameters and not required:
            default = None
        optional |= default is not inspect.Parameter.empty
        name = argument.name
        if name == "self" and not subject.name.startswith("torch.Tensor."):
            name = "input"
        parameters.append(inspect.Parameter(name if name != "from" else "from_", kind, default=default))
    return signature_text(parameters)


def native_name(subject: Subject) -> str:
    """The name in aten: torch.linalg.det is linalg_det."""
    if subject.name.startswith(("torch.linalg.", "torch.fft.", "torch.special.")):
        return subject.name.removeprefix("torch.").replace(".", "_")
    return subject.short


def operation_row(subject: Subject) -> tuple[str, ...]:
    """One row of operations.tsv."""
    found = observe(subject)
    if found.calls:
        mutates, view = positions(found.mutated, found.calls), positions(found.shared, found.held)
    else:
        mutates, view = schema_aliases(subject.short)
    if subject.name in MAYBE_VIEWS:
        view = "~0"
    return (
        subject.name,
        signature(subject),
        mutates,
        view,
        gradient_of(found),
        found.tally.text(),
        RESULTS.get(subject.name) or result_of(found.results) or "?",
        DTYPES[subject.short] if subject.short in DTYPES else result_dtype(subject),
        value_range(subject),
        flags(subject, found),
    )


def value_range(subject: Subject) -> str:
    """The range of the result's values; an in-place operation's is that of its plain form."""
    name = subject.short if subject.short.startswith("__") else subject.short.removesuffix("_")
    return RANGE_OF.get(name, "")


def schema_aliases(name: str) -> tuple[str, str]:
    """Mutated and shared positions as the native schemas tell them, for what couldn't be called."""
    mutated: set[int] = set()
    shared: set[int] = set()
    for schema in torch._C._jit_get_schemas_for_operator(f"aten::{name}"):
        for index, argument in enumerate(schema.arguments):
            if argument.alias_info is None or argument.is_out:
                continue
            (mutated if argument.alias_info.is_write else shared).add(index)
    return ",".join(map(str, sorted(mutated))), ",".join(f"~{index}" for index in sorted(shared - mutated))


def rows() -> Iterable[tuple[str, ...]]:
    """All rows, measured."""
    infos()
    for subject in subjects():
        yield operation_row(subject)
