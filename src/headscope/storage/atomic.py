"""Writing a file whole or not at all."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from headscope.errors import FileError
from headscope.storage._remote import local_path

try:
    import fcntl
except ImportError:  # Windows has other locks; leftovers stay there
    fcntl = None

SUFFIX = ".part"
LONGEST_NAME = 255 - len(f"..12345678{SUFFIX}")
"""Bytes of a file's name that leave room for what its temporary name has more."""
KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe (FIFO)",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Generator[Path]:
    """Give a temporary path in the same folder; on leaving, sync it and move it to ``path`` in one
    step.

    Where anything fails, the temporary file is removed and what stood at ``path`` before stays as
    it was. A symbolic link stays one: what it points to is written. A file that is replaced passes
    its mode bits on (and its owner, where the system allows that). Temporary files that writers
    left behind when they were killed are removed; a living writer holds a lock on its own.

    Raises:
        FileError: where ``path`` is an address, a folder, a pipe or a device, the folder is
            missing or may not be written to, or the disk is full.
    """
    try:
        before = regular_or_none(local_path(path))
        target = Path(os.path.realpath(path))
        for leftover in _leftovers(target):
            _remove_if_dead(leftover)
        handle, temporary = _begin(target)
    except (OSError, ValueError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"Cannot write {path}: {reason(error)}; choose another place") from None
    try:
        yield temporary
        # On the disk before it gets its name: a crash must not leave that name to a file of holes.
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        _pass_on_rights(before, temporary)
        temporary.replace(target)
        _sync_folder(target.parent)
    except OSError as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"Cannot write {path}: {reason(error)}") from None
    finally:
        temporary.unlink(missing_ok=True)
        if handle is not None:
            os.close(handle)


def regular_or_none(path: str | os.PathLike[str]) -> os.stat_result | None:
    """What the system says of a file, links followed; None where there is none.

    Raises:
        FileError: where something is there that is no regular file, and may neither be replaced nor
            read.
    """
    try:
        there = os.stat(path)  # noqa: PTH116 -- a path may be a string here
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(there.st_mode):
        kind = KINDS.get(stat.S_IFMT(there.st_mode), "no file")
        raise FileError(f"{path} is {kind}, expected a regular file; choose another place")
    return there


def reason(error: Exception) -> str:
    """What the operating system says, without errno and path."""
    message = error.strerror if isinstance(error, OSError) else None
    return (message or str(error)).lower()


def _begin(target: Path) -> tuple[int | None, Path]:
    """A new temporary file next to the target, locked as long as its handle is open; no handle
    where nothing locks.
    """
    while True:
        handle, name = tempfile.mkstemp(
            prefix=f".{_stem(target)}.", suffix=SUFFIX, dir=target.parent
        )
        if fcntl is None:
            os.close(handle)
            return None, Path(name)
        # A file system may have no locks: leftovers cannot be recognised there, and stay.
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        # Another writer may have taken the file for a leftover before it was locked.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), os.stat(name)):  # noqa: PTH116
                return handle, Path(name)
        os.close(handle)


def _stem(target: Path) -> str:
    """What the temporary files of a target are called by: its name, or a short one where that would
    be too long.
    """
    name = os.fsencode(target.name)
    return target.name if len(name) <= LONGEST_NAME else hashlib.sha256(name).hexdigest()


def _leftovers(target: Path) -> Iterator[Path]:
    """Files named as temporary ones of this target."""
    named = re.compile(rf"\.{re.escape(_stem(target))}\.[a-z0-9_]{{8}}{re.escape(SUFFIX)}")
    with suppress(OSError):  # a folder that is missing or may not be listed
        yield from [path for path in target.parent.iterdir() if named.fullmatch(path.name)]


def _remove_if_dead(leftover: Path) -> None:
    """Remove it unless somebody holds its lock."""
    if fcntl is None:
        return
    with suppress(OSError):  # not ours, locked, or gone
        handle = os.open(leftover, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            if stat.S_ISREG(os.fstat(handle).st_mode):
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                leftover.unlink()
        finally:
            os.close(handle)


def _pass_on_rights(before: os.stat_result | None, temporary: Path) -> None:
    """The rights of the file that is replaced, or those of any new file."""
    if before is None:
        # mkstemp makes files that only their owner may read.
        temporary.chmod(0o666 & ~_umask())
        return
    mode = stat.S_IMODE(before.st_mode)
    now = temporary.stat()
    if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
        try:
            os.chown(temporary, before.st_uid, before.st_gid)
        except OSError:
            mode &= ~stat.S_IRWXG  # they were meant for another group
    temporary.chmod(mode)


def _sync_folder(folder: Path) -> None:
    """The new name is on the disk, too, when this returns."""
    with suppress(OSError):  # not every system can open or sync a folder
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _umask() -> int:
    # The system tells the mask only in exchange for another one.
    mask = os.umask(0)
    os.umask(mask)
    return mask
