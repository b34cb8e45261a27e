"""Print a rule's page: what it finds, why that is a fault, what to write instead.

examples:
  torchlint rule TL101
  torchlint rule missing-super-init
  torchlint rule --all --output-format json
"""

from __future__ import annotations

import argparse
from typing import Any

from torchlint.config import ConfigError, load_settings
from torchlint.finding import RuleInfo


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``torchlint rule``."""
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("rule", nargs="?", metavar="CODE|NAME", help="a rule's code or name")
    what.add_argument("--all", action="store_true", help="every rule")
    parser.add_argument("--output-format", choices=("text", "json"), default="text")


def run(args: argparse.Namespace) -> int:
    """Print the page or the pages; exit code 2 for a rule that doesn't exist."""
    from torchlint.engine.registry import rules

    cards = rules(load_settings().plugins)
    if not args.all:
        wanted = args.rule.strip()
        found = [card for card in cards if wanted.upper() == card.code or wanted.lower() == card.name]
        if not found:
            raise ConfigError(_unknown(wanted, cards))
        cards = found
    if args.output_format == "json":
        import json

        rows = [_row(card) for card in cards]
        print(json.dumps(rows if args.all else rows[0], indent=2))
    else:
        print("\n\n".join(_page(card) for card in cards))
    return 0


def _page(card: RuleInfo) -> str:
    fix = f"{card.fix} fix" if card.fix else "no fix"
    return f"# {card.code} {card.name}\n\n{card.severity}, {fix}\n\n{card.page.strip()}"


def _row(card: RuleInfo) -> dict[str, Any]:
    return {
        "code": card.code,
        "name": card.name,
        "severity": card.severity.value,
        "fix": card.fix.value if card.fix else None,
        "summary": card.summary,
        "explanation": card.page,
        "failures": list(card.failures),
    }


def _unknown(wanted: str, cards: list[RuleInfo]) -> str:
    import difflib

    names = {name.lower(): name for card in cards for name in (card.code, card.name)}
    near = difflib.get_close_matches(wanted.lower(), names, n=1)
    hint = f'did you mean "{names[near[0]]}"?' if near else "`torchlint rule --all` lists them"
    return f'there is no rule "{wanted}"; {hint}'
