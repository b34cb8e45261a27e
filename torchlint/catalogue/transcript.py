"""From what the screen shows to the error that was raised.

A log comes with colours, progress bars, box drawings, time stamps, ranks and quotation marks; with tracebacks of
Python, IPython, pytest and rich; with several of them chained, or one inside another's message. What comes out is
every error in the order in which it was printed, and what stood around them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

LONGEST_MESSAGE = 60
"""Lines of a message that are read: a longer one is followed by something else."""

LONGEST_LINE = 4000
"""Characters of a line that is still looked into for frames and errors; a list of keys may be longer."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A place of a traceback; ``source`` is the line as the traceback quotes it, if it does."""

    path: str
    row: int
    function: str
    source: str = ""


@dataclass(slots=True)
class Raised:
    """An error: its type as printed, its message, and the frames from the outermost to where it was raised."""

    type: str = ""
    message: str = ""
    frames: list[Frame] = field(default_factory=list)

    @property
    def text(self) -> str:
        return f"{self.type}: {self.message}" if self.message else self.type

    @property
    def first_line(self) -> str:
        return self.text.split("\n", 1)[0].strip()


@dataclass(frozen=True, slots=True)
class Transcript:
    """A text taken apart. ``errors`` are in printed order: the last is the one that ended the program.

    ``warnings`` have one frame each, the line that Python names for them.
    """

    text: str
    errors: tuple[Raised, ...]
    warnings: tuple[Raised, ...]
    rest: str

    @property
    def raised(self) -> Raised | None:
        return self.errors[-1] if self.errors else None


def read(text: str) -> Transcript:
    """Take a text apart. Nothing is refused: what holds no error is all rest."""
    lines = list(_clean(text))
    reader = _Reader()
    for line in lines:
        reader.take(line)
    reader.end()
    return Transcript("\n".join(lines), tuple(reader.errors), tuple(reader.warnings), "\n".join(reader.rest))


# ------------------------------------------------------------------------------------------------------- cleaning

_ESCAPES = re.compile(
    r"(?:\x1b|\\u001b|\\x1b|\\033|\\e)\[[0-?]*[ -/]*[@-~]"  # colours and cursor, as they are or as a log spells them
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # titles and links
    r"|\x1b[@-Z\\-_]"
    r"|\[(?:\d{1,2};)*\d{1,2}m"  # what is left of a colour when the escape character was dropped
    r"|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]"
)
_LEVEL = r"(?:DEBUG|INFO|NOTICE|WARNING|WARN|ERROR|CRITICAL|FATAL|EXCEPTION)"
_PREFIXES = re.compile(
    r"\[(?:rank|default|local_rank|node)[ :_]*\d+\]:?[ ]?"  # torchrun, Lightning
    r"|\[\d+,\d+\]<std(?:err|out)>:[ ]?"  # mpirun
    r"|\(\w[\w.-]*[ ]pid=\d+(?:,[ ]ip=[\d.]+)?\)[ ]?"  # Ray
    r"|[\w.-]+[-_]\d+[ ]*\|[ ]"  # docker compose
    r"|\[?\d{4}-\d\d-\d\d[T ,]+\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[ ]?[+-]\d\d:?\d\d)?\]?[ :]*"  # time stamps
    r"|\[?\d\d:\d\d:\d\d(?:[.,]\d+)?\]?[ ]+"
    r"|[EWIF]\d{4,8}[ ]\d\d:\d\d:\d\d(?:\.\d+)?[ ]+(?:\d+[ ]+)?\S+:\d+\][ ]?"  # glog
    rf"|-[ ](?:[\w.]+[ ]-[ ])?{_LEVEL}[ ]-[ ](?:[\w.]+[ ]-[ ])?"  # logging's usual format, after its time
    rf"|\|[ ]*{_LEVEL}[ ]*\|[ ](?:[\w.<>]+:[\w.<>]+:\d+[ ]-[ ])?"  # loguru
    rf"|\[{_LEVEL}\][ ]*:?[ ]?(?:\[[\w.]+\][ ]?)?"
    rf"|{_LEVEL}:[\w.]+:[ ]?"  # logging.basicConfig
    r"|(?:stderr|stdout)[ ]*[:|][ ]?"
)
_PYTEST = re.compile(r"E {3,}(?=\S)|E$")
_QUOTED = re.compile(r"(?:>[ ]?)+")
_BOX = re.compile(r"[│┃╎┊┆]")
_RULE = re.compile(r"^[\s─━╭╮╰╯┌┐└┘├┤═╔╗╚╝▲▼╷╵+|*=~_-]+$")


def _clean(text: str) -> Iterator[str]:
    """The lines without what a terminal, a launcher or a log adds."""
    if text.count("\\n") > max(2, 4 * text.count("\n")):
        text = text.replace("\\r\\n", "\n").replace("\\n", "\n").replace("\\t", "\t")  # a message inside JSON
    lines = [_ESCAPES.sub("", line) for line in re.split(r"\r?\n|\x0b|\x85|\u2028|\u2029", text)]
    for line in _by_rank([line.rstrip("\r").rpartition("\r")[2] for line in lines]):
        yield _without_frame(_without_prefixes(line))


def _by_rank(lines: list[str]) -> list[str]:
    """The lines of several processes apart, each one's in its own order."""
    ranks = [re.match(r"\[(?:rank|default)(\d+)\]:", line) for line in lines]
    if len({found[1] for found in ranks if found}) < 2:
        return lines
    order = [found[1] if found else "" for found in ranks]
    first_seen = list(dict.fromkeys(order))
    return [line for _, line in sorted(zip(order, lines, strict=True), key=lambda pair: first_seen.index(pair[0]))]


def _without_prefixes(line: str) -> str:
    for _ in range(6):
        stripped = line.lstrip()
        found = _PREFIXES.match(stripped) or _PYTEST.match(line)
        if not found and stripped.startswith(">") and not stripped.startswith(">>>"):
            found = _QUOTED.match(stripped)
        if not found:
            return line
        line = (line if found.re is _PYTEST else stripped)[found.end() :]
    return line


def _without_frame(line: str) -> str:
    """A line of a box (rich) or of an exception group without its frame."""
    if _BOX.match(line.lstrip()):
        return _BOX.sub("", line, count=1).rstrip("│┃╎┊┆ ")
    if re.match(r"\s*\|\s", line):
        return line.lstrip()[1:]
    return "" if line.strip() and _RULE.match(line) else line


# --------------------------------------------------------------------------------------------------------- parsing

_START = re.compile(r"\bTraceback \(most recent call last\)")
_CHAINED = re.compile(
    r"During handling of the above exception|The above exception was the direct cause|another exception occurred"
)
_FRAMES = (
    re.compile(r'\s*File "(?P<path>[^"\n]+)", line (?P<row>\d+)(?:, in (?P<function>.+))?\s*$'),
    re.compile(r"\s*File (?P<path>[^\s\"][^\n\"]*?):(?P<row>\d+)(?:, in (?P<function>.+))?\s*$"),  # IPython 8
    re.compile(r"\s*(?:Cell )?In ?\[(?P<row>\d+)\],? (?P<function>line \d+|in <.*>.*)\s*$"),
    re.compile(r"(?P<path>(?:~|/|[A-Za-z]:\\|\.{1,2}/)\S*\.py|<ipython-input-\S+>) in (?P<function>\S+\(.*|<.*>.*)$"),
    re.compile(r"\s*(?P<path>(?:~|/|[A-Za-z]:\\)\S*\.py):(?P<row>\d+) in (?P<function>\S+)\s*$"),  # rich
    re.compile(r"(?P<path>[\w./\\-]+\.py):(?P<row>\d+):\s*(?:in (?P<function>\S+)|[A-Z]\w*)?\s*$"),  # pytest
)
_ARROW = re.compile(r"\s*(?:-+>|❱)\s*(\d+)\s?(.*)$")
_TYPE = r"(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*"
_ERROR = re.compile(
    r"(?P<indent>\s*)(?P<type>(?:[A-Za-z_]\w*\.)*[A-Z]\w*"
    r"(?:Error|Exception|Warning|Interrupt|Exit|Unsupported|Iteration|Failed|Failure|Timeout|Violation|Node)"
    r"|(?:[A-Za-z_]\w*\.)+(?:Unsupported|Empty|Full))(?::\s?(?P<message>.*)|\s*)$"
)
_ANY_ERROR = re.compile(rf"(?P<type>{_TYPE})(?::\s(?P<message>.*)|:?\s*)$")
_WARNING = re.compile(
    r"(?P<path>(?:[A-Za-z]:[\\/])?[\w.~/\\ -]+?\.py|<[\w -]+>):(?P<row>\d+): (?P<type>[\w.]*Warning): (?P<message>.*)$"
)


class _Reader:
    """Reads lines one after another; an error is known when the next thing begins."""

    def __init__(self) -> None:
        self.errors: list[Raised] = []
        self.warnings: list[Raised] = []
        self.rest: list[str] = []
        self._frames: list[Frame] = []
        self._in_traceback = False
        self._current: Raised | None = None
        self._warned: Frame | None = None
        self._message: list[str] = []

    def take(self, line: str) -> None:
        """Take the next line."""
        if len(line) > LONGEST_LINE:
            (self._message if self._current else self.rest).append(line)
        elif not (self._take_warning(line) or self._take_mark(line) or self._take_frame(line)):
            found = self._error_at(line)
            if found is not None:
                self._open(found["type"], found["message"] or "")
            elif self._current is not None and len(self._message) < LONGEST_MESSAGE:
                self._message.append(line)
            else:
                self._close()
                self.rest.append(line)

    def _take_warning(self, line: str) -> bool:
        """A line that begins a warning, or one that ends it."""
        found = _WARNING.search(line) if "Warning: " in line else None
        if found:
            self._open(found["type"], found["message"])
            self._warned = Frame(found["path"].strip(), int(found["row"]), "")
            return True
        return self._warned is not None and self._end_of_warning(self._warned, line)

    def _take_mark(self, line: str) -> bool:
        """A line that says that a traceback begins, or what one error has to do with the next."""
        if _START.search(line):
            self._close(before=line[: line.index("Traceback")])
            self._in_traceback, self._frames = True, []
            return True
        if _CHAINED.search(line):
            self._close()
            self._in_traceback = False
            return True
        return False

    def _take_frame(self, line: str) -> bool:
        """A frame of a traceback, or the source line below one."""
        frame = _frame(line)
        if frame is None:
            return self._current is None and self._quote(line)
        if self._current is None or self._has_frames_of_another(line):
            self._close()
            self._frames.append(frame)
        else:
            # pytest's last line, or the user's code that a compiler quotes.
            self._current.frames.append(frame)
            self._message.append(line)
        return True

    def end(self) -> None:
        self._close()

    def _error_at(self, line: str) -> re.Match[str] | None:
        if self._current is not None:
            # Inside a message only a line that can be nothing else begins another error.
            found = _ERROR.match(line) if self._after_gap() else None
            return found if found and not found["indent"] and found["message"] is not None else None
        found = _ERROR.match(line)
        if found is None and self._in_traceback and self._frames and line[:1].strip():
            found = _ANY_ERROR.match(line)
        return found

    def _after_gap(self) -> bool:
        """A message has ended: an empty line or a list of frames stands in between."""
        return bool(self._message) and (not self._message[-1].strip() or self._message[-1].lstrip().startswith("File "))

    def _open(self, kind: str, message: str) -> None:
        self._close()
        self._current = Raised(kind, frames=self._frames)
        self._message = [message]
        self._frames, self._in_traceback = [], False

    def _close(self, before: str = "") -> None:
        if before.strip():
            self._message.append(before)
        if self._current is not None:
            self._current.message = "\n".join(self._message).strip()
            if self._warned:
                self._current.frames.insert(0, self._warned)
            (self.warnings if self._warned else self.errors).append(self._current)
        self._current, self._warned, self._message = None, None, []

    def _end_of_warning(self, place: Frame, line: str) -> bool:
        """What is indented below a warning: the source line that Python quotes ends it; frames, as anomaly mode gives
        them, belong to it. An empty line ends it too.
        """
        if line.strip() and not line.startswith((" ", "\t")):
            return False
        frames = self._current.frames if self._current else []
        frame = _frame(line)
        if frame:
            frames.append(frame)
        elif frames and line.strip():
            last = frames[-1]
            frames[-1] = Frame(last.path, last.row, last.function, last.source or line.strip())
        else:
            self._warned = Frame(place.path, place.row, "", line.strip())
            self._close()
        return True

    def _has_frames_of_another(self, line: str) -> bool:
        """A frame after a message begins the next traceback, unless the message itself quotes frames."""
        return not line.startswith(" ") and not self._current_quotes()

    def _current_quotes(self) -> bool:
        return any("from user code" in line or "Original Traceback" in line for line in self._message)

    def _quote(self, line: str) -> bool:
        """Add a quoted source line to the frame before it; an arrow also tells its row."""
        if not self._frames:
            return False
        last = self._frames[-1]
        arrow = _ARROW.match(line)
        if arrow:
            self._frames[-1] = Frame(
                last.path, last.row or int(arrow[1]), last.function, arrow[2].strip() or last.source
            )
            return True
        if line.strip() and line[0] in " \t" and not _ERROR.match(line):
            if not last.source and not re.match(r"\s*\d+\s|\s*[\^~]+\s*$", line):
                self._frames[-1] = Frame(last.path, last.row, last.function, line.strip())
            return True
        return False


def _frame(line: str) -> Frame | None:
    for pattern in _FRAMES:
        found = pattern.match(line)
        if found:
            groups = found.groupdict()
            path = groups.get("path") or f"<cell {groups['row']}>"
            return Frame(
                path, int(groups.get("row") or 0) if "path" in groups else 0, (groups.get("function") or "").strip()
            )
    return None
