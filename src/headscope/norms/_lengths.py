"""Lengths of weighted sums from Gram matrices, and where these do not give them."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

CANCELLED = 1e-3
"""A length below this share of what its parts would add up to if none cancelled another is taken
from the vectors; above it, a Gram matrix in double precision gives it to 1e-9."""
CANCELLED_IN_SINGLE = 1 / 8
"""As `CANCELLED`, of a Gram matrix in single precision and of the vectors' own lengths, which are
known by then. A square is known to a fraction of 2^-24 of the square of what the parts would add up
to, so that a length above this share is known to some 1e-6; the worst of random searches for blocks
that lose most stays below 1e-5 (tests/norms/test_single.py)."""
REMOVED_IN_SINGLE = 1 / 25
"""The same share for the length of one vector of its bound (`ProjectionProducts.gram`)."""
SUM_CANCELLED_IN_SINGLE = 1 / 50
"""Sums over keys, of which mixing ratios are made, and lengths with the residual are sums of
vectors, not of squares: in single precision one is known to some 2^-24 of what its parts would add
up to. Below this share of that it is taken again in double precision."""
CENTRED_IN_SINGLE = 1 / 4
"""The same share for a length whose square is what the means that norms take off leave of a larger
one (`SquareForm`)."""
CACHED_BYTES = 2**20
"""What is written and read at once of the products with all weights of a key, so that it stays in
the processor's cache."""


def lengths_of_sums(
    gram: Float[np.ndarray, "*text key kind head head"],
    longest: Float[np.ndarray, "*text key kind head"],
    weights: Float[np.ndarray, "*text key head query"],
    *,
    negative: bool,
) -> tuple[Float[np.ndarray, "*text key kind query"], Bool[np.ndarray, "*text key kind"]]:
    """Lengths of the weighted sums of each key's vectors, and True for keys where some of them are
    far shorter than if the vectors all pointed the same way. In the precision of the Gram matrix.
    """
    *texts_and_keys, heads, queries = weights.shape
    kinds, share = gram.shape[-3], CANCELLED_IN_SINGLE if is_single(gram) else CANCELLED
    weights = weights.reshape(-1, heads, queries)
    # The rows of all kinds meet the weights of their key in one product.
    gram, longest = gram.reshape(-1, kinds * heads, heads), longest.reshape(-1, kinds, heads)
    lengths = np.empty((len(weights), kinds, queries), gram.dtype)
    cancelled = np.empty((len(weights), kinds), bool)
    # Fresh memory costs more than arithmetic: what lies between is written to the same few tiles.
    step = min(max(1, CACHED_BYTES // (8 * (kinds + 1) * heads * max(1, queries))), len(weights))
    scratch = np.empty((step, kinds * heads, queries), gram.dtype)
    straight, squares = np.empty((2, step, kinds, queries), gram.dtype)
    for first in range(0, len(weights), max(1, step)):
        some = slice(first, first + step)
        own = weights[some].astype(gram.dtype, copy=False)
        products = np.matmul(gram[some], own, out=scratch[: len(own)])
        products = products.reshape(len(own), kinds, heads, queries)
        of_keys = np.einsum("knhq,khq->knq", products, own, out=squares[: len(own)])
        np.sqrt(np.maximum(of_keys, 0, out=of_keys), out=of_keys)
        lengths[some] = of_keys
        sizes = np.abs(own) if negative else own
        bound = np.matmul(longest[some], sizes, out=straight[: len(own)])
        bound *= share
        cancelled[some] = (of_keys < bound).any(axis=-1)
    lengths = lengths.reshape(*texts_and_keys, kinds, queries)
    return lengths, cancelled.reshape(*texts_and_keys, kinds)


def sure_bounds(
    gram: Float[np.ndarray, "*any head head"], longest: Float[np.ndarray, "*any head"]
) -> Float[np.ndarray, "*any head"]:
    """Bounds of the lengths of vectors, closer than those of projections where the matrix gives
    them.
    """
    if not is_single(gram):
        return longest
    return np.maximum(diagonal_lengths(gram), REMOVED_IN_SINGLE * longest)


def is_removed(
    gram: Float[np.ndarray, "*any head head"], longest: Float[np.ndarray, "*any head"]
) -> Bool[np.ndarray, "*any head"]:
    """True for vectors that are far shorter than their bound, whose lengths do not follow from the
    matrix.
    """
    share = REMOVED_IN_SINGLE if is_single(gram) else CANCELLED
    return diagonal_lengths(gram) < share * longest


def is_single(gram: Float[np.ndarray, "..."]) -> bool:
    """Whether scalar products are in single precision."""
    return gram.dtype == np.float32


def diagonal_lengths(gram: Float[np.ndarray, "*any head head"]) -> Float[np.ndarray, "*any head"]:
    """The lengths of the vectors themselves."""
    return np.sqrt(np.maximum(np.einsum("...hh->...h", gram), 0))
