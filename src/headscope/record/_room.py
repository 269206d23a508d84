"""Whether matrices of all queries and keys fit in the memory of this machine."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager

from headscope.errors import RecordError

RECOMPUTED = 24
"""Bytes of each weight at the peak of a softmax in double precision: scores, their exponentials
and the weights.
"""
SCORED = 8
"""Bytes of each score in double precision."""


def memory_of_machine() -> int | None:
    """Bytes of memory that this machine has; None where the system does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # Windows has no sysconf
        return None


@contextmanager
def room_for(shape: tuple[int, int, int], bytes_each: int, name: str) -> Generator[None]:
    """Refuse weights that this machine cannot hold, before memory is taken where that is known.

    Args:
        shape: numbers of heads, queries and keys.
        bytes_each: bytes of each weight while it is computed.
        name: of the layer, in the message.

    Raises:
        RecordError: with what they need, and how to get them in parts.
    """
    heads, queries, keys = shape
    needed, memory = heads * queries * keys * bytes_each, memory_of_machine()
    message = (
        f"{name}: weights of {heads} {'head' if heads == 1 else 'heads'} with {queries:,} "
        f"queries and {keys:,} keys need about {needed / 1e9:,.1f} GB of memory, more than "
        "this machine has; ask for some rows with weights_of(head, queries=[...]), or for all of "
        "them in blocks with weight_blocks(head)"
    )
    if memory is not None and needed > memory:
        raise RecordError(message)
    try:
        yield
    except MemoryError:
        raise RecordError(message) from None
