"""What classes whose source isn't read derive from: torch's own, and those of the packages built around it."""

from __future__ import annotations

from torchlint.torchapi.modules import canonical, module_class

MODULE = "torch.nn.Module"

DATASETS = {
    "torch.utils.data.Dataset": (),
    "torch.utils.data.IterableDataset": ("torch.utils.data.Dataset",),
    "torch.utils.data.TensorDataset": ("torch.utils.data.Dataset",),
    "torch.utils.data.StackDataset": ("torch.utils.data.Dataset",),
    "torch.utils.data.ConcatDataset": ("torch.utils.data.Dataset",),
    "torch.utils.data.ChainDataset": ("torch.utils.data.IterableDataset",),
    "torch.utils.data.Subset": ("torch.utils.data.Dataset",),
}
"""torch.utils.data's classes and their direct bases (torch 2.13, ``torch.utils.data.dataset``)."""

FUNCTIONS = {
    "torch.autograd.Function": (),
    "torch.autograd.function.InplaceFunction": ("torch.autograd.Function",),
    "torch.autograd.function.NestedIOFunction": ("torch.autograd.Function",),
    "torch.autograd.function.BackwardCFunction": ("torch.autograd.Function",),
}

PLAIN = frozenset(
    {
        "builtins.object",
        "builtins.dict",
        "builtins.list",
        "builtins.tuple",
        "builtins.str",
        "builtins.int",
        "builtins.float",
        "builtins.set",
        "builtins.type",
        "builtins.Exception",
        "builtins.BaseException",
        "builtins.ValueError",
        "builtins.RuntimeError",
        "abc.ABC",
        "abc.ABCMeta",
        "typing.Generic",
        "typing.Protocol",
        "typing.NamedTuple",
        "typing.TypedDict",
        "typing_extensions.Protocol",
        "collections.OrderedDict",
        "collections.abc.Callable",
        "enum.Enum",
        "enum.IntEnum",
        "enum.Flag",
        "threading.Thread",
        "unittest.TestCase",
    }
)
"""Classes outside torch that derive from none of torch's and add no attribute that a module could be asked for."""

_TABLES = {**DATASETS, **FUNCTIONS}


def external_class_derives(base: str, qualname: str) -> bool | None:
    """Whether the class named ``base`` is or derives from ``qualname`` (both canonical); None where nothing tells."""
    if base == qualname:
        return True
    if base in _TABLES:
        return any(external_class_derives(up, qualname) for up in _TABLES[base])
    if module_class(base) is not None:
        return qualname == MODULE
    top = base.partition(".")[0]
    if base in PLAIN or top in ("builtins", "typing", "abc", "enum", "collections", "dataclasses"):
        return False
    if top == "torch":
        return False if base.startswith(("torch.optim.", "torch.utils.data.", "torch.Tensor")) else None
    return None


def knows_external_class(qualname: str) -> bool:
    """Whether all attributes of an external class are tabled (so that a missing one is a fault)."""
    if qualname in PLAIN or qualname in _TABLES:
        return True
    spec = module_class(qualname)
    return spec is not None and spec.attributes_known


def is_known_name(qualname: str) -> bool:
    """Whether torch offers something under this canonical name, as far as the tables go."""
    return (
        qualname in _TABLES or qualname in ("torch.nn.Parameter", "torch.Tensor") or module_class(qualname) is not None
    )


__all__ = ["canonical", "external_class_derives", "is_known_name", "knows_external_class"]
