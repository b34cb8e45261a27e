"""Replace a file's content so that at every moment either the old or the new content is there, whole."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from pathlib import Path

_STALE = re.compile(r"\.(?P<pid>\d+)\.torchlint-tmp$")


class NotWritten(OSError):
    """A file was left as it was, for the reason given."""


def replace_file(path: str, old: bytes, new: bytes) -> None:
    """Write ``new`` where ``old`` was read from; mode, owner, extended attributes and symbolic links stay.

    The new content is complete on disk, beside the file, before it takes the file's name. Raises NotWritten: the file
    is read-only, has changed since ``old`` was read, or its folder or disk doesn't take the new content.
    """
    target = os.path.realpath(path)
    temporary = f"{target}.{os.getpid()}.torchlint-tmp"
    try:
        status = Path(target).stat()
        if not status.st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH) or not os.access(target, os.W_OK):
            raise NotWritten("the file is read-only")
        _remove_stale(target)
        try:
            _write(temporary, new, target, status)
            if Path(target).read_bytes() != old:
                raise NotWritten("the file changed while it was being fixed")
            os.replace(temporary, target)  # noqa: PTH105 - one system call, as the promise above needs
        except BaseException:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()
            raise
    except NotWritten:
        raise
    except OSError as error:
        raise NotWritten(error.strerror or str(error)) from error
    _sync_folder(target)


def _write(temporary: str, content: bytes, target: str, status: os.stat_result) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    with open(os.open(temporary, flags, 0o600), "wb") as file:  # noqa: PTH123 - opens a descriptor
        file.write(content)
        file.flush()
        _copy_attributes(file.fileno(), target, status)
        os.fsync(file.fileno())


def _copy_attributes(descriptor: int, target: str, status: os.stat_result) -> None:
    if hasattr(os, "fchown"):
        made = os.fstat(descriptor)
        if (made.st_uid, made.st_gid) != (status.st_uid, status.st_gid):
            with contextlib.suppress(PermissionError):  # another's file in a shared folder: the content matters more
                os.fchown(descriptor, status.st_uid, status.st_gid)
    if hasattr(os, "listxattr"):
        with contextlib.suppress(OSError):
            for name in os.listxattr(target):
                os.setxattr(descriptor, name, os.getxattr(target, name))
    if hasattr(os, "fchmod"):  # last, since a change of owner clears bits of the mode
        os.fchmod(descriptor, stat.S_IMODE(status.st_mode))


def _remove_stale(target: str) -> None:
    """Remove what a run that was killed left beside the file."""
    folder, name = os.path.split(target)
    for other in Path(folder).iterdir():
        match = _STALE.search(other.name)
        if match and other.name[: match.start()] == name and not _is_running(int(match["pid"])):
            with contextlib.suppress(OSError):
                other.unlink()


def _is_running(pid: int) -> bool:
    if os.name == "nt":
        return True  # os.kill would end the process there
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def _sync_folder(target: str) -> None:
    """Make the new name itself survive a power cut, where the system lets a folder be synced."""
    with contextlib.suppress(OSError):
        descriptor = os.open(os.path.dirname(target), os.O_RDONLY)  # noqa: PTH120
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
