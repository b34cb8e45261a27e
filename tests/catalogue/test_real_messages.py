"""Each failure that a CPU can raise is raised on the installed torch, and its real message is recognised."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from real_failures import PROGRAMS, screen

from torchlint.catalogue.explaining import of_text
from torchlint.catalogue.matching import MESSAGE

pytestmark = pytest.mark.torch

CASES = [
    pytest.param(identifier, program, id=f"{identifier}-{program.__name__}")
    for identifier, programs in PROGRAMS.items()
    for program in programs
]
SECOND = {"T-B4"}
"""Failures whose message follows another's: anomaly mode's hint comes with the error that it hints at."""

_shown: dict[str, str] = {}


@pytest.mark.parametrize(("identifier", "program"), CASES)
def test_the_real_message_is_recognised(identifier: str, program) -> None:
    text = _shown.setdefault(program.__name__, screen(program))
    matches = of_text(text).matches
    assert matches, text
    assert matches[0].basis == MESSAGE
    told = matches if identifier in SECOND else matches[:1]
    assert any(identifier in match.answer.ids for match in told), text
