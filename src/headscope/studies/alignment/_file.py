"""Alignment studies kept as files, from which they resume."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import numpy as np

from headscope.evidence import Statistic
from headscope.results import Kept, reads
from headscope.storage import Finite, array_of, check_document, load_kept, reading
from headscope.studies.alignment._best_layer_or_head import BestLayerOrHead
from headscope.studies.alignment._result import AlignmentStudy
from headscope.studies.alignment._sums import KEYS, AlignmentSums
from headscope.studies.alignment._word_alignment import BY, STATES

KIND = "alignment study"
OPTIONS = ("stack", "special", "confidence")
DOCUMENT: dict[str, Any] = {
    "options": {"stack": str, "special": bool, "confidence": Finite},
    "model": str,
    "fingerprint": str,
    "layers": [int],
    "heads": int,
    "sentences": [str],
    "groups": ([(str, None)], None),
    "left_out": {str: str},
    "refused": [[int, str]],
    "digests": {str: str},
    "lengths": {str: int},
}


SUMS: dict[str, Any] = {
    **{name: DOCUMENT[name] for name in ("options", "model", "fingerprint", "layers", "heads")},
    "left_out": {str: str},
    "refused": [[int, str]],
    "sums": {"sentences": int, "documents": int, "lengths": [[int, int]]},
}
"""Of a file of sums, without single sentences."""
SUMMED = ("counts", "ends", "apart", "diagonal", "diagonal_ends")
"""Arrays of these."""
BEST = 11
"""Numbers of what was chosen on one half: which of `KEYS`, and the fields of `BestLayerOrHead`."""


def kept_of(study: AlignmentStudy) -> Kept:
    """What a file of it holds: what was counted in each sentence, or sums; without the random
    twin.
    """
    if study.sums is not None:
        return _kept_of_sums(study, study.sums)
    document = {
        "options": {name: getattr(study, name) for name in OPTIONS},
        "model": study.model,
        "fingerprint": study.fingerprint,
        "layers": study.layers,
        "heads": study.heads,
        "sentences": study.statistic.texts,
        "left_out": study.left_out,
        "refused": list(study.refused.items()),
        # Sorted, so that files of the same sentences are the same whatever their order was.
        "digests": dict(sorted(study.digests.items())),
        "lengths": dict(sorted(study.lengths.items())),
        "groups": study.statistic.groups,
    }
    return document, {"counts": study.statistic.values, "diagonal": study.diagonal.values}


def _kept_of_sums(study: AlignmentStudy, sums: AlignmentSums) -> Kept:
    document = {
        "options": {name: getattr(study, name) for name in OPTIONS},
        "model": study.model,
        "fingerprint": study.fingerprint,
        "layers": study.layers,
        "heads": study.heads,
        "left_out": study.left_out,
        "refused": list(study.refused.items()),
        "sums": {
            "sentences": sums.sentences,
            "documents": sums.documents,
            "lengths": [list(each) for each in sorted(sums.lengths.items())],
        },
    }
    rows = []
    for key, best in sums.best.items():
        head = np.nan if best.head is None else best.head
        rows.append(
            [
                KEYS.index(key),
                *(best.layer, head, best.chosen_at, best.aer, *best.interval),
                *(*best.sentences, best.spread, best.chosen),
            ]
        )
    arrays = {name: np.asarray(getattr(sums, name), np.float64) for name in SUMMED}
    return document, arrays | {"best": np.reshape(np.array(rows, np.float64), (-1, BEST))}


def _sums_of(study: AlignmentStudy, known: dict[str, Any], arrays: Any) -> AlignmentSums:
    """What `_kept_of_sums` gave.

    Raises:
        ValueError: where its parts do not fit each other.
    """
    shape = (len(STATES), len(BY), len(study.layers), study.heads + 1)
    shapes = {
        "counts": (2, *shape),
        "ends": (*shape, 2),
        "apart": (len(STATES), *shape[2:], 2),
        "diagonal": (2,),
        "diagonal_ends": (2,),
    }
    own: dict[str, Any] = {
        name: array_of(arrays, name, "f", expected) for name, expected in shapes.items()
    }
    best = {}
    for key, layer, head, *numbers in array_of(arrays, "best", "f", (None, BEST)).tolist():
        chosen_at, aer, low, high, half, whole, spread, chosen = numbers
        if key not in range(len(KEYS)) or layer not in study.layers:
            raise ValueError(f"it has a best layer {layer} of choice {key}")
        best[KEYS[int(key)]] = BestLayerOrHead(
            layer=int(layer),
            head=None if np.isnan(head) else int(head),
            chosen_at=chosen_at,
            aer=aer,
            interval=(low, high),
            sentences=(int(half), int(whole)),
            spread=spread,
            chosen=chosen,
        )
    lengths = Counter(dict(known["lengths"]))
    counted = {name: known[name] for name in ("sentences", "documents")}
    return AlignmentSums(lengths=lengths, best=best, **counted, **own)


@reads(KIND)
def load_alignment_study(path: str | os.PathLike[str]) -> AlignmentStudy:
    """A saved alignment study, to resume or to add to others.

    Raises:
        FileError: where the file does not exist, is cut, or is none of ours.
    """
    return alignment_study_of(load_kept(path, KIND), path)


def alignment_study_of(kept: Kept, path: str | os.PathLike[str]) -> AlignmentStudy:
    """The study of what a file holds.

    Args:
        kept: what `kept_of` gave.
        path: of the file, for messages.

    Raises:
        FileError: where it is none.
    """
    document, arrays = kept
    with reading(path, KIND):
        is_summed = "sums" in document
        check_document(document, SUMS if is_summed else DOCUMENT)
        study = AlignmentStudy(**document["options"])
        study.model, study.layers, study.heads = (
            document["model"],
            tuple(document["layers"]),
            document["heads"],
        )
        study.left_out = document["left_out"]
        study.fingerprint = document["fingerprint"]
        study.refused = dict(document["refused"])
        if is_summed:
            study.sums = _sums_of(study, document["sums"], arrays)
            return study
        study.digests, study.lengths = document["digests"], document["lengths"]
        sentences, columns = len(document["sentences"]), (study.heads + 1 if study.layers else 1)
        counts = array_of(
            arrays, "counts", "f", (sentences, 2, len(STATES), len(BY), len(study.layers), columns)
        )
        diagonals = array_of(arrays, "diagonal", "f", (sentences, 2))
        study.statistic = Statistic(counts.shape[1:])
        groups = document["groups"] or [None] * sentences
        for name, count, diagonal, group in zip(
            document["sentences"], counts, diagonals, groups, strict=True
        ):
            study.statistic.update(name, count, group=group)
            study.diagonal.update(name, diagonal, group=group)
    return study
