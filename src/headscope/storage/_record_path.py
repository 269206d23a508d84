"""How files of records and results are called."""

from __future__ import annotations

import os
from pathlib import Path

from headscope.errors import FileError

RECORD_SUFFIX = ".safetensors"


def check_path(path: Path, what: str = "record") -> None:
    """Raise where a record or result would be called like a file of another kind; devices and links
    have names of their own.

    Args:
        path: of the file.
        what: it will hold.

    Raises:
        FileError: with a name that would do.
    """
    # Unlike those of Path, these do not raise where a name is too long.
    is_free = os.path.isfile(path) or not os.path.exists(path) or not path.name  # noqa: PTH110, PTH113
    if path.suffix != RECORD_SUFFIX and is_free:
        named = path.with_suffix(RECORD_SUFFIX) if path.name else path / f"{what}{RECORD_SUFFIX}"
        raise FileError(
            f"A {what} is a {RECORD_SUFFIX} file, and the path is {path}; name it {named}"
        )
