"""What a rule says can depend on the oldest torch that the code must run on."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchlint.config import RuleSelection, Settings
from torchlint.engine.one import lint_text

PROGRAM = 'import torch\n\nstate = torch.load("model.pt")\n'


def codes(target: tuple[int, int] | None, tmp_path: Path) -> list[str]:
    settings = Settings(root=str(tmp_path), target_torch=target, selection=(RuleSelection(select=("TL703",)),))
    return [finding.code for finding in lint_text(PROGRAM, settings)]


@pytest.mark.parametrize("target", [(1, 13), (2, 5)])
def test_torch_load_without_weights_only_is_unsafe_before_torch_2_6(target: tuple[int, int], tmp_path: Path) -> None:
    assert codes(target, tmp_path) == ["TL703"]


@pytest.mark.parametrize("target", [None, (2, 6), (2, 13)])
def test_torch_load_is_safe_by_default_since(target: tuple[int, int] | None, tmp_path: Path) -> None:
    assert codes(target, tmp_path) == []
