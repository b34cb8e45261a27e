"""Fix a copy of real code with every rule, and check what that did to it.

usage: python benchmarks/fix_corpus.py FOLDER... [--safe] [--select CODES] [--keep]

The folders are copied; nothing in them is changed. Over the copy, `torchlint check --fix --unsafe-fixes` must

- leave every file that could be parsed parseable,
- change no line outside the statements of reported findings, but for what their fixes announce and imports,
- roll back no fix,
- and change nothing when it runs a second time.

Prints the figures and every offence; the exit status is 1 if there is any.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import json
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def torchlint(copy: Path, *options: str) -> str:
    """What a run over the copy prints; its findings are no failure, everything else is."""
    command = [sys.executable, "-m", "torchlint", "check", "--isolated", "--no-cache", *options, str(copy)]
    done = subprocess.run(command, capture_output=True, text=True, errors="surrogateescape", check=False)
    if done.returncode not in (0, 1) and "not fixed" not in done.stderr:
        sys.exit(f"torchlint exited {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


def contents(copy: Path) -> dict[Path, bytes]:
    """All sources, in memory."""
    return {path: path.read_bytes() for path in copy.rglob("*") if path.suffix in (".py", ".pyi", ".ipynb")}


def lines(data: bytes) -> list[bytes]:
    """Lines as Python counts them."""
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")


def parses(data: bytes) -> bool:
    """Whether Python reads a file."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def statement_rows(data: bytes, row: int) -> range:
    """The rows of the innermost statement that holds a row."""
    found = range(row, row + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(data)
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            decorators = getattr(node, "decorator_list", [])
            start = min([node.lineno, *(decorator.lineno for decorator in decorators)])
            rows = range(start, (node.end_lineno or node.lineno) + 1)
            if row in rows and (len(found) == 1 or len(rows) <= len(found)):
                found = rows
    return found


def announced(findings: list[Row]) -> set[int]:
    """The rows, and those beside them, that the fixes of a file's findings say they change."""
    rows: set[int] = set()
    for finding in findings:
        for edit in (finding["fix"] or {"edits": []})["edits"]:
            rows.update(range(edit["location"]["row"] - 1, edit["end_location"]["row"] + 2))
    return rows


def changes(old: list[bytes], new: list[bytes]) -> Iterator[tuple[range, list[bytes]]]:
    """The old rows of each change, with what they became; an insertion has the row it comes behind."""
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for tag, first, last, new_first, new_last in matcher.get_opcodes():
        if tag != "equal":
            yield range(first + (tag != "insert"), max(last, first) + 1), new[new_first:new_last]


def is_import(inserted: list[bytes]) -> bool:
    """Whether all that was inserted are imports and blank lines."""
    return all(not line.strip() or line.startswith((b"import ", b"from ")) for line in inserted)


def offences(path: Path, old: bytes, new: bytes, findings: list[Row], outside: Counter[str]) -> Iterator[str]:
    """What a fixed file shows that it must not."""
    if path.suffix == ".ipynb":
        json.loads(new)
        return
    if parses(old) and not parses(new):
        yield f"{path}: can't be parsed any more"
        return
    own = {row for finding in findings for row in statement_rows(old, finding["location"]["row"])}
    said = announced(findings)
    for rows, became in changes(lines(old), lines(new)):
        if all(row in own or row + 1 in own for row in rows):
            continue
        if not became or not is_import(became):
            outside["announced" if said.issuperset(rows) else "elsewhere"] += len(rows)
            if not said.issuperset(rows):
                yield f"{path}:{rows.start}: changed, though no finding is there"
        else:
            outside["imports"] += len(became)


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--safe", action="store_true", help="without --unsafe-fixes")
    parser.add_argument("--select", default="ALL", help="rules to run (all)")
    parser.add_argument("--keep", action="store_true", help="leave the copy, to look at")
    arguments = parser.parse_args()
    copy = Path(tempfile.mkdtemp(prefix="torchlint-fix-"))
    try:
        for folder in arguments.folders:
            shutil.copytree(folder, copy / folder.name, ignore_dangling_symlinks=True)
        return check(copy, ["--select", arguments.select], [] if arguments.safe else ["--unsafe-fixes"])
    finally:
        if arguments.keep:
            print(copy)
        else:
            shutil.rmtree(copy)


def check(copy: Path, select: list[str], how: list[str]) -> int:
    """Fix the copy twice, compare, and print."""
    before = contents(copy)
    findings: defaultdict[str, list[Row]] = defaultdict(list)
    for finding in json.loads(torchlint(copy, *select, "--output-format", "json", "--exit-zero")):
        findings[finding["filename"]].append(finding)
    started = time.monotonic()
    report = torchlint(copy, *select, *how, "--fix", "--output-format", "concise")
    seconds = time.monotonic() - started
    after = contents(copy)
    changed = [path for path in before if before[path] != after[path]]
    outside: Counter[str] = Counter()
    found: list[str] = [line for line in report.splitlines() if line.startswith("not fixed ")]
    for path in changed:
        found += offences(path, before[path], after[path], findings[str(path)], outside)
    torchlint(copy, *select, *how, "--fix", "--output-format", "concise")
    again = contents(copy)
    found += [f"{path}: changed by the second run" for path in after if after[path] != again[path]]

    every = [finding for of_file in findings.values() for finding in of_file]
    fixed = Counter(line.split(" TL")[1][:3] for line in report.splitlines() if line.startswith("fixed "))
    print(f"files {len(before)}, findings {len(every)}, with a fix {sum(bool(f['fix']) for f in every)}")
    print(f"fixed {fixed.total()} in {len(changed)} files, {seconds:.1f} s; the report's last line:")
    print(f"  {(report.splitlines() or [''])[-1]}")
    for code, number in sorted(fixed.items()):
        print(f"  TL{code} {number:6}")
    print(f"lines changed outside the findings' statements: {dict(outside) or 'none'}")
    print(f"offences: {len(found)}")
    print(*found, sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
