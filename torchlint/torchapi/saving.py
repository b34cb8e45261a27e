"""What backward needs unchanged: which inputs and results an operation saves, for the gradient of which argument.

torch saves only what the gradients that are wanted need: ``a * b`` keeps ``b`` where ``a`` requires grad and ``a``
where ``b`` does. In the tables this is written ``0:1;1:0``: for the gradient of argument 0, argument 1, and the
reverse; ``o0`` is the first result, ``~`` stands before what only some calls save, ``p`` for a layer's own parameters,
and ``!`` means that backward raises in any case (torch has no derivative).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

PARAMETERS = -1
"""As ``Need.gradient_of``: the layer's own parameters."""


@dataclass(frozen=True, slots=True)
class Need:
    """What must stay unchanged between forward and backward for the gradient of one argument.

    Positions count the call's arguments, self included for methods; results count the tensors of the result. A
    position that holds no tensor in a call is not saved in it. ``maybe_`` ones are saved by some calls only. Where
    ``fails``, there is a grad_fn and backward raises whatever is left unchanged.
    """

    gradient_of: int
    inputs: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()
    maybe_inputs: tuple[int, ...] = ()
    maybe_outputs: tuple[int, ...] = ()
    fails: bool = False


def parse_needs(cell: str) -> tuple[Need, ...]:
    """Read a cell of the tables."""
    return tuple(_parse(each) for each in cell.split(";")) if cell else ()


def _parse(text: str) -> Need:
    of, _, saved = text.partition(":")
    words = saved.split(",") if saved else []

    def chosen(prefix: str) -> tuple[int, ...]:
        return tuple(
            int(word[len(prefix) :])
            for word in words
            if word[: len(prefix)] == prefix and word[len(prefix) :].isdigit()
        )

    return Need(
        gradient_of=PARAMETERS if of == "p" else int(of),
        inputs=chosen(""),
        outputs=chosen("o"),
        maybe_inputs=chosen("~"),
        maybe_outputs=chosen("~o"),
        fails="!" in words,
    )


def saved_inputs(needs: Iterable[Need], requiring_grad: Collection[int] | None = None) -> frozenset[int]:
    """Positions that every such call saves, when the arguments ``requiring_grad`` (None: all) require grad."""
    return frozenset(
        position
        for need in needs
        if requiring_grad is None or need.gradient_of in requiring_grad
        for position in need.inputs
    )


def saved_outputs(needs: Iterable[Need], requiring_grad: Collection[int] | None = None) -> frozenset[int]:
    """The same for the tensors of the result."""
    return frozenset(
        index
        for need in needs
        if requiring_grad is None or need.gradient_of in requiring_grad
        for index in need.outputs
    )
