"""The cache: what it knows holds, and whatever happens to it, findings stay the same."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import torchlint.engine.cache as cache_module
from torchlint.config import RuleSelection, Settings
from torchlint.engine.cache import TAG_FILE, Cache, is_cache_folder
from torchlint.engine.many import Caches, RunOptions, RunResult, run
from torchlint.engine.shard import Shard

Write = Callable[..., None]

BASE = "from torch import nn\n\n\nclass Base(nn.Module):\n    pass\n"
OWN = "import torch\nfrom base import Base\n\n\nclass Own(Base):\n    pass\n"


@pytest.fixture
def lint(settings: Settings) -> Callable[..., RunResult]:
    def lint_files(*paths: str, settings: Settings = settings, **options: Any) -> RunResult:
        return run(paths or (".",), lambda path: settings, RunOptions(**options))

    return lint_files


def told(result: RunResult) -> list[str]:
    return [f"{f.filename} {f.code} {f.message}" for f in result.findings]


def records(project: Path) -> Iterator[Path]:
    return (project / ".torchlint_cache").glob("*/*.json")


def test_a_second_run_reads_nothing_and_finds_the_same(lint: Callable[..., RunResult], write: Write) -> None:
    broken = "import torch\nx = (\n"
    write({"base.py": BASE, "own.py": OWN, "plain.py": "x = 1\n", "broken.py": broken, "n.ipynb": '{"cells": []}'})
    cold = lint()
    assert cold.files_from_cache == 0
    warm = lint()
    assert warm.files_from_cache == 5
    assert warm.findings == cold.findings
    assert len(warm.findings) == 3
    assert warm.findings[-1].fix is not None


@pytest.mark.usefixtures("project")
def test_a_warm_run_loads_no_rules(write: Write, settings: Settings, lint: Callable[..., RunResult]) -> None:
    write({"base.py": BASE})
    plain = Settings(root=settings.root, src=settings.src)
    lint(settings=plain)
    code = (
        "import sys; from torchlint.config import *; from torchlint.engine.many import *\n"
        f"s = Settings(root={plain.root!r}, src={plain.src!r})\n"
        "r = run(['.'], lambda p: s)\n"
        "print(r.files_from_cache, 'torchlint.check' in sys.modules, 'ast' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split()[:2] == ["1", "False"]


def test_a_changed_file_is_linted_again_and_no_other(lint: Callable[..., RunResult], write: Write) -> None:
    write({"base.py": BASE, "other.py": "import torch\n"})
    lint()
    write({"other.py": "import torch\nx = (\n"})
    result = lint()
    assert (result.files_from_cache, told(result)[1].split()[:2]) == (1, ["other.py", "TL001"])


def test_a_result_rests_on_the_files_it_leads_to(lint: Callable[..., RunResult], write: Write) -> None:
    write({"base.py": BASE, "middle.py": "import torch\nfrom base import *\n", "own.py": OWN.replace("base", "middle")})
    assert told(lint()) == ["base.py ZZ101 Base is a module", "own.py ZZ101 Own is a module"]
    write({"base.py": "import torch\n\n\nclass Base:\n    pass\n"})
    assert told(lint()) == []
    write({"base.py": BASE})
    assert len(told(lint("own.py"))) == 1, "also when only the file that rests on it is linted"


def test_a_result_rests_on_modules_that_are_not_there(lint: Callable[..., RunResult], write: Write) -> None:
    write({"own.py": OWN, "other.py": "import torch\n"})
    assert told(lint()) == []
    lint()
    write({"base.py": BASE})
    assert told(lint("own.py")) == ["own.py ZZ101 Own is a module"]
    Path("base.py").unlink()
    assert told(lint("own.py")) == []


def test_a_module_that_came_while_another_file_was_linted_is_not_missed(
    lint: Callable[..., RunResult], write: Write
) -> None:
    write({"own.py": OWN, "other.py": "import torch\n"})
    lint()
    lint()
    write({"base.py": BASE})
    lint("other.py")
    assert told(lint("own.py")) == ["own.py ZZ101 Own is a module"]


def test_a_folder_that_becomes_a_package_is_noticed(lint: Callable[..., RunResult], write: Write) -> None:
    own = OWN.replace("from base", "from .base")
    write({"pkg/base.py": BASE, "pkg/own.py": own})
    lint()
    lint()
    write({"pkg/__init__.py": ""})
    assert told(lint()) == told(lint(cache=False))


def test_touching_a_file_changes_nothing(lint: Callable[..., RunResult], write: Write) -> None:
    write({"base.py": BASE})
    lint()
    os.utime("base.py", (1, 1))
    assert lint().files_from_cache == 1


def test_a_change_that_keeps_size_and_time_is_seen(lint: Callable[..., RunResult], write: Write) -> None:
    write({"base.py": BASE}, age=0)
    lint()
    stamp = Path("base.py").stat()
    Path("base.py").write_text(BASE.replace("Base", "Bose"))
    os.utime("base.py", ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert told(lint()) == ["base.py ZZ101 Bose is a module"]


def test_each_configuration_has_its_own_results(
    lint: Callable[..., RunResult], write: Write, settings: Settings
) -> None:
    write({"base.py": BASE})
    assert len(lint().findings) == 1
    quiet = replace(settings, selection=(RuleSelection(select=("TL0",)),))
    assert lint(settings=quiet).findings == []
    assert len(lint().findings) == 1
    assert lint(settings=quiet).files_from_cache == 1


def test_another_torchlint_or_python_makes_its_own(
    lint: Callable[..., RunResult], write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write({"base.py": BASE})
    lint()
    monkeypatch.setattr(cache_module, "__version__", "99.0")
    assert lint().files_from_cache == 0
    monkeypatch.undo()
    monkeypatch.setattr(sys, "version_info", (3, 99, 0))
    assert lint().files_from_cache == 0


def test_a_plugin_that_has_changed_makes_its_own(settings: Settings, write: Write, project: Path) -> None:
    write({"base.py": BASE})
    before = Cache(settings)._key
    plugin = project.parent / "plugins" / "zz_rules.py"
    plugin.write_text(plugin.read_text() + "\n# changed\n")
    assert Cache(settings)._key != before


def test_a_cache_moves_with_its_project(settings: Settings, write: Write, project: Path) -> None:
    write({"base.py": BASE, "own.py": OWN})
    run(["."], lambda path: settings)
    moved = project.parent / "elsewhere"
    shutil.copytree(project, moved, copy_function=shutil.copyfile)
    os.chdir(moved)
    there = replace(settings, root=str(moved), src=(str(moved),))
    result = run(["."], lambda path: there)
    assert (result.files_from_cache, len(result.findings)) == (2, 2)


def test_a_failed_check_is_tried_again(lint: Callable[..., RunResult], write: Write) -> None:
    write({"a.py": "import torch\n\n\nclass Breaking:\n    pass\n"})
    assert [f.code for f in lint().findings] == ["TL003"]
    assert lint().files_from_cache == 0


def test_shards_and_whole_runs_share_a_cache(lint: Callable[..., RunResult], write: Write) -> None:
    write({f"m{n}.py": BASE.replace("Base", f"Base{n}") for n in range(12)})
    whole = lint()
    parts = [lint(shard=Shard(number, 2)) for number in (1, 2)]
    assert all(part.files_from_cache == 12 for part in parts)
    assert sorted(told(parts[0]) + told(parts[1])) == told(whole)


# -------------------------------------------------------------------- damage and malice


def _cut(text: str) -> str:
    return text[: len(text) // 2]


def _without(field: str) -> Callable[[str], str]:
    def change(text: str) -> str:
        loaded = json.loads(text)
        for record in loaded.get("files", {}).values():
            record.pop(field, None)
        return json.dumps(loaded)

    return change


def _with(field: str, value: object) -> Callable[[str], str]:
    def change(text: str) -> str:
        loaded = json.loads(text)
        for record in loaded.get("files", {}).values():
            record[field] = value
        return json.dumps(loaded)

    return change


@pytest.mark.parametrize(
    "damage",
    [
        _cut,
        lambda text: "",
        lambda text: "\0" * 100,
        lambda text: "[]",
        lambda text: "null",
        lambda text: "[" * 100_000,
        lambda text: '{"format": 1, "files": [], "paths": {}, "folders": []}',
        lambda text: '{"format": 1, "files": {"own.py": 3, "base.py": null}, "folders": {".": 1, "": [1]}}',
        lambda text: text.replace('"format": 1', '"format": 99'),
        _without("hash"),
        _without("needs_hash"),
        _without("findings"),
        _with("needs", [99]),
        _with("needs", ["own.py"]),
        _with("needs", 7),
        _with("stamp", "now"),
        _with("findings", [{}]),
        _with("findings", [{"code": 1, "place": "1234"}]),
        _with("findings", 5),
        _with("imports", 5),
    ],
)
def test_a_damaged_cache_is_ignored_and_mended(
    lint: Callable[..., RunResult], write: Write, project: Path, damage: Callable[[str], str]
) -> None:
    write({"base.py": BASE, "own.py": OWN})
    expected = lint().findings
    for file in records(project):
        file.write_text(damage(file.read_text()))
    write({"new.py": "import torch\n"})
    assert lint().findings == expected
    assert lint().findings == expected
    assert lint().files_from_cache == 3


def test_records_are_readable_and_name_files_from_the_root(lint: Callable[..., RunResult], write: Write) -> None:
    write({"base.py": BASE, "own.py": OWN})
    lint()
    text = "".join(file.read_text() for file in records(Path.cwd()))
    assert '"own.py": {' in text and "Base is a module" in text
    assert str(Path.cwd()) not in text


def test_the_folder_says_what_it_is_and_git_ignores_it(lint: Callable[..., RunResult], write: Write) -> None:
    write({"base.py": BASE})
    lint()
    folder = Path(".torchlint_cache")
    assert (folder / TAG_FILE).read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55\n")
    assert (folder / ".gitignore").read_text().endswith("\n*\n")
    assert is_cache_folder(str(folder))
    subprocess.run(["git", "init", "-q"], check=True)
    status = subprocess.run(["git", "status", "--porcelain"], check=True, capture_output=True, text=True)
    assert status.stdout == "?? base.py\n"


def test_a_folder_that_was_not_made_for_it_is_left_alone(
    lint: Callable[..., RunResult], write: Write, settings: Settings, project: Path
) -> None:
    write({"base.py": BASE, "precious/letter.txt": "dear"})
    elsewhere = replace(settings, cache_dir=str(project / "precious"))
    assert len(lint(settings=elsewhere).findings) == 1
    assert [file.name for file in Path("precious").iterdir()] == ["letter.txt"]
    assert not is_cache_folder("precious")


@pytest.mark.parametrize("inner", ["", "0.1.0"])
def test_a_planted_link_leads_nowhere(lint: Callable[..., RunResult], write: Write, project: Path, inner: str) -> None:
    write({"base.py": BASE})
    target = project.parent / "home"
    target.mkdir()
    if inner:
        lint()
        shutil.rmtree(project / ".torchlint_cache" / inner)
    (project / ".torchlint_cache" / inner).symlink_to(target)
    assert len(lint().findings) == 1
    assert list(target.iterdir()) == []
    assert not is_cache_folder(str(project / ".torchlint_cache" / inner))


def test_a_planted_pipe_is_not_waited_for(lint: Callable[..., RunResult], write: Write, project: Path) -> None:
    write({"base.py": BASE})
    lint()
    for file in list(records(project)):
        file.unlink()
        os.mkfifo(file)
    assert len(lint().findings) == 1


def test_a_full_disk_costs_only_the_cache(lint: Callable[..., RunResult], write: Write, settings: Settings) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    write({"base.py": BASE})
    code = (
        "import resource, signal, sys; from torchlint.config import *; from torchlint.engine.many import *\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
        f"s = Settings(root={settings.root!r}, src={settings.src!r}, plugins=('zz_rules',),\n"
        "    selection=(RuleSelection(select=('ZZ',)),))\n"
        "print(len(run(['.'], lambda p: s).findings))"
    )
    plugins = str(Path(settings.root).parent / "plugins")
    # The answer goes through a pipe, which the limit on files doesn't touch.
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": plugins}
    )
    assert (done.stdout, done.stderr) == ("1\n", "")
    assert not list(Path(".torchlint_cache").rglob("*.tmp"))


def test_two_runs_at_once_keep_each_others_records(settings: Settings, write: Write) -> None:
    write({"base.py": BASE, "own.py": OWN})
    one, two = Caches(), Caches()
    one.of(settings), two.of(settings)
    run(["base.py"], lambda path: settings, RunOptions(caches=one))
    run(["own.py"], lambda path: settings, RunOptions(caches=two))
    assert run(["."], lambda path: settings).files_from_cache == 2


def test_many_runs_at_once_all_find_the_same(settings: Settings, write: Write, project: Path) -> None:
    write({f"d{n % 5}/m{n}.py": BASE.replace("Base", f"Base{n}") for n in range(30)})
    code = (
        "from torchlint.config import *; from torchlint.engine.many import *\n"
        f"s = Settings(root={settings.root!r}, src={settings.src!r}, plugins=('zz_rules',),\n"
        "    selection=(RuleSelection(select=('ZZ',)),))\n"
        "for _ in range(3): print(len(run(['.'], lambda p: s).findings))"
    )
    environment = {**os.environ, "PYTHONPATH": str(project.parent / "plugins")}
    running = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=environment) for _ in range(4)
    ]
    assert [process.communicate()[0] for process in running] == [b"30\n30\n30\n"] * 4
    assert not list(project.rglob("*.tmp"))


def test_records_of_files_that_are_gone_are_dropped(
    lint: Callable[..., RunResult], write: Write, project: Path
) -> None:
    write({"base.py": BASE, "gone.py": BASE})
    lint()
    Path("gone.py").unlink()
    write({"base.py": BASE + "\n"})
    lint()
    assert "gone.py" not in "".join(json.dumps(json.loads(f.read_text()).get("files")) for f in records(project))


def test_a_cache_in_memory_writes_nothing(settings: Settings, write: Write, project: Path) -> None:
    write({"base.py": BASE, "own.py": OWN})
    caches = Caches(stored=False)
    first = run(["."], lambda path: settings, RunOptions(caches=caches))
    caches.look_again()
    second = run(["."], lambda path: settings, RunOptions(caches=caches))
    assert (second.files_from_cache, second.findings) == (2, first.findings)
    assert not (project / ".torchlint_cache").exists()
    write({"base.py": "import torch\n"})
    caches.look_again()
    assert run(["."], lambda path: settings, RunOptions(caches=caches)).findings == []
