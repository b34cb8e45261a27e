"""Symptoms told in words, English or Chinese, lead to the right answer; what is merely near is a guess."""

from __future__ import annotations

import pytest

from torchlint.catalogue.explaining import of_text
from torchlint.catalogue.matching import GUESS, MESSAGE, WORDS
from torchlint.catalogue.words import match_words

SYMPTOMS = {
    "loss falls slower than expected, or settles at a slightly worse point": "T-H1",
    "validation accuracy is worse than training for no reason": "T-H2",
    "the model gives different predictions every time for the same image": "T-H2",
    "mixed precision is on and no faster": "T-H3",
    "augmentation looks random but training suffers": "T-H4",
    "IterableDataset returns duplicate data with multiple workers": "T-H5",
    "a custom operator's gradient is wrong by a whole factor": "T-H6",
    "the exported model is right on the sample you tested and wrong in production": "T-H7",
    "onnx model output differs from pytorch": "T-H7",
    "distributed training hangs at the end of the epoch": "T-I2",
    "torch.compile makes my model slower": "T-I3",
    "gradients explode": "L-06",
    "gradients vanish": "L-07",
    "the loss doesn't fall at all": "L-16",
    "my loss turns into nan after a few hundred iterations": "L-17",
    "validation accuracy stays at chance": "L-18",
    "high training and low validation accuracy": "L-19",
    "Linear's in_features doesn't fit the input": "W-C1",
    "ten linear layers with no activation and a huge learning rate": "W-06",
    "torch.cuda.is_available() returns False": "R-W1",
    "print shape, dtype and device through the whole model": "R-W2",
    "how much GPU memory is allocated, cached, at its peak": "R-W3",
    "apply the smallest fix, check that gradients flow": "R-W4",
    "some layers never learn": "X-36",
    "gpu memory keeps increasing every iteration": "L-08",
    "x.grad is None after calling backward": "T-A5",
    "loss is nan": "L-17",
    "损失下降得比预期慢": "T-H1",
    "验证集精度比训练时差": "T-H2",
    "开了混合精度却没提速": "T-H3",
    "每个 worker 的数据增强都一样": "T-H4",
    "一个周期变长了，每条数据被重复训练": "T-H5",
    "自定义算子的梯度大了一个倍数": "T-H6",
    "导出的模型上线后结果不对": "T-H7",
    "多卡训练卡住不动": "T-I2",
    "梯度爆炸": "L-06",
    "梯度消失": "L-07",
    "损失一直不下降": "L-16",
    "loss变成nan了": "L-17",
    "验证准确率与随机猜测相近": "L-18",
    "过拟合了怎么办": "L-19",
    "显存不足怎么办": "L-08",
    "有些层不学习": "X-36",
    "冻结不起作用": "X-36",
    "检测不到显卡": "R-W1",
}


@pytest.mark.parametrize(("question", "identifier"), SYMPTOMS.items())
def test_a_symptom_is_understood(question: str, identifier: str) -> None:
    best = of_text(question).best
    assert best is not None
    assert identifier in best.answer.ids
    assert best.basis in (WORDS, MESSAGE)


@pytest.mark.parametrize("question", ["how do I bake bread", "今天天气怎么样", "SELECT * FROM users", "the"])
def test_what_has_nothing_to_do_with_training_is_not_answered(question: str) -> None:
    assert not of_text(question).recognised


def test_what_is_merely_near_is_a_guess() -> None:
    found = match_words("my tensor wants another colour of memory")
    assert all(match.basis == GUESS for match in found)


def test_the_best_comes_first_and_what_is_far_behind_is_left_out() -> None:
    scores = [match.score for match in match_words("the loss doesn't fall")]
    assert scores == sorted(scores, reverse=True)
    assert min(scores) >= scores[0] / 2
