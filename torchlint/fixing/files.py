"""Fix files on disk, or say as a diff what would be fixed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from torchlint.finding import Finding
from torchlint.fixing.notebooks import with_cells
from torchlint.fixing.rounds import FixResult, Lint, fix_source
from torchlint.fixing.writing import NotWritten, replace_file
from torchlint.source.file import SourceFile, UnreadableSource, read_bytes, source_from_bytes


@dataclass(frozen=True, slots=True)
class FileFix:
    """What became of one file. ``error`` says why its fixes were not written; the file is then as it was."""

    filename: str
    result: FixResult
    error: str = ""

    @property
    def remaining(self) -> tuple[Finding, ...]:
        """What is still found in the file as it now is on disk."""
        return self.result.found if self.error else self.result.remaining


def fix_files(
    files: Iterable[tuple[str, str]],
    lint: Lint,
    *,
    unsafe: bool,
    write: bool,
    wanted: Callable[[str], bool] = lambda code: True,
) -> Iterator[FileFix]:
    """Fix files, given as path and shown name, one after another; with ``write`` False only in memory.

    A file that can't be read (any more) is left out: linting it says why.
    """
    for path, filename in files:
        try:
            data = read_bytes(path)
            source = source_from_bytes(data, path, filename)
        except (OSError, UnreadableSource):
            continue
        result = fix_source(source, lint, unsafe, wanted=wanted)
        error = ""
        if result.changed:
            try:
                content = encoded(result, data)
                if write:
                    replace_file(path, data, content)
            except NotWritten as reason:
                error = str(reason)
        yield FileFix(filename, result, error)


def encoded(result: FixResult, data: bytes) -> bytes:
    """The bytes of a fixed source whose file held ``data``. Raises NotWritten when its encoding doesn't allow that."""
    before, after = result.before, result.after
    mark = b"\xef\xbb\xbf" if before.bom else b""
    try:
        if before.cells is not None:
            return mark + _notebook(before, after, data[len(mark) :].decode("utf-8")).encode("utf-8")
        if mark + before.text.encode(before.encoding) != data:
            raise NotWritten(f"the file is no {before.encoding} that could be written back as it was")
        return mark + after.text.encode(before.encoding)
    except UnicodeError:
        raise NotWritten(f"the encoding {before.encoding} can't express the fix") from None


def _notebook(before: SourceFile, after: SourceFile, text: str) -> str:
    changed = {}
    for old, new in zip(before.cells or (), after.cells or (), strict=True):
        if old.text != new.text:
            changed[new.number] = _without_last_newline(new.text) if new.added_newline else new.text
    return with_cells(text, changed)


def _without_last_newline(text: str) -> str:
    return text.removesuffix("\n").removesuffix("\r")
