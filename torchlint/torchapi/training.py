"""What training is made of: optimizers, schedulers, losses, loaders, modes, scalers, wrappers, exporters, frameworks.

torch's own signatures come from ``signatures.tsv``; what a name means for a training loop is written here by hand, from
torch 2.13's documentation and, for other packages, their sources. All names are canonical (``modules.canonical``).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass

from torchlint.torchapi.modules import canonical, module_class
from torchlint.torchapi.operations import function
from torchlint.torchapi.signatures import Signature, parse_signature
from torchlint.torchapi.tables import rows


@functools.cache
def signature(qualname: str) -> Signature | None:
    """The signature of any torch callable that the tables hold: constructors without self, methods with it."""
    name = canonical(qualname)
    row = rows("signatures").get(name)
    if row is not None:
        return parse_signature(row.partition("\t")[2])
    operation = function(name)
    if operation is not None:
        return operation.signature
    module = module_class(name)
    return module.signature if module is not None else None


# ---------------------------------------------------------------------------------------------------- optimizers


@dataclass(frozen=True, slots=True)
class Optimizer:
    """An optimizer class.

    family         adam, sgd, or other: what learning rates are usual
    learning_rate  its default, None where the package decides or none is tabled
    signature      the constructor's; None where it isn't tabled (lr is then taken by keyword)
    needs_closure  whether step() must be given a closure (L-BFGS)
    unit_rate      whether a learning rate of 1 is its usual one
    """

    name: str
    family: str
    learning_rate: float | None
    signature: Signature | None
    needs_closure: bool = False
    unit_rate: bool = False


_TORCH_FAMILIES = {
    "ASGD": "sgd",
    "Adadelta": "other",
    "Adafactor": "other",
    "Adagrad": "other",
    "Adam": "adam",
    "AdamW": "adam",
    "Adamax": "adam",
    "LBFGS": "other",
    "Muon": "other",
    "NAdam": "adam",
    "RAdam": "adam",
    "RMSprop": "other",
    "Rprop": "other",
    "SGD": "sgd",
    "SparseAdam": "adam",
}
_UNIT_RATES = {"torch.optim.Adadelta", "torch.optim.LBFGS"}
_CLOSURES = {"torch.optim.LBFGS"}

# Package, class: family, learning rate by default, whether 1 is usual. Read in: prodigyopt 1.1, dadaptation 3.2,
# schedulefree 1.4, lion-pytorch 0.2, bitsandbytes 0.45, apex, deepspeed 0.16, timm 1.0, transformers 4.x,
# adabelief-pytorch 0.2, adopt, torch-optimizer 0.3, pytorch-optimizer 3.
_OTHER_OPTIMIZERS: dict[str, tuple[str, float | None, bool]] = {
    "prodigyopt.Prodigy": ("adam", 1.0, True),
    "dadaptation.DAdaptAdam": ("adam", 1.0, True),
    "dadaptation.DAdaptAdaGrad": ("other", 1.0, True),
    "dadaptation.DAdaptSGD": ("sgd", 1.0, True),
    "dadaptation.DAdaptLion": ("other", 1.0, True),
    "schedulefree.AdamWScheduleFree": ("adam", 0.0025, False),
    "schedulefree.RAdamScheduleFree": ("adam", 0.0025, False),
    "schedulefree.SGDScheduleFree": ("sgd", 1.0, True),
    "lion_pytorch.Lion": ("other", 1e-4, False),
    "transformers.Adafactor": ("other", None, True),
    "transformers.optimization.Adafactor": ("other", None, True),
    "transformers.AdamW": ("adam", 1e-3, False),
    "transformers.optimization.AdamW": ("adam", 1e-3, False),
    "adabelief_pytorch.AdaBelief": ("adam", 1e-3, False),
    "adopt.ADOPT": ("adam", 1e-3, False),
    "apex.optimizers.FusedAdam": ("adam", 1e-3, False),
    "apex.optimizers.FusedLAMB": ("adam", 1e-3, False),
    "apex.optimizers.FusedSGD": ("sgd", None, False),
    "deepspeed.ops.adam.FusedAdam": ("adam", 1e-3, False),
    "deepspeed.ops.adam.DeepSpeedCPUAdam": ("adam", 1e-3, False),
    "bitsandbytes.optim.Adam8bit": ("adam", 1e-3, False),
    "bitsandbytes.optim.AdamW8bit": ("adam", 1e-3, False),
    "bitsandbytes.optim.PagedAdamW8bit": ("adam", 1e-3, False),
    "bitsandbytes.optim.PagedAdamW32bit": ("adam", 1e-3, False),
    "bitsandbytes.optim.Lion8bit": ("other", 1e-4, False),
    "bitsandbytes.optim.SGD8bit": ("sgd", None, False),
    "torch.distributed.optim.ZeroRedundancyOptimizer": ("other", None, False),
    "torch.distributed.optim.DistributedOptimizer": ("other", None, False),
}
# Whole packages of optimizers: any class of theirs with a capital is one.
_OPTIMIZER_PACKAGES = re.compile(
    r"(torch_optimizer|pytorch_optimizer|timm\.optim|heavyball)\.([a-z_]+\.)?(?P<name>[A-Z]\w*)"
)
_ADAM_LIKE = re.compile(r"(?i)adam|lamb|adan|adabelief|adopt|novograd|laprop")
_SGD_LIKE = re.compile(r"(?i)sgd|lars")


@functools.cache
def optimizer(qualname: str) -> Optimizer | None:
    """The optimizer class of that name; None where it isn't known to be one."""
    name = canonical(qualname)
    package, _, short = name.rpartition(".")
    if package == "torch.optim" and short in _TORCH_FAMILIES:
        built = signature(name)
        rate = built.argument("lr") if built is not None else None
        default = rate.default if rate is not None else None
        return Optimizer(
            name=name,
            family=_TORCH_FAMILIES[short],
            learning_rate=float(default) if isinstance(default, (int, float)) else None,
            signature=built,
            needs_closure=name in _CLOSURES,
            unit_rate=name in _UNIT_RATES,
        )
    if name in _OTHER_OPTIMIZERS:
        family, learning_rate, unit_rate = _OTHER_OPTIMIZERS[name]
        return Optimizer(name, family, learning_rate, signature(name), unit_rate=unit_rate)
    packaged = _OPTIMIZER_PACKAGES.fullmatch(name)
    if packaged is not None:
        short = packaged["name"]
        family = "adam" if _ADAM_LIKE.search(short) else "sgd" if _SGD_LIKE.search(short) else "other"
        unit_rate = re.search(r"(?i)prodigy|dadapt|schedulefree|adadelta|lbfgs|adafactor", short) is not None
        return Optimizer(name, family, None, None, unit_rate=unit_rate)
    return None


OPTIMIZER_BASES = frozenset({"torch.optim.Optimizer"})
"""Classes that the user's own optimizers derive from."""

OPTIMIZER_FACTORIES = frozenset(
    {
        "timm.optim.create_optimizer",
        "timm.optim.create_optimizer_v2",
        "torch_optimizer.get",
        "pytorch_optimizer.create_optimizer",
    }
)
"""Functions that return an optimizer of a class that they choose."""


# ---------------------------------------------------------------------------------------------------- schedulers

PER_EPOCH = "epoch"
PER_BATCH = "batch"
EITHER = "either"


@dataclass(frozen=True, slots=True)
class Scheduler:
    """A learning-rate scheduler.

    stepped        when step() is called: per epoch by its documentation, per batch by design, or either
    needs_metric   whether step() must be given a metric (ReduceLROnPlateau)
    counts_steps   whether it is told a number of steps that must fit how it is stepped (OneCycleLR(total_steps))
    wraps          whether it is made of other schedulers (SequentialLR, ChainedScheduler)
    sets_rate      whether the optimizer's own learning rate is only a factor of the real one (LambdaLR, warm-ups)
    needs_epoch    whether step() takes the epoch (timm)
    """

    name: str
    stepped: str = PER_EPOCH
    needs_metric: bool = False
    counts_steps: bool = False
    wraps: bool = False
    sets_rate: bool = False
    needs_epoch: bool = False
    signature: Signature | None = None


_LR = "torch.optim.lr_scheduler."
_SCHEDULERS = {
    scheduler.name: scheduler
    for scheduler in (
        Scheduler(f"{_LR}StepLR", EITHER),
        Scheduler(f"{_LR}MultiStepLR", EITHER),
        Scheduler(f"{_LR}ExponentialLR"),
        Scheduler(f"{_LR}LambdaLR", EITHER, sets_rate=True),
        Scheduler(f"{_LR}MultiplicativeLR", EITHER),
        Scheduler(f"{_LR}ConstantLR", EITHER),
        Scheduler(f"{_LR}LinearLR", EITHER, sets_rate=True),
        Scheduler(f"{_LR}PolynomialLR", EITHER, counts_steps=True),
        Scheduler(f"{_LR}CosineAnnealingLR", EITHER, counts_steps=True),
        Scheduler(f"{_LR}CosineAnnealingWarmRestarts", EITHER),
        Scheduler(f"{_LR}OneCycleLR", PER_BATCH, counts_steps=True, sets_rate=True),
        Scheduler(f"{_LR}CyclicLR", PER_BATCH, sets_rate=True),
        Scheduler(f"{_LR}ReduceLROnPlateau", needs_metric=True),
        Scheduler(f"{_LR}SequentialLR", EITHER, wraps=True, sets_rate=True),
        Scheduler(f"{_LR}ChainedScheduler", EITHER, wraps=True, sets_rate=True),
        Scheduler("torch.optim.swa_utils.SWALR", EITHER, sets_rate=True),
        # transformers/optimization.py: each is a LambdaLR over num_training_steps optimizer steps.
        *(
            Scheduler(f"transformers.{prefix}{name}", PER_BATCH, counts_steps=True, sets_rate=True)
            for prefix in ("", "optimization.")
            for name in (
                "get_scheduler",
                "get_constant_schedule_with_warmup",
                "get_cosine_schedule_with_warmup",
                "get_cosine_with_hard_restarts_schedule_with_warmup",
                "get_inverse_sqrt_schedule",
                "get_linear_schedule_with_warmup",
                "get_polynomial_decay_schedule_with_warmup",
            )
        ),
        *(
            Scheduler(f"diffusers.optimization.{name}", PER_BATCH, counts_steps=True, sets_rate=True)
            for name in ("get_scheduler", "get_cosine_schedule_with_warmup", "get_linear_schedule_with_warmup")
        ),
        # timm/scheduler/scheduler.py: step(epoch, metric=None), step_update(num_updates)
        *(
            Scheduler(f"timm.scheduler.{name}", needs_epoch=True, sets_rate=True)
            for name in (
                "CosineLRScheduler",
                "MultiStepLRScheduler",
                "PlateauLRScheduler",
                "PolyLRScheduler",
                "StepLRScheduler",
                "TanhLRScheduler",
            )
        ),
    )
}


@functools.cache
def scheduler(qualname: str) -> Scheduler | None:
    """The scheduler of that name (a class, or a function that returns one)."""
    name = canonical(qualname)
    found = _SCHEDULERS.get(name)
    if found is None or found.signature is not None:
        return found
    return Scheduler(
        found.name,
        found.stepped,
        found.needs_metric,
        found.counts_steps,
        found.wraps,
        found.sets_rate,
        found.needs_epoch,
        signature(name),
    )


SCHEDULER_BASES = frozenset({f"{_LR}LRScheduler", f"{_LR}_LRScheduler"})


# -------------------------------------------------------------------------------------------------------- losses

LOGITS = "logits"
LOG_PROBABILITIES = "log-probabilities"
PROBABILITIES = "probabilities"
ANY = "any"
CLASSES = "classes"
FLOATS = "floats"
SIGNS = "signs"


@dataclass(frozen=True, slots=True)
class Loss:
    """A loss, as class or function.

    input, target        the names of the arguments (of forward, for a class) that hold prediction and truth; target is
                         "" where there is none (triplet losses)
    input_kind           what the prediction must be: logits, log-probabilities, probabilities, any
    target_kind          what the truth must be: classes (indices; for cross_entropy floating class probabilities of the
                         input's shape too), floats, probabilities, log-probabilities, signs (1 and -1), any
    per_class            whether the input holds one score per class along a dimension of its own (cross_entropy), so
                         that its shape isn't the target's
    symmetric            whether swapping input and target gives the same value and the same gradients
    reduction            the default
    signature            the constructor's for a class, the function's otherwise
    call                 forward's signature for a class, the function's otherwise
    """

    name: str
    input: str = "input"
    target: str = "target"
    input_kind: str = ANY
    target_kind: str = ANY
    per_class: bool = False
    symmetric: bool = False
    reduction: str = "mean"
    signature: Signature | None = None
    call: Signature | None = None

    @property
    def input_position(self) -> int | None:
        """Where the prediction is given by position."""
        return self.call.position(self.input) if self.call is not None else None

    @property
    def target_position(self) -> int | None:
        """Where the truth is given by position."""
        return self.call.position(self.target) if self.call is not None and self.target else None


# Class, function, and what both are.
_TORCH_LOSSES = (
    ("CrossEntropyLoss", "cross_entropy", Loss("", input_kind=LOGITS, target_kind=CLASSES, per_class=True)),
    ("NLLLoss", "nll_loss", Loss("", input_kind=LOG_PROBABILITIES, target_kind=CLASSES, per_class=True)),
    ("NLLLoss2d", "", Loss("", input_kind=LOG_PROBABILITIES, target_kind=CLASSES, per_class=True)),
    ("BCELoss", "binary_cross_entropy", Loss("", input_kind=PROBABILITIES, target_kind=FLOATS)),
    ("BCEWithLogitsLoss", "binary_cross_entropy_with_logits", Loss("", input_kind=LOGITS, target_kind=FLOATS)),
    ("MSELoss", "mse_loss", Loss("", target_kind=FLOATS, symmetric=True)),
    ("L1Loss", "l1_loss", Loss("", target_kind=FLOATS, symmetric=True)),
    ("SmoothL1Loss", "smooth_l1_loss", Loss("", target_kind=FLOATS, symmetric=True)),
    ("HuberLoss", "huber_loss", Loss("", target_kind=FLOATS, symmetric=True)),
    ("KLDivLoss", "kl_div", Loss("", input_kind=LOG_PROBABILITIES, target_kind=PROBABILITIES)),
    ("PoissonNLLLoss", "poisson_nll_loss", Loss("", input="log_input", target_kind=FLOATS)),
    ("GaussianNLLLoss", "gaussian_nll_loss", Loss("", target_kind=FLOATS, symmetric=True)),
    ("HingeEmbeddingLoss", "hinge_embedding_loss", Loss("", target_kind=SIGNS)),
    ("SoftMarginLoss", "soft_margin_loss", Loss("", target_kind=SIGNS)),
    ("MultiLabelMarginLoss", "multilabel_margin_loss", Loss("", input_kind=LOGITS, target_kind=CLASSES)),
    ("MultiLabelSoftMarginLoss", "multilabel_soft_margin_loss", Loss("", input_kind=LOGITS, target_kind=FLOATS)),
    ("MultiMarginLoss", "multi_margin_loss", Loss("", input_kind=LOGITS, target_kind=CLASSES, per_class=True)),
    ("CosineEmbeddingLoss", "cosine_embedding_loss", Loss("", input="input1", target_kind=SIGNS)),
    ("MarginRankingLoss", "margin_ranking_loss", Loss("", input="input1", target_kind=SIGNS)),
    ("TripletMarginLoss", "triplet_margin_loss", Loss("", input="anchor", target="")),
    ("TripletMarginWithDistanceLoss", "triplet_margin_with_distance_loss", Loss("", input="anchor", target="")),
    (
        "CTCLoss",
        "ctc_loss",
        Loss(
            "", input="log_probs", target="targets", input_kind=LOG_PROBABILITIES, target_kind=CLASSES, per_class=True
        ),
    ),
    # The last layer is part of these: they take features.
    ("AdaptiveLogSoftmaxWithLoss", "", Loss("", input="input_", target="target_", target_kind=CLASSES, per_class=True)),
    ("LinearCrossEntropyLoss", "linear_cross_entropy", Loss("", target_kind=CLASSES, per_class=True)),
)

# name, call, what it is. Read in timm/loss, torchvision/ops/focal_loss.py, segmentation_models_pytorch/losses.
_OTHER_LOSSES = (
    ("timm.loss.LabelSmoothingCrossEntropy", "x, target", Loss("", "x", "target", LOGITS, CLASSES, per_class=True)),
    ("timm.loss.SoftTargetCrossEntropy", "x, target", Loss("", "x", "target", LOGITS, PROBABILITIES, per_class=True)),
    ("timm.loss.BinaryCrossEntropy", "x, target", Loss("", "x", "target", LOGITS, ANY)),
    (
        "torchvision.ops.sigmoid_focal_loss",
        "inputs, targets, alpha=0.25, gamma=2, reduction='none'",
        Loss("", "inputs", "targets", LOGITS, FLOATS, reduction="none"),
    ),
    *(
        (f"segmentation_models_pytorch.losses.{name}", "y_pred, y_true", Loss("", "y_pred", "y_true"))
        for name in ("DiceLoss", "JaccardLoss", "FocalLoss", "LovaszLoss", "TverskyLoss", "MCCLoss")
    ),
    (
        "segmentation_models_pytorch.losses.SoftBCEWithLogitsLoss",
        "y_pred, y_true",
        Loss("", "y_pred", "y_true", LOGITS, FLOATS),
    ),
    (
        "segmentation_models_pytorch.losses.SoftCrossEntropyLoss",
        "y_pred, y_true",
        Loss("", "y_pred", "y_true", LOGITS, CLASSES, per_class=True),
    ),
)


@functools.cache
def _losses() -> Mapping[str, Loss]:
    found: dict[str, Loss] = {}
    for class_name, function_name, loss in _TORCH_LOSSES:
        module = module_class(f"torch.nn.{class_name}")
        if module is not None:
            found[module.name] = _named(loss, module.name, module.signature, module.forward)
        called = function(f"torch.nn.functional.{function_name}") if function_name else None
        if called is not None:
            prediction = called.signature.arguments[0].name
            found[called.name] = _named(loss, called.name, called.signature, called.signature, prediction)
    for name, call, loss in _OTHER_LOSSES:
        found[name] = _named(loss, name, None, parse_signature(call))
    return found


def _named(loss: Loss, name: str, built: Signature | None, call: Signature | None, argument: str | None = None) -> Loss:
    return Loss(
        name,
        argument or loss.input,
        loss.target,
        loss.input_kind,
        loss.target_kind,
        loss.per_class,
        loss.symmetric,
        loss.reduction,
        built,
        call,
    )


def loss(qualname: str) -> Loss | None:
    """The loss of that name, a class or a function; None where it isn't known to be one."""
    return _losses().get(canonical(qualname))


# -------------------------------------------------------------------------------------------------- data loading

DATA_LOADERS = frozenset(
    {
        "torch.utils.data.DataLoader",
        "torch_geometric.loader.DataLoader",
        "torch_geometric.data.DataLoader",
        "torch_geometric.loader.NeighborLoader",
        "monai.data.DataLoader",
        "torchdata.stateful_dataloader.StatefulDataLoader",
    }
)
"""Classes whose instances are iterated batch by batch; they take torch's DataLoader's arguments."""

SAMPLERS = frozenset(
    f"torch.utils.data.{name}"
    for name in (
        "BatchSampler",
        "DistributedSampler",
        "RandomSampler",
        "Sampler",
        "SequentialSampler",
        "SubsetRandomSampler",
        "WeightedRandomSampler",
    )
)
SHUFFLING_SAMPLERS = frozenset(
    f"torch.utils.data.{name}"
    for name in ("DistributedSampler", "RandomSampler", "SubsetRandomSampler", "WeightedRandomSampler")
)
"""Those that change the order by default."""

DATASETS = frozenset(
    f"torch.utils.data.{name}"
    for name in (
        "ChainDataset",
        "ConcatDataset",
        "Dataset",
        "IterableDataset",
        "StackDataset",
        "Subset",
        "TensorDataset",
    )
)
SPLITTERS = frozenset({"torch.utils.data.random_split"})


# --------------------------------------------------------------------------------------------------------- modes

GRAD_MODES: Mapping[str, str] = {
    "torch.no_grad": "no_grad",
    "torch.inference_mode": "inference_mode",
    "torch.enable_grad": "enable_grad",
    "torch.set_grad_enabled": "set_grad_enabled",
}
"""Context managers and decorators that set autograd's mode; the first argument of inference_mode(mode=True) and
set_grad_enabled(mode) says which. set_grad_enabled(...) also acts when it is merely called."""

AUTOCASTS: Mapping[str, str | None] = {
    "torch.autocast": None,
    "torch.cuda.amp.autocast": "cuda",
    "torch.cpu.amp.autocast": "cpu",
}
"""autocast classes and the device that their name implies (torch.autocast takes it as its first argument)."""

AUTOCAST_DTYPES: Mapping[str, str] = {"cuda": "float16", "cpu": "bfloat16", "xpu": "float16", "mps": "float16"}
"""autocast's dtype where none is given (torch.get_autocast_dtype)."""

GRAD_SCALERS = frozenset(
    {
        "torch.GradScaler",
        "torch.cuda.amp.GradScaler",
        "torch.cpu.amp.GradScaler",
        "torch.distributed.fsdp.sharded_grad_scaler.ShardedGradScaler",
    }
)

ANOMALY_MODES = frozenset({"torch.autograd.detect_anomaly", "torch.autograd.set_detect_anomaly"})

CLIPPERS = frozenset(
    {"torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad_value_", "torch.nn.utils.clip_grad_norm"}
)
DEPRECATED_CLIPPERS = frozenset({"torch.nn.utils.clip_grad_norm"})


# ------------------------------------------------------------------------------------- wrappers, exporters, processes

WRAPPERS: Mapping[str, str] = {
    "torch.nn.DataParallel": "module.",
    "torch.nn.parallel.DistributedDataParallel": "module.",
    "torch.distributed.fsdp.FullyShardedDataParallel": "",
    "torch.optim.swa_utils.AveragedModel": "module.",
    "torch.compile": "_orig_mod.",
    "apex.parallel.DistributedDataParallel": "module.",
    "lightning.fabric.wrappers._FabricModule": "_forward_module.",
}
"""What takes a module and returns it wrapped, and the prefix its state dict's keys get."""

PARALLEL_WRAPPERS = frozenset(
    {
        "torch.nn.DataParallel",
        "torch.nn.parallel.DistributedDataParallel",
        "torch.distributed.fsdp.FullyShardedDataParallel",
        "apex.parallel.DistributedDataParallel",
    }
)

TRACERS = frozenset({"torch.jit.trace", "torch.jit.trace_module"})
"""They run the model on an example and record what happened: branches on values are lost."""

SCRIPTERS = frozenset({"torch.jit.script"})
"""They compile the source: branches are kept."""

EXPORTERS = frozenset({"torch.export.export", "torch.export.draft_export", "torch.onnx.dynamo_export"})
"""They trace symbolically: a branch on values is an error. torch.onnx.export is one with dynamo=True (the default since
2.9), a tracer otherwise; torch.compile(fullgraph=True) is one too."""

ONNX_EXPORT = "torch.onnx.export"
COMPILE = "torch.compile"

PROCESS_STARTERS = frozenset(
    {
        "accelerate.notebook_launcher",
        "concurrent.futures.ProcessPoolExecutor",
        "multiprocessing.Manager",
        "multiprocessing.Pool",
        "multiprocessing.Process",
        "multiprocessing.pool.Pool",
        "torch.multiprocessing.Manager",
        "torch.multiprocessing.Pool",
        "torch.multiprocessing.Process",
        "torch.multiprocessing.spawn",
        "torch.multiprocessing.start_processes",
        "torch_xla.distributed.xla_multiprocessing.spawn",
    }
)

SAVERS = frozenset({"torch.save"})
LOADERS = frozenset({"torch.load"})
SEEDERS = frozenset(
    {
        "torch.manual_seed",
        "torch.random.manual_seed",
        "torch.cuda.manual_seed",
        "torch.cuda.manual_seed_all",
        "torch.seed",
        "lightning.seed_everything",
        "lightning.pytorch.seed_everything",
        "lightning.fabric.seed_everything",
        "pytorch_lightning.seed_everything",
        "accelerate.utils.set_seed",
        "transformers.set_seed",
        "monai.utils.set_determinism",
    }
)


def is_initializer(qualname: str) -> bool:
    """Whether it fills its first argument under no_grad, as all of torch.nn.init does (calculate_gain apart)."""
    name = canonical(qualname)
    package, _, short = name.rpartition(".")
    return (
        package == "torch.nn.init" and not short.startswith(("calculate", "_calculate")) and signature(name) is not None
    )


# ------------------------------------------------------------------------------------------------------ frameworks

ZERO_GRAD = "zero_grad"
BACKWARD = "backward"
STEP = "step"
EVAL = "eval"
NO_GRAD = "no_grad"
DEVICE = "device"
PREPARE = "prepare"
UNWRAP = "unwrap"
CLIP = "clip"
UNSCALE = "unscale"
ACCUMULATE = "accumulate"
AUTOCAST = "autocast"
SAVE = "save"

_EVERYTHING = frozenset({ZERO_GRAD, BACKWARD, STEP, EVAL, NO_GRAD, DEVICE})


@dataclass(frozen=True, slots=True)
class Framework:
    """What a class of another package does in the user's stead.

    owns        duties of the loop that it takes over altogether: zero_grad, backward, step, eval, no_grad, device
    methods     its methods that stand for one: ``accelerator.backward(loss)`` is backward
    subclassed  whether the user derives from it and the package calls the user's methods (LightningModule)
    """

    name: str
    owns: frozenset[str] = frozenset()
    methods: Mapping[str, str] | None = None
    subclassed: bool = False


_ACCELERATE = {
    # accelerate/accelerator.py; prepared optimizers still need zero_grad and step
    "backward": BACKWARD,
    "prepare": PREPARE,
    "prepare_model": PREPARE,
    "prepare_optimizer": PREPARE,
    "prepare_data_loader": PREPARE,
    "prepare_scheduler": PREPARE,
    "unwrap_model": UNWRAP,
    "clip_grad_norm_": CLIP,
    "clip_grad_value_": CLIP,
    "unscale_gradients": UNSCALE,
    "accumulate": ACCUMULATE,
    "autocast": AUTOCAST,
    "save": SAVE,
    "save_state": SAVE,
}
_FABRIC = {
    # lightning/fabric/fabric.py; the optimizer still needs zero_grad and step
    "backward": BACKWARD,
    "setup": PREPARE,
    "setup_module": PREPARE,
    "setup_optimizers": PREPARE,
    "setup_dataloaders": PREPARE,
    "clip_gradients": CLIP,
    "autocast": AUTOCAST,
    "no_backward_sync": ACCUMULATE,
    "save": SAVE,
}
_MANUAL = {"manual_backward": BACKWARD, "clip_gradients": CLIP}
_FRAMEWORKS = {
    framework.name: framework
    for framework in (
        *(
            Framework(name, frozenset({DEVICE}), _ACCELERATE)
            for name in ("accelerate.Accelerator", "accelerate.accelerator.Accelerator")
        ),
        *(
            Framework(name, frozenset({DEVICE}), _FABRIC)
            for name in ("lightning.Fabric", "lightning.fabric.Fabric", "lightning_fabric.Fabric")
        ),
        # With automatic_optimization (the default) the Trainer zeroes, backwards, steps, and evaluates.
        *(
            Framework(f"{package}.LightningModule", _EVERYTHING, _MANUAL, subclassed=True)
            for package in (
                "lightning",
                "lightning.pytorch",
                "lightning.pytorch.core",
                "lightning.pytorch.core.module",
                "pytorch_lightning",
                "pytorch_lightning.core",
                "pytorch_lightning.core.module",
                "pytorch_lightning.core.lightning",
            )
        ),
        *(
            Framework(f"{package}.Trainer", _EVERYTHING)
            for package in ("lightning", "lightning.pytorch", "pytorch_lightning", "composer", "monai.engines")
        ),
        *(
            Framework(f"transformers.{name}", _EVERYTHING, subclassed=True)
            for name in ("Trainer", "Seq2SeqTrainer", "trainer.Trainer", "trainer_seq2seq.Seq2SeqTrainer")
        ),
        *(
            Framework(f"trl.{name}", _EVERYTHING, subclassed=True)
            for name in ("SFTTrainer", "DPOTrainer", "PPOTrainer", "GRPOTrainer", "RewardTrainer")
        ),
        Framework("sentence_transformers.SentenceTransformerTrainer", _EVERYTHING, subclassed=True),
        # deepspeed/runtime/engine.py: step() also zeroes
        Framework("deepspeed.initialize", frozenset({ZERO_GRAD, DEVICE}), {"backward": BACKWARD, "step": STEP}),
        Framework("deepspeed.DeepSpeedEngine", frozenset({ZERO_GRAD, DEVICE}), {"backward": BACKWARD, "step": STEP}),
        *(
            Framework(f"ignite.engine.{name}", _EVERYTHING)
            for name in ("create_supervised_trainer", "create_supervised_evaluator")
        ),
        *(
            Framework(f"monai.engines.{name}", _EVERYTHING)
            for name in ("SupervisedTrainer", "SupervisedEvaluator", "GanTrainer")
        ),
        *(
            Framework(name, _EVERYTHING)
            for name in (
                "fastai.learner.Learner",
                "fastai.vision.all.Learner",
                "skorch.NeuralNet",
                "skorch.NeuralNetClassifier",
                "skorch.NeuralNetRegressor",
                "poutyne.Model",
                "ultralytics.YOLO",
                "allennlp.training.GradientDescentTrainer",
            )
        ),
        Framework("catalyst.dl.Runner", _EVERYTHING, subclassed=True),
        Framework("speechbrain.Brain", _EVERYTHING, subclassed=True),
        Framework("speechbrain.core.Brain", _EVERYTHING, subclassed=True),
        # apex/amp: the context manager scales; the optimizer still needs zero_grad and step
        Framework("apex.amp.scale_loss"),
    )
}


def framework(qualname: str) -> Framework | None:
    """What a class or function of a training framework takes over; None where it takes over nothing known."""
    return _FRAMEWORKS.get(qualname)
