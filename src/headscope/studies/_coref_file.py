"""Coreference kept as a file, to be gone on with."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from headscope.storage import load_kept, save_kept
from headscope.studies._coref_result import Coreference
from headscope.studies._coref_tally import Answers

KIND = "coreference"
OPTIONS = ("rows", "stack", "confidence", "correction", "seed")


def save(coreference: Coreference, path: Path) -> Path:
    """Keep what was answered; see `Coreference.save`."""
    names = sorted(coreference._answers)
    kept = [coreference._answers[name] for name in names]
    said = {
        "options": {name: getattr(coreference, name) for name in OPTIONS},
        "model": coreference.model,
        "data": coreference.data,
        "cells": coreference.cells,
        "left_out": coreference.left_out,
        "passages": [[name, each.document, each.kinds] for name, each in zip(names, kept, strict=True)],
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
    found = Coreference(**said["options"])
    found.model, found.data, found.left_out = said["model"], said["data"], said["left_out"]
    found.cells = tuple((layer, head) for layer, head in said["cells"])
    place = 0
    for name, document, kinds in said["passages"]:
        asked = slice(place, place + len(kinds))
        answered = (arrays["rules"][:, asked], arrays["heads"][..., asked])
        found._answers[name] = Answers(document, tuple(map(tuple, kinds)), *answered)
        place += len(kinds)
    return found
