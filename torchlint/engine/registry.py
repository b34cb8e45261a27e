"""Which checks there are: every Check in a module below ``torchlint.checks``, and those of plugins.

A check is found by where it stands. There is no list to keep in step: a new file in a family's folder is a new rule.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING

from torchlint.check import Check
from torchlint.config import ConfigError

if TYPE_CHECKING:
    from torchlint.config import Settings
    from torchlint.finding import RuleInfo

BUILT_IN = "torchlint.checks"


def all_checks(plugins: Sequence[str] = (), root: str = "") -> tuple[type[Check], ...]:
    """All checks by code. ``root`` is the folder that plugins may be imported from besides the environment.

    Raises ConfigError if a plugin can't be imported or two checks share a code or a name.
    """
    return _load(tuple(plugins), root if plugins else "")


def rules(plugins: Sequence[str] = (), root: str = "") -> list[RuleInfo]:
    """The cards of all rules by code."""
    return [check.info() for check in all_checks(plugins, root)]


def checks_for(settings: Settings) -> tuple[type[Check], ...]:
    """All checks that a configuration knows of, selected or not."""
    return all_checks(settings.plugins, settings.root)


@cache
def _load(plugins: tuple[str, ...], root: str) -> tuple[type[Check], ...]:
    found: dict[str, type[Check]] = {}
    names: dict[str, type[Check]] = {}
    modules = list(_below(importlib.import_module(BUILT_IN)))
    for plugin in plugins:
        modules += _plugin(plugin, root)
    for module in modules:
        for check in _checks_in(module):
            other = found.get(check.code) or names.get(check.name)
            if other is not None and other is not check:
                raise ConfigError(
                    f"two rules are called {check.code} {check.name}: "
                    f"{other.__module__}.{other.__qualname__} and {module.__name__}.{check.__qualname__}"
                )
            found[check.code] = names[check.name] = check
    return tuple(found[code] for code in sorted(found))


def _checks_in(module: ModuleType) -> Iterator[type[Check]]:
    for value in vars(module).values():
        if (
            isinstance(value, type)
            and issubclass(value, Check)
            and value.__module__ == module.__name__
            and hasattr(value, "code")
        ):
            yield value


def _below(package: ModuleType) -> Iterator[ModuleType]:
    """A module and, for a package, all modules below it, by name."""
    yield package
    folders = getattr(package, "__path__", None)
    if folders is None:
        return
    for name in sorted(_module_names(list(folders))):
        yield from _below(importlib.import_module(f"{package.__name__}.{name}"))


def _module_names(folders: list[str]) -> set[str]:
    try:
        listed = [name for folder in folders for name in os.listdir(folder)]
    except OSError:  # not in folders but in a zip file or the like
        return {info.name for info in pkgutil.iter_modules(folders)}
    stems = {name.removesuffix(".py") for name in listed if name.endswith(".py") or "." not in name}
    return {stem for stem in stems if stem.isidentifier() and not stem.startswith("__")}


def _plugin(name: str, root: str) -> list[ModuleType]:
    added = root not in sys.path
    if added:
        sys.path.insert(0, root)
    try:
        return list(_below(importlib.import_module(name)))
    except Exception as error:
        raise ConfigError(f'the plugin "{name}" can\'t be imported: {type(error).__name__}: {error}') from error
    finally:
        if added and root in sys.path:
            sys.path.remove(root)
