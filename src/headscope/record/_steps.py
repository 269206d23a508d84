"""Weights of a generation, step by step as transformers returns them, to one square."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headscope.errors import RecordError


def is_ragged(arrays: Any) -> bool:
    """Whether these are steps with layers ``[1 head query key]`` in each, as ``model.generate``
    returns them.
    """
    if hasattr(arrays, "shape") or not isinstance(arrays, Sequence) or not arrays:
        return False
    first = arrays[0]
    if hasattr(first, "shape") or not isinstance(first, Sequence):
        return False
    return len(first) > 0 and all(
        array is None or len(getattr(array, "shape", ())) == 4 for array in first
    )


def joined_steps(steps: Any, name: str) -> list[Any]:
    """An array ``[head query key]`` for each layer: the rows of all steps below each other.

    A step that wrote one token has its row alone, over the keys until then; those that came later
    it could not see.

    Args:
        steps: for each step the layers, ``[1 head query key]`` or None.
        name: of the attention, for messages.

    Raises:
        RecordError: steps with different layers, several texts or beams, or keys that do not go on
            from each other.
    """
    counts = {len(step) for step in steps}
    if len(counts) > 1:
        raise RecordError(
            f"{name} attention: the steps have {sorted(counts)} layers; give what one generate "
            "returned"
        )
    return [
        _joined([_array(step[number]) for step in steps], f"{name} attention of layer {number}")
        for number in range(counts.pop())
    ]


def _joined(steps: list[np.ndarray | None], name: str) -> np.ndarray | None:
    if all(step is None for step in steps):
        return None
    known = _alike(steps, name)
    rows, keys = sum(step.shape[2] for step in known), known[-1].shape[3]
    square = np.zeros((known[0].shape[1], rows, keys), np.float32)
    first = 0
    for number, step in enumerate(known):
        stop = first + step.shape[2]
        # Self-attention looks at all tokens read so far; cross-attention at the whole source in
        # every step.
        if step.shape[3] not in (stop, keys):
            raise RecordError(
                f"{name}: step {number} has {step.shape[3]} keys, and {stop} tokens were read by "
                "then; a cache that forgets (a sliding window) or was filled before cannot be "
                "joined: use headscope.generate"
            )
        square[:, first:stop, : step.shape[3]] = step[0]
        first = stop
    return square


def _alike(steps: list[np.ndarray | None], name: str) -> list[np.ndarray]:
    """The steps, all of which must be there, of one text and with the same heads."""
    known = [step for step in steps if step is not None]
    shapes = {step.shape[:2] for step in known}
    if len(known) < len(steps) or len(shapes) > 1 or known[0].shape[0] != 1:
        raise RecordError(
            f"{name}: steps must be arrays [1 head query key] of as many heads; give one text, "
            "one beam"
        )
    return known


def _array(array: Any) -> np.ndarray | None:
    if array is None:
        return None
    return np.asarray(array.detach().float().cpu() if hasattr(array, "detach") else array)
