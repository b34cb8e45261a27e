"""The tables in the package are what the script makes of the torch that the tests pin."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from torchlint.torchapi.tables import rows

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest", reason="torch's own operator samples need expecttest")

SCRIPT = Path(__file__).parent.parent.parent / "scripts" / "generate_torchapi.py"

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(not torch.__version__.startswith("2.13."), reason="the tables are measured on torch 2.13"),
    pytest.mark.filterwarnings("ignore"),
]


def test_names_layers_and_signatures_are_up_to_date() -> None:
    # In a process of its own: which paths lead to a thing depends on what was imported.
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(SCRIPT), "--check", "aliases.tsv", "modules.tsv", "signatures.tsv"],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "changed: nothing"), done.stderr


def test_operations_drawn_at_random_are_up_to_date() -> None:
    from measuring.operations import operation_row, subjects

    seed = 13
    for subject in random.Random(seed).sample(list(subjects()), 120):
        name, *cells = operation_row(subject)
        assert "\t".join(cells).rstrip("\t") == rows("operations")[name], name


@pytest.mark.slow
def test_all_operations_are_up_to_date() -> None:
    import generate_torchapi

    text = generate_torchapi.WRITERS["operations.tsv"]()
    assert text == (generate_torchapi.TABLES / "operations.tsv").read_text(encoding="utf-8")
