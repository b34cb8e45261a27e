"""The configuration: which keys there are, where they are read from, and the one frozen value they become.

The keys, their meaning and the way a command line overrides a file are Ruff's, so that who knows one knows the other:
the nearest ``.torchlint.toml``, ``torchlint.toml`` or ``pyproject.toml`` with a ``[tool.torchlint]`` table counts,
files of different folders may have different settings, and a key that isn't known is an error, never ignored.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

CONFIG_NAMES = (".torchlint.toml", "torchlint.toml", "pyproject.toml")

OUTPUT_FORMATS = (
    "full",
    "concise",
    "grouped",
    "json",
    "json-lines",
    "github",
    "gitlab",
    "azure",
    "sarif",
    "junit",
    "rdjson",
    "pylint",
)

DEFAULT_EXCLUDE = (
    ".bzr",
    ".direnv",
    ".eggs",
    ".git",
    ".git-rewrite",
    ".hg",
    ".ipynb_checkpoints",
    ".mypy_cache",
    ".nox",
    ".pants.d",
    ".pyenv",
    ".pytest_cache",
    ".pytype",
    ".ruff_cache",
    ".svn",
    ".torchlint_cache",
    ".tox",
    ".venv",
    ".vscode",
    "__pypackages__",
    "_build",
    "buck-out",
    "dist",
    "node_modules",
    "site-packages",
    "venv",
)


class ConfigError(ValueError):
    """The configuration can't be used; the text names the file and the line wherever there is one."""


@dataclass(frozen=True, slots=True)
class RuleSelection:
    """What one source (the file, or the command line) says about which rules run; ``select`` None: nothing said.

    Selectors are ``ALL``, a code (``TL101``), a prefix of one (``TL1``), or a rule's name.
    """

    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    extend_ignore: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything a run over some files needs to know. Frozen and picklable: worker processes get it as it is.

    Relative patterns in ``exclude``, ``extend_exclude`` and ``per_file_ignores`` are relative to ``root``, the folder
    of the configuration file (the current folder without one); ``src``, ``cache_dir`` and ``baseline`` are absolute.
    """

    root: str
    config_file: str | None = None
    selection: tuple[RuleSelection, ...] = ()
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    fixable: tuple[str, ...] = ("ALL",)
    unfixable: tuple[str, ...] = ()
    exclude: tuple[str, ...] = DEFAULT_EXCLUDE
    extend_exclude: tuple[str, ...] = ()
    force_exclude: bool = False
    respect_gitignore: bool = True
    target_torch: tuple[int, int] | None = None
    plugins: tuple[str, ...] = ()
    src: tuple[str, ...] = ()
    cache_dir: str | None = None
    baseline: str | None = None
    output_format: str = "full"
    fix: bool = False
    fix_only: bool = False
    unsafe_fixes: bool = False
    show_fixes: bool = False
    probe: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Option:
    """One key of the configuration file: what it takes and what it does."""

    key: str
    kind: str
    default: str
    doc: str
    example: str


_STRINGS = "list of strings"
_BOOL = "true or false"
_STRING = "string"
_TABLE = "table of lists of strings"

OPTIONS = (
    Option(
        "select",
        _STRINGS,
        "every rule but those of severity info",
        'The rules to run: codes, prefixes of codes, names, or "ALL". The more specific selector wins.',
        'select = ["TL1", "TL401", "missing-eval"]',
    ),
    Option("extend-select", _STRINGS, "[]", "Rules to run on top of `select`.", 'extend-select = ["TL313"]'),
    Option("ignore", _STRINGS, "[]", "The rules not to run.", 'ignore = ["TL504"]'),
    Option("extend-ignore", _STRINGS, "[]", "Rules not to run on top of `ignore`.", 'extend-ignore = ["TL504"]'),
    Option(
        "per-file-ignores",
        _TABLE,
        "{}",
        "Rules not to run in the files that match a pattern; a pattern that starts with `!` means all other files.",
        'per-file-ignores = { "tests/*" = ["TL4"] }',
    ),
    Option(
        "extend-per-file-ignores",
        _TABLE,
        "{}",
        "More of the same, on top of `per-file-ignores`.",
        'extend-per-file-ignores = { "scripts/old_*.py" = ["ALL"] }',
    ),
    Option("fixable", _STRINGS, '["ALL"]', "The rules that `--fix` may repair.", 'fixable = ["TL1"]'),
    Option("unfixable", _STRINGS, "[]", "The rules that `--fix` may not repair.", 'unfixable = ["TL305"]'),
    Option(
        "exclude",
        _STRINGS,
        ".git, .venv, site-packages, node_modules and the like",
        "Files and folders not to look into: names, or patterns relative to this file's folder.",
        'exclude = ["third_party"]',
    ),
    Option("extend-exclude", _STRINGS, "[]", "More of the same, on top of `exclude`.", 'extend-exclude = ["legacy"]'),
    Option(
        "force-exclude",
        _BOOL,
        "false",
        "Leave excluded files out even where the command line names them, as pre-commit does.",
        "force-exclude = true",
    ),
    Option("respect-gitignore", _BOOL, "true", "Leave out what git ignores.", "respect-gitignore = false"),
    Option(
        "target-torch",
        "version such as 2.6, as a string",
        "the newest known",
        "The oldest torch that the code must run on; rules whose advice depends on the version follow it.",
        'target-torch = "2.6"',
    ),
    Option(
        "src",
        _STRINGS,
        '[".", "src"]',
        "The folders that the project's own imports start from.",
        'src = ["python"]',
    ),
    Option(
        "plugins",
        _STRINGS,
        "[]",
        "Modules with checks of your own. They are imported, which nothing else of a linted project ever is.",
        'plugins = ["mypackage.checks"]',
    ),
    Option("cache-dir", _STRING, ".torchlint_cache", "Where results are kept.", 'cache-dir = "~/.cache/torchlint"'),
    Option(
        "baseline",
        _STRING,
        "none",
        "A file of known findings, written by `--write-baseline`; only new ones are reported.",
        'baseline = "torchlint-baseline.json"',
    ),
    Option(
        "output-format",
        "one of " + ", ".join(OUTPUT_FORMATS),
        "full",
        "How findings are printed.",
        'output-format = "concise"',
    ),
    Option("fix", _BOOL, "false", "Repair what has a safe fix, as `--fix` does.", "fix = true"),
    Option("fix-only", _BOOL, "false", "Repair and say nothing about what remains.", "fix-only = true"),
    Option("unsafe-fixes", _BOOL, "false", "Let `--fix` change what a program computes.", "unsafe-fixes = true"),
    Option("show-fixes", _BOOL, "false", "List what was repaired.", "show-fixes = true"),
    Option("probe", "table", "{}", "Targets and settings of `torchlint probe`.", "[tool.torchlint.probe.lenet]"),
)

_OPTION_OF = {option.key: option for option in OPTIONS}


def find_config(start: str | os.PathLike[str]) -> Path | None:
    """The configuration file that counts for a file or folder: the nearest one up the tree."""
    folder = Path(start).absolute()
    if not folder.is_dir():
        folder = folder.parent
    for parent in (folder, *folder.parents):
        found = _config_in(parent)
        if found is not None:
            return found
    return None


def _config_in(folder: Path) -> Path | None:
    for name in CONFIG_NAMES:
        file = folder / name
        # A pyproject.toml is asked for its table only if it names torchlint: most don't, and needn't be parsed.
        if file.is_file() and (name != "pyproject.toml" or _has_table(file)):
            return file
    return None


def _has_table(file: Path) -> bool:
    text = _read(file)
    if "torchlint" not in text:
        return False
    tool = _parse(text, file).get("tool", {})
    return isinstance(tool, dict) and "torchlint" in tool


def load_settings(
    path: str | os.PathLike[str] | None = None,
    overrides: Mapping[str, Any] | None = None,
    *,
    config: Sequence[str] = (),
    isolated: bool = False,
) -> Settings:
    """The settings for a file or folder (default: the current one).

    ``overrides`` come from a command line or a caller: the file's keys, with ``-`` or ``_``, and values of the types
    the file would have. ``config`` names a file to use instead of the nearest one, or holds ``key = value`` lines of
    TOML. ``isolated`` reads no file at all. Raises ConfigError, which names file and line.
    """
    cwd = Path.cwd()
    settings = Settings(root=str(cwd), src=_absolute((".", "src"), cwd))
    explicit = [entry for entry in config if "=" not in entry]
    inline = [entry for entry in config if "=" in entry]
    if len(explicit) > 1:
        raise ConfigError(f"more than one configuration file is named: {', '.join(explicit)}")
    if explicit:
        file = Path(explicit[0]).expanduser().absolute()
        if not file.is_file():
            raise ConfigError(f"no such configuration file: {explicit[0]}")
        settings = _from_file(file, settings, require_table=True)
    elif not isolated:
        nearest = find_config(path if path is not None else cwd)
        if nearest is not None:
            settings = _from_file(nearest, settings)
    for entry in inline:
        settings = _merge(settings, _checked(_parse(entry, None), entry, None, ()), cwd)
    if overrides:
        given = {key.replace("_", "-"): value for key, value in overrides.items() if value is not None}
        settings = _merge(settings, _checked(given, "", None, ()), cwd)
    return settings


class Configuration:
    """The settings of every file of a run, each from its own nearest configuration file, read once."""

    def __init__(
        self, overrides: Mapping[str, Any] | None = None, *, config: Sequence[str] = (), isolated: bool = False
    ) -> None:
        self._overrides = dict(overrides or {})
        self._config = tuple(config)
        self._isolated = isolated
        self._by_config: dict[Path | None, Settings] = {}
        self._config_of: dict[Path, Path | None] = {}
        self._one_for_all = isolated or any("=" not in entry for entry in self._config)

    def settings_for(self, path: str | os.PathLike[str]) -> Settings:
        """The settings for a file or folder."""
        config = None if self._one_for_all else self._nearest(Path(path).absolute())
        settings = self._by_config.get(config)
        if settings is None:
            settings = load_settings(
                config.parent if config else None,
                self._overrides,
                config=self._config,
                isolated=self._isolated or (config is None and not self._one_for_all),
            )
            self._by_config[config] = settings
        return settings

    def _nearest(self, path: Path) -> Path | None:
        folder = path if path.is_dir() else path.parent
        missing = []
        found: Path | None = None
        for parent in (folder, *folder.parents):
            if parent in self._config_of:
                found = self._config_of[parent]
                break
            missing.append(parent)
            found = _config_in(parent)
            if found is not None:
                break
        for parent in missing:
            self._config_of[parent] = found
        return found


def setting_error(settings: Settings, key: Sequence[str], value: str, message: str) -> ConfigError:
    """An error about one value of the setting at the path ``key``, with its line in the file if it stands there."""
    if settings.config_file is not None:
        file = Path(settings.config_file)
        line = line_of(_read(file), (*_table_of(file), *key), value)
        if line:
            return ConfigError(f"{_shown(file)}:{line}: {message}")
    return ConfigError(message)


def line_of(text: str, path: Sequence[str], value: str | None = None) -> int:
    """The 1-based line of TOML on which the key at ``path`` stands, 0 if it doesn't occur.

    The parser itself is the judge: the key belongs to the first lines that parse and hold it, and begins after the
    last lines that parse without it. With ``value``, the line in that stretch that spells the value.
    """
    lines = text.splitlines()
    before = 0
    for count in range(1, len(lines) + 1):
        try:
            table: object = _toml().loads("\n".join(lines[:count]) + "\n")
        except ValueError:
            continue
        for key in path:
            table = table.get(key, _ABSENT) if isinstance(table, dict) else _ABSENT
        if table is not _ABSENT:
            if value is not None:
                for row in range(before, count):
                    if f'"{value}"' in lines[row] or f"'{value}'" in lines[row]:
                        return row + 1
                return 0
            return before + 1
        before = count
    return 0


_ABSENT = object()
_PLACE = re.compile(r"\(at line (\d+), column \d+\)")


def _toml() -> Any:
    import importlib

    return importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{_shown(file)}: not UTF-8: {error.reason} at byte {error.start}") from error
    except OSError as error:
        raise ConfigError(f"{_shown(file)}: {error.strerror}") from error


def _parse(text: str, file: Path | None) -> dict[str, Any]:
    try:
        parsed: dict[str, Any] = _toml().loads(text)
        return parsed
    except (ValueError, RecursionError) as error:
        message = str(error)
        where = _shown(file) if file else f"--config {text!r}"
        place = _PLACE.search(message)
        if place is None:
            raise ConfigError(f"{where}: not valid TOML: {message}") from error
        raise ConfigError(f"{where}:{place[1]}: not valid TOML: {message[: place.start()].rstrip()}") from error


def _table_of(file: Path) -> tuple[str, ...]:
    return ("tool", "torchlint") if file.name == "pyproject.toml" else ()


def _from_file(file: Path, settings: Settings, *, require_table: bool = False) -> Settings:
    text = _read(file)
    table: Any = _parse(text, file)
    path = _table_of(file)
    for key in path:
        table = table.get(key) if isinstance(table, dict) else None
    if table is None:
        if require_table:
            raise ConfigError(f"{_shown(file)}: there is no [tool.torchlint] table in it")
        return settings
    if not isinstance(table, dict):
        line = line_of(text, path)
        raise ConfigError(f"{_shown(file)}:{line}: tool.torchlint is a table, not {_type_name(table)}")
    base = replace(settings, root=str(file.parent), config_file=str(file), src=_absolute((".", "src"), file.parent))
    return _merge(base, _checked(table, text, file, path), file.parent)


def _checked(table: Mapping[str, Any], text: str, file: Path | None, path: tuple[str, ...]) -> dict[str, Any]:
    """The table's values, all of known keys and right types; otherwise one error that tells of every wrong one."""
    values: dict[str, Any] = {}
    wrong: list[tuple[int, str]] = []
    for key, value in table.items():
        option = _OPTION_OF.get(key)
        try:
            if option is None:
                raise ConfigError(_unknown_key(key))
            values[key] = _VALUE_OF.get(key, _KINDS[option.kind])(key, value)
        except ConfigError as error:
            line = line_of(text, (*path, key)) if file else 0
            wrong.append((line, f"{_shown(file)}:{line}: {error}" if file else str(error)))
    if wrong:
        raise ConfigError("\n".join(message for _, message in sorted(wrong)))
    return values


def _unknown_key(key: str) -> str:
    import difflib

    message = f'unknown key "{key}"'
    near = difflib.get_close_matches(key.replace("_", "-").lower(), _OPTION_OF, n=1)
    if near:
        return f'{message}; did you mean "{near[0]}"?'
    return f"{message}; `torchlint config` lists the keys"


def _type_name(value: object) -> str:
    names = {bool: "a boolean", int: "an integer", float: "a float", str: "a string", list: "a list", dict: "a table"}
    return names.get(type(value), f"a {type(value).__name__}")


def _strings(key: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)):
        raise ConfigError(f'"{key}" takes a list of strings, not {_type_name(value)}')
    for item in value:
        if not isinstance(item, str):
            raise ConfigError(f'"{key}" takes a list of strings; {item!r} is {_type_name(item)}')
    return tuple(value)


def _string(key: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        what = "an empty one" if value == "" else _type_name(value)
        raise ConfigError(f'"{key}" takes a string, not {what}')
    return value


def _bool(key: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise ConfigError(f'"{key}" takes true or false, not {_type_name(value)}')
    return value


def _table(key: str, value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ConfigError(f'"{key}" is a table, not {_type_name(value)}')
    return value


def _strings_by_pattern(key: str, value: object) -> tuple[tuple[str, tuple[str, ...]], ...]:
    table = _table(key, value)
    return tuple((pattern, _strings(f"{key}.{pattern}", codes)) for pattern, codes in table.items())


def _version(key: str, value: object) -> tuple[int, int]:
    if isinstance(value, tuple):
        return (value[0], value[1])
    parts = value.split(".") if isinstance(value, str) else []
    if len(parts) not in (2, 3) or not all(part.isdigit() for part in parts):
        got = f'"{value}"' if isinstance(value, str) else _type_name(value)
        raise ConfigError(f'"{key}" takes a version such as "2.6", not {got}')
    return (int(parts[0]), int(parts[1]))


def _output_format(key: str, value: object) -> str:
    name = _string(key, value)
    if name not in OUTPUT_FORMATS:
        raise ConfigError(f'"{key}" is one of {", ".join(OUTPUT_FORMATS)}, not "{name}"')
    return name


_KINDS: dict[str, Any] = {
    _STRINGS: _strings,
    _STRING: _string,
    _BOOL: _bool,
    _TABLE: _strings_by_pattern,
    "table": _table,
}
_VALUE_OF: dict[str, Any] = {"target-torch": _version, "output-format": _output_format}
_KINDS.update({_OPTION_OF[key].kind: check for key, check in _VALUE_OF.items()})

_SELECTION_KEYS = ("select", "ignore", "extend-select", "extend-ignore")


def _merge(settings: Settings, values: Mapping[str, Any], folder: Path) -> Settings:
    """The settings with one source's values on top; its relative paths are relative to ``folder``."""
    changes: dict[str, Any] = {
        key.replace("-", "_"): value
        for key, value in values.items()
        if key not in _SELECTION_KEYS and not key.startswith("extend-")
    }
    said = {key.replace("-", "_"): values[key] for key in _SELECTION_KEYS if key in values}
    if said:
        changes["selection"] = (*settings.selection, RuleSelection(**said))
    anchored = str(folder) != settings.root
    for key in ("exclude", "extend-exclude"):
        if key in values:
            patterns = _anchor(values[key], folder) if anchored else values[key]
            # What the command line adds doesn't take away what the file adds, as with Ruff.
            name = key.replace("-", "_")
            changes[name] = (*settings.extend_exclude, *patterns) if key == "extend-exclude" else patterns
    ignores = values.get("per-file-ignores", settings.per_file_ignores)
    more = values.get("extend-per-file-ignores", ())
    changes["per_file_ignores"] = (*ignores, *more)
    if "src" in values:
        changes["src"] = _absolute(values["src"], folder)
    for name in ("cache_dir", "baseline"):
        if name in changes:
            changes[name] = _absolute((changes[name],), folder)[0]
    return replace(settings, **changes)


def _anchor(patterns: Iterable[str], folder: Path) -> tuple[str, ...]:
    """Patterns with a slash, made absolute: they were meant relative to the folder they were typed in."""
    return tuple(str(folder / pattern) if "/" in pattern else pattern for pattern in patterns)


def _absolute(paths: Iterable[str], folder: Path) -> tuple[str, ...]:
    return tuple(os.path.normpath(folder / Path(path).expanduser()) for path in paths)


def _shown(file: Path) -> str:
    try:
        return str(file.relative_to(Path.cwd()))
    except ValueError:
        return str(file)
