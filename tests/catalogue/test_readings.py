"""The numbers of a message are used: which layer, which size, which key, which place."""

from __future__ import annotations

import pytest

from torchlint.catalogue.explaining import of_text


def said(message: str) -> str:
    """What the message says in its numbers, in English."""
    return " ".join(each.reading.en for each in of_text(message).said)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("mat1 and mat2 shapes cannot be multiplied (32x256 and 512x10)", "wants 512 is nn.Linear(512, 10)"),
        ("mat1 and mat2 shapes cannot be multiplied (32x256 and 512x10)", "gives 256, in 32 rows"),
        ("mat1 and mat2 shapes cannot be multiplied (32x256 and 512x10)", "write nn.Linear(256, 10)"),
        ("mat1 and mat2 shapes cannot be multiplied (896x28 and 784x10)", "exactly 32 rows of 784: the input was not"),
        (
            "mat1 and mat2 shapes cannot be multiplied (1x25088 and 784x10)",
            "the batch of 32 was flattened into one row",
        ),
        ("mat1 and mat2 shapes cannot be multiplied (512x32 and 512x10)", "one of the two is transposed"),
        ("mat1 and mat2 shapes cannot be multiplied (8x10 and 512x10)", "nn.Linear(10, 512)"),
        ("size mismatch, m1: [2 x 4608], m2: [512 x 10] at THTensorMath.cpp:752", "nn.Linear(512, 10)"),
        ("a and b must have same reduction dim, but got [2, 7] X [5, 3].", "nn.Linear(5, 3)"),
        ("size mismatch, got input (3), mat (3x4), vec (5)", "needs a vector of 4; this one has 5"),
        ("input.size(-1) must be equal to input_size. Expected 10, got 8", "built for 10 features and gets 8"),
        ("The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1", "In dimension 1"),
        ("shape '[32, 400]' is invalid for input of size 6400", "the first would be 16 and not 32"),
        ("shape '[4, 256]' is invalid for input of size 1600", "one sample holds 400 values"),
        (
            "Given groups=1, weight of size [64, 3, 7, 7], expected input[8, 1, 224, 224] to have 3 channels, "
            "but got 1 channels instead",
            "nn.Conv2d(3, 64, ...) and takes 3 channels; the input (8, 1, 224, 224) has 1",
        ),
        (
            "Given groups=1, weight of size [64, 3, 7, 7], expected input[8, 224, 224, 3] to have 3 channels, "
            "but got 224 channels instead",
            "x.permute(0, 3, 1, 2)",
        ),
        ("Expected hidden size (1, 3, 8), got [1, 4, 8]", "The batch of the hidden state is 4"),
        ("num_channels (48) must be divisible by num_groups (32)", "24 would do"),
        ("Target 5 is out of bounds.", "at least 6 outputs"),
        ("Target -1 is out of bounds.", "negative"),
        ("Expected input batch_size (128) to match target batch_size (32).", "each sample became 4 rows"),
        (
            "Using a target size (torch.Size([4])) that is different to the input size (torch.Size([4, 1])).",
            "would broadcast to (4, 4)",
        ),
        (
            "one of the variables needed for gradient computation has been modified by an inplace operation: "
            "[torch.FloatTensor [2, 3]], which is output 0 of SigmoidBackward0, is at version 2; expected version 0",
            "(2, 3) that Sigmoid gave was changed 2 times",
        ),
        (
            "one of the variables needed for gradient computation has been modified by an inplace operation: "
            "[torch.FloatTensor [8, 4]], which is output 0 of AsStridedBackward0, is at version 2; expected version 1",
            "look for an optimizer.step() before this backward",
        ),
        (
            "size mismatch for fc.weight: copying a param with shape torch.Size([10, 4]) from checkpoint, the shape "
            "in current model is torch.Size([5, 4]).",
            "fc.weight: (10, 4) in the checkpoint, (5, 4) in the model",
        ),
        (
            'Missing key(s) in state_dict: "fc.weight", "fc.bias". '
            'Unexpected key(s) in state_dict: "module.fc.weight", "module.fc.bias".',
            "Every key of the file begins with 'module.'",
        ),
        (
            'Missing key(s) in state_dict: "module.fc.weight". Unexpected key(s) in state_dict: "fc.weight".',
            "The model's keys begin with 'module.'",
        ),
        (
            "function ScaleBackward returned an incorrect number of gradients (expected 2, got 1)",
            "Scale.forward takes 2",
        ),
        (
            "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu! (when "
            "checking argument for argument mat1 in method wrapper_CUDA_addmm)",
            "the argument mat1 of addmm",
        ),
        (
            "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.65 GiB of which 1.06 GiB "
            "is free. 18.1 GiB is allocated by PyTorch, and 3.9 GiB is reserved by PyTorch but unallocated.",
            "the memory is in fragments",
        ),
        ("stack expects each tensor to be equal size, but got [3] at entry 0 and [4] at entry 1", "sample 1 is (4,)"),
        ("Guard failed: x.size()[0] == 2", "Dimension 0 of x was exported as 2"),
        (
            "Weights only load failed. Unsupported global: GLOBAL argparse.Namespace was not an allowed global",
            "argparse.Namespace",
        ),
    ],
)
def test_a_reading_uses_the_users_numbers(message: str, expected: str) -> None:
    assert expected in said(message)


def test_a_reading_survives_a_wrapped_message() -> None:
    assert "nn.Linear(512, 10)" in said("mat1 and mat2 shapes cannot be multi\nplied (32x2\n56 and 512\nx10)")


def test_readings_are_told_in_chinese_too() -> None:
    explanation = of_text("mat1 and mat2 shapes cannot be multiplied (32x256 and 512x10)")
    assert "需要 512 的是 nn.Linear(512, 10)" in explanation.said[0].reading.zh
