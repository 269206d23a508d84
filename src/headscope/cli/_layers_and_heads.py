"""Heads, layers, and names with hyphens, as they are written on the command line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from headscope.errors import RecordError

LAYER_AND_HEADS = re.compile(r"(\d+)(?:-(\d+(?:,\d+)*))?")


def parse_layer_and_heads(written: str, option: str = "") -> tuple[int, list[int]]:
    """Layer and heads of ``2-0``, ``2-0,3,5``, or ``2``, which names no heads: all of them.

    Args:
        written: what was given.
        option: the option that it was given for, named in the message.

    Raises:
        RecordError: where it has another form.
    """
    match = LAYER_AND_HEADS.fullmatch(written.strip())
    if match is None:
        where = f" for {option}" if option else ""
        raise RecordError(
            f"Expected layer and heads{where}, such as 2-0, 2-0,3,5, or 2 for all heads, "
            f"got {written!r}"
        )
    layer, heads = match.groups()
    return int(layer), [int(head) for head in heads.split(",")] if heads else []


def layer_number(given: int, numbers: Sequence[int]) -> int:
    """The number of a layer from the command line, which counts from the end where negative.

    Args:
        given: a number from 0, or -1 for the last layer.
        numbers: numbers of all layers.
    """
    # Numbers out of range are returned as they are: the record or the model then raises.
    return numbers[given] if -len(numbers) <= given < 0 else given


def hyphenated(kind: Any, tokens: Sequence[Any]) -> Any:
    """A name that may be written with hyphens or underscores: next-word, next_word; called by
    cyclopts. The function of a file of the user's own, own.py:my_task, stays as it is.
    """
    from cyclopts import convert

    if ":" not in tokens[0].value:
        tokens = [token.evolve(value=token.value.replace("_", "-")) for token in tokens]
    return convert(kind, tokens)
