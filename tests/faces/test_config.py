"""Where settings come from, what overrides what, and what a wrong configuration is told."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from torchlint.config import (
    DEFAULT_EXCLUDE,
    OPTIONS,
    ConfigError,
    Configuration,
    RuleSelection,
    find_config,
    line_of,
    load_settings,
)


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "src" / "deep").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def error_of(text: str, name: str = "pyproject.toml") -> str:
    Path(name).write_text(text)
    with pytest.raises(ConfigError) as error:
        load_settings()
    return str(error.value)


def test_without_a_file_everything_has_a_default(project: Path) -> None:
    settings = load_settings()
    assert settings.root == str(project)
    assert settings.config_file is None
    assert settings.selection == ()
    assert settings.exclude == DEFAULT_EXCLUDE
    assert settings.src == (str(project), str(project / "src"))


def test_every_key_is_read(project: Path) -> None:
    (project / "pyproject.toml").write_text("""
[project]
name = "x"

[tool.torchlint]
select = ["TL1", "missing-eval"]
ignore = ["TL103"]
extend-select = ["TL5"]
extend-ignore = ["TL504"]
per-file-ignores = { "tests/*" = ["TL4"] }
extend-per-file-ignores = { "a.py" = ["ALL"] }
fixable = ["TL1"]
unfixable = ["TL101"]
exclude = ["old"]
extend-exclude = ["gen/*.py"]
force-exclude = true
respect-gitignore = false
target-torch = "2.6"
src = ["lib"]
plugins = ["my.checks"]
cache-dir = "cache"
baseline = "known.json"
output-format = "concise"
fix = true
fix-only = true
unsafe-fixes = true
show-fixes = true

[tool.torchlint.probe.lenet]
input = "1x28x28"
""")
    settings = load_settings("src/deep")
    (selection,) = settings.selection
    assert selection == RuleSelection(("TL1", "missing-eval"), ("TL103",), ("TL5",), ("TL504",))
    assert settings.per_file_ignores == (("tests/*", ("TL4",)), ("a.py", ("ALL",)))
    assert (settings.fixable, settings.unfixable) == (("TL1",), ("TL101",))
    assert (settings.exclude, settings.extend_exclude) == (("old",), ("gen/*.py",))
    assert (settings.force_exclude, settings.respect_gitignore) == (True, False)
    assert settings.target_torch == (2, 6)
    assert settings.src == (str(project / "lib"),)
    assert settings.plugins == ("my.checks",)
    assert settings.cache_dir == str(project / "cache")
    assert settings.baseline == str(project / "known.json")
    assert settings.output_format == "concise"
    assert settings.fix and settings.fix_only and settings.unsafe_fixes and settings.show_fixes
    assert settings.probe == {"lenet": {"input": "1x28x28"}}
    assert settings.config_file == str(project / "pyproject.toml")
    # Every documented key stands in this test's file.
    text = (project / "pyproject.toml").read_text()
    assert [option.key for option in OPTIONS if f"{option.key} =" not in text and option.key != "probe"] == []


def test_settings_are_values_that_can_be_sent_to_another_process() -> None:
    Path("torchlint.toml").write_text('select = ["TL1"]\n[probe.a]\nx = [1]\n')
    settings = load_settings()
    assert pickle.loads(pickle.dumps(settings)) == settings
    assert hash(settings) == hash(load_settings())


def test_the_nearest_file_counts_and_a_pyproject_without_the_table_is_passed_by(project: Path) -> None:
    (project / "torchlint.toml").write_text("fix = true\n")
    (project / "src/pyproject.toml").write_text('[project]\nname = "torchlint-user"\n')
    assert find_config("src/deep/net.py") == project / "torchlint.toml"
    (project / "src/pyproject.toml").write_text("[tool.torchlint]\n")
    assert find_config("src/deep/net.py") == project / "src/pyproject.toml"
    (project / "src/torchlint.toml").write_text("")
    assert find_config("src/deep") == project / "src/torchlint.toml"
    (project / "src/.torchlint.toml").write_text("")
    assert find_config("src") == project / "src/.torchlint.toml"


def test_a_run_over_several_projects_gives_each_file_its_own_settings(project: Path) -> None:
    (project / "torchlint.toml").write_text('ignore = ["TL1"]\n')
    (project / "src/torchlint.toml").write_text('ignore = ["TL4"]\n')
    configuration = Configuration({"select": ["TL"]})
    outer, inner = configuration.settings_for("a.py"), configuration.settings_for("src/deep/b.py")
    assert [source.ignore for source in outer.selection] == [("TL1",), ()]
    assert [source.ignore for source in inner.selection] == [("TL4",), ()]
    assert configuration.settings_for("src/c.py") is inner
    assert Configuration(isolated=True).settings_for("src/c.py").config_file is None
    assert Configuration(config=["torchlint.toml"]).settings_for("src/c.py").root == str(project)


def test_what_the_command_line_says_comes_on_top_and_is_relative_to_the_current_folder(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "torchlint.toml").write_text('extend-exclude = ["a/b"]\ntarget-torch = "2.4"\n')
    monkeypatch.chdir(project / "src")
    settings = load_settings(
        "deep",
        {"extend_exclude": ["x/y", "z"], "target-torch": "2.7.1", "cache_dir": "c", "fix": None, "select": ["TL1"]},
    )
    assert settings.extend_exclude == ("a/b", str(project / "src/x/y"), "z")
    assert settings.target_torch == (2, 7)
    assert settings.cache_dir == str(project / "src/c")
    assert settings.fix is False
    assert settings.selection == (RuleSelection(select=("TL1",)),)


def test_config_takes_a_file_or_lines_of_toml(project: Path) -> None:
    (project / "torchlint.toml").write_text("fix = true\n")
    (project / "src/other.toml").write_text('select = ["TL2"]\n')
    settings = load_settings(config=["src/other.toml", "output-format = 'json'"])
    assert (settings.fix, settings.output_format, settings.root) == (False, "json", str(project / "src"))
    assert load_settings(config=["unsafe-fixes = true"]).fix is True
    assert load_settings(isolated=True).fix is False
    for wrong, message in [
        ("nowhere.toml", "no such configuration file: nowhere.toml"),
        ("selct = ['TL1']", 'unknown key "selct"'),
        ("select = ", "not valid TOML"),
    ]:
        with pytest.raises(ConfigError, match=message):
            load_settings(config=[wrong])
    (project / "pyproject.toml").write_text("[project]\n")
    with pytest.raises(ConfigError, match=r"no \[tool.torchlint\] table"):
        load_settings(config=["pyproject.toml"])


def test_every_unknown_key_is_named_with_its_line_and_the_nearest_known_one() -> None:
    assert error_of("""
[tool.torchlint]
selct = ["TL1"]
per_file_ignores = {}
[tool.torchlint.frobnicate]
x = 1
""").splitlines() == [
        'pyproject.toml:3: unknown key "selct"; did you mean "select"?',
        'pyproject.toml:4: unknown key "per_file_ignores"; did you mean "per-file-ignores"?',
        'pyproject.toml:5: unknown key "frobnicate"; `torchlint config` lists the keys',
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("fix = 1", '"fix" takes true or false, not an integer'),
        ('select = "TL1"', '"select" takes a list of strings, not a string'),
        ("ignore = ['TL1', 3]", '"ignore" takes a list of strings; 3 is an integer'),
        ("target-torch = 2.6", '"target-torch" takes a version such as "2.6", not a float'),
        ("target-torch = 'two'", '"target-torch" takes a version such as "2.6", not "two"'),
        ("cache-dir = ['x']", '"cache-dir" takes a string, not a list'),
        ("cache-dir = ''", '"cache-dir" takes a string, not an empty one'),
        ("per-file-ignores = ['x']", '"per-file-ignores" is a table, not a list'),
        ("per-file-ignores = { 'x' = 'TL1' }", '"per-file-ignores.x" takes a list of strings, not a string'),
        ("output-format = 'xml'", '"output-format" is one of full, concise, '),
        ("probe = 3", '"probe" is a table, not an integer'),
    ],
)
def test_a_value_of_the_wrong_type_is_named_with_its_line(line: str, message: str) -> None:
    assert error_of(f"# first\n\n{line}\n", "torchlint.toml").startswith(f"torchlint.toml:3: {message}")


def test_broken_files_are_named() -> None:
    assert error_of("a = 1\nfix = = 2\n", "torchlint.toml").startswith("torchlint.toml:2: not valid TOML: ")
    Path("torchlint.toml").write_bytes(b"# \xff\n")
    with pytest.raises(ConfigError, match=r"^torchlint.toml: not UTF-8"):
        load_settings()
    Path("torchlint.toml").unlink()
    assert error_of("[tool]\ntorchlint = 3\n") == "pyproject.toml:2: tool.torchlint is a table, not an integer"


@pytest.mark.parametrize(
    ("text", "path", "value", "line"),
    [
        ('a = """\nb = 1\n"""\nb = 2\n', ("b",), None, 4),
        ("[t]\nx = [\n  'p',\n  'q',\n]\n", ("t", "x"), None, 2),
        ("[t]\nx = [\n  'p',\n  'q',\n]\n", ("t", "x"), "q", 4),
        ("[t.'a.b'.c]\nd = 1\n", ("t", "a.b", "c", "d"), None, 2),
        ("t.a.b = 1\n", ("t", "a"), None, 1),
        ("# a = 1\n\n[t] # a\n'a' = { b = 1 }\n", ("t", "a", "b"), None, 4),
        ("a = 1\n", ("b",), None, 0),
    ],
)
def test_the_line_of_a_key_is_where_toml_says_it_is(text: str, path: Any, value: str | None, line: int) -> None:
    assert line_of(text, path, value) == line
