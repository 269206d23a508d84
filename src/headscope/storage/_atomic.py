"""Writing a file whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from headscope.errors import FileError


@contextmanager
def written_whole(path: str | os.PathLike) -> Generator[Path]:
    """Give a temporary path in the same folder; on leaving, sync it and move it to ``path`` in one step.

    Where anything fails, the temporary file is removed and what stood at ``path`` before stays as it was.

    Raises:
        FileError: where the folder is missing or may not be written to, or the disk is full.
    """
    target = Path(path)
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    except OSError as error:
        raise FileError(f"Cannot write {target}: {reason(error)}; choose another place") from None
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(target)
    except OSError as error:
        raise FileError(f"Cannot write {target}: {reason(error)}") from None
    finally:
        temporary.unlink(missing_ok=True)


def reason(error: OSError) -> str:
    """What the operating system says, without errno and path."""
    return (error.strerror or str(error)).lower()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
