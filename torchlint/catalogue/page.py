"""An explanation as text for people, and as values for JSON."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from torchlint.catalogue import failures, table
from torchlint.catalogue.answers import Answer, Cause
from torchlint.catalogue.explaining import NAMED, Explanation
from torchlint.catalogue.matching import GUESS, WORDS
from torchlint.reports.text import paint, printable

_WORDS = {
    "en": {
        "code": "In your code",
        "numbers": "In your message",
        "meaning": "What it means",
        "causes": "Usual causes, the likeliest first",
        "tell": "how to tell: ",
        "found": "Found by",
        "nothing_found": "nothing: source does not tell",
        "doctor": "judges the installation",
        "reference": "Reference",
        "also": "Also fits",
        "nearest": "Nearest entries",
        "guess": "a guess: torchlint does not know this message; the nearest entry is",
        "words": "from your description:",
        "at": "at",
        "fixable": "`torchlint explain --fix` applies this fix",
        "unsafe": "`torchlint explain --fix --unsafe-fixes` applies this fix",
        "elsewhere": "not at the line that failed, but in the same program",
        "nothing": "torchlint knows nothing like this. Paste the last lines of the traceback, or say what you see.",
        "more": "`torchlint explain {id}` says more",
    },
    "zh": {
        "code": "你的代码",
        "numbers": "你的报错里",
        "meaning": "含义",
        "causes": "常见原因（最可能的在前）",
        "tell": "如何判断：",
        "found": "可由以下检查发现",
        "nothing_found": "没有：源码里看不出来",
        "doctor": "检查安装环境",
        "reference": "参考",
        "also": "也可能是",
        "nearest": "最接近的条目",
        "guess": "猜测：torchlint 不认识这条信息，最接近的条目是",
        "words": "根据你的描述：",
        "at": "位于",
        "fixable": "用 `torchlint explain --fix` 应用这个修改",
        "unsafe": "用 `torchlint explain --fix --unsafe-fixes` 应用这个修改",
        "elsewhere": "不在报错的那一行，但在同一个程序里",
        "nothing": "torchlint 没有类似的条目。请粘贴调用栈的最后几行，或者描述你看到的现象。",
        "more": "`torchlint explain {id}` 查看详情",
    },
}


@cache
def code_names() -> dict[str, tuple[str, str]]:
    """Every rule and probe check by its code: name, and what it finds in Chinese."""
    rows = (line.split("\t") for line in table("codes").splitlines())
    return {code: (name, zh) for code, name, zh in rows}


@dataclass(frozen=True, slots=True)
class Page:
    """How a page is written: in which language, how wide, and whether in colour."""

    language: str
    width: int
    color: bool

    def word(self, key: str) -> str:
        return _WORDS[self.language][key]

    def text(self, explanation: Explanation) -> str:
        """The whole page, ended by a newline."""
        best = explanation.best
        if best is None:
            return f"{self.word('nothing')}\n"
        lines = [*self._head(explanation), ""]
        lines += self._code(explanation)
        lines += self._said(explanation)
        lines += [self._heading("meaning"), *self._wrapped(best.answer.meaning.said(self.language), "  "), ""]
        lines += [self._heading("causes"), *self._causes(self.causes_of(explanation)), ""]
        lines += self._found_by(best.answer)
        lines.append(f"{self._heading('reference')}  {best.answer.url}")
        lines += self._others(explanation)
        return "\n".join(lines) + "\n"

    def causes_of(self, explanation: Explanation) -> list[Cause]:
        """The causes of the best answer: those that a finding or the text speaks for come first."""
        best = explanation.best
        if best is None:
            return []
        codes = {finding.code for finding in explanation.explained.findings}
        causes = best.causes(explanation.transcript.text)
        return sorted(causes, key=lambda cause: not codes.intersection(cause.checks))

    def _head(self, explanation: Explanation) -> Iterator[str]:
        best = explanation.best
        assert best is not None
        answer, raised = best.answer, explanation.raised
        if best.basis in (GUESS, WORDS):
            yield paint(self.word("guess" if best.basis == GUESS else "words"), "yellow", self.color)
        title = paint(answer.title.said(self.language), "bold", self.color)
        yield f"{paint(answer.ids[0], 'cyan', self.color)}  {title}"
        if raised and best.basis != NAMED:
            yield from self._wrapped(printable(raised.first_line), "  ")
        if explanation.places:
            place = explanation.places[0]
            source = f": {place.frame.source}" if place.frame.source else ""
            yield f"  {self.word('at')} {printable(place.shown + source)}"

    def _code(self, explanation: Explanation) -> Iterator[str]:
        found = explanation.explained.findings
        if not found:
            return
        from torchlint.cli.quoting import Quotes
        from torchlint.finding import Applicability
        from torchlint.reports import ReportContext, render

        context = ReportContext(line_of=Quotes().line, color=self.color, closing="")
        note = "" if explanation.explained.at_the_line else f" ({self.word('elsewhere')})"
        yield f"{self._heading('code')}{note}"
        yield from (f"  {line}" if line else "" for line in render("full", found[:1], context).rstrip("\n").split("\n"))
        if found[0].fix is not None:
            yield f"  {self.word('fixable' if found[0].fix.applicability is Applicability.SAFE else 'unsafe')}"
        if found[1:]:
            yield from (f"  {line}" for line in render("concise", found[1:4], context).splitlines())
        yield ""

    def _said(self, explanation: Explanation) -> Iterator[str]:
        if not explanation.said:
            return
        yield self._heading("numbers")
        for said in explanation.said:
            sentence = said.reading.zh if self.language == "zh" else said.reading.en
            yield from self._wrapped(printable(sentence), "  ")
            for line in said.lines:
                yield f"    {printable(f'{line.filename}:{line.row}: {line.text}')}"
        yield ""

    def _causes(self, causes: Sequence[Cause]) -> Iterator[str]:
        for number, cause in enumerate(causes, 1):
            mark = f"{number}. "
            yield from self._wrapped(cause.what.said(self.language), "  " + " " * len(mark), "  " + mark)
            tell = self.word("tell") + cause.tell.said(self.language)
            yield from self._wrapped(tell, "  " + " " * len(mark))
            yield ""
            yield from (paint(f"       - {line}".rstrip(), "red", self.color) for line in cause.before.split("\n"))
            yield from (paint(f"       + {line}".rstrip(), "green", self.color) for line in cause.after.split("\n"))
            if number < len(causes):
                yield ""

    def _found_by(self, answer: Answer) -> Iterator[str]:
        yield self._heading("found")
        for tool, codes in (("torchlint check", answer.checks), ("torchlint probe", answer.probe)):
            if codes:
                # A code and its name stay on one line.
                named = ", ".join(f"{code}\xa0{code_names()[code][0]}" for code in codes)
                yield from (line.replace("\xa0", " ") for line in self._wrapped(f"{tool}: {named}", "    ", "  "))
        if answer.doctor:
            yield f"  torchlint doctor: {self.word('doctor')}"
        if not (answer.checks or answer.probe or answer.doctor):
            yield f"  {self.word('nothing_found')}"
        yield ""

    def _others(self, explanation: Explanation) -> Iterator[str]:
        best, *others = explanation.matches
        if not others:
            return
        yield ""
        yield self._heading("nearest" if best.basis == GUESS else "also")
        for other in others:
            identifier = other.answer.ids[0]
            yield f"  {paint(identifier, 'cyan', self.color)}  {other.answer.title.said(self.language)}"
        yield f"  {self.word('more').format(id=others[0].answer.ids[0])}"

    def _heading(self, key: str) -> str:
        return paint(self.word(key), "bold", self.color)

    def _wrapped(self, text: str, indent: str, first: str | None = None) -> list[str]:
        return wrap(text, self.width, indent, first)


def wrap(text: str, width: int, indent: str, first: str | None = None) -> list[str]:
    """Text broken into lines of at most ``width`` columns: at spaces, and anywhere beside a Chinese character."""
    lines, line, used = [], indent if first is None else first, len(indent)
    for piece, space in _pieces(text):
        size = _columns(piece)
        if used + space + size > width and line.strip():
            lines.append(line.rstrip())
            line, used, space = indent, len(indent), 0
        line += " " * space + piece
        used += space + size
    return [*lines, line.rstrip()]


def _pieces(text: str) -> Iterator[tuple[str, int]]:
    """What may not be broken, and the spaces before it; closing punctuation stays with what it closes."""
    for index, word in enumerate(text.split(" ")):
        piece, space = "", int(index > 0)
        for char in word:
            if piece and (_wide(char) or _wide(piece[-1])) and char not in "，。；：、？！）」”":
                yield piece, space
                piece, space = "", 0
            piece += char
        yield piece, space


def _wide(char: str) -> bool:
    return char > "\u2e7f" and unicodedata.east_asian_width(char) in "WF"


def _columns(text: str) -> int:
    return len(text) if text.isascii() else sum(2 if _wide(char) else 1 for char in text)


# -------------------------------------------------------------------------------------------------------------- JSON


def as_json(explanation: Explanation, page: Page) -> dict[str, Any]:
    """The explanation as values: what ``--output-format json`` prints."""
    best = explanation.best
    raised = explanation.raised
    return {
        "recognised": explanation.recognised,
        "basis": best.basis if best else None,
        "language": page.language,
        "error": {"type": raised.type, "message": raised.message} if raised else None,
        "frames": [_frame(place) for place in explanation.places],
        "findings": _findings(explanation),
        "at_the_line": explanation.explained.at_the_line,
        "in_your_message": [
            {
                "text": said.reading.zh if page.language == "zh" else said.reading.en,
                "lines": [{"filename": line.filename, "row": line.row, "source": line.text} for line in said.lines],
            }
            for said in explanation.said
        ],
        "answers": [
            {
                "id": match.answer.ids[0],
                "ids": list(match.answer.ids),
                "title": match.answer.title.said(page.language),
                "basis": match.basis,
                "score": round(match.score, 3),
                "meaning": match.answer.meaning.said(page.language),
                "causes": [
                    _cause(cause, page.language)
                    for cause in (page.causes_of(explanation) if match is best else match.answer.causes)
                ],
                "rules": [_code(code) for code in match.answer.checks],
                "probe": [_code(code) for code in match.answer.probe],
                "doctor": match.answer.doctor,
                "reference": match.answer.url,
            }
            for match in explanation.matches
        ],
    }


def _frame(place: Any) -> dict[str, Any]:
    return {
        "filename": place.shown.rpartition(":")[0] if place.frame.row else place.shown,
        "row": place.frame.row,
        "function": place.frame.function,
        "source": place.frame.source,
        "at_hand": place.file is not None,
    }


def _findings(explanation: Explanation) -> list[Any]:
    found = explanation.explained.findings
    if not found:
        return []
    from torchlint.reports.rows import row

    return [row(finding) for finding in found]


def _cause(cause: Cause, language: str) -> dict[str, Any]:
    return {
        "cause": cause.what.said(language),
        "how_to_tell": cause.tell.said(language),
        "before": cause.before,
        "after": cause.after,
        "rules": list(cause.checks),
    }


def _code(code: str) -> dict[str, str]:
    return {"code": code, "name": code_names()[code][0]}


def failures_found_by(code: str) -> list[str]:
    """The ids of the failures that a rule or a probe check finds."""
    from torchlint.catalogue.answers import all_answers

    found = {slug for slug, answer in all_answers().items() if code in answer.checks or code in answer.probe}
    return [failure.id for failure in failures().values() if found.intersection(failure.answers)]
