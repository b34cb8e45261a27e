"""Places in the user's own source: where a frame stands, where a layer was made, where an attribute was set."""

from __future__ import annotations

import linecache
import os
import site
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType, FrameType, TracebackType
from typing import Any

import torch


@dataclass(frozen=True, slots=True)
class Site:
    """A stretch of source: 1-based rows, 1-based columns in code points, the end exclusive."""

    file: str
    row: int
    column: int
    end_row: int
    end_column: int

    @property
    def text(self) -> str:
        """The source line it begins on."""
        return linecache.getline(self.file, self.row).strip()


_WORKER = os.path.dirname(os.path.realpath(__file__))
_TORCH = os.path.dirname(os.path.realpath(torch.__file__))


def _library_folders() -> tuple[str, ...]:
    folders = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    folders.update(site.getsitepackages() if hasattr(site, "getsitepackages") else ())
    return tuple(os.path.realpath(folder) + os.sep for folder in folders if folder)


class UserFiles:
    """Which files are the user's: the target's package, and whatever isn't an installed library."""

    def __init__(self) -> None:
        self._libraries = _library_folders()
        self._own: tuple[str, ...] = ()
        self._known: dict[str, bool] = {}

    def own(self, folders: Iterable[str]) -> None:
        """Count these folders as the user's even where they lie among installed libraries."""
        self._own = tuple(os.path.realpath(folder) for folder in folders)
        self._known.clear()

    def __contains__(self, file: str) -> bool:
        known = self._known.get(file)
        if known is None:
            known = self._known[file] = self._decide(file)
        return known

    def _decide(self, file: str) -> bool:
        if file.startswith("<") or not os.path.isabs(file):
            return False
        real = os.path.realpath(file)
        if real.startswith((_WORKER + os.sep, _TORCH + os.sep)):
            return False
        if any(real == own or real.startswith(own + os.sep) for own in self._own):
            return True
        return not real.startswith(self._libraries) and f"{os.sep}site-packages{os.sep}" not in real


USER = UserFiles()


def code_site(code: CodeType, lasti: int, lineno: int) -> Site:
    """The place of an instruction. Columns are known from Python 3.11 on; before, the line without its indent."""
    file = code.co_filename
    if sys.version_info >= (3, 11) and lasti >= 0:
        positions = list(code.co_positions())
        row, end_row, start, end = positions[lasti // 2] if lasti // 2 < len(positions) else (None,) * 4
        if row is not None and end_row is not None and start is not None and end is not None:
            return Site(file, row, _column(file, row, start), end_row, _column(file, end_row, end))
    line = linecache.getline(file, lineno).rstrip()
    indent = len(line) - len(line.lstrip())
    return Site(file, lineno, indent + 1, lineno, max(len(line), indent + 1) + 1)


def _column(file: str, row: int, offset: int) -> int:
    line = linecache.getline(file, row).encode("utf-8")
    return len(line[:offset].decode("utf-8", "replace")) + 1


def frame_site(frame: FrameType) -> Site:
    """Where a frame stands."""
    return code_site(frame.f_code, frame.f_lasti, frame.f_lineno)


def user_frame(start: FrameType | None = None) -> FrameType | None:
    """The innermost frame in a file of the user's, from here outwards."""
    frame = start if start is not None else sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename in USER:
            return frame
        frame = frame.f_back  # type: ignore[assignment]
    return None


def here() -> Site | None:
    """The innermost place in the user's source that led here."""
    frame = user_frame(sys._getframe(1))
    return frame_site(frame) if frame is not None else None


def traceback_frames(trace: TracebackType | None) -> list[tuple[FrameType, Site]]:
    """The user's frames of a traceback, outermost first, each with its place."""
    found = []
    while trace is not None:
        frame = trace.tb_frame
        if frame.f_code.co_filename in USER:
            found.append((frame, code_site(frame.f_code, trace.tb_lasti, trace.tb_lineno)))
        trace = trace.tb_next
    return found


def error_site(error: BaseException) -> Site | None:
    """The user's innermost line that an exception came through."""
    if isinstance(error, SyntaxError) and error.filename and error.filename in USER:
        row, column = error.lineno or 1, error.offset or 1
        return Site(error.filename, row, max(column, 1), row, max(column, 1) + 1)
    frames = traceback_frames(error.__traceback__)
    return frames[-1][1] if frames else None


def definition_site(function: Any) -> Site | None:
    """The line on which a class or function is defined."""
    import inspect

    target = inspect.unwrap(function)
    code = getattr(target, "__code__", None)
    try:
        if code is not None:
            file, row = code.co_filename, code.co_firstlineno
            lines, row = inspect.getsourcelines(target)
        else:
            file = inspect.getsourcefile(target) or ""
            lines, row = inspect.getsourcelines(target)
    except (OSError, TypeError):
        return None
    for offset, line in enumerate(lines):
        if line.lstrip().startswith(("class ", "def ", "async def ")):
            indent = len(line) - len(line.lstrip())
            end = len(line.rstrip())
            return Site(os.path.realpath(file), row + offset, indent + 1, row + offset, end + 1)
    return Site(os.path.realpath(file), row, 1, row, 2)


class Construction:
    """Where each layer was made and each attribute of a module was set, noted while the constructor runs."""

    def __init__(self) -> None:
        self._made: dict[int, Site] = {}
        self._set: dict[tuple[int, str], Site] = {}

    def made(self, module: torch.nn.Module) -> Site | None:
        """The call in the user's source that made a layer."""
        return self._made.get(id(module))

    def assigned(self, module: torch.nn.Module, name: str) -> Site | None:
        """The statement in the user's source that set an attribute."""
        return self._set.get((id(module), name))

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Note every module made inside."""
        module_class = torch.nn.Module
        init, setattr_ = module_class.__init__, module_class.__setattr__
        register = {name: getattr(module_class, name) for name in ("register_buffer", "register_parameter")}
        made, assigned = self._made, self._set

        def note_init(module: torch.nn.Module, *args: Any, **kwargs: Any) -> None:
            found = _maker(module)
            if found is not None:
                made[id(module)] = found
            init(module, *args, **kwargs)

        def note_setattr(module: torch.nn.Module, name: str, value: Any) -> None:
            found = here()
            if found is not None:
                assigned[(id(module), name)] = found
            setattr_(module, name, value)

        def noting(original: Callable[..., Any]) -> Callable[..., Any]:
            def note(module: torch.nn.Module, name: str, *args: Any, **kwargs: Any) -> Any:
                found = here()
                if found is not None:
                    assigned.setdefault((id(module), name), found)
                return original(module, name, *args, **kwargs)

            return note

        patched: Any = module_class
        patched.__init__, patched.__setattr__ = note_init, note_setattr
        for name, original in register.items():
            setattr(patched, name, noting(original))
        try:
            yield
        finally:
            patched.__init__, patched.__setattr__ = init, setattr_
            for name, original in register.items():
                setattr(patched, name, original)


def _maker(module: torch.nn.Module) -> Site | None:
    """The user's line that called the constructor of ``module``, outside its own methods."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        is_own = bool(code.co_varnames) and frame.f_locals.get(code.co_varnames[0]) is module
        if not is_own and code.co_filename in USER:
            return frame_site(frame)
        frame = frame.f_back
    return None


def site_json_row(site: Site | None) -> list[Any] | None:
    """A place as the layer table carries it: file and row."""
    return None if site is None else [site.file, site.row]
