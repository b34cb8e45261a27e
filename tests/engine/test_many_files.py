"""A run over many files: order, processes, shards, and files that don't behave."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from torchlint.config import ConfigError, RuleSelection, Settings
from torchlint.engine.many import RunOptions, RunResult, run
from torchlint.engine.shard import Shard, parse_shard

Write = Callable[..., None]


def lint(settings: Settings, *paths: str, **options: object) -> RunResult:
    chosen = RunOptions(**{"cache": False, **options})  # type: ignore[arg-type]
    return run(paths or (".",), lambda path: settings, chosen)


def told(result: RunResult) -> list[str]:
    return [f"{f.filename}:{f.location.row} {f.code} {f.message}" for f in result.findings]


@pytest.fixture
def package(write: Write) -> None:
    """Forty modules, each with a class on top of the one before, and one that doesn't parse."""
    files = {"pkg/__init__.py": "", "pkg/m0.py": "from torch import nn\n\n\nclass C0(nn.Module):\n    pass\n"}
    for number in range(1, 40):
        folder = "pkg" if number % 3 else "pkg/sub"
        files[f"{folder}/m{number}.py"] = (
            f"import torch\nfrom pkg.{'sub.' if number > 1 and (number - 1) % 3 == 0 else ''}m{number - 1} "
            f"import C{number - 1}\n\n\nclass C{number}(C{number - 1}):\n    pass\n"
        )
    files["pkg/sub/__init__.py"] = ""
    files["pkg/broken.py"] = "import torch\nx = (\n"
    files["plain.py"] = "class Plain:\n    pass\n"
    write(files)


@pytest.mark.usefixtures("package")
def test_findings_are_the_same_whatever_the_processes_and_the_order(settings: Settings, project: Path) -> None:
    alone = lint(settings, jobs=1)
    assert len(alone.findings) > 10
    assert alone.files_checked == 44
    assert told(alone) == sorted(told(alone), key=lambda line: line.split(":")[0])
    assert lint(settings, jobs=2).findings == alone.findings
    assert lint(settings, jobs=5).findings == alone.findings
    backwards = sorted((str(p.relative_to(project)) for p in project.rglob("*.py")), reverse=True)
    assert lint(settings, *backwards, jobs=2).findings == alone.findings


@pytest.mark.usefixtures("package")
def test_findings_are_the_same_whatever_the_hash_seed(project: Path) -> None:
    code = (
        "from torchlint.config import *; from torchlint.engine.many import *\n"
        "s = Settings(root='.', plugins=('zz_rules',), selection=(RuleSelection(select=('TL0', 'ZZ')),), src=('.',))\n"
        "print(run(['.'], lambda p: s, RunOptions(jobs=2, cache=False)).findings)"
    )
    environment = {**os.environ, "PYTHONPATH": str(project.parent / "plugins")}
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            check=True,
            capture_output=True,
            text=True,
            env={**environment, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("0", "1", "12345")
    }
    assert len(outputs) == 1
    assert "C38 is a module" in outputs.pop()


@pytest.mark.usefixtures("package")
def test_shards_together_are_one_run(settings: Settings) -> None:
    whole = lint(settings)
    parts = [lint(settings, shard=Shard(number, 3)) for number in (1, 2, 3)]
    assert sorted(f.sort_key for part in parts for f in part.findings) == [f.sort_key for f in whole.findings]
    assert sorted(file.path for part in parts for file in part.files) == [file.path for file in whole.files]
    assert all(part.findings for part in parts)


@pytest.mark.usefixtures("package")
def test_which_shard_a_file_is_in_does_not_depend_on_where_it_is(settings: Settings, project: Path) -> None:
    before = {Path(f.path).name for f in lint(settings, "pkg", shard=Shard(1, 2)).files}
    (project / "pkg").rename(project / "moved")
    assert {Path(f.path).name for f in lint(settings, "moved", shard=Shard(1, 2)).files} == before


@pytest.mark.parametrize(
    ("text", "reason"), [("2", "2/8"), ("0/4", "counted from 1"), ("5/4", "no part 5"), ("a/b", "2/8"), ("1/-2", "2/8")]
)
def test_a_shard_that_is_none_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_shard(text)
    assert parse_shard(" 2/8 ") == Shard(2, 8)


def test_what_cannot_be_read_is_a_problem_and_the_rest_is_linted(settings: Settings, write: Write) -> None:
    write({"a.py": "import torch\nx = (\n"})
    os.mkfifo("pipe.py")
    result = lint(settings, "a.py", "missing.py", "pipe.py")
    assert [f.code for f in result.findings] == ["TL001"]
    assert [str(p) for p in result.problems] == [
        "missing.py: no such file or folder",
        "pipe.py: is neither a file nor a folder",
    ]


def test_files_that_never_name_torch_are_not_parsed(settings: Settings, write: Write) -> None:
    write({"a.py": "x = (\n", "b.py": "torch = (\n", "c.py": "import lightning\nx = (\n"})
    assert [f.filename for f in lint(settings).findings] == ["b.py", "c.py"]


def test_a_file_that_kills_its_process_takes_no_other_with_it(settings: Settings, write: Write) -> None:
    files = {f"m{n:02}.py": f"from torch import nn\n\n\nclass C{n}(nn.Module):\n    pass\n" for n in range(40)}
    files["m07.py"] = "import torch\n\n\nclass Crashing:\n    pass\n"
    write(files)
    result = lint(settings, jobs=2)
    codes = {f.filename: f.code for f in result.findings}
    assert codes.pop("m07.py") == "TL003"
    assert set(codes.values()) == {"ZZ101"} and len(codes) == 39
    assert "killed or crashed" in next(f.message for f in result.findings if f.code == "TL003")


def test_a_rule_that_does_not_exist_is_a_mistake_even_if_there_are_no_files(settings: Settings, write: Write) -> None:
    wrong = replace(settings, selection=(RuleSelection(select=("TL777",)),))
    with pytest.raises(ConfigError, match="TL777"):
        lint(wrong)
    write({"a.py": "import torch\n"})
    with pytest.raises(ConfigError, match="TL777"):
        lint(wrong)


@pytest.mark.usefixtures("package")
def test_progress_is_told_up_to_the_last_file(settings: Settings) -> None:
    steps: list[tuple[int, int]] = []
    lint(settings, jobs=2, progress=lambda done, total: steps.append((done, total)))
    assert steps == sorted(steps)
    assert steps[-1] == (44, 44)
    assert len(steps) > 2


@pytest.mark.usefixtures("package")
def test_files_of_different_configurations_are_judged_by_their_own(settings: Settings, project: Path) -> None:
    (project / "pkg" / "sub" / "torchlint.toml").write_text("")
    quiet = replace(settings, root=str(project / "pkg" / "sub"), selection=(RuleSelection(select=("TL0",)),))
    result = run(["."], lambda path: quiet if "/sub" in path else settings, RunOptions(cache=False))
    assert not any("/sub/" in f.filename for f in result.findings)
    assert any(f.code == "ZZ101" for f in result.findings)


def test_interrupting_ends_all_processes(write: Write, project: Path) -> None:
    write({f"m{n:03}.py": "import torch\n" + "x = [1, 2, 3]\n" * 20_000 for n in range(200)})
    code = (
        "from torchlint.config import *; from torchlint.engine.many import *\n"
        "s = Settings(root='.')\n"
        "print('running', flush=True)\n"
        "run(['.'], lambda p: s, RunOptions(jobs=2, cache=False))"
    )
    running = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    assert running.stdout is not None
    running.stdout.readline()
    deadline = time.monotonic() + 20
    while len(_members(running.pid)) < 3 and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(running.pid, signal.SIGINT)
    _, errors = running.communicate(timeout=20)
    assert running.returncode in (-signal.SIGINT, 130, 1)
    assert errors.count(b"KeyboardInterrupt") == 1, errors
    assert _members(running.pid) == []


def _members(group: int) -> list[str]:
    """The processes of a process group that still run."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            found.append(stat.parent.name)
    return found
