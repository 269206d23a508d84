"""Relations kept as a file, from which it resumes."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from headscope.linguistics import DIRECTIONS
from headscope.results import Kept, reads
from headscope.storage import array_of
from headscope.studies.dependencies._result import Relations
from headscope.studies.dependencies._tally import DECODINGS, SentenceHeads
from headscope.studies.shared._head_file import kept_of_study, load_study, parts_of, study_of

DOCUMENT: dict[str, Any] = {"treebank": str, "sentences": [[str, [str], str]]}


def kept_of(relations: Relations) -> Kept:
    """What a file of it holds: what was read of each text; without the random twin."""

    def facts(sentence: SentenceHeads) -> list[Any]:
        return [list(sentence.relations), sentence.document]

    return kept_of_study(relations, "sentences", facts, {"heads": 0, "predicted": -1})


@reads(Relations.KIND)
def load_relations(path: str | os.PathLike[str]) -> Relations:
    """Saved relations, to resume.

    Raises:
        FileError: where the file does not exist, is cut, or is none of ours.
    """
    return load_study(path, Relations, DOCUMENT, _fill)


def relations_of(kept: Kept) -> Relations:
    """The study of what `kept_of` gave."""
    return study_of(kept, Relations, DOCUMENT, _fill)


def _fill(study: Relations, facts: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    study.treebank = facts["treebank"]
    if not facts["sentences"]:
        return
    names, relations, documents = zip(*facts["sentences"], strict=True)
    sizes = [len(each) for each in relations]
    size = (len(DECODINGS), len(DIRECTIONS), len(study.cells), sum(sizes))
    heads = array_of(arrays, "heads", "i", (sum(sizes),))
    predicted = array_of(arrays, "predicted", "i", size)
    sentences = zip(parts_of(names, sizes), relations, documents, strict=True)
    for (name, part), of, document in sentences:
        checked = _checked(heads[part], predicted[..., part])
        study._read[name] = SentenceHeads(tuple(of), *checked, document)


def _checked(heads: np.ndarray, predicted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same, where they are words of their sentence."""
    size = len(heads)
    if not size or heads.min() < -1 or max(heads.max(), predicted.max(initial=-1)) >= size:
        raise ValueError(f"a sentence of {size} words has heads that are not in it")
    return heads, predicted
