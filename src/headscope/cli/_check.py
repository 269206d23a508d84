"""headscope check."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headscope.cli._run import RECORD_SUFFIX, say
from headscope.errors import FileError, RecordError


def check(*files: Path) -> None:
    """Compare every array of each file with its checksum; exit code 1 if one is damaged.

    Args:
        files: Records and saved results (.safetensors).
    """
    if not files:
        raise FileError("Expected records or saved results to check (.safetensors)")
    damaged = []
    for path in files:
        try:
            say(_line_of(path))
        except FileError as error:
            damaged.append(path)
            if len(files) == 1:
                raise
            say(str(error))
    if damaged:
        raise FileError(f"{len(damaged)} of {len(files)} files are damaged or cannot be read")


def _line_of(path: Path) -> str:
    """One line about an undamaged file.

    Raises:
        FileError: where it is damaged, or was not written by headscope.
    """
    from headscope.storage import RECORD, kind_of

    if path.suffix != RECORD_SUFFIX:
        raise FileError(f"{path} is no record or result ({RECORD_SUFFIX})")
    if path.is_file() and kind_of(path) != RECORD:
        return _result(path)
    return _record(path)


def _record(path: Path) -> str:
    from headscope.storage import RecordFile, check_record, load

    file, record = RecordFile(path), load(path)
    check_record(file, record)
    return (
        f"{path} is whole: {len(file.arrays)} arrays are as their checksums say; {record.summary}"
    )


def _result(path: Path) -> str:
    """One line about an undamaged result. Reading it compares every array with its checksum."""
    from headscope.storage import RecordFile

    arrays = RecordFile(path).arrays
    try:
        result = _loaded(path)
    except RecordError as error:  # made with a pattern of the user's own, which is not in the file
        return f"{path} is whole: {len(arrays)} arrays are as their checksums say ({error})"
    return f"{path} is whole: {len(arrays)} arrays are as their checksums say; {result!r}"


def _loaded(path: Path) -> Any:
    from headscope.evidence import load_statistic
    from headscope.results import load
    from headscope.storage import STATISTIC, kind_of

    # A statistic is part of a result: headscope.load does not return it alone, but it can be
    # checked.
    return load_statistic(path) if kind_of(path, STATISTIC) == STATISTIC else load(path)
