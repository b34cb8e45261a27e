"""Programs that fail on purpose: each raises, on the installed torch, a failure of the catalogue that a CPU can raise.

``PROGRAMS`` maps a failure's id to the programs that raise it. A program is run whole by ``screen``, which gives what
the user's screen would show: warnings first, then the traceback.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import subprocess
import sys
import tempfile
import textwrap
import traceback
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

PROGRAMS: dict[str, list[Callable[[], object]]] = {}


def fails_as(*ids: str) -> Callable[[Callable[[], object]], Callable[[], object]]:
    """The program below raises, or warns with, the failures ``ids``."""

    def register(program: Callable[[], object]) -> Callable[[], object]:
        for failure in ids:
            PROGRAMS.setdefault(failure, []).append(program)
        return program

    return register


def screen(program: Callable[[], object]) -> str:
    """What a terminal shows when ``program`` runs: its warnings, its output, then its traceback."""
    shown = io.StringIO()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with contextlib.redirect_stderr(shown), contextlib.redirect_stdout(shown):
                program()
            failure = ""
        except Exception:
            failure = traceback.format_exc()
    said = "".join(warnings.formatwarning(w.message, w.category, w.filename, w.lineno) for w in caught)
    return said + shown.getvalue() + failure


def run_script(text: str, **environment: str) -> None:
    """Run a program in a process of its own and print what it wrote on standard error."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "train.py")
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        done = subprocess.run(
            [sys.executable, str(path)],
            capture_output=True,
            text=True,
            timeout=240,
            env={**os.environ, **environment},
            cwd=folder,
        )
    print(done.stderr)


# ------------------------------------------------------------------------------------------------- autograd, in place
@fails_as("T-A1", "L-05", "R-10")
def backward_twice() -> None:
    w = torch.ones(2, requires_grad=True)
    loss = (w * w).sum()
    loss.backward()
    loss.backward()


@fails_as("T-A2", "L-04", "R-04")
def backward_without_graph() -> None:
    torch.ones(2).sum().backward()


@fails_as("T-A3")
def backward_on_vector() -> None:
    (torch.ones(2, requires_grad=True) * 2).backward()


@fails_as("T-A4")
def numpy_on_parameter() -> None:
    nn.Parameter(torch.ones(2)).numpy()


@fails_as("T-A5")
def grad_of_result() -> None:
    (torch.ones(2, requires_grad=True) * 2).grad  # noqa: B018


@fails_as("T-A6")
def inference_tensor_in_training() -> None:
    with torch.inference_mode():
        x = torch.ones(2)
    (torch.ones(2, requires_grad=True) * x).sum().backward()


@fails_as("T-A6")
def inference_tensor_changed_in_place() -> None:
    with torch.inference_mode():
        x = torch.ones(2)
    x.add_(1)


@fails_as("T-B1", "R-06")
def step_by_hand() -> None:
    w = torch.ones(2, requires_grad=True)
    w -= 0.1


@fails_as("T-B2")
def element_of_leaf() -> None:
    w = torch.ones(2, requires_grad=True)
    w[0] = 1


@fails_as("T-B3", "R-06")
def sigmoid_output_changed() -> None:
    y = torch.sigmoid(torch.ones(2, requires_grad=True))
    y.add_(1)
    y.sum().backward()


@fails_as("T-B3", "T-B4")
def sigmoid_output_changed_in_anomaly_mode() -> None:
    with torch.autograd.detect_anomaly(check_nan=False):
        sigmoid_output_changed()


@fails_as("L-17", "L-06")
def nan_gradient_in_anomaly_mode() -> None:
    with torch.autograd.detect_anomaly():
        torch.sqrt(torch.zeros(1, requires_grad=True) * 0).sum().backward()


@fails_as("X-12")
def optimize_result() -> None:
    torch.optim.SGD([torch.ones(2, requires_grad=True) * 0.1], lr=0.1)


@fails_as("X-28")
def piece_of_split_changed() -> None:
    first, _ = (torch.ones(4, requires_grad=True) * 1).split(2)
    first.add_(1)


@fails_as("X-28")
def piece_of_unbind_changed() -> None:
    first, _ = (torch.ones(2, 2, requires_grad=True) * 1).unbind(0)
    first.mul_(2)


# ---------------------------------------------------------------------------------------------------- shapes, dtypes
@fails_as("T-C1", "L-01", "R-01", "W-C1")
def linear_of_another_width() -> None:
    nn.Linear(512, 10)(torch.ones(32, 256))


@fails_as("T-C1")
def matmul_of_vector() -> None:
    torch.ones(3, 4) @ torch.ones(5)


@fails_as("T-C1")
def bmm_of_other_sizes() -> None:
    torch.bmm(torch.ones(2, 3, 4), torch.ones(2, 5, 6))


@fails_as("T-C2")
def double_into_linear() -> None:
    nn.Linear(3, 4)(torch.ones(2, 3, dtype=torch.float64))


@fails_as("T-C2")
def double_into_convolution() -> None:
    nn.Conv2d(3, 4, 3)(torch.ones(2, 3, 8, 8, dtype=torch.float64))


@fails_as("T-C2")
def double_into_lstm() -> None:
    nn.LSTM(3, 4)(torch.ones(2, 3, 3, dtype=torch.float64))


@fails_as("T-C3")
def add_other_sizes() -> None:
    torch.ones(3) + torch.ones(4)


@fails_as("T-C4")
def view_after_transpose() -> None:
    torch.ones(2, 3).t().view(6)


@fails_as("T-C5")
def if_on_tensor() -> None:
    if torch.ones(2) > 0:
        print("positive")


@fails_as("T-C6")
def item_of_two() -> None:
    torch.ones(2).item()


@fails_as("T-C6")
def float_of_two() -> None:
    float(torch.ones(2))


@fails_as("T-C6")
def tensor_of_tensors() -> None:
    torch.tensor([torch.ones(2), torch.ones(2)])


@fails_as("T-C7")
def batchnorm_of_one() -> None:
    nn.BatchNorm1d(2)(torch.ones(1, 2))


@fails_as("T-C8")
def target_five_of_three() -> None:
    F.cross_entropy(torch.ones(2, 3), torch.tensor([0, 5]))


@fails_as("T-C9")
def float_class_target() -> None:
    F.nll_loss(torch.ones(2, 3), torch.tensor([0.0, 1.0]))


@fails_as("T-C9")
def float_class_target_of_cross_entropy() -> None:
    F.cross_entropy(torch.ones(2, 3), torch.tensor([0.0, 1.0]))


@fails_as("T-C9")
def int_class_target() -> None:
    F.cross_entropy(torch.ones(2, 3), torch.tensor([0, 1], dtype=torch.int32))


@fails_as("T-C10", "R-05")
def target_of_other_batch() -> None:
    F.cross_entropy(torch.ones(4, 3), torch.tensor([0, 1]))


@fails_as("L-02", "R-09")
def token_outside_embedding() -> None:
    nn.Embedding(10, 4)(torch.tensor([10]))


@fails_as("L-03")
def view_of_other_count() -> None:
    torch.ones(4, 3).view(5, -1)


@fails_as("X-01")
def grey_image_into_colour_convolution() -> None:
    nn.Conv2d(3, 8, 3)(torch.ones(2, 1, 8, 8))


@fails_as("X-01")
def image_without_channels() -> None:
    nn.Conv2d(3, 8, 3)(torch.ones(8, 8))


@fails_as("X-01")
def batchnorm_of_other_channels() -> None:
    nn.BatchNorm2d(8)(torch.ones(2, 4, 3, 3))


@fails_as("X-02")
def groups_that_do_not_divide() -> None:
    nn.GroupNorm(3, 8)


@fails_as("X-02")
def convolution_groups_that_do_not_divide() -> None:
    nn.Conv2d(5, 8, 3, groups=2)


@fails_as("X-03")
def heads_that_do_not_divide() -> None:
    nn.MultiheadAttention(10, 3)


@fails_as("X-04")
def cat_of_other_sizes() -> None:
    torch.cat([torch.ones(2, 3), torch.ones(2, 4)], dim=0)


@fails_as("X-05")
def cat_of_other_ranks() -> None:
    torch.cat([torch.ones(2, 3), torch.ones(2)], dim=0)


@fails_as("X-06")
def einsum_of_other_sizes() -> None:
    torch.einsum("bd,dk->bk", torch.ones(2, 3), torch.ones(4, 5))


@fails_as("X-07")
def hidden_of_other_batch() -> None:
    nn.GRU(5, 8, batch_first=True)(torch.ones(3, 7, 5), torch.zeros(1, 4, 8))


@fails_as("X-08")
def column_of_targets() -> None:
    F.cross_entropy(torch.ones(4, 3), torch.zeros(4, 1, dtype=torch.long))


@fails_as("X-09", "L-10")
def integer_target_of_bce() -> None:
    F.binary_cross_entropy_with_logits(torch.ones(2, requires_grad=True), torch.tensor([0, 1])).backward()


@fails_as("X-09", "L-10")
def integer_target_of_bce_on_probabilities() -> None:
    F.binary_cross_entropy(torch.tensor([0.2, 0.7], requires_grad=True), torch.tensor([0, 1]))


@fails_as("X-09")
def float_added_to_integers() -> None:
    counts = torch.zeros(2, dtype=torch.long)
    counts += torch.ones(2)


@fails_as("X-09", "L-10")
def integer_input() -> None:
    nn.Linear(3, 4)(torch.ones(2, 3, dtype=torch.long))


@fails_as("X-10")
def column_against_row() -> None:
    F.mse_loss(torch.ones(4, 1), torch.ones(4))


@fails_as("X-11")
def bce_of_other_size() -> None:
    F.binary_cross_entropy_with_logits(torch.ones(4, 1), torch.ones(4))


@fails_as("X-11")
def bce_on_probabilities_of_other_size() -> None:
    F.binary_cross_entropy(torch.full((4, 1), 0.5), torch.ones(4))


@fails_as("X-25")
def bce_on_logits() -> None:
    F.binary_cross_entropy(torch.tensor([1.5]), torch.tensor([1.0]))


@fails_as("X-27")
def float_input_of_half_model() -> None:
    nn.Conv2d(3, 4, 3).half()(torch.ones(1, 3, 8, 8))


@fails_as("X-27")
def float_input_of_half_linear() -> None:
    nn.Linear(3, 4).half()(torch.ones(1, 3))


# --------------------------------------------------------------------------------------------------- modules, state
@fails_as("T-D1")
def layer_before_super_init() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            self.fc = nn.Linear(2, 2)

    Net()


@fails_as("T-D1")
def parameter_before_super_init() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            self.w = nn.Parameter(torch.ones(2))

    Net()


@fails_as("T-D2")
def tensor_over_parameter() -> None:
    layer = nn.Linear(2, 2)
    layer.weight = torch.ones(2, 2)


@fails_as("T-D3")
def nothing_to_optimize() -> None:
    torch.optim.Adam(nn.ReLU().parameters())


@fails_as("T-D4")
def layer_that_is_not_there() -> None:
    nn.Linear(2, 2).fc3  # noqa: B018


@fails_as("T-D5")
def checkpoint_of_other_width() -> None:
    nn.Sequential(nn.Linear(4, 16)).load_state_dict(nn.Sequential(nn.Linear(4, 8)).state_dict())


@fails_as("T-D6", "L-12")
def checkpoint_of_shorter_model() -> None:
    nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)).load_state_dict(nn.Sequential(nn.Linear(4, 4)).state_dict())


@fails_as("T-D7", "L-12")
def checkpoint_of_wrapped_model() -> None:
    net = nn.Sequential(nn.Linear(4, 4))
    net.load_state_dict({f"module.{key}": value for key, value in net.state_dict().items()})


@fails_as("T-D7")
def checkpoint_of_compiled_model() -> None:
    net = nn.Sequential(nn.Linear(4, 4))
    net.load_state_dict(torch.compile(net).state_dict())


@fails_as("L-12")
def checkpoint_of_another_model() -> None:
    nn.ModuleDict({"head": nn.Linear(4, 4)}).load_state_dict(nn.ModuleDict({"fc": nn.Linear(4, 4)}).state_dict())


@fails_as("X-29")
def clipping_nothing() -> None:
    torch.nn.utils.clip_grad_norm_((p for p in []), 1.0)


@fails_as("X-37")
def module_without_forward() -> None:
    class Net(nn.Module):
        def foward(self, x: torch.Tensor) -> torch.Tensor:
            return x

    Net()(torch.ones(2))


# ------------------------------------------------------------------------------------------------------------- data
class Samples(torch.utils.data.Dataset):
    def __init__(self, samples: list[object]) -> None:
        self.samples = samples

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> object:
        sample = self.samples[index]
        return sample() if callable(sample) else sample


def batches(samples: list[object], **options: object) -> list[object]:
    return list(torch.utils.data.DataLoader(Samples(samples), batch_size=2, **options))


@fails_as("T-E1")
def no_main_guard() -> None:
    run_script("""
        import torch
        from torch.utils.data import DataLoader, TensorDataset

        data = TensorDataset(torch.ones(4, 2))
        for batch in DataLoader(data, num_workers=1, multiprocessing_context="spawn"):
            print(batch)
        """)


def missing_file() -> object:
    return Path("/nowhere/image.png").read_bytes()


@fails_as("T-E2")
def worker_fails() -> None:
    batches([missing_file, missing_file], num_workers=1)


@fails_as("T-E3", "R-07")
def samples_of_other_lengths() -> None:
    batches([torch.ones(3), torch.ones(4)])


@fails_as("T-E3")
def samples_of_other_lengths_in_a_worker() -> None:
    batches([torch.ones(3), torch.ones(4)], num_workers=1)


@fails_as("T-E4")
def samples_that_are_objects() -> None:
    batches([None, None])


@fails_as("T-E4")
def none_later_in_a_batch() -> None:
    batches([(torch.ones(2), 1), None])


def killed() -> object:
    os.kill(os.getpid(), 7)
    return None


@fails_as("L-14")
def worker_killed() -> None:
    batches([killed, killed], num_workers=1)


@fails_as("X-14")
def local_function_in_a_worker() -> None:
    batches([torch.ones(2)], num_workers=1, multiprocessing_context="spawn", collate_fn=lambda batch: batch)


@fails_as("X-15")
def too_many_open_files() -> None:
    run_script("""
        import resource, torch
        from torch.utils.data import DataLoader

        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        if __name__ == "__main__":
            kept = list(DataLoader([torch.ones(2)] * 400, num_workers=1))
        """)


@fails_as("X-26")
def sampler_and_shuffle() -> None:
    data = [torch.ones(2)] * 4
    torch.utils.data.DataLoader(data, sampler=torch.utils.data.RandomSampler(data), shuffle=True)


@fails_as("X-26")
def shuffled_stream() -> None:
    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self) -> Iterator[int]:
            return iter(range(3))

    torch.utils.data.DataLoader(Stream(), shuffle=True)


@fails_as("X-30")
def dataset_without_length() -> None:
    class Data(torch.utils.data.Dataset):
        def __getitem__(self, index: int) -> int:
            return index

    torch.utils.data.DataLoader(Data(), shuffle=True)


# ------------------------------------------------------------------------------------------------ custom operators
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.factor


@fails_as("T-F1")
def function_instantiated() -> None:
    Square()(torch.ones(2))


@fails_as("T-F2")
def one_gradient_of_two() -> None:
    Scale.apply(torch.ones(2, requires_grad=True), 2.0).sum().backward()


@fails_as("T-F3")
def wrong_gradient() -> None:
    torch.autograd.gradcheck(Square.apply, torch.ones(2, dtype=torch.float64, requires_grad=True))


@fails_as("T-F4")
def gradcheck_in_single_precision() -> None:
    torch.autograd.gradcheck(Square.apply, torch.ones(2, requires_grad=True), raise_exception=False)


# ------------------------------------------------------------------------------------------- saving, export, compile
def save(value: object) -> io.BytesIO:
    buffer = io.BytesIO()
    torch.save(value, buffer)
    buffer.seek(0)
    return buffer


@fails_as("T-G1")
def module_of_the_model_is_gone() -> None:
    run_script("""
        import sys, types, torch
        module = types.ModuleType("mymodels")
        exec("from torch import nn\\nclass Net(nn.Module): pass", module.__dict__)
        sys.modules["mymodels"] = module
        torch.save(module.Net(), "model.pt")
        del sys.modules["mymodels"]
        torch.load("model.pt", weights_only=False)
        """)


@fails_as("T-G2")
def model_pickled_whole() -> None:
    torch.load(save(nn.Linear(2, 2)))


@fails_as("T-G2")
def checkpoint_with_numpy() -> None:
    torch.load(save({"mean": np.ones(2)}))


@fails_as("L-13")
def class_of_the_model_is_gone() -> None:
    run_script("""
        import torch
        from torch import nn
        class MyModel(nn.Module): pass
        torch.save(MyModel(), "model.pt")
        del MyModel
        torch.load("model.pt", weights_only=False)
        """)


@fails_as("L-15")
def empty_checkpoint() -> None:
    torch.load(io.BytesIO(b""))


@fails_as("L-15")
def empty_pickle() -> None:
    pickle.load(io.BytesIO(b""))


@fails_as("L-15")
def checkpoint_cut_off() -> None:
    whole = save(nn.Linear(20, 20).state_dict()).getvalue()
    torch.load(io.BytesIO(whole[: len(whole) // 2]))


@fails_as("X-18")
def checkpoint_from_cuda() -> None:
    source, target = save({"w": torch.ones(2)}), io.BytesIO()
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            new.writestr(
                name, content.replace(b"X\3\0\0\0cpu", b"X\6\0\0\0cuda:0") if name.endswith(".pkl") else content
            )
    target.seek(0)
    torch.load(target)


class Branching(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x if x.sum() > 0 else -x


class ThroughNumpy(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.from_numpy(x.detach().numpy() * 2)


@fails_as("T-G3")
def branch_traced() -> None:
    torch.jit.trace(Branching(), torch.ones(2))


@fails_as("T-G4")
def numpy_traced() -> None:
    torch.jit.trace(ThroughNumpy(), torch.ones(2))


@fails_as("T-G5")
def onnx_without_onnxscript() -> None:
    run_script("""
        import sys, torch

        class NotInstalled:
            def find_spec(self, name, path=None, target=None):
                if name.partition(".")[0] == "onnxscript":
                    raise ModuleNotFoundError(f"No module named {name!r}", name=name)

        sys.meta_path.insert(0, NotInstalled())
        torch.onnx.export(torch.nn.Linear(2, 2), (torch.ones(1, 2),), "model.onnx", dynamo=True)
        """)


@fails_as("T-G6", "X-20")
def branch_exported() -> None:
    torch.export.export(Branching(), (torch.ones(2),))


@fails_as("T-G6", "X-20")
def branch_exported_strictly() -> None:
    torch.export.export(Branching(), (torch.ones(2),), strict=True)


@fails_as("T-G6", "X-20")
def size_from_data_exported() -> None:
    class Net(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            n = x.max().item()
            return x[:n] if n > 3 else x

    torch.export.export(Net(), (torch.arange(4),))


@fails_as("T-G7")
def exported_for_one_batch() -> None:
    torch.export.export(nn.Linear(3, 4), (torch.ones(2, 3),)).module()(torch.ones(5, 3))


@fails_as("X-21")
def dynamic_batch_of_constant() -> None:
    class Net(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.reshape(2, 3) + 1

    batch = torch.export.Dim("batch")
    torch.export.export(Net(), (torch.ones(2, 3),), dynamic_shapes={"x": {0: batch}})


@fails_as("X-21")
def dynamic_batch_with_example_of_one() -> None:
    batch = torch.export.Dim("batch", min=2)
    torch.export.export(nn.Linear(3, 4), (torch.ones(1, 3),), dynamic_shapes={"input": {0: batch}})


@fails_as("X-20")
def branch_compiled_whole() -> None:
    torch.compile(Branching(), fullgraph=True, backend="eager")(torch.ones(2))


@fails_as("T-G8")
def no_compiler() -> None:
    run_script(
        """
        import torch
        torch._inductor.config.force_disable_caches = True
        torch.compile(lambda x: x.sin() + 1)(torch.ones(7))
        """,
        CXX="cl",
    )


# ------------------------------------------------------------------------------------------------- training, devices
@fails_as("X-22")
def scheduler_before_optimizer() -> None:
    optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.1)
    torch.optim.lr_scheduler.StepLR(optimizer, 1).step()


@fails_as("X-23")
def scaler_without_backward() -> None:
    optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.1)
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale(torch.ones(1))
    scaler.step(optimizer)


@fails_as("X-24")
def name_torch_has_not() -> None:
    torch.not_a_function  # noqa: B018


@fails_as("X-24")
def removed_module() -> None:
    import torch._six  # noqa: F401


@fails_as("X-35")
def removed_function() -> None:
    torch.symeig(torch.eye(2))


@fails_as("R-02")
def tensors_on_two_devices() -> None:
    with FakeTensorMode():
        torch.ones(2, device="cpu") + torch.ones(2, device="cuda")


@fails_as("X-34")
def hidden_on_another_device() -> None:
    nn.LSTM(2, 3)(torch.ones(1, 1, 2), (torch.ones(1, 1, 3, device="meta"), torch.ones(1, 1, 3, device="meta")))


@fails_as("R-03", "L-08", "T-I1")
def memory_of_the_machine() -> None:
    torch.empty(1 << 60)


def one_process_group(text: str) -> None:
    run_script(
        """
        import os, torch
        from torch import nn
        from torch.nn.parallel import DistributedDataParallel
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0", RANK="0", WORLD_SIZE="1")
        torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.used, self.unused = nn.Linear(2, 2), nn.Linear(2, 2)
            def forward(self, x):
                return self.used(x)
        """
        + text
    )


@fails_as("X-16")
def ddp_with_unused_parameters() -> None:
    one_process_group("""
        net = DistributedDataParallel(Net())
        for _ in range(2):
            net(torch.ones(1, 2)).sum().backward()
        """)


@fails_as("X-17")
def attribute_through_ddp() -> None:
    one_process_group("""
        DistributedDataParallel(Net()).used
        """)


@fails_as("X-33")
def ddp_with_device_ids_on_cpu() -> None:
    one_process_group("""
        DistributedDataParallel(Net(), device_ids=[0])
        """)


@fails_as("X-32")
def rank_without_group() -> None:
    torch.distributed.get_rank()


@fails_as("R-W1")
def cuda_on_a_cpu_build() -> None:
    torch.ones(1, device="cuda")


@fails_as("T-I2")
def rank_that_never_comes() -> None:
    run_script("""
        import datetime, os, socket, torch
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port, RANK="0", WORLD_SIZE="2")
        torch.distributed.init_process_group("gloo", timeout=datetime.timedelta(seconds=1))
        """)


@fails_as("T-I3")
def recompiled_too_often() -> None:
    run_script("""
        import torch
        torch._dynamo.config.recompile_limit = 2

        @torch.compile(backend="eager", dynamic=False)
        def double(x):
            return x * 2

        for n in range(2, 8):
            double(torch.ones(n))
        """)


@fails_as("T-H7")
def random_traced() -> None:
    torch.jit.trace(lambda x: x + torch.rand(2), torch.ones(2))


@fails_as("X-31")
def meta_tensor_pinned() -> None:
    torch.ones(2, device="meta").pin_memory()
