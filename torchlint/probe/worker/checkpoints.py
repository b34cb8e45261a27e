"""TP118: a checkpoint against the model. Only weights are read, never objects."""

from __future__ import annotations

import json
import os
import pickle
import re
import zipfile
from collections.abc import Iterable, Mapping
from typing import Any

import torch

from .building import describe
from .registry import NotAsked, Problem, check
from .sites import Site
from .subject import Subject

_WRAPPERS = (
    "state_dict",
    "model_state_dict",
    "model",
    "net",
    "network",
    "module",
    "weights",
    "params",
    "ema",
    "model_state",
)
_PREFIXES = ("module.", "_orig_mod.", "model.", "net.", "network.", "backbone.", "encoder.", "student.", "teacher.")


@check("TP118", on_fake=True)
def checkpoint(subject: Subject) -> Iterable[Problem]:
    """The checkpoint's keys and sizes are the model's."""
    path = subject.options.checkpoint
    if path is None:
        raise NotAsked("give --checkpoint FILE")
    site = subject.class_site
    found = _read(path, site)
    if isinstance(found, Problem):
        yield found
        return
    yield from _compare(subject, found, os.path.basename(path), site)


def _read(path: str, site: Site | None) -> dict[str, tuple[int, ...]] | Problem:
    """The sizes by key, or what is wrong with the file itself."""
    name = os.path.basename(path)
    if not os.path.isfile(path):
        return Problem(f"there is no checkpoint {path}", site)
    if os.path.getsize(path) == 0:
        return Problem(f"{name} is empty: saving was interrupted, or the disk was full", site, "save it again", "L-15")
    if path.endswith(".safetensors"):
        return _read_safetensors(path, name, site)
    try:
        loaded = torch.load(path, map_location="cpu", weights_only=True)
    except EOFError:
        return Problem(f"{name} ends too early: it is cut off", site, "copy or save it again", "L-15")
    except pickle.UnpicklingError as error:
        return _not_weights(path, name, error, site)
    except RuntimeError as error:
        if "zip archive" in str(error) or "PytorchStreamReader" in str(error) or "central directory" in str(error):
            return Problem(f"{name} is cut off or damaged: {describe(error)}", site, "copy or save it again", "L-15")
        return Problem(f"{name} can't be loaded: {describe(error)}", site, "", "X-18" if "CUDA" in str(error) else "")
    except Exception as error:
        return Problem(f"{name} can't be loaded: {describe(error)}", site)
    return _sizes(loaded, name, site)


def _not_weights(path: str, name: str, error: Exception, site: Site | None) -> Problem:
    text = str(error)
    match = re.search(r"GLOBAL ([\w.]+)", text)
    if match and not zipfile.is_zipfile(path) and "Unsupported" not in text:
        return Problem(f"{name} is cut off or no checkpoint of torch: {describe(error)}", site, "", "L-15")
    if match:
        return Problem(
            f"{name} is a whole pickled object ({match[1]}), not weights alone: loading it runs code and needs that "
            "class",
            site,
            "save model.state_dict() instead of the model",
            "T-G2",
        )
    return Problem(
        f"{name} is no checkpoint that holds weights only: {describe(error)}", site, "save model.state_dict()", "T-G2"
    )


def _read_safetensors(path: str, name: str, site: Site | None) -> dict[str, tuple[int, ...]] | Problem:
    """The header alone says keys and sizes: eight bytes of length, then JSON."""
    with open(path, "rb") as file:
        try:
            length = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(length))
        except (ValueError, OverflowError, MemoryError):
            return Problem(f"{name} is no safetensors file, or cut off", site, "", "L-15")
    header.pop("__metadata__", None)
    ends = max((entry["data_offsets"][1] for entry in header.values()), default=0)
    if os.path.getsize(path) < 8 + length + ends:
        return Problem(
            f"{name} is cut off: {os.path.getsize(path)} bytes of {8 + length + ends}", site, "copy it again", "L-15"
        )
    return {key: tuple(entry["shape"]) for key, entry in header.items()}


def _sizes(loaded: Any, name: str, site: Site | None) -> dict[str, tuple[int, ...]] | Problem:
    for _ in range(3):
        if isinstance(loaded, Mapping) and any(isinstance(value, torch.Tensor) for value in loaded.values()):
            return {key: tuple(value.shape) for key, value in loaded.items() if isinstance(value, torch.Tensor)}
        inner = next(
            (loaded[key] for key in _WRAPPERS if isinstance(loaded, Mapping) and isinstance(loaded.get(key), Mapping)),
            None,
        )
        if inner is None:
            break
        loaded = inner
    keys = ", ".join(map(str, list(loaded)[:6])) if isinstance(loaded, Mapping) else type(loaded).__name__
    return Problem(f"{name} holds no state dict ({keys})", site, "", "T-D6")


def _compare(subject: Subject, theirs: dict[str, tuple[int, ...]], name: str, site: Site | None) -> Iterable[Problem]:
    ours = {
        key: tuple(value.shape)
        for key, value in subject.built.model.state_dict().items()
        if isinstance(value, torch.Tensor)
    }
    missing = [key for key in ours if key not in theirs]
    unexpected = [key for key in theirs if key not in ours]
    if missing or unexpected:
        prefix = _prefix(ours, theirs)
        if prefix is not None:
            kind, text = prefix
            cause = {"module.": "DataParallel", "_orig_mod.": "torch.compile"}.get(text, "a wrapper")
            if kind == "theirs":
                yield Problem(
                    f"all keys of {name} begin with {text!r}, which {cause} adds",
                    site,
                    f"strip it: {{k.removeprefix({text!r}): v for k, v in state.items()}}; or save the inner "
                    "model's state_dict()",
                    "T-D7",
                )
                theirs = {key.removeprefix(text): shape for key, shape in theirs.items()}
            else:
                yield Problem(
                    f"the model's keys begin with {text!r} and those of {name} don't",
                    site,
                    "load into the inner model",
                    "T-D7",
                )
                theirs = {text + key: shape for key, shape in theirs.items()}
            missing = [key for key in ours if key not in theirs]
            unexpected = [key for key in theirs if key not in ours]
    if missing:
        yield Problem(
            f"{name} lacks {len(missing)} of {len(ours)} keys: {_grouped(missing)}",
            site,
            "is it another version of the model? strict=False leaves these at their initial values",
            "T-D6",
        )
    if unexpected:
        yield Problem(
            f"{name} has {len(unexpected)} keys the model doesn't know: {_grouped(unexpected)}",
            site,
            "is it another version of the model?",
            "T-D6",
        )
    wrong = [(key, ours[key], theirs[key]) for key in ours if key in theirs and ours[key] != theirs[key]]
    if wrong:
        shown = "; ".join(f"{key} is {list(b)} there and {list(a)} here" for key, a, b in wrong[:4])
        more = f" and {len(wrong) - 4} more" if len(wrong) > 4 else ""
        head = _is_head(wrong, list(ours))
        yield Problem(
            f"{len(wrong)} sizes differ: {shown}{more}" + (": another head" if head else ""),
            subject.layer_site(wrong[0][0].rpartition(".")[0]) or site,
            f"build the model with {head} outputs, or drop these keys and train the head anew"
            if head
            else "build the model with the same sizes",
            "T-D5",
            layer=wrong[0][0].rpartition(".")[0],
        )


def _prefix(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> tuple[str, str] | None:
    for text in _PREFIXES:
        if (
            theirs
            and all(key.startswith(text) for key in theirs)
            and sum(key.removeprefix(text) in ours for key in theirs) * 2 > len(theirs)
        ):
            return "theirs", text
        if (
            ours
            and all(key.startswith(text) for key in ours)
            and sum(key.removeprefix(text) in theirs for key in ours) * 2 > len(ours)
        ):
            return "ours", text
    return None


def _grouped(keys: list[str]) -> str:
    """Keys by the layer they belong to."""
    groups: dict[str, int] = {}
    for key in keys:
        group = ".".join(key.split(".")[:2]) if key.count(".") > 1 else key
        groups[group] = groups.get(group, 0) + 1
    shown = [group if count == 1 else f"{group}.* ({count})" for group, count in groups.items()]
    return ", ".join(shown[:6]) + (f" and {len(shown) - 6} more groups" if len(shown) > 6 else "")


def _is_head(wrong: list[tuple[str, tuple[int, ...], tuple[int, ...]]], keys: list[str]) -> int | None:
    """The number of outputs of the checkpoint's head, if the last layer alone differs, and in its first size."""
    layers = {key.rpartition(".")[0] for key, _, _ in wrong}
    last = [key for key in keys if key.endswith(("weight", "bias"))]
    if len(layers) == 1 and last and last[-1].rpartition(".")[0] in layers and all(a[1:] == b[1:] for _, a, b in wrong):
        return wrong[0][2][0] if wrong[0][2] else None
    return None
