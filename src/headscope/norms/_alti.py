"""Contributions by the distance to the whole."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from headscope.norms._block import Block
from headscope.norms._vectors import output_vectors, residual_vectors

CACHED_BYTES = 2**21


def alti(block: Block) -> Float[np.ndarray, "query key"]:
    """ALTI: ``c_ij = max(0, ||y_i||_1 - ||y_i - T_ij||_1)``, rows divided by their sum.

    y_i is the norm's output, shift and b_O included as in the release, T_ij the vectors of
    `output_norms`; where no norm follows, the residual stream and the vectors of `residual_norms`
    (ours). The deviation is that of the norm itself; the release takes ``(p + eps).std()`` with n -
    1, off by ``sqrt((d - 1) / d)``. A row in which no piece comes nearer to the whole than nothing
    does is all zero; so where queries and keys are different tokens, rows sum to less than 1: the
    rest is the residual's.

    Source: Ferrando et al. 2022, section 3.2; for cross-attention Ferrando et al. 2022 (ALTI+),
    section 3.

    Raises:
        RecordError: where the block has no residual.
    """
    added = residual_vectors(block) if block.after is None else output_vectors(block)
    whole = block.normed
    length = np.abs(whole).sum(axis=-1)
    _, queries, keys, model = block.size
    near = np.empty((queries, keys))
    # Vectors of all pairs at once would take query x key x model numbers; those of a few keys stay
    # in the processor's cache, which takes half the time of larger tiles.
    for tile in block.tiles(2 * 8 * queries * model, CACHED_BYTES):
        vectors = added.vectors(tile)
        np.subtract(whole, vectors, out=vectors)
        near[:, tile] = (length - np.abs(vectors, out=vectors).sum(axis=-1)).T
    near = np.maximum(near, 0.0)
    sums = near.sum(axis=-1, keepdims=True)
    # Of different tokens the residual is no key's, but takes its share of the whole all the same.
    if not block.same and added.own is not None:
        apart = np.abs(whole - added.own).sum(axis=-1)
        sums = sums + np.maximum(length - apart, 0.0)[:, None]
    return np.divide(near, sums, out=np.zeros_like(near), where=sums > 0)
