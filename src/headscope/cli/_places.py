"""Heads, and names of several words, as they are written on the command line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

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


def layer_number(given: int, numbers: Sequence[int]) -> int:
    """A layer as it is given on the command line, counted from the end where negative.

    Args:
        given: a number from 0, or -1 for the last layer.
        numbers: of the layers that there are.
    """
    return numbers[given] if -len(numbers) <= given < 0 else given


def hyphenated(kind: Any, tokens: Sequence[Any]) -> Any:
    """A name that may be written with hyphens or underscores: next-word, next_word; called by
    cyclopts. The function of a file of the user's own, own.py:my_task, stays as it is.
    """
    from cyclopts import convert

    if ":" not in tokens[0].value:
        tokens = [token.evolve(value=token.value.replace("_", "-")) for token in tokens]
    return convert(kind, tokens)
