"""What a model says about its own input before anything runs: names, annotations, docstrings, configuration, source.

Each source gives alternatives for a parameter of ``forward``, best first, with the reason in words. ``inference``
tries them and lets torch's messages correct them.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from .specs import DictSpec, ListSpec, Spec, TensorSpec, ValueSpec

IMAGE = 64
LENGTH = 16
FEATURES = 16

CHANNELS = [
    "in_channels",
    "in_chans",
    "in_channel",
    "in_ch",
    "channels",
    "num_channels",
    "n_channels",
    "input_channels",
    "image_channels",
    "in_planes",
    "num_input_channels",
    "nc",
    "channels_in",
    "c_in",
    "inp_channels",
    "input_nc",
    "input_channel",
    "num_features_in",
    "img_channels",
]
SIZES = [
    "image_size",
    "img_size",
    "input_size",
    "resolution",
    "input_resolution",
    "sample_size",
    "spatial_size",
    "image_dim",
    "img_dim",
    "size",
    "input_image_size",
    "crop_size",
    "image_height",
]
FRAMES = ["frames", "num_frames", "n_frames", "frame_num", "clip_length", "max_frames", "video_frames"]
LENGTHS = [
    "max_seq_len",
    "seq_len",
    "seq_length",
    "sequence_length",
    "max_len",
    "max_length",
    "block_size",
    "context_length",
    "n_positions",
    "n_ctx",
    "max_position_embeddings",
    "max_sequence_length",
    "num_patches",
    "window_size",
    "length",
    "context_size",
    "max_seq_length",
]
VOCABULARY = [
    "vocab_size",
    "num_tokens",
    "n_vocab",
    "vocab",
    "ntoken",
    "num_embeddings",
    "n_tokens",
    "vocabulary_size",
    "num_words",
]
WIDTHS = [
    "input_dim",
    "in_features",
    "in_dim",
    "dim",
    "d_model",
    "hidden_size",
    "embed_dim",
    "embedding_dim",
    "n_embd",
    "input_size",
    "dim_in",
    "input_width",
    "n_features",
    "num_features",
    "feature_dim",
    "in_size",
    "model_dim",
    "width",
    "hidden_dim",
    "emb_dim",
    "d_in",
    "n_inputs",
]
CLASSES = ["num_classes", "n_classes", "num_labels", "classes", "out_features", "num_outputs"]

_TOKENS = re.compile(r"^(.*_)?(input_ids|tokens?|token_ids|ids|idx|words?|text|chars|src_tokens|codes|indices|seqs?)$")
_TIMES = re.compile(r"^(t|ts|time|times|timesteps?|sigma|sigmas|noise_levels?|noise_cond|alpha)$")
_MASK = re.compile(r"(^|_)mask$|^mask")
_LABELS = re.compile(r"^(labels?|targets?|y|y_true|gt|class_labels?|classes|cls|class_ids?)$")
_LENGTHS = re.compile(r"(^|_)(lengths?|lens?)$")
_AUDIO = re.compile(r"^(wav|wave|waveforms?|audio|raw_wave|speech|signal|input_values)$")
_VIDEO = re.compile(r"^(videos?|frames|clips?)$")
_IMAGES = re.compile(
    r"^(.*_)?(images?|imgs?|pixel_values|pixels|pictures?|frame|patch(es)?|img\d|image\d|rgb|gray(scale)?|depth|photo)$"
)


@dataclass(frozen=True)
class Alternative:
    """One specification for one parameter, and why."""

    spec: Spec
    why: str


@dataclass
class Hints:
    """Numbers that the constructor's arguments, the model's attributes and its configuration object name."""

    values: dict[str, Any] = field(default_factory=dict)

    def number(self, names: Iterable[str]) -> tuple[int, str] | None:
        """The first of these names that holds a positive whole number, with its name."""
        for name in names:
            value = self.values.get(name)
            if isinstance(value, (tuple, list)) and value and isinstance(value[0], int):
                value = value[0]
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return value, name
        return None

    def sizes(self, names: Iterable[str], rank: int) -> tuple[tuple[int, ...], str] | None:
        """The first of these names that holds a size for every spatial dimension."""
        for name in names:
            value = self.values.get(name)
            if isinstance(value, (tuple, list)) and len(value) >= rank and all(isinstance(v, int) for v in value):
                return tuple(value[-rank:]), name
            if isinstance(value, int) and not isinstance(value, bool) and value > 1:
                return (value,) * rank, name
        return None


def gather_hints(model: nn.Module, arguments: Mapping[str, Any]) -> Hints:
    """All numbers a model names, the constructor's arguments first."""
    hints = Hints()
    config = getattr(model, "config", None)
    sources: list[Mapping[str, Any]] = [arguments, _public(model)]
    for child in ("", "text_config", "vision_config", "encoder", "audio_config"):
        part = getattr(config, child, None) if child else config
        if part is not None:
            sources.append(part if isinstance(part, Mapping) else _public(part))
    sources += [_public(value) for value in arguments.values() if hasattr(value, "__dict__")]
    sources += [_public(child) for child in model.children()]
    for source in sources:
        for name, value in source.items():
            if isinstance(value, torch.Size):
                value = tuple(value)
            if isinstance(value, (int, float, str, tuple, list)):
                hints.values.setdefault(str(name).lower(), value)
    return hints


def _public(value: Any) -> dict[str, Any]:
    attributes = getattr(value, "__dict__", {})
    return {name: item for name, item in attributes.items() if not name.startswith("_")}


def forward_parameters(model: nn.Module) -> tuple[dict[str, inspect.Parameter], bool]:
    """The parameters of forward that can be named, and whether it takes any more positional ones."""
    try:
        parameters = inspect.signature(model.forward).parameters
    except (TypeError, ValueError):
        return {}, True
    named = {
        name: parameter
        for name, parameter in parameters.items()
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    }
    return named, any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters.values())


def method_tree(function: Any) -> ast.FunctionDef | None:
    """The syntax of a function, None where its source isn't known."""
    try:
        source = textwrap.dedent(inspect.getsource(inspect.unwrap(function)))
        tree = ast.parse(source).body[0]
    except (OSError, TypeError, SyntaxError, IndexError, ValueError):
        return None
    return tree if isinstance(tree, ast.FunctionDef) else None


# ---- what a parameter flows into


@dataclass(frozen=True)
class Consumer:
    """The first layer a parameter is handed to, and its path."""

    module: nn.Module
    path: str


def first_consumer(model: nn.Module, name: str, depth: int = 0, path: str = "") -> Consumer | None:
    """The leaf layer that forward hands a parameter to first, followed through the user's own modules."""
    tree = method_tree(type(model).forward)
    if tree is None or depth > 6:
        return None
    walk = _Flow(model, tree, name)
    found = walk.first()
    if found is None:
        return None
    child, child_path, position = found
    return _descend(child, f"{path}.{child_path}".lstrip("."), position, depth)


def _descend(module: nn.Module, path: str, position: int | str, depth: int) -> Consumer | None:
    if isinstance(module, (nn.Sequential, nn.ModuleList)):
        for index, child in enumerate(module):
            if not isinstance(child, (nn.Identity, nn.Dropout)):
                return _descend(child, f"{path}.{index}", 0, depth + 1)
        return None
    if type(module).__module__.startswith("torch.nn.") or type(module).__module__.startswith("einops."):
        return Consumer(module, path)
    named, _ = forward_parameters(module)
    names = list(named)
    name = position if isinstance(position, str) else (names[position] if position < len(names) else "")
    if name not in named:
        return None
    return first_consumer(module, name, depth + 1, path)


class _Flow(ast.NodeVisitor):
    """Follows one parameter through a forward method, in evaluation order, up to the first layer that takes it."""

    def __init__(self, model: nn.Module, tree: ast.FunctionDef, name: str) -> None:
        self._model = model
        self._tree = tree
        self._self = tree.args.args[0].arg if tree.args.args else "self"
        self._aliases = {name}
        self._loops: dict[str, tuple[nn.Module, str]] = {}
        self._found: tuple[nn.Module, str, int | str] | None = None

    def first(self) -> tuple[nn.Module, str, int | str] | None:
        for statement in self._tree.body:
            self.visit(statement)
            if self._found:
                break
        return self._found

    def visit(self, node: ast.AST) -> None:
        if self._found is None:
            super().visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        if any(isinstance(target, ast.Name) for target in node.targets) and self._mentions(node.value):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    self._aliases.add(target.id)

    def visit_For(self, node: ast.For) -> None:
        iterated = node.iter
        if isinstance(iterated, ast.Call) and isinstance(iterated.func, ast.Name) and iterated.func.id == "enumerate":
            iterated = iterated.args[0] if iterated.args else iterated
        found = self._module(iterated)
        if found and isinstance(found[0], (nn.ModuleList, nn.Sequential)) and len(found[0]):
            target = node.target.elts[-1] if isinstance(node.target, ast.Tuple) else node.target
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            for name in names:
                if isinstance(name, ast.Name):
                    self._loops[name.id] = (found[0][0], f"{found[1]}.0")
        for statement in node.body:
            self.visit(statement)

    def visit_Call(self, node: ast.Call) -> None:
        for argument in [*node.args, *(keyword.value for keyword in node.keywords)]:
            self.visit(argument)
        if self._found:
            return
        self.visit(node.func)
        target = self._module(node.func)
        for position, argument in enumerate(node.args):
            if target and self._is_tensor_of(argument):
                self._found = (*target, position)
                return
        for keyword in node.keywords:
            if target and keyword.arg and self._is_tensor_of(keyword.value):
                self._found = (*target, keyword.arg)
                return
        method = self._method(node.func)
        if method is not None:
            self._follow_method(method, node)

    def _follow_method(self, method: ast.FunctionDef, node: ast.Call) -> None:
        """A helper method of the same module: the parameter goes on under the helper's own name for it."""
        names = [argument.arg for argument in method.args.args][1:]
        for position, argument in enumerate(node.args):
            if self._is_tensor_of(argument) and position < len(names) and method.name != self._tree.name:
                inner = _Flow(self._model, method, names[position])
                self._found = inner.first()

    def _method(self, func: ast.expr) -> ast.FunctionDef | None:
        if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id == self._self:
            value = getattr(type(self._model), func.attr, None)
            if inspect.isfunction(value):
                return method_tree(value)
        return None

    def _is_tensor_of(self, node: ast.expr) -> bool:
        """Whether an argument is the parameter itself, or it reshaped, cast or activated; not its shape."""
        if isinstance(node, ast.Name):
            return node.id in self._aliases
        if isinstance(node, ast.Call) and self._module(node.func) is None:
            inside = [*node.args, *([node.func.value] if isinstance(node.func, ast.Attribute) else [])]
            return any(self._is_tensor_of(argument) for argument in inside)
        if isinstance(node, (ast.BinOp,)):
            return self._is_tensor_of(node.left) or self._is_tensor_of(node.right)
        return isinstance(node, ast.Subscript) and self._is_tensor_of(node.value)

    def _mentions(self, node: ast.expr) -> bool:
        return self._is_tensor_of(node)

    def _module(self, node: ast.expr) -> tuple[nn.Module, str] | None:
        if isinstance(node, ast.Name):
            return self._loops.get(node.id)
        if isinstance(node, ast.Name) or not isinstance(node, (ast.Attribute, ast.Subscript)):
            return None
        if isinstance(node, ast.Subscript):
            owner = self._module(node.value)
            index = node.slice
            if owner and isinstance(owner[0], (nn.ModuleList, nn.Sequential)) and isinstance(index, ast.Constant):
                number: Any = index.value
                try:
                    return owner[0][number], f"{owner[1]}.{number}"
                except (IndexError, TypeError):
                    return None
            return None
        if isinstance(node.value, ast.Name) and node.value.id == self._self:
            child = getattr(self._model, node.attr, None)
            return (child, node.attr) if isinstance(child, nn.Module) else None
        owner = self._module(node.value)
        child = getattr(owner[0], node.attr, None) if owner else None
        return (child, f"{owner[1]}.{node.attr}") if owner and isinstance(child, nn.Module) else None


# ---- from a consumer, a name, a docstring to specifications


def from_consumer(consumer: Consumer, hints: Hints) -> list[Alternative]:
    """What a layer takes, read off its own attributes."""
    layer, shown = consumer.module, f"{consumer.path} ({type(consumer.module).__name__})"
    kind = type(layer).__name__.replace("Lazy", "")
    rank = next((int(digit) for digit in kind if digit in "123"), 2)
    if isinstance(layer, (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)):
        return _spatial(layer.in_channels or 3, rank, hints, f"it goes into {shown}, {layer.in_channels} channels")
    if isinstance(layer, (nn.Embedding, nn.EmbeddingBag)):
        return tokens(layer.num_embeddings, hints, f"it goes into {shown}, {layer.num_embeddings} entries")
    if isinstance(layer, nn.Linear):
        width = layer.in_features or FEATURES
        why = f"it goes into {shown}, {width} features"
        return [Alternative(TensorSpec((width,)), why), Alternative(TensorSpec((length(hints), width)), why)]
    if isinstance(layer, (nn.RNNBase, nn.RNNCellBase)):
        width = layer.input_size
        why = f"it goes into {shown}, input_size {width}"
        if isinstance(layer, nn.RNNCellBase):
            return [Alternative(TensorSpec((width,)), why)]
        return [Alternative(TensorSpec((length(hints), width), batch_dim=0 if layer.batch_first else 1), why)]
    if isinstance(
        layer,
        (
            nn.MultiheadAttention,
            nn.TransformerEncoder,
            nn.TransformerEncoderLayer,
            nn.Transformer,
            nn.TransformerDecoder,
            nn.TransformerDecoderLayer,
        ),
    ):
        attention = next((m for m in layer.modules() if isinstance(m, nn.MultiheadAttention)), None)
        width = attention.embed_dim if attention is not None else FEATURES
        first = attention is None or attention.batch_first
        spec = TensorSpec((length(hints), width), batch_dim=0 if first else 1)
        return [Alternative(spec, f"it goes into {shown}, width {width}")]
    if isinstance(layer, nn.modules.batchnorm._NormBase):
        count = layer.num_features or 3
        if rank == 1:
            why = f"it goes into {shown}, {count} features"
            return [Alternative(TensorSpec((count,)), why), Alternative(TensorSpec((count, LENGTH)), why)]
        return _spatial(count, rank, hints, f"it goes into {shown}, {count} channels")
    if isinstance(layer, nn.GroupNorm):
        return _spatial(layer.num_channels, 2, hints, f"it goes into {shown}, {layer.num_channels} channels")
    if isinstance(layer, nn.LayerNorm):
        shape = tuple(layer.normalized_shape)
        why = f"it goes into {shown}, normalized over {list(shape)}"
        leading = (length(hints),) if len(shape) == 1 else ()
        return [Alternative(TensorSpec((*leading, *shape)), why), Alternative(TensorSpec(shape), why)]
    if kind.startswith(("MaxPool", "AvgPool", "Adaptive", "ReflectionPad", "ReplicationPad", "ZeroPad", "Upsample")):
        return _spatial(channels(hints), rank, hints, f"it goes into {shown}")
    pattern = getattr(layer, "pattern", None)
    if isinstance(pattern, str):
        return from_pattern(pattern, hints, f"it goes into {shown}", getattr(layer, "axes_lengths", None))
    return []


def channels(hints: Hints) -> int:
    """The channels of an image, 3 unless told."""
    found = hints.number(CHANNELS)
    return found[0] if found else 3


def length(hints: Hints) -> int:
    """The length of a sequence: short, and no longer than the model says it can be."""
    found = hints.number(LENGTHS)
    return min(found[0], LENGTH) if found else LENGTH


def _spatial(count: int, rank: int, hints: Hints, why: str) -> list[Alternative]:
    told = hints.sizes(SIZES, rank) if rank > 1 else None
    default = {1: (64,), 2: (IMAGE, IMAGE), 3: (16, IMAGE // 2, IMAGE // 2)}[rank]
    alternatives = []
    if told and max(told[0]) <= 1024:
        alternatives.append(Alternative(TensorSpec((count, *told[0])), f"{why}; {told[1]} is {told[0][0]}"))
    if rank == 3:
        frames = hints.number(FRAMES)
        size = hints.sizes(SIZES, 2)
        if frames:
            shape = (count, frames[0], *(size[0] if size else (IMAGE, IMAGE)))
            alternatives.insert(0, Alternative(TensorSpec(shape), f"{why}; {frames[1]} is {frames[0]}"))
        alternatives.append(Alternative(TensorSpec((count, 32, 32, 32)), why))
    alternatives.append(Alternative(TensorSpec((count, *default)), why))
    return alternatives


def tokens(count: int | None, hints: Hints, why: str) -> list[Alternative]:
    """Token ids in a sequence, or one per sample."""
    told = hints.number(VOCABULARY)
    high = count or (told[0] if told else 2)
    return [
        Alternative(TensorSpec((length(hints),), "int64", 0, 0, high), why),
        Alternative(TensorSpec((), "int64", 0, 0, high), why),
    ]


def from_pattern(pattern: str, hints: Hints, why: str, sizes: Mapping[str, int] | None = None) -> list[Alternative]:
    """The rank, and what the names say of the sizes, from the left side of an einops pattern."""
    left = pattern.split("->")[0].strip()
    if left.startswith("..."):
        left = "b " + left[3:].strip()
    groups = re.findall(r"\([^)]*\)|\S+", left)
    if len(groups) < 1 or any(group == "..." for group in groups):
        return []
    return _from_names([group.strip("()").split() for group in groups], hints, why + f", pattern {left!r}", sizes or {})


_ROLES = {
    "channel": re.compile(r"^(c|ch|chan|channels?|c_in|in_c|in_channels?|nc|\w*channels)$", re.I),
    "space": re.compile(
        r"^(h|w|d|height|width|depth|h\d|w\d|hh|ww|rows|cols|x|y|z|dims?|img_size|image_size|size|iw|ih)$", re.I
    ),
    "frames": re.compile(r"^(f|frames?|nf|num_frames)$", re.I),
    "length": re.compile(
        r"^(t|l|n|s|seq|seq_len|seq_length|length|tokens|time|steps|timesteps|i|j|k|m|block|q|qlen|tgt|src|len|n_tokens|num_points|points|p)$",
        re.I,
    ),
    "width": re.compile(
        r"^(d|dim|e|emb|embed|embed_dim|feat|feats|features?|hidden|hidden_size|d_model|input_dim|in_features|f)$", re.I
    ),
}
_BATCH = re.compile(r"^(b|bs|bsz|n|batch|batch_size|bn|nb|B_?)$", re.I)


def _from_names(groups: list[list[str]], hints: Hints, why: str, sizes: Mapping[str, int]) -> list[Alternative]:
    """A specification from the names of the dimensions; the first is the batch if it is named so."""
    batch_dim: int | None = None
    shape: list[int] = []
    space = hints.sizes(SIZES, 2)
    has_space = sum(1 for names in groups if any(name.lower() in ("h", "w", "height", "width") for name in names)) >= 2
    for index, names in enumerate(groups):
        if (
            batch_dim is None
            and index < 2
            and any(_BATCH.match(name) for name in names)
            and not (index == 1 and names[0].lower() == "n")
        ):
            batch_dim = index
            continue
        known = 1
        for name in names:
            known *= sizes.get(name, 1)
        role = _role(names, has_space)
        literal = names[0] if names else "1"
        if literal.isdigit():
            shape.append(int(literal))
        elif role == "channel":
            shape.append(channels(hints) if known == 1 else known)
        elif role == "space":
            size = space[0][0] if space else IMAGE
            shape.append(size if size % known == 0 else known * max(1, size // known))
        elif role == "frames":
            found = hints.number(FRAMES)
            shape.append(found[0] if found else max(8, known))
        elif role == "width":
            found = hints.number(WIDTHS)
            shape.append(found[0] if found else FEATURES)
        else:
            shape.append(max(length(hints) // known, 1) * known)
    return [Alternative(TensorSpec(tuple(shape), batch_dim=batch_dim), why)]


def _role(names: list[str], has_space: bool) -> str:
    order = (
        ("channel", "space", "frames", "length", "width")
        if has_space
        else ("channel", "frames", "width", "length", "space")
    )
    for role in order:
        for name in names:
            if len(name) == 1 and name.lower() == "d" and not has_space and role == "space":
                continue
            if _ROLES[role].match(name):
                return role
    return "length"


_DOC_SHAPE = re.compile(
    r"[\(\[]\s*((?:[A-Za-z]\w*|\d+|\*|\.\.\.)(?:\s*[,x]\s*(?:[A-Za-z]\w*|\d+|\*|\.\.\.))*)\s*,?\s*[\)\]]"
)


def from_docs(model: nn.Module, name: str, hints: Hints) -> list[Alternative]:
    """Shapes that a docstring gives for a parameter: ``x: images of shape (B, C, H, W)``, ``Input: (N, 3, H, W)``."""
    texts = [inspect.getdoc(type(model).forward) or "", inspect.getdoc(type(model)) or ""]
    found: list[Alternative] = []
    for text in texts:
        for line in _doc_lines(text, name):
            for match in _DOC_SHAPE.finditer(line):
                parts = [part.strip() for part in re.split(r"[,x]", match[1]) if part.strip()]
                if not parts or any(part in ("*", "...") for part in parts[1:]):
                    continue
                if parts[0] in ("*", "..."):
                    parts[0] = "B"
                if not (_BATCH.match(parts[0]) or parts[0].isdigit() or len(parts) > 1):
                    continue
                if not all(
                    len(part) <= 2
                    or part.isdigit()
                    or _role([part], True) != "length"
                    or _BATCH.match(part)
                    or part.isupper()
                    or part in ("seq_len", "length")
                    for part in parts
                ):
                    continue
                alternatives = _from_names([[part] for part in parts], hints, f"the docstring says {match[0]}", {})
                found.extend(alternatives)
        if found:
            return _unique(found)[:3]
    return []


def _doc_lines(text: str, name: str) -> Iterator[str]:
    lines = text.splitlines()
    about = re.compile(rf"(^|\W){re.escape(name)}(\W|$)")
    for index, line in enumerate(lines):
        if about.search(line) and ":" in line:
            yield line + " " + (lines[index + 1].strip() if index + 1 < len(lines) else "")
    for line in lines:
        if re.search(r"(?i)\binputs?\d?\b.*[:(]", line):
            yield line


def _unique(alternatives: list[Alternative]) -> list[Alternative]:
    seen: dict[Spec, Alternative] = {}
    for alternative in alternatives:
        seen.setdefault(alternative.spec, alternative)
    return list(seen.values())


def from_unpacking(model: nn.Module, name: str, hints: Hints) -> list[Alternative]:
    """The rank and the roles from ``b, c, h, w = x.shape`` and from ``rearrange(x, 'b c h w -> ...')`` in forward."""
    tree = method_tree(type(model).forward)
    if tree is None:
        return []
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple) and _shape_of(node.value, name):
            elements = node.targets[0].elts
            if any(isinstance(element, ast.Starred) for element in elements):
                continue
            names = [[element.id] if isinstance(element, ast.Name) else ["n"] for element in elements]
            if names and names[0][0] in ("_", "n"):
                names[0] = ["b"]
            return _from_names(names, hints, f"forward unpacks {ast.unparse(node)!r}", {})
        if isinstance(node, ast.Call) and len(node.args) > 1:
            function = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            first, pattern = node.args[0], node.args[1]
            if (
                function in ("rearrange", "reduce", "repeat")
                and isinstance(first, ast.Name)
                and first.id == name
                and isinstance(pattern, ast.Constant)
                and isinstance(pattern.value, str)
            ):
                found = from_pattern(pattern.value, hints, f"forward rearranges {name}")
                if found:
                    return found
    return []


def _shape_of(node: ast.expr, name: str) -> bool:
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "size"
        and not node.args
    ):
        node = node.func
    return (
        isinstance(node, ast.Attribute)
        and node.attr in ("shape", "size")
        and isinstance(node.value, ast.Name)
        and node.value.id == name
    )


def from_jaxtyping(annotation: Any, hints: Hints, sizes: dict[str, int]) -> list[Alternative]:
    """``Float[Tensor, "batch 3 h w"]``: the dimensions by name, the same name the same size in all parameters."""
    text = getattr(annotation, "dim_str", None)
    dtypes = getattr(annotation, "dtypes", None)
    if text is None and isinstance(annotation, str):
        match = re.search(r"(\w+)\[\s*[\w.]*Tensor\s*,\s*[\"']([^\"']*)[\"']\s*\]", annotation)
        if match:
            dtypes, text = [match[1].lower()], match[2]
    if not isinstance(text, str):
        return []
    first = (dtypes[0] if isinstance(dtypes, (list, tuple)) and dtypes else "float32").lower()
    dtype = (
        "int64" if first.startswith(("int", "uint", "shaped")) else "bool" if first.startswith("bool") else "float32"
    )
    batch_dim: int | None = None
    shape: list[int] = []
    for index, part in enumerate(text.split()):
        name = part.lstrip("*#").split("=")[-1]
        if name in ("batch", "b", "bs", "n", "B", "N", "...") and batch_dim is None and index < 2:
            batch_dim = index
        elif name.isdigit():
            shape.append(int(name))
        else:
            role = _role([name], True)
            fallback = {"channel": channels(hints), "space": IMAGE, "width": FEATURES, "frames": 8}.get(role, LENGTH)
            told = hints.number([name.lower()])
            shape.append(sizes.setdefault(name, told[0] if told else fallback))
    high = None
    if dtype == "int64":
        vocabulary = hints.number(VOCABULARY)
        high = vocabulary[0] if vocabulary else 2
    return [Alternative(TensorSpec(tuple(shape), dtype, batch_dim, 0, high), f'annotated "{text}"')]


def from_annotation(name: str, parameter: inspect.Parameter) -> list[Alternative]:
    """Parameters that aren't tensors: numbers, flags, strings, None."""
    annotation = parameter.annotation
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    simple: dict[str, Any] = {"int": 2, "float": 0.5, "bool": False, "str": "sum"}
    if text in simple:
        return [Alternative(ValueSpec(simple[text]), f"annotated {text}")]
    shown = str(annotation)
    if re.search(r"(?i)(list|sequence|tuple)\[.*tensor", shown) and "Union" not in shown and "|" not in shown:
        count = shown.lower().count("tensor")
        item = TensorSpec((3, IMAGE, IMAGE))
        many = count if "tuple" in shown.lower() and "..." not in shown else 2
        return [Alternative(ListSpec((item,) * many, "tuple" in shown.lower()), f"annotated {shown}")]
    if re.search(r"(?i)dict\[str, .*tensor", shown):
        return [Alternative(DictSpec(()), f"annotated {shown}")]
    return []


def from_name(name: str, model: nn.Module, hints: Hints) -> list[Alternative]:
    """What the field calls things by these names."""
    lowered = name.lower()
    has_embedding = any(isinstance(module, nn.Embedding) for module in model.modules())
    if _TOKENS.match(lowered) and (has_embedding or "token" in lowered or "ids" in lowered):
        embedding = next((m for m in model.modules() if isinstance(m, nn.Embedding)), None)
        told = hints.number(VOCABULARY)
        count = told[0] if told else embedding.num_embeddings if embedding is not None else None
        return tokens(count, hints, f"named {name}")
    if _MASK.search(lowered):
        shape = (length(hints),)
        return [
            Alternative(TensorSpec(shape, "bool"), f"named {name}"),
            Alternative(TensorSpec((1, IMAGE, IMAGE), "float32", 0, 0, 1), f"named {name}"),
        ]
    if _TIMES.match(lowered):
        return [
            Alternative(TensorSpec((), "float32", 0, 0, 1), f"named {name}: one per sample"),
            Alternative(TensorSpec((), "int64", 0, 0, 10), f"named {name}: one per sample"),
        ]
    if _LENGTHS.search(lowered):
        return [Alternative(TensorSpec((), "int64", 0, 4, length(hints) + 1), f"named {name}: one per sample")]
    if _AUDIO.match(lowered):
        why = f"named {name}"
        return [Alternative(TensorSpec((16000,)), why), Alternative(TensorSpec((1, 16000)), why)]
    if _VIDEO.match(lowered):
        frames = hints.number(FRAMES)
        count = frames[0] if frames else 8
        size = hints.sizes(SIZES, 2)
        space: tuple[int, ...] = size[0] if size else (IMAGE, IMAGE)
        why = f"named {name}"
        return [
            Alternative(TensorSpec((channels(hints), count, *space)), why),
            Alternative(TensorSpec((count, channels(hints), *space)), why),
        ]
    if _IMAGES.match(lowered):
        return _spatial(channels(hints), 2, hints, f"named {name}")
    if _LABELS.match(lowered):
        classes = hints.number(CLASSES)
        spec = TensorSpec((), "int64", 0, 0, classes[0] if classes else 2)
        return [Alternative(spec, f"named {name}: one label per sample")]
    if lowered.endswith(("_shape", "_size", "size", "shape")):
        return [Alternative(ValueSpec((IMAGE, IMAGE)), f"named {name}")]
    return []


def generic(hints: Hints) -> list[Alternative]:
    """Where nothing is known: an image, a vector, a sequence, tokens, a signal, a volume."""
    why = "nothing says what it is"
    width = hints.number(WIDTHS)
    dim = width[0] if width else FEATURES
    rank = hints.values.get("spatial_dims")
    spatial = _spatial(channels(hints), rank if rank in (1, 2, 3) else 2, hints, why)
    return [
        *spatial,
        Alternative(TensorSpec((dim,)), why),
        Alternative(TensorSpec((length(hints), dim)), why),
        Alternative(TensorSpec((channels(hints), 64)), why),
        *tokens(None, hints, why)[:1],
        Alternative(TensorSpec((channels(hints), 16, 32, 32)), why),
        Alternative(TensorSpec(()), why),
    ]


def alternatives_for(
    model: nn.Module, name: str, parameter: inspect.Parameter, hints: Hints, sizes: dict[str, int]
) -> list[Alternative]:
    """Every specification worth a trial for one parameter, best first."""
    found = from_jaxtyping(parameter.annotation, hints, sizes)
    if found:
        return found
    found = from_annotation(name, parameter)
    if found:
        return found
    consumer = first_consumer(model, name)
    consumed = from_consumer(consumer, hints) if consumer else []
    unpacked = from_unpacking(model, name, hints)
    documented = from_docs(model, name, hints)
    named = from_name(name, model, hints)
    if consumed and consumer is not None and isinstance(consumer.module, (nn.Embedding, nn.EmbeddingBag)):
        found = [*consumed, *named]
    elif named and (_TIMES.match(name.lower()) or _TOKENS.match(name.lower()) or _MASK.search(name.lower())):
        found = [*named, *consumed, *unpacked]
    else:
        found = [*_agreeing(consumed, unpacked), *named, *documented]
        if not consumed:
            found = [*unpacked, *documented, *named]
    if not found:
        leaf = first_leaf(model)
        found = from_consumer(leaf, hints) if leaf else []
    return _unique([*found, *generic(hints)])


def _agreeing(consumed: list[Alternative], unpacked: list[Alternative]) -> list[Alternative]:
    """The consumer's alternatives, those of the rank that forward unpacks first, then the unpacked shape itself."""
    if not unpacked:
        return consumed
    first = unpacked[0].spec
    assert isinstance(first, TensorSpec)
    same = [a for a in consumed if isinstance(a.spec, TensorSpec) and len(a.spec.shape) == len(first.shape)]
    return [*same, *unpacked, *(a for a in consumed if a not in same)]


def first_leaf(model: nn.Module) -> Consumer | None:
    """The first layer with weights in the order of registration."""
    for path, module in model.named_modules():
        if not list(module.children()) and any(True for _ in module.parameters(recurse=False)):
            return Consumer(module, path)
    return None
