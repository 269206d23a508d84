"""How the file of a record is called."""

from __future__ import annotations

from pathlib import Path

from headscope.errors import FileError

RECORD_SUFFIX = ".safetensors"


def check_record_path(path: Path) -> None:
    """Raise where a record would be called like a file of another kind; devices and links have
    names of their own.

    Raises:
        FileError: with a name that would do.
    """
    if path.suffix != RECORD_SUFFIX and (path.is_file() or not path.exists()):
        named = path.with_suffix(RECORD_SUFFIX) if path.name else path / f"record{RECORD_SUFFIX}"
        raise FileError(
            f"A record is a {RECORD_SUFFIX} file, and the path is {path}; name it {named}"
        )
