"""What was computed already, line by line in a file, so that a run that was killed goes on where it was."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from torch import nn

from headscope.errors import FileError
from headscope.storage._atomic import reason

FORMAT = "headscope ablation"
VERSION = 1
SAMPLE = 1024
"""Numbers of each parameter that tell a model from another."""

Cell = tuple[str, int, int]


class Journal:
    """Values by batch and cell; kept in a file, where there is one, each on a line of its own.

    Args:
        path: of the file; made where it is not there.
        header: what the values belong to: model, task, and how heads are disabled.

    Raises:
        FileError: where the file belongs to something else, is none of ours, or cannot be written.
    """

    def __init__(self, path: str | os.PathLike | None, header: Mapping[str, Any]) -> None:
        self._found: dict[tuple[int, Cell | None], np.ndarray] = {}
        self._file: Any = None
        if path is None:
            return
        path, header = Path(path), {"format": FORMAT, "version": VERSION, **header}
        try:
            kept = path.read_bytes() if path.exists() else b""
            whole = kept[: kept.rfind(b"\n") + 1]  # the last line is cut where the run was killed in it
            if whole:
                _check(json.loads(whole.partition(b"\n")[0]), header, path)
            elif kept and not json.dumps(header).encode().startswith(kept):
                raise ValueError
            for line in whole.splitlines()[1:]:
                row = json.loads(line)
                cell = None if row["cell"] is None else (row["cell"][0], row["cell"][1], row["cell"][2])
                self._found[row["batch"], cell] = np.array(row["values"], np.float64)
            self._file = path.open("ab")
            self._file.truncate(len(whole))
            if not whole:
                self._write(header)
        except OSError as error:
            if isinstance(error, FileError):
                raise
            raise FileError(f"Cannot go on with {path}: {reason(error)}") from error
        except (ValueError, KeyError, TypeError, IndexError):
            raise FileError(f"{path} is no journal of an ablation; name another file to go on with") from None

    def __contains__(self, key: tuple[int, Cell | None]) -> bool:
        return key in self._found

    def __getitem__(self, key: tuple[int, Cell | None]) -> Float[np.ndarray, "example column"]:
        return self._found[key]

    @property
    def changed(self) -> int:
        """How many values of a changed model there are."""
        return sum(cell is not None for _, cell in self._found)

    def add(self, batch: int, cell: Cell | None, values: Float[np.ndarray, "example column"]) -> None:
        """Note the values of a batch without a cell; None for the intact model. In the file when this returns."""
        self._found[batch, cell] = values
        if self._file is not None:
            self._write({"batch": batch, "cell": cell, "values": values.tolist()})

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def _write(self, row: Mapping[str, Any]) -> None:
        try:
            self._file.write(json.dumps(row).encode() + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise FileError(f"Cannot write {self._file.name}: {reason(error)}") from error


def fingerprint_of(model: nn.Module) -> str:
    """Tells a model from others: by class, names, shapes and dtypes of its weights, and some numbers of each."""
    found = hashlib.sha256(type(model).__qualname__.encode())
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        flat = tensor.detach().reshape(-1)
        some = flat[:: max(1, len(flat) // SAMPLE)].double().cpu().numpy()
        found.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
        found.update(some.tobytes())
    return found.hexdigest()


def _check(found: Mapping[str, Any], wanted: Mapping[str, Any], path: Path) -> None:
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise ValueError
    other = [name for name in wanted if found.get(name) != wanted[name]]
    if other:
        raise FileError(
            f"{path} holds an ablation with another {' and '.join(other)}; give the same again, or name another file"
        )
