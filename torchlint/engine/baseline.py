"""A baseline: findings that a project knows of and doesn't want to hear about again, so that new ones stand out.

A finding is recognized by its file, its rule and the text of its line, not by the line's number: what is known stays
known when code moves. Of several equal ones as many are known as were written down.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator

from torchlint.config import ConfigError
from torchlint.finding import Finding
from torchlint.source.file import SourceFile, UnreadableSource, read_source
from torchlint.source.suppressions import text_row

VERSION = 1

_Known = tuple[str, str, str]  # file, code, text of the line


def new_findings(file: str, findings: Iterable[Finding]) -> list[Finding]:
    """The findings that a baseline file doesn't know of. Raises ConfigError if the file can't be used."""
    known = _load(file)
    new = []
    for finding, key in _keyed(file, findings):
        if known[key] > 0:
            known[key] -= 1
        else:
            new.append(finding)
    return new


def write_baseline(file: str, findings: Iterable[Finding]) -> int:
    """Write findings as known to a file and return how many there are. Raises ConfigError if it can't be written."""
    counts = Counter(key for _, key in _keyed(file, findings))
    entries: dict[str, list[dict[str, object]]] = {}
    for (path, code, line), count in sorted(counts.items()):
        entries.setdefault(path, []).append({"code": code, "line": line, "count": count})
    text = json.dumps({"version": VERSION, "findings": entries}, indent=2) + "\n"
    try:
        with open(file, "w", encoding="ascii", newline="\n") as baseline:
            baseline.write(text)
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}") from error
    return sum(counts.values())


def _load(file: str) -> Counter[_Known]:
    try:
        with open(file, encoding="utf-8") as baseline:
            content = json.load(baseline)
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}") from error
    except json.JSONDecodeError as error:
        raise ConfigError(f"{file}:{error.lineno}: no valid JSON: {error.msg}") from error
    except (UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{file}: no valid JSON: {error}") from error
    known: Counter[_Known] = Counter()
    try:
        if content["version"] != VERSION:
            raise ConfigError(f"{file}: a baseline of version {content['version']}; write it anew")
        for path, entries in content["findings"].items():
            for entry in entries:
                known[str(path), str(entry["code"]), str(entry["line"])] += int(entry["count"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(f"{file}: this is no baseline of torchlint; write it anew with --write-baseline") from error
    return known


def _keyed(file: str, findings: Iterable[Finding]) -> Iterator[tuple[Finding, _Known]]:
    """Findings with what they are recognized by; paths are relative to the baseline's folder."""
    home = os.path.dirname(os.path.realpath(file))
    paths: dict[str, str] = {}
    sources: dict[str, SourceFile | None] = {}
    for finding in findings:
        name = finding.filename
        if name not in paths:
            path = os.path.realpath(name)
            paths[name] = os.path.relpath(path, home).replace(os.sep, "/")
            sources[name] = _source(path)
        yield finding, (paths[name], finding.code, _line(sources[name], finding))


def _source(path: str) -> SourceFile | None:
    try:
        return read_source(path)
    except (OSError, UnreadableSource):
        return None


def _line(source: SourceFile | None, finding: Finding) -> str:
    if source is None:
        return ""
    row = text_row(source, finding)
    return source.lines[row - 1].strip() if row <= len(source.lines) else ""
