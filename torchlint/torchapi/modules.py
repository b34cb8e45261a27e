"""torch's layers: how each is built and called, what it holds, and whether train and eval differ for it.

The facts are measured on torch by ``scripts/generate_torchapi.py`` and kept in ``modules.tsv`` and ``aliases.tsv``;
modules of other packages, whose source may not be at hand, are in ``third_party``.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import EllipsisType

from torchlint.torchapi.saving import Need, parse_needs, saved_inputs, saved_outputs
from torchlint.torchapi.signatures import Signature, parse_signature
from torchlint.torchapi.tables import cells, rows

UNKNOWN: EllipsisType = ...
"""Stands for the value of an argument that is given but not known."""

ALWAYS = "always"
CONTENTS = "contents"
_RNN_PARAMETER = re.compile(r"(weight|bias)_(ih|hh|hr)_l\d+(_reverse)?")
_MODULE = "torch.nn.Module"


@dataclass(frozen=True, slots=True)
class Held:
    """A parameter or buffer of a layer, and the arguments that must be true for the layer to have it."""

    name: str
    needs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ModuleSpec:
    """What is known of one nn.Module class.

    name            its canonical path, ``torch.nn.Linear``
    kind            linear, conv, activation, attention, norm, pool, loss, container, dropout, embedding, rnn,
                    transformer, padding, upsampling, reshape, distance, identity, wrapper, other
    signature       the constructor's, without self
    forward         forward's, without self
    bases           the module classes it derives from, nearest first, without nn.Module
    parameters      its own parameters ("." for those in its submodules); None where they aren't known or are those
                    of the modules it is given. An RNN's deeper layers are named after the first: weight_ih_l0
    buffers         the same for buffers: state that must be saved and moved
    children        names of submodules it makes itself
    mode            when train() and eval() differ: "" never, ``ALWAYS``, the name of the argument that makes them
                    differ where it is true, ``CONTENTS`` by the modules it is given, "?" unknown
    range           what its results' values are (see operations.Range), "" unknown
    needs           what backward needs unchanged, by argument of forward and (``saving.PARAMETERS``) for the layer's
                    own parameters; None where it wasn't measured
    view            "view": the result shares the first input's storage (where strides allow); "same": it is the
                    input itself, at least in eval; "" neither; "?" unknown
    attributes      what an instance has beyond what every nn.Module has
    attributes_known  whether anything else is missing for sure
    """

    name: str
    kind: str
    signature: Signature
    forward: Signature
    bases: tuple[str, ...]
    parameters: tuple[Held, ...] | None
    buffers: tuple[Held, ...] | None
    children: tuple[str, ...]
    mode: str
    range: str
    needs: tuple[Need, ...] | None
    view: str
    attributes: frozenset[str]
    attributes_known: bool = True

    @property
    def saves_inputs(self) -> frozenset[int]:
        """Positions of forward's tensors that backward needs unchanged, when everything requires grad."""
        return saved_inputs(self.needs or ())

    @property
    def saves_output(self) -> bool:
        """Whether backward needs the (first) result unchanged."""
        return 0 in saved_outputs(self.needs or ())

    @property
    def is_container(self) -> bool:
        """Whether it is one of nn's containers or a wrapper around a module that it is given."""
        return self.kind in ("container", "wrapper")

    @property
    def inplace_argument(self) -> str | None:
        """The constructor's argument that makes forward change its input."""
        return "inplace" if self.signature.argument("inplace") is not None else None

    def has_parameters(self, arguments: Mapping[str, object] | None = None) -> bool | None:
        """Whether an instance holds parameters, its submodules' included; None where that can't be told.

        ``arguments``: the constructor's arguments that were given, by name; ``UNKNOWN`` for a value not known.
        """
        return self._holds(self.parameters, arguments or {})

    def has_buffers(self, arguments: Mapping[str, object] | None = None) -> bool | None:
        """The same for buffers."""
        return self._holds(self.buffers, arguments or {})

    def parameter_names(self, arguments: Mapping[str, object] | None = None) -> frozenset[str] | None:
        """Names of its own parameters under these arguments; None where they can't be told."""
        if self.parameters is None:
            return None
        present = [(held.name, self._is_present(held, arguments or {})) for held in self.parameters]
        if any(known is None for _, known in present):
            return None
        return frozenset(name for name, known in present if known and name != ".")

    def is_mode_dependent(self, arguments: Mapping[str, object] | None = None) -> bool | None:
        """Whether train() and eval() make a difference under these arguments; None where that can't be told."""
        arguments = arguments or {}
        if self.mode == "":
            return False
        if self.mode == ALWAYS:
            return True
        if self.mode in (CONTENTS, "?"):
            return None
        if self.kind == "rnn" and self._argument("num_layers", arguments) == 1:
            return False  # an RNN drops out between its layers only
        value = self._argument(self.mode, arguments)
        return None if value is UNKNOWN else bool(value)

    def has_attribute(self, name: str) -> bool:
        """Whether every instance has it (a parameter that is switched off is there, as None)."""
        if name in self.attributes or name in module_attributes():
            return True
        return self.kind == "rnn" and _RNN_PARAMETER.fullmatch(name) is not None

    def _argument(self, name: str, arguments: Mapping[str, object]) -> object:
        if name in arguments:
            return arguments[name]
        declared = self.signature.argument(name)
        return UNKNOWN if declared is None or declared.required else declared.default

    def _is_present(self, held: Held, arguments: Mapping[str, object]) -> bool | None:
        values = [self._argument(name, arguments) for name in held.needs]
        if any(value is not UNKNOWN and not value for value in values):
            return False
        return None if UNKNOWN in values else True

    def _holds(self, held: tuple[Held, ...] | None, arguments: Mapping[str, object]) -> bool | None:
        if held is None:
            return None
        present = {self._is_present(each, arguments) for each in held}
        if True in present:
            return True
        return None if None in present else False


def canonical(qualname: str) -> str:
    """The one name for what torch offers under several paths; other names come back as they are.

    ``torch.nn.modules.linear.Linear`` is ``torch.nn.Linear``, ``torch.functional.einsum`` is ``torch.einsum``; members
    of classes follow their class.
    """
    if not qualname.startswith("torch."):
        return qualname
    table = _canonical_names()
    found = table.get(qualname)
    if found is not None:
        return found
    owner, dot, member = qualname.rpartition(".")
    return f"{table[owner]}{dot}{member}" if owner in table else qualname


def aliases(qualname: str) -> tuple[str, ...]:
    """The other paths under which torch offers the same."""
    return tuple(rows("aliases").get(canonical(qualname), "").split())


@functools.cache
def _canonical_names() -> dict[str, str]:
    return {alias: name for name, paths in rows("aliases").items() for alias in paths.split(" ")}


@functools.cache
def module_attributes() -> frozenset[str]:
    """What every nn.Module instance has."""
    return frozenset(rows("modules")[_MODULE].rpartition("\t")[2].split())


@functools.cache
def module_class(qualname: str) -> ModuleSpec | None:
    """What is known of a class under any of its names; None where it isn't known to be an nn.Module."""
    name = canonical(qualname)
    row = rows("modules").get(name)
    if row is None:
        from torchlint.torchapi.third_party import third_party_module

        return third_party_module(name)
    return _read(name, row)


def _read(name: str, row: str) -> ModuleSpec:
    kind, signature, forward, bases, parameters, buffers, children, mode, range_, needs, view, attributes = cells(
        row, 12
    )
    return ModuleSpec(
        name=name,
        kind=kind,
        signature=parse_signature(signature),
        forward=parse_signature(forward),
        bases=tuple(bases.split(",")) if bases else (),
        parameters=_held(parameters),
        buffers=_held(buffers),
        children=tuple(children.split()),
        mode=mode,
        range=range_,
        needs=None if needs == "?" else parse_needs(needs),
        view=view,
        attributes=frozenset(attributes.split()) - {"*"} if name != _MODULE else frozenset(),
        attributes_known=not attributes.endswith("*"),
    )


def _held(cell: str) -> tuple[Held, ...] | None:
    if cell == "?":
        return None
    written = (each.partition("?") for each in cell.split())
    return tuple(Held(name, tuple(needs.split(",")) if needs else ()) for name, _, needs in written)
