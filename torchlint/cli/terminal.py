"""What the commands know about where their output goes."""

from __future__ import annotations

import argparse
import os
from typing import IO


def add_color_argument(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """``--color``, with Ruff's values."""
    parser.add_argument(
        "--color", choices=("auto", "always", "never"), default="auto", help="colours: on a terminal (auto), or as said"
    )


def use_color(choice: str, stream: IO[str]) -> bool:
    """Whether to colour what goes to a stream.

    ``auto`` follows the conventions of no-color.org and force-color.org, then asks whether it is a terminal.
    """
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return os.environ.get("TERM") != "dumb" and stream.isatty()
