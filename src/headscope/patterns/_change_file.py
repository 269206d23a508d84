"""Files of `Changes`: the heads before and after an intervention."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from headscope.patterns._change import Changes
from headscope.patterns._heads_file import heads_of_kept
from headscope.patterns._heads_file import kept_of as kept_of_heads
from headscope.results import Kept, reads
from headscope.storage import arrays_below, check_document, load_kept, reading

SIDES = ("before", "after")
CONTROL = "random."
"""Prefix of the arrays of the same architecture with random weights."""


def kept_of(changes: Changes) -> Kept:
    """The fields and arrays of a file: heads before and after, and those with random weights."""
    document: dict[str, Any] = {"what": changes.what, "control": None}
    arrays: dict[str, np.ndarray] = {}
    for side in SIDES:
        document[side], theirs = kept_of_heads(getattr(changes, side))
        arrays |= {f"{side}.{name}": array for name, array in theirs.items()}
    if changes.control is not None:
        document["control"], theirs = kept_of(changes.control)
        arrays |= {f"{CONTROL}{name}": array for name, array in theirs.items()}
    return document, arrays


@reads(Changes.KIND)
def load_changes(path: str | os.PathLike[str]) -> Changes:
    """Read changes that `Changes.save` wrote.

    Raises:
        FileError: where the file does not exist, is cut, or was not written by headscope.
    """
    document, arrays = load_kept(path, Changes.KIND)
    with reading(path, Changes.KIND):
        return _made(document, arrays)


def _made(document: dict[str, Any], arrays: dict[str, np.ndarray]) -> Changes:
    check_document(document, {"what": str})
    heads = [heads_of_kept(document[side], arrays_below(arrays, f"{side}.")) for side in SIDES]
    control = None
    if document["control"] is not None:
        control = _made(document["control"], arrays_below(arrays, CONTROL))
    return Changes(heads[0], heads[1], document["what"], control)
