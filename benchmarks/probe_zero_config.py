"""How many models run in the probe with nothing told: no input, no argument, no configuration.

    python benchmarks/probe_zero_config.py --python PATH [PACKAGE ...] [--every N] [--show]

PATH is an interpreter that has torch and the packages. Counted are the concrete nn.Module classes and the factories of
vit_pytorch, x_transformers, kornia, monai.networks, the models of transformers at their default configurations, and
the thirty of sound_models.py. "Built" are those that can be constructed without arguments; the share is of these.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PACKAGES = ("examples", "vit_pytorch", "x_transformers", "kornia", "monai.networks", "transformers")
# Parts that are no models: they need packages, networks or devices of their own.
LEFT_OUT = ("kornia.contrib.models.rt_detr", "monai.networks.trt_compiler", "monai.networks.utils")
FIND_MODULES = """
import importlib.util, pathlib, sys
spec = importlib.util.find_spec(sys.argv[1])
roots = list(spec.submodule_search_locations or [])
base = sys.argv[1]
for root in roots:
    for file in sorted(pathlib.Path(root).rglob("*.py")):
        parts = file.relative_to(root).with_suffix("").parts
        text = file.read_text(encoding="utf-8", errors="replace")
        if "nn.Module" in text or "Module)" in text:
            if parts[-1] not in ("__init__", "__main__") and not any(part.startswith("test") for part in parts):
                print(".".join((base, *parts)))
"""
FIND_TRANSFORMERS = """
from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES
seen = []
for value in MODEL_MAPPING_NAMES.values():
    for name in value if isinstance(value, (tuple, list)) else (value,):
        if name not in seen:
            seen.append(name)
print("\\n".join(f"transformers:{name}" for name in seen))
"""


def targets_of(package: str, python: str) -> list[str]:
    """The targets of one package: its modules, or its model classes."""
    if package == "examples":
        return [str(HERE / "sound_models.py")]
    script = [FIND_TRANSFORMERS] if package == "transformers" else [FIND_MODULES, package]
    done = subprocess.run([python, "-c", *script], capture_output=True, text=True, check=True)
    return [line for line in done.stdout.splitlines() if line and not line.startswith(LEFT_OUT)]


def probe(targets: list[str], python: str, timeout: float) -> dict[str, Any]:
    """Run the probe's forward check over targets."""
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder, "record.json")
        command = [
            sys.executable,
            "-m",
            "torchlint",
            "probe",
            "--isolated",
            "-q",
            "--output-format",
            "json",
            "--python",
            python,
        ]
        command += ["--select", "TP101,TP102,TP103", "--timeout", str(timeout), "--record", str(record), *targets]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if not record.exists():
            sys.exit(done.stderr[-3000:])
        result: dict[str, Any] = json.loads(record.read_text(encoding="utf-8"))
        return result


def count(package: str, result: dict[str, Any], show: bool) -> tuple[int, int]:
    """Print one package's figures; returns how many ran and how many were built."""
    built = ran = needing = failing = 0
    for target in result["targets"]:
        needing += sum(bool(model["needs"]) for model in target["models"])
        checks = target["checks"]
        if checks.get("TP102", {}).get("status") == "failed":
            failing += 1
            if show:
                print(f"  not built {target['label']}: {_why(checks['TP102'])}")
        if "TP101" in checks and checks["TP101"]["status"] == "failed" and show:
            print(f"  not imported {target['label']}: {_why(checks['TP101'])}")
        if target["built"] is None:
            continue
        built += 1
        forward = checks.get("TP103", {"status": "missing", "reason": "", "problems": []})
        if forward["status"] == "passed":
            ran += 1
            if show:
                print(f"  ran {target['label']}: {', '.join(target['inputs']['shown'])}")
        elif show:
            print(f"  NOT RUN {target['label']}: {_why(forward)}")
    share = 100 * ran / built if built else 0.0
    print(
        f"{package:16} {ran:4} of {built:4} built ran ({share:.1f}%); {needing} need arguments, {failing} fail to "
        "build without",
        flush=True,
    )
    return ran, built


def _why(event: dict[str, Any]) -> str:
    problems = event["problems"]
    text = (
        problems[0]["message"] + " | " + problems[0]["help"][-300:].replace("\n", " / ")
        if problems
        else event["reason"]
    )
    return str(text)[:700]


def main() -> None:
    """Probe every package and print the shares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="*", default=PACKAGES)
    parser.add_argument("--python", default=sys.executable, help="the interpreter with torch and the packages")
    parser.add_argument("--every", type=int, default=1, help="of the targets of transformers take every Nth")
    parser.add_argument("--only", default="", help="only targets whose name contains this")
    parser.add_argument("--timeout", type=float, default=60)
    parser.add_argument("--show", action="store_true", help="print every model")
    args = parser.parse_args()
    all_ran = all_built = 0
    for package in args.packages or PACKAGES:
        targets = [target for target in targets_of(package, args.python) if args.only in target]
        if package == "transformers":
            targets = targets[:: args.every]
        ran, built = count(package, probe(targets, args.python, args.timeout), args.show)
        all_ran, all_built = all_ran + ran, all_built + built
    print(f"{'together':16} {all_ran:4} of {all_built:4} built ran ({100 * all_ran / max(1, all_built):.1f}%)")


if __name__ == "__main__":
    main()
