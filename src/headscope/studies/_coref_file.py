"""Coreference kept as a file, to be gone on with."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from headscope.storage import load_kept, save_kept
from headscope.studies._coref_result import Coreference
from headscope.studies._coref_tally import Answers
from headscope.studies._head_study import anew

KIND = "coreference"


def save(coreference: Coreference, path: Path) -> Path:
    """Keep what was answered; see `Coreference.save`."""
    kept = [coreference._read[name] for name in coreference.names]
    said = coreference._said() | {
        "data": coreference.data,
        "passages": [[name, each.document, each.kinds] for name, each in zip(coreference.names, kept, strict=True)],
    }
    arrays = {}
    if kept:
        arrays["rules"] = np.concatenate([each.rules for each in kept], axis=-1)
        arrays["heads"] = np.concatenate([each.heads for each in kept], axis=-1)
    return save_kept(path, KIND, said, arrays)


def load_coref(path: str | os.PathLike) -> Coreference:
    """Coreference that was kept, to go on with, or to add to others.

    Raises:
        FileError: where the file is not there, is cut, or is none of ours.
    """
    said, arrays = load_kept(path, KIND)
    found = anew(Coreference, said)
    found.data = said["data"]
    place = 0
    for name, document, kinds in said["passages"]:
        asked = slice(place, place + len(kinds))
        answered = (arrays["rules"][:, asked], arrays["heads"][..., asked])
        found._read[name] = Answers(document, tuple(map(tuple, kinds)), *answered)
        place += len(kinds)
    return found
