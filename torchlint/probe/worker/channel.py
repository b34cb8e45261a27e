"""The way results go home: one JSON object per line in a file of their own, so that user output can't disturb them."""

from __future__ import annotations

import json
import os
from typing import Any


class Channel:
    """Appends events to a file, each written at once: what was told before a crash has been told."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def send(self, event: str, **fields: Any) -> None:
        """Write one event. Values that JSON doesn't know are written as their text."""
        line = json.dumps({"event": event, **fields}, default=str, ensure_ascii=True)
        os.write(self._fd, line.encode("ascii") + b"\n")
