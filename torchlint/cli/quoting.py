"""Source lines for reports, read when a report wants to quote them."""

from __future__ import annotations

from torchlint.source.file import SourceFile, UnreadableSource, read_source


class Quotes:
    """Looks up lines by the names that findings have. Findings come file by file, so one file at a time is kept."""

    def __init__(self, stdin: SourceFile | None = None) -> None:
        self._stdin = stdin
        self._filename: str | None = None
        self._source: SourceFile | None = None

    def line(self, filename: str, cell: int | None, row: int) -> str | None:
        """A line without its end; None if there is none, or the file is gone or can't be read as text."""
        source = self._of(filename)
        if source is None:
            return None
        lines, last = source.lines, len(source.lines)
        if cell is not None:
            found = next((known for known in source.cells or () if known.number == cell), None)
            if found is None:
                return None
            row, last = found.first_row + row - 1, found.first_row + found.text.count("\n") - 1
            if row < found.first_row:
                return None
        return lines[row - 1] if 1 <= row <= min(last, len(lines)) else None

    def _of(self, filename: str) -> SourceFile | None:
        if self._stdin is not None and filename == self._stdin.filename:
            return self._stdin
        if filename != self._filename:
            self._filename = filename
            try:
                self._source = read_source(filename)
            except (OSError, UnreadableSource):
                self._source = None
        return self._source
