"""Coreference kept as a file, to be gone on with."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from headscope.linguistics.mentions import RULES
from headscope.results import Kept, reads
from headscope.storage import array_of, check_document, load_kept, reading
from headscope.studies.coreference._result import Coreference
from headscope.studies.coreference._tally import CANDIDATES, Answers
from headscope.studies.shared._head_study import anew

KIND = "coreference"
SAID: dict[str, Any] = {"data": str, "passages": [[str, str, [[str]]]]}


def kept_of(coreference: Coreference) -> Kept:
    """What a file of it holds: what was answered of each text; without the random twin."""
    kept = [coreference._read[name] for name in coreference.names]
    said = coreference._said() | {
        "data": coreference.data,
        "passages": [
            [name, each.document, each.kinds]
            for name, each in zip(coreference.names, kept, strict=True)
        ],
    }
    arrays = {}
    if kept:
        arrays["rules"] = np.concatenate([each.rules for each in kept], axis=-1)
        arrays["heads"] = np.concatenate([each.heads for each in kept], axis=-1)
    return said, arrays


@reads(KIND)
def load_coref(path: str | os.PathLike[str]) -> Coreference:
    """Coreference that was kept, to go on with, or to add to others.

    Raises:
        FileError: where the file does not exist, is cut, or is none of ours.
    """
    said, arrays = load_kept(path, KIND)
    with reading(path, KIND):
        check_document(said, SAID)
        study = anew(Coreference, said)
        study.data = said["data"]
        kept = said["passages"]
        questions = sum(len(kinds) for _, _, kinds in kept)
        if kept:
            rules = array_of(arrays, "rules", "b", (len(RULES), questions))
            heads = array_of(arrays, "heads", "b", (len(CANDIDATES), len(study.cells), questions))
        place = 0
        for name, document, kinds in kept:
            asked = slice(place, place + len(kinds))
            study._read[name] = Answers(
                document, tuple(map(tuple, kinds)), rules[:, asked], heads[..., asked]
            )
            place += len(kinds)
        if len(study._read) != len(kept):
            raise ValueError("two of its passages have one name")
    return study
