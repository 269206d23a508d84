"""Files written whole or not at all, here or at addresses (``hf://``, ``s3://`` ..., by fsspec)."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from headscope.errors import FileError

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
    """The system's facts about a file, links followed; None where there is none.

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
        # mkstemp makes files that only their owner may read. The system tells the mask only in
        # exchange for another one.
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
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


ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+:/", re.IGNORECASE)
"""A protocol of one letter is a drive of Windows."""


def is_address(path: str | os.PathLike[str]) -> bool:
    """Whether a path is the address of a file elsewhere, such as
    ``hf://datasets/me/records/run.safetensors``.
    """
    return isinstance(path, str) and "://" in path and ADDRESS.match(path) is not None


def local_path(path: str | os.PathLike[str]) -> Path:
    """A path of this machine, which no address is; nor is one that was read as a path, ``s3:/...``.

    Raises:
        FileError: for an address, where nothing may be written but a record or result.
    """
    if not isinstance(path, str | os.PathLike):
        raise FileError(f"Expected the path of a file or folder, got {repr(path)[:60]}")
    if ADDRESS.match(os.fspath(path)):
        raise FileError(
            f"{path} is an address, and this is written to a disk of this machine; give a path "
            "here, and copy what is written to the address"
        )
    return Path(path)


def check_parent(path: str | os.PathLike[str]) -> None:
    """Raise where a file or folder could not be written into the folder that it is to be in.

    Raises:
        FileError: saying why.
    """
    parent = local_path(path).absolute().parent
    if not parent.is_dir():
        raise FileError(f"Cannot write {path}: there is no folder {parent}; create it first")
    if not os.access(parent, os.W_OK):
        raise FileError(f"Cannot write {path}: no permission to write to the folder {parent}")


def saved_at(address: str, write: Callable[[Path], object]) -> str:
    """Write a file here and put it at an address, which is returned.

    Raises:
        FileError: where fsspec is missing or does not know the address, or the place refuses it.
    """
    files, path = _filesystem_and_path(address)
    with tempfile.TemporaryDirectory(prefix="headscope-") as folder:
        local = Path(folder) / address.rpartition("/")[2]
        write(local)
        try:
            files.put_file(os.fspath(local), path)
        except Exception as error:
            raise FileError(f"Cannot write {address}: {_reason(error)}") from error
    return address


def fetched(address: str | os.PathLike[str]) -> Path:
    """The file at an address, brought to this machine for as long as the process lives; any other
    path as it is.

    Raises:
        FileError: where fsspec is missing or does not know the address, or there is no such file.
    """
    if not isinstance(address, str | os.PathLike):
        raise FileError(f"Expected the path or address of a file, got {repr(address)[:60]}")
    if not is_address(address):
        return Path(address)
    files, path = _filesystem_and_path(str(address))
    local = Path(tempfile.mkdtemp(dir=_own().name)) / path.rpartition("/")[2]
    try:
        files.get_file(path, os.fspath(local))
    except FileNotFoundError:
        raise FileError(f"{address} does not exist") from None
    except Exception as error:
        raise FileError(f"Cannot read {address}: {_reason(error)}") from error
    return local


@cache
def _own() -> tempfile.TemporaryDirectory[str]:
    """A folder that goes when the process ends; open records read on from it."""
    return tempfile.TemporaryDirectory(prefix="headscope-", ignore_cleanup_errors=True)


def _filesystem_and_path(address: str) -> tuple[Any, str]:
    try:
        import fsspec
    except ModuleNotFoundError:
        raise FileError(
            f"{address} needs the package fsspec, which is not installed: pip install "
            "'headscope[capture]' brings it"
        ) from None
    try:
        return fsspec.core.url_to_fs(address)
    except (ImportError, ValueError) as error:
        raise FileError(f"{address} cannot be opened: {_reason(error)}") from None


def _reason(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
