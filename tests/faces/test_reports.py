"""What each output format prints, and that nothing it prints can be obeyed by a terminal or a CI server."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from torchlint.finding import Applicability, Edit, Finding, Fix, Position, RuleInfo, Severity
from torchlint.reports import FORMATS, ReportContext, render
from torchlint.reports import statistics as statistics_report
from torchlint.reports.fingerprints import fingerprints

SOURCE = {
    ("src/net.py", None): ["import torch.nn as nn", "", "class Net(nn.Module):", "\tdef __init__(self):", "\t\tpass"],
    ("a.ipynb", 3): ["model(x)", "y = 模型(x).view(2, -1)"],
}

MISSING = Finding(
    code="TL101",
    name="missing-super-init",
    message="`Net.__init__` never calls `super().__init__()`",
    severity=Severity.ERROR,
    filename="src/net.py",
    location=Position(4, 2),
    end_location=Position(4, 5),
    help="call `super().__init__()` first",
    fix=Fix("insert the call", Applicability.SAFE, (Edit(Position(5, 1), Position(5, 1), "\t\tsuper().__init__()\n"),)),
)
IN_NOTEBOOK = Finding(
    code="TL305",
    name="view-after-transpose",
    message="100% wrong, view: needs contiguous",
    severity=Severity.WARNING,
    filename="a.ipynb",
    location=Position(2, 5),
    end_location=Position(2, 10),
    cell=3,
    fix=Fix("use reshape", Applicability.UNSAFE, (Edit(Position(2, 11), Position(2, 15), "reshape"),)),
)
BOTH = (IN_NOTEBOOK, MISSING)


def line_of(filename: str, cell: int | None, row: int) -> str | None:
    lines = SOURCE.get((filename, cell), [])
    return lines[row - 1] if row <= len(lines) else None


CONTEXT = ReportContext(
    line_of=line_of,
    files_checked=7,
    rules=[RuleInfo("TL101", "missing-super-init", Severity.ERROR, Applicability.SAFE, "The summary.", "The page.")],
)


def test_full_quotes_the_source_with_carets_and_closes_with_the_counts() -> None:
    assert render("full", BOTH, CONTEXT) == (
        "TL305 100% wrong, view: needs contiguous\n"
        " --> a.ipynb:cell 3:2:5\n"
        "  |\n"
        "1 | model(x)\n"
        "2 | y = 模型(x).view(2, -1)\n"
        "  |     ^^^^^^^\n"  # the two wide characters take two columns each
        "  |\n"
        "unsafe fix: use reshape\n"
        "\n"
        "TL101 [*] `Net.__init__` never calls `super().__init__()`\n"
        " --> src/net.py:4:2\n"
        "  |\n"
        "3 | class Net(nn.Module):\n"
        "4 |     def __init__(self):\n"
        "  |     ^^^\n"
        "5 |         pass\n"
        "  |\n"
        "help: call `super().__init__()` first\n"
        "fix: insert the call\n"
        "\n"
        "Found 2 findings in 2 files; 7 files checked.\n"
        "[*] 1 fixable with `--fix`, 1 more with `--unsafe-fixes`.\n"
    )


def test_full_names_the_failure_that_the_finding_prevents() -> None:
    text = render("full", [replace(MISSING, failure="T-D1")], CONTEXT)
    line = next(line for line in text.splitlines() if line.startswith("prevents: "))
    assert line.endswith("(T-D1)")
    assert "__init__" in line


def test_full_shows_advice_of_several_lines() -> None:
    finding = replace(MISSING, help="write\nsuper().__init__()")
    assert "help: write\n  super().__init__()\nfix: insert" in render("full", [finding], CONTEXT)


def test_full_shows_a_window_of_a_line_of_a_megabyte() -> None:
    context = replace(CONTEXT, line_of=lambda filename, cell, row: "x" * 500_000 + "HERE" + "y" * 500_000)
    finding = replace(MISSING, location=Position(1, 500_001), end_location=Position(1, 500_005))
    lines = render("full", [finding], context).splitlines()
    assert max(map(len, lines)) < 200
    quoted, carets = lines[3], lines[4]
    assert quoted[carets.index("^") : carets.rindex("^") + 1] == "HERE"


def test_full_underlines_a_finding_over_several_lines_up_to_the_end_of_the_first() -> None:
    finding = replace(MISSING, location=Position(3, 1), end_location=Position(5, 7))
    assert "  | ^^^^^^^^^^^^^^^^^^^^^\n" in render("full", [finding], CONTEXT)


def test_full_points_behind_the_end_of_a_line() -> None:
    finding = replace(MISSING, location=Position(1, 22), end_location=Position(1, 22))
    assert "1 | import torch.nn as nn\n  |                      ^\n" in render("full", [finding], CONTEXT)


def test_full_without_a_source_line_still_reports() -> None:
    finding = replace(MISSING, filename="gone.py")
    assert " --> gone.py:4:2\nhelp: call" in render("full", [finding], CONTEXT)


def test_concise_is_one_line_a_finding() -> None:
    assert render("concise", BOTH, CONTEXT).splitlines()[:2] == [
        "a.ipynb:cell 3:2:5: TL305 100% wrong, view: needs contiguous",
        "src/net.py:4:2: TL101 [*] `Net.__init__` never calls `super().__init__()`",
    ]


def test_grouped_puts_findings_under_their_file() -> None:
    later = replace(MISSING, location=Position(14, 2))
    assert render("grouped", [MISSING, later], CONTEXT).splitlines()[:3] == [
        "src/net.py:",
        "  4:2  TL101 [*] `Net.__init__` never calls `super().__init__()`",
        "  14:2 TL101 [*] `Net.__init__` never calls `super().__init__()`",
    ]


@pytest.mark.parametrize("output_format", ["full", "concise", "grouped"])
def test_formats_for_people_say_so_when_nothing_was_found(output_format: str) -> None:
    assert render(output_format, [], CONTEXT) == "All checks passed! 7 files checked.\n"


def test_json_rows_have_the_fields_of_ruff(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    notebook, plain = json.loads(render("json", BOTH, CONTEXT))
    assert plain == {
        "cell": None,
        "code": "TL101",
        "end_location": {"column": 5, "row": 4},
        "failure": None,
        "filename": str(tmp_path / "src/net.py"),
        "fix": {
            "applicability": "safe",
            "edits": [
                {
                    "content": "\t\tsuper().__init__()\n",
                    "end_location": {"column": 1, "row": 5},
                    "location": {"column": 1, "row": 5},
                }
            ],
            "message": "insert the call",
        },
        "help": "call `super().__init__()` first",
        "location": {"column": 2, "row": 4},
        "message": "`Net.__init__` never calls `super().__init__()`",
        "name": "missing-super-init",
        "noqa_row": 4,
        "severity": "error",
        "url": None,
    }
    assert (notebook["cell"], notebook["fix"]["applicability"], notebook["severity"]) == (3, "unsafe", "warning")


def test_json_lines_hold_the_same_rows() -> None:
    lines = render("json-lines", BOTH, CONTEXT).splitlines()
    assert [json.loads(line) for line in lines] == json.loads(render("json", BOTH, CONTEXT))
    assert render("json-lines", [], CONTEXT) == ""


def test_github_commands_carry_place_and_escaped_text() -> None:
    notebook, plain = render("github", BOTH, CONTEXT).splitlines()
    assert plain == (
        "::error title=torchlint (TL101),file=src/net.py,line=4,col=2,endLine=4,endColumn=5::src/net.py:4:2: TL101 "
        "`Net.__init__` never calls `super().__init__()`%0A  help: call `super().__init__()` first"
    )
    assert notebook.startswith(
        "::warning title=torchlint (TL305),file=a.ipynb,line=1::a.ipynb:cell 3:2:5: TL305 100%25"
    )
    odd = render("github", [replace(MISSING, filename="a,b:c.py")], CONTEXT)
    assert "file=a%2Cb%3Ac.py,line=4" in odd


def test_azure_commands_know_errors_and_warnings() -> None:
    info = replace(MISSING, severity=Severity.INFO, filename="a;b].py")
    assert render("azure", [MISSING, info], CONTEXT).splitlines() == [
        "##vso[task.logissue type=error;sourcepath=src/net.py;linenumber=4;columnnumber=2;code=TL101;]"
        "`Net.__init__` never calls `super().__init__()`",
        "##vso[task.logissue type=warning;sourcepath=a%3Bb%5D.py;linenumber=4;columnnumber=2;code=TL101;]"
        "`Net.__init__` never calls `super().__init__()`",
    ]


def test_pylint_lines_are_path_row_code_message() -> None:
    assert render("pylint", [MISSING], CONTEXT) == (
        "src/net.py:4: [TL101] `Net.__init__` never calls `super().__init__()`\n"
    )


def test_gitlab_reports_paths_from_the_project_and_stable_fingerprints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    monkeypatch.setenv("CI_PROJECT_DIR", str(tmp_path))
    notebook, plain = json.loads(render("gitlab", BOTH, CONTEXT))
    assert plain["location"] == {
        "path": "sub/src/net.py",
        "positions": {"begin": {"line": 4, "column": 2}, "end": {"line": 4, "column": 5}},
    }
    assert (plain["check_name"], plain["severity"], notebook["severity"]) == ("TL101", "major", "minor")
    assert render("gitlab", [], CONTEXT) == "[]\n"


def test_fingerprints_survive_moved_lines_and_differ_between_findings() -> None:
    moved = replace(MISSING, location=Position(40, 2), end_location=Position(40, 5))
    assert fingerprints([MISSING]) == fingerprints([moved])
    assert len(set(fingerprints([MISSING, moved, IN_NOTEBOOK]))) == 3


def test_sarif_follows_the_schema(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    monkeypatch.chdir(tmp_path)
    schema = json.loads((Path(__file__).parent / "sarif_emitted.schema.json").read_text())
    outside = replace(MISSING, filename="/elsewhere/ä b.py", failure="T-D1")
    log = json.loads(render("sarif", [*BOTH, outside], CONTEXT))
    jsonschema.validate(log, schema)
    jsonschema.validate(json.loads(render("sarif", [], CONTEXT)), schema)
    (run,) = log["runs"]
    notebook, plain, elsewhere = run["results"]
    rules = run["tool"]["driver"]["rules"]
    assert [rules[result["ruleIndex"]]["id"] for result in run["results"]] == ["TL305", "TL101", "TL101"]
    assert rules[0]["help"]["markdown"] == "The page."
    assert plain["locations"][0]["physicalLocation"]["artifactLocation"] == {
        "uri": "src/net.py",
        "uriBaseId": "SRCROOT",
    }
    assert elsewhere["locations"][0]["physicalLocation"]["artifactLocation"] == {
        "uri": "file:///elsewhere/%C3%A4%20b.py"
    }
    assert (notebook["level"], notebook["properties"]) == ("warning", {"cell": 3})
    assert plain["fixes"][0]["artifactChanges"][0]["replacements"][0]["insertedContent"]["text"].endswith("()\n")


def test_junit_is_read_by_a_junit_parser(tmp_path: Path) -> None:
    junitparser = pytest.importorskip("junitparser")
    file = tmp_path / "report.xml"
    bell = replace(MISSING, message="ring \x07 & <tag> \ud800", filename="src/\x1b.py")
    file.write_text(render("junit", [*BOTH, bell], CONTEXT), encoding="utf-8")
    suites = list(junitparser.JUnitXml.fromfile(str(file)))
    assert [suite.name for suite in suites] == ["a.ipynb", "src/net.py", "src/␛.py"]
    assert [(suite.tests, suite.failures) for suite in suites] == [(1, 1)] * 3
    (case,) = suites[2]
    assert (case.name, case.classname) == ("TL101 missing-super-init", "src/␛")
    assert case.result[0].message == "ring ␇ & <tag> \ufffd"
    file.write_text(render("junit", [], CONTEXT))
    (suite,) = junitparser.JUnitXml.fromfile(str(file))
    assert (suite.tests, suite.failures) == (1, 0)


def test_rdjson_offers_fixes_as_suggestions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = json.loads(render("rdjson", BOTH, CONTEXT))
    plain = result["diagnostics"][1]
    assert result["source"] == {"name": "torchlint"}
    assert plain["location"]["path"] == "src/net.py"
    assert plain["location"]["range"] == {"end": {"column": 5, "line": 4}, "start": {"column": 2, "line": 4}}
    assert (plain["severity"], plain["suggestions"][0]["text"]) == ("ERROR", "\t\tsuper().__init__()\n")


HOSTILE = "\x1b[2J\x9b2J\x07\r\n::error::x\u202e\u2066\x7f\udcff"


@pytest.mark.parametrize("output_format", FORMATS)
def test_control_characters_never_come_out(output_format: str) -> None:
    finding = replace(MISSING, message=HOSTILE, filename=f"{HOSTILE}.py", help=HOSTILE, name="x")
    context = replace(CONTEXT, line_of=lambda filename, cell, row: HOSTILE)
    text = render(output_format, [finding], context)
    assert not set(text) & set("\x1b\x9b\x07\r\u202e\u2066\x7f\udcff")
    assert not any(line.startswith("::error::x") for line in text.splitlines())


def test_colour_goes_on_and_off() -> None:
    colored = render("full", BOTH, replace(CONTEXT, color=True))
    assert "\x1b[1;31mTL101\x1b[0m" in colored
    assert "\x1b" not in render("full", BOTH, CONTEXT)
    assert re.sub(r"\x1b\[[\d;]*m", "", colored) == render("full", BOTH, CONTEXT)


def test_statistics_count_rules_most_frequent_first() -> None:
    unfixable = replace(MISSING, fix=None)
    findings = [IN_NOTEBOOK, MISSING, unfixable]
    assert statistics_report.render(findings, CONTEXT).splitlines()[:2] == [
        "2  TL101  [-]  missing-super-init",
        "1  TL305  [ ]  view-after-transpose",
    ]
    rows: list[dict[str, Any]] = json.loads(statistics_report.render([MISSING, MISSING], CONTEXT, as_json=True))
    assert rows == [{"code": "TL101", "name": "missing-super-init", "count": 2, "fixable": True, "fixable_count": 2}]
