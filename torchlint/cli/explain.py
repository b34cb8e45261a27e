"""Say what an error message, a whole traceback or a symptom means, what usually causes it, and what to write instead.

examples:
  torchlint explain "mat1 and mat2 shapes cannot be multiplied (32x256 and 512x10)"
  python train.py 2>&1 | torchlint explain
  torchlint explain train.log                 the last error of a log
  torchlint explain loss is nan               a symptom in words; 验证集精度比训练时差
  torchlint explain T-A1                      a failure by its id; TL401, TP103: a rule, a probe check
  torchlint explain --fix < traceback.txt     and repair the line that caused it

Where a traceback's files are at hand they are linted, and a finding that explains the error comes first.

exit codes: 0 recognised, 1 only a guess or nothing at all, 2 the run itself failed.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchlint.cli.terminal import add_color_argument, use_color
from torchlint.config import ConfigError

if TYPE_CHECKING:
    from torchlint.catalogue.explaining import Explanation
    from torchlint.catalogue.page import Page

MOST_BYTES = 8 * 1024 * 1024
"""Of a longer log only the end is read: that is where it went wrong."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``torchlint explain``."""
    parser.usage = "torchlint explain [OPTIONS] [MESSAGE | FILE | ID | -]"
    parser.add_argument(
        "question",
        nargs="*",
        metavar="MESSAGE|FILE|ID|-",
        help="what the screen says, a file that holds it, a symptom in words, an id, or - for standard input "
        "(the default when it is piped)",
    )
    parser.add_argument("--output-format", choices=("text", "json"), default="text")
    parser.add_argument(
        "--lang",
        choices=("auto", "en", "zh"),
        default="auto",
        help="the language of the answer; auto follows the locale",
    )
    parser.add_argument(
        "--fix", action="store_true", help="apply the fix of the finding that explains the error, and no other"
    )
    parser.add_argument(
        "--unsafe-fixes", action="store_true", help="with --fix: also when the fix may change what the program does"
    )
    add_color_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Explain; returns the exit code."""
    from torchlint.catalogue.explaining import by_id, of_text
    from torchlint.catalogue.page import Page

    if args.unsafe_fixes and not args.fix:
        raise ConfigError("--unsafe-fixes goes with --fix")
    question = _question(args.question)
    page = Page(_language(args.lang), _width(), use_color(args.color, sys.stdout))
    named = question.strip()
    code = _code(named)
    if code:
        return _tell_code(code, page, args.output_format)
    explanation = by_id(named) or of_text(question)
    _print(explanation, page, args.output_format)
    if args.fix:
        return _fix(explanation, unsafe=args.unsafe_fixes)
    return 0 if explanation.recognised else 1


def _question(words: list[str]) -> str:
    """The text to explain: the words themselves, a file's content, or standard input. Raises ConfigError."""
    if not words and sys.stdin.isatty():
        raise ConfigError("nothing to explain: give a message, a file, or pipe a program's output into it")
    if words in ([], ["-"]):
        return _decoded(_end_of_input())
    text = " ".join(words)
    if len(words) == 1 and len(text) < 1000 and "\n" not in text and os.path.isfile(text):  # noqa: PTH113 (any text is allowed)
        if text.endswith((".py", ".ipynb")):
            raise ConfigError(f"{text} is a program: `torchlint check {text}` says what is wrong in it")
        try:
            with Path(text).open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - MOST_BYTES))
                return _decoded(file.read())
        except OSError as error:
            raise ConfigError(f"{text}: {error.strerror}") from error
    if not text.strip():
        raise ConfigError("nothing to explain: the message is empty")
    return text


def _end_of_input() -> bytes:
    """The last bytes of standard input; a log may be as long as it likes."""
    kept = b""
    while chunk := sys.stdin.buffer.read(1024 * 1024):
        kept = (kept + chunk)[-MOST_BYTES:]
    if not kept.strip():
        raise ConfigError("nothing to explain: standard input is empty")
    return kept


def _decoded(data: bytes) -> str:
    """A log's bytes as text, whatever wrote it: PowerShell writes UTF-16."""
    for mark, encoding in ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"), (b"\xef\xbb\xbf", "utf-8")):
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, errors="replace")
    if data[:200].count(0) > len(data[:200]) // 3:
        return data.decode("utf-16-le", errors="replace")
    return data.decode("utf-8", errors="replace")


def _language(asked: str) -> str:
    if asked != "auto":
        return asked
    said = next((value for name in ("LC_ALL", "LC_MESSAGES", "LANG") if (value := os.environ.get(name))), "")
    if not said and sys.platform in ("win32", "darwin"):
        import locale

        said = locale.getlocale()[0] or ""
    return "zh" if said.lower().startswith(("zh", "chinese")) else "en"


def _width() -> int:
    try:
        columns = int(os.environ.get("COLUMNS") or 0) or os.get_terminal_size().columns
    except (ValueError, OSError):
        columns = 100
    return max(60, min(columns, 110))


def _print(explanation: Explanation, page: Page, output_format: str) -> None:
    if output_format == "json":
        import json

        from torchlint.catalogue.page import as_json

        print(json.dumps(as_json(explanation, page), indent=2, ensure_ascii=False))
    else:
        print(page.text(explanation), end="")


def _fix(explanation: Explanation, *, unsafe: bool) -> int:
    """Apply the first finding's fix, and say what became of it on standard error."""
    from torchlint.catalogue.at_hand import fix
    from torchlint.fixing.reporting import failed_lines, fixed_lines

    found = explanation.explained.findings
    if not found:
        print("torchlint: no finding explains this error, so there is nothing to fix", file=sys.stderr)
        return 1
    done = fix(found[0], explanation.places, unsafe=unsafe)
    lines = [*fixed_lines(done), *failed_lines(done)] if done and not done.error else []
    if done and done.error:
        lines = [f"not fixed {done.filename}: {done.error}"]
    if not lines:
        need = " without --unsafe-fixes" if found[0].fix is not None else ""
        lines = [f"{found[0].code} has no fix{need}"]
    print("\n".join(lines), file=sys.stderr)
    return 0 if done and done.result.fixed and not done.error else 1


def _code(text: str) -> str:
    """The code of a rule or probe check that is asked for by code or name, or nothing."""
    from torchlint.catalogue.page import code_names

    if text.upper() in code_names():
        return text.upper()
    return next((code for code, (name, _) in code_names().items() if name == text.lower() and "-" in name), "")


def _tell_code(code: str, page: Page, output_format: str) -> int:
    from torchlint.catalogue import failures
    from torchlint.catalogue.page import code_names, failures_found_by

    name, zh = code_names()[code]
    summary, text = _card(code)
    if page.language == "zh":
        summary = zh
    found = failures_found_by(code)
    if output_format == "json":
        import json

        titles: list[dict[str, Any]] = [
            {"id": each, "title": failures()[each].zh if page.language == "zh" else failures()[each].en}
            for each in found
        ]
        row = {"code": code, "name": name, "summary": summary, "explanation": text, "failures": titles}
        print(json.dumps(row, indent=2, ensure_ascii=False))
        return 0
    print(f"# {code} {name}\n\n{summary}\n")
    if text:
        print(f"{text}\n")
    print({"en": "The failures it finds:", "zh": "它能发现的问题："}[page.language])
    for each in found:
        print(f"  {each}  {failures()[each].zh if page.language == 'zh' else failures()[each].en}")
    return 0


def _card(code: str) -> tuple[str, str]:
    """A rule's summary and page, or what a probe check finds."""
    if code.startswith("TP"):
        from torchlint.probe.worker.names import FINDS

        return f"torchlint probe finds: {FINDS[code]}", ""
    from torchlint.engine.registry import rules

    card = next((card for card in rules() if card.code == code), None)
    return (card.summary, card.page.strip()) if card else ("", "")
