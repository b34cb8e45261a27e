"""Which files there are to lint: paths as the user gave them, down to every Python file and notebook below.

A path that is named is always taken, whatever its name and whatever ignores it. Below a folder the configuration's
``exclude`` and git's ignore files decide. Links to folders are not followed, nor links to files outside the folder and
its project, so that no walk can leave its tree or run in a circle; what isn't a regular file is never opened.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from torchlint.source.globs import Patterns, atomic

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

    from torchlint.config import Settings

SUFFIXES = (".py", ".ipynb", ".pyw")
CONFIG_NAMES = frozenset({".torchlint.toml", "torchlint.toml", "pyproject.toml"})


class Found(NamedTuple):
    """A file to lint: its absolute real path, the name that the user is shown, and the settings that count for it."""

    path: str
    filename: str
    settings: Settings


class Problem(NamedTuple):
    """A path that could not be looked at, and why: the run failed in part."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


@dataclass(slots=True)
class Discovery:
    """What a run is about, each file once, in the order of their paths."""

    files: list[Found] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def discover(paths: Sequence[str], settings_for: Callable[[str], Settings]) -> Discovery:
    """All files of the given files and folders. ``settings_for`` tells which settings count for a folder."""
    walk = _Walk(settings_for)
    for given in paths:
        walk.enter(given)
    files = sorted(walk.files.values(), key=lambda found: found.path)
    return Discovery(files, sorted(set(walk.problems)))


class _Folder(NamedTuple):
    path: str
    shown: str
    settings: Settings
    ignores: tuple[_Ignores, ...]
    top: str  # the folder that was named, with its slash


class _Ignores(NamedTuple):
    """The ignore patterns that hold below one folder; ``cut`` is the length of the folder's path with its slash."""

    cut: int
    spec: GitIgnoreSpec


class _Walk:
    def __init__(self, settings_for: Callable[[str], Settings]) -> None:
        self.settings_for = settings_for
        self.files: dict[str, Found] = {}
        self.problems: list[Problem] = []
        self.entered: set[str] = set()
        self.real_folders: dict[str, str] = {}
        self.excludes: dict[int, tuple[Settings, Patterns]] = {}

    # ---------------------------------------------------------------- paths as given

    def enter(self, given: str) -> None:
        try:
            mode = os.stat(given).st_mode
        except (OSError, ValueError) as error:
            self.problems.append(Problem(given, _reason(error)))
            return
        if stat.S_ISDIR(mode):
            self._enter_folder(given)
        elif stat.S_ISREG(mode):
            self._take_given_file(given)
        else:
            self.problems.append(Problem(given, "is neither a file nor a folder"))

    def _take_given_file(self, given: str) -> None:
        if given.endswith(".pyi"):
            return
        folder, name = os.path.split(os.path.abspath(given))
        settings = self.settings_for(folder)
        if settings.force_exclude and self._excluded_from_root(os.path.join(folder, name), settings):
            return
        self._add(os.path.join(self._real_folder(folder), name), os.path.normpath(given), settings)

    def _enter_folder(self, given: str) -> None:
        path = os.path.realpath(given)
        settings = self.settings_for(path)
        if settings.force_exclude and self._excluded_from_root(path, settings):
            return
        shown = os.path.normpath(given)
        ignores = _ignores_above(path) if settings.respect_gitignore else ()
        self._walk(_Folder(path, "" if shown == "." else shown, settings, ignores, path.rstrip(os.sep) + os.sep))

    def _excluded_from_root(self, path: str, settings: Settings) -> bool:
        patterns = self._patterns(settings)
        while True:
            parent, name = os.path.split(path)
            if path == settings.root or not name:
                return False
            if patterns.match(name, path):
                return True
            path = parent

    # ---------------------------------------------------------------- below a folder

    def _walk(self, top: _Folder) -> None:
        pending = [top]
        while pending:
            folder = pending.pop()
            if folder.path in self.entered:
                continue
            self.entered.add(folder.path)
            pending.extend(self._look_into(folder))

    def _look_into(self, folder: _Folder) -> Iterator[_Folder]:
        """Take the files of one folder and give the folders below that are to be looked into."""
        try:
            with os.scandir(folder.path) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError as error:
            if not isinstance(error, FileNotFoundError):  # gone since its parent was listed: nothing to tell
                self.problems.append(Problem(folder.shown or ".", _reason(error)))
            return
        names = {entry.name for entry in entries}
        path, shown, settings, ignores, top = folder
        if not CONFIG_NAMES.isdisjoint(names):
            settings = self.settings_for(path)
        if ".gitignore" in names and settings.respect_gitignore:
            ignores = (*ignores, *_ignores_in(path, os.path.join(path, ".gitignore")))
        patterns = self._patterns(settings)
        base = path if path.endswith(os.sep) else path + os.sep
        for entry in entries:
            name = entry.name
            is_folder = entry.is_dir(follow_symlinks=False)
            if not is_folder and not name.endswith(SUFFIXES):
                continue
            entry_path = base + name
            if patterns.match(name, entry_path):
                continue
            if ignores and _ignored(ignores, entry_path + "/" if is_folder else entry_path):
                continue
            entry_shown = os.path.join(shown, name)
            if is_folder:
                yield _Folder(entry_path, entry_shown, settings, ignores, top)
            elif entry.is_file(follow_symlinks=False):
                self.files.setdefault(entry_path, Found(entry_path, entry_shown, settings))
            elif entry.is_symlink() and _is_regular(entry_path):
                target = os.path.realpath(entry_path)
                if any(target.startswith(inside) for inside in (top, settings.root.rstrip(os.sep) + os.sep)):
                    self.files.setdefault(target, Found(target, entry_shown, settings))

    def _add(self, path: str, shown: str, settings: Settings) -> None:
        """Take a file that may be a link."""
        if os.path.islink(path):
            path = os.path.realpath(path)
        self.files.setdefault(path, Found(path, shown, settings))

    def _patterns(self, settings: Settings) -> Patterns:
        known = self.excludes.get(id(settings))
        if known is None:
            patterns = Patterns((*settings.exclude, *settings.extend_exclude), settings.root)
            known = self.excludes[id(settings)] = (settings, patterns)
        return known[1]

    def _real_folder(self, folder: str) -> str:
        known = self.real_folders.get(folder)
        if known is None:
            known = self.real_folders[folder] = os.path.realpath(folder)
        return known


def _is_regular(path: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, FileNotFoundError):
        return "no such file or folder"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror[:1].lower() + error.strerror[1:]
    return str(error)


# -------------------------------------------------------------------- git's ignore files


def _ignored(ignores: Iterable[_Ignores], path: str) -> bool:
    """Whether git ignores a path; the nearest ignore file that says anything decides."""
    for cut, spec in reversed(tuple(ignores)):
        include = spec.check_file(path[cut:]).include
        if include is not None:
            return include
    return False


def _ignores_above(folder: str) -> tuple[_Ignores, ...]:
    """What the repository's ignore files above a folder say about what is below it, outermost first.

    Nothing if they ignore the folder itself: who names it wants to see it.
    """
    parents = []
    at = folder
    while not os.path.exists(os.path.join(at, ".git")):
        parent = os.path.dirname(at)
        if parent == at:
            return ()
        parents.append(parent)
        at = parent
    ignores = [*_ignores_in(at, os.path.join(at, ".git", "info", "exclude"))]
    for parent in reversed(parents):
        ignores += _ignores_in(parent, os.path.join(parent, ".gitignore"))
    return () if ignores and folder != at and _ignored(ignores, folder + "/") else tuple(ignores)


def _ignores_in(folder: str, file: str) -> Iterator[_Ignores]:
    """The patterns of one ignore file; git reads none through a link, and neither is anything but a file opened."""
    try:
        if not stat.S_ISREG(os.lstat(file).st_mode):
            return
        with open(file, encoding="utf-8-sig", errors="replace") as lines:
            patterns = [line for line in lines.read().splitlines() if line.strip() and not line.startswith("#")]
    except OSError:
        return
    if patterns:
        yield _Ignores(len(folder.rstrip(os.sep)) + 1, _gitignore(patterns))


def _gitignore(patterns: list[str]) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec

    try:
        spec = GitIgnoreSpec.from_lines(patterns)
    except ValueError:  # git passes over a line that is no pattern
        spec = GitIgnoreSpec.from_lines([pattern for pattern in patterns if _is_pattern(pattern)])
    for pattern in spec.patterns:
        regex = getattr(pattern, "regex", None)
        if regex is not None and regex.pattern.count("[^/]*") > 2:
            pattern.regex = re.compile(_WILD.sub(lambda found: atomic("[^/]*?", found[1]), regex.pattern))
    return spec


_WILD = re.compile(r"\[\^/\]\*((?:[^(/\[\\]|\\.)*)(?=\[\^/\]\*)")
"""A ``*`` of an ignore file with the text up to the next, as pathspec writes them: several would take forever."""


def _is_pattern(pattern: str) -> bool:
    from pathspec import GitIgnoreSpec

    try:
        GitIgnoreSpec.from_lines([pattern])
    except ValueError:
        return False
    return True
