"""What is probed: the text of a target, and the table of one in the configuration."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from torchlint.config import ConfigError, Settings, line_of
from torchlint.probe.worker.specs import SpecError, parse_input, to_json

SKIPPED_FOLDERS = {"__pycache__", "node_modules", "site-packages", "build", "dist", "venv", "env"}


class TargetError(ConfigError):
    """A target or an option that can't be read."""


@dataclass(frozen=True)
class Target:
    """One thing to probe: a model of a file or module, or (``name`` None) all of them."""

    label: str
    file: str | None = None
    module: str | None = None
    name: str | None = None
    call: str | None = None
    named: bool = True
    options: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """As the worker's request carries it."""
        return {
            "label": self.label,
            "file": self.file,
            "module": self.module,
            "name": self.name,
            "call": self.call,
            "options": {**self.options, "named": self.named},
        }


_NAME = re.compile(r"^[A-Za-z_][\w.]*$")


def parse_target(text: str, base: Path) -> list[Target]:
    """The targets a text stands for; a folder stands for its files. Paths are relative to ``base``."""
    place, name, call = _split(text)
    path = base / place
    if place.endswith((".py", os.sep)) or path.exists():
        if not path.exists():
            raise TargetError(f"{text}: no such file: {path}")
        if path.is_dir():
            if name:
                raise TargetError(f"{text}: {place} is a folder; name one of its files")
            return [Target(_shown(file, base), str(file.resolve()), named=False) for file in python_files(path)]
        return [Target(text, str(path.resolve()), None, name, call)]
    if not _NAME.match(place):
        raise TargetError(
            f"{text}: not a target; it is a file, a folder, path/to/file.py:Net, package.module:factory, "
            "or a name from [tool.torchlint.probe]"
        )
    return [Target(text, None, place, name, call)]


def _split(text: str) -> tuple[str, str | None, str | None]:
    bracket = text.find("(")
    head, call = (text, None) if bracket < 0 else (text[:bracket], text[bracket:])
    if call is not None and not call.rstrip().endswith(")"):
        raise TargetError(f"{text}: the arguments aren't closed")
    # A colon in second place is a Windows drive, not a separator.
    colon = head.rfind(":")
    if colon > 1 or (colon == 1 and not head[0].isalpha()):
        name = head[colon + 1 :]
        if not _NAME.match(name):
            raise TargetError(f"{text}: {name!r} isn't a name")
        return head[:colon], name, call
    if call is not None:
        raise TargetError(f"{text}: arguments need a class or factory: file.py:Net{call}")
    return head, None, None


def python_files(folder: Path) -> Iterator[Path]:
    """The Python files of a folder that may define models, tests and environments left out, in a stable order."""
    for directory, names, files in os.walk(folder):
        names[:] = sorted(name for name in names if name not in SKIPPED_FOLDERS and not name.startswith("."))
        for file in sorted(files):
            path = Path(directory, file)
            if file.endswith(".py") and not file.startswith(("test_", "conftest", "setup.py")) and _names_modules(path):
                yield path


def _names_modules(path: Path) -> bool:
    try:
        text = path.read_bytes()
    except OSError:
        return False
    return b"torch" in text and b"class " in text


def _shown(file: Path, base: Path) -> str:
    try:
        return str(file.relative_to(base))
    except ValueError:
        return str(file)


_UNITS = {"": 1, "B": 1, "KB": 1000, "MB": 1000**2, "GB": 1000**3, "TB": 1000**4}
_UNITS.update({"KIB": 1024, "MIB": 1024**2, "GIB": 1024**3, "TIB": 1024**4, "K": 1000, "M": 1000**2, "G": 1000**3})


def parse_size(text: str | int) -> int:
    """Bytes of a size such as ``24GB`` or ``512MiB``. Raises TargetError."""
    if isinstance(text, int):
        return text
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", text)
    if not match or match[2].upper() not in _UNITS:
        raise TargetError(f"{text!r} isn't a size; write 24GB or 512MiB")
    return int(float(match[1]) * _UNITS[match[2].upper()])


def parse_codes(text: str | Sequence[str], known: Sequence[str], names: Mapping[str, str]) -> list[str]:
    """The codes that selectors stand for: ``TP103``, a prefix such as ``TP11``, a name, ``ALL``."""
    parts = text.split(",") if isinstance(text, str) else list(text)
    found: list[str] = []
    for part in (part.strip() for part in parts if part.strip()):
        upper = part.upper()
        matching = [
            code for code in known if upper == "ALL" or code.startswith(upper) or names.get(code) == part.lower()
        ]
        if not matching or not (upper == "ALL" or upper.startswith("TP") or part.lower() in names.values()):
            raise TargetError(f"{part!r} is no check of the probe; they are TP101 to TP123")
        found.extend(matching)
    return found


def input_options(texts: Sequence[str]) -> list[list[Any]]:
    """``--input`` texts as the worker's request carries them."""
    found: list[list[Any]] = []
    for text in texts:
        try:
            name, spec = parse_input(text)
        except SpecError as error:
            raise TargetError(str(error)) from error
        found.append([name, to_json(spec)])
    return found


# ---- the configuration

_STRING, _STRINGS, _INTEGER, _NUMBER, _BOOL, _INPUTS, _SIZE = (
    "a string",
    "a list of strings",
    "a whole number",
    "a number",
    "true or false",
    "a list or a table of inputs",
    "a size such as 24GB",
)
COMMON_KEYS = {
    "timeout": _NUMBER,
    "memory-limit": _SIZE,
    "python": _STRING,
    "select": _STRINGS,
    "ignore": _STRINGS,
    "seed": _INTEGER,
    "device": _STRING,
    "batch-size": _INTEGER,
    "memory": _SIZE,
    "export": _BOOL,
}
TARGET_KEYS = {
    **COMMON_KEYS,
    "target": _STRING,
    "arguments": _STRING,
    "inputs": _INPUTS,
    "inputs-from": _STRING,
    "output": "a list of sizes",
    "checkpoint": _STRING,
    "data": _STRING,
    "loss": _STRING,
    "mode": '"train" or "eval"',
    "expect-skipped": _STRINGS,
}


def configured(settings: Settings) -> dict[str, dict[str, Any]]:
    """The targets of ``[tool.torchlint.probe]`` by name, what is said for all of them filled in. Raises ConfigError."""
    table = settings.probe
    common = {key: value for key, value in table.items() if not isinstance(value, dict)}
    for key, value in common.items():
        _checked(settings, ("probe", key), key, value, COMMON_KEYS)
    targets: dict[str, dict[str, Any]] = {}
    for name, entry in table.items():
        if not isinstance(entry, dict):
            continue
        for key, value in entry.items():
            _checked(settings, ("probe", name, key), key, value, TARGET_KEYS)
        if "target" not in entry:
            raise _error(settings, ("probe", name), f"[tool.torchlint.probe.{name}] needs a target")
        targets[name] = {**common, **entry}
    return targets


def common_settings(settings: Settings) -> dict[str, Any]:
    """What ``[tool.torchlint.probe]`` says for every target."""
    return {key: value for key, value in settings.probe.items() if not isinstance(value, dict)}


def _error(settings: Settings, path: tuple[str, ...], message: str) -> ConfigError:
    """An error about the key at ``path``, with the file and the line it stands on."""
    if settings.config_file is None:
        return ConfigError(message)
    file = Path(settings.config_file)
    prefix = ("tool", "torchlint") if file.name == "pyproject.toml" else ()
    line = line_of(file.read_text(encoding="utf-8-sig"), (*prefix, *path))
    return ConfigError(f"{_shown(file, Path.cwd())}:{line}: {message}")


def _checked(settings: Settings, path: tuple[str, ...], key: str, value: Any, keys: Mapping[str, str]) -> None:
    shown = f"[tool.torchlint.{'.'.join(path[:-1])}]"
    kind = keys.get(key)
    if kind is None:
        import difflib

        near = difflib.get_close_matches(key, keys, n=1)
        hint = f'; did you mean "{near[0]}"?' if near else f"; known are {', '.join(keys)}"
        raise _error(settings, path, f'{shown}: unknown key "{key}"{hint}')
    good = {
        _STRING: isinstance(value, str),
        _STRINGS: isinstance(value, list) and all(isinstance(item, str) for item in value),
        _INTEGER: isinstance(value, int) and not isinstance(value, bool),
        _NUMBER: isinstance(value, (int, float)) and not isinstance(value, bool),
        _BOOL: isinstance(value, bool),
        _INPUTS: isinstance(value, (list, dict, str)),
        _SIZE: isinstance(value, (str, int)) and not isinstance(value, bool),
    }.get(kind, isinstance(value, (str, list)))
    if not good:
        raise _error(settings, path, f'{shown}: "{key}" takes {kind}')


def target_of(name: str, entry: Mapping[str, Any], root: Path) -> list[Target]:
    """The targets that a configured entry stands for."""
    found = parse_target(str(entry["target"]), root)
    options = options_of(entry, root)
    label = name if len(found) == 1 else ""
    return [replace(target, label=label or f"{name}/{target.label}", options=options) for target in found]


def options_of(entry: Mapping[str, Any], root: Path) -> dict[str, Any]:
    """The worker's options for a table of the configuration; its paths are relative to the configuration's folder."""
    options: dict[str, Any] = {}
    for key, name in (
        ("batch-size", "batch"),
        ("device", "device"),
        ("seed", "seed"),
        ("mode", "mode"),
        ("export", "export"),
        ("inputs-from", "inputs_from"),
        ("output", "output"),
        ("checkpoint", "checkpoint"),
        ("data", "data"),
        ("loss", "loss"),
    ):
        if entry.get(key) is not None:
            options[name] = entry[key]
    if entry.get("arguments"):
        text = str(entry["arguments"]).strip()
        options["arguments"] = text if text.startswith("(") else f"({text})"
    if entry.get("memory") is not None:
        options["memory"] = parse_size(entry["memory"])
    if "checkpoint" in options:
        options["checkpoint"] = str((root / options["checkpoint"]).resolve())
    for key in ("inputs_from", "data", "loss"):
        if key in options:
            options[key] = _anchored(options[key], root)
    inputs = entry.get("inputs")
    if isinstance(inputs, str):
        inputs = [inputs]
    if isinstance(inputs, dict):
        inputs = [f"{key}={value}" for key, value in inputs.items()]
    if inputs:
        options["inputs"] = input_options([str(item) for item in inputs])
    return options


def _anchored(text: str, root: Path) -> str:
    """A ``file.py:name`` with its file made absolute; module names stay."""
    place, colon, rest = text.partition(".py:")
    return f"{(root / (place + '.py')).resolve()}:{rest}" if colon else text
