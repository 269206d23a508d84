"""Relations kept as a file, to be gone on with."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from headscope.storage import load_kept, save_kept
from headscope.studies._relation_result import Relations
from headscope.studies._relation_tally import Read

KIND = "relations"
OPTIONS = ("rows", "trees", "universal", "stack", "confidence", "correction", "seed")


def save(relations: Relations, path: Path) -> Path:
    """Keep what was read; see `Relations.save`."""
    names = sorted(relations._read)
    kept = [relations._read[name] for name in names]
    said = {
        "options": {name: getattr(relations, name) for name in OPTIONS},
        "model": relations.model,
        "treebank": relations.treebank,
        "cells": relations.cells,
        "left_out": relations.left_out,
        "sentences": [[name, list(each.relations)] for name, each in zip(names, kept, strict=True)],
    }
    arrays = {}
    if kept:
        arrays["heads"] = np.concatenate([each.heads for each in kept])
        arrays["predicted"] = np.concatenate([each.predicted for each in kept], axis=-1)
    return save_kept(path, KIND, said, arrays)


def load_relations(path: str | os.PathLike) -> Relations:
    """Relations that were kept, to go on with.

    Raises:
        FileError: where the file is not there, is cut, or is none of ours.
    """
    said, arrays = load_kept(path, KIND)
    found = Relations(**said["options"])
    found.model, found.treebank, found.left_out = said["model"], said["treebank"], said["left_out"]
    found.cells = tuple((layer, head) for layer, head in said["cells"])
    place = 0
    for name, names in said["sentences"]:
        words = slice(place, place + len(names))
        found._read[name] = Read(tuple(names), arrays["heads"][words], arrays["predicted"][..., words])
        place += len(names)
    return found
