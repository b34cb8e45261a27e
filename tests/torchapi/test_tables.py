"""What can be asked of the tables, without torch."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from torchlint import torchapi
from torchlint.torchapi import training
from torchlint.torchapi.signatures import parse_signature
from torchlint.torchapi.third_party import is_module_factory, returns_evaluating_module


def run(program: str) -> str:
    """What a fresh interpreter prints."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.strip()


def test_importing_reads_no_table_and_no_torch() -> None:
    printed = run("""
        import builtins, sys
        import dataclasses, ast  # may open files of their own
        opened, plain = [], builtins.open
        builtins.open = lambda path, *rest, **more: (opened.append(str(path)), plain(path, *rest, **more))[1]
        import torchlint.torchapi, torchlint.torchapi.training
        print([path for path in opened if path.endswith(".tsv")], "torch" in sys.modules)
    """)
    assert printed == "[] False"


def test_the_first_question_costs_milliseconds() -> None:
    printed = run("""
        import time
        from torchlint import torchapi
        best = 1.0
        for _ in range(5):
            torchapi.tables.rows.cache_clear()
            torchapi.modules.module_class.cache_clear()
            torchapi.modules._canonical_names.cache_clear()
            torchapi.operations._operation.cache_clear()
            start = time.process_time()
            torchapi.module_class("torch.nn.modules.linear.Linear")
            torchapi.function("torch.exp")
            best = min(best, time.process_time() - start)
        print(best)
    """)
    assert float(printed) < 0.010


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("torch.nn.modules.linear.Linear", "torch.nn.Linear"),
        ("torch.nn.modules.Linear", "torch.nn.Linear"),
        ("torch.nn.Linear", "torch.nn.Linear"),
        ("torch.autograd.function.Function", "torch.autograd.Function"),
        ("torch.functional.einsum", "torch.einsum"),
        ("torch.nn.parameter.Parameter", "torch.nn.Parameter"),
        ("torch._tensor.Tensor", "torch.Tensor"),
        ("torch.conv2d", "torch.nn.functional.conv2d"),
        ("torch.autograd.grad_mode.no_grad", "torch.no_grad"),
        ("torch.utils.data.dataloader.DataLoader", "torch.utils.data.DataLoader"),
        ("torch.nn.modules.module.Module.forward", "torch.nn.Module.forward"),
        ("torch.optim.sgd.SGD", "torch.optim.SGD"),
        ("torch.nn.quantized.Linear", "torch.ao.nn.quantized.Linear"),
        ("my.torch.nn.Linear", "my.torch.nn.Linear"),
        ("torch.nn.NoSuchLayer", "torch.nn.NoSuchLayer"),
    ],
)
def test_every_path_has_one_name(path: str, name: str) -> None:
    assert torchapi.canonical(path) == name


def test_aliases_lead_back() -> None:
    assert "torch.nn.modules.linear.Linear" in torchapi.aliases("torch.nn.Linear")


def test_a_layer_holds_what_its_arguments_say() -> None:
    linear = torchapi.module_class("torch.nn.Linear")
    assert linear is not None
    assert linear.parameter_names() == {"weight", "bias"}
    assert linear.parameter_names({"bias": False}) == {"weight"}
    assert linear.parameter_names({"bias": torchapi.UNKNOWN}) is None
    assert linear.has_parameters({"bias": torchapi.UNKNOWN}) is True
    norm = torchapi.module_class("torch.nn.InstanceNorm2d")
    assert norm is not None
    assert norm.has_parameters() is False
    assert norm.has_parameters({"affine": True}) is True
    assert norm.has_parameters({"affine": torchapi.UNKNOWN}) is None
    assert norm.has_buffers({"track_running_stats": True}) is True


def test_modes_depend_on_arguments() -> None:
    def dependent(name: str, **arguments: object) -> bool | None:
        spec = torchapi.module_class(f"torch.nn.{name}")
        assert spec is not None
        return spec.is_mode_dependent(arguments)

    assert dependent("Dropout") is True
    assert dependent("Dropout", p=0.0) is False
    assert dependent("Dropout", p=torchapi.UNKNOWN) is None
    assert dependent("BatchNorm2d", num_features=3) is True
    assert dependent("BatchNorm2d", track_running_stats=False) is False
    assert dependent("InstanceNorm2d") is False
    assert dependent("LSTM", dropout=0.5) is False  # one layer: nothing lies between
    assert dependent("LSTM", dropout=0.5, num_layers=2) is True
    assert dependent("MultiheadAttention") is False
    assert dependent("TransformerEncoderLayer") is True
    assert dependent("RReLU") is True
    assert dependent("Sequential") is None
    assert dependent("Linear") is False


def test_attributes_of_an_instance() -> None:
    lstm = torchapi.module_class("torch.nn.LSTM")
    assert lstm is not None
    assert lstm.has_attribute("weight_ih_l0")
    assert lstm.has_attribute("weight_hh_l3_reverse")
    assert lstm.has_attribute("training")
    assert lstm.has_attribute("_modules")
    assert not lstm.has_attribute("weight")
    script = torchapi.module_class("torch.jit.ScriptModule")
    assert script is not None
    assert not script.attributes_known


@pytest.mark.parametrize(
    "name",
    [
        "lightning.LightningModule",
        "pytorch_lightning.LightningModule",
        "transformers.PreTrainedModel",
        "transformers.BertForMaskedLM",
        "transformers.models.bert.modeling_bert.BertModel",
        "torch_geometric.nn.GCNConv",
        "torchvision.models.resnet.ResNet",
        "segmentation_models_pytorch.Unet",
    ],
)
def test_modules_of_other_packages(name: str) -> None:
    spec = torchapi.module_class(name)
    assert spec is not None
    assert spec.has_parameters() is None
    assert spec.is_mode_dependent() is None
    assert not spec.attributes_known


@pytest.mark.parametrize(
    "name",
    [
        "transformers.AutoModel",
        "transformers.BertConfig",
        "transformers.BertTokenizer",
        "huggingface_hub.PyTorchModelHubMixin",
        "torchvision.models.resnet18",
        "torch.optim.Adam",
        "torch.Tensor",
        "#",
        "",
    ],
)
def test_what_is_no_module_class(name: str) -> None:
    assert torchapi.module_class(name) is None


def test_functions_that_return_a_module() -> None:
    assert is_module_factory("torchvision.models.resnet18")
    assert is_module_factory("torchvision.models.detection.fasterrcnn_resnet50_fpn")
    assert is_module_factory("transformers.AutoModel.from_pretrained")
    assert is_module_factory("timm.create_model")
    assert not is_module_factory("torchvision.models.list_models")
    assert not is_module_factory("torchvision.models.detection")
    assert returns_evaluating_module("transformers.AutoModelForCausalLM.from_pretrained")
    assert not returns_evaluating_module("torchvision.models.resnet18")


def test_saving_follows_what_requires_grad() -> None:
    product = torchapi.function("torch.mul")
    assert product is not None
    assert torchapi.saved_inputs(product.needs) == {0, 1}
    assert torchapi.saved_inputs(product.needs, {0}) == {1}
    assert torchapi.saved_inputs(product.needs, {1}) == {0}
    assert not product.saves_output
    exponential = torchapi.function("torch.exp")
    assert exponential is not None
    assert exponential.saves_output
    assert not exponential.saves_inputs
    relu = torchapi.module_class("torch.nn.ReLU")
    assert relu is not None
    assert relu.saves_output
    linear = torchapi.module_class("torch.nn.Linear")
    assert linear is not None
    assert linear.saves_inputs == {0}
    assert torchapi.saved_inputs(linear.needs or (), {0}) == set()
    assert torchapi.saved_inputs(linear.needs or (), {torchapi.PARAMETERS}) == {0}


def test_in_place_and_plain_forms() -> None:
    for changing, plain in (
        ("add_", "torch.Tensor.add"),
        ("relu_", "torch.Tensor.relu"),
        ("__iadd__", "torch.Tensor.__add__"),
    ):
        operation = torchapi.tensor_method(changing)
        assert operation is not None
        assert operation.is_inplace
        found = torchapi.plain_form(operation)
        assert found is not None
        assert found.name == plain
    functional = torchapi.function("torch.nn.functional.relu_")
    assert functional is not None
    assert functional.mutates == (0,)
    added = torchapi.function("torch.add")
    assert added is not None
    back = torchapi.inplace_form(added)
    assert back is not None
    assert back.name == "torch.Tensor.add_"
    equality = torchapi.operator("==")
    assert equality is not None
    assert torchapi.inplace_form(equality) is None


def test_operators() -> None:
    assigned = torchapi.operator("[]=")
    assert assigned is not None
    assert assigned.mutates == (0,)
    indexed = torchapi.operator("[]")
    assert indexed is not None
    assert indexed.maybe_view_of == (0,)
    matmul = torchapi.operator("@=")
    assert matmul is not None
    assert not matmul.is_inplace
    truth = torchapi.operator("bool")
    assert truth is not None
    assert truth.syncs
    assert torchapi.operator("and") is None


def test_attributes_of_tensors() -> None:
    data = torchapi.tensor_attribute("data")
    assert data is not None
    assert data.is_view
    assert not data.differentiable
    transposed = torchapi.tensor_attribute("mT")
    assert transposed is not None
    assert transposed.is_view
    assert transposed.differentiable
    assert torchapi.tensor_attribute("weight") is None


def test_a_call_is_bound_to_its_signature() -> None:
    signature = parse_signature("input, dim=None, *sizes, keepdim=False, **options")
    assert signature.bind(["x", 1, 2, 3], {"keepdim": True, "other": 4}) == {
        "input": "x",
        "dim": 1,
        "sizes[0]": 2,
        "sizes[1]": 3,
        "keepdim": True,
        "other": 4,
    }
    fixed = parse_signature("a, b=torch.relu, *, c")
    assert fixed.bind([1, 2, 3], {}) is None
    assert fixed.bind([1], {"a": 2}) is None
    assert fixed.bind([1], {"z": 2}) is None
    assert (fixed.minimum, fixed.maximum) == (2, 2)
    assert (fixed.position("b"), fixed.position("c")) == (1, None)
    default = fixed.argument("b")
    assert default is not None
    assert default.default == torchapi.Symbol("torch.relu")
    assert str(fixed) == "a, b=torch.relu, *, c"


def test_frameworks_take_over_duties() -> None:
    accelerator = training.framework("accelerate.Accelerator")
    assert accelerator is not None
    assert accelerator.methods is not None
    assert accelerator.methods["backward"] == training.BACKWARD
    assert training.ZERO_GRAD not in accelerator.owns
    lightning = training.framework("lightning.LightningModule")
    assert lightning is not None
    assert lightning.subclassed
    assert {training.ZERO_GRAD, training.BACKWARD, training.EVAL} <= lightning.owns
    assert training.framework("torch.nn.Module") is None


@pytest.mark.parametrize(
    ("name", "family", "unit_rate"),
    [
        ("torch.optim.adam.Adam", "adam", False),
        ("torch.optim.SGD", "sgd", False),
        ("torch.optim.LBFGS", "other", True),
        ("torch.optim.Adadelta", "other", True),
        ("prodigyopt.Prodigy", "adam", True),
        ("schedulefree.SGDScheduleFree", "sgd", True),
        ("timm.optim.lamb.Lamb", "adam", False),
        ("torch_optimizer.Lookahead", "other", False),
        ("bitsandbytes.optim.AdamW8bit", "adam", False),
    ],
)
def test_optimizers(name: str, family: str, unit_rate: bool) -> None:
    optimizer = training.optimizer(name)
    assert optimizer is not None
    assert (optimizer.family, optimizer.unit_rate) == (family, unit_rate)


def test_what_is_no_optimizer() -> None:
    for name in (
        "torch.optim.Optimizer",
        "torch.optim.lr_scheduler.StepLR",
        "timm.optim.create_optimizer",
        "torch.nn.Linear",
    ):
        assert training.optimizer(name) is None


def test_poisson_takes_its_prediction_first() -> None:
    functional = training.loss("torch.nn.functional.poisson_nll_loss")
    assert functional is not None
    assert (functional.input_position, functional.target_position) == (0, 1)
