"""How many planted faults the probe reports at the right line, and whether it reports anything on the sound originals.

    python benchmarks/probe_seeded_faults.py [--kinds features,squeeze] [--models LeNet,Gpt] [--show]

Eleven kinds of fault are planted, one at a time, into the thirty models of ``sound_models.py`` wherever a model has a
place for them. No input is told. A fault counts as found if a finding of an expected code points at the planted line
or at the line that uses what the planted line makes.
"""

from __future__ import annotations

import argparse
import collections
import json
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
SOUND = HERE / "sound_models.py"


@dataclass(frozen=True)
class Fault:
    """One planted fault: the changed text, the rows that count as right, the codes that count as right."""

    kind: str
    model: str
    text: str
    rows: frozenset[int]
    codes: tuple[str, ...]


def class_rows(lines: list[str], model: str) -> range:
    """The rows (from 0) of a model's class."""
    start = next(i for i, line in enumerate(lines) if line.startswith(f"class {model}("))
    end = next((i for i in range(start + 1, len(lines)) if lines[i] and not lines[i][0].isspace()), len(lines))
    return range(start, end)


def marked(lines: list[str], rows: range, mark: str) -> int | None:
    """The first row in a class that carries a mark."""
    return next((i for i in rows if lines[i].rstrip().endswith(f"# {mark}")), None)


def uses(lines: list[str], rows: range, row: int) -> set[int]:
    """The rows that use the attribute which a row sets."""
    match = re.search(r"self\.(\w+)\s*=", lines[row])
    if not match:
        return set()
    return {i for i in rows if re.search(rf"self\.{match[1]}\b", lines[i]) and i != row}


INSERTED = {
    "literal batch size": ("x = x.view(2, *x.shape[1:])", ("TP103", "TP108")),
    "squeeze": ("x = x.squeeze()", ("TP103", "TP108")),
    "detach": ("x = x.detach()", ("TP105", "TP110")),
    "dropout without training flag": ("x = F.dropout(x, 0.5)", ("TP112",)),
    "batch-mixing operation": ("x = x - x.mean(0, keepdim=True)", ("TP109",)),
    "tensor without a device": ("x = x + torch.ones(x.size(-1))", ("TP106",)),
}


def faults(model: str, text: str) -> list[Fault]:
    """Every fault that can be planted into one model."""
    lines = text.splitlines()
    rows = class_rows(lines, model)
    found: list[Fault] = []

    def add(kind: str, changed: list[str], at: set[int], codes: tuple[str, ...]) -> None:
        if changed == lines:
            raise ValueError(f"{kind} wasn't planted into {model}: the marked line doesn't read as expected")
        found.append(Fault(kind, model, "\n".join(changed) + "\n", frozenset(row + 1 for row in at), codes))

    for mark, kind, step in (("features", "wrong in_features", 3), ("channels", "wrong channels", 1)):
        row = marked(lines, rows, mark)
        if row is not None:
            changed = list(lines)
            changed[row] = re.sub(r"\((\d+)", lambda m, step=step: f"({int(m[1]) + step}", lines[row], count=1)
            if "*" in lines[row].split(",")[0]:
                changed[row] = re.sub(r"\((\d+ \* \d+ \* \d+)", r"(\1 + 3", lines[row], count=1)
            add(kind, changed, {row} | uses(lines, rows, row), ("TP103",))
    row = marked(lines, rows, "list")
    if row is not None:
        changed = list(lines)
        changed[row] = re.sub(r"nn\.ModuleList\((\[.*\])\)", r"\1", lines[row])
        add("unregistered list", changed, {row}, ("TP114", "TP106"))
    row = marked(lines, rows, "buffer")
    if row is not None:
        changed = list(lines)
        changed[row] = re.sub(r'self\.register_buffer\("(\w+)", (.*)\)  #', r"self.\1 = \2  #", lines[row])
        add("plain tensor attribute", changed, {row}, ("TP106", "TP114", "TP113"))
    row = marked(lines, rows, "plant")
    if row is not None:
        indent = lines[row][: len(lines[row]) - len(lines[row].lstrip())]
        for kind, (line, codes) in INSERTED.items():
            add(kind, [*lines[: row + 1], indent + line, *lines[row + 1 :]], {row + 1}, codes)
        saved = [indent + "x = torch.tanh(x)", indent + "x += 1"]
        add("in-place on saved output", [*lines[: row + 1], *saved, *lines[row + 1 :]], {row + 2}, ("TP119",))
        # Models without a buffer of their own get a plain tensor attribute beside what x is multiplied with.
        if marked(lines, rows, "buffer") is None:
            start = next(i for i in rows if "super().__init__()" in lines[i])
            changed = [
                *lines[: start + 1],
                "        self.scale_by = torch.ones(1)",
                *lines[start + 1 : row + 1],
                indent + "x = x * self.scale_by",
                *lines[row + 1 :],
            ]
            add("plain tensor attribute", changed, {start + 1, row + 2}, ("TP106", "TP114"))
    return found


def probe(targets: list[str], record: Path, python: str | None) -> dict[str, object]:
    """Run the probe over targets; returns its record."""
    command = [
        sys.executable,
        "-m",
        "torchlint",
        "probe",
        "--isolated",
        "-q",
        "--output-format",
        "json",
        "--record",
        str(record),
        *targets,
    ]
    if python:
        command += ["--python", python]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        sys.stderr.write(done.stderr[-3000:])
    result: dict[str, object] = json.loads(record.read_text(encoding="utf-8"))
    return result


def main() -> None:
    """Plant, probe, count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", help="only these, separated by commas; a part of the name is enough")
    parser.add_argument("--models", help="only these, separated by commas")
    parser.add_argument("--show", action="store_true", help="print every finding")
    parser.add_argument("--no-originals", action="store_true", help="don't probe the sound originals")
    parser.add_argument("--python", help="the interpreter with torch")
    args = parser.parse_args()
    text = SOUND.read_text(encoding="utf-8")
    names = re.findall(r"^    (.*),$", text[text.index("MODELS = [") :], re.M)
    models = [name.strip() for line in names for name in line.split(",")]
    if args.models:
        models = [model for model in models if model in args.models.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        plants: dict[str, Fault] = {}
        for model in models:
            for fault in faults(model, text):
                if args.kinds and not any(part in fault.kind for part in args.kinds.split(",")):
                    continue
                file = Path(folder, f"planted_{len(plants)}.py")
                file.write_text(fault.text, encoding="utf-8")
                plants[f"{file}:{model}"] = fault
        result = probe(list(plants), Path(folder, "record.json"), args.python)
        count(result, plants, args.show)
        if not args.no_originals:
            originals(models, folder, args.python)


def count(result: dict[str, object], plants: dict[str, Fault], show: bool) -> None:
    """Print hits by kind, and every miss."""
    hits: collections.Counter[str] = collections.Counter()
    total: collections.Counter[str] = collections.Counter()
    extra = 0
    targets = {entry["label"]: entry for entry in result["targets"]}  # type: ignore[attr-defined]
    for label, fault in plants.items():
        total[fault.kind] += 1
        seen = [
            (code, problem["site"]["row"] if problem["site"] else 0, problem["message"])
            for code, event in targets.get(label, {"checks": {}})["checks"].items()
            if event["status"] == "failed"
            for problem in event["problems"]
        ]
        right = [entry for entry in seen if entry[0] in fault.codes and entry[1] in fault.rows]
        hits[fault.kind] += bool(right)
        extra += len(seen) - len(right)
        if show or not right:
            print(f"{'hit ' if right else 'MISS'} {fault.kind} in {fault.model}, rows {sorted(fault.rows)}")
            for code, row, message in seen:
                print(f"       {row}: {code} {message[:150]}")
    for kind in total:
        print(f"{hits[kind]:4} of {total[kind]:3}  {kind}")
    share = 100 * sum(hits.values()) / max(1, sum(total.values()))
    print(
        f"{sum(hits.values()):4} of {sum(total.values()):3}  planted faults reported at the right line "
        f"({share:.1f}%); {extra} further findings"
    )


def originals(models: list[str], folder: str, python: str | None) -> None:
    """Print what is reported on the sound originals."""
    result = probe([f"{SOUND}:{model}" for model in models], Path(folder, "sound.json"), python)
    found = result["findings"]
    for finding in found:  # type: ignore[attr-defined]
        print(f"on a sound model: {finding['row']}: {finding['code']} {finding['message']}")
    print(f"{len(found):4} findings on {len(models)} sound originals")  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
