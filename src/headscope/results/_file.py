"""Saving and loading of records and results, by one pair of calls."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from headscope.errors import FileError
from headscope.record import Record
from headscope.results._registry import reader_of
from headscope.results._result import Result
from headscope.storage import INDEX, NoRecord, RecordFolder, fetched, is_address
from headscope.storage import load as load_record
from headscope.storage import save as save_record

RESULT = "result.safetensors"
"""Name of the result that a run leaves in its folder."""
TREE = "scatter_data.json"
"""A file that every tree of HeadVis has."""


def save(record: Record | Result, path: str | os.PathLike[str]) -> Path | str:
    """Write a record, or the result of a study, to one ``.safetensors`` file, whole or not at all.

    Args:
        record: a `Record`, or a result such as that of `headscope.relations`.
        path: the file to write; an existing one is replaced. Also an address that fsspec knows,
            such as ``"hf://datasets/me/records/run.safetensors"`` or ``"s3://..."``.

    Returns:
        The path or the address, as `load` takes it.

    Raises:
        FileError: where it cannot be written, the name of a record does not end in
            ``.safetensors``, or this kind of result cannot be saved.

    Example:
        >>> save(record, "run.safetensors")
    """
    if isinstance(record, Result):
        return record.save(path)
    return save_record(record, path)


def load(path: str | os.PathLike[str], *, check: bool = False) -> Any:
    """Read a record or the result of a study, whichever a file holds.

    The arrays of a record stay in the file until they are used, so that one head is read without
    the rest. If the file is cut or overwritten while the record is open, reading more of it raises
    an error and never returns other numbers; `save` replaces a file without changing open records.
    A result is read as a whole, and every array is compared with its checksum.

    Args:
        path: a file that `save` or the ``save`` of a result wrote; or its address such as
            ``"hf://datasets/me/records/run.safetensors"``: the file is downloaded, and removed when
            the process ends. For a finished run, its folder; for a tree of HeadVis, its own.
        check: for a record, whether to read all of it now and compare every array with its
            checksum.

    Returns:
        A `Record`, or a result: `Heads`, `Mechanism`, `Ablation`, `AlignmentStudy`, `Relations`,
            `Coreference`, `NormStudy`, `Comparison` ... For a tally, the result made from it; for a
            folder of `capture_many`, its records as a `headscope.storage.RecordFolder`.

    Raises:
        FileError: where the file does not exist, is cut, foreign, damaged or of a newer format.
        RecordError: where it was made with patterns of your own, which only `load_tally` and the
            other functions of `headscope.patterns` accept.

    Example:
        >>> load("run.safetensors", check=True)
        >>> load("relations.safetensors")
    """
    local = fetched(os.fspath(path)) if is_address(path) else Path(path)
    # Unlike those of Path, these do not raise where a name is too long.
    if os.path.exists(local / INDEX):  # noqa: PTH110
        return RecordFolder(local)
    left_out = ""
    kind = "headvis" if os.path.exists(local / TREE) else ""  # noqa: PTH110
    if os.path.isdir(local) and not kind:  # noqa: PTH112
        local /= RESULT
        if not local.is_file():
            raise FileError(f"{path} has no {RESULT}; give a file, or the folder of a finished run")
    if not kind:
        try:
            return load_record(local, check=check)
        except NoRecord as error:
            kind, left_out = error.kind, error.left_out
    read = reader_of(kind)
    if read is None:
        raise FileError(
            f"{path} holds {kind!r}, which this headscope does not know; update headscope, or pip "
            f"install 'headscope[{kind}]' where it is of an extra"
        )
    result = read(local)
    result.__dict__["left_out_of"] = left_out
    return result
