"""Bring the generated parts of README.md and CONTRIBUTING.md up to date: real output, real rules, real code.

python scripts/update_readme.py          write
python scripts/update_readme.py --check  say whether there is anything to write
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from torchlint.engine.registry import rules
from torchlint.finding import RuleInfo

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ("TL214-retain-graph-in-loop", "checks/autograd/retain_graph_in_loop.py")

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


def fixture() -> str:
    """The shortest program with the fault of the example rule."""
    folder = ROOT / "fixtures" / EXAMPLE[0]
    faulty = [file for file in sorted(folder.glob("*.py")) if f"# {EXAMPLE[0][:5]}" in file.read_text("utf-8")]
    return _code(min(faulty, key=lambda file: len(file.read_text("utf-8"))))


def rule() -> str:
    """The example rule."""
    return _code(ROOT / EXAMPLE[1])


def _code(file: Path) -> str:
    return f"```python\n{file.read_text('utf-8').rstrip()}\n```"


PARTS: dict[str, dict[str, Callable[[], str]]] = {
    "README.md": {"demonstration": demonstration, "rules": table},
    "CONTRIBUTING.md": {"fixture": fixture, "rule": rule},
}


def updated(name: str) -> str:
    """A document with its generated parts made anew."""
    text = (ROOT / name).read_text(encoding="utf-8")
    for part, make in PARTS[name].items():
        begin, end = f"<!-- {part}: made by scripts/update_readme.py -->", f"<!-- end of {part} -->"
        before, _, rest = text.partition(begin)
        _, found, after = rest.partition(end)
        if not found:
            raise SystemExit(f"{name} has no part between {begin} and {end}")
        text = f"{before}{begin}\n{make()}\n{end}{after}"
    return text


def main() -> int:
    """Write or check."""
    stale = False
    for name in PARTS:
        new = updated(name)
        if new == (ROOT / name).read_text(encoding="utf-8"):
            continue
        stale = True
        if "--check" in sys.argv[1:]:
            print(f"{name} is out of date: run python scripts/update_readme.py", file=sys.stderr)
        else:
            (ROOT / name).write_text(new, encoding="utf-8")
    return int(stale and "--check" in sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
