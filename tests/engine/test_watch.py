"""Watching: a run after every change, and only what changed is linted again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from torchlint.config import ConfigError, Settings
from torchlint.engine import watch as watch_module
from torchlint.engine.many import RunOptions, RunResult
from torchlint.engine.watch import watch

Write = Callable[..., None]
NET = "from torch import nn\n\n\nclass Net(nn.Module):\n    pass\n"

Shown = tuple[list[str], list[str], int]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_module, "INTERVAL", 0.01)


def follow(settings: Settings, steps: Sequence[Callable[[], object]], **options: bool) -> list[Shown]:
    """What is shown first and after each step: what changed, the findings, and how many files were not linted again."""
    shown: list[Shown] = []
    remaining: Iterator[Callable[[], object]] = iter(steps)

    def show(result: RunResult | ConfigError, changed: Sequence[str]) -> None:
        if isinstance(result, ConfigError):
            shown.append((list(changed), [str(result)], 0))
        else:
            found = [f"{f.filename} {f.code}" for f in result.findings] + [str(p) for p in result.problems]
            shown.append((list(changed), found, result.files_from_cache))
        step = next(remaining, None)
        if step is None:
            raise KeyboardInterrupt
        step()

    watch(["."], lambda: lambda path: settings, RunOptions(**options), show)
    return shown


@pytest.mark.parametrize("cache", [True, False])
def test_what_changes_is_linted_again(settings: Settings, write: Write, project: Path, cache: bool) -> None:
    write({"a.py": NET, "b.py": NET})
    shown = follow(
        settings,
        [
            lambda: write({"a.py": "import torch\n"}),
            lambda: write({"new/c.py": NET}),
            lambda: (project / "b.py").unlink(),
            lambda: write({"a.py": "from b import Net\nimport torch\n\n\nclass A(Net):\n    pass\n"}),
            lambda: write({"b.py": NET}),
        ],
        cache=cache,
    )
    c = str(Path("new/c.py"))
    assert shown == [
        ([], ["a.py ZZ101", "b.py ZZ101"], 0),
        (["a.py"], ["b.py ZZ101"], 1),
        ([c], ["b.py ZZ101", f"{c} ZZ101"], 2),
        (["b.py"], [f"{c} ZZ101"], 2),
        (["a.py"], [f"{c} ZZ101"], 1),
        (["b.py"], ["a.py ZZ101", "b.py ZZ101", f"{c} ZZ101"], 2),  # b.py is what it once was
    ]
    assert (project / ".torchlint_cache").exists() is cache


def test_a_mistake_in_the_configuration_is_shown_and_waited_out(settings: Settings, write: Write) -> None:
    write({"a.py": NET})
    wrong = True

    def configure() -> Callable[[str], Settings]:
        if wrong:
            raise ConfigError("torchlint.toml:1: unknown key")
        return lambda path: settings

    shown: list[str] = []

    def show(result: RunResult | ConfigError, changed: Sequence[str]) -> None:
        nonlocal wrong
        shown.append(str(result) if isinstance(result, ConfigError) else result.findings[0].code)
        if not wrong:
            raise KeyboardInterrupt
        wrong = False

    watch(["."], configure, RunOptions(cache=False), show)
    assert shown == ["torchlint.toml:1: unknown key", "ZZ101"]
