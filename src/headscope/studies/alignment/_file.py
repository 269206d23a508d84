"""Alignment studies kept as files, from which they resume."""

from __future__ import annotations

import os
from typing import Any

from headscope.evidence import Statistic
from headscope.results import Kept, reads
from headscope.storage import Finite, array_of, check_document, load_kept, reading
from headscope.studies.alignment._result import AlignmentStudy
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
    "lengths": ({str: int}, None),
}


def kept_of(study: AlignmentStudy) -> Kept:
    """What a file of it holds: what was counted in each sentence; without the random twin."""
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
        check_document(document, DOCUMENT)
        study = AlignmentStudy(**document["options"])
        study.model, study.layers, study.heads = (
            document["model"],
            tuple(document["layers"]),
            document["heads"],
        )
        study.left_out, study.digests = document["left_out"], document["digests"]
        study.fingerprint = document.get("fingerprint", "")
        study.refused, study.lengths = (
            dict(document["refused"]),
            dict(document.get("lengths") or {}),
        )
        sentences, columns = len(document["sentences"]), (study.heads + 1 if study.layers else 1)
        counts = array_of(
            arrays, "counts", "f", (sentences, 2, len(STATES), len(BY), len(study.layers), columns)
        )
        diagonals = array_of(arrays, "diagonal", "f", (sentences, 2))
        study.statistic = Statistic(counts.shape[1:])
        # Files from before documents were known have no groups, and some no lengths or fingerprint.
        groups = document.get("groups") or [None] * sentences
        for name, count, diagonal, group in zip(
            document["sentences"], counts, diagonals, groups, strict=True
        ):
            study.statistic.update(name, count, group=group)
            study.diagonal.update(name, diagonal, group=group)
    return study
