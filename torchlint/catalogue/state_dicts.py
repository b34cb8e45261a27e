"""Messages about the keys of a state dict: which are missing and unexpected, and whether a prefix is the difference."""

from __future__ import annotations

import re

WRAPPERS = ("module.", "_orig_mod.", "_forward_module.", "_fsdp_wrapped_module.")
"""The prefixes that DataParallel, torch.compile, Lightning and FSDP put before every key."""


def listed(kind: str, text: str) -> list[str]:
    """The keys that a message (without white space) lists as ``Missing`` or ``Unexpected``."""
    found = re.search(rf'{kind}key\(s\)instate_dict:((?:"[^"]+",?)+)', text)
    return re.findall(r'"([^"]+)"', found[1]) if found else []


def prefix(plain: list[str], prefixed: list[str]) -> str:
    """The beginning that all of ``prefixed`` have and ``plain`` lack; without ``plain`` only a wrapper's is taken."""
    if not prefixed:
        return ""
    first = prefixed[0]
    for length in (index + 1 for index, char in enumerate(first) if char == "."):
        start = first[:length]
        if not all(key.startswith(start) for key in prefixed):
            return ""
        if {key[length:] for key in prefixed}.intersection(plain) or (not plain and start in WRAPPERS):
            return start
    return ""


def mismatch(text: str) -> tuple[str, int, int] | None:
    """``wrapped keys`` if a wrapper's prefix is the difference, else ``other keys``; with the place of the message."""
    missing, unexpected = listed("Missing", text), listed("Unexpected", text)
    if not unexpected:
        return None
    start = min(text.find(f"{kind}key(s)") for kind in ("Missing", "Unexpected") if f"{kind}key(s)" in text)
    found = prefix(missing, unexpected) or prefix(unexpected, missing)
    wrapped = any(found.startswith(wrapper) for wrapper in WRAPPERS)
    return "wrapped keys" if wrapped else "other keys", start, len(text)
