"""``torchlint merge``: the parts of a sharded run become the report of a whole one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from torchlint.cli import main
from torchlint.config import Settings
from torchlint.engine.many import RunOptions, run
from torchlint.engine.shard import Shard
from torchlint.reports import ReportContext, render

Write = Callable[..., None]


@pytest.fixture
def reports(settings: Settings, write: Write, project: Path) -> Callable[[str], tuple[str, list[str]]]:
    """The report of a whole run, and the files with those of its three shards."""
    net = "from torch import nn\n\n\nclass A{n}(nn.Module):\n    x = 1\n\n\nclass B(A{n}):\n    y = 1\n"
    write({f"pkg/mü {n}.py": net.format(n=n) for n in range(9)} | {"broken.py": "import torch\nx = (\n"})

    def make(output_format: str) -> tuple[str, list[str]]:
        texts = [
            render(
                output_format,
                run(["."], lambda path: settings, RunOptions(cache=False, shard=shard)).findings,
                ReportContext(),
            )
            for shard in (None, Shard(1, 3), Shard(2, 3), Shard(3, 3))
        ]
        files = []
        for number, text in enumerate(texts[1:], 1):
            (project / f"part{number}").write_text(text)
            files.append(f"part{number}")
        return texts[0], files

    return make


@pytest.mark.parametrize("output_format", ["json", "sarif"])
def test_the_parts_become_the_whole(
    reports: Callable[[str], tuple[str, list[str]]], capsys: pytest.CaptureFixture[str], output_format: str
) -> None:
    whole, parts = reports(output_format)
    for order in (parts, parts[::-1], [*parts, parts[0]]):
        assert main(["merge", *order]) == 1
        assert capsys.readouterr().out == whole


def test_a_report_without_findings_is_fine(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "empty.json").write_text("[]\n")
    assert main(["merge", "empty.json", "empty.json", "-o", "joint.json"]) == 0
    assert (project / "joint.json").read_text() == "[]\n"
    (project / "empty.sarif").write_text(render("sarif", [], ReportContext()))
    assert main(["merge", "empty.sarif"]) == 0
    assert json.loads(capsys.readouterr().out)["runs"][0]["results"] == []


def test_findings_need_not_fail_the_step(reports: Callable[[str], tuple[str, list[str]]]) -> None:
    assert main(["merge", "--exit-zero", *reports("json")[1], "-o", "joint.json"]) == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "a.json: No such file"),
        ("[\n{", "a.json:2: no valid JSON"),
        ("3", "a.json: neither a json nor a sarif report"),
        ('[{"code": "TL101"}]', "no report of torchlint"),
        ('{"runs": [{}]}', "no report of torchlint"),
        ('{"runs": []}', "no report of torchlint"),
    ],
)
def test_what_is_no_report_is_refused(
    project: Path, capsys: pytest.CaptureFixture[str], text: str | None, message: str
) -> None:
    if text is not None:
        (project / "a.json").write_text(text)
    assert main(["merge", "a.json"]) == 2
    assert message in capsys.readouterr().err


def test_reports_of_two_formats_cannot_be_joined(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "a.json").write_text("[]")
    (project / "b.sarif").write_text(render("sarif", [], ReportContext()))
    assert main(["merge", "a.json", "b.sarif"]) == 2
    assert "only reports of one format" in capsys.readouterr().err
