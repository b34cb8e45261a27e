"""A name for each finding that stays the same when lines above it come and go."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence

from torchlint.finding import Finding
from torchlint.reports.paths import relative


def fingerprints(findings: Sequence[Finding]) -> list[str]:
    """One per finding, in order: from file, code and message, and a number where those are the same."""
    seen: Counter[tuple[str, str, str]] = Counter()
    names = []
    for finding in findings:
        key = (relative(finding.filename), finding.code, finding.message)
        text = "\0".join((*key, str(seen[key])))
        seen[key] += 1
        names.append(hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32])
    return names
