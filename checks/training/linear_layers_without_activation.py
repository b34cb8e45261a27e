"""TL417 linear-layers-without-activation."""

from __future__ import annotations

from torchlint.check import Check, Const, ModuleCall, Object, Report, Severity, Tensor, Value, on, spelled

from .common import layer_in_sequential

LINEAR = frozenset({"torch.nn.Linear", "torch.nn.Conv1d", "torch.nn.Conv2d", "torch.nn.Conv3d"})


class LinearLayersWithoutActivation(Check):
    """Two linear layers follow each other with nothing non-linear between: together they are one linear layer.

    Nothing raises. The second adds parameters and no power.

    ## Why

    A product of matrices is a matrix. Unless the middle is narrower than both ends (a low-rank product, made on
    purpose), an activation belongs between.

    ## Bad

        return self.fc2(self.fc1(x))

    ## Good

        return self.fc2(F.relu(self.fc1(x)))

    ## Known limits

    Both layers and their sizes must be known. Grouped and 1x1 convolutions are left alone.
    """

    code = "TL417"
    name = "linear-layers-without-activation"
    severity = Severity.WARNING
    failures = ("L-07", "W-06")

    @on(ModuleCall)
    def check(self, call: ModuleCall, report: Report) -> None:
        layer = call.target
        given = call.arguments[0] if call.arguments else None
        if not isinstance(given, Tensor) or not isinstance(layer, Object) or not isinstance(given.module, Object):
            return
        before = given.module
        if not _is_plain(layer) or not _is_plain(before) or given.op != before.spec.name:  # type: ignore[union-attr]
            return
        sizes = [_size(before, 0), _size(before, 1), _size(layer, 1)]
        if None in sizes or layer.spec.kind != before.spec.kind:  # type: ignore[union-attr]
            return
        wide, middle, out = (size or 0 for size in sizes)
        if (middle < wide and middle < out) or layer is before:
            return
        built = layer_in_sequential(call)
        first = before.node if built is not None else given.node
        report(
            built or call.node,
            f"`{spelled(built or call.node)}` applies a linear layer to the bare result of another one (line "
            f"{getattr(first, 'lineno', 0)}): the two are one in effect; put an activation between",
        )


def _is_plain(layer: Object) -> bool:
    if layer.cls is not None or layer.spec is None or layer.spec.name not in LINEAR:
        return False
    groups, kernel = layer.arguments.get("groups"), layer.arguments.get("kernel_size")
    if groups is not None and not (isinstance(groups, Const) and groups.value == 1):
        return False
    return not (isinstance(kernel, Const) and kernel.value == 1)


def _size(layer: Object, position: int) -> int | None:
    names = ("in_features", "out_features") if "in_features" in layer.arguments else ("in_channels", "out_channels")
    value: Value | None = layer.arguments.get(names[position])
    return value.value if isinstance(value, Const) and isinstance(value.value, int) else None
