"""Relations kept as a file, to be gone on with."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from headscope.errors import FileError
from headscope.storage import written_whole
from headscope.studies._relation_tally import Read
from headscope.studies._relations import Relations

VERSION = 1
KIND = "headscope relations"
OPTIONS = ("rows", "trees", "universal", "stack", "confidence", "correction", "seed")


def save(relations: Relations, path: Path) -> Path:
    """Keep what was read; see `Relations.save`."""
    names = sorted(relations._read)
    kept = [relations._read[name] for name in names]
    said = {
        "kind": KIND,
        "version": VERSION,
        "options": {name: getattr(relations, name) for name in OPTIONS},
        "model": relations.model,
        "treebank": relations.treebank,
        "cells": relations.cells,
        "left_out": relations.left_out,
        "sentences": [[name, list(each.relations)] for name, each in zip(names, kept, strict=True)],
    }
    arrays: dict[str, Any] = {"said": np.frombuffer(json.dumps(said).encode(), np.uint8)}
    if kept:
        arrays["heads"] = np.concatenate([each.heads for each in kept])
        arrays["predicted"] = np.concatenate([each.predicted for each in kept], axis=-1)
    with written_whole(path) as temporary, Path(temporary).open("wb") as file:
        np.savez_compressed(file, **arrays)
    return path


def load_relations(path: str | os.PathLike) -> Relations:
    """Relations that were kept, to go on with.

    Raises:
        FileError: where the file is not there, is cut, or is none of ours.
    """
    try:
        with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as kept:
            arrays = {name: kept[name] for name in kept.files}
        said = json.loads(arrays["said"].tobytes())
    except FileNotFoundError:
        raise FileError(f"{path} is not there") from None
    except (OSError, ValueError, KeyError, EOFError, TypeError, AttributeError, zipfile.BadZipFile) as error:
        raise FileError(f"{path} is cut or holds no relations: {error}") from None
    if not isinstance(said, dict) or said.get("kind") != KIND:
        raise FileError(f"{path} holds no relations")
    if said["version"] > VERSION:
        raise FileError(f"{path} was written by a newer headscope (format {said['version']}, this one reads {VERSION})")
    found = Relations(**said["options"])
    found.model, found.treebank, found.left_out = said["model"], said["treebank"], said["left_out"]
    found.cells = tuple((layer, head) for layer, head in said["cells"])
    place = 0
    for name, names in said["sentences"]:
        words = slice(place, place + len(names))
        found._read[name] = Read(tuple(names), arrays["heads"][words], arrays["predicted"][..., words])
        place += len(names)
    return found
