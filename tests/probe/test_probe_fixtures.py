"""Every check on real torch: programs whose trailing comments say what the probe must report, and where."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

FIXTURES = Path(__file__).parent / "fixtures"
EXPECTED = re.compile(r"#\s*((?:TP\d{3}\s*)+)$")

pytestmark = pytest.mark.torch


def expected_findings() -> set[tuple[str, int, str]]:
    """File, row and code of every expectation in the fixtures."""
    found = set()
    for file in sorted(FIXTURES.rglob("*.py")):
        for row, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            match = EXPECTED.search(line)
            for code in match[1].split() if match else ():
                found.add((str(file.relative_to(FIXTURES)), row, code))
    return found


@pytest.fixture(scope="module")
def probed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """The record of one run over all fixtures, inputs worked out by the probe."""
    record = tmp_path_factory.mktemp("probe") / "record.json"
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "torchlint",
            "probe",
            str(FIXTURES),
            "--isolated",
            "-q",
            "--output-format",
            "concise",
            "--record",
            str(record),
        ],
        capture_output=True,
        text=True,
        timeout=900,
        env={**os.environ, "VIRTUAL_ENV": sys.prefix},
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    result: dict[str, object] = json.loads(record.read_text(encoding="utf-8"))
    return result


def test_faults_are_reported_where_they_are_and_nothing_else(probed: dict[str, object]) -> None:
    findings: list[dict[str, object]] = probed["findings"]  # type: ignore[assignment]
    reported = {(str(Path(str(f["filename"])).resolve().relative_to(FIXTURES)), f["row"], f["code"]) for f in findings}
    expected = expected_findings()
    messages = {
        (str(Path(str(f["filename"])).resolve().relative_to(FIXTURES)), f["row"], f["code"]): f["message"]
        for f in findings
    }
    surplus = {key: messages[key] for key in reported - expected}
    assert not surplus and not expected - reported, (
        f"not reported: {sorted(expected - reported)}; not expected: {surplus}"
    )


@pytest.mark.parametrize("folder", sorted(p.name for p in FIXTURES.iterdir() if p.is_dir()))
def test_each_check_has_programs_that_fail_and_programs_that_pass(folder: str) -> None:
    code = folder.split("-")[0]
    files = [file.read_text(encoding="utf-8") for file in (FIXTURES / folder).glob("*.py")]
    assert any(f"# {code}" in text for text in files)
    assert any(not EXPECTED.search(text) and "# TP" not in text for text in files)


def test_no_check_fails_itself(probed: dict[str, object]) -> None:
    errors = [
        (target["label"], code, event["reason"])
        for target in probed["targets"]  # type: ignore[attr-defined]
        for code, event in target["checks"].items()
        if event["status"] == "error"
    ]
    assert errors == []


def test_models_that_need_arguments_are_listed_with_them(probed: dict[str, object]) -> None:
    listed = {
        model["label"]: model["needs"]
        for target in probed["targets"]  # type: ignore[attr-defined]
        for model in target["models"]
        if model["needs"]
    }
    assert [needs for label, needs in listed.items() if label.endswith("TP102-construct/passes.py:NeedsArguments")] == [
        ["width"]
    ]
