"""The catalogue's own texts: whole in both languages, in step with the rules and with the probe, and proper Python."""

from __future__ import annotations

import ast
import re
import textwrap

import pytest

from torchlint.catalogue import failure_title, failures
from torchlint.catalogue.answers import all_answers, answers_for
from torchlint.catalogue.page import code_names, failures_found_by
from torchlint.engine.registry import rules
from torchlint.probe.worker.names import NAMES

ANSWERS = all_answers()
CHINESE = re.compile("[\u4e00-\u9fff]")


def test_every_failure_names_answers_that_are_there_and_every_answer_has_a_failure() -> None:
    named = {slug for failure in failures().values() for slug in failure.answers}
    assert named == ANSWERS.keys()
    assert len(failures()) == 126


@pytest.mark.parametrize("slug", ANSWERS)
def test_an_answer_is_whole_in_both_languages(slug: str) -> None:
    answer = ANSWERS[slug]
    texts = [answer.title, answer.meaning]
    for cause in answer.causes:
        texts += [cause.what, cause.tell]
    for text in texts:
        assert text.en
        assert not CHINESE.search(text.en)
        assert CHINESE.search(text.zh), text.zh
    assert len(answer.causes) >= 2
    assert answer.url.startswith(("https://docs.pytorch.org/", "https://pytorch.org/", "https://github.com/pytorch/"))


@pytest.mark.parametrize("slug", ANSWERS)
def test_an_answer_can_be_found(slug: str) -> None:
    answer = ANSWERS[slug]
    assert answer.fragments or answer.hints or answer.symptoms
    assert any(CHINESE.search(symptom) for symptom in answer.symptoms)
    assert any(not CHINESE.search(symptom) for symptom in answer.symptoms)
    for cause in answer.causes:
        re.compile(cause.when)
        assert " " not in cause.when, "a cause's pattern is compared without white space"


@pytest.mark.parametrize("slug", ANSWERS)
def test_what_to_write_instead_is_a_program_that_differs(slug: str) -> None:
    for cause in ANSWERS[slug].causes:
        assert cause.before != cause.after
        for code in (cause.before, cause.after):
            if not code.startswith(("pip ", "python -m pip", "docker ", "torchrun ", "TORCH_DISTRIBUTED_DEBUG")):
                ast.parse(_in_a_function(code))


def _in_a_function(code: str) -> str:
    """A piece of a function's body parses inside one; a method's decorator needs a class around it as well."""
    return f"async def f(self):\n{textwrap.indent(code, '    ')}\n"


@pytest.mark.parametrize("slug", ANSWERS)
def test_an_answer_names_rules_and_checks_that_exist(slug: str) -> None:
    answer = ANSWERS[slug]
    assert set(answer.checks) <= {code for code in code_names() if code.startswith("TL")}
    assert set(answer.probe) <= NAMES.keys()


def test_the_table_of_codes_is_in_step_with_the_rules_and_the_probe() -> None:
    known = {code: name for code, (name, _) in code_names().items()}
    for card in rules():
        assert known[card.code] == card.name
    assert {code: name for code, name in known.items() if code.startswith("TP")} == NAMES


def test_a_rule_that_says_which_failures_it_prevents_is_named_by_their_answers() -> None:
    one_sided = [
        f"{card.code} {card.name} names {identifier} ({failure_title(identifier)}), whose answers don't name it"
        for card in rules()
        for identifier in card.failures
        if not any(card.code in answer.checks for answer in answers_for(identifier))
    ]
    assert not one_sided, "\n".join(one_sided)


def test_a_report_gets_a_title_for_every_failure() -> None:
    assert failure_title("T-D1") == "a layer is assigned before nn.Module.__init__ has run"
    assert failure_title("no such id") == "no such id"
    assert all("\n" not in failure_title(identifier) for identifier in failures())


def test_the_failures_of_a_rule_can_be_asked_for() -> None:
    assert "T-H1" in failures_found_by("TL401")
    assert "T-C1" in failures_found_by("TP103")
