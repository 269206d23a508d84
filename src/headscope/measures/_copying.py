"""Heads that raise what they look at."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from headscope.errors import RecordError


def copying(
    effects: Float[np.ndarray, "head token vocabulary"], ids: Sequence[int]
) -> Float[np.ndarray, " head"]:
    """How much a head raises the very token it looks at: 1 that one alone, -1 not at all.

    ``4 r - 1`` with ``r = mean_t relu(e[t, id_t]) / sum_v |e[t, v]|`` and ``e`` the effects minus
    their mean over the vocabulary; r lies in 0..0.5, since what e raises equals what it lowers.

    Source: Olsson et al. 2022, appendix ("share that falls on the attended token, in 0..0.5"): that
    range is reached with the absolute sum below the line, which is how we read it. Tokens without
    any effect are left out; NaN where none has one.

    Args:
        effects: what looking at each token adds to the logits: its vector through the values, the
            head's part of the output projection and the unembedding. The vocabulary may be a part
            of the model's. Nothing in headscope makes these yet; of a layer captured with values
            and the model's own matrices they are ``layer.values[head] @ W_O[head] @ W_U`` (without
            the norm before the unembedding).
        ids: index of each token in that vocabulary.

    Raises:
        RecordError: where ids do not fit the effects.

    Example:
        >>> copying(np.array([[[1.0, 0.0, 0.0], [0.0, 0.0, -1.0]]]), [0, 2]).round(9).tolist()
        [0.0]
    """
    effects = np.asarray(effects, np.float64)
    _, tokens, size = effects.shape
    if len(ids) != tokens or not all(0 <= index < size for index in ids):
        raise RecordError(
            f"{len(ids)} ids were given for {tokens} tokens in a vocabulary of {size}; give "
            "one for each, from 0"
        )
    # A number added to all logits changes no probability, and is taken off first.
    centred = effects - effects.mean(axis=-1, keepdims=True)
    raised = np.maximum(0.0, centred[:, np.arange(tokens), list(ids)])
    whole = np.abs(centred).sum(axis=-1)
    counted = whole > 0
    shares = np.divide(raised, whole, out=np.zeros_like(raised), where=counted).sum(axis=1)
    count = counted.sum(axis=1)
    return np.divide(4 * shares, count, out=np.full(len(count), np.nan), where=count > 0) - 1
