"""A small project with rules of its own, so that these tests don't depend on what torchlint's rules find."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from torchlint.config import RuleSelection, Settings
from torchlint.engine import registry

PLUGIN = '''
"""Rules that are easy to predict."""

from torchlint.check import AnyClass, Applicability, Check, Edit, Fix, FunctionInfo, Module, ModuleClass, Severity, on


class IsModule(Check):
    """A class is an nn.Module, as far as that can be told from all files."""

    code = "ZZ101"
    name = "is-module"
    severity = Severity.WARNING
    failures = ("T-D1",)

    @on(ModuleClass)
    def check(self, cls, report):
        fix = Fix("Drop it", Applicability.UNSAFE, (Edit(*self._places(cls), "pass"),))
        report(cls.node, f"{cls.name} is a module", help="That is all.", fix=fix)

    def _places(self, cls):
        return cls.module.source.span(cls.node)


class Breaks(Check):
    """Raises on a class that is called Breaking."""

    code = "ZZ900"
    name = "breaks"
    severity = Severity.WARNING

    @on(AnyClass)
    def check(self, cls, report):
        if cls.name == "Breaking":
            raise KeyError("no such thing")
        if cls.name == "Deep":
            self.descend(3000)
            report(cls.node, "got to the bottom")
        if cls.name == "Crashing":
            import os, signal

            os.kill(os.getpid(), signal.SIGKILL)

    def descend(self, depth):
        return depth and self.descend(depth - 1)
'''


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project that has the plugin ``zz_rules`` beside it."""
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    (plugins / "zz_rules.py").write_text(PLUGIN)
    monkeypatch.syspath_prepend(str(plugins))
    monkeypatch.delitem(sys.modules, "zz_rules", raising=False)
    registry._load.cache_clear()
    root = tmp_path / "project"
    root.mkdir()
    monkeypatch.chdir(root)
    return root


@pytest.fixture
def settings(project: Path) -> Settings:
    """The configuration of the project: the plugin's rules and those of torchlint about linting itself."""
    return Settings(
        root=str(project),
        plugins=("zz_rules",),
        selection=(RuleSelection(select=("TL0", "ZZ")),),
        src=(str(project),),
    )


@pytest.fixture
def write(project: Path) -> Callable[..., None]:
    """Write files of the project, given as names and contents; old enough that their time stamps can be relied on."""

    def write_files(files: dict[str, str], *, age: float = 60) -> None:
        for name, text in files.items():
            file = project / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
            stamp = file.stat().st_mtime - age
            os.utime(file, (stamp, stamp))

    return write_files
