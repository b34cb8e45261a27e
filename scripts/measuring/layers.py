"""The table of nn.Module classes: what they are built from, hold, and do differently in train and eval.

A layer with a sample below is built and run; the others (containers, wrappers, quantized layers) are described by
their signatures and bases alone.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import re
import textwrap
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from measuring.needed import Tally
from measuring.saved import is_floating, needs, own_result, refuses, tensors_in
from measuring.written import parameters_of, signature_text

COLUMNS = (
    "name",
    "kind",
    "signature",
    "forward",
    "bases",
    "parameters",
    "buffers",
    "children",
    "mode",
    "range",
    "needs",
    "view",
    "attributes",
)

KINDS = {
    "torch.nn.modules.activation": "activation",
    "torch.nn.modules.adaptive": "loss",
    "torch.nn.modules.batchnorm": "norm",
    "torch.nn.modules.container": "container",
    "torch.nn.modules.conv": "conv",
    "torch.nn.modules.distance": "distance",
    "torch.nn.modules.dropout": "dropout",
    "torch.nn.modules.flatten": "reshape",
    "torch.nn.modules.fold": "reshape",
    "torch.nn.modules.channelshuffle": "reshape",
    "torch.nn.modules.pixelshuffle": "reshape",
    "torch.nn.modules.instancenorm": "norm",
    "torch.nn.modules.linear": "linear",
    "torch.nn.modules.loss": "loss",
    "torch.nn.modules.normalization": "norm",
    "torch.nn.modules.padding": "padding",
    "torch.nn.modules.pooling": "pool",
    "torch.nn.modules.rnn": "rnn",
    "torch.nn.modules.sparse": "embedding",
    "torch.nn.modules.transformer": "transformer",
    "torch.nn.modules.upsampling": "upsampling",
    "torch.nn.parallel": "wrapper",
    "torch.distributed.fsdp": "wrapper",
    "torch.optim.swa_utils": "wrapper",
}
KIND_OF = {"Identity": "identity", "MultiheadAttention": "attention"}

# What the values of a result are, whatever the input (the words are explained in torchlint.torchapi.operations).
RANGES = {
    "Softmax": "probabilities",
    "Softmin": "probabilities",
    "Softmax2d": "probabilities",
    "LogSoftmax": "log-probabilities",
    "Sigmoid": "unit",
    "Hardsigmoid": "unit",
    "ReLU": "nonnegative",
    "ReLU6": "nonnegative",
    "Softplus": "positive",
    "LogSigmoid": "nonpositive",
    "Tanh": "signed-unit",
    "Softsign": "signed-unit",
    "CosineSimilarity": "signed-unit",
    "PairwiseDistance": "nonnegative",
}
# Where train and eval differ and a run of one sample can't show it: by what is held, or only across processes.
MODES = {
    "Sequential": "contents",
    "ModuleList": "contents",
    "ModuleDict": "contents",
    "Container": "contents",
    "ParameterList": "",
    "ParameterDict": "",
    "DataParallel": "contents",
    "DistributedDataParallel": "contents",
    "FullyShardedDataParallel": "contents",
    "AveragedModel": "contents",
    "TransformerEncoder": "contents",
    "TransformerDecoder": "contents",
    "SyncBatchNorm": "track_running_stats",
}
# Arguments that decide which parameters and buffers a layer has.
SWITCHES = (
    "affine",
    "elementwise_affine",
    "bias",
    "track_running_stats",
    "add_bias_kv",
    "bidirectional",
    "head_bias",
)
# Arguments that decide whether train and eval differ.
MODE_ARGUMENTS = {"p": (0.0, 0.5), "dropout": (0.0, 0.5), "track_running_stats": (False, True)}


NOTHING = -1
"""As the followed argument: none of them requires grad."""


@dataclass(frozen=True)
class Sample:
    """How to build a layer and what to call it on."""

    arguments: tuple[Any, ...]
    inputs: Callable[[], tuple[Any, ...]] | None
    keywords: dict[str, Any]


def sample(inputs: Callable[[], tuple[Any, ...]] | None, *arguments: Any, **keywords: Any) -> Sample:
    return Sample(arguments, inputs, keywords)


def drawn(*size: int) -> Tensor:
    return torch.rand(*size, dtype=torch.double) + 0.1


def row() -> tuple[Tensor]:
    return (drawn(3, 4),)


def signed() -> tuple[Tensor]:
    return (drawn(3, 4) - 0.6,)


def sequence() -> tuple[Tensor]:
    return (drawn(2, 4, 8),)


def image() -> tuple[Tensor]:
    return (drawn(2, 4, 8, 8),)


def volume() -> tuple[Tensor]:
    return (drawn(2, 4, 8, 8, 8),)


def pair() -> tuple[Tensor, Tensor]:
    return drawn(3, 4), drawn(3, 4)


def signs() -> Tensor:
    return torch.tensor([1.0, -1.0, 1.0], dtype=torch.double)


def classes() -> Tensor:
    return torch.tensor([0, 2, 1])


def tokens() -> tuple[Tensor]:
    return (torch.tensor([[1, 2, 3], [4, 0, 1]]),)


def steps() -> tuple[Tensor]:
    return (drawn(5, 3, 4),)


def unpooled(dimensions: int) -> Callable[[], tuple[Tensor, Tensor]]:
    def inputs() -> tuple[Tensor, Tensor]:
        pool = getattr(nn, f"MaxPool{dimensions}d")(2, return_indices=True)
        values, indices = pool(drawn(2, 4, *[8] * dimensions))
        return values.contiguous(), indices

    return inputs


def ctc() -> tuple[Tensor, ...]:
    return drawn(6, 2, 5).log_softmax(2), torch.tensor([[1, 2], [3, 1]]), torch.tensor([6, 6]), torch.tensor([2, 2])


INPUTS = {1: sequence, 2: image, 3: volume}
SAMPLES: dict[str, Sample] = {
    "Sequential": sample(row),
    "ModuleList": sample(None),
    "ModuleDict": sample(None),
    "ParameterList": sample(None),
    "ParameterDict": sample(None),
    "SyncBatchNorm": sample(None, 4),
    "TransformerEncoder": sample(steps, nn.TransformerEncoderLayer(4, 2, 8), 1),
    "TransformerDecoder": sample(lambda: (*steps(), *steps()), nn.TransformerDecoderLayer(4, 2, 8), 1),
    "Identity": sample(row),
    "Linear": sample(row, 4, 3),
    "NonDynamicallyQuantizableLinear": sample(row, 4, 3),
    "LazyLinear": sample(row, 3),
    "Bilinear": sample(pair, 4, 4, 3),
    "Threshold": sample(row, 0.5, 0.1),
    "MultiheadAttention": sample(lambda: (drawn(5, 3, 4), drawn(5, 3, 4), drawn(5, 3, 4)), 4, 2),
    "Softmax2d": sample(image),
    "AdaptiveLogSoftmaxWithLoss": sample(lambda: (drawn(3, 4), classes()), 4, 6, [2, 4]),
    "ChannelShuffle": sample(image, 2),
    "PairwiseDistance": sample(pair),
    "CosineSimilarity": sample(pair),
    "Flatten": sample(image),
    "Unflatten": sample(row, 1, (2, 2)),
    "Fold": sample(lambda: (drawn(2, 16, 9),), 4, 2),
    "Unfold": sample(image, 2),
    "LocalResponseNorm": sample(image, 2),
    "CrossMapLRN2d": sample(image, 2),
    "LayerNorm": sample(row, 4),
    "GroupNorm": sample(image, 2, 4),
    "RMSNorm": sample(row, 4),
    "PixelShuffle": sample(image, 2),
    "PixelUnshuffle": sample(image, 2),
    "RNN": sample(steps, 4, 6, num_layers=2),
    "LSTM": sample(steps, 4, 6, num_layers=2),
    "GRU": sample(steps, 4, 6, num_layers=2),
    "RNNCell": sample(row, 4, 6),
    "LSTMCell": sample(row, 4, 6),
    "GRUCell": sample(row, 4, 6),
    "Embedding": sample(tokens, 6, 4),
    "EmbeddingBag": sample(tokens, 6, 4),
    "TransformerEncoderLayer": sample(steps, 4, 2, 8),
    "TransformerDecoderLayer": sample(lambda: (drawn(5, 3, 4), drawn(5, 3, 4)), 4, 2, 8),
    "Transformer": sample(lambda: (drawn(5, 3, 4), drawn(5, 3, 4)), 4, 2, 1, 1, 8),
    "Upsample": sample(image, scale_factor=2),
    "UpsamplingNearest2d": sample(image, scale_factor=2),
    "UpsamplingBilinear2d": sample(image, scale_factor=2),
    "FractionalMaxPool2d": sample(image, 2, output_size=3),
    "FractionalMaxPool3d": sample(volume, 2, output_size=3),
    "NLLLoss": sample(lambda: (drawn(3, 4).log_softmax(1), classes())),
    "NLLLoss2d": sample(lambda: (drawn(3, 4, 2, 2).log_softmax(1), torch.ones(3, 2, 2, dtype=torch.long))),
    "CrossEntropyLoss": sample(lambda: (drawn(3, 4), classes())),
    "LinearCrossEntropyLoss": sample(lambda: (drawn(3, 4), classes()), 4, 6),
    "GaussianNLLLoss": sample(lambda: (drawn(3, 4), drawn(3, 4), drawn(3, 4))),
    "BCELoss": sample(lambda: (drawn(3, 4) / 2, (drawn(3, 4) > 0.5).double())),
    "HingeEmbeddingLoss": sample(lambda: (drawn(3), signs())),
    "SoftMarginLoss": sample(lambda: (drawn(3), signs())),
    "MultiLabelMarginLoss": sample(lambda: (drawn(2, 4), torch.tensor([[1, 2, -1, 0], [3, -1, 0, 0]]))),
    "MultiLabelSoftMarginLoss": sample(lambda: (drawn(3, 4), (drawn(3, 4) > 0.5).double())),
    "MultiMarginLoss": sample(lambda: (drawn(3, 4), classes())),
    "CosineEmbeddingLoss": sample(lambda: (*pair(), signs())),
    "MarginRankingLoss": sample(lambda: (drawn(3), drawn(3), signs())),
    "TripletMarginLoss": sample(lambda: (*pair(), drawn(3, 4))),
    "TripletMarginWithDistanceLoss": sample(lambda: (*pair(), drawn(3, 4))),
    "CTCLoss": sample(ctc),
}
SAMPLES |= {
    f"{name}Loss": sample(pair) for name in ("L1", "MSE", "KLDiv", "SmoothL1", "Huber", "PoissonNLL", "BCEWithLogits")
}
SAMPLES |= {
    name: sample(signed)
    for name in [
        "ReLU",
        "RReLU",
        "Hardtanh",
        "ReLU6",
        "Sigmoid",
        "Hardsigmoid",
        "Tanh",
        "SiLU",
        "Mish",
        "Hardswish",
        "ELU",
        "CELU",
        "SELU",
        "GLU",
        "GELU",
        "Hardshrink",
        "LeakyReLU",
        "LogSigmoid",
        "Softplus",
        "Softshrink",
        "PReLU",
        "Softsign",
        "Tanhshrink",
    ]
}
SAMPLES |= {name: sample(row, 1) for name in ("Softmin", "Softmax", "LogSoftmax")}
SAMPLES |= {name: sample(row) for name in ("Dropout", "AlphaDropout", "FeatureAlphaDropout")}
for _dimensions, _inputs in INPUTS.items():
    SAMPLES |= {
        f"Dropout{_dimensions}d": sample(_inputs),
        f"BatchNorm{_dimensions}d": sample(_inputs, 4),
        f"LazyBatchNorm{_dimensions}d": sample(_inputs),
        f"InstanceNorm{_dimensions}d": sample(_inputs, 4),
        f"LazyInstanceNorm{_dimensions}d": sample(_inputs),
        f"Conv{_dimensions}d": sample(_inputs, 4, 2, 3),
        f"ConvTranspose{_dimensions}d": sample(_inputs, 4, 2, 3),
        f"LazyConv{_dimensions}d": sample(_inputs, 2, 3),
        f"LazyConvTranspose{_dimensions}d": sample(_inputs, 2, 3),
        f"MaxPool{_dimensions}d": sample(_inputs, 2),
        f"AvgPool{_dimensions}d": sample(_inputs, 2),
        f"LPPool{_dimensions}d": sample(_inputs, 2, 2),
        f"AdaptiveMaxPool{_dimensions}d": sample(_inputs, 2),
        f"AdaptiveAvgPool{_dimensions}d": sample(_inputs, 2),
        f"MaxUnpool{_dimensions}d": sample(unpooled(_dimensions), 2),
        f"ConstantPad{_dimensions}d": sample(_inputs, 1, 0.5),
        f"CircularPad{_dimensions}d": sample(_inputs, 1),
        f"ReflectionPad{_dimensions}d": sample(_inputs, 1),
        f"ReplicationPad{_dimensions}d": sample(_inputs, 1),
        f"ZeroPad{_dimensions}d": sample(_inputs, 1),
    }


def build(cls: type[nn.Module], case: Sample, **keywords: Any) -> nn.Module:
    """The layer in double precision; lazy layers have seen their input, containers of layers hold theirs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = cls(*case.arguments, **{**case.keywords, **keywords})
        module = module.double()
        if isinstance(module, nn.modules.lazy.LazyModuleMixin):
            module(*case.inputs())
    return module


def constructor(cls: type[nn.Module]) -> list[inspect.Parameter]:
    """The constructor's parameters; classes without an own __init__ take none, whatever nn.Module's accepts."""
    if cls.__init__ is nn.Module.__init__:
        return []
    parameters = parameters_of(cls.__init__, skip_self=True)
    if cls is nn.NLLLoss2d:
        parameters = parameters_of(nn.NLLLoss.__init__, skip_self=True)
    if issubclass(cls, nn.RNNBase) and cls in (nn.RNN, nn.LSTM, nn.GRU):
        # They are written (*args, **kwargs); the documentation gives RNNBase's without mode, and RNN's nonlinearity
        # after num_layers.
        parameters = parameters_of(nn.RNNBase.__init__, skip_self=True)[1:]
        if cls is nn.RNN:
            parameters = [p for p in parameters if p.name != "proj_size"]
            parameters.insert(
                3, inspect.Parameter("nonlinearity", inspect.Parameter.POSITIONAL_OR_KEYWORD, default="tanh")
            )
        if cls is nn.GRU:
            parameters = [p for p in parameters if p.name != "proj_size"]
    return parameters


def conditional_names(cls: type[nn.Module], case: Sample, names: Callable[[nn.Module], Iterator[str]]) -> list[str]:
    """``weight``, ``bias?bias``, ``bias?affine,bias``: a name, and the arguments that must be true for it."""
    defaults = {parameter.name for parameter in constructor(cls)}
    switches = [switch for switch in SWITCHES if switch in defaults]
    held: dict[str, list[dict[str, bool]]] = {}
    for values in itertools.product((True, False), repeat=len(switches)):
        settings = dict(zip(switches, values, strict=True))
        for name in dict.fromkeys(own_name(name) for name in names(build(cls, case, **settings))):
            held.setdefault(name, []).append(settings)
    written = []
    for name, settings in held.items():
        needed = [switch for switch in switches if all(each[switch] for each in settings)]
        written.append(f"{name}?{','.join(needed)}" if needed else name)
    return written


def own_name(name: str) -> str:
    """The attribute's name; what sits in submodules counts as ``.``, a deeper RNN layer as the first."""
    return "." if "." in name else re.sub(r"_l\d+", "_l0", name)


def parameter_names(module: nn.Module) -> Iterator[str]:
    return (name for name, _ in module.named_parameters(remove_duplicate=False))


def buffer_names(module: nn.Module) -> Iterator[str]:
    return (name for name, _ in module.named_buffers(remove_duplicate=False))


def modes_differ(module: nn.Module, case: Sample) -> bool:
    """Whether the same input gives another result in eval than in train."""
    module = module.double()
    inputs = case.inputs()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        training = tensors_in(module.train()(*inputs))
        torch.manual_seed(0)
        evaluating = tensors_in(module.eval()(*inputs))
    return any(not torch.equal(a, b) for a, b in zip(training, evaluating, strict=True))


def mode(cls: type[nn.Module], case: Sample) -> str:
    """Empty where train and eval agree, the argument that makes them differ, or ``always``."""
    accepted = {parameter.name for parameter in constructor(cls) if isinstance(parameter.default, (bool, float))}
    for argument, (off, on) in MODE_ARGUMENTS.items():
        if (
            argument in accepted
            and modes_differ(build(cls, case, **{argument: on}), case)
            and not modes_differ(build(cls, case, **{argument: off}), case)
        ):
            return argument
    return "always" if modes_differ(build(cls, case), case) else ""


def saves(module: nn.Module, case: Sample) -> str:
    """What the gradients of the inputs and of the parameters need unchanged, as torchapi.saving reads it."""
    inputs = case.inputs()
    module.train()
    tally = Tally()
    results = len(tensors_in(module(*inputs)))
    for_parameters = parameters_need(module, inputs, results)
    module.requires_grad_(False)
    tally.add(inputs, results, needs(module, inputs))
    return ";".join(each for each in (for_parameters, tally.text()) if each)


def parameters_need(module: nn.Module, inputs: Sequence[Any], results: int) -> str:
    """What the gradients of the layer's own parameters need, when no input requires grad."""
    if not any(tensor.requires_grad for tensor in tensors_in(module(*inputs))):
        return ""
    saved = [
        str(index)
        for index, value in enumerate(inputs)
        if tensors_in(value) and refuses(module, inputs, NOTHING, lambda given, _, at=index: given[at])
    ]
    saved += [
        f"o{index}"
        for index in range(results)
        if refuses(module, inputs, NOTHING, lambda given, result, at=index: own_result(given, result, at))
    ]
    return "p:" + ",".join(saved)


def own(cls: type[nn.Module], names: list[str]) -> str:
    """Names of parameters or buffers; ``?`` where they are those of the modules it is given."""
    return "?" if MODES.get(cls.__name__) == "contents" else " ".join(names)


def view(module: nn.Module, case: Sample) -> str:
    """``view`` where the result shares the first input's storage, ``same`` where it is the input itself."""
    inputs = case.inputs()
    if not is_floating(inputs[0]):
        return ""
    with torch.no_grad():
        result = module.eval()(*inputs)
    if result is inputs[0]:
        return "same"
    shares = [t for t in tensors_in(result) if t.untyped_storage().data_ptr() == inputs[0].untyped_storage().data_ptr()]
    return "view" if shares else ""


def kind(cls: type[nn.Module]) -> str:
    if cls.__name__ in KIND_OF:
        return KIND_OF[cls.__name__]
    for prefix, name in KINDS.items():
        if cls.__module__ == prefix or cls.__module__.startswith(prefix + "."):
            return name
    return "other"


def bases(cls: type[nn.Module], canonical: Callable[[type], str]) -> str:
    """The module classes it derives from, nearest first, without nn.Module itself."""
    return ",".join(
        canonical(base) for base in cls.__mro__[1:] if issubclass(base, nn.Module) and base is not nn.Module
    )


def layer_row(cls: type[nn.Module], canonical: Callable[[type], str]) -> tuple[str, ...]:
    """One row of modules.tsv."""
    name = canonical(cls)
    described = (
        name,
        kind(cls),
        signature_text(constructor(cls)),
        signature_text(forward_parameters(cls)),
        bases(cls, canonical),
    )
    attributes = " ".join([*sorted(attribute_names(cls)), *(["*"] if has_open_attributes(cls) else [])])
    case = SAMPLES.get(cls.__name__) if cls.__module__.startswith("torch.nn.modules") else None
    if case is None:
        return (*described, "?", "?", "", MODES.get(cls.__name__, "?"), "", "?", "?", attributes)
    torch.manual_seed(0)
    module = build(cls, case)
    return (
        *described,
        own(cls, conditional_names(cls, case, parameter_names)),
        own(cls, conditional_names(cls, case, buffer_names)),
        " ".join(name for name, _ in module.named_children()),
        MODES[cls.__name__] if cls.__name__ in MODES else mode(cls, case),
        RANGES.get(cls.__name__, ""),
        saves(build(cls, case), case) if case.inputs is not None else "?",
        view(build(cls, case), case) if case.inputs is not None else "?",
        attributes,
    )


def forward_parameters(cls: type[nn.Module]) -> list[inspect.Parameter]:
    """The parameters of forward; any number where the class leaves it to others."""
    forward = inspect.getattr_static(cls, "forward", None)
    if isinstance(forward, types.FunctionType) and forward is not inspect.getattr_static(nn.Module, "forward"):
        return parameters_of(forward, skip_self=True)
    return [
        inspect.Parameter("input", inspect.Parameter.VAR_POSITIONAL),
        inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD),
    ]


def attribute_names(cls: type[nn.Module]) -> set[str]:
    """What an instance has beyond what every nn.Module has: members of the class and what its methods set on self."""
    names = set(dir(cls))
    for base in cls.__mro__:
        if issubclass(base, nn.Module) and base is not nn.Module:
            names |= assigned_names(base)
    if cls.__name__ in SAMPLES and cls.__module__.startswith("torch.nn.modules"):
        names |= set(dir(build(cls, SAMPLES[cls.__name__])))
    return names - module_attributes()


def has_open_attributes(cls: type[nn.Module]) -> bool:
    """Whether its instances have attributes that no list can name: forwarded, generated, or set in C++."""
    return cls.__getattr__ is not nn.Module.__getattr__ or cls.__module__.startswith(
        ("torch.jit", "torch.fx", "torch.export")
    )


def assigned_names(cls: type) -> set[str]:
    """Names that the class's source assigns on self, and those it annotates."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
    except (OSError, TypeError):
        return set()
    return {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    }


def module_attributes() -> set[str]:
    """What every nn.Module instance has."""
    return set(dir(nn.Module()))
