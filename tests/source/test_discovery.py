"""Which files are found below what the user names."""

from __future__ import annotations

import ast
import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from torchlint.config import Settings
from torchlint.source.discovery import Discovery, discover


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(root: Path, *names: str) -> None:
    for name in names:
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("import torch\n")


def find(*paths: str, **changes: object) -> Discovery:
    settings = Settings(root=str(Path.cwd()), **changes)  # type: ignore[arg-type]
    return discover(paths, lambda folder: settings)


def names(*paths: str, **changes: object) -> list[str]:
    return [found.filename for found in find(*paths, **changes).files]


def test_folders_are_searched_for_python_files_and_notebooks(tree: Path) -> None:
    write(tree, "b.py", "a/x.py", "a/n.ipynb", "a/gui.pyw", "a/stub.pyi", "a/notes.txt", "a.py/c.py")
    assert names(".") == ["a.py/c.py", "a/gui.pyw", "a/n.ipynb", "a/x.py", "b.py"]
    assert names("a") == ["a/gui.pyw", "a/n.ipynb", "a/x.py"]
    assert names(str(tree / "a"), "b.py") == [str(tree / "a" / n) for n in ("gui.pyw", "n.ipynb", "x.py")] + ["b.py"]


def test_a_file_that_is_named_is_taken_whatever_its_name_and_once(tree: Path) -> None:
    write(tree, "run", "x.py", "stub.pyi", "venv/v.py")
    assert names("run", "x.py", "./x.py", ".", "venv/v.py", "stub.pyi") == ["run", "venv/v.py", "x.py"]


def test_usual_places_for_foreign_code_are_left_out_unless_named(tree: Path) -> None:
    write(tree, "src/a.py", ".venv/b.py", "node_modules/c.py", "x/site-packages/d.py", ".git/e.py", "dist/f.py")
    assert names(".") == ["src/a.py"]
    assert names("x/site-packages", "dist") == ["dist/f.py", "x/site-packages/d.py"]


def test_exclude_takes_names_paths_and_patterns(tree: Path) -> None:
    write(tree, "a.py", "a_test.py", "old/b.py", "src/old/c.py", "src/gen/d.py", "src/keep.py", "src/x/y/z.py")
    every = ["a.py", "a_test.py", "old/b.py", "src/gen/d.py", "src/keep.py", "src/old/c.py", "src/x/y/z.py"]
    assert names(".", exclude=()) == every
    assert names(".", exclude=("old",)) == ["a.py", "a_test.py", "src/gen/d.py", "src/keep.py", "src/x/y/z.py"]
    assert names(".", exclude=("src/gen/", "*_test.py")) == [
        "a.py",
        "old/b.py",
        "src/keep.py",
        "src/old/c.py",
        "src/x/y/z.py",
    ]
    assert names(".", exclude=("src/*.py",)) == ["a.py", "a_test.py", "old/b.py"]
    assert names(".", exclude=("{old,gen,x}", "[ab].py")) == ["a_test.py", "src/keep.py"]


def test_force_exclude_holds_for_named_files_too(tree: Path) -> None:
    write(tree, "venv/lib/a.py", "b.py")
    assert names("venv/lib/a.py", "b.py", "venv", force_exclude=True) == ["b.py"]


def test_ignore_files_hold_below_their_folder_and_the_nearest_decides(tree: Path) -> None:
    write(tree, "a.py", "gen.py", "out/x.py", "pkg/gen.py", "pkg/keep/gen.py", "pkg/only.py", "other/only.py", "[x.py")
    (tree / ".gitignore").write_text("# generated\ngen.py\nout/\n")
    (tree / "pkg" / ".gitignore").write_text("/only.py\n")
    (tree / "pkg" / "keep" / ".gitignore").write_text("!gen.py\n")
    assert names(".") == ["[x.py", "a.py", "other/only.py", "pkg/keep/gen.py"]
    assert "gen.py" in names(".", respect_gitignore=False)


def test_the_same_files_are_found_as_git_itself_would_list(tree: Path) -> None:
    write(tree, "a.py", "build/x.py", "src/build/y.py", "src/a_pb2.py", "src/keep_pb2.py", "logs/b.py", "deep/er/c.py")
    (tree / ".gitignore").write_text("/build\n*_pb2.py\n!keep_pb2.py\nlogs/**\ndeep/*\n!deep/er\n***\\\n")
    subprocess.run(["git", "init", "-q"], check=True)
    (tree / ".git" / "info" / "exclude").write_text("a.py\n")
    listed = subprocess.run(
        ["git", "ls-files", "--others", "--exclude-standard", "*.py"], check=True, capture_output=True, text=True
    )
    assert names(".") == sorted(listed.stdout.split())


def test_ignore_files_of_the_repository_above_count_unless_they_ignore_the_folder_that_is_named(tree: Path) -> None:
    write(tree, "src/a.py", "src/gen.py", "hidden/b.py", "hidden/sub/c.py", "hidden/sub/gen.py")
    (tree / ".git").mkdir()
    (tree / ".gitignore").write_text("gen.py\nhidden/\n")
    assert names("src") == ["src/a.py"]
    assert names("hidden/sub") == ["hidden/sub/c.py", "hidden/sub/gen.py"]


def test_links_to_folders_are_not_followed_and_links_to_files_are_read_once(tree: Path) -> None:
    write(tree, "pkg/a.py")
    (tree / "pkg" / "loop").symlink_to(tree)
    (tree / "pkg" / "same.py").symlink_to("a.py")
    (tree / "pkg" / "gone.py").symlink_to("nowhere.py")
    (tree / "pkg" / "self.py").symlink_to("self.py")
    (tree / "outside.py").symlink_to("/dev/zero")
    found = find("pkg", ".")
    assert [f.path for f in found.files] == [str((tree / "pkg" / "a.py").resolve())]
    assert found.problems == []


def test_a_link_that_is_named_is_followed(tree: Path) -> None:
    write(tree, "real/a.py")
    (tree / "link").symlink_to("real")
    assert [(f.filename, f.path) for f in find("link").files] == [("link/a.py", str(tree.resolve() / "real" / "a.py"))]


def test_pipes_are_never_opened(tree: Path) -> None:
    os.mkfifo(tree / "pipe.py")
    os.mkfifo(tree / ".gitignore")
    assert names(".") == []
    assert [str(problem) for problem in find("pipe.py").problems] == ["pipe.py: is neither a file nor a folder"]


def test_what_is_missing_is_told_and_the_rest_is_found(tree: Path) -> None:
    write(tree, "a.py")
    (tree / "loop").symlink_to("loop")
    found = find("nope.py", "a.py", "nope.py", "loop", "x" * 5000, "nul\0byte")
    assert [f.filename for f in found.files] == ["a.py"]
    assert len(found.problems) == 4
    assert "nope.py: no such file or folder" in map(str, found.problems)


def test_an_unreadable_folder_is_told() -> None:
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        tree.chmod(0o755)
        write(tree, "a.py", "closed/b.py")
        (tree / "closed").chmod(0)
        names, problems = as_nobody(lambda: find(folder))
        (tree / "closed").chmod(0o755)
    assert names == [f"{folder}/a.py"]
    assert problems == [f"{folder}/closed: permission denied"]


def as_nobody(search: Callable[[], Discovery]) -> tuple[list[str], list[str]]:
    """What is found by someone who may not read everything, as root may."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setuid(65534)
            found = search()
            told = [f.filename for f in found.files], [str(problem) for problem in found.problems]
            os.write(writer, repr(told).encode())
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader) as answer:
        files, problems = ast.literal_eval(answer.read())
    return files, problems


def test_odd_names_are_names(tree: Path) -> None:
    odd = ["new\nline.py", "\x1b[31mred.py", "C:drive.py", "spaced name.py", "-dash.py", "\udcff.py"]
    write(tree, *odd)
    assert sorted(names(".")) == sorted(odd)


def test_a_folder_with_its_own_configuration_is_read_by_it(tree: Path) -> None:
    write(tree, "a.py", "sub/a.py", "sub/b.py", "sub/deep/a.py")
    (tree / "sub" / "torchlint.toml").write_text('exclude = ["a.py"]\n')
    outer = Settings(root=str(tree))
    inner = Settings(root=str(tree / "sub"), exclude=("a.py",))
    found = discover(["."], lambda folder: inner if "/sub" in folder else outer)
    assert [(f.filename, f.settings is inner) for f in found.files] == [("a.py", False), ("sub/b.py", True)]
