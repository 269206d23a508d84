"""Heads, layers and tokens, as they are written on the command line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from headscope.errors import CaptureError, RecordError

LAYER_AND_HEADS = re.compile(r"(\d+)(?:-(\d+(?:,\d+)*))?")
HEAD = re.compile(r"(?:(.+):)?(\d+)-(\d+)")


def parse_places(written: Iterable[str], option: str = "") -> list[tuple[int, list[int]]]:
    """Layer and heads of each ``2-0``, ``2-0,3,5``, or ``2``, which names no heads: all of them.

    Args:
        written: what was given.
        option: the option that it was given for, named in the message.

    Raises:
        RecordError: where one has another form.
    """
    places = []
    for each in written:
        match = LAYER_AND_HEADS.fullmatch(each.strip())
        if match is None:
            where = f" for {option}" if option else ""
            raise RecordError(
                f"Expected layer and heads{where}, such as 2-0, 2-0,3,5, or 2 for all heads, "
                f"got {each!r}"
            )
        layer, heads = match.groups()
        places.append((int(layer), [int(head) for head in heads.split(",")] if heads else []))
    return places


def parse_heads(written: Iterable[str]) -> list[tuple] | None:
    """Heads as they are given for ``--keep-heads``: 12-7, or cross:3-0; None for all.

    Raises:
        CaptureError: where one is no head.
    """
    heads: list[tuple] = []
    for each in written:
        match = HEAD.fullmatch(each)
        if match is None:
            raise CaptureError(
                f"Expected layer and head for --keep-heads, such as 12-7 or cross:3-0, got {each!r}"
            )
        stack, layer, head = match.groups()
        heads.append((*([stack] if stack else []), int(layer), int(head)))
    return heads or None


def layer_number(given: int, numbers: Sequence[int]) -> int:
    """The number of a layer from the command line, which counts from the end where negative.

    Args:
        given: a number from 0, or -1 for the last layer.
        numbers: numbers of all layers.
    """
    # Numbers out of range are returned as they are: the record or the model then raises.
    return numbers[given] if -len(numbers) <= given < 0 else given


def position_or_word(given: str) -> int | str:
    """A token from the command line: a position from 0, or its word."""
    return int(given) if given.lstrip("-").isdecimal() else given
