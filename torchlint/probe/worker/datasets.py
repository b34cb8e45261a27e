"""TP120: a Dataset or DataLoader against the model: samples, batches, labels, workers."""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, default_collate

from .building import describe
from .feeding import NoInput, load
from .inference import run_model
from .registry import NotAsked, Problem, check
from .sites import Site, definition_site, error_site
from .subject import Subject, seed_all
from .training import named_loss
from .values import map_tensors, signature, tensors

_SAMPLES = 8


@check("TP120")
def data(subject: Subject) -> Iterable[Problem]:
    """Samples collate, hold sound values, and fit the model; workers share the work."""
    name = subject.options.data
    if name is None:
        raise NotAsked("give --data TARGET")
    try:
        value = load(name)
        if callable(value) and not isinstance(value, (Dataset, DataLoader)):
            value = value()
    except NoInput as none:
        yield none.problem or Problem(none.reason)
        return
    except Exception as error:
        yield Problem(f"{name} fails: {describe(error)}", error_site(error))
        return
    loader = value if isinstance(value, DataLoader) else None
    dataset: Any = loader.dataset if loader is not None else value
    site = definition_site(getattr(type(dataset), "__getitem__", None)) or definition_site(type(dataset))
    if isinstance(dataset, IterableDataset):
        site = definition_site(type(dataset).__iter__) or site
    samples: list[Any] = []
    try:
        seed_all(subject.options.seed)
        for sample in _samples(dataset):
            samples.append(sample)
    except Exception as error:
        yield Problem(f"sample {len(samples)} fails: {describe(error)}", error_site(error) or site, "", "T-E2")
        return
    if not samples:
        yield Problem(f"{name} has no samples", site)
        return
    yield from _sample_problems(samples, site)
    yield from _worker_problems(dataset, site)
    collate = loader.collate_fn if loader is not None and loader.collate_fn is not None else default_collate
    try:
        batch = collate(samples)
    except Exception as error:
        text = str(error)
        failure = (
            "T-E3" if "equal size" in text else "T-E4" if "default_collate" in text or "NoneType" in text else "T-E2"
        )
        hint = (
            "pad or crop in the dataset, or give the DataLoader a collate_fn"
            if failure == "T-E3"
            else "return tensors, numbers, lists or dicts, never None"
        )
        yield Problem(f"samples don't collate: {describe(error)}", error_site(error) or site, hint, failure)
        return
    yield from _model_problems(subject, batch, site)


def _samples(dataset: Any) -> Iterator[Any]:
    if isinstance(dataset, IterableDataset) or not hasattr(dataset, "__getitem__"):
        for index, sample in enumerate(dataset):
            if index >= _SAMPLES:
                return
            yield sample
        return
    count = len(dataset) if hasattr(dataset, "__len__") else _SAMPLES
    picks = range(count) if count <= _SAMPLES else sorted({i * (count - 1) // (_SAMPLES - 1) for i in range(_SAMPLES)})
    for index in picks:
        yield dataset[index]


def _sample_problems(samples: list[Any], site: Site | None) -> Iterable[Problem]:
    for index, sample in enumerate(samples):
        if sample is None or (isinstance(sample, tuple) and any(part is None for part in sample)):
            yield Problem(f"sample {index} holds None, which default_collate can't put in a batch", site, "", "T-E4")
            return
    converted = [default_convert(sample) for sample in samples]
    wide = next((path for sample in converted for path, t in tensors(sample) if t.dtype == torch.float64), None)
    if wide is not None:
        yield Problem(
            f"samples hold float64 (sample{wide}): the model's float32 layers fail on it, or everything turns float64",
            site,
            "torch.as_tensor(x, dtype=torch.float32)",
            "T-C2",
        )
    for index, sample in enumerate(converted):
        for path, t in tensors(sample):
            if t.is_floating_point() and not bool(t.isfinite().all()):
                kind = "NaN" if bool(t.isnan().any()) else "infinity"
                yield Problem(
                    f"sample {index} holds {kind} (sample{path})",
                    site,
                    "clean the data: torch.nan_to_num, or drop the sample",
                    "L-17",
                )
                return


def default_convert(sample: Any) -> Any:
    """A sample with arrays and Python floats as the tensors that collating makes of them."""
    from torch.utils import data as loading

    convert: Any = loading.default_convert
    converted = convert(sample)

    def numbers(value: Any) -> Any:
        if isinstance(value, float):
            return torch.tensor(value, dtype=torch.float64)
        if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
            return [numbers(item) for item in value]
        if isinstance(value, dict):
            return {key: numbers(item) for key, item in value.items()}
        return value

    return numbers(converted)


# ---- workers, imitated in this process as torch sets them up


def _worker_problems(dataset: Any, site: Site | None) -> Iterable[Problem]:
    try:
        if isinstance(dataset, IterableDataset):
            yield from _repeated(dataset, site)
        else:
            yield from _same_draws(dataset, site)
    except Exception as error:
        yield Problem(f"the dataset can't be copied for workers: {describe(error)}", site, "", "X-14", "warning")


def _as_worker(dataset: Any, number: int) -> Any:
    """A copy of the dataset in the state a worker starts with; get_worker_info() answers as it would there."""
    from torch.utils.data._utils import worker

    twin = copy.deepcopy(dataset)
    info = worker.WorkerInfo(id=number, num_workers=2, seed=1000 + number, dataset=twin)
    worker._worker_info = info
    torch.manual_seed(1000 + number)
    import random

    random.seed(1000 + number)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(1000 + number)
    return twin


def _no_worker() -> None:
    from torch.utils.data._utils import worker

    worker._worker_info = None


def _repeated(dataset: Any, site: Site | None) -> Iterable[Problem]:
    streams = []
    try:
        for number in (0, 1):
            twin = _as_worker(dataset, number)
            streams.append([_fingerprint(sample) for sample in _samples(twin)])
    finally:
        _no_worker()
    if streams[0] and streams[0] == streams[1]:
        yield Problem(
            "every worker yields the same samples: with two workers each sample is trained twice an epoch",
            site,
            "split the stream by torch.utils.data.get_worker_info()",
            "T-H5",
        )


def _same_draws(dataset: Any, site: Site | None) -> Iterable[Problem]:
    draws = []
    try:
        for number in (0, 1):
            twin = _as_worker(dataset, number)
            draws.append([_fingerprint(twin[0]) for _ in range(2)])
    finally:
        _no_worker()
    is_random = draws[0][0] != draws[0][1]
    if is_random and draws[0] == draws[1]:
        yield Problem(
            "workers draw the same random numbers: the generator kept on the dataset is copied to each of them",
            site,
            "draw from torch's or numpy's global generator, or seed one per worker in worker_init_fn",
            "T-H4",
        )


def _fingerprint(sample: Any) -> str:
    parts = [
        f"{tuple(t.shape)}:{t.double().sum().item():.9g}:{t.double().flatten()[:5].tolist()}"
        for _, t in tensors(default_convert(sample))
    ]
    return "|".join(parts) or repr(sample)


# ---- the model


def _model_problems(subject: Subject, batch: Any, site: Site | None) -> Iterable[Problem]:
    inputs, target = _split(batch)
    subject.memo["targets"] = target
    for problem in _token_problems(subject, inputs, site):
        yield problem
        return
    model = subject.fresh()
    single = map_tensors(inputs, lambda t: t.float() if t.dtype == torch.float64 else t)
    args, kwargs = (
        ((), single)
        if isinstance(single, dict)
        else (tuple(single), {})
        if isinstance(single, (list, tuple))
        else ((single,), {})
    )
    outcome = run_model(model, args, kwargs)
    if outcome.error is not None:
        problem = subject.diagnose(outcome, f"forward on a batch of the data ({signature(inputs)})")
        problem.failure = problem.failure or "T-C10"
        # The model runs on its own inputs: what doesn't fit is the data.
        problem.site = site or problem.site
        problem.change = None
        yield problem
        return
    output = next((t for _, t in tensors(outcome.output) if t.is_floating_point()), None)
    if output is not None and isinstance(target, torch.Tensor):
        yield from _label_problems(subject, output, target, site)


def _split(batch: Any) -> tuple[Any, Any]:
    if isinstance(batch, (list, tuple)) and len(batch) >= 2:
        rest = batch[:-1]
        return (rest[0] if len(rest) == 1 else list(rest)), batch[-1]
    if isinstance(batch, dict):
        for key in ("labels", "label", "target", "targets", "y"):
            if key in batch:
                return {name: value for name, value in batch.items() if name != key}, batch[key]
    return batch, None


def _token_problems(subject: Subject, inputs: Any, site: Site | None) -> Iterable[Problem]:
    whole = [t for _, t in tensors(inputs) if not t.is_floating_point() and t.dtype != torch.bool and t.numel()]
    embedding = next((m for m in subject.built.model.modules() if isinstance(m, nn.Embedding)), None)
    if not whole or embedding is None:
        return
    highest, lowest = int(whole[0].max()), int(whole[0].min())
    if highest >= embedding.num_embeddings or lowest < 0:
        wrong = highest if highest >= embedding.num_embeddings else lowest
        yield Problem(
            f"the data holds token {wrong}, and the embedding has {embedding.num_embeddings} rows (0 to "
            f"{embedding.num_embeddings - 1})",
            site,
            f"num_embeddings={highest + 1} at least, or other ids",
            "L-02",
        )


def _label_problems(
    subject: Subject, output: torch.Tensor, target: torch.Tensor, site: Site | None
) -> Iterable[Problem]:
    if subject.options.loss:
        yield from _loss_problems(subject, output, target, site)
        return
    if target.dtype in (torch.int64, torch.int32, torch.uint8, torch.int16, torch.int8) and output.dim() >= 2:
        classes = (
            output.shape[1]
            if output.dim() != 3 or output.shape[1] != (target.shape[1] if target.dim() > 1 else -1)
            else output.shape[2]
        )
        valid = target[target != -100]
        if valid.numel() and (int(valid.max()) >= classes or int(valid.min()) < 0):
            wrong = int(valid.max()) if int(valid.max()) >= classes else int(valid.min())
            yield Problem(
                f"the data holds label {wrong}, and the model gives {classes} classes (0 to {classes - 1})",
                site,
                "count labels from 0, or give the model more classes",
                "T-C8",
            )
    elif (
        target.is_floating_point()
        and output.dim() == 2
        and output.shape[1] > 1
        and target.dim() == 1
        and _whole(target)
    ):
        yield Problem(
            f"labels are {str(target.dtype).removeprefix('torch.')} where {output.shape[1]} classes call for int64",
            site,
            "torch.as_tensor(label, dtype=torch.int64)",
            "T-C9",
        )
    elif target.is_floating_point() and output.shape != target.shape and output.numel() == target.numel():
        yield Problem(
            f"the output is {list(output.shape)} and the target {list(target.shape)}: a loss would broadcast them",
            site,
            "target.unsqueeze(1), or output.squeeze(1)",
            "X-10",
        )
    if target.dim() and output.dim() and target.shape[0] != output.shape[0]:
        yield Problem(
            f"a batch of {target.shape[0]} labels meets {output.shape[0]} rows of output",
            site,
            "keep the batch dimension in view and reshape",
            "T-C10",
        )


def _whole(target: torch.Tensor) -> bool:
    return bool((target == target.round()).all()) and bool((target >= 0).all())


def _loss_problems(
    subject: Subject, output: torch.Tensor, target: torch.Tensor, site: Site | None
) -> Iterable[Problem]:
    loss = named_loss(subject.options.loss or "")
    try:
        value = loss(output, target)
    except Exception as error:
        text = str(error)
        failure = (
            "T-C8"
            if "out of bounds" in text
            else "T-C9"
            if "scalar type Long" in text or "target dtype" in text
            else "T-C10"
            if "batch_size" in text
            else "X-11"
            if "Target size" in text
            else "X-25"
            if "between 0 and 1" in text
            else "X-08"
            if "multi-target" in text
            else "X-09"
            if "dtype" in text
            else "T-C10"
        )
        yield Problem(f"the loss fails on the data's labels: {describe(error)}", error_site(error) or site, "", failure)
        return
    if isinstance(value, torch.Tensor) and not bool(value.isfinite().all()):
        yield Problem(f"the loss on a batch of the data is {value.flatten()[0].item()}", site, "", "L-17")
    if (
        output.shape != target.shape
        and target.is_floating_point()
        and output.numel() == target.numel()
        and output.dim() != target.dim()
    ):
        yield Problem(
            f"the output is {list(output.shape)} and the target {list(target.shape)}: the loss broadcasts them",
            site,
            "target.unsqueeze(1), or output.squeeze(1)",
            "X-10",
        )
