"""What a study counted, as one .npz file: numbers as arrays, and what is said of them as one JSON document."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from headscope.errors import FileError
from headscope.storage._atomic import written_whole
from headscope.storage._npz import read_npz, reading, write_npz

VERSION = 1
PROJECT = "headscope "


def save_kept(path: str | os.PathLike[str], kind: str, said: dict[str, Any], arrays: dict[str, np.ndarray]) -> Path:
    """Write what was counted, whole or not at all.

    Args:
        path: of the file.
        kind: what it holds, such as ``"relations"``; a file of one kind is not read as another.
        said: goes into the file as JSON.
        arrays: by name.

    Raises:
        FileError: where the file cannot be written.
    """
    path = Path(path)
    words = {"kind": PROJECT + kind, "version": VERSION} | said
    everything: dict[str, Any] = {"said": np.frombuffer(json.dumps(words).encode(), np.uint8)} | arrays
    with written_whole(path) as temporary:
        write_npz(temporary, everything)
    return path


def load_kept(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What is said, and the arrays, of a file that `save_kept` wrote.

    What is put together from them belongs inside `reading`, too.

    Raises:
        FileError: where the file is not there, is cut, is of another kind, or was written by a newer headscope.
    """
    with reading(path, kind):
        arrays = read_npz(path)
        said = json.loads(arrays.pop("said").tobytes())
        if not isinstance(said, dict) or said.get("kind") != PROJECT + kind:
            raise FileError(f"{path} holds no {kind}")
        version = said["version"]
        if not isinstance(version, int):
            raise TypeError(f"format {version!r} is none")
    if version > VERSION:
        raise FileError(f"{path} was written by a newer headscope (format {version}, this one reads {VERSION})")
    return said, arrays


def kind_of(path: str | os.PathLike[str]) -> str:
    """What a file that `save_kept` wrote holds, such as ``"relations"``.

    Raises:
        FileError: where the file is not there, is cut, or is none of ours.
    """
    with reading(path, "result"):
        return str(json.loads(read_npz(path)["said"].tobytes())["kind"]).removeprefix(PROJECT)
