"""headscope check."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headscope.cli._run import RECORD_SUFFIX, say
from headscope.errors import FileError, RecordError

RESULT_SUFFIX = ".npz"


def check(*files: Path) -> None:
    """Read all of each file and compare every array with its checksum; exit code 1 where one is damaged.

    Args:
        files: Records (.safetensors) and kept results of studies (.npz).
    """
    if not files:
        raise FileError("Nothing was given to check; name records (.safetensors) or kept results (.npz)")
    damaged = []
    for path in files:
        try:
            say(_said_of(path))
        except FileError as error:
            damaged.append(path)
            if len(files) == 1:
                raise
            say(str(error))
    if damaged:
        raise FileError(f"{len(damaged)} of {len(files)} files are damaged or cannot be read")


def _said_of(path: Path) -> str:
    """One line about a file that is whole.

    Raises:
        FileError: where it is not, or is none of ours.
    """
    if path.suffix == RECORD_SUFFIX:
        return _record(path)
    if path.suffix == RESULT_SUFFIX:
        return _result(path)
    raise FileError(f"{path} is neither a record ({RECORD_SUFFIX}) nor a kept result ({RESULT_SUFFIX})")


def _record(path: Path) -> str:
    from headscope.storage import RecordFile, check_record, load

    file, record = RecordFile(path), load(path)
    note = check_record(file, record)
    return note or f"{path} is whole: {len(file.arrays)} arrays are as their checksums say; {record.summary}"


def _result(path: Path) -> str:
    """.npz files have a checksum of each array by themselves (CRC-32), which is compared where it is read."""
    from headscope.storage import read_npz, reading

    with reading(path, "result"):
        arrays = read_npz(path)
    try:
        found = _loaded(path, arrays)
    except RecordError as error:  # made with a pattern of one's own, which has to be given
        return f"{path} is whole: {len(arrays)} arrays are as their checksums say ({error})"
    return f"{path} is whole: {len(arrays)} arrays are as their checksums say; {found!r}"


def _loaded(path: Path, arrays: dict[str, Any]) -> Any:
    from headscope.evidence import load_statistic
    from headscope.patterns import load_mechanism_tally
    from headscope.storage import kind_of
    from headscope.studies import Ablation, load_alignment_study, load_coref, load_relations

    if "scores" in arrays:
        return Ablation.load(path)
    if "said" not in arrays:
        return load_statistic(path)
    loaders = {
        "relations": load_relations,
        "coreference": load_coref,
        "alignment study": load_alignment_study,
        "mechanism tally": load_mechanism_tally,
    }
    kind = kind_of(path)
    if kind not in loaders:
        raise FileError(f"{path} holds {kind!r}, which this headscope does not know; update headscope")
    return loaders[kind](path)
