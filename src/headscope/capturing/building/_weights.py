"""The weights of a call as a record keeps them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from headscope.capturing.building._checks import without_padding
from headscope.capturing.building._lazy_zeros import untouched_zeros
from headscope.capturing.building._postponed import recomputed_weights
from headscope.capturing.building._real_tokens import RealTokens, stored
from headscope.capturing.calls.attention import QueryRows, has_own_weights, weights_of
from headscope.capturing.calls.visibility import Visibility

WEIGHTS_AT_ONCE = 2**20
"""Number of weights computed at once, so that no second array of the kept size is needed."""


def kept_weights(
    unpadded_texts: Sequence[RealTokens],
    visibility: Visibility,
    dtype: np.dtype,
    *,
    known: torch.Tensor | None = None,
) -> list[np.ndarray]:
    """Weights ``[head query key]`` of the real tokens of each text, computed in tiles.

    Args:
        unpadded_texts: the texts of a call.
        visibility: what its queries may look at.
        dtype: in which weights are kept.
        known: ``[text head query key]``, the weights of texts without padding among the queries,
            where they were computed before.
    """
    if known is not None:
        return [
            stored(without_padding(weights, text), dtype)
            for weights, text in zip(known, unpadded_texts, strict=True)
        ]
    if has_own_weights(unpadded_texts[0].call):
        return [_own_weights(unpadded, visibility, dtype) for unpadded in unpadded_texts]
    return recomputed_weights(unpadded_texts, dtype)


def _own_weights(unpadded: RealTokens, visibility: Visibility, dtype: np.dtype) -> np.ndarray:
    text, visibility = unpadded.call.of_text(unpadded.example), visibility.of_text(unpadded.example)
    heads, keys = text.size[1], text.size[3]
    kept = untouched_zeros((heads, len(unpadded.queries), len(unpadded.keys)), dtype)
    first, precision = 0, getattr(torch, dtype.name)
    for rows in unpadded.queries.split(max(1, WEIGHTS_AT_ONCE // (heads * keys))):
        real = without_padding(weights_of(text, visibility, QueryRows(rows))[0], unpadded)
        kept[:, first : first + len(rows)] = real.to(precision).cpu().numpy()
        first += len(rows)
    return kept
