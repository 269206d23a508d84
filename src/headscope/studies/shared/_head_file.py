"""Studies of annotated texts kept as files from which they resume: what they share."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from headscope.results import Kept
from headscope.storage import PAIR, Finite, Seed, check_document, load_kept, reading
from headscope.studies.shared._answer_file import SUMMED, answers_of_kept, kept_of_answers
from headscope.studies.shared._head_study import Study

DOCUMENT: dict[str, Any] = {
    "options": {
        "rows": str,
        "stack": (str, None),
        "confidence": Finite,
        "correction": str,
        "seed": Seed,
        "splits": int,
        "trees": bool,
        "universal": bool,
    },
    "model": str,
    "cells": [PAIR],
    "left_out": {str: str},
    "lengths": {str: int},
}
"""What `HeadStudy._document` gives."""
MOST_SPLITS = 10_000
"""Of a file; a damaged number would keep a reader waiting for hours."""


def kept_of_study(
    study: Any, texts: str, facts: Callable[[Any], list[Any]], axes: Mapping[str, int]
) -> Kept:
    """What a file of a study holds: what was read of each text; without the random twin.

    Args:
        study: a `HeadStudy`.
        texts: the field of the document that lists the texts.
        facts: what it lists of a text beside its name.
        axes: the arrays of each text by name, with the axis along which they are joined.
    """
    if study.summed is not None:
        summed, arrays = kept_of_answers(study.summed)
        known = study._document() | {study.SOURCE: getattr(study, study.SOURCE), texts: []}
        return known | summed, arrays
    kept = [study._read[name] for name in study.names]
    listed = [[name, *facts(each)] for name, each in zip(study.names, kept, strict=True)]
    document = study._document() | {study.SOURCE: getattr(study, study.SOURCE), texts: listed}
    arrays = {}
    if kept:  # there is nothing to join of no text
        for name, axis in axes.items():
            arrays[name] = np.concatenate([getattr(each, name) for each in kept], axis=axis)
    return document, arrays


def load_study(
    path: str | os.PathLike[str],
    kind: type[Study],
    wanted: dict[str, Any],
    fill: Callable[[Study, dict[str, Any], dict[str, np.ndarray]], None],
) -> Study:
    """A study that was kept.

    Args:
        path: of the file.
        kind: of study.
        wanted: what its document holds beside `DOCUMENT`.
        fill: puts what was read of each text into it, from the document and the arrays.

    Raises:
        FileError: where the file does not exist, is cut, or is none of ours.
    """
    kept = load_kept(path, kind.KIND)
    with reading(path, kind.KIND):
        return study_of(kept, kind, wanted, fill)


def study_of(
    kept: Kept,
    kind: type[Study],
    wanted: dict[str, Any],
    fill: Callable[[Study, dict[str, Any], dict[str, np.ndarray]], None],
) -> Study:
    """A study of what was kept of it; see `load_study`.

    Raises:
        TypeError: where something is of a wrong kind.
        ValueError: where its parts do not fit each other.
    """
    document, arrays = kept
    check_document(document, wanted)
    study = _anew(kind, document)
    if SUMMED in document:
        study.summed = answers_of_kept(document, arrays)
        setattr(study, study.SOURCE, document[study.SOURCE])
        return study
    fill(study, document, arrays)
    return study


def parts_of(names: Sequence[str], sizes: Sequence[int]) -> Iterator[tuple[str, slice]]:
    """Each text by name, with its part of arrays of all.

    Raises:
        ValueError: where two have one name.
    """
    if len(set(names)) != len(names):
        raise ValueError("two of its texts have one name")
    index = 0
    for name, size in zip(names, sizes, strict=True):
        yield name, slice(index, index + size)
        index += size


def _anew(kind: type[Study], document: dict[str, Any]) -> Study:
    """One that has read nothing yet, of what `HeadStudy._document` gave.

    Raises:
        TypeError: where something is of a wrong kind.
    """
    check_document(document, DOCUMENT)
    if document["options"]["splits"] > MOST_SPLITS:
        raise ValueError(f"splits is {document['options']['splits']}")
    study = kind(**document["options"])
    study.model, study.left_out = document["model"], document["left_out"]
    study._lengths = document["lengths"]
    # JSON has lists, and cells are looked up and compared as pairs.
    study.cells = tuple((layer, head) for layer, head in document["cells"])
    return study
