"""Studies of norms kept as files, from which they resume."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from headscope.errors import RecordError
from headscope.evidence import Statistic, StatisticSums
from headscope.results import Kept, reads
from headscope.storage import (
    Finite,
    array_of,
    check_document,
    load_kept,
    reading,
)
from headscope.studies.norms._study import LAYER, NormStudy, columns_of
from headscope.studies.norms._values import ALL, ROWS

DOCUMENT: dict[str, Any] = {
    "stack": (str, None),
    "confidence": Finite,
    "model": str,
    "refused": [[int, str]],
    "names": [str],
    "texts": [str],
    "groups": ([(str, None)], None),
    "lengths": [(int, None)],
}
"""Of a file."""


SUMS: dict[str, Any] = {
    "stack": (str, None),
    "confidence": Finite,
    "model": str,
    "refused": [[int, str]],
    "names": [str],
    "sums of lengths": [[int, int]],
}
"""Of a file of sums, without single texts."""


def kept_of(study: NormStudy) -> Kept:
    """What a file of a study holds: the values of each text, or sums."""
    known: dict[str, Any] = {
        "stack": study.stack,
        "confidence": study.confidence,
        "model": study.model,
        "refused": list(study.refused.items()),
        "names": study.statistic.names,
    }
    statistic = study.statistic
    if isinstance(statistic, StatisticSums):
        document, arrays = statistic.kept
        return known | {"sums of lengths": document["lengths"]}, arrays
    lengths = [None if np.isnan(length) else int(length) for length in statistic.lengths]
    of_texts = {"texts": statistic.texts, "groups": statistic.groups, "lengths": lengths}
    return known | of_texts, {"values": statistic.values}


@reads(NormStudy.KIND)
def load_norm_study(
    path: str | os.PathLike[str], *, stack: str | None = None, confidence: float | None = None
) -> NormStudy:
    """A saved study, to resume.

    Args:
        path: of the file.
        stack: which stack of the records; by default the one that was kept.
        confidence: of the intervals; by default the one that was kept.

    Raises:
        FileError: where the file does not exist or is none of ours.
        RecordError: where it holds something else.
    """
    document, arrays = load_kept(path, NormStudy.KIND)
    if stack is not None:
        document["stack"] = stack
    if confidence is not None:
        document["confidence"] = confidence
    return norm_study_of((document, arrays), path)


def norm_study_of(kept: Kept, path: str | os.PathLike[str]) -> NormStudy:
    """The study of what a file holds.

    Args:
        kept: what is known of it, and its values.
        path: of the file, for messages.

    Raises:
        FileError: where it is none of ours.
        RecordError: where it holds something else.
    """
    document, arrays = kept
    with reading(path, "study of norms"):
        is_summed = "sums of lengths" in document
        check_document(document, SUMS if is_summed else DOCUMENT)
        study = NormStudy(stack=document["stack"], confidence=document["confidence"])
        study.model, study.refused = document["model"], dict(document["refused"])
        if is_summed:
            sums = document | {"lengths": document["sums of lengths"]}
            return _with_statistic(path, study, StatisticSums.of_kept(sums, arrays))
        # One line for each text, whose number of rows and columns the names tell below.
        values = array_of(arrays, "values", "f", (len(document["texts"]), None, None))
        statistic = Statistic(values.shape[1:], tuple(document["names"]))
        nothing = [None] * len(values)
        facts = (
            document["texts"],
            values,
            document["groups"] or nothing,
            document["lengths"] or nothing,
        )
        for text, row, group, length in zip(*facts, strict=True):
            statistic.update(text, row, group=group, length=length)
    return study if not document["names"] else _with_statistic(path, study, statistic)


def _with_statistic(
    path: str | os.PathLike[str], study: NormStudy, statistic: Statistic | StatisticSums
) -> NormStudy:
    """The study with what was counted of it.

    Raises:
        FileError: where the values are not of its layers.
        RecordError: where they are of something else.
    """
    # Names are those of the rows, then those of the columns: the layers, and all of them together.
    names = statistic.names
    if names[: len(ROWS)] != ROWS:
        raise RecordError(f"{path} holds no study of norms")
    with reading(path, "study of norms"):
        study.layers = tuple(
            int(name.removeprefix(LAYER)) for name in names[len(ROWS) :] if name != ALL
        )
        if names != (*ROWS, *columns_of(study.layers)) or statistic.shape != (
            len(ROWS),
            len(study.layers) + 1,
        ):
            raise ValueError(
                f"it has values {list(statistic.shape)} for {len(study.layers)} layers"
            )
    study.statistic = statistic
    return study
