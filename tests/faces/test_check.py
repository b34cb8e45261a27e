"""``torchlint check`` as it is used: options, exit codes, standard input, fixing, and what is printed where."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from torchlint.cli import main

CLEAN = "import torch\n\nx = torch.zeros(3)\n"
IN_VAIN = "import torch\n\nx = torch.zeros(3)  # noqa: TL401\n"
BROKEN = "import torch\ndef f(:\n"


class Ran(NamedTuple):
    code: int
    out: str
    err: str


Torchlint = Callable[..., Ran]


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    Path("clean.py").write_text(CLEAN)
    Path("vain.py").write_text(IN_VAIN)
    return tmp_path


@pytest.fixture
def torchlint(capfd: pytest.CaptureFixture[str]) -> Torchlint:
    def run(*arguments: str) -> Ran:
        code = main(arguments)
        return Ran(code, *capfd.readouterr())

    return run


def process(arguments: Sequence[str], stdin: bytes = b"", **environment: str) -> Ran:
    """In a process of its own, as bytes go in and out."""
    command = [sys.executable, "-m", "torchlint", *arguments]
    env = {**os.environ, **environment}
    done = subprocess.run(command, input=stdin, capture_output=True, env=env, timeout=120)
    return Ran(done.returncode, done.stdout.decode("utf-8", "surrogateescape"), done.stderr.decode())


# -------------------------------------------------------------------- what is checked, and how it ends


def test_exit_codes_tell_clean_findings_and_failure_apart(torchlint: Torchlint) -> None:
    assert torchlint("clean.py") == (0, "All checks passed! 1 file checked.\n", "")
    assert torchlint("vain.py").code == 1
    assert torchlint("vain.py", "--exit-zero").code == 0
    assert torchlint("--nonsense").code == 2


def test_check_is_the_command_where_none_is_named(torchlint: Torchlint) -> None:
    assert torchlint("vain.py", "-q") == torchlint("check", "vain.py", "-q") == torchlint("-q", "check", "vain.py")


def test_without_paths_the_current_folder_is_checked(torchlint: Torchlint) -> None:
    ran = torchlint("--output-format", "concise")
    assert ran.out.splitlines()[0].startswith("vain.py:3:21: TL002 [*] ")
    assert ran.out.splitlines()[1:] == ["Found 1 finding in 1 file; 2 files checked.", "[*] 1 fixable with `--fix`."]


def test_an_unknown_path_is_told_and_the_others_are_checked(torchlint: Torchlint) -> None:
    ran = torchlint("nowhere.py", "vain.py", "--output-format", "concise")
    assert (ran.code, ran.err) == (2, "torchlint: nowhere.py: no such file or folder\n")
    assert "vain.py:3:21: TL002" in ran.out


def test_a_folder_without_programs_is_told(torchlint: Torchlint) -> None:
    Path("empty").mkdir()
    ran = torchlint("empty")
    assert (ran.code, ran.err) == (0, "torchlint: there are no Python files or notebooks under the given paths\n")


def test_a_syntax_error_is_a_finding_and_the_others_are_checked(torchlint: Torchlint) -> None:
    Path("broken.py").write_text(BROKEN)
    ran = torchlint("--output-format", "concise")
    assert ran.code == 1
    assert [line[:14] for line in ran.out.splitlines()[:2]] == ["broken.py:2:7:", "vain.py:3:21: "]


def test_files_that_would_be_checked_can_be_listed(torchlint: Torchlint) -> None:
    Path("old").mkdir()
    Path("old/a.py").write_text(CLEAN)
    Path("a.pyi").write_text("x: int\n")
    assert torchlint("--show-files", "--exclude", "old").out == "clean.py\nvain.py\n"
    assert torchlint("--show-files", "--extend-exclude", "vain*,clean.py").out == "old/a.py\n"
    assert torchlint("--show-files", "old/a.py", "--exclude", "old").out == "old/a.py\n"
    assert torchlint("--show-files", "old/a.py", "--exclude", "old", "--force-exclude").out == ""


def test_options_select_and_ignore_rules(torchlint: Torchlint) -> None:
    assert torchlint("--select", "TL401,TL001").code == 0
    assert torchlint("--ignore", "unused-suppression").code == 0
    assert torchlint("--select", "TL4", "--extend-select", "TL002").code == 1
    assert torchlint("--per-file-ignores", "vain.py:TL002").code == 0
    assert torchlint("--per-file-ignores", "other.py:TL002").code == 1
    wrong = torchlint("--select", "TL0002")
    assert (wrong.code, wrong.err) == (2, 'torchlint: no rule is called "TL0002"; did you mean "TL002"?\n')


def test_the_projects_configuration_counts_and_its_errors_name_the_line(torchlint: Torchlint) -> None:
    Path("pyproject.toml").write_text('[tool.torchlint]\nignore = ["TL002"]\n')
    assert torchlint().code == 0
    assert torchlint("--isolated").code == 1
    Path("pyproject.toml").write_text('[tool.torchlint]\n\nignore = ["TL020"]\n')
    ran = torchlint()
    assert ran.code == 2
    assert ran.err.startswith('torchlint: pyproject.toml:3: no rule is called "TL020"')
    Path("pyproject.toml").write_text("[tool.torchlint]\nfixx = true\n")
    assert torchlint().err == 'torchlint: pyproject.toml:2: unknown key "fixx"; did you mean "fix"?\n'
    assert torchlint("--config", "select = ['TL4']", "--isolated").code == 0


def test_a_fault_of_torchlint_itself_is_no_finding(torchlint: Torchlint, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object) -> None:
        raise AssertionError("impossible")

    monkeypatch.setattr("torchlint.engine.many.run", broken)
    ran = torchlint("clean.py")
    assert (ran.code, ran.out) == (2, "")
    assert "AssertionError: impossible" in ran.err


def test_nothing_of_the_linted_project_is_imported(torchlint: Torchlint) -> None:
    trap = "raise SystemExit('executed')\n"
    for name in ("setup.py", "conftest.py", "torch.py", "sitecustomize.py", "rich.py", "pathspec.py"):
        Path(name).write_text(trap)
    Path("vain.py").write_text("import setup, conftest\n" + IN_VAIN)
    ran = process(["--no-cache", "."], PYTHONPATH="", PYTHONSAFEPATH="1")
    assert (ran.code, ran.err) == (1, "")
    assert "TL002" in ran.out


# -------------------------------------------------------------------- standard input


def test_standard_input_is_checked_under_the_name_it_is_given() -> None:
    ran = process(["-", "--output-format", "concise", "--stdin-filename", "sub/new.py"], IN_VAIN.encode())
    assert ran.code == 1
    assert ran.out.startswith("sub/new.py:3:21: TL002")
    assert process(["-", "-q"], IN_VAIN.encode()).out.splitlines()[1] == " --> -:3:21"
    assert json.loads(process(["-", "--output-format", "json"], IN_VAIN.encode()).out)[0]["filename"] == "-"
    assert process(["-"], b"\xff\xfe torch").code == 1
    assert process(["-", "clean.py"], b"").code == 2


def test_standard_input_is_fixed_onto_standard_output_byte_for_byte() -> None:
    text = b"\xef\xbb\xbfimport torch\r\nx = torch.zeros(3)  # noqa: TL401\r\ny = '\xc3\xa9'\r\n"
    ran = process(["-", "--fix"], text)
    assert ran.code == 0
    assert ran.out.encode() == text.replace(b"  # noqa: TL401", b"")
    assert "1 fixed" in ran.err
    clean = process(["-", "--fix", "--stdin-filename", "a.py"], CLEAN.encode())
    assert clean.out == CLEAN


def test_an_excluded_buffer_is_left_alone_with_force_exclude() -> None:
    arguments = ["-", "--stdin-filename", "vain.py", "--exclude", "vain.py"]
    assert process(arguments, IN_VAIN.encode()).code == 1
    assert process([*arguments, "--force-exclude"], IN_VAIN.encode()).code == 0


# -------------------------------------------------------------------- fixing


def test_fix_repairs_tells_what_it_did_and_leaves_nothing(torchlint: Torchlint) -> None:
    ran = torchlint("--fix")
    assert ran.code == 0
    assert Path("vain.py").read_text() == IN_VAIN.replace("  # noqa: TL401", "")
    assert ran.out.splitlines()[-2:] == [
        "fixed vain.py:3 TL002 x = torch.zeros(3)  # noqa: TL401 -> x = torch.zeros(3)",
        "1 fixed",
    ]


def test_fix_reports_what_remains(torchlint: Torchlint) -> None:
    Path("broken.py").write_text(BROKEN)
    ran = torchlint("--fix", "--output-format", "concise")
    assert ran.code == 1
    assert ran.out.splitlines()[0].startswith("broken.py:2:7: TL001")
    assert ran.out.splitlines()[-1] == "1 fixed, 1 remains"
    assert torchlint("--fix-only").code == 0


def test_a_fix_can_be_made_to_fail_the_run(torchlint: Torchlint) -> None:
    assert torchlint("--fix", "--exit-non-zero-on-fix").code == 1
    assert torchlint("--fix", "--exit-non-zero-on-fix").code == 0


def test_diff_shows_and_changes_nothing(torchlint: Torchlint) -> None:
    ran = torchlint("--diff")
    assert ran.code == 1
    assert "-x = torch.zeros(3)  # noqa: TL401\n+x = torch.zeros(3)\n" in ran.out
    assert Path("vain.py").read_text() == IN_VAIN
    assert torchlint("--diff", "clean.py") == (0, "", "")


def test_rules_that_may_not_be_fixed_are_not(torchlint: Torchlint) -> None:
    assert torchlint("--fix", "--unfixable", "TL002").code == 1
    assert Path("vain.py").read_text() == IN_VAIN


def test_the_configuration_may_ask_for_fixing_and_the_command_line_refuse(torchlint: Torchlint) -> None:
    Path("torchlint.toml").write_text("fix = true\n")
    assert torchlint("--no-fix").code == 1
    assert torchlint().code == 0


def test_a_file_that_cannot_be_written_is_told_and_kept(torchlint: Torchlint) -> None:
    Path("vain.py").chmod(0o444)
    ran = torchlint("--fix")
    assert ran.code == 2
    assert "torchlint: vain.py: not fixed: the file is read-only" in ran.err
    assert Path("vain.py").read_text() == IN_VAIN


def test_formats_for_programs_stay_pure_when_fixing(torchlint: Torchlint) -> None:
    ran = torchlint("--fix", "--show-fixes", "--output-format", "json")
    assert json.loads(ran.out) == []
    assert ran.err.startswith("fixed vain.py:3 TL002")


def test_add_noqa_suppresses_what_is_found(torchlint: Torchlint) -> None:
    Path("torchlint.toml").write_text('plugins = ["mychecks"]\n')
    Path("mychecks.py").write_text(
        "from torchlint.check import Check, FunctionInfo, Severity, on\n"
        "class Named(Check):\n"
        '    """Reports."""\n'
        "    code, name, severity = 'TL990', 'named', Severity.ERROR\n"
        "    @on(FunctionInfo)\n"
        "    def check(self, function, report):\n"
        "        report(function.node, 'a function')\n"
    )
    Path("vain.py").write_bytes(b"import torch\r\ndef f(): pass\r\ndef g(): pass  # why\r\n")
    assert torchlint("vain.py").code == 1
    assert torchlint("vain.py", "--add-noqa").out == "Added 2 noqa comments.\n"
    assert torchlint("vain.py").code == 0
    assert Path("vain.py").read_bytes().startswith(b"import torch\r\ndef f(): pass  # noqa: TL990\r\n")
    Path("vain.py").write_text(BROKEN)
    assert torchlint("vain.py", "--add-noqa").out == "Added 0 noqa comments.\n"
    assert Path("vain.py").read_text() == BROKEN


def test_a_baseline_keeps_known_findings_quiet_and_new_ones_loud(torchlint: Torchlint) -> None:
    ran = torchlint("--write-baseline", "known.json")
    assert (ran.code, ran.out) == (0, "Wrote 1 known finding to known.json.\n")
    assert torchlint("--baseline", "known.json").code == 0
    Path("vain.py").write_text("\n\n" + IN_VAIN + "y = torch.ones(2)  # noqa: TL401\n")
    assert torchlint("--baseline", "known.json", "--output-format", "concise").out.startswith("vain.py:6:20: TL002")
    Path("torchlint.toml").write_text('baseline = "known.json"\n')
    assert torchlint().out.splitlines()[-2] == "Found 1 finding in 1 file; 2 files checked."
    wrong = torchlint("--baseline", "gone.json")
    assert (wrong.code, "gone.json" in wrong.err) == (2, True)


def test_watching_reports_again_after_a_change() -> None:
    command = [sys.executable, "-u", "-m", "torchlint", "--watch", "--output-format", "concise"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        try:
            assert watching.stdout.readline().startswith("vain.py:3:21: TL002")
            Path("vain.py").write_text(CLEAN)
            lines = [watching.stdout.readline() for _ in range(4)]
        finally:
            watching.send_signal(signal.SIGINT)
    assert lines[2:] == ["changed: vain.py\n", "All checks passed! 2 files checked.\n"]
    assert watching.returncode == 0


# -------------------------------------------------------------------- the report


def test_the_report_goes_to_a_file_if_wanted(torchlint: Torchlint) -> None:
    ran = torchlint("--output-format", "json", "--output-file", "report.json")
    assert (ran.code, ran.out) == (1, "")
    (row,) = json.loads(Path("report.json").read_text())
    assert (row["code"], row["filename"]) == ("TL002", str(Path("vain.py").absolute()))
    wrong = torchlint("-o", "no/such/folder.txt")
    assert (wrong.code, wrong.err.startswith("torchlint: --output-file: ")) == (2, True)


def test_statistics_stand_in_for_the_findings(torchlint: Torchlint) -> None:
    ran = torchlint("--statistics")
    assert ran.code == 1
    assert ran.out.splitlines()[0] == "1  TL002  [*]  unused-suppression"
    assert json.loads(torchlint("--statistics", "--output-format", "json").out)[0]["count"] == 1


def test_quiet_prints_findings_and_nothing_else(torchlint: Torchlint) -> None:
    assert torchlint("-q", "clean.py") == (0, "", "")
    assert "Found" not in torchlint("-q").out


def test_findings_in_a_notebook_are_told_by_cell(torchlint: Torchlint) -> None:
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": "# noqa: TL401"},
        {
            "cell_type": "code",
            "metadata": {},
            "outputs": [],
            "execution_count": None,
            "source": ["%time\n", "import torch"],
        },
        {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": "x = 1  # noqa: TL401"},
    ]
    Path("book.ipynb").write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    ran = torchlint("book.ipynb")
    assert ran.out.splitlines()[1:5] == [
        " --> book.ipynb:cell 3:1:8",
        "  |",
        "1 | x = 1  # noqa: TL401",
        "  |        ^^^^^^^^^^^^^",
    ]
    (row,) = json.loads(torchlint("book.ipynb", "--output-format", "json").out)
    assert (row["cell"], row["location"]) == (3, {"column": 8, "row": 1})


def in_terminal(arguments: Sequence[str], **environment: str) -> str:
    """What a terminal gets to see."""
    parent, child = pty.openpty()
    env = {**os.environ, "TERM": "xterm", **environment}
    command = [sys.executable, *arguments] if "-c" in arguments else [sys.executable, "-m", "torchlint", *arguments]
    with subprocess.Popen(command, stdout=child, stderr=child, env=env) as running:
        os.close(child)
        seen = b""
        while True:
            try:
                piece = os.read(parent, 65536)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            seen += piece
        running.wait()
    os.close(parent)
    return seen.decode()


def test_colour_is_for_terminals_and_for_who_asks() -> None:
    assert "\x1b[" in in_terminal(["vain.py"], NO_COLOR="")
    assert "\x1b" not in in_terminal(["vain.py"], NO_COLOR="1")
    assert "\x1b" not in in_terminal(["vain.py", "--color", "never"], NO_COLOR="")
    assert "\x1b" not in in_terminal(["vain.py"], NO_COLOR="", TERM="dumb")
    assert "\x1b" not in process(["vain.py"]).out
    assert "\x1b[" in process(["vain.py"], FORCE_COLOR="1", NO_COLOR="").out
    assert "\x1b[" in process(["vain.py", "--color", "always"]).out


def test_a_long_run_shows_its_progress_on_a_terminal_only() -> None:
    impatient = "import torchlint.cli.progress as p; p._PATIENCE = 0; from torchlint.cli import main; main(['-n', '.'])"
    assert "checking" in in_terminal(["-c", impatient])
    run = subprocess.run([sys.executable, "-c", impatient], capture_output=True, text=True, timeout=120)
    assert run.stderr == ""


def test_nothing_in_a_file_reaches_the_terminal() -> None:
    name = "a\x1b[2J\n.py"
    Path(name).write_text("import torch\nx = '\x1b]0;owned\x07\x9b2J\u202e'  # noqa: TL401\n")
    for arguments in (["."], [".", "--diff"], ["--show-files"], [".", "--fix"]):
        seen = in_terminal([*arguments, "--color", "never", "--no-cache", "--quiet"])  # quiet: no progress bar
        assert not set(seen) & set("\x1b\x07\x9b\u202e"), arguments


def test_a_locale_that_lacks_a_character_gets_an_escape() -> None:
    Path("vain.py").write_text("import torch\nx = 'ä→'  # noqa: TL401\n")
    ran = process(["vain.py"], PYTHONIOENCODING="ascii", PYTHONUTF8="0", LC_ALL="C")
    assert (ran.code, ran.err) == (1, "")
    assert r"x = '\xe4\u2192'" in ran.out


def test_a_reader_that_goes_away_is_no_error() -> None:
    for number in range(300):
        Path(f"vain{number}.py").write_text(IN_VAIN * 10)
    command = f"{sys.executable} -m torchlint --no-cache . | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=120)
    assert done.stderr == ""


# -------------------------------------------------------------------- the other commands


def test_versions_agree() -> None:
    import importlib.metadata

    from torchlint import __version__

    assert process(["--version"]).out == f"torchlint {__version__}\n"
    assert importlib.metadata.version("torchlint") == __version__


def test_help_names_every_command_and_option(torchlint: Torchlint) -> None:
    from torchlint.cli import COMMANDS

    overview = torchlint("--help").out
    assert all(f"  {command} " in overview for command in COMMANDS)
    assert "--select RULES" in torchlint("check", "--help").out


def test_a_rules_page_is_printed_by_code_and_by_name(torchlint: Torchlint) -> None:
    page = torchlint("rule", "TL002")
    assert page.out.startswith("# TL002 unused-suppression\n\nwarning, safe fix\n\nA noqa comment names a rule")
    assert torchlint("rule", "unused-suppression") == page
    row = json.loads(torchlint("rule", "TL002", "--output-format", "json").out)
    assert (row["code"], row["severity"], row["fix"]) == ("TL002", "warning", "safe")
    assert {row["code"] for row in json.loads(torchlint("rule", "--all", "--output-format", "json").out)} >= {"TL001"}
    wrong = torchlint("rule", "unused-supression")
    assert (wrong.code, wrong.err) == (
        2,
        'torchlint: there is no rule "unused-supression"; did you mean "unused-suppression"?\n',
    )


def test_config_explains_keys_and_shows_settings(torchlint: Torchlint) -> None:
    assert "per-file-ignores" in torchlint("config").out
    assert 'example: target-torch = "2.6"' in torchlint("config", "target-torch").out
    assert torchlint("config", "selct").code == 2
    Path("torchlint.toml").write_text('select = ["TL1"]\n')
    shown = json.loads(torchlint("config", "--show", "clean.py").out)
    assert shown["selection"][0]["select"] == ["TL1"]
    assert shown["config_file"] == str(Path("torchlint.toml").absolute())


def test_clean_deletes_caches_and_nothing_else(torchlint: Torchlint) -> None:
    torchlint()
    assert Path(".torchlint_cache").is_dir()
    Path("precious/.torchlint_cache").mkdir(parents=True)
    Path("precious/.torchlint_cache/notes.txt").write_text("mine")
    Path("torchlint.toml").write_text('cache-dir = "precious"\n')
    ran = torchlint("clean")
    assert ran.code == 0
    assert not Path(".torchlint_cache").exists()
    assert Path("precious/.torchlint_cache/notes.txt").exists()
