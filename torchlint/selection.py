"""Which rules run, and which of them may be fixed: selectors resolved as Ruff resolves them.

A selector is ``ALL``, a prefix of codes (``TL1``), a code (``TL101``) or a rule's name (``missing-super-init``). Within
one source the more specific selector wins, whatever the order, and of two equally specific ones the one that ignores.
What the command line says comes on top of what the file says; its ``--select`` starts afresh.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from torchlint.config import Settings, setting_error
from torchlint.finding import Severity
from torchlint.source.globs import Patterns


class Rule(Protocol):
    """What selection needs to know of a rule: check classes and their cards both have it."""

    @property
    def code(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def severity(self) -> Severity: ...


ALWAYS = ("TL001", "TL003")
"""What could not be read or checked is told whatever is selected, unless it is ignored by its code: who asks for two
rules must not take a file that was never parsed for a clean one."""

# The checks of `torchlint probe` are selected in the same lists; that they exist is for probe to judge.
_PROBE = re.compile(r"TP\d{0,3}")


def selected_codes(settings: Settings, rules: Sequence[Rule]) -> frozenset[str]:
    """The codes of the rules that run. Raises ConfigError for a selector that fits no rule."""
    on = {rule.code for rule in rules if rule.severity is not Severity.INFO}
    carried: tuple[str, ...] = ()
    for source in settings.selection:
        ignore = (*source.ignore, *source.extend_ignore)
        selectors = [(text, True, key) for key in ("select", "extend-select") for text in _said(source, key)]
        selectors += [(text, False, key) for key in ("ignore", "extend-ignore") for text in _said(source, key)]
        if source.select is not None:
            on = {rule.code for rule in rules if rule.code in ALWAYS}
            selectors += [(text, False, "ignore") for text in carried]
        # Python's sort is stable, so that an equally specific ignore comes after its select and wins.
        for text, enable, key in sorted(selectors, key=lambda said: _specificity(said[0])):
            codes = _matching(settings, rules, text, key)
            on = on | codes if enable else on - codes
        alone = source.select is None and not source.extend_select
        # Rules that a file only ignores stay ignored under a command line's --select.
        carried = ignore if alone else ()
    return frozenset(on)


def fixable_codes(settings: Settings, rules: Sequence[Rule]) -> frozenset[str]:
    """The codes of the rules whose fixes may be applied."""
    on: frozenset[str] = frozenset()
    for text in settings.fixable:
        on |= _matching(settings, rules, text, "fixable")
    for text in settings.unfixable:
        on -= _matching(settings, rules, text, "unfixable")
    return on


def ignored_codes(settings: Settings, path: str, rules: Sequence[Rule]) -> frozenset[str]:
    """The codes that ``per-file-ignores`` turns off in one file."""
    off: frozenset[str] = frozenset()
    file = Path(settings.root, path)
    for pattern, selectors in settings.per_file_ignores:
        inverted = pattern.startswith("!")
        matched = Patterns([pattern[inverted:]], settings.root).match(file.name, str(file))
        if matched is not inverted:
            for text in selectors:
                off |= _matching(settings, rules, text, "per-file-ignores", pattern)
    return off


def check_selectors(settings: Settings, rules: Sequence[Rule]) -> None:
    """Raise ConfigError if any selector of the settings fits no rule, in whatever file it would count."""
    selected_codes(settings, rules)
    fixable_codes(settings, rules)
    for pattern, selectors in settings.per_file_ignores:
        for text in selectors:
            _matching(settings, rules, text, "per-file-ignores", pattern)


def _said(source: object, key: str) -> tuple[str, ...]:
    said: tuple[str, ...] | None = getattr(source, key.replace("-", "_"))
    return said or ()


def _specificity(text: str) -> int:
    if text == "ALL":
        return 0
    # A name is as specific as a whole code.
    return len(text) if re.fullmatch(r"[A-Z]+\d{0,2}", text) else 100


def _matching(settings: Settings, rules: Sequence[Rule], text: str, *key: str) -> frozenset[str]:
    if text == "ALL":
        return frozenset(rule.code for rule in rules)
    letters = re.match(r"[A-Z]+", text)
    if letters:
        found = frozenset(
            rule.code for rule in rules if rule.code.startswith(text) and rule.code.rstrip("0123456789") == letters[0]
        )
    else:
        found = frozenset(rule.code for rule in rules if rule.name == text)
    if not found and not _PROBE.fullmatch(text):
        raise setting_error(settings, key, text, _unknown(rules, text))
    return found


def _unknown(rules: Iterable[Rule], text: str) -> str:
    import difflib

    names = [text for rule in rules for text in (rule.code, rule.name)]
    message = f'no rule is called "{text}"'
    near = difflib.get_close_matches(text, names, n=1) or difflib.get_close_matches(text.upper(), names, n=1)
    return f'{message}; did you mean "{near[0]}"?' if near else f"{message}; `torchlint rule --all` lists the rules"
