"""The table of layers: one forward pass, written down in the manner of torchinfo."""

from __future__ import annotations

from typing import Any

from .sites import site_json_row
from .subject import Subject


def layer_table(subject: Subject) -> dict[str, Any]:
    """Rows in call order: path, class, sizes in and out, own parameters and buffers, device, where it was made."""
    model = subject.fresh()
    outcome = subject.run(model)
    seen: set[int] = set()
    rows = []
    for call in outcome.layers.calls:
        layer = call.module
        first = id(layer) not in seen
        seen.add(id(layer))
        own = list(layer.parameters(recurse=False))
        buffers = list(layer.buffers(recurse=False))
        device = next((str(tensor.device) for tensor in [*own, *buffers]), "")
        rows.append(
            {
                "path": call.path,
                "kind": type(layer).__name__,
                "depth": call.depth,
                "inputs": call.inputs,
                "output": call.output,
                "parameters": sum(p.numel() for p in own) if first else 0,
                "buffers": sum(b.numel() for b in buffers) if first else 0,
                "shared": not first,
                "device": device,
                "where": site_json_row(subject.layer_site(call.path)),
            }
        )
    every = {id(p): p for p in model.parameters()}.values()
    return {
        "rows": rows,
        "total": sum(p.numel() for p in every),
        "trainable": sum(p.numel() for p in every if p.requires_grad),
        "bytes": sum(p.numel() * p.element_size() for p in every),
        "buffers": sum(b.numel() for b in model.buffers()),
        "fake": subject.is_fake,
        "unused": [
            path
            for path, layer in model.named_modules()
            if path and id(layer) not in seen and any(True for _ in layer.parameters(recurse=False))
        ],
    }
