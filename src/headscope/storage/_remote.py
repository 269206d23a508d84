"""Records at addresses: ``hf://``, ``s3://``, ``memory://`` and whatever else fsspec knows."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from headscope.errors import FileError

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


def fetched(address: str) -> Path:
    """The file at an address, brought to this machine for as long as the process lives.

    Raises:
        FileError: where fsspec is missing or does not know the address, or there is no such file.
    """
    files, path = _filesystem_and_path(address)
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
