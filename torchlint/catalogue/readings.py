"""What the numbers and names in a message say, in the user's own numbers.

A reading is a sentence in English and Chinese, and, where the message tells it, how the guilty line looks in source
(``look_for``), so that it can be found when the file is at hand.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from torchlint.catalogue.matching import flatten
from torchlint.catalogue.state_dicts import listed, prefix


@dataclass(frozen=True, slots=True)
class Reading:
    """What a message says; ``look_for`` is a pattern of the source that it speaks of."""

    en: str
    zh: str
    look_for: str = ""


_Reader = Callable[[str], Iterator[Reading]]
_READERS: dict[str, list[_Reader]] = {}


def readings(slug: str, text: str) -> list[Reading]:
    """What a text that an answer fits says in its numbers; nothing where it has none or they can't be told."""
    flat = flatten(text)
    found = [reading for reader in _READERS.get(slug, ()) for reading in reader(flat)]
    return list(dict.fromkeys(found))


def _reads(*slugs: str) -> Callable[[_Reader], _Reader]:
    def register(reader: _Reader) -> _Reader:
        for slug in slugs:
            _READERS.setdefault(slug, []).append(reader)
        return reader

    return register


def _sizes(text: str) -> list[int]:
    return [int(size) for size in text.split(",") if size]


def _spelt(sizes: list[int]) -> str:
    return f"({', '.join(map(str, sizes))}{',' if len(sizes) == 1 else ''})"


# ----------------------------------------------------------------------------------------------------------- shapes

_ROWS_OF_AN_IMAGE = 3
"""Rows that one sample must have been before they are taken for an image that was not flattened."""

_PRODUCTS = (
    r"\((\d+)x(\d+)and(\d+)x(\d+)\)",
    r"m1:\[(\d+)x(\d+)\],m2:\[(\d+)x(\d+)\]",
    r"reductiondim,butgot\[(\d+),(\d+)\]X\[(\d+),(\d+)\]",
)


@_reads("linear-width")
def _product(flat: str) -> Iterator[Reading]:
    found = next((match for form in _PRODUCTS if (match := re.search(form, flat))), None)
    if not found:
        return
    rows, got, wanted, columns = map(int, found.groups())
    layer = rf"Linear\(\s*(?:in_features\s*=\s*)?{wanted}\s*,\s*(?:out_features\s*=\s*)?{columns}\b"
    yield Reading(
        f"The layer that wants {wanted} is nn.Linear({wanted}, {columns}) (or a matrix of that size); "
        f"what comes before gives {got}, in {rows} row{'s' * (rows != 1)}.",
        f"需要 {wanted} 的是 nn.Linear({wanted}, {columns})（或同样大小的矩阵）；前面给出的是 {got}，共 {rows} 行。",
        layer,
    )
    yield from _advice_for_product(rows, got, wanted, columns)


def _advice_for_product(rows: int, got: int, wanted: int, columns: int) -> Iterator[Reading]:
    values = rows * got
    if rows == wanted:
        yield Reading(
            f"The first operand has {wanted} on its other side: one of the two is transposed.",
            f"第一个操作数的另一侧正好是 {wanted}：其中一个转置了。",
        )
    elif values % wanted == 0 and rows >= _ROWS_OF_AN_IMAGE * (values // wanted):
        yield Reading(
            f"{rows} x {got} values are exactly {values // wanted} rows of {wanted}: the input was not flattened; "
            "torch.flatten(x, 1) keeps the batch.",
            f"{rows} x {got} 个值恰好是 {values // wanted} 行、每行 {wanted} 个：输入没有展平；"
            "用 torch.flatten(x, 1) 可保留批次维。",
        )
    elif rows == 1 and got > wanted and got % wanted == 0:
        yield Reading(
            f"{got} is {got // wanted} times {wanted}: the batch of {got // wanted} was flattened into one row.",
            f"{got} 是 {wanted} 的 {got // wanted} 倍：大小为 {got // wanted} 的批次也被展平成了一行。",
        )
    elif got == columns:
        yield Reading(
            f"It gets the {columns} it should give: the two arguments may be swapped, nn.Linear({columns}, {wanted}).",
            f"它收到的恰好是应当输出的 {columns}：两个参数可能写反了，应为 nn.Linear({columns}, {wanted})。",
        )
    else:
        yield Reading(
            f"If the input is right, write nn.Linear({got}, {columns}).",
            f"如果输入没有问题，就写成 nn.Linear({got}, {columns})。",
        )


@_reads("linear-width")
def _vector(flat: str) -> Iterator[Reading]:
    found = re.search(r"mat\((\d+)x(\d+)\),vec\((\d+)\)", flat)
    if found:
        rows, columns, length = found.groups()
        yield Reading(
            f"The matrix ({rows} x {columns}) needs a vector of {columns}; this one has {length}.",
            f"矩阵 ({rows} x {columns}) 需要长度为 {columns} 的向量，而这个向量长度是 {length}。",
        )
    found = re.search(r"firsttwodimensionsofbatch2tensortobe:\[(\d+),(\d+)\]butgot:\[(\d+),(\d+)\]", flat)
    if found:
        batch, width, other_batch, height = found.groups()
        which = (f"{other_batch} matrices against {batch}", f"矩阵个数 {other_batch} 对 {batch}")
        if batch == other_batch:
            which = (f"{height} rows against the {width} columns before", f"{height} 行对前面的 {width} 列")
        yield Reading(f"The second batch of matrices has {which[0]}.", f"第二组矩阵不符：{which[1]}。")
    found = re.search(r"equaltoinput_size\.?Expected(\d+),got(\d+)", flat)
    if found:
        wanted, got = found.groups()
        yield Reading(
            f"The recurrent layer was built for {wanted} features and gets {got}.",
            f"循环层是按 {wanted} 个特征建立的，收到的是 {got} 个。",
            rf"(?:LSTM|GRU|RNN)(?:Cell)?\(\s*(?:input_size\s*=\s*)?{wanted}\b",
        )


@_reads("broadcast")
def _broadcast(flat: str) -> Iterator[Reading]:
    found = re.search(r"tensora\((\d+)\)mustmatchthesizeoftensorb\((\d+)\)atnon-singletondimension(\d+)", flat)
    if found:
        first, second, dimension = found.groups()
        yield Reading(
            f"In dimension {dimension} the left operand has {first} and the right one {second}; neither is 1.",
            f"在第 {dimension} 维，左边是 {first}，右边是 {second}，都不是 1。",
        )
    found = re.search(
        r"expandedsizeofthetensor\((\d+)\)mustmatchtheexistingsize\((\d+)\)atnon-singletondimension(\d+)", flat
    )
    if found:
        target, existing, dimension = found.groups()
        yield Reading(
            f"In dimension {dimension} a tensor of size {existing} should fill {target}.",
            f"在第 {dimension} 维，大小为 {existing} 的张量要填入 {target}。",
        )


@_reads("view-size")
def _view(flat: str) -> Iterator[Reading]:
    found = re.search(r"'?\[([-\d,x]+)\]'?isinvalidforinput(?:ofsize|with)(\d+)", flat)
    if not found:
        return
    shape, total = _sizes(found[1].replace("x", ",")), int(found[2])
    known = math.prod(size for size in shape if size > 0)
    if not known:
        return
    yield Reading(
        f"The tensor holds {total} values; the given sizes make {known}"
        f"{' times a whole number' if -1 in shape else ''}.",
        f"张量里有 {total} 个值；给定的尺寸乘起来是{f' {known} 的整数倍' if -1 in shape else f' {known}'}。",
    )
    rest = known // shape[0] if shape[0] > 0 else known
    if shape[0] > 0 and total % rest == 0 and -1 not in shape:
        yield Reading(
            f"With the other sizes kept, the first would be {total // rest} and not {shape[0]}: "
            "use x.size(0) or -1 if it is the batch.",
            f"其余尺寸不变时，第一维应是 {total // rest} 而不是 {shape[0]}：如果它是批次，请用 x.size(0) 或 -1。",
        )
    if shape[0] > 1 and total % shape[0] == 0 and len(shape) == 2:
        yield Reading(
            f"If the batch is {shape[0]}, one sample holds {total // shape[0]} values.",
            f"如果批大小是 {shape[0]}，那么每个样本有 {total // shape[0]} 个值。",
        )


@_reads("conv-channels")
def _channels(flat: str) -> Iterator[Reading]:
    found = re.search(
        r"Given(groups|transposed)=(\d+).*?weightofsize\[([\d,]+)\],expectedinput\[([\d,]+)\]tohave(\d+)channels,butgot(\d+)",
        flat,
    )
    if found:
        weight, shape = _sizes(found[3]), _sizes(found[4])
        wanted, got = int(found[5]), int(found[6])
        outputs = weight[1] if found[1] == "transposed" else weight[0]
        kind = f"Conv{'Transpose' if found[1] == 'transposed' else ''}{len(weight) - 2}d"
        yield Reading(
            f"The layer is nn.{kind}({wanted}, {outputs}, ...) and takes {wanted} channels; "
            f"the input {_spelt(shape)} has {got}.",
            f"这一层是 nn.{kind}({wanted}, {outputs}, ...)，需要 {wanted} 个通道；输入 {_spelt(shape)} 有 {got} 个。",
            rf"{kind}\(\s*(?:in_channels\s*=\s*)?{wanted}\s*,",
        )
        if shape[-1] == wanted != shape[1]:
            yield Reading(
                f"Its last size is {wanted}: the channels are last. Use x.permute(0, {len(shape) - 1}, "
                f"{', '.join(map(str, range(1, len(shape) - 1)))}).",
                f"它的最后一维是 {wanted}：通道放在了最后。请用 x.permute(0, {len(shape) - 1}, "
                f"{', '.join(map(str, range(1, len(shape) - 1)))})。",
            )
    found = re.search(r"running_meanshouldcontain(\d+)elementsnot(\d+)", flat)
    if found:
        yield Reading(
            f"The normalization was built for {found[2]} channels and gets {found[1]}.",
            f"归一化层是按 {found[2]} 个通道建立的，收到的是 {found[1]} 个。",
            rf"(?:Batch|Instance|SyncBatch)Norm\w*\(\s*(?:num_features\s*=\s*)?{found[2]}\b",
        )
    found = re.search(r"normalized_shape=\[([\d,]+)\].*?(?:inputofsize|size)\[([\d,]+)\]", flat)
    if found:
        wanted_shape, shape = _sizes(found[1]), _sizes(found[2])
        yield Reading(
            f"LayerNorm was built for {_spelt(wanted_shape)} at the end of the shape; the input is {_spelt(shape)}.",
            f"LayerNorm 要求形状的末尾是 {_spelt(wanted_shape)}，输入是 {_spelt(shape)}。",
            rf"LayerNorm\(\s*\[?{wanted_shape[0]}\b",
        )
    found = re.search(r"inputtoconv\w+,butgotinputofsize:\[([\d,]*)\]", flat)
    if found:
        shape = _sizes(found[1])
        yield Reading(
            f"The input {_spelt(shape)} has {len(shape)} dimension{'s' * (len(shape) != 1)}.",
            f"输入 {_spelt(shape)} 只有 {len(shape)} 维。",
        )


@_reads("cat-sizes")
def _cat(flat: str) -> Iterator[Reading]:
    found = re.search(r"exceptindimension(\d+)\.Expectedsize(\d+)butgotsize(\d+)fortensornumber(\d+)", flat)
    if found:
        dimension, wanted, got, number = found.groups()
        yield Reading(
            f"They are joined along dimension {dimension}; tensor number {number} of the list (from 0) has {got} "
            f"where the first has {wanted}.",
            f"沿第 {dimension} 维拼接；列表中第 {number} 个张量（从 0 数）是 {got}，而第一个是 {wanted}。",
        )
    found = re.search(r"exceptindimension(\d+)\.Got(\d+)and(\d+)indimension(\d+)", flat)
    if found:
        dimension, first, second, other = found.groups()
        yield Reading(
            f"They are joined along dimension {dimension}, and differ in dimension {other}: {first} and {second}.",
            f"沿第 {dimension} 维拼接，而第 {other} 维不同：{first} 与 {second}。",
        )


@_reads("einsum")
def _einsum(flat: str) -> Iterator[Reading]:
    found = re.search(r"subscript(\w)hassize(\d+)foroperand(\d+)whichdoesnotbroadcastwithpreviouslyseensize(\d+)", flat)
    if found:
        letter, size, operand, before = found.groups()
        yield Reading(
            f"The letter {letter} is {size} in operand {operand} (from 0) and was {before} before.",
            f"字母 {letter} 在第 {operand} 个操作数（从 0 数）里是 {size}，而之前是 {before}。",
        )


@_reads("rnn-hidden")
def _hidden(flat: str) -> Iterator[Reading]:
    found = re.search(r"Expectedhidden(?:\[\d\])?size\(([\d,]+)\),got[\[(]([\d,]+)[\])]", flat)
    if not found:
        return
    wanted, got = _sizes(found[1]), _sizes(found[2])
    names = (("layers times directions", "层数乘方向数"), ("batch", "批大小"), ("hidden size", "隐藏维"))[
        -len(wanted) :
    ]
    for name, expected, given in zip(names, wanted, got, strict=False):
        if expected != given:
            yield Reading(
                f"The {name[0]} of the hidden state is {given}; the layer and its input call for {expected}.",
                f"隐状态的{name[1]}是 {given}，而这一层和输入要求 {expected}。",
            )


@_reads("groups")
def _groups(flat: str) -> Iterator[Reading]:
    found = re.search(r"num_channels\((\d+)\)mustbedivisiblebynum_groups\((\d+)\)", flat)
    if found:
        channels, groups = int(found[1]), int(found[2])
        near = max(number for number in range(1, groups + 1) if channels % number == 0)
        yield Reading(
            f"{channels} channels can't be cut into {groups} equal groups; {near} would do.",
            f"{channels} 个通道不能平均分成 {groups} 组；{near} 组可以。",
            rf"GroupNorm\(\s*(?:num_groups\s*=\s*)?{groups}\b",
        )


@_reads("batchnorm-one")
def _one_value(flat: str) -> Iterator[Reading]:
    found = re.search(r"gotinputsizetorch\.Size\(\[([\d,]+)\]\)", flat)
    if found:
        shape = _sizes(found[1])
        yield Reading(f"The input is {_spelt(shape)}: one sample.", f"输入是 {_spelt(shape)}：只有一个样本。")


# ----------------------------------------------------------------------------------------------------------- values


@_reads("target-range")
def _target(flat: str) -> Iterator[Reading]:
    found = re.search(r"Target(-?\d+)isoutofbounds", flat)
    if found:
        label = int(found[1])
        if label < 0:
            yield Reading(f"The label {label} is negative.", f"标签 {label} 是负数。")
        else:
            yield Reading(
                f"For a label of {label} the model needs at least {label + 1} outputs, or labels that begin at 0.",
                f"标签 {label} 要求模型至少有 {label + 1} 个输出，或者标签从 0 开始。",
            )


@_reads("index-range")
def _index(flat: str) -> Iterator[Reading]:
    found = re.search(r"index(-?\d+)isoutofboundsfordimension(\d+)withsize(\d+)", flat)
    if found:
        index, dimension, size = found.groups()
        yield Reading(
            f"Dimension {dimension} has {size} entries (0 to {int(size) - 1}); {index} was asked for.",
            f"第 {dimension} 维有 {size} 个（0 到 {int(size) - 1}），请求的是 {index}。",
        )


@_reads("batch-mismatch")
def _batches(flat: str) -> Iterator[Reading]:
    found = re.search(r"inputbatch_size\((\d+)\)tomatchtargetbatch_size\((\d+)\)", flat)
    if found:
        predictions, targets = int(found[1]), int(found[2])
        if targets and predictions > targets and predictions % targets == 0:
            times = predictions // targets
            yield Reading(
                f"{predictions} predictions for {targets} labels: each sample became {times} rows on the way.",
                f"{predictions} 个预测对 {targets} 个标签：每个样本在途中变成了 {times} 行。",
            )
        elif predictions and targets % predictions == 0:
            yield Reading(
                f"{predictions} predictions for {targets} labels, {targets // predictions} labels to each.",
                f"{predictions} 个预测对 {targets} 个标签，每个预测对应 {targets // predictions} 个标签。",
            )
        else:
            yield Reading(
                f"{predictions} predictions meet {targets} labels.", f"{predictions} 个预测遇到了 {targets} 个标签。"
            )
    found = re.search(r"Expectedtargetsize[\[(]([\d,]+)[\])],got(?:torch\.Size\()?[\[(]([\d,]+)[\])]", flat)
    if found:
        wanted, got = _spelt(_sizes(found[1])), _spelt(_sizes(found[2]))
        yield Reading(
            f"With the classes in dimension 1 the target would have to be {wanted}; it is {got}.",
            f"按类别在第 1 维计算，标签应为 {wanted}，实际是 {got}。",
        )


@_reads("loss-broadcast", "bce-size")
def _loss_sizes(flat: str) -> Iterator[Reading]:
    found = re.search(
        r"(?:T|t)argetsize\(torch\.Size\(\[([\d,]*)\]\)\)(?:mustbethesameas|thatisdifferentto|thatisdifferenttothe)(?:the)?inputsize\(torch\.Size\(\[([\d,]*)\]\)\)",
        flat,
    )
    if not found:
        return
    target, output = _sizes(found[1]), _sizes(found[2])
    together = _broadcast_of(target, output)
    if together and together not in (target, output):
        yield Reading(
            f"{_spelt(output)} against {_spelt(target)} would broadcast to {_spelt(together)}: "
            "every prediction with every target.",
            f"{_spelt(output)} 与 {_spelt(target)} 会广播成 {_spelt(together)}：每个预测对每个标签。",
        )
    if output == [*target, 1]:
        yield Reading(
            f"Take the last dimension off the prediction: output.squeeze({len(target)}).",
            f"去掉预测的最后一维：output.squeeze({len(target)})。",
        )


def _broadcast_of(first: list[int], second: list[int]) -> list[int]:
    length = max(len(first), len(second))
    first, second = [1] * (length - len(first)) + first, [1] * (length - len(second)) + second
    if any(a != b and 1 not in (a, b) for a, b in zip(first, second, strict=True)):
        return []
    return [max(pair) for pair in zip(first, second, strict=True)]


@_reads("unequal-samples")
def _samples(flat: str) -> Iterator[Reading]:
    found = re.search(r"butgot\[([\d,]*)\]atentry(\d+)and\[([\d,]*)\]atentry(\d+)", flat)
    if found:
        first, second = _sizes(found[1]), _sizes(found[3])
        yield Reading(
            f"Sample {found[2]} of the batch is {_spelt(first)} and sample {found[4]} is {_spelt(second)}.",
            f"批次中第 {found[2]} 个样本是 {_spelt(first)}，第 {found[4]} 个是 {_spelt(second)}。",
        )


@_reads("uncollatable")
def _class_of_sample(flat: str) -> Iterator[Reading]:
    found = re.search(r"found<class'([\w.]+)'>", flat)
    if found:
        yield Reading(f"The sample holds a {found[1]}.", f"样本里有 {found[1]}。")


# ---------------------------------------------------------------------------------------------------------- autograd

_WEIGHT_OPERATIONS = ("T", "AsStrided", "Transpose")


@_reads("inplace-breaks-backward")
def _changed(flat: str) -> Iterator[Reading]:
    found = re.search(
        r"\[torch\.[\w.]*Tensor\[?([\d,]*)\]?\](?:,whichisoutput(\d+)of(\w+?)(?:Backward\d*)?)?,isatversion(\d+);expectedversion(\d+)",
        flat,
    )
    if not found:
        return
    shape, operation = _spelt(_sizes(found[1])), found[3]
    times = max(int(found[4]) - int(found[5]), 1)
    counted = ("once", "一次") if times == 1 else (f"{times} times", f"{times} 次")
    if operation and operation not in _WEIGHT_OPERATIONS:
        yield Reading(
            f"The tensor {shape} that {operation} gave was changed {counted[0]} after the forward.",
            f"{operation} 得到的张量 {shape} 在前向之后被修改了{counted[1]}。",
        )
    else:
        yield Reading(
            f"The tensor {shape} is no activation but a weight or an input, changed {counted[0]} since the forward: "
            "look for an optimizer.step() before this backward.",
            f"张量 {shape} 不是激活值，而是权重或输入，前向之后被修改了{counted[1]}："
            "看看这次反向之前是否执行了 optimizer.step()。",
        )


@_reads("gradient-count")
def _gradients(flat: str) -> Iterator[Reading]:
    found = re.search(r"function(\w+?)Backwardreturnedanincorrectnumberofgradients\(expected(\d+),got(\d+)\)", flat)
    if found:
        name, wanted, got = found.groups()
        yield Reading(
            f"{name}.forward takes {wanted} argument{'s' * (wanted != '1')} after ctx, and backward returns {got}.",
            f"{name}.forward 在 ctx 之后有 {wanted} 个参数，而 backward 返回了 {got} 个。",
            rf"class\s+{name}\b",
        )


# ----------------------------------------------------------------------------------------------------------- modules


@_reads("size-mismatch")
def _mismatched(flat: str) -> Iterator[Reading]:
    found = re.findall(
        r"sizemismatchfor([\w.]+?):copyingaparam(?:eter)?(?:withshape)?(?:of)?torch\.Size\(\[([\d,]*)\]\)from(?:the)?checkpoint,"
        r"theshapein(?:the)?currentmodelistorch\.Size\(\[([\d,]*)\]\)",
        flat,
    )
    for key, saved, present in found[:3]:
        yield Reading(
            f"{key}: {_spelt(_sizes(saved))} in the checkpoint, {_spelt(_sizes(present))} in the model.",
            f"{key}：检查点里是 {_spelt(_sizes(saved))}，模型里是 {_spelt(_sizes(present))}。",
        )
    if len(found) > 3:
        yield Reading(f"{len(found)} keys differ in all.", f"共有 {len(found)} 个键不同。")


@_reads("missing-keys", "wrapped-keys", "other-keys")
def _keys(flat: str) -> Iterator[Reading]:
    missing, unexpected = listed("Missing", flat), listed("Unexpected", flat)
    if not missing and not unexpected:
        return
    begins = prefix(missing, unexpected)
    other = prefix(unexpected, missing)
    if begins:
        yield Reading(
            f"Every key of the file begins with {begins!r}, and the model's don't: take it off.",
            f"文件里的每个键都以 {begins!r} 开头，而模型的没有：把它去掉。",
        )
    elif other:
        yield Reading(
            f"The model's keys begin with {other!r} and the file's don't: load into the model inside the wrapper.",
            f"模型的键以 {other!r} 开头，而文件里的没有：应加载到包装器里面的模型。",
        )
    else:
        yield Reading(
            f"{len(missing)} missing and {len(unexpected)} unexpected keys"
            f"{f', such as {missing[0]}' if missing else ''}{f' and {unexpected[0]}' if unexpected else ''}.",
            f"缺少 {len(missing)} 个键，多出 {len(unexpected)} 个键"
            f"{f'，例如 {missing[0]}' if missing else ''}{f' 与 {unexpected[0]}' if unexpected else ''}。",
        )


@_reads("weights-only")
def _refused(flat: str) -> Iterator[Reading]:
    found = re.search(r"GLOBAL([\w.]+?)wasnotanallowedglobal", flat)
    if found:
        yield Reading(f"The file holds a {found[1]}.", f"文件里有 {found[1]}。")


@_reads("pickled-class-gone")
def _gone(flat: str) -> Iterator[Reading]:
    found = re.search(r"Can'tgetattribute'(\w+)'on<module'([\w.]+)'", flat)
    if found:
        yield Reading(
            f"The file looks for a class {found[1]} in the module {found[2]}.",
            f"文件要在模块 {found[2]} 里找类 {found[1]}。",
        )
    found = re.search(r"Nomodulenamed'([\w.]+)'", flat)
    if found:
        yield Reading(f"The file asks for the module {found[1]}.", f"文件需要模块 {found[1]}。")


# ---------------------------------------------------------------------------------------------------------- the rest


@_reads("same-device")
def _devices(flat: str) -> Iterator[Reading]:
    found = re.search(r"foundatleasttwodevices,([\w:]+?)and([\w:]+?)!", flat)
    if found:
        yield Reading(
            f"One tensor is on {found[1]} and another on {found[2]}.", f"一个张量在 {found[1]}，另一个在 {found[2]}。"
        )
    found = re.search(r"forargument(?:#\d'(\w+)'|(\w+?))inmethod(?:wrapper_)?(?:CUDA_*)?(\w+)", flat)
    if found:
        name = found[1] or found[2]
        yield Reading(f"It is the argument {name} of {found[3]}.", f"是 {found[3]} 的参数 {name}。")


@_reads("oom")
def _memory(flat: str) -> Iterator[Reading]:
    asked = re.search(r"Triedtoallocate([\d.]+)([GMK])iB", flat)
    if not asked:
        return
    free = re.search(r"([\d.]+)([GMK])iB(?:is)?free", flat)
    total = re.search(r"([\d.]+)([GMK])iBtotalcapacity|totalcapacityof([\d.]+)([GMK])iB", flat)
    en, zh = f"{asked[1]} {asked[2]}iB more were asked for", f"又申请了 {asked[1]} {asked[2]}iB"
    if total:
        size, unit = total[1] or total[3], total[2] or total[4]
        en, zh = f"{en}, on a GPU of {size} {unit}iB", f"{zh}，显卡共 {size} {unit}iB"
    if free:
        en, zh = f"{en} with {free[1]} {free[2]}iB free", f"{zh}，剩余 {free[1]} {free[2]}iB"
    yield Reading(f"{en}.", f"{zh}。")
    idle = re.search(r"([\d.]+)([GMK])iBisreservedbyPyTorchbutunallocated", flat)
    if idle and _bytes(idle[1], idle[2]) > _bytes(asked[1], asked[2]):
        yield Reading(
            f"torch holds {idle[1]} {idle[2]}iB that it doesn't use: the memory is in fragments.",
            f"torch 保留着 {idle[1]} {idle[2]}iB 没有使用：显存碎片化了。",
        )


def _bytes(number: str, unit: str) -> float:
    return float(number) * {"K": 2.0**10, "M": 2.0**20, "G": 2.0**30}[unit]


@_reads("worker-envelope")
def _inside(flat: str) -> Iterator[Reading]:
    found = re.search(r"Caught(\w+?)inDataLoaderworkerprocess(\d+)", flat)
    if found:
        yield Reading(
            f"What happened is a {found[1]}, in worker {found[2]}.",
            f"真正发生的是 {found[1]}，在 {found[2]} 号工作进程里。",
        )


@_reads("static-shape-guard")
def _guard(flat: str) -> Iterator[Reading]:
    found = re.search(r"Guardfailed:(\w+)\.size\(\)\[(\d+)\]==(\d+)", flat)
    if found:
        name, dimension, size = found.groups()
        yield Reading(
            f"Dimension {dimension} of {name} was exported as {size} and nothing else.",
            f"{name} 的第 {dimension} 维导出时被固定为 {size}。",
        )


@_reads("dynamic-violated")
def _specialized(flat: str) -> Iterator[Reading]:
    found = re.search(r"Youmarked(.+?)asdynamicbutyourcodespecializedittobeaconstant\((\d+)\)", flat)
    if found:
        yield Reading(
            f"{found[1]} was declared dynamic, and the program fixes it at {found[2]}.",
            f"{found[1]} 声明为动态，而程序把它固定成了 {found[2]}。",
        )


@_reads("no-attribute", "ddp-attribute")
def _attribute(flat: str) -> Iterator[Reading]:
    found = re.search(r"'(\w+)'objecthasnoattribute'(\w+)'", flat)
    if found:
        yield Reading(f"{found[1]} has no {found[2]}.", f"{found[1]} 没有 {found[2]}。", rf"\.{found[2]}\b")
