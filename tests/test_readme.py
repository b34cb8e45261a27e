"""README.md shows what torchlint really prints and the rules that there really are."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_generated_parts_are_up_to_date() -> None:
    command = [sys.executable, str(ROOT / "scripts/update_readme.py"), "--check"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr


def test_the_configuration_shown_is_one(tmp_path: Path) -> None:
    from torchlint.config import load_settings

    (block,) = re.findall(r"```toml\n(\[tool.torchlint\]\n.*?)```", README, re.DOTALL)
    (tmp_path / "pyproject.toml").write_text(block)
    settings = load_settings(tmp_path)
    assert settings.target_torch == (2, 4)
    assert settings.selection[0].extend_select == ("TL313",)


def test_formats_and_commands_shown_are_those_there_are() -> None:
    from torchlint.cli import COMMANDS
    from torchlint.config import OUTPUT_FORMATS

    formats = re.search(r"`--output-format` takes ([^.]*)\.", README)
    assert formats
    assert tuple(re.findall(r"[a-z]+(?:-[a-z]+)*", formats[1].replace(" and ", " "))) == OUTPUT_FORMATS
    shown = set(re.findall(r"^\$ torchlint ([a-z]+) ", README, re.MULTILINE))
    assert shown <= COMMANDS.keys()
