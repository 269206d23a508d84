"""Relations kept as a file, to be gone on with."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from headscope.storage import load_kept, save_kept
from headscope.studies._head_study import anew
from headscope.studies._relation_result import Relations
from headscope.studies._relation_tally import Read

KIND = "relations"


def save(relations: Relations, path: Path) -> Path:
    """Keep what was read; see `Relations.save`."""
    kept = [relations._read[name] for name in relations.names]
    said = relations._said() | {
        "treebank": relations.treebank,
        "sentences": [[name, list(each.relations)] for name, each in zip(relations.names, kept, strict=True)],
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
    found = anew(Relations, said)
    found.treebank = said["treebank"]
    place = 0
    for name, names in said["sentences"]:
        words = slice(place, place + len(names))
        found._read[name] = Read(tuple(names), arrays["heads"][words], arrays["predicted"][..., words])
        place += len(names)
    return found
