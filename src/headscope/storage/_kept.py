"""What a study counted, as one .npz file: numbers as arrays, and what is said of them as one JSON document."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from headscope.errors import FileError
from headscope.storage._atomic import written_whole

VERSION = 1
PROJECT = "headscope "


def save_kept(path: str | os.PathLike, kind: str, said: dict[str, Any], arrays: dict[str, np.ndarray]) -> Path:
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
    with written_whole(path) as temporary, Path(temporary).open("wb") as file:
        np.savez_compressed(file, **everything)
    return path


def load_kept(path: str | os.PathLike, kind: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What is said, and the arrays, of a file that `save_kept` wrote.

    Raises:
        FileError: where the file is not there, is cut, is of another kind, or was written by a newer headscope.
    """
    try:
        with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as kept:
            arrays = {name: kept[name] for name in kept.files}
        said = json.loads(arrays.pop("said").tobytes())
    except FileNotFoundError:
        raise FileError(f"{path} is not there") from None
    except (OSError, ValueError, KeyError, EOFError, TypeError, AttributeError, zipfile.BadZipFile) as error:
        raise FileError(f"{path} is cut or holds no {kind}: {error}") from None
    if not isinstance(said, dict) or said.get("kind") != PROJECT + kind:
        raise FileError(f"{path} holds no {kind}")
    if said["version"] > VERSION:
        raise FileError(f"{path} was written by a newer headscope (format {said['version']}, this one reads {VERSION})")
    return said, arrays
