"""Files of `Heads`, and of the tallies that they are made of."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from headscope.corpus import EXAMPLE, WHOLE, Sums
from headscope.errors import RecordError
from headscope.evidence.chance import CORRECTIONS
from headscope.patterns._heads import DOCUMENT, Heads
from headscope.patterns._pattern import Pattern
from headscope.patterns._tally import Tally, TokenRuns
from headscope.results import Kept
from headscope.storage import array_of, check_document

OPTIONS = ("confidence", "alpha", "correction", "margin")


def kept_of_heads(heads: Heads) -> Kept:
    """The fields and arrays of a file: what was counted, and the options of the labels."""
    tally = heads.tally
    sums, arrays = tally.sums.kept()
    document: dict[str, Any] = {
        "options": {name: getattr(heads, name) for name in OPTIONS},
        "levels": tally.levels,
        "stack": tally.stack,
        "patterns": [pattern.facts for pattern in tally.patterns],
        "sums": sums,
        "battery": None,
    }
    if f"{EXAMPLE}says" in arrays:
        # A file of heads does not hold what their texts say.
        keys = arrays[f"{EXAMPLE}key"][:, 0].view(np.uint64).tolist()
        said = [list(b"text %08x" % (key >> 32)) for key in keys]
        arrays[f"{EXAMPLE}says"] = np.array(said, np.uint8)
    if tally.runs is not None:
        document["battery"] = [pattern.name for pattern in tally.runs.patterns]
        arrays["battery"] = tally.runs.values
    return document, arrays


def load_tally(path: str | os.PathLike[str], patterns: tuple[Pattern, ...] | None = None) -> Tally:
    """Read a saved tally, to resume it.

    Args:
        path: of the file.
        patterns: those it was made of, where these are your own: a file does not hold functions.

    Raises:
        FileError: where the file does not exist or was not written by headscope.
        RecordError: where it was made with other patterns.
    """
    tally = Heads.load(path).tally
    if patterns is None:
        return tally
    if [each.facts for each in patterns] != [each.facts for each in tally.patterns]:
        raise RecordError(f"{path} was made of other patterns; give those it was made of")
    own = Tally(patterns, stack=tally.stack, levels=tally.levels)
    own.adds_distances = tally.adds_distances
    return own + tally


def heads_of_kept(document: dict[str, Any], arrays: dict[str, np.ndarray]) -> Heads:
    """Heads from the fields and arrays of `kept_of_heads`. To be called inside `reading`.

    Raises:
        TypeError: where something has a wrong type.
        ValueError: where the numbers do not belong to its heads and patterns.
    """
    check_document(document, DOCUMENT)
    options = document["options"]
    if not 0 < options["confidence"] < 1 or options["correction"] not in CORRECTIONS:
        raise ValueError(f"its options are {options}")
    patterns = tuple(Pattern.of_facts(facts) for facts in document["patterns"])
    tally = Tally(patterns, stack=document["stack"], levels=document["levels"])
    counted = {name: array for name, array in arrays.items() if name != "battery"}
    tally.sums = Sums.of_kept((document["sums"], counted))
    tally.adds_distances = f"{WHOLE}distances" in tally.sums.names
    if tally.texts:
        check_counts(tally, arrays)
    if document["battery"] is not None:
        judged = tally.named(document["battery"])
        rows = len(Tally(judged).rows)
        values = array_of(arrays, "battery", "f", (None, rows, len(tally.cells)))
        tally.runs = TokenRuns(judged, tally.cells, values)
    return Heads(tally, **{name: options[name] for name in OPTIONS})


def check_counts(tally: Tally, arrays: dict[str, np.ndarray]) -> None:
    """Raise where the arrays do not fit patterns and heads.

    Raises:
        ValueError: saying which.
    """
    rows, heads, patterns = len(tally.sums.rows), len(tally.cells), len(tally.patterns)
    counted = rows, tally.counted_rows, heads
    array_of(arrays, "counts.sums", "f", counted)
    array_of(arrays, "counts.known", "i", counted)
    array_of(arrays, "counts.squares", "f", (rows, patterns, heads))
    array_of(arrays, "counts.no shares", "i", (rows, patterns, heads))
    for name in tally.sums.names:
        if name.startswith(f"{WHOLE}texts of "):
            number = int(name.removeprefix(f"{WHOLE}texts of "))
            array_of(arrays, name, "i", (patterns,))
            array_of(arrays, f"{WHOLE}known of {number}", "i", (patterns, heads))
            array_of(arrays, f"{WHOLE}scores of {number}", "f", (patterns, heads))
    if tally.adds_distances:
        array_of(arrays, f"{WHOLE}distances", "f", (heads, heads))
        array_of(arrays, f"{WHOLE}distances of", "i", (1,))
    if f"{EXAMPLE}key" in arrays:
        array_of(arrays, f"{EXAMPLE}scores", "f", (None, patterns, heads))
        assert tally.examples is not None, "what cannot be read is found here"
    array_of(arrays, f"{WHOLE}not judged", "i", (patterns,))
    array_of(arrays, f"{WHOLE}seen", "i", (patterns, None))
