"""Symptoms in words: which answers speak of what a person describes, in English or Chinese.

Each answer lists how people put its symptom. A question is compared with every such phrase by the words they share,
rare words counting more; Chinese, which has no spaces, by pairs of characters.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from torchlint.catalogue.answers import Answer, all_answers
from torchlint.catalogue.matching import GUESS, WORDS, Match

LIKELY = 0.45
"""The score from which a description counts as understood; what is nearest below it is a guess."""

NEAR = 0.2
_CHINESE = re.compile("[\u4e00-\u9fff]+")
_LATIN = re.compile(r"[a-z0-9_]+")
_SAYS_NOTHING = """
    a an the is are was be been being am i my me we our it its this that these those of in on at to for from with and or
    but as by if so do does did doesn t s don not no when while after before why how what which there here have has had
    get gets getting got can could should would will just very really too than then some any all always still also
    pytorch torch python error please help
"""
_STOP = frozenset(_SAYS_NOTHING.split())
_SAME = {
    "accuracy": "acc accuracies",
    "bad": "worse poor lower",
    "become": "goes turns becomes went becoming",
    "chance": "random guessing guess",
    "differ": "different differs difference",
    "double": "doubles",
    "evaluation": "eval evaluate evaluating evaluated",
    "exploding": "explode explodes exploded explosion",
    "export": "onnx exported exporting",
    "fall": "decreasing decrease decreases drop drops dropping falls falling reduce",
    "freezing": "frozen freeze",
    "gpu": "cuda gpus graphics",
    "grow": "increase increases increasing growing grows rises leak",
    "hangs": "hang hanging freezes",
    "learn": "learns learning",
    "loss": "losses cost",
    "memory": "vram oom",
    "missing": "forgot forgotten missed",
    "nan": "nans inf infinity",
    "repeats": "duplicate duplicates duplicated repeated",
    "same": "constant",
    "slow": "slower slowly",
    "stays": "stuck stay plateau remains",
    "training": "train trains trained",
    "validation": "val valid test testing",
    "vanishing": "vanish vanishes",
    "workers": "worker dataloader num_workers",
}
_ALIKE = {word: same for same, words in _SAME.items() for word in words.split()}
# The same for Chinese, and words that only make a question of it.
_SAME_IN_CHINESE = {
    "损失": ("损失函数", "loss"),
    "不下降": ("不收敛", "不降低", "不减小", "降不下去", "下不去"),
    "验证": ("测试",),
    "准确率": ("精度", "正确率"),
    "GPU": ("显卡",),
    "显存不足": ("内存不足", "爆显存", "显存爆"),
    "卡住": ("卡死", "挂起"),
    "差": ("很差", "更差", "变差"),
    "导出的模型": ("导出后",),
    "上线后": ("部署后",),
    "": ("怎么办", "为什么", "怎么回事", "怎么解决", "如何解决", "请问"),
}


@dataclass(frozen=True, slots=True)
class _Phrase:
    answer: Answer
    words: frozenset[str]
    weight: float


def match_words(question: str) -> list[Match]:
    """The answers whose symptoms are nearest to a description, best first."""
    asked = _words(question)
    if not asked:
        return []
    rarity = _rarity()
    unknown = max(rarity.values())
    weight = sum(rarity.get(word, unknown) for word in asked)
    best: dict[str, Match] = {}
    for phrase in _phrases():
        shared = asked & phrase.words
        if not shared:
            continue
        common = sum(rarity[word] for word in shared)
        score = phrase.weight * common / math.sqrt(weight * sum(rarity[word] for word in phrase.words))
        known = best.get(phrase.answer.slug)
        if known is None or score > known.score:
            best[phrase.answer.slug] = Match(phrase.answer, WORDS if score >= LIKELY else GUESS, score)
    found = sorted(best.values(), key=lambda match: -match.score)
    return [match for match in found if match.score >= max(NEAR, found[0].score / 2)]


@cache
def _phrases() -> tuple[_Phrase, ...]:
    return tuple(phrase for answer in all_answers().values() for phrase in _of(answer))


def _of(answer: Answer) -> Iterator[_Phrase]:
    for text in answer.symptoms:
        yield _Phrase(answer, _words(text), 1.0)
    for text in (answer.title.en, answer.title.zh):
        yield _Phrase(answer, _words(text), 0.9)
    for text in answer.fragments:
        yield _Phrase(answer, _words(text), 0.7)


@cache
def _rarity() -> dict[str, float]:
    """How much a word tells: the fewer answers use it, the more."""
    used: Counter[str] = Counter()
    per_answer: dict[str, set[str]] = {}
    for phrase in _phrases():
        per_answer.setdefault(phrase.answer.slug, set()).update(phrase.words)
    for words in per_answer.values():
        used.update(words)
    return {word: math.log((len(per_answer) + 1) / count) for word, count in used.items()}


def _words(text: str) -> frozenset[str]:
    return frozenset(word for word in _split(text) if word)


def _split(text: str) -> Iterator[str]:
    chinese = bool(_CHINESE.search(text))
    if chinese:
        for same, spellings in _SAME_IN_CHINESE.items():
            for spelling in spellings:
                text = text.replace(spelling, same)
        for run in _CHINESE.findall(text):
            yield from (run[i : i + 2] for i in range(len(run) - 1)) if len(run) > 1 else (run,)
    for word in _LATIN.findall(text.lower()):
        if word not in _STOP:
            yield from _stems(word)


def _stems(word: str) -> Iterable[str]:
    word = _ALIKE.get(word, word)
    if len(word) > 4 and word.endswith("s") and not word.endswith("ss"):
        word = _ALIKE.get(word[:-1], word[:-1])
    parts = [part for part in word.split("_") if part]
    return (word, *parts) if len(parts) > 1 else (word,)
