"""Whether a head follows positions or content."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from jaxtyping import Float

from headscope.errors import RecordError


def variability(maps: Float[np.ndarray, "text head query key"]) -> Float[np.ndarray, " head"]:
    """How much a head's map changes from text to text: near 0 positions decide, near 1 the content
    does.

    ``sum_x sum_qk |A_x[q, k] - mean_x A[q, k]| / (2 sum_x sum_qk A_x[q, k])``.

    Source: Vig and Belinkov 2019, section 4.3, on the first tokens of each text (`first_tokens`).
    They leave the attention to the first token out: cut that column off before. With x texts the
    value is at most ``1 - 1/x``.

    Args:
        maps: attention of several texts, axes text, head, query, key.

    Raises:
        RecordError: where there are fewer than two texts.

    Example:
        >>> variability(np.array([[[[1.0, 0.0]]], [[[0.0, 1.0]]]])).tolist()
        [0.5]
    """
    if len(maps) < 2:
        raise RecordError(
            f"Variability compares texts, and {len(maps)} was given; give two or more"
        )
    maps = np.asarray(maps, np.float64)
    # Half the sum of absolute differences of two distributions is at most 1, hence the 2 below.
    changes = np.abs(maps - maps.mean(axis=0)).sum(axis=(0, 2, 3))
    whole = maps.sum(axis=(0, 2, 3))
    return np.divide(changes, 2 * whole, out=np.full(len(whole), np.nan), where=whole > 0)


def first_tokens(
    maps: Iterable[Float[np.ndarray, "head _ _"]], count: int
) -> Float[np.ndarray, "text head query key"]:
    """The first tokens of each text's map, of the texts that have as many, in one array.

    What is cut off takes its mass with it: rows then sum to less than 1, but for models that only
    look back.

    Args:
        maps: attention of several texts, axes head, query, key.
        count: how many tokens.

    Raises:
        RecordError: where no text is as long.

    Example:
        >>> first_tokens([np.ones((1, 3, 3)), np.ones((1, 1, 1))], 2).shape
        (1, 1, 2, 2)
    """
    long = [
        np.asarray(each, np.float64)[:, :count, :count]
        for each in maps
        if min(each.shape[1:]) >= count
    ]
    if not long:
        raise RecordError(f"No text has {count} tokens; take fewer")
    return np.stack(long)
