"""The measuring scripts, importable; torch on one thread, as they run it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parent.parent.parent / "scripts"


@pytest.fixture(scope="session", autouse=True)
def scripts_importable() -> Iterator[None]:
    sys.path.insert(0, str(SCRIPTS))
    yield
    sys.path.remove(str(SCRIPTS))


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> Iterator[None]:
    try:
        import torch
    except ImportError:  # the tests that need it skip themselves
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
