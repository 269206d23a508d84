"""Tallies of mechanisms kept as files, to be gone on with."""

from __future__ import annotations

import os
from pathlib import Path

from headscope.errors import RecordError
from headscope.evidence import Statistic
from headscope.patterns._mechanism_tally import MechanismTally, parse_pattern
from headscope.patterns._pattern import Pattern
from headscope.patterns._units import Units
from headscope.storage import load_kept, save_kept

KIND = "mechanism tally"


def save(tally: MechanismTally, path: Path) -> Path:
    """Keep what was counted; see `MechanismTally.save`."""
    said = {
        "at": tally.at,
        "pattern": tally.pattern and tally.pattern.name,
        "stack": tally.stack,
        "share": tally.share,
        "model": tally.model,
        "cells": tally.cells,
        "units": [[layer, each.members, each.frequencies] for layer, each in tally.units.items()],
        "names": tally.statistic.names,
        "texts": tally.statistic.texts,
    }
    arrays = {"values": tally.statistic.values, "carried": tally._carried, "seen": tally._seen}
    return save_kept(path, KIND, said, arrays)


def load_mechanism_tally(path: str | os.PathLike, *, pattern: Pattern | None = None) -> MechanismTally:
    """A tally that was kept, to go on with, or to add to others.

    Args:
        path: of the file.
        pattern: the one it was made with, where that was a `Pattern` of one's own: a file keeps its name alone.

    Raises:
        FileError: where the file is not there, is cut, or is none of ours.
        RecordError: where it was made with a pattern that has to be given, or with another one.
    """
    said, arrays = load_kept(path, KIND)
    name = said["pattern"]
    if pattern is not None and pattern.name != name:
        raise RecordError(f"{path} was made with the pattern {name!r}, and given is {pattern.name!r}")
    try:
        wanted = parse_pattern(name if pattern is None else pattern)
    except RecordError:
        raise RecordError(f"{path} was made with a pattern of one's own, {name!r}; give it as pattern=") from None
    at = said["at"] and [(layer, head) for layer, head in said["at"]]
    found = MechanismTally(at, pattern=wanted, stack=said["stack"], share=said["share"])
    found.model, found.cells = said["model"], [(layer, head) for layer, head in said["cells"]]
    found.units = {
        layer: Units(tuple(tuple(member) for member in members), tuple(frequencies))
        for layer, members, frequencies in said["units"]
    }
    found.statistic = Statistic(arrays["values"].shape[1:], tuple(said["names"]))
    for text, values in zip(said["texts"], arrays["values"], strict=True):
        found.statistic.update(text, values)
    found._carried, found._seen = arrays["carried"], arrays["seen"]
    return found
