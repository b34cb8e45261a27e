"""The checks by code: their names and what they find. Read by both halves; imports nothing."""

from __future__ import annotations

NAMES = {
    "TP101": "import",
    "TP102": "construct",
    "TP103": "forward",
    "TP104": "train-mode",
    "TP105": "backward",
    "TP106": "device",
    "TP107": "dtype",
    "TP108": "batch-size",
    "TP109": "batch-leak",
    "TP110": "dead-parameters",
    "TP111": "finite",
    "TP112": "eval-determinism",
    "TP113": "state-dict",
    "TP114": "registration",
    "TP115": "export-equivalence",
    "TP116": "export",
    "TP117": "memory",
    "TP118": "checkpoint",
    "TP119": "in-place",
    "TP120": "data",
    "TP121": "overfit-one-batch",
    "TP122": "gradient-scale",
    "TP123": "gradcheck",
}

# What registration and running show explains most of what later checks would meet, so these go first.
RUN_FIRST = ("TP103", "TP104", "TP114", "TP105", "TP119", "TP112", "TP106")

# The checks that run the model in train mode.
TRAINS = ("TP104", "TP105", "TP108", "TP110", "TP111", "TP117", "TP119", "TP121", "TP122", "TP123")

FINDS = {
    "TP101": "the file or module can't be imported, or its body runs a script",
    "TP102": "the constructor fails, or needs arguments",
    "TP103": "forward fails or gives an unexpected shape",
    "TP104": "forward fails in train mode only",
    "TP105": "backward fails, has no graph, or fails in the next iteration",
    "TP106": "a tensor stays behind when the module moves, or is made on the wrong device in forward",
    "TP107": "float64 creeps in, or bfloat16, float16 or autocast fail or overflow",
    "TP108": "the model works for a batch of two and not for other sizes",
    "TP109": "one sample's output depends on another sample of the batch",
    "TP110": "parameters that get no gradient, or always a zero one",
    "TP111": "NaN or infinity in outputs, loss or gradients",
    "TP112": "two calls in eval mode differ",
    "TP113": "the state dict doesn't carry the whole model, or it can't be copied or pickled",
    "TP114": "parameters, modules or tensors that are reachable and not registered",
    "TP115": "a traced or exported model disagrees with the model",
    "TP116": "torch.export with a dynamic batch, or compiling the whole graph, fails",
    "TP117": "more memory is needed than the budget allows",
    "TP118": "a checkpoint doesn't fit the model",
    "TP119": "an in-place change breaks the backward pass",
    "TP120": "the data doesn't collate, or doesn't fit the model",
    "TP121": "a few optimizer steps on one batch don't lower the loss",
    "TP122": "gradients vanish or explode with depth at initialization",
    "TP123": "a custom autograd Function computes a wrong gradient",
}
