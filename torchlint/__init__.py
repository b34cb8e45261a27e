"""torchlint reads PyTorch programs and tells, before anything runs, which line will fail.

    >>> from torchlint import lint_source
    >>> findings = lint_source("import torch\\n...", filename="net.py")

What is offered here is loaded when it is first asked for, so that ``import torchlint`` costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchlint.api import lint_paths, lint_source
    from torchlint.config import ConfigError, Settings, load_settings
    from torchlint.finding import Applicability, Edit, Finding, Fix, Position, RuleInfo, Severity

__version__ = "0.1.0"

__all__ = [
    "Applicability",
    "ConfigError",
    "Edit",
    "Finding",
    "Fix",
    "Position",
    "RuleInfo",
    "Settings",
    "Severity",
    "__version__",
    "lint_paths",
    "lint_source",
    "load_settings",
]

_HOME = {
    "lint_paths": "torchlint.api",
    "lint_source": "torchlint.api",
    "ConfigError": "torchlint.config",
    "Settings": "torchlint.config",
    "load_settings": "torchlint.config",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'torchlint' has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(_HOME.get(name, "torchlint.finding")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
