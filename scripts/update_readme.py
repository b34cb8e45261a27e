"""Bring the generated parts of README.md up to date: the demonstration's output and the table of rules.

python scripts/update_readme.py          write
python scripts/update_readme.py --check  say whether there is anything to write
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from torchlint.engine.registry import rules
from torchlint.finding import RuleInfo

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"

FAMILIES = {
    "TL0": "torchlint itself",
    "TL1": "modules: registration and structure",
    "TL2": "autograd and in-place operations",
    "TL3": "shapes, dtypes, values",
    "TL4": "training and evaluation loops",
    "TL5": "data loading",
    "TL6": "custom autograd Functions",
    "TL7": "saving and loading",
    "TL8": "trace, export, compile",
    "TL9": "devices, distribution, memory, speed, the age of the API",
}


def demonstration() -> str:
    """What ``torchlint examples/digits`` prints."""
    command = [sys.executable, "-m", "torchlint", "check", "--no-cache", "--isolated", "examples/digits"]
    env = {**os.environ, "NO_COLOR": "1", "PYTHONUTF8": "1"}
    run = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, check=False)
    return f"```console\n$ torchlint examples/digits\n{run.stdout.decode('utf-8')}```"


def table() -> str:
    """All rules, by family."""
    parts = []
    cards = rules()
    for family in sorted({card.code[:3] for card in cards}):
        rows = [_row(card) for card in cards if card.code.startswith(family)]
        heading = (
            f"### {family}: {FAMILIES[family]}\n\n| code | name | finds | severity | fix |\n|---|---|---|---|---|\n"
        )
        parts.append(heading + "\n".join(rows))
    return "\n\n".join(parts)


def _row(card: RuleInfo) -> str:
    summary = " ".join(card.summary.split()).replace("|", "\\|")
    return f"| {card.code} | {card.name} | {summary} | {card.severity} | {card.fix or ''} |"


def updated(text: str) -> str:
    """The README with its generated parts made anew."""
    for name, make in (("demonstration", demonstration), ("rules", table)):
        begin, end = f"<!-- {name}: made by scripts/update_readme.py -->", f"<!-- end of {name} -->"
        pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
        made = f"{begin}\n{make()}\n{end}"
        text, count = pattern.subn(lambda match, made=made: made, text)
        if count != 1:
            raise SystemExit(f"README.md has no part between {begin} and {end}")
    return text


def main() -> int:
    """Write or check."""
    old = README.read_text(encoding="utf-8")
    new = updated(old)
    if "--check" in sys.argv[1:]:
        if new != old:
            print("README.md is out of date: run python scripts/update_readme.py", file=sys.stderr)
        return int(new != old)
    README.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
