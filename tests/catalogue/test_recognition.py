"""Messages are recognised: by their stable fragments, as the installed torch raises them, as other versions word them,
and however a log wraps, colours, prefixes or envelopes them.
"""

from __future__ import annotations

import pytest

from torchlint.catalogue import failures
from torchlint.catalogue.explaining import Explanation, of_text
from torchlint.catalogue.matching import GUESS

# The stable fragment of each failure that has a message; the numbers and names in them are anyone's.
FRAGMENTS = {
    "T-A1": "Trying to backward through the graph a second time",
    "T-A2": "element 0 of tensors does not require grad and does not have a grad_fn",
    "T-A3": "grad can be implicitly created only for scalar outputs",
    "T-A4": "Can't call numpy() on Tensor that requires grad",
    "T-A5": "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed",
    "T-A6": "Inference tensors cannot be saved for backward",
    "T-B1": "a leaf Variable that requires grad is being used in an in-place operation",
    "T-B2": "a view of a leaf Variable that requires grad is being used in an in-place operation",
    "T-B3": "one of the variables needed for gradient computation has been modified by an inplace operation",
    "T-B4": "Hint: enable anomaly detection to find the operation that failed to compute its gradient",
    "T-C1": "mat1 and mat2 shapes cannot be multiplied",
    "T-C2": "mat1 and mat2 must have the same dtype, but got Double and Float",
    "T-C3": "The size of tensor a must match the size of tensor b at non-singleton dimension",
    "T-C4": "view size is not compatible with input tensor's size and stride",
    "T-C5": "Boolean value of Tensor with more than one value is ambiguous",
    "T-C6": "a Tensor with 2 elements cannot be converted to Scalar",
    "T-C7": "Expected more than 1 value per channel when training",
    "T-C8": "Target 5 is out of bounds",
    "T-C9": "expected target dtype to be Long or Byte, but got Float",
    "T-C10": "Expected input batch_size (4) to match target batch_size (2)",
    "T-D1": "cannot assign module before Module.__init__() call",
    "T-D2": "cannot assign 'torch.FloatTensor' as parameter 'w' (torch.nn.Parameter or None expected)",
    "T-D3": "optimizer got an empty parameter list",
    "T-D4": "'Linear' object has no attribute 'fc3'",
    "T-D5": "size mismatch for 0.weight: copying a param with shape ... from checkpoint",
    "T-D6": "Missing key(s) in state_dict",
    "T-D7": 'Unexpected key(s) in state_dict: "_orig_mod." or "module." prefix',
    "T-E1": "An attempt has been made to start a new process before the current process has finished its bootstrapping "
    "phase",
    "T-E2": "Caught RuntimeError in DataLoader worker process 0",
    "T-E3": "stack expects each tensor to be equal size",
    "T-E4": "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found",
    "T-F1": "Legacy autograd function with non-static forward method is deprecated",
    "T-F2": "returned an incorrect number of gradients (expected 2, got 1)",
    "T-F3": "GradcheckError: Jacobian mismatch for output 0 with respect to input 0",
    "T-F4": "Input #0 requires gradient and is not a double precision floating point or complex",
    "T-G1": "ModuleNotFoundError: No module named (raised in torch.load)",
    "T-G2": "Weights only load failed",
    "T-G3": "TracerWarning: Converting a tensor to a Python boolean might cause the trace to be incorrect",
    "T-G4": "TracerWarning: torch.from_numpy results are registered as constants in the trace",
    "T-G5": "ModuleNotFoundError: No module named 'onnxscript'",
    "T-G6": "GuardOnDataDependentSymNode: Could not guard on data-dependent expression",
    "T-G7": "Guard failed: x.size()[0] == 2",
    "T-G8": "InductorError: InvalidCxxCompiler: Compiler: cl is not found",
    "T-I1": "CUDA out of memory / same device / device-side assert",
    "L-01": "mat1 and mat2 shapes cannot be multiplied (32x784 and 128x10)",
    "L-02": "index out of range in self",
    "L-03": "shape '[x, y]' is invalid for input of size z",
    "L-04": "element 0 of tensors does not require grad",
    "L-05": "Trying to backward through the graph a second time",
    "L-08": "CUDA out of memory",
    "L-09": "CUDA error: device-side assert triggered",
    "L-10": "Expected object of scalar type Float but got scalar type Long",
    "L-11": "Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) should be the same",
    "L-12": "Missing key(s) in state_dict / Unexpected key(s)",
    "L-13": "Can't get attribute 'MyModel' / PickleError",
    "L-14": "DataLoader worker (pid 4242) is killed by signal: Bus error",
    "L-15": "EOFError: Ran out of input",
    "L-20": "module must have its parameters and buffers on device cuda:0",
    "R-01": "mat1 and mat2 shapes cannot be multiplied",
    "R-02": "Expected all tensors to be on the same device",
    "R-03": "CUDA out of memory",
    "R-04": "element 0 of tensors does not require grad",
    "R-05": "Expected input batch_size X to match target batch_size Y",
    "R-06": "one of the variables needed for gradient computation has been modified by an inplace operation",
    "R-07": "stack expects each tensor to be equal size",
    "R-08": "cuDNN error: CUDNN_STATUS_INTERNAL_ERROR",
    "R-09": "IndexError: index out of range in self",
    "R-10": "Trying to backward through the graph a second time",
    "X-01": "Given groups=1, weight of size [...], expected input[...] to have 3 channels, but got 1 channels instead",
    "X-02": "num_channels must be divisible by num_groups / in_channels must be divisible by groups",
    "X-03": "embed_dim must be divisible by num_heads",
    "X-04": "Sizes of tensors must match except in dimension",
    "X-05": "Tensors must have same number of dimensions",
    "X-06": "einsum(): subscript d has size",
    "X-07": "Expected hidden[0] size (1, 4, 8), got [1, 3, 8]",
    "X-08": "0D or 1D target tensor expected, multi-target not supported",
    "X-09": "result type Float can't be cast to the desired output type Long",
    "X-10": "Using a target size (torch.Size([4])) that is different to the input size (torch.Size([4, 1]))",
    "X-11": "Target size must be the same as input size",
    "X-12": "can't optimize a non-leaf Tensor",
    "X-13": "Cannot re-initialize CUDA in forked subprocess",
    "X-14": "Can't pickle local object",
    "X-15": "Too many open files / unable to open shared memory object / received 0 items of ancdata",
    "X-16": "Expected to have finished reduction in the prior iteration",
    "X-17": "'DistributedDataParallel' object has no attribute",
    "X-18": "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False",
    "X-19": "can't convert cuda:0 device type tensor to numpy",
    "X-20": "Dynamic control flow is not supported at the moment",
    "X-21": "Constraints violated",
    "X-22": "Detected call of lr_scheduler.step() before optimizer.step()",
    "X-23": "No inf checks were recorded for this optimizer",
    "X-24": "module 'torch' has no attribute 'symeig2'",
    "X-25": "all elements of input should be between 0 and 1",
    "X-26": "sampler option is mutually exclusive with shuffle",
    "X-27": "expected scalar type Half but found Float",
    "X-28": "Output 0 of SplitBackward is a view and is being modified inplace",
    "X-29": "`parameters` is an empty generator, no gradient clipping will occur",
    "X-30": "object of type 'Rows' has no len() (raised while a sampler or DataLoader is built)",
    "X-31": "cannot pin 'torch.cuda.FloatTensor': only dense CPU tensors can be pinned",
    "X-32": "Default process group has not been initialized",
    "X-33": "DistributedDataParallel device_ids and output_device arguments only work with single-device GPU modules",
    "X-34": "Input and hidden tensors are not at the same device",
    "X-35": "This function was deprecated since version 1.9 and is now removed",
    "X-37": 'Module [Net] is missing the required "forward" function',
}

# What torch says, or said, in other versions and on other devices: facts from public reports and release notes.
OTHER_WORDINGS = {
    "size mismatch, m1: [32 x 256], m2: [512 x 10] at ../aten/src/TH/generic/THTensorMath.cpp:41": "T-C1",
    "mat1 dim 1 must match mat2 dim 0": "T-C1",
    "a and b must have same reduction dim, but got [32, 256] X [512, 10].": "T-C1",
    "linear(): input and weight.T shapes cannot be multiplied (32x256 and 512x10)": "T-C1",
    "input.size(-1) must be equal to input_size. Expected 10, got 8": "T-C1",
    "there are no graph nodes that require computing gradients": "T-A2",
    "element 0 of variables does not require grad and does not have a grad_fn": "T-A2",
    "a leaf Variable that requires grad has been used in an in-place operation.": "T-B1",
    "leaf variable has been moved into the graph interior": "T-B2",
    "expected scalar type Double but found Float": "T-C2",
    "expected scalar type Float but found Double": "T-C2",
    "Expected object of scalar type Float but got scalar type Double for argument #2 'mat1'": "T-C2",
    "Expected object of type torch.DoubleTensor but found type torch.FloatTensor for argument #2 'weight'": "T-C2",
    "Input type (torch.cuda.DoubleTensor) and weight type (torch.cuda.FloatTensor) should be the same": "T-C2",
    "expected m1 and m2 to have the same dtype, but got: double != float": "T-C2",
    "Found dtype Double but expected Float": "T-C2",
    "The expanded size of the tensor (5) must match the existing size (4) at non-singleton dimension 1": "T-C3",
    "bool value of Tensor with more than one value is ambiguous": "T-C5",
    "only one element tensors can be converted to Python scalars": "T-C6",
    "expected scalar type Long but found Float": "T-C9",
    "Expected object of scalar type Long but got scalar type Float for argument #2 'target' in call to _thnn": "T-C9",
    "Expected object of type torch.LongTensor but found type torch.FloatTensor for argument #2 'target'": "T-C9",
    "\"nll_loss_forward_reduce_cuda_kernel_2d_index\" not implemented for 'Int'": "T-C9",
    "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
    "torch.FloatTensor instead (while checking arguments for embedding)": "T-C9",
    "tensors used as indices must be long, byte or bool tensors": "T-C9",
    "Expected target size [4, 10], got [4]": "T-C10",
    "invalid argument 2: size '[4 x 256]' is invalid for input with 1600 elements at ../src/TH/x.cpp:80": "L-03",
    "index out of range: Tried to access index 30522 out of table with 30521 rows.": "L-02",
    "cuda runtime error (59) : device-side assert triggered at /pytorch/aten/src/THC/generic/Math.cu:15": "L-09",
    "cuda runtime error (2) : out of memory at /pytorch/aten/src/THC/generic/THCStorage.cu:58": "L-08",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB.": "L-08",
    "MPS backend out of memory (MPS allocated: 8.1 GB, other allocations: 400 MB, max allowed: 9.07 GB)": "L-08",
    "Found dtype Long but expected Float": "L-10",
    "expected scalar type Float but found Long": "L-10",
    "Input type (unsigned char) and bias type (float) should be the same": "L-10",
    "Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor) should be the same or input should be a "
    "MKLDNN tensor and weight is a dense tensor": "L-11",
    "Expected object of backend CPU but got backend CUDA for argument #2 'weight'": "R-02",
    "Expected object of device type cuda but got device type cpu for argument #1 'self' in call to _th_addmm": "R-02",
    "expected device cuda:0 but got device cpu": "R-02",
    "Expected object of type torch.FloatTensor but found type torch.cuda.FloatTensor for argument #2 'mat2'": "R-02",
    "Placeholder storage has not been allocated on MPS device!": "R-02",
    "Expected 4-dimensional input for 4-dimensional weight [64, 3, 7, 7], but got 3-dimensional input": "X-01",
    "Given groups=1, weight[64, 3, 7, 7], so expected input[1, 1, 28, 28] to have 3 channels, but got 1 channels "
    "instead": "X-01",
    "Need input.size[1] == 3 but got 1 instead.": "X-01",
    "invalid argument 0: Sizes of tensors must match except in dimension 1. Got 7 and 6 in dimension 2": "X-04",
    "1D target tensor expected, multi-target not supported": "X-08",
    "multi-target not supported at /pytorch/aten/src/THNN/generic/ClassNLLCriterion.c:22": "X-08",
    "can't convert CUDA tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.": "X-19",
    "Expected input at *args[0].shape[0] to be equal to 2, but got 5": "T-G7",
    "torch._dynamo.exc.UserError: Dynamic control flow is not supported at the moment. Please use "
    "functorch.experimental.control_flow.cond": "T-G6",
    "Failed to find C compiler. Please specify via CC environment variable.": "T-G8",
    "torch._dynamo hit config.cache_size_limit (8)": "T-I3",
    "default_collate: batch must contain tensors, numbers, dicts or lists; found <class 'PIL.Image.Image'>": "T-E4",
    "Can't get local object 'main.<locals>.<lambda>'": "X-14",
    "\"LayerNormKernelImpl\" not implemented for 'Half'": "X-27",
    "expected dtype Float but got dtype Half": "X-27",
    "Input type (torch.cuda.HalfTensor) and weight type (torch.cuda.FloatTensor) should be the same": "X-27",
    "can't optimize a non-leaf Variable": "X-12",
    "Default process group is not initialized": "X-32",
    "KeyError: 'unexpected key \"encoder.conv4.weight\" in state_dict'": "L-12",
    "BCECriterion.cu:57: Assertion `*input >= 0. && *input <= 1.` failed.": "X-25",
    "Sizes of tensor must match except in dimension 2. Got 48 and 49 (The offending index is 0)": "X-04",
    "TypeError: can't pickle Environment objects": "X-14",
    "rank is not set but it is required for env:// init method": "T-I2",
    "DDP expects same model across all ranks, but Rank 0 has 2 params, while rank 1 has 0 params": "T-I2",
    "RuntimeError: CUDA error: no kernel image is available for execution on the device": "R-W1",
    "AssertionError: Torch not compiled with CUDA enabled": "R-W1",
    "GET was unable to find an engine to execute this computation": "R-08",
    "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`": "R-08",
    "NVIDIA H200 with CUDA capability sm_90 is not compatible with the current PyTorch installation.": "R-W1",
    "[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE)": "T-I2",
}  # fmt: skip

MATMUL = "RuntimeError: mat1 and mat2 shapes cannot be multiplied (32x256 and 512x10)"
TRACEBACK = f"""\
Traceback (most recent call last):
  File "/home/ada/project/train.py", line 40, in <module>
    main()
  File "/home/ada/project/train.py", line 31, in main
    loss = step(model, batch)
  File "/home/ada/venv/lib/python3.12/site-packages/torch/nn/modules/linear.py", line 125, in forward
    return F.linear(input, self.weight, self.bias)
           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
{MATMUL}
"""


def first(text: str) -> tuple[str, ...]:
    """The ids of the answer that comes first, and is no guess."""
    explanation = of_text(text)
    assert explanation.best is not None, text
    assert explanation.best.basis != GUESS, (explanation.best.answer.slug, text)
    return explanation.best.answer.ids


def test_every_failure_is_answered_by_message_or_by_words() -> None:
    described = {"T-H1", "T-H2", "T-H3", "T-H4", "T-H5", "T-H6", "T-H7", "T-I2", "T-I3", "L-06", "L-07", "L-16", "L-17"}
    described |= {"L-18", "L-19", "W-C1", "W-06", "R-W1", "R-W2", "R-W3", "R-W4", "X-36"}
    assert FRAGMENTS.keys() | described == failures().keys()


@pytest.mark.parametrize("identifier", FRAGMENTS)
def test_the_stable_fragment_is_enough(identifier: str) -> None:
    assert identifier in first(FRAGMENTS[identifier])


@pytest.mark.parametrize("identifier", FRAGMENTS)
def test_a_fragment_may_be_wrapped_anywhere(identifier: str) -> None:
    text = FRAGMENTS[identifier]
    wrapped = "\n".join(text[start : start + 17] for start in range(0, len(text), 17))
    assert identifier in first(wrapped)


@pytest.mark.parametrize("identifier", FRAGMENTS)
def test_a_fragment_is_recognised_under_the_colours_and_ranks_of_a_log(identifier: str) -> None:
    text = f"\x1b[31m[rank1]: RuntimeError\x1b[0m: \x1b[1m{FRAGMENTS[identifier]}\x1b[0m"
    assert identifier in first(text)


@pytest.mark.parametrize(("message", "identifier"), OTHER_WORDINGS.items())
def test_other_versions_and_devices_are_understood(message: str, identifier: str) -> None:
    assert identifier in first(message)


def explained(text: str) -> Explanation:
    explanation = of_text(text)
    assert explanation.recognised
    return explanation


@pytest.mark.parametrize(
    "wrap",
    [
        pytest.param(lambda line: f"[rank0]: {line}", id="torchrun"),
        pytest.param(lambda line: f"[rank: 0] {line}", id="lightning"),
        pytest.param(lambda line: f"2025-03-01 12:00:00,123 - trainer - ERROR - {line}", id="logging"),
        pytest.param(lambda line: f"2025-03-01 12:00:00.123 | ERROR    | train:main:31 - {line}", id="loguru"),
        pytest.param(lambda line: f"[2025-03-01 12:00:00,123][ERROR] {line}", id="bracketed"),
        pytest.param(lambda line: f"E0301 12:00:00.123456 4242 train.py:31] {line}", id="glog"),
        pytest.param(lambda line: f"[1,0]<stderr>:{line}", id="mpirun"),
        pytest.param(lambda line: f"(train_fn pid=4242, ip=10.0.0.7) {line}", id="ray"),
        pytest.param(lambda line: f"worker-1  | {line}", id="compose"),
        pytest.param(lambda line: f"> {line}", id="mail"),
        pytest.param(lambda line: f"\x1b[0;31m{line}\x1b[0m", id="colours"),
        pytest.param(lambda line: f"[0;31m{line}[0m", id="colours without their escape"),
        pytest.param(lambda line: f"│ {line:<118} │", id="rich"),
        pytest.param(lambda line: f"  | {line}", id="exception group"),
        pytest.param(lambda line: f"{line}\r", id="windows"),
        pytest.param(lambda line: f"Epoch 0:  7%|#     | 3/40\r{line}", id="progress bar"),
    ],
)
def test_a_traceback_is_read_through_what_a_launcher_puts_around_it(wrap) -> None:
    explanation = explained("\n".join(map(wrap, TRACEBACK.splitlines())))
    assert "T-C1" in explanation.best.answer.ids
    assert [place.shown for place in explanation.places] == [
        "/home/ada/project/train.py:31",
        "/home/ada/project/train.py:40",
    ]
    assert "nn.Linear(512, 10)" in explanation.said[0].reading.en


def test_a_traceback_inside_json_is_read() -> None:
    line = '{"level": "error", "message": "' + TRACEBACK.replace('"', '\\"').replace("\n", "\\n") + '"}'
    assert "T-C1" in first(line)


def test_ipython_shows_frames_and_lines_its_own_way() -> None:
    explanation = explained("""\
---------------------------------------------------------------------------
RuntimeError                              Traceback (most recent call last)
Cell In[3], line 2
      1 y = model(x)
----> 2 y.backward()

File ~/venv/lib/python3.12/site-packages/torch/_tensor.py:648, in Tensor.backward(self, gradient)
    647     )
--> 648 torch.autograd.backward(

RuntimeError: grad can be implicitly created only for scalar outputs
""")
    assert "T-A3" in explanation.best.answer.ids
    assert explanation.places[0].frame.source == "y.backward()"


def test_pytest_marks_the_error_and_names_the_file_below_it() -> None:
    explanation = explained("""\
    def test_training():
>       optimizer = torch.optim.Adam(model.parameters())

tests/test_train.py:12:
_ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _
E       ValueError: optimizer got an empty parameter list

venv/lib/python3.12/site-packages/torch/optim/optimizer.py:395: ValueError
""")
    assert "T-D3" in explanation.best.answer.ids
    assert explanation.places[0].shown == "tests/test_train.py:12"


def test_a_workers_envelope_is_opened() -> None:
    explanation = explained("""\
Traceback (most recent call last):
  File "train.py", line 9, in <module>
    for batch in loader:
RuntimeError: Caught RuntimeError in DataLoader worker process 0.
Original Traceback (most recent call last):
  File "/venv/lib/python3.12/site-packages/torch/utils/data/_utils/worker.py", line 349, in _worker_loop
    data = fetcher.fetch(index)
RuntimeError: stack expects each tensor to be equal size, but got [3] at entry 0 and [4] at entry 1
""")
    assert "T-E3" in explanation.best.answer.ids
    assert "T-E2" in explanation.matches[1].answer.ids


def test_an_envelope_that_was_cut_off_comes_after_the_error_named_beside_it() -> None:
    explanation = explained("""\
My training stops with: stack expects each tensor to be equal size, but got [3] at entry 0 and [4] at entry 1
Traceback (most recent call last):
  File "train.py", line 9, in <module>
    for batch in loader:
RuntimeError: Caught RuntimeError in DataLoader worker process 0.
Original Traceback (most recent call last):
  File "/venv/lib/python3.12/site-packages/torch/utils/data/_utils/worker.py", line 349, in _worker_loop
    data = fetcher.fetch(ind
""")
    assert "T-E3" in explanation.best.answer.ids


def test_an_unknown_error_in_the_envelope_leaves_the_envelope_to_explain() -> None:
    explanation = explained("""\
FileNotFoundError: Caught FileNotFoundError in DataLoader worker process 1.
Original Traceback (most recent call last):
  File "data.py", line 12, in __getitem__
    return Image.open(self.paths[i])
FileNotFoundError: [Errno 2] No such file or directory: 'cat.jpg'
""")
    assert "T-E2" in explanation.best.answer.ids
    assert explanation.places[0].shown == "data.py:12"


def test_of_a_chain_the_error_that_was_raised_last_leads() -> None:
    explanation = explained("""\
Traceback (most recent call last):
  File "train.py", line 3, in <module>
    x.view(6)
RuntimeError: view size is not compatible with input tensor's size and stride

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "train.py", line 5, in <module>
    x.item()
RuntimeError: a Tensor with 6 elements cannot be converted to Scalar
""")
    assert [match.answer.ids[0] for match in explanation.matches] == ["T-C6", "T-C4"]


def test_an_error_that_only_follows_from_another_steps_back() -> None:
    explanation = explained("""\
[rank1]: Traceback (most recent call last):
[rank1]:   File "train.py", line 30, in <module>
[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.
[rank0]: Traceback (most recent call last):
[rank0]:   File "train.py", line 30, in <module>
[rank0]: torch.distributed.DistBackendError: NCCL error: remote process exited or there was a network error
""")
    assert "L-08" in explanation.best.answer.ids


def test_a_warning_names_its_line() -> None:
    explanation = explained("""\
Epoch 0:   0%|            | 1/2239 [00:00<17:25, loss=0.795]/home/ada/train.py:31: UserWarning: Using a target size \
(torch.Size([4])) that is different to the input size (torch.Size([4, 1])).
  loss = F.mse_loss(model(x), y)
/venv/lib/python3.12/site-packages/torch/x.py:9: DeprecationWarning: something else
  warnings.warn(
""")
    assert "X-10" in explanation.best.answer.ids
    assert explanation.places[0].shown == "/home/ada/train.py:31"
    assert explanation.places[0].frame.source == "loss = F.mse_loss(model(x), y)"


def test_anomaly_mode_names_the_line_of_the_forward() -> None:
    explanation = explained("""\
/venv/lib/python3.12/site-packages/torch/autograd/graph.py:8: UserWarning: Error detected in SigmoidBackward0. \
Traceback of forward call that caused the error:
  File "/home/ada/train.py", line 12, in <module>
    y = torch.sigmoid(x)
 (Triggered internally at python_anomaly_mode.cpp:122.)
Traceback (most recent call last):
  File "/home/ada/train.py", line 20, in <module>
    y.sum().backward()
RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation: \
[torch.FloatTensor [2]], which is output 0 of SigmoidBackward0, is at version 1; expected version 0 instead.
""")
    assert [match.answer.ids[0] for match in explanation.matches] == ["T-B3", "T-B4"]
    assert [place.frame.row for place in explanation.places] == [20, 12]


def test_of_two_fragments_the_longer_one_counts() -> None:
    explanation = explained("a view of a leaf Variable that requires grad is being used in an in-place operation.")
    assert [match.answer.ids[0] for match in explanation.matches] == ["T-B2"]


def test_an_unknown_error_is_answered_by_a_guess_that_says_so() -> None:
    explanation = of_text("RuntimeError: the frobnicator of the loss scheduler has no gradient")
    assert not explanation.recognised


def test_an_error_of_another_trade_gets_no_answer() -> None:
    assert not of_text("KeyError: 'user_id'").recognised


def test_an_attribute_error_counts_as_a_modules_only_in_a_module() -> None:
    alone = "AttributeError: 'Batch' object has no attribute 'mask'"
    assert not of_text(alone).recognised
    raised = (
        f'  File "/venv/lib/python3.12/site-packages/torch/nn/modules/module.py", line 1931, in __getattr__\n{alone}'
    )
    assert "T-D4" in first(raised)


def test_keys_that_differ_by_a_wrapper_are_told_from_keys_that_differ() -> None:
    wrapped = 'Missing key(s) in state_dict: "fc.weight". Unexpected key(s) in state_dict: "module.fc.weight".'
    other = 'Missing key(s) in state_dict: "module.bn.bias". Unexpected key(s) in state_dict: "module.norm.bias".'
    assert first(wrapped)[0] == "T-D7"
    assert first(other)[0] == "L-12"


def test_a_cause_that_the_text_speaks_for_comes_first() -> None:
    explanation = explained(
        "../aten/src/ATen/native/cuda/Indexing.cu:1289: indexSelectLargeIndex: block: [7,0,0], thread: [0,0,0] "
        "Assertion `srcIndex < srcSelectDimSize` failed.\nRuntimeError: CUDA error: device-side assert triggered"
    )
    assert "L-09" in explanation.best.answer.ids
    assert "embedding" in explanation.best.causes(explanation.transcript.text)[0].what.en


@pytest.mark.parametrize(
    "text",
    ["", "\x00\x01", "\n\n\n", "Traceback (most recent call last):", 'File "a", line 1, in b', "[[[[", "😀" * 5000],
)
def test_nothing_makes_it_fail(text: str) -> None:
    assert not of_text(text).recognised
