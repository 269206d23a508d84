"""Records and results to disk and back, by one pair of calls."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from headscope.errors import FileError
from headscope.record import Record
from headscope.results._registry import reader_of
from headscope.results._result import Result
from headscope.storage import NPZ, NoRecord, fetched, is_address, kind_of
from headscope.storage import load as load_record
from headscope.storage import save as save_record

RESULT = "result.safetensors"
"""What a run leaves in its folder."""


def save(record: Record | Result, path: str | os.PathLike[str]) -> Path:
    """Write a record, or the result of a study, to one ``.safetensors`` file, whole or not at all.

    Args:
        record: what to keep: a `Record`, or a result such as what `headscope.relations` gave.
        path: where; a file that is there is replaced. Of a record also an address that fsspec
            knows, such as ``"hf://datasets/me/records/run.safetensors"`` or ``"s3://..."``.

    Returns:
        The path.

    Raises:
        FileError: where it cannot be written, a record is not called as one is (``.safetensors``),
            or this kind of result is not kept.

    Example:
        >>> save(record, "run.safetensors")
    """
    if isinstance(record, Result):
        return record.save(path)
    return save_record(record, path)


def load(path: str | os.PathLike[str], *, check: bool = False) -> Any:
    """Read a record or the result of a study, whichever a file holds.

    Of a record arrays stay in the file until they are used, so one head is read without the rest. A
    file that is cut or overwritten while the record is open gives an error when more of it is read,
    never other numbers; one that `save` writes again leaves open records as they are. A result is
    read whole, and every array compared with its checksum.

    Args:
        path: a file that `save` or the ``save`` of a result wrote, now or in headscope 0.1
            (``.npz``); or its address such as ``"hf://datasets/me/records/run.safetensors"``: it is
            brought to this machine, and is there until the process ends. Of a run that is done,
            its folder will do.
        check: of a record, whether to read all of it now and compare every array with its checksum.
            Files of earlier versions have none: a warning says so, and that rows sum to 1 and
            numbers are finite is all that is checked.

    Returns:
        A `Record`, or a result: `Heads`, `Mechanism`, `Ablation`, `AlignmentStudy`, `Relations`,
            `Coreference`, `NormStudy`, `Comparison` ... Of a tally, the result that is made of it.

    Raises:
        FileError: where there is no such file, or it is cut, foreign, damaged or of a newer format.
        RecordError: where it was made with patterns of one's own, which only `load_tally` and its
            like in `headscope.patterns` take.

    Example:
        >>> load("run.safetensors", check=True)
        >>> load("relations.safetensors")
    """
    local = fetched(os.fspath(path)) if is_address(path) else Path(path)
    if local.is_dir():
        local = _result_of_run(local)
    if local.suffix == NPZ and local.is_file():
        kind = kind_of(local)
    else:
        try:
            return load_record(local, check=check)
        except NoRecord as error:
            kind = error.kind
    read = reader_of(kind)
    if read is None:
        raise FileError(
            f"{path} holds {kind!r}, which this headscope does not know; update headscope"
        )
    return read(local)


def _result_of_run(folder: Path) -> Path:
    """The result that a run left in its folder."""
    result = folder / RESULT
    if not result.is_file():
        raise FileError(
            f"{folder} is a folder, and has no {RESULT}; give a file, or the folder of a run that "
            "is done"
        )
    return result
