"""Relations kept as a file, to be gone on with."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from headscope.linguistics import DIRECTIONS
from headscope.results import Kept, reads
from headscope.storage import array_of, check_document, load_kept, reading
from headscope.studies.dependencies._result import Relations
from headscope.studies.dependencies._tally import DECODINGS, Read
from headscope.studies.shared._head_study import anew

KIND = "relations"
SAID: dict[str, Any] = {"treebank": str, "sentences": [([str, [str]], [str, [str], str])]}


def kept_of(relations: Relations) -> Kept:
    """What a file of it holds: what was read of each text; without the random twin."""
    kept = [relations._read[name] for name in relations.names]
    said = relations._said() | {
        "treebank": relations.treebank,
        "sentences": [
            [name, list(each.relations), each.document]
            for name, each in zip(relations.names, kept, strict=True)
        ],
    }
    arrays = {}
    if kept:
        arrays["heads"] = np.concatenate([each.heads for each in kept])
        arrays["predicted"] = np.concatenate([each.predicted for each in kept], axis=-1)
    return said, arrays


@reads(KIND)
def load_relations(path: str | os.PathLike[str]) -> Relations:
    """Relations that were kept, to go on with.

    Raises:
        FileError: where the file does not exist, is cut, or is none of ours.
    """
    said, arrays = load_kept(path, KIND)
    with reading(path, KIND):
        check_document(said, SAID)
        study = anew(Relations, said)
        study.treebank = said["treebank"]
        kept = said["sentences"]
        words = sum(len(each[1]) for each in kept)
        if kept:
            heads = array_of(arrays, "heads", "i", (words,))
            predicted = array_of(
                arrays, "predicted", "i", (len(DECODINGS), len(DIRECTIONS), len(study.cells), words)
            )
        place = 0
        for name, names, *document in kept:  # files from before 0.2 have no documents
            part = slice(place, place + len(names))
            study._read[name] = Read(
                tuple(names), *_checked(heads[part], predicted[..., part]), *document
            )
            place += len(names)
        if len(study._read) != len(kept):
            raise ValueError("two of its sentences have one name")
    return study


def _checked(heads: np.ndarray, predicted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same, where they are words of their sentence."""
    size = len(heads)
    if not size or heads.min() < -1 or max(heads.max(), predicted.max(initial=-1)) >= size:
        raise ValueError(f"a sentence of {size} words has heads that are not in it")
    return heads, predicted
