"""List the keys of the configuration with what they do, or print the settings that a file or folder gets.

examples:
  torchlint config                 every key with its default
  torchlint config select          what one key takes, with an example
  torchlint config --show src/     the settings for src/, and the file they come from
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict

from torchlint.config import OPTIONS, ConfigError, Option, load_settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``torchlint config``."""
    parser.add_argument("key", nargs="?", help="a key to explain")
    parser.add_argument("--show", metavar="PATH", help="print the settings for a file or folder, as JSON")
    parser.add_argument("--config", action="append", default=[], metavar="FILE|TOML", help="with --show: as in check")
    parser.add_argument("--isolated", action="store_true", help="with --show: read no configuration file")
    parser.add_argument("--output-format", choices=("text", "json"), default="text")


def run(args: argparse.Namespace) -> int:
    """Print; exit code 2 for a key that doesn't exist."""
    import json

    if args.show is not None:
        settings = load_settings(args.show, config=args.config, isolated=args.isolated)
        print(json.dumps(asdict(settings), indent=2))
        return 0
    if args.key is not None and args.key not in {option.key for option in OPTIONS}:
        raise ConfigError(f'there is no key "{args.key}"; `torchlint config` lists them')
    options = [option for option in OPTIONS if args.key in (None, option.key)]
    if args.output_format == "json":
        print(json.dumps([asdict(option) for option in options], indent=2))
    elif args.key is not None:
        print(_page(options[0]))
    else:
        width = max(len(option.key) for option in options)
        sys.stdout.write("".join(f"{option.key:{width}}  {option.doc}\n" for option in options))
    return 0


def _page(option: Option) -> str:
    return f"{option.doc}\n\ntakes:   {option.kind}\ndefault: {option.default}\nexample: {option.example}"
