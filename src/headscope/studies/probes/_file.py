"""What a probe found kept as a file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from headscope.results import Kept, reads
from headscope.storage import Finite, array_of, check_document, load_kept, reading
from headscope.studies.probes._probing import Probing
from headscope.studies.probes._score import Score

KIND = "probing"
SCORE: dict[str, Any] = {
    "task": str,
    "measure": str,
    "of": str,
    "sentences": int,
    "seeds": [float],
    "lengths": bool,
    "less": bool,
    "groups": ([(str, None)], None),
}
DOCUMENT: dict[str, Any] = {
    "probe": str,
    "model": str,
    "sentences": [int, int, int],
    "seeds": [int],
    "confidence": Finite,
    "left_out": {str: str},
    "words": (Finite, None),
    "scores": [SCORE],
}


def kept_of(probing: Probing) -> Kept:
    """What a file of it holds: what every score hit in each sentence."""
    document = {
        "probe": probing.kind,
        "model": probing.model,
        "sentences": probing.sentences,
        "seeds": probing.seeds,
        "confidence": probing.confidence,
        "facts": _plain(probing.facts),
        "left_out": dict(probing.left_out),
        "words": probing.words,
        "scores": [_document_of(score) for score in probing.scores],
    }
    arrays = {}
    for number, score in enumerate(probing.scores):
        arrays[f"{number}.hits"] = np.asarray(score.hits, np.float64)
        if score.lengths is not None:
            arrays[f"{number}.lengths"] = np.asarray(score.lengths, np.int64)
        if score.less is not None:
            arrays[f"{number}.less"] = np.asarray(score.less, np.float64)
    return document, arrays


def _document_of(score: Score) -> dict[str, Any]:
    return {
        "task": score.task,
        "measure": score.measure,
        "of": score.of,
        "sentences": len(score.hits),
        "seeds": [float(seed) for seed in score.seeds],
        "lengths": score.lengths is not None,
        "less": score.less is not None,
        "groups": score.groups,
    }


def _plain(value: Any) -> Any:
    """A fact as JSON takes it."""
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, tuple | list | np.ndarray):
        return [_plain(part) for part in value]
    if isinstance(value, np.generic):
        return value.item()
    # Facts are only read by people, and so may lose their kind.
    return value if isinstance(value, str | int | float | None) else str(value)


@reads(KIND)
def load_probing(path: str | os.PathLike[str]) -> Probing:
    """What a probe found, as it was kept.

    Raises:
        FileError: where the file does not exist, is cut, or is none of ours.
    """
    document, arrays = load_kept(path, KIND)
    with reading(path, KIND):
        check_document(document, DOCUMENT)
        if not 0 < document["confidence"] < 1:
            raise ValueError(f"its confidence is {document['confidence']}")
        scores = [_score(number, each, arrays) for number, each in enumerate(document["scores"])]
        return Probing(
            kind=document["probe"],
            model=document["model"],
            scores=tuple(scores),
            sentences=tuple(document["sentences"]),
            seeds=tuple(document["seeds"]),
            confidence=document["confidence"],
            facts=dict(document["facts"]),
            left_out=document["left_out"],
            words=document["words"],
        )


def _score(number: int, document: dict[str, Any], arrays: dict[str, np.ndarray]) -> Score:
    # The document says which arrays there are and how long, so that none is read with other sizes.
    size = document["sentences"]
    lengths = less = None
    if document["lengths"]:
        lengths = array_of(arrays, f"{number}.lengths", "i", (size,))
    if document["less"]:
        less = array_of(arrays, f"{number}.less", "f", (size, 2))
    groups = None if document["groups"] is None else tuple(document["groups"])
    if groups is not None and len(groups) != size:
        raise ValueError(f"a score has {len(groups)} documents of {size} sentences")
    return Score(
        task=document["task"],
        measure=document["measure"],
        of=document["of"],
        hits=array_of(arrays, f"{number}.hits", "f", (size, 2)),
        lengths=lengths,
        seeds=tuple(document["seeds"]),
        less=less,
        groups=groups,
    )
