"""Coreference kept as a file, from which it resumes."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from headscope.linguistics.mentions import RULES
from headscope.results import Kept, reads
from headscope.storage import array_of
from headscope.studies.coreference._result import Coreference
from headscope.studies.coreference._tally import CANDIDATES, PassageHits
from headscope.studies.shared._head_file import kept_of_study, load_study, parts_of, study_of

DOCUMENT: dict[str, Any] = {"data": str, "passages": [[str, str, [[str]]]]}


def kept_of(coreference: Coreference) -> Kept:
    """What a file of it holds: what was answered of each text; without the random twin."""
    axes = {"rules": -1, "heads": -1}
    return kept_of_study(coreference, "passages", lambda hits: [hits.document, hits.kinds], axes)


@reads(Coreference.KIND)
def load_coref(path: str | os.PathLike[str]) -> Coreference:
    """A saved coreference study, to resume or to add to others.

    Raises:
        FileError: where the file does not exist, is cut, or is none of ours.
    """
    return load_study(path, Coreference, DOCUMENT, _fill)


def coref_of(kept: Kept) -> Coreference:
    """The study of what `kept_of` gave."""
    return study_of(kept, Coreference, DOCUMENT, _fill)


def _fill(study: Coreference, facts: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    study.data = facts["data"]
    if not facts["passages"]:
        return
    names, documents, kinds = zip(*facts["passages"], strict=True)
    sizes = [len(each) for each in kinds]
    rules = array_of(arrays, "rules", "b", (len(RULES), sum(sizes)))
    heads = array_of(arrays, "heads", "b", (len(CANDIDATES), len(study.cells), sum(sizes)))
    passages = zip(parts_of(names, sizes), documents, kinds, strict=True)
    for (name, asked), document, of in passages:
        named = tuple(map(tuple, of))
        study._read[name] = PassageHits(document, named, rules[:, asked], heads[..., asked])
