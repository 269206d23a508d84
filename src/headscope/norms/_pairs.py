"""The vectors of all pairs of tokens of a short text, held at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from headscope.norms._lengths import CENTRED_IN_SINGLE, SUM_CANCELLED_IN_SINGLE
from headscope.norms._norm import Norm
from headscope.norms._products import ProjectionProducts, SquareForm

PAIRS_HELD = 2**10
"""How many pairs of tokens that may be in a block, 32 x 32 of one text. Products of a projection,
which have to be read from memory, take longer for so few; more texts share the reading."""


class Pairs(NamedTuple):
    """What follows from the vectors of all pairs, in single precision.

    Args:
        lengths: of each kind, of the vectors summed over heads.
        cancelled: True for keys where some length is lost in the rounding of its parts.
        bounds: what the vectors of all keys and heads would add up to if none cancelled another.
        values: lengths of each head's own vectors.
        removed: True for those that are lost in the rounding of their parts.
        others: sums over all keys but the token itself.
        own: what a token adds to itself.
    """

    lengths: Float[np.ndarray, "kind query key"]
    cancelled: Bool[np.ndarray, "key kind"]
    bounds: Float[np.ndarray, "kind query"]
    values: Float[np.ndarray, "head key"]
    removed: Bool[np.ndarray, "head key"]
    others: Float[np.ndarray, "query model"]
    own: Float[np.ndarray, "query model"]


def pairs_of(
    weights: Float[np.ndarray, "head query key"],
    values: Float[np.ndarray, "head key feature"],
    products: ProjectionProducts,
    kinds: tuple[tuple[Norm, ...], ...],
    *,
    same: bool,
) -> Pairs:
    """The vectors of all pairs, measured behind the linear parts of each kind's norms.

    Args:
        weights: of each head.
        values: of each head.
        products: of the output projection.
        kinds: the norms of each kind.
        same: whether queries and keys are the same tokens.
    """
    heads, keys, _ = values.shape
    projection = products.projection
    vectors = np.empty((keys, heads, projection.shape[-1]), products.dtype)
    np.matmul(values, projection, out=np.swapaxes(vectors, 0, 1))
    # Products are fast where one axis of each matrix lies in memory in its order.
    by_key = np.ascontiguousarray(weights.transpose(2, 0, 1), products.dtype)
    by_key = np.swapaxes(by_key, -2, -1)  # [key query head]
    sums = by_key @ vectors
    known = [products.form_and_sizes(norms) for norms in kinds]
    forms, sizes = [form for form, _ in known], np.stack([size for _, size in known])
    of_heads, longest = _lengths_of_heads(vectors, values, forms, sizes)
    bound = np.maximum(of_heads, SUM_CANCELLED_IN_SINGLE * longest).transpose(1, 2, 0)
    bounds = np.swapaxes(np.abs(by_key) @ bound, -2, -1)  # [key kind query]
    lengths, centred = _lengths_of_kinds(sums, forms)
    least = SUM_CANCELLED_IN_SINGLE * np.swapaxes(bounds, 0, 1)
    np.maximum(least, CENTRED_IN_SINGLE * centred, out=least)
    cancelled = np.any(np.less(lengths, least), axis=-1).reshape(len(kinds), keys)
    own, others = _own_and_others(sums, same=same)
    return Pairs(
        lengths=np.swapaxes(lengths, -2, -1),
        cancelled=cancelled.T,
        bounds=bounds.sum(axis=0),
        values=of_heads[0].T,
        removed=(of_heads[0] < SUM_CANCELLED_IN_SINGLE * longest[0]).T,
        others=others,
        own=own,
    )


def _lengths_of_heads(
    vectors: Float[np.ndarray, "key head model"],
    values: Float[np.ndarray, "head key feature"],
    forms: Sequence[SquareForm],
    sizes: Float[np.ndarray, "kind head"],
) -> tuple[Float[np.ndarray, "kind key head"], Float[np.ndarray, "kind key head"]]:
    """Lengths of each head's own vectors behind the gains of each kind, and a bound of them:
    ``||v_h||`` times the Frobenius norm of W_h.
    """
    squares = (vectors * vectors) @ np.stack([form.gains for form in forms]).T
    own = np.sqrt(np.einsum("hkf,hkf->kh", values, values))
    return np.sqrt(np.moveaxis(squares, -1, 0)), own * sizes[:, None]


def _lengths_of_kinds(
    sums: Float[np.ndarray, "key query model"], forms: Sequence[SquareForm]
) -> tuple[Float[np.ndarray, "kind key query"], Float[np.ndarray, "kind key query"]]:
    """Lengths of the sums behind the linear parts of each kind's norms, and how long they would be
    if no mean were taken off: where little is left, squares lose it in their rounding.
    """
    squares = (sums * sums) @ np.stack([form.gains for form in forms]).T
    squares = np.ascontiguousarray(np.moveaxis(squares, -1, 0))
    before = np.sqrt(squares)
    # One product for the means of all kinds reads the vectors once.
    rows = np.concatenate([part for form in forms for part in (form.means, form.offsets)])
    numbers, first = sums @ rows.T, 0
    for kind, form in enumerate(forms):
        last = first + 2 * len(form.means)
        # Over no means there is nothing to sum: NumPy 2.4.6 gave NaN for it now and then, in place
        # of 0.
        if last > first:
            means, offsets = np.split(numbers[..., first:last], 2, axis=-1)
            squares[kind] += np.einsum("kqc,kqc->kq", means, means @ form.gram - 2 * offsets)
        first = last
    return np.sqrt(np.maximum(squares, 0, out=squares), out=squares), before


def _own_and_others(
    sums: Float[np.ndarray, "key query model"], *, same: bool
) -> tuple[Float[np.ndarray, "query model"], Float[np.ndarray, "query model"]]:
    """What a token adds to itself, and the sum over all others; the vectors are done with."""
    if not same:
        return np.zeros(sums.shape[1:], sums.dtype), sums.sum(axis=0)
    at = np.arange(len(sums))
    own = sums[at, at]
    sums[at, at] = 0
    return own, sums.sum(axis=0)
