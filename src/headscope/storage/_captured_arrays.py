"""Arrays of a record that is being captured: on disk as soon as each is complete."""

from __future__ import annotations

import os
from pathlib import Path

from headscope.storage._record_path import check_path
from headscope.storage._remote import is_address
from headscope.storage._temporary_arrays import ArraysInFile
from headscope.storage.atomic import regular_or_none


class CapturedArrays(ArraysInFile):
    """A context that takes arrays of a record and gives them back as ones in a temporary file,
    which is gone with the context.

    Args:
        path: where the record is to be written; the temporary file is on the same disk.

    Raises:
        FileError: where no record can be written there, before anything was captured.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        folder = None
        if not is_address(path):
            check_path(Path(path))
            regular_or_none(path)
            folder = Path(path).absolute().parent
        super().__init__(folder, str(path))
