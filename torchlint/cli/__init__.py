"""The command line: which commands there are. A command's module is imported only when it is asked for."""

from __future__ import annotations

import errno
import sys
from collections.abc import Sequence

COMMANDS = {
    "check": "find faults in PyTorch programs (the default: `torchlint src/` is `torchlint check src/`)",
    "rule": "print a rule's page",
    "explain": "say what an error message or a symptom means, and which line caused it",
    "probe": "run a model on a batch of two and prove what reading can't",
    "doctor": "judge this machine's PyTorch installation",
    "trace": "show what torchlint knows about a file, line by line",
    "config": "list the keys of the configuration, and print the settings for a file",
    "merge": "join the reports of a run that was split by --shard",
    "clean": "delete the caches",
}

# Options that may stand before the command, as with Ruff, and how many values each takes.
_BEFORE_COMMAND = {"-q": 0, "--quiet": 0, "--isolated": 0, "--config": 1, "--color": 1}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Returns the exit code: 0 nothing found, 1 findings, 2 the run itself failed."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments and arguments[0] in ("-V", "--version"):
        from torchlint import __version__

        print(f"torchlint {__version__}")
        return 0
    if arguments and arguments[0] in ("-h", "--help", "help"):
        print(_overview(), end="")
        return 0
    command, rest = _split(arguments)
    return _run(command, rest)


def _split(arguments: list[str]) -> tuple[str, list[str]]:
    """The command and its arguments; options before it are handed on to it."""
    index = 0
    while index < len(arguments) and arguments[index] in _BEFORE_COMMAND:
        index += 1 + _BEFORE_COMMAND[arguments[index]]
    if index < len(arguments) and arguments[index] in COMMANDS:
        return arguments[index], arguments[:index] + arguments[index + 1 :]
    return "check", arguments


def _run(command: str, arguments: list[str]) -> int:
    import argparse
    import importlib
    from functools import partial

    from torchlint.config import ConfigError

    # A terminal or a pipe in an encoding that lacks a character of some message gets an escape, not a traceback.
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    try:
        module = importlib.import_module(f"torchlint.cli.{command}")
        parser = argparse.ArgumentParser(
            prog=f"torchlint {command}",
            description=module.__doc__,
            # Asked for the terminal's width, argparse would import all of shutil on every start.
            formatter_class=partial(argparse.RawDescriptionHelpFormatter, width=100, max_help_position=32),
            allow_abbrev=False,
        )
        module.add_arguments(parser)
        code: int = module.run(parser.parse_args(arguments))
        sys.stdout.flush()
    except SystemExit as stop:  # argparse, after it has printed help or what is wrong
        return stop.code if isinstance(stop.code, int) else 2
    except ConfigError as error:
        print(f"torchlint: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader (head, a pager) has gone; what it didn't want isn't an error
        _forget_output()
        return 0
    except KeyboardInterrupt:
        print("torchlint: interrupted", file=sys.stderr)
        return 130
    except Exception as error:
        if isinstance(error, OSError) and error.filename is None and error.errno in _FULL:
            _forget_output()
            print(f"torchlint: the output can't be written: {error.strerror}", file=sys.stderr)
            return 2
        import traceback

        traceback.print_exc()
        print("torchlint: this is a fault of torchlint, not of what it read; please report it", file=sys.stderr)
        return 2
    return code


_FULL = frozenset(getattr(errno, name) for name in ("ENOSPC", "EDQUOT", "EFBIG", "EIO") if hasattr(errno, name))


def _forget_output() -> None:
    """Point the descriptor elsewhere: Python would complain once more when it flushes at exit."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _overview() -> str:
    width = max(map(len, COMMANDS))
    lines = "\n".join(f"  {name:{width}}  {text}" for name, text in COMMANDS.items())
    return f"""\
torchlint reads PyTorch programs and tells, before anything runs, which line will crash, silently train nothing,
or waste the GPU.

usage: torchlint [COMMAND] [OPTIONS] [PATHS...]

commands:
{lines}

  torchlint COMMAND --help shows a command's options, torchlint --version the version.

exit codes: 0 nothing found (or all of it fixed), 1 findings, 2 the run itself failed.
"""
