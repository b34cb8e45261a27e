"""Calls to measure operations by: torch's own operator samples, and a few lines for what they leave out."""

from __future__ import annotations

import functools
import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy
import torch
from torch import Tensor
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from measuring.saved import tensors_in

LIMIT = 12
"""How many calls of one operation are measured."""
LARGEST = 3000
"""Elements of the largest tensor of a call."""


@dataclass(frozen=True)
class Invocation:
    """One call: positional and keyword arguments."""

    arguments: tuple[Any, ...]
    keywords: dict[str, Any]

    def is_usable(self) -> bool:
        """Whether it has elements to say anything by, and not too many."""
        tensors = tensors_in([*self.arguments, self.keywords])
        return all(0 < tensor.numel() <= LARGEST for tensor in tensors)


def drawn(*size: int) -> Tensor:
    return torch.rand(*size, dtype=torch.double) * 0.8 + 0.1


def matrix() -> Tensor:
    return drawn(3, 3)


def invertible() -> Tensor:
    return drawn(3, 3) + 3 * torch.eye(3, dtype=torch.double)


def mask() -> Tensor:
    return torch.tensor([[True, False, True], [False, True, True], [True, True, False]])


def indices() -> Tensor:
    return torch.tensor([0, 2])


def lstm_weights() -> list[Tensor]:
    return [drawn(16, 3), drawn(16, 4), drawn(16), drawn(16)]


def gru_weights() -> list[Tensor]:
    return [drawn(12, 3), drawn(12, 4), drawn(12), drawn(12)]


Arguments = Callable[[], tuple[Any, ...]]

# Batches that don't broadcast: of an operand that does, matmul saves an expanded copy.
MATMUL: list[Arguments] = [
    lambda: (matrix(), matrix()),
    lambda: (drawn(2, 3, 3), drawn(2, 3, 3)),
    lambda: (drawn(2, 3, 3), matrix()),
    lambda: (matrix(), drawn(3)),
    lambda: (drawn(3), drawn(3)),
]

# What op_db has no entry for, by qualified name or by method name; each line one call.
FUNCTIONS: dict[str, list[Arguments]] = {
    "torch.as_tensor": [lambda: ([1.0, 2.0],), lambda: (matrix(),), lambda: (numpy.ones(3),)],
    "torch.asarray": [lambda: ([1.0, 2.0],), lambda: (matrix(),)],
    "torch.tensor": [lambda: ([1.0, 2.0],)],
    "torch.from_numpy": [lambda: (numpy.ones(3),)],
    "torch.frombuffer": [],
    "torch.rand": [lambda: (2, 3)],
    "torch.randperm": [lambda: (4,)],
    "torch.range": [lambda: (0, 4)],
    "torch.bartlett_window": [lambda: (4,)],
    "torch.blackman_window": [lambda: (4,)],
    "torch.hamming_window": [lambda: (4,)],
    "torch.hann_window": [lambda: (4,)],
    "torch.kaiser_window": [lambda: (4,)],
    "torch.vander": [lambda: (drawn(3),)],
    "torch.fft.fftfreq": [lambda: (4,)],
    "torch.fft.rfftfreq": [lambda: (4,)],
    "torch.sparse_coo_tensor": [lambda: (torch.tensor([[0, 1], [1, 0]]), drawn(2), (2, 2))],
    "torch.adaptive_avg_pool1d": [lambda: (drawn(2, 3, 8), 2)],
    "torch.adaptive_max_pool1d": [lambda: (drawn(2, 3, 8), 2)],
    "torch.avg_pool1d": [lambda: (drawn(2, 3, 8), 2)],
    "torch.max_pool1d": [lambda: (drawn(2, 3, 8), 2)],
    "torch.max_pool2d": [lambda: (drawn(2, 3, 8, 8), 2)],
    "torch.max_pool3d": [lambda: (drawn(2, 3, 4, 4, 4), 2)],
    "torch.max_pool1d_with_indices": [lambda: (drawn(2, 3, 8), 2)],
    "torch.alpha_dropout": [lambda: (drawn(20), 0.5, True)],
    "torch.dropout": [lambda: (drawn(20), 0.5, True)],
    "torch.feature_alpha_dropout": [lambda: (drawn(20, 3), 0.5, True)],
    "torch.feature_dropout": [lambda: (drawn(20, 3), 0.5, True)],
    "torch.native_dropout": [lambda: (drawn(20), 0.5, True)],
    "torch.batch_norm": [
        lambda: (drawn(4, 3), drawn(3), drawn(3), drawn(3), drawn(3), True, 0.1, 1e-5, False),
    ],
    "torch.instance_norm": [
        lambda: (drawn(4, 3, 5), drawn(3), drawn(3), None, None, True, 0.1, 1e-5, False),
    ],
    "torch.bilinear": [lambda: (drawn(4, 3), drawn(4, 2), drawn(5, 3, 2), drawn(5))],
    "torch.binary_cross_entropy_with_logits": [lambda: (drawn(3), drawn(3))],
    "torch.binomial": [lambda: (torch.full((3,), 4.0).double(), drawn(3))],
    "torch.poisson": [lambda: (drawn(9) * 5,)],
    "torch.celu": [lambda: (drawn(3) - 0.5,)],
    "torch.selu": [lambda: (drawn(3) - 0.5,)],
    "torch.relu": [lambda: (drawn(3, 4) - 0.5,)],
    "torch.rrelu": [lambda: (drawn(12) - 0.5, 0.1, 0.3, True)],
    "torch.prelu": [lambda: (drawn(4, 3) - 0.5, drawn(3))],
    "torch.threshold": [lambda: (drawn(9), 0.5, 0.1)],
    "torch.hardshrink": [lambda: (drawn(9),)],
    "torch.chain_matmul": [lambda: (matrix(), matrix(), matrix())],
    "torch.channel_shuffle": [lambda: (drawn(1, 4, 2, 2), 2)],
    "torch.native_channel_shuffle": [lambda: (drawn(1, 4, 2, 2), 2)],
    "torch.pixel_shuffle": [lambda: (drawn(1, 4, 2, 2), 2)],
    "torch.pixel_unshuffle": [lambda: (drawn(1, 1, 4, 4), 2)],
    "torch.conv_tbc": [lambda: (drawn(5, 2, 3), drawn(2, 3, 4), drawn(4))],
    "torch.convolution": [lambda: (drawn(1, 2, 5), drawn(3, 2, 2), drawn(3), (1,), (0,), (1,), False, (0,), 1)],
    "torch.cosine_embedding_loss": [lambda: (matrix(), matrix(), torch.tensor([1.0, -1.0, 1.0]).double())],
    "torch.cosine_similarity": [lambda: (matrix(), matrix())],
    "torch.pairwise_distance": [lambda: (matrix(), matrix())],
    "torch.pdist": [lambda: (drawn(4, 3),)],
    "torch.ctc_loss": [
        lambda: (
            drawn(6, 2, 5).log_softmax(2),
            torch.tensor([[1, 2], [3, 1]]),
            torch.tensor([6, 6]),
            torch.tensor([2, 2]),
        )
    ],
    "torch.hinge_embedding_loss": [lambda: (drawn(3), torch.tensor([1.0, -1.0, 1.0]).double())],
    "torch.kl_div": [lambda: (matrix().log(), matrix())],
    "torch.margin_ranking_loss": [lambda: (drawn(3), drawn(3), torch.tensor([1.0, -1.0, 1.0]).double())],
    "torch.poisson_nll_loss": [lambda: (drawn(3), drawn(3), True, False, 1e-8, 1)],
    "torch.triplet_margin_loss": [lambda: (matrix(), matrix(), matrix())],
    "torch.detach": [lambda: (matrix(),)],
    "torch.detach_copy": [lambda: (matrix(),)],
    "torch.dequantize": [],
    "torch.embedding": [lambda: (matrix(), indices())],
    "torch.embedding_bag": [lambda: (matrix(), indices(), torch.tensor([0, 1]))],
    "torch.affine_grid_generator": [lambda: (drawn(1, 2, 3), (1, 1, 4, 4), False)],
    "torch.grid_sampler": [lambda: (drawn(1, 1, 4, 4), drawn(1, 3, 3, 2), 0, 0, False)],
    "torch.gru": [lambda: (drawn(5, 2, 3), drawn(1, 2, 4), gru_weights(), True, 1, 0.0, True, False, False)],
    "torch.lstm": [
        lambda: (
            drawn(5, 2, 3),
            [drawn(1, 2, 4), drawn(1, 2, 4)],
            lstm_weights(),
            True,
            1,
            0.0,
            True,
            False,
            False,
        )
    ],
    "torch.gru_cell": [lambda: (drawn(2, 3), drawn(2, 4), *gru_weights())],
    "torch.lstm_cell": [lambda: (drawn(2, 3), [drawn(2, 4), drawn(2, 4)], *lstm_weights())],
    "torch.rnn_tanh_cell": [lambda: (drawn(2, 3), drawn(2, 4), drawn(4, 3), drawn(4, 4), drawn(4), drawn(4))],
    "torch.rnn_relu_cell": [lambda: (drawn(2, 3), drawn(2, 4), drawn(4, 3), drawn(4, 4), drawn(4), drawn(4))],
    "torch.slogdet": [lambda: (invertible(),)],
    "torch.frobenius_norm": [lambda: (matrix(), [0])],
    "torch.nuclear_norm": [lambda: (matrix(),)],
    "torch.native_norm": [lambda: (matrix(),)],
    "torch.norm_except_dim": [lambda: (matrix(),)],
    "torch.unsafe_split_with_sizes": [lambda: (matrix(), [1, 2])],
    "torch.split_copy": [lambda: (matrix(), 2)],
    "torch.select_copy": [lambda: (matrix(), 0, 1)],
    "torch.slice_copy": [lambda: (matrix(),)],
    "torch.view_as_complex_copy": [lambda: (drawn(3, 2),)],
    "torch.view_as_real_copy": [lambda: (drawn(3).to(torch.complex128),)],
    "torch.fake_quantize_per_tensor_affine": [lambda: (drawn(9).float(), 0.1, 0, 0, 255)],
    "torch.lobpcg": [lambda: (invertible() @ invertible().T, 1)],
    "torch.einsum": [
        lambda: ("ij,jk->ik", matrix(), matrix()),
        lambda: ("bij,bjk->bik", drawn(2, 3, 3), drawn(2, 3, 3)),
    ],
    "torch.pca_lowrank": [lambda: (drawn(4, 3), 2)],
    "torch.svd_lowrank": [lambda: (drawn(4, 3), 2)],
    "torch.slice_scatter": [lambda: (matrix(), drawn(1, 3), 0, 1, 2)],
    "torch.matmul": MATMUL,
    "torch.linalg.matmul": MATMUL,
    "torch.tensordot": [lambda: (matrix(), matrix(), 1)],
    "torch.norm": [lambda: (matrix(),), lambda: (matrix(), 2), lambda: (matrix(), 2, 1)],
    "torch.take_along_dim": [lambda: (matrix(), torch.tensor([[0, 1, 2]]), 0)],
    "torch.nn.functional.ctc_loss": [
        lambda: (
            drawn(6, 2, 5).log_softmax(2),
            torch.tensor([[1, 2], [3, 1]]),
            torch.tensor([6, 6]),
            torch.tensor([2, 2]),
        )
    ],
    "torch.nn.functional.embedding": [lambda: (indices(), matrix())],
    "torch.nn.functional.kl_div": [lambda: (matrix().log(), matrix())],
    "torch.nn.functional.poisson_nll_loss": [lambda: (drawn(3), drawn(3))],
    "torch.nn.functional.scaled_dot_product_attention": [
        lambda: (drawn(2, 2, 4, 3), drawn(2, 2, 5, 3), drawn(2, 2, 5, 3)),
    ],
    "torch.nn.functional.smooth_l1_loss": [lambda: (matrix(), matrix())],
    "torch.nn.functional.conv3d": [lambda: (drawn(1, 2, 4, 4, 4), drawn(3, 2, 2, 2, 2), drawn(3))],
    "torch.nn.functional.unfold": [lambda: (drawn(2, 3, 4, 4), 2)],
    "torch.multinomial": [lambda: (drawn(5), 2)],
    "torch.normal": [lambda: (matrix(), matrix()), lambda: (matrix(), 1.0), lambda: (0.0, 1.0, (3,))],
    "torch.randint": [lambda: (0, 5, (9,)), lambda: (5, (9,))],
    "torch.randint_like": [lambda: (matrix(), 5)],
    "torch.get_device": [],
    "torch.is_complex": [lambda: (matrix(),)],
    "torch.is_conj": [lambda: (matrix(),)],
    "torch.is_neg": [lambda: (matrix(),)],
    "torch.is_inference": [lambda: (matrix(),)],
    "torch.is_signed": [lambda: (matrix(),)],
    "torch.is_same_size": [lambda: (matrix(), matrix())],
    "torch.is_floating_point": [lambda: (matrix(),)],
    "torch.is_nonzero": [lambda: (drawn(1),)],
    "torch.is_tensor": [lambda: (matrix(),)],
    "torch.numel": [lambda: (matrix(),)],
    "torch.result_type": [lambda: (matrix(), 1)],
    "torch.can_cast": [lambda: (torch.float, torch.int)],
    "torch.promote_types": [lambda: (torch.float, torch.int)],
    "torch.segment_reduce": [lambda: (drawn(5), "sum")],
    "torch.polygamma": [lambda: (1, drawn(3))],
    "torch.where": [lambda: (mask(), matrix(), matrix()), lambda: (mask(), matrix(), 0.0), lambda: (mask(),)],
    "torch.bernoulli": [lambda: (drawn(20),)],
    "torch.special.polygamma": [lambda: (1, drawn(3))],
    "torch.special.gammainc": [lambda: (drawn(3), drawn(3))],
    "torch.special.gammaincc": [lambda: (drawn(3), drawn(3))],
    "torch.nn.functional.lp_pool1d": [lambda: (drawn(2, 3, 8), 2, 2)],
    "torch.nn.functional.lp_pool2d": [lambda: (drawn(2, 3, 8, 8), 2, 2)],
    "torch.nn.functional.lp_pool3d": [lambda: (drawn(1, 2, 4, 4, 4), 2, 2)],
    "torch.nn.functional.max_pool1d_with_indices": [lambda: (drawn(2, 3, 8), 2)],
    "torch.nn.functional.max_pool2d_with_indices": [lambda: (drawn(2, 3, 8, 8), 2)],
    "torch.nn.functional.max_pool3d_with_indices": [lambda: (drawn(1, 2, 4, 4, 4), 2)],
    "torch.nn.functional.fractional_max_pool2d_with_indices": [lambda: (drawn(1, 2, 8, 8), 2, 3)],
    "torch.nn.functional.fractional_max_pool3d_with_indices": [lambda: (drawn(1, 2, 8, 8, 8), 2, 3)],
    "torch.nn.functional.adaptive_max_pool1d_with_indices": [lambda: (drawn(1, 2, 8), 3)],
    "torch.nn.functional.adaptive_max_pool2d_with_indices": [lambda: (drawn(1, 2, 8, 8), 3)],
    "torch.nn.functional.adaptive_max_pool3d_with_indices": [lambda: (drawn(1, 2, 4, 4, 4), 2)],
    "torch.nn.functional.dropout1d": [lambda: (drawn(2, 9, 3),)],
    "torch.nn.functional.gumbel_softmax": [lambda: (drawn(4, 3),)],
    "torch.nn.functional.conv_tbc": [lambda: (drawn(5, 2, 3), drawn(2, 3, 4), drawn(4))],
    "torch.nn.functional.native_channel_shuffle": [lambda: (drawn(1, 4, 2, 2), 2)],
    "torch.nn.functional.upsample": [lambda: (drawn(1, 2, 4, 4), None, 2)],
    "torch.nn.functional.affine_grid": [lambda: (drawn(1, 2, 3), (1, 1, 4, 4), False)],
    "torch.nn.functional.fold": [lambda: (drawn(2, 16, 9), 4, 2)],
    "torch.nn.functional.sigmoid": [lambda: (matrix(),)],
    "torch.nn.functional.tanh": [lambda: (matrix(),)],
}

METHODS: dict[str, list[Arguments]] = {
    "matmul": MATMUL,
    "__matmul__": MATMUL,
    "__rmatmul__": [lambda: (matrix(), matrix())],
    "norm": [lambda: (matrix(),), lambda: (matrix(), 2), lambda: (matrix(), 2, 1)],
    "take_along_dim": [lambda: (matrix(), torch.tensor([[0, 1, 2]]), 0)],
    "slice_scatter": [lambda: (matrix(), drawn(1, 3), 0, 1, 2)],
    "multinomial": [lambda: (drawn(5), 2)],
    "copy_": [lambda: (matrix(), matrix())],
    "cpu": [lambda: (matrix(),)],
    "cuda": [],
    "detach": [lambda: (matrix(),)],
    "detach_": [lambda: (matrix(),)],
    "data_ptr": [lambda: (matrix(),)],
    "dense_dim": [lambda: (matrix(),)],
    "dim": [lambda: (matrix(),)],
    "dim_order": [lambda: (matrix(),)],
    "element_size": [lambda: (matrix(),)],
    "fill_diagonal_": [lambda: (matrix(), 0.5)],
    "get_device": [lambda: (matrix(),)],
    "hardshrink": [lambda: (matrix(),)],
    "is_complex": [lambda: (matrix(),)],
    "is_conj": [lambda: (matrix(),)],
    "is_contiguous": [lambda: (matrix(),)],
    "is_floating_point": [lambda: (matrix(),)],
    "is_inference": [lambda: (matrix(),)],
    "is_neg": [lambda: (matrix(),)],
    "is_nonzero": [lambda: (drawn(1),)],
    "is_pinned": [lambda: (matrix(),)],
    "is_same_size": [lambda: (matrix(), matrix())],
    "is_set_to": [lambda: (matrix(), matrix())],
    "is_shared": [lambda: (matrix(),)],
    "is_signed": [lambda: (matrix(),)],
    "map_": [lambda: (drawn(3), drawn(3), lambda a, b: a + b)],
    "apply_": [lambda: (drawn(3), lambda a: a + 1)],
    "ndimension": [lambda: (matrix(),)],
    "nelement": [lambda: (matrix(),)],
    "new_tensor": [lambda: (matrix(), [1.0, 2.0])],
    "numel": [lambda: (matrix(),)],
    "numpy": [lambda: (matrix(),)],
    "prelu": [lambda: (drawn(4, 3) - 0.5, drawn(3))],
    "relu": [lambda: (drawn(3, 4) - 0.5,)],
    "relu_": [lambda: (drawn(3, 4) - 0.5,)],
    "random_": [lambda: (matrix(),)],
    "requires_grad_": [lambda: (matrix(),)],
    "retain_grad": [],
    "backward": [],
    "register_hook": [],
    "register_post_accumulate_grad_hook": [],
    "resize": [],
    "set_": [],
    "share_memory_": [],
    "size": [lambda: (matrix(),), lambda: (matrix(), 0)],
    "slogdet": [lambda: (invertible(),)],
    "sparse_dim": [],
    "storage": [lambda: (matrix(),)],
    "storage_offset": [lambda: (matrix(),)],
    "stride": [lambda: (matrix(),), lambda: (matrix(), 0)],
    "to_dense": [lambda: (matrix(),)],
    "to_sparse_coo": [lambda: (matrix(),)],
    "tolist": [lambda: (matrix(),)],
    "type": [lambda: (matrix(),), lambda: (matrix(), torch.float32)],
    "type_as": [lambda: (matrix(), matrix()), lambda: (matrix(), matrix().float())],
    "unsafe_split_with_sizes": [lambda: (matrix(), [1, 2])],
    "untyped_storage": [lambda: (matrix(),)],
    "where": [lambda: (matrix(), mask(), matrix()), lambda: (matrix(), mask(), 0.0)],
    "to": [lambda: (matrix(), torch.float32), lambda: (matrix(), "cpu"), lambda: (matrix(), matrix())],
    "polygamma": [lambda: (drawn(3), 1)],
    "polygamma_": [lambda: (drawn(3), 1)],
    "normal_": [lambda: (matrix(),)],
    "bernoulli_": [lambda: (matrix(),)],
    "log_normal_": [lambda: (matrix(),)],
    "index_put_": [lambda: (matrix(), (indices(),), drawn(2, 3))],
    "masked_fill_": [lambda: (matrix(), mask(), 0.5)],
    "__setitem__": [
        lambda: (matrix(), 0, 0.5),
        lambda: (matrix(), slice(0, 2), drawn(2, 3)),
        lambda: (matrix(), mask(), 0.5),
        lambda: (matrix(), (0, 1), 0.5),
        lambda: (matrix(), indices(), drawn(2, 3)),
    ],
    "__getitem__": [
        lambda: (matrix(), 0),
        lambda: (matrix(), slice(0, 2)),
        lambda: (matrix(), (slice(None), 1)),
        lambda: (matrix(), mask()),
        lambda: (matrix(), indices()),
        lambda: (matrix(), None),
        lambda: (matrix(), ...),
    ],
    "__contains__": [lambda: (matrix(), 0.5)],
    "__len__": [lambda: (matrix(),)],
    "__bool__": [lambda: (drawn(1),)],
    "__float__": [lambda: (drawn(1),)],
    "__int__": [lambda: (drawn(1),)],
    "__index__": [lambda: (torch.tensor(2),)],
    "__complex__": [lambda: (drawn(1),)],
    "__array__": [lambda: (matrix(),)],
    "__deepcopy__": [lambda: (matrix(), {})],
    "__iter__": [lambda: (matrix(),)],
    "__reversed__": [lambda: (matrix(),)],
    "__pos__": [lambda: (matrix(),)],
}

# Operators whose samples are those of a function.
OPERATORS = {
    "abs": "abs",
    "add": "add",
    "and": "bitwise_and",
    "div": "div",
    "eq": "eq",
    "floordiv": "floor_divide",
    "ge": "ge",
    "gt": "gt",
    "invert": "bitwise_not",
    "le": "le",
    "lshift": "bitwise_left_shift",
    "lt": "lt",
    "matmul": "matmul",
    "mod": "remainder",
    "mul": "mul",
    "ne": "ne",
    "neg": "neg",
    "or": "bitwise_or",
    "pow": "pow",
    "rshift": "bitwise_right_shift",
    "sub": "sub",
    "truediv": "true_divide",
    "xor": "bitwise_xor",
}
# In-place methods whose name isn't a function's with an underscore.
IN_PLACE = {"fill_": "fill", "zero_": "zero_", "uniform_": "uniform", "exponential_": "exponential"}


@functools.cache
def infos() -> dict[str, list[OpInfo]]:
    """op_db's entries by name, aliases included: ``nn.functional.relu``, ``absolute``."""
    found: dict[str, list[OpInfo]] = {}
    for info in op_db:
        for name in (info.name, *(alias.name for alias in info.aliases)):
            found.setdefault(name, []).append(info)
    return found


def dtype_of(info: OpInfo) -> torch.dtype | None:
    """The dtype to measure gradients in, or any it takes."""
    supported = info.supported_dtypes("cpu")
    for dtype in (torch.float64, torch.float32, torch.int64, torch.bool, torch.complex128):
        if dtype in supported:
            return dtype
    return None


def drawn_samples(info: OpInfo, dtype: torch.dtype) -> Iterator[Invocation]:
    """op_db's own calls for a dtype."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        samples: Iterable[SampleInput] = info.sample_inputs("cpu", dtype, requires_grad=False)
        for sample in samples:
            yield Invocation((sample.input, *sample.args), sample.kwargs)


@functools.cache
def recorded(name: str) -> tuple[Invocation, ...]:
    """Calls from op_db under that name, spread over its variants."""
    found: list[Iterator[Invocation]] = []
    for info in infos().get(name, []):
        dtype = dtype_of(info)
        if dtype is not None:
            torch.manual_seed(0)
            calls = itertools.islice(drawn_samples(info, dtype), 60)
            found.append(iter([call for call in calls if call.is_usable()]))
    spread = (call for turn in itertools.zip_longest(*found) for call in turn if call is not None)
    return tuple(itertools.islice(spread, LIMIT))


def function_samples(qualname: str) -> tuple[Invocation, ...]:
    """Calls to measure a function by."""
    if qualname in FUNCTIONS:
        torch.manual_seed(0)
        return tuple(Invocation(arguments(), {}) for arguments in FUNCTIONS[qualname])
    plain = qualname.removesuffix("_")
    if plain in FUNCTIONS:
        return function_samples(plain)
    name = qualname.removeprefix("torch.")
    return recorded(name) or in_place_samples(name)


def in_place_samples(name: str) -> tuple[Invocation, ...]:
    """Calls of the function that ``name`` does in place."""
    if name in IN_PLACE:
        return recorded(IN_PLACE[name])
    return recorded(name[:-1]) if name.endswith("_") and not name.endswith("__") else ()


def method_samples(name: str) -> tuple[Invocation, ...]:
    """Calls to measure a Tensor method by; the first argument is self."""
    if name in METHODS:
        torch.manual_seed(0)
        return tuple(Invocation(arguments(), {}) for arguments in METHODS[name])
    if name.startswith("__") and name.endswith("__"):
        return operator_samples(name[2:-2])
    calls = recorded(name) or in_place_samples(name)
    if not calls and f"torch.{name.removesuffix('_')}" in FUNCTIONS:
        calls = function_samples(f"torch.{name.removesuffix('_')}")
    return tuple(call for call in calls if isinstance(call.arguments[0], Tensor))


def operator_samples(name: str) -> tuple[Invocation, ...]:
    """Calls of an operator: ``add``, ``radd``, ``iadd`` alike, two operands and no keywords."""
    base = name if name in OPERATORS else name[1:]
    if base not in OPERATORS:
        return ()
    arity = 1 if base in ("abs", "neg", "invert") else 2
    return tuple(
        Invocation(call.arguments[:arity], {})
        for call in recorded(OPERATORS[base])
        if len(call.arguments) >= arity and isinstance(call.arguments[0], Tensor) and not call.keywords
    )
