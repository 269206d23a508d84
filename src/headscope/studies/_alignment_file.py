"""Alignment studies kept as files, to be gone on with."""

from __future__ import annotations

import os
from pathlib import Path

from headscope.evidence import Statistic
from headscope.storage import load_kept, save_kept
from headscope.studies._alignment_study import AlignmentStudy

KIND = "alignment study"
OPTIONS = ("stack", "special", "confidence")


def save(study: AlignmentStudy, path: Path) -> Path:
    """Keep what was counted; see `AlignmentStudy.save`."""
    said = {
        "options": {name: getattr(study, name) for name in OPTIONS},
        "model": study.model,
        "layers": study.layers,
        "heads": study.heads,
        "sentences": study.statistic.texts,
        "left_out": study.left_out,
        "refused": list(study.refused.items()),
        "digests": study.digests,
    }
    return save_kept(path, KIND, said, {"counts": study.statistic.values, "diagonal": study.diagonal.values})


def load_alignment_study(path: str | os.PathLike) -> AlignmentStudy:
    """An alignment study that was kept, to go on with, or to add to others.

    Raises:
        FileError: where the file is not there, is cut, or is none of ours.
    """
    said, arrays = load_kept(path, KIND)
    found = AlignmentStudy(**said["options"])
    found.model, found.layers, found.heads = said["model"], tuple(said["layers"]), said["heads"]
    found.left_out, found.digests = said["left_out"], said["digests"]
    found.refused = dict(said["refused"])
    found.statistic = Statistic(arrays["counts"].shape[1:])
    for name, counts, diagonal in zip(said["sentences"], arrays["counts"], arrays["diagonal"], strict=True):
        found.statistic.update(name, counts)
        found.diagonal.update(name, diagonal)
    return found
