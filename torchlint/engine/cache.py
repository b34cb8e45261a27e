"""What earlier runs found, kept so that a file that has not changed is not read again.

A result stands for the content of its file, of the other files that it rests on, and for which modules there were to
import. A cache belongs to one configuration, one version of torchlint and one of Python; it is a folder of JSON files,
sixteen for each configuration, and any of them may be missing, damaged or from elsewhere: then its files are linted
again. Nothing of it is ever executed.

A file's time stamps spare reading it, unless they are so young that the file may have changed since without moving
them. Its content decides otherwise, so that a cache may be carried from one checkout to the next.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from torchlint import __version__
from torchlint.finding import Applicability, Edit, Finding, Fix, Position, Severity
from torchlint.source.file import read_bytes, read_bytes_and_status

if TYPE_CHECKING:
    from torchlint.config import Settings

TAG_FILE = "CACHEDIR.TAG"
TAG = """Signature: 8a477f597d28d172789f06886806bc55
# This folder holds what torchlint found in earlier runs. It can be deleted at any time.
# For information about cache directory tags see https://bford.info/cachedir/
"""
FORMAT = 1
_BUCKETS = 16
_YOUNG = 2_000_000_000  # ns; file systems' time stamps may be as coarse as two seconds
_LARGEST = 256 * 1024 * 1024
_KEPT = 60 * 86400  # s; what configurations were not used for so long leave behind is removed

_Record = dict[str, Any]


class Consulted(NamedTuple):
    """A file as it was when it was read: the digest of its content ("" if it couldn't be read), and its stamp."""

    digest: str
    stamp: tuple[int, int, int]


class Result(NamedTuple):
    """What is to be remembered of one file. ``needs`` are the other files it rests on, ``imports`` the names in its
    import statements; a file that doesn't name torch has neither, and no findings."""

    consulted: Consulted
    findings: Sequence[Finding] = ()
    needs: Sequence[tuple[str, Consulted]] = ()
    imports: Iterable[str] = ()


class Hit(NamedTuple):
    """A file's findings from an earlier run, and the digest of its content."""

    findings: list[Finding]
    digest: str


def digest_of(data: bytes) -> str:
    """A file's content as a key."""
    from hashlib import blake2b

    return blake2b(data, digest_size=16).hexdigest()


def stamp_of(status: os.stat_result, now: int | None = None) -> tuple[int, int, int]:
    """A file's time stamps and size; zeros, which no file has, while the stamps are too young to be relied on."""
    latest = max(status.st_mtime_ns, status.st_ctime_ns)
    if latest > (time.time_ns() if now is None else now) - _YOUNG:
        return (0, 0, 0)
    return (status.st_mtime_ns, status.st_ctime_ns, status.st_size)


def cache_folder(settings: Settings) -> str:
    """Where the cache of a configuration is."""
    return settings.cache_dir or os.path.join(settings.root, ".torchlint_cache")


def is_cache_folder(folder: str) -> bool:
    """Whether a folder was made by torchlint for its cache (so that it may be deleted)."""
    try:
        return not os.path.islink(folder) and read_bytes(os.path.join(folder, TAG_FILE)) == TAG.encode()
    except OSError:
        return False


class Cache:
    """The cache of one configuration. Whatever goes wrong with it, it is only less of a cache.

    ``stored`` False keeps it in memory, for runs that follow one another in one process.
    """

    def __init__(self, settings: Settings, *, noqa: bool = True, stored: bool = True) -> None:
        home = cache_folder(settings)
        self.root = settings.root.rstrip(os.sep) + os.sep
        self.folder = os.path.join(home, __version__)
        self._stored = stored and _may_use(home) and not os.path.islink(self.folder)
        self._key = _key(settings, noqa) if self._stored else ""
        self._buckets: dict[int, _Bucket] = {}
        self._bucket_of: dict[str, _Bucket] = {}
        self._digests: dict[str, str] = {}
        self._folders = _Folders(self._file("folders"), self._long)
        self.look_again()

    def look_again(self) -> None:
        """Forget what files were found to hold a moment ago, and drop what new or vanished modules put in doubt."""
        self._digests.clear()
        for bucket in self._buckets.values():
            bucket.digests.clear()
        changed = self._folders.changed_names()
        if changed:
            self._drop_what_is_in_doubt(changed)

    def look_up(self, path: str, filename: str) -> Hit | None:
        """What an earlier run found in a file, if that still holds."""
        record = self._record(path)
        if record is None or "findings" not in record:
            return None
        digest = self._current_digest(path)
        try:
            if digest != record["hash"] or not self._needs_hold(path, record):
                return None
            findings = [_read_finding(row, filename) for row in record["findings"]]
        except (KeyError, IndexError, TypeError, ValueError, AttributeError):
            return None
        return Hit(findings, digest)

    def store(self, path: str, result: Result) -> None:
        """Remember what was found in a file."""
        if not result.consulted.digest:
            return
        bucket = self._bucket(path)
        record: _Record = {"hash": result.consulted.digest, "stamp": list(result.consulted.stamp)}
        if result.needs:
            record["needs"] = [bucket.number_of(self._short(other)) for other, _ in result.needs]
            record["needs_hash"] = _combined(consulted.digest for _, consulted in result.needs)
        if result.imports:
            record["imports"] = " ".join(sorted(result.imports))
        record["findings"] = [_written_finding(finding) for finding in result.findings]
        bucket.put(self._short(path), record)
        for other, consulted in result.needs:
            if consulted.digest and self._record(other) is None:
                known = {"hash": consulted.digest, "stamp": list(consulted.stamp)}
                self._bucket(other).put(self._short(other), known)

    def consulted_folders(self, listings: dict[str, frozenset[str]]) -> None:
        """Remember which modules there were in the folders that imports were looked up in."""
        self._folders.update({self._short(folder + os.sep): names for folder, names in listings.items()})

    def save(self) -> None:
        """Write what is new. A full disk or a read-only tree leaves things as they were."""
        files: list[_Bucket | _Folders] = [*self._buckets.values(), self._folders]
        changed = [file for file in files if file.dirty]
        if not self._stored or not changed:
            return
        try:
            _make_folder(os.path.dirname(self.folder))
            os.makedirs(self.folder, exist_ok=True)
            for file in changed:
                file.save()
            _remove_old(self.folder)
        except OSError:
            self._stored = False

    # ---------------------------------------------------------------- records

    def _file(self, part: str) -> str | None:
        return os.path.join(self.folder, f"{self._key}-{part}.json") if self._stored else None

    def _short(self, path: str) -> str:
        """A path as the records have it: from the root, so that a cache can move with its project."""
        return path[len(self.root) :] if path.startswith(self.root) else path

    def _long(self, short: str) -> str:
        return short if os.path.isabs(short) else self.root + short

    def _numbered_bucket(self, number: int) -> _Bucket:
        bucket = self._buckets.get(number)
        if bucket is None:
            bucket = self._buckets[number] = _Bucket(self._file(f"{number:x}"), self._long)
        return bucket

    def _bucket(self, path: str) -> _Bucket:
        folder = path.rpartition(os.sep)[0]
        bucket = self._bucket_of.get(folder)
        if bucket is None:
            number = zlib.crc32(self._short(folder + os.sep).encode("utf-8", "surrogatepass")) % _BUCKETS
            bucket = self._bucket_of[folder] = self._numbered_bucket(number)
        return bucket

    def _record(self, path: str) -> _Record | None:
        return self._bucket(path).records.get(self._short(path))

    # ---------------------------------------------------------------- do they still hold?

    def _current_digest(self, path: str) -> str:
        """The digest of a file as it is now, from its stamp if that is enough; "" if it can't be read."""
        digest = self._digests.get(path)
        if digest is None:
            digest = self._digests[path] = self._find_digest(path)
        return digest

    def _find_digest(self, path: str) -> str:
        record = self._record(path)
        try:
            if record is not None:
                status = os.stat(path)
                if record.get("stamp") == [status.st_mtime_ns, status.st_ctime_ns, status.st_size]:
                    return str(record.get("hash"))
            data, status = read_bytes_and_status(path)
        except OSError:
            return ""
        digest = digest_of(data)
        if record is not None and record.get("hash") == digest:
            stamp = list(stamp_of(status))
            if stamp != record.get("stamp"):
                record["stamp"] = stamp
                self._bucket(path).dirty = True
        return digest

    def _needs_hold(self, path: str, record: _Record) -> bool:
        """Whether the other files that a result rests on are as they were."""
        needs = record.get("needs")
        if not needs:
            return True
        bucket = self._bucket(path)
        digests = bucket.digests
        for number in needs:
            if number not in digests:
                digests[number] = self._current_digest(self._long(bucket.paths[number]))
        return _combined([digests[number] for number in needs]) == str(record["needs_hash"])

    def _drop_what_is_in_doubt(self, changed: frozenset[str]) -> None:
        """Drop results to which modules that have come or gone may mean something, or to what they rest on."""
        buckets = [self._numbered_bucket(number) for number in range(_BUCKETS)]
        known: set[str] = set()
        for bucket in buckets:
            for short, record in list(bucket.records.items()):
                if "findings" in record:
                    if _speaks_of(record, changed):
                        bucket.remove(short)
                    else:
                        known.add(short)
        for bucket in buckets:
            unknown = {number for number, short in enumerate(bucket.paths) if short not in known}
            if unknown:
                for short in [s for s, r in bucket.records.items() if not unknown.isdisjoint(r.get("needs", ()))]:
                    bucket.remove(short)


def _speaks_of(record: _Record, changed: frozenset[str]) -> bool:
    """Whether the import statements of a file hold one of these names."""
    imports = record.get("imports", "")
    return "__init__" in changed or not isinstance(imports, str) or not changed.isdisjoint(imports.split(" "))


class _File:
    """A JSON file of the cache: loaded if it can be, and written whole or not at all."""

    def __init__(self, path: str | None, long: Callable[[str], str]) -> None:
        self.path = path or ""
        self.dirty = False
        self._long = long
        self._signature: tuple[int, int] | None = None

    def load(self) -> _Record:
        """The object in the file; an empty one if there is none, or what is there isn't ours."""
        try:
            if not self.path or os.stat(self.path).st_size > _LARGEST:
                return {}
            data, status = read_bytes_and_status(self.path)
            loaded = json.loads(data)
        except (OSError, ValueError, RecursionError):
            return {}
        self._signature = (status.st_mtime_ns, status.st_size)
        return loaded if isinstance(loaded, dict) and loaded.get("format") == FORMAT else {}

    def changed_on_disk(self) -> bool:
        """Whether another run has written the file since it was loaded."""
        try:
            status = os.stat(self.path)
        except OSError:
            return False
        return (status.st_mtime_ns, status.st_size) != self._signature

    def write(self, *pieces: str) -> None:
        """Replace the file."""
        _replace(self.path, "".join(pieces))
        self.dirty = False


class _Bucket(_File):
    """The records of a sixteenth of all folders. ``paths`` are those that records need, which they name by number."""

    def __init__(self, path: str | None, long: Callable[[str], str]) -> None:
        super().__init__(path, long)
        loaded = self.load()
        records, paths = loaded.get("files"), loaded.get("paths")
        self.paths: list[str] = paths if isinstance(paths, list) and all(isinstance(p, str) for p in paths) else []
        self.records: dict[str, _Record] = records if isinstance(records, dict) else {}
        for short in [short for short, record in self.records.items() if not self._is_sound(record)]:
            del self.records[short]
        self.digests: dict[int, str] = {}  # of the needed files as they are now
        self._numbers: dict[str, int] | None = None
        self._settled: set[str] = set()

    def _is_sound(self, record: object) -> bool:
        if not isinstance(record, dict):
            return False
        needs = record.get("needs", [])
        count = len(self.paths)
        return isinstance(needs, list) and all(type(number) is int and 0 <= number < count for number in needs)

    def number_of(self, short: str) -> int:
        """The number that stands for a path in this file."""
        if self._numbers is None:
            self._numbers = {path: number for number, path in enumerate(self.paths)}
        number = self._numbers.get(short)
        if number is None:
            number = self._numbers[short] = len(self.paths)
            self.paths.append(short)
        return number

    def put(self, short: str, record: _Record) -> None:
        """Set a file's record."""
        self.records[short] = record
        self._settled.add(short)
        self.dirty = True

    def remove(self, short: str) -> None:
        """Drop a file's record."""
        del self.records[short]
        self._settled.add(short)
        self.dirty = True

    def save(self) -> None:
        """Write the records, with those that another run has written meanwhile and without those of files gone."""
        if self.changed_on_disk():
            self._take_over(_Bucket(self.path, self._long))
        used: dict[int, int] = {}
        rows = []
        for short, record in sorted(self.records.items()):
            if short not in self._settled and not os.path.lexists(self._long(short)):
                continue
            needs = record.get("needs")
            if needs:
                record = {**record, "needs": [used.setdefault(number, len(used)) for number in needs]}
            rows.append(f"{json.dumps(short)}: {json.dumps(record, separators=(',', ':'))}")
        paths = json.dumps([self.paths[number] for number in used], indent=0)
        self.write(f'{{"format": {FORMAT},\n"paths": {paths},\n"files": {{\n', ",\n".join(rows), "\n}}\n")

    def _take_over(self, other: _Bucket) -> None:
        for short, record in other.records.items():
            if short not in self._settled:
                if "needs" in record:
                    record["needs"] = [self.number_of(other.paths[number]) for number in record["needs"]]
                self.records[short] = record


class _Folders(_File):
    """The folders that imports were looked up in, with the modules that were there.

    A new module can change what an import means, so that a result rests on absences too.
    """

    def __init__(self, path: str | None, long: Callable[[str], str]) -> None:
        super().__init__(path, long)
        folders = self.load().get("folders")
        self.known: dict[str, Any] = folders if isinstance(folders, dict) else {}

    def changed_names(self) -> frozenset[str]:
        """The names of all modules that have come or gone since; ``__init__`` where a folder became a package."""
        changed: set[str] = set()
        for short, known in list(self.known.items()):
            folder = self._long(short)
            try:
                stamp, names = known
                now = _folder_stamp(folder)
                if now != stamp or not now:
                    modules = _modules_in(folder)
                    changed.update(set(names) ^ set(modules))
                    self.known[short] = [now, modules]
                    self.dirty = True
            except (TypeError, ValueError):
                changed.add("__init__")
                del self.known[short]
        return frozenset(changed)

    def update(self, listings: dict[str, frozenset[str]]) -> None:
        """Add folders as they were when they were looked into."""
        for folder, names in listings.items():
            modules = _modules(names)
            known = self.known.get(folder)
            if known is None or known[1] != modules:
                # The stamp is taken on the next look, so that it is certain to be no older than the listing.
                self.known[folder] = [0, modules]
                self.dirty = True

    def save(self) -> None:
        """Write the folders."""
        if self.changed_on_disk():
            self.known = {**_Folders(self.path, self._long).known, **self.known}
        rows = [f"{json.dumps(folder)}: {json.dumps(known)}" for folder, known in sorted(self.known.items())]
        self.write(f'{{"format": {FORMAT},\n"folders": {{\n', ",\n".join(rows), "\n}}\n")


def _replace(path: str, content: str) -> None:
    """Write a file whole; raises OSError and then leaves nothing behind."""
    temporary = f"{path}.{os.getpid()}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    try:
        with open(os.open(temporary, flags, 0o666), "w", encoding="ascii", newline="\n") as file:
            file.write(content)
        os.replace(temporary, path)
    except OSError:
        if os.path.lexists(temporary):
            os.unlink(temporary)
        raise


def _folder_stamp(folder: str) -> int:
    """When entries of a folder last came or went; 0 if that is too young to rely on, or there is no such folder."""
    try:
        status = os.stat(folder)
    except OSError:
        return 0
    return 0 if status.st_mtime_ns > time.time_ns() - _YOUNG else status.st_mtime_ns


def _modules_in(folder: str) -> list[str]:
    try:
        return _modules(os.listdir(folder))
    except OSError:
        return []


def _modules(names: Iterable[str]) -> list[str]:
    """What can be imported from a folder, by the names in it: modules, and folders, which may be packages."""
    stems = {name.removesuffix(".py") for name in names if name.endswith(".py") or "." not in name}
    return sorted(stems - {"__pycache__"})


# -------------------------------------------------------------------- the key


def _key(settings: Settings, noqa: bool) -> str:
    """What, besides files, a result depends on."""
    return digest_of(
        repr(
            (
                FORMAT,
                __version__,
                _code_stamp(),
                sys.implementation.name,
                sys.version_info[:3],
                noqa,
                os.path.relpath(settings.root, cache_folder(settings)),
                settings.selection,
                settings.per_file_ignores,
                settings.target_torch,
                [os.path.relpath(folder, settings.root) for folder in settings.src],
                settings.plugins,
                _plugin_stamp(settings),
            )
        ).encode("utf-8", "surrogatepass")
    )[:16]


def _code_stamp() -> object:
    """Which torchlint this is, if its version doesn't say it: a checkout that someone works on."""
    homes = [home for name in ("torchlint", "torchlint.checks") for home in importlib.import_module(name).__path__]
    if any("site-packages" in home or "dist-packages" in home for home in homes):
        return None
    return sorted(_file_stamps(homes))


def _file_stamps(folders: Iterable[str]) -> Iterator[tuple[str, int, int]]:
    for folder in folders:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if entry.name != "__pycache__":
                        yield from _file_stamps([entry.path])
                else:
                    status = entry.stat()
                    yield entry.name, status.st_mtime_ns, status.st_size


def _plugin_stamp(settings: Settings) -> object:
    if not settings.plugins:
        return None
    from torchlint.engine.registry import BUILT_IN, checks_for

    modules = {check.__module__ for check in checks_for(settings) if not check.__module__.startswith(BUILT_IN)}
    files = sorted(file for module in modules if (file := getattr(sys.modules[module], "__file__", None)))
    return [(os.path.basename(file), digest_of(read_bytes(file))) for file in files if os.path.isfile(file)]


def _combined(digests: Iterable[str]) -> str:
    from hashlib import blake2b

    return blake2b("".join(digests).encode(), digest_size=8).hexdigest()


# -------------------------------------------------------------------- the folder


def _may_use(folder: str) -> bool:
    """Whether a folder may hold the cache: it isn't there yet, is empty, or was made for that.

    What a configuration, or a link planted in a repository, points to is otherwise left alone.
    """
    if os.path.islink(folder):
        return False
    try:
        return not os.listdir(folder) or is_cache_folder(folder)
    except FileNotFoundError:
        return True
    except OSError:
        return False


def _make_folder(folder: str) -> None:
    os.makedirs(folder, exist_ok=True)
    for name, content in ((TAG_FILE, TAG), (".gitignore", "# made by torchlint\n*\n")):
        path = os.path.join(folder, name)
        if not os.path.lexists(path):
            _replace(path, content)


def _remove_old(folder: str) -> None:
    """Remove what no run has written for long: other configurations' records, and pieces of runs that were killed."""
    oldest = time.time() - _KEPT
    with os.scandir(folder) as entries:
        for entry in entries:
            age = entry.stat(follow_symlinks=False).st_mtime
            if age < oldest or (entry.name.endswith(".tmp") and age < time.time() - 3600):
                os.unlink(entry.path)


# -------------------------------------------------------------------- findings as JSON


def _written_finding(finding: Finding) -> _Record:
    row: _Record = {
        "code": finding.code,
        "name": finding.name,
        "message": finding.message,
        "severity": finding.severity.value,
        "place": [*_pair(finding.location), *_pair(finding.end_location)],
        "noqa_row": finding.noqa_row,
    }
    if finding.help:
        row["help"] = finding.help
    if finding.failure:
        row["failure"] = finding.failure
    if finding.cell is not None:
        row["cell"] = finding.cell
    if finding.fix is not None:
        row["fix"] = {
            "message": finding.fix.message,
            "applicability": finding.fix.applicability.value,
            "edits": [[*_pair(edit.start), *_pair(edit.end), edit.content] for edit in finding.fix.edits],
        }
    return row


def _pair(position: Position) -> tuple[int, int]:
    return position.row, position.column


def _read_finding(row: _Record, filename: str) -> Finding:
    """The finding that a record holds; raises KeyError, TypeError or ValueError if it holds none."""
    start_row, start_column, end_row, end_column = map(int, row["place"])
    fix = row.get("fix")
    return Finding(
        code=_text(row["code"]),
        name=_text(row["name"]),
        message=_text(row["message"]),
        severity=Severity(row["severity"]),
        filename=filename,
        location=Position(start_row, start_column),
        end_location=Position(end_row, end_column),
        help=_text(row.get("help", "")),
        failure=_text(row.get("failure", "")),
        fix=None if fix is None else _read_fix(fix),
        cell=None if row.get("cell") is None else int(row["cell"]),
        noqa_row=int(row["noqa_row"]),
    )


def _read_fix(fix: _Record) -> Fix:
    edits = tuple(
        Edit(Position(int(row), int(column)), Position(int(end_row), int(end_column)), _text(content))
        for row, column, end_row, end_column, content in fix["edits"]
    )
    return Fix(_text(fix["message"]), Applicability(fix["applicability"]), edits)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value
