"""nn.Module classes of packages around torch, for when their source isn't at hand, and functions that return one.

Each entry was read in the package's source (the version that PyPI offered in 2026): the class derives from
torch.nn.Module there. What such a class holds isn't known, so nothing is claimed about its parameters, its
attributes or whether train and eval differ.
"""

from __future__ import annotations

import functools
import re

from torchlint.torchapi.modules import ModuleSpec
from torchlint.torchapi.signatures import KEYWORDS, VARIADIC, Argument, Signature

_LIGHTNING = ("lightning", "lightning.pytorch", "lightning.pytorch.core", "pytorch_lightning", "pytorch_lightning.core")

CLASSES = frozenset(
    {
        # lightning/pytorch/core/module.py; core/lightning.py in versions before 1.8
        *(f"{package}.LightningModule" for package in _LIGHTNING),
        *(f"{package}.module.LightningModule" for package in ("lightning.pytorch.core", "pytorch_lightning.core")),
        "pytorch_lightning.core.lightning.LightningModule",
        # lightning/fabric/utilities/device_dtype_mixin.py and lightning/fabric/wrappers.py
        "lightning.fabric.utilities.device_dtype_mixin._DeviceDtypeModuleMixin",
        "lightning.fabric.wrappers._FabricModule",
        # transformers/modeling_utils.py
        "transformers.PreTrainedModel",
        "transformers.modeling_utils.PreTrainedModel",
        # diffusers/models/modeling_utils.py
        "diffusers.ModelMixin",
        "diffusers.models.ModelMixin",
        "diffusers.models.modeling_utils.ModelMixin",
        # peft/peft_model.py
        "peft.PeftModel",
        "peft.peft_model.PeftModel",
        # torch_geometric/nn/conv/message_passing.py, nn/sequential.py, nn/to_hetero_module.py
        "torch_geometric.nn.conv.message_passing.MessagePassing",
        # gpytorch/module.py, gpytorch/models/gp.py
        "gpytorch.Module",
        "gpytorch.module.Module",
        "gpytorch.models.GP",
        "gpytorch.models.ExactGP",
        "gpytorch.models.ApproximateGP",
        "gpytorch.kernels.Kernel",
        "gpytorch.means.Mean",
        "gpytorch.likelihoods.Likelihood",
        # botorch/models/model.py
        "botorch.models.model.Model",
        # sentence_transformers/sentence_transformer/model.py, cross_encoder/model.py
        "sentence_transformers.SentenceTransformer",
        "sentence_transformers.CrossEncoder",
        # segmentation_models_pytorch/base/model.py and its decoders
        "segmentation_models_pytorch.base.SegmentationModel",
        *(
            f"segmentation_models_pytorch.{name}"
            for name in (
                "Unet",
                "UnetPlusPlus",
                "MAnet",
                "Linknet",
                "FPN",
                "PSPNet",
                "DeepLabV3",
                "DeepLabV3Plus",
                "PAN",
            )
        ),
        # stable_baselines3/common/policies.py, common/torch_layers.py
        "stable_baselines3.common.policies.BaseModel",
        "stable_baselines3.common.policies.BasePolicy",
        "stable_baselines3.common.policies.ActorCriticPolicy",
        "stable_baselines3.common.torch_layers.BaseFeaturesExtractor",
        # nemo/core/classes/module.py, modelPT.py
        "nemo.core.NeuralModule",
        "nemo.core.ModelPT",
        "nemo.core.classes.NeuralModule",
        "nemo.core.classes.ModelPT",
        # espnet2/train/abs_espnet_model.py
        "espnet2.train.abs_espnet_model.AbsESPnetModel",
        # allennlp/models/model.py, allennlp/nn/module.py
        "allennlp.models.Model",
        "allennlp.models.model.Model",
        "allennlp.nn.Module",
        # flair/nn/model.py
        "flair.nn.Model",
        # ultralytics/nn/tasks.py, engine/model.py
        "ultralytics.YOLO",
        "ultralytics.nn.tasks.BaseModel",
        "ultralytics.nn.tasks.DetectionModel",
        # torchvision/ops
        *(
            f"torchvision.ops.{name}"
            for name in (
                "Conv2dNormActivation",
                "Conv3dNormActivation",
                "DeformConv2d",
                "DropBlock2d",
                "DropBlock3d",
                "FeaturePyramidNetwork",
                "FrozenBatchNorm2d",
                "MLP",
                "MultiScaleRoIAlign",
                "Permute",
                "PSRoIAlign",
                "PSRoIPool",
                "RoIAlign",
                "RoIPool",
                "SqueezeExcitation",
                "StochasticDepth",
            )
        ),
        # torchvision/models
        *(
            f"torchvision.models.{name}"
            for name in (
                "AlexNet",
                "ConvNeXt",
                "DenseNet",
                "EfficientNet",
                "GoogLeNet",
                "Inception3",
                "MaxVit",
                "MNASNet",
                "MobileNetV2",
                "MobileNetV3",
                "RegNet",
                "ResNet",
                "ShuffleNetV2",
                "SqueezeNet",
                "SwinTransformer",
                "VGG",
                "VisionTransformer",
                "detection.FasterRCNN",
                "detection.MaskRCNN",
                "detection.KeypointRCNN",
                "detection.RetinaNet",
                "detection.FCOS",
                "detection.SSD",
                "segmentation.DeepLabV3",
                "segmentation.FCN",
                "segmentation.LRASPP",
                "resnet.ResNet",
                "resnet.BasicBlock",
                "resnet.Bottleneck",
                "vgg.VGG",
                "densenet.DenseNet",
            )
        ),
    }
)

_PATTERNS = tuple(
    re.compile(pattern)
    for pattern in (
        # transformers/models/*/modeling_*.py: BertModel, GPT2LMHeadModel, BertForMaskedLM; the Auto classes are
        # factories, TF and Flax ones other frameworks'.
        r"transformers\.(models\.[\w.]+\.)?(?!Auto|TF|Flax)[A-Z]\w*(Model|For[A-Z]\w+)",
        # timm/models/*.py and timm/layers/*.py: no class there with a network's name is anything else.
        r"timm\.models\.([a-z]\w*\.)?(ResNet|VisionTransformer|EfficientNet|ConvNeXt|SwinTransformer|RegNet|DenseNet)",
        r"timm\.(models\.)?layers\.([a-z]\w*\.)?(DropPath|Mlp|PatchEmbed|LayerNorm2d|SelectAdaptivePool2d|BlurPool2d)",
        # torch_geometric/nn/conv/__init__.py: every *Conv is a MessagePassing; nn/models/__init__.py
        r"torch_geometric\.nn\.(conv\.|dense\.)?(MessagePassing|[A-Z]\w*Conv|APPNP)",
        r"torch_geometric\.nn\.(models\.)?(MLP|GCN|GraphSAGE|GIN|GAT|PNA|EdgeCNN|GAE|VGAE|JumpingKnowledge|Node2Vec|Linear)",
        r"torch_geometric\.nn\.(norm\.)?(BatchNorm|LayerNorm|GraphNorm|InstanceNorm|PairNorm)",
    )
)

FACTORIES = frozenset(
    {
        "timm.create_model",
        "timm.models.create_model",
        "torch.hub.load",
        "open_clip.create_model",
        "segmentation_models_pytorch.create_model",
        "peft.get_peft_model",
        "torchvision.models.get_model",
    }
)
"""Functions that return an nn.Module whose class they choose."""

_FACTORY_PATTERNS = tuple(
    re.compile(pattern)
    for pattern in (
        r"torchvision\.models\.((detection|segmentation|video|quantization|optical_flow)\.)?"
        r"(?!get_|list_|detection$|segmentation$|video$|quantization$|optical_flow$)[a-z]\w*\d\w*",
        r"torchvision\.models\.(alexnet|googlenet|mobilenet_v\d\w*)",
        # Tokenizers, processors and configurations have a from_pretrained too.
        r"transformers\.(models\.[\w.]+\.)?(?!\w*(Token|Config|Process|Extractor))[A-Z]\w*"
        r"\.(from_pretrained|from_config|_from_config)",
        r"diffusers\.(models\.[\w.]+\.)?\w*Model\.(from_pretrained|from_config)",
    )
)

_EVALUATING = re.compile(r"(transformers|diffusers|peft)\.([\w.]+\.)?[A-Z]\w*\.from_pretrained")

_OPEN = Signature((Argument("args", False, None, VARIADIC), Argument("kwargs", False, None, KEYWORDS)))


@functools.cache
def third_party_module(qualname: str) -> ModuleSpec | None:
    """The spec of a class outside torch that is an nn.Module; None where nothing says that it is one."""
    if qualname not in CLASSES and not any(pattern.fullmatch(qualname) for pattern in _PATTERNS):
        return None
    return ModuleSpec(
        name=qualname,
        kind="other",
        signature=_OPEN,
        forward=_OPEN,
        bases=(),
        parameters=None,
        buffers=None,
        children=(),
        mode="?",
        range="",
        needs=None,
        view="?",
        attributes=frozenset(),
        attributes_known=False,
    )


def is_module_factory(qualname: str) -> bool:
    """Whether calling it returns an nn.Module of a class that it chooses."""
    return qualname in FACTORIES or any(pattern.fullmatch(qualname) for pattern in _FACTORY_PATTERNS)


def returns_evaluating_module(qualname: str) -> bool:
    """Whether the module that it returns is in eval mode: their ``from_pretrained`` ends with ``model.eval()``."""
    return _EVALUATING.fullmatch(qualname) is not None
