"""The vectors that keys add to queries, and their norms, without ever holding all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from headscope.errors import RecordError
from headscope.norms._block import Block
from headscope.norms._norm import Norm

CANCELLED = 1e-3
"""A norm below this share of what its heads would add up to if none cancelled another is taken from
QR; above it, a Gram matrix in double precision gives it to 1e-9."""


@dataclass(frozen=True, eq=False)
class ContributionVectors:
    """Vectors ``P_ij = sum_h a_ij rows_i linear(f_h(x_j)) + [i = j] own_i``.

    Args:
        block: whose they are.
        linear: what each f(x_j) goes through, the same for all queries.
        rows: ``[query]``, what a query's vectors are multiplied by; None for 1.
        own: ``[query model]``, what the residual adds.
        kind: under which the block keeps what was worked out; empty where it keeps nothing.
    """

    block: Block
    linear: Callable[[np.ndarray], np.ndarray] = lambda vectors: vectors
    rows: np.ndarray | None = None
    own: np.ndarray | None = None
    kind: str = ""

    def lengths(self) -> Float[np.ndarray, "query key"]:
        """Norms of all vectors, from the Gram matrix ``[head head]`` of each key's vectors.

        Of keys where heads cancel each other, from the root of it, ``||R_j a_ij||`` with R_j from
        QR of the vectors, which keeps the digits that the matrix itself loses.
        """
        heads, queries, keys, model = self.block.size
        lengths = np.empty((queries, keys))
        for tile in self.block.tiles(8 * heads * (2 * model + queries + heads)):
            vectors = self._transformed(tile).transpose(1, 0, 2)
            weights = self.block.weights[:, :, tile].transpose(2, 0, 1)
            both = np.ascontiguousarray(vectors), np.ascontiguousarray(weights)
            lengths[:, tile] = _lengths(*both).T
        if self.rows is not None:
            lengths *= self.rows[:, None]
        # Only on the diagonal a residual is added, which needs the vectors themselves.
        if self.own is not None and self.block.same:
            np.fill_diagonal(lengths, np.linalg.norm(self.diagonal(), axis=-1))
        return lengths

    def diagonal(self) -> Float[np.ndarray, "query model"]:
        """``P_ii``: what a token adds to itself, the residual included."""
        if not self.block.same:
            raise RecordError("Queries and keys are different tokens; no token looks at itself")
        if not self.kind:
            return self._diagonal()
        return self.block.kept(f"{self.kind} diagonal", self._diagonal)

    def _diagonal(self) -> Float[np.ndarray, "query model"]:
        heads, queries, _, model = self.block.size
        vectors = np.empty((queries, model))
        for tile in self.block.tiles(8 * heads * model):
            weights = self.block.weights[:, tile, tile].diagonal(axis1=1, axis2=2)  # [head key]
            vectors[tile] = np.einsum("hj,hjd->jd", weights, self._transformed(tile))
        return self._with_own(vectors)

    def total(self) -> Float[np.ndarray, "query model"]:
        """``sum_j P_ij``, the residual included."""
        # linear is a linear map, so that of the sum it is the sum: the output without b_O.
        output = self.block.output
        if self.block.bias is not None:
            output = output - self.block.bias
        return self._with_own(self.linear(output))

    def vectors(self, tile: slice) -> Float[np.ndarray, "key query model"]:
        """The vectors of some keys."""
        weights = self.block.weights[:, :, tile].transpose(2, 1, 0)  # [key query head]
        vectors = weights @ self._transformed(tile).transpose(1, 0, 2)
        if self.rows is not None:
            vectors *= self.rows[:, None]
        if self.own is not None and self.block.same:
            # Key `at` of the tile is token `at + start`, whose own row gets its residual.
            at = np.arange(len(vectors))
            vectors[at, at + (tile.start or 0)] += self.own[tile]
        return vectors

    def _transformed(self, tile: slice) -> Float[np.ndarray, "head key model"]:
        """``linear(f_h(x_j))`` of some keys."""
        if not self.kind or not self.block.is_small:
            return self.linear(self.block.transformed(tile))
        whole = self.block.kept(self.kind, lambda: self.linear(self.block.transformed()))
        return whole[:, tile]

    def _with_own(self, vectors: np.ndarray) -> np.ndarray:
        if self.rows is not None:
            vectors = vectors * self.rows[:, None]
        return vectors if self.own is None else vectors + self.own


def _lengths(
    vectors: Float[np.ndarray, "key head model"], weights: Float[np.ndarray, "key head query"]
) -> Float[np.ndarray, "key query"]:
    """Norms of ``sum_h a_h v_h``."""
    gram = vectors @ vectors.transpose(0, 2, 1)
    squares = np.einsum("khq,khq->kq", gram @ weights, weights)
    lengths = np.sqrt(np.maximum(squares, 0))
    straight = np.sqrt(np.einsum("khh->kh", gram))[:, None, :] @ np.abs(weights)
    cancelled = (lengths < CANCELLED * straight[:, 0]).any(axis=1)
    if cancelled.any():
        # Q keeps lengths, so that ||V a|| = ||Q R a|| = ||R a||
        roots = np.linalg.qr(vectors[cancelled].transpose(0, 2, 1), mode="r")  # [key _ head]
        lengths[cancelled] = np.linalg.norm(roots @ weights[cancelled], axis=1)
    return lengths


def attention_vectors(block: Block) -> ContributionVectors:
    """Of the attention's output: ``S_ij = sum_h a_ij f_h(x_j)``."""
    return ContributionVectors(block, kind="attention")


def residual_vectors(block: Block) -> ContributionVectors:
    """Of the residual stream after the attention: ``R_ij = before(S_ij) + [i = j] x_i``."""
    if block.residual is None:
        raise RecordError("This block has no residual; give Block(residual=...)")
    if block.before is None:
        return ContributionVectors(block, own=block.residual, kind="residual")
    rows = 1 / block.before.deviation(block.output)
    return ContributionVectors(block, block.before.linear, rows, block.residual, "residual")


def output_vectors(block: Block) -> ContributionVectors:
    """Of the norm's output: ``T_ij = after(R_ij)`` with the deviation of the whole."""
    if block.after is None:
        raise RecordError("This block has no norm after it; give Block(after=...)")
    return _through(residual_vectors(block), block.after, block.stream, "output")


def globenc_vectors(block: Block) -> ContributionVectors:
    """Of the second norm's output, feed-forward part left out: ``U_ij = second(T_ij)``, deviation
    of the whole.
    """
    if block.second is None or block.stream_again is None:
        raise RecordError("This block has no second norm; give Block(second=..., stream_again=...)")
    return _through(output_vectors(block), block.second, block.stream_again, "globenc")


def _through(
    vectors: ContributionVectors, norm: Norm, whole: np.ndarray, kind: str
) -> ContributionVectors:
    # Once the deviation of the whole is known, a norm is linear but for its shift, and so can be
    # taken of each piece by itself.
    rows = 1 / norm.deviation(whole)
    own = None if vectors.own is None else norm.linear(vectors.own) * rows[:, None]
    before = vectors.linear
    return ContributionVectors(
        vectors.block,
        lambda vectors: norm.linear(before(vectors)),
        rows if vectors.rows is None else rows * vectors.rows,
        own,
        kind,
    )
