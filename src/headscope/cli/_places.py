"""Heads as they are written on the command line."""

from __future__ import annotations

import re

PLACE = re.compile(r"(\d+)(?:-(\d+(?:,\d+)*))?")


def parse_place(place: str) -> tuple[int, list[int]] | None:
    """Layer and heads of ``2-0``, ``2-0,3,5``, or ``2``, which names no heads; None where it is
    written otherwise.
    """
    match = PLACE.fullmatch(place.strip())
    if match is None:
        return None
    layer, heads = match.groups()
    return int(layer), [int(head) for head in heads.split(",")] if heads else []
