"""The vectors that keys add to queries, and their norms, without ever holding all of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from headscope.errors import RecordError
from headscope.norms._block import Block
from headscope.norms._norm import Norm
from headscope.norms._products import CANCELLED


@dataclass(frozen=True, eq=False)
class ContributionVectors:
    """Vectors ``P_ij = sum_h a_ij rows_i linear(f_h(x_j)) + [i = j] own_i``.

    Args:
        block: whose they are.
        norms: whose linear parts each f(x_j) goes through, one after the other, the same for all
            queries.
        rows: ``[query]``, what a query's vectors are multiplied by; None for 1.
        own: ``[query model]``, what the residual adds.
    """

    block: Block
    norms: tuple[Norm, ...] = ()
    rows: np.ndarray | None = None
    own: np.ndarray | None = None

    def linear(self, vectors: Float[np.ndarray, "... model"]) -> Float[np.ndarray, "... model"]:
        """The linear parts of the norms."""
        for norm in self.norms:
            vectors = norm.linear(vectors)
        return vectors

    def lengths(self) -> Float[np.ndarray, "query key"]:
        """Norms of all vectors, from the Gram matrix ``[head head]`` of each key's vectors.

        Of keys where heads cancel each other, from the root of it, ``||R_j a_ij||`` with R_j from
        QR of the vectors, which keeps the digits that the matrix itself loses.
        """
        if self.norms:
            lengths = self._lengths()
        else:
            # With the residual and without it they are the same but for the diagonal.
            lengths = self.block.kept("lengths", self._lengths).copy()
        if self.rows is not None:
            lengths *= self.rows[:, None]
        # Only on the diagonal a residual is added, which needs the vectors themselves.
        if self.own is not None and self.block.same:
            np.fill_diagonal(lengths, np.linalg.norm(self.diagonal(), axis=-1))
        return lengths

    def _lengths(self) -> Float[np.ndarray, "query key"]:
        """``||sum_h a_ij linear(f_h(x_j))||``."""
        heads, queries, keys, model = self.block.size
        lengths = np.empty((queries, keys))
        for tile in self.block.tiles(8 * heads * (2 * model + queries + heads)):
            lengths[:, tile] = self._lengths_of(tile).T
        return lengths

    def _lengths_of(self, tile: slice) -> Float[np.ndarray, "key query"]:
        weights = self.block.weights_by_key(tile)
        if self.block.products is not None:
            values = self.block.values_of_heads[:, tile]
            gram, longest = self.block.products.gram(values, self.norms)
        else:
            vectors = self._transformed(tile).transpose(1, 0, 2)
            gram = vectors @ vectors.transpose(0, 2, 1)
            longest = np.sqrt(np.einsum("khh->kh", gram))
        squares = np.einsum("khq,khq->kq", gram @ weights, weights)
        lengths = np.sqrt(np.maximum(squares, 0))
        straight = (longest[:, None, :] @ np.abs(weights))[:, 0]
        cancelled = np.flatnonzero((lengths < CANCELLED * straight).any(axis=1))
        if len(cancelled):
            vectors = self._transformed(cancelled + (tile.start or 0))
            # Q keeps lengths, so that ||V a|| = ||Q R a|| = ||R a||
            roots = np.linalg.qr(vectors.transpose(1, 2, 0), mode="r")  # [key _ head]
            lengths[cancelled] = np.linalg.norm(roots @ weights[cancelled], axis=1)
        return lengths

    def diagonal(self) -> Float[np.ndarray, "query model"]:
        """``P_ii``: what a token adds to itself, the residual included."""
        if not self.block.same:
            raise RecordError("Queries and keys are different tokens; no token looks at itself")
        return self._with_own(self.linear(self.block.own_output))

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

    def _transformed(self, keys: slice | np.ndarray) -> Float[np.ndarray, "head key model"]:
        """``linear(f_h(x_j))`` of some keys."""
        if isinstance(keys, np.ndarray) or not self.block.is_small:
            return self.linear(self.block.transformed(keys))
        # Lengths and ALTI ask for the same vectors.
        key = "linear", self.norms
        return self.block.kept(key, lambda: self.linear(self.block.transformed()))[:, keys]

    def _with_own(self, vectors: np.ndarray) -> np.ndarray:
        if self.rows is not None:
            vectors = vectors * self.rows[:, None]
        return vectors if self.own is None else vectors + self.own


def attention_vectors(block: Block) -> ContributionVectors:
    """Of the attention's output: ``S_ij = sum_h a_ij f_h(x_j)``."""
    return ContributionVectors(block)


def residual_vectors(block: Block) -> ContributionVectors:
    """Of the residual stream after the attention: ``R_ij = before(S_ij) + [i = j] x_i``."""
    if block.residual is None:
        raise RecordError("This block has no residual; give Block(residual=...)")
    if block.before is None:
        return ContributionVectors(block, own=block.residual)
    rows = 1 / block.before.deviation(block.output)
    return ContributionVectors(block, (block.before,), rows, block.residual)


def output_vectors(block: Block) -> ContributionVectors:
    """Of the norm's output: ``T_ij = after(R_ij)`` with the deviation of the whole."""
    if block.after is None:
        raise RecordError("This block has no norm after it; give Block(after=...)")
    return _through(residual_vectors(block), block.after, block.stream)


def globenc_vectors(block: Block) -> ContributionVectors:
    """Of the second norm's output, feed-forward part left out: ``U_ij = second(T_ij)``, deviation
    of the whole.
    """
    if block.second is None or block.stream_again is None:
        raise RecordError("This block has no second norm; give Block(second=..., stream_again=...)")
    return _through(output_vectors(block), block.second, block.stream_again)


def _through(vectors: ContributionVectors, norm: Norm, whole: np.ndarray) -> ContributionVectors:
    # Once the deviation of the whole is known, a norm is linear but for its shift, and so can be
    # taken of each piece by itself.
    rows = 1 / norm.deviation(whole)
    own = None if vectors.own is None else norm.linear(vectors.own) * rows[:, None]
    all_rows = rows if vectors.rows is None else rows * vectors.rows
    return ContributionVectors(vectors.block, (*vectors.norms, norm), all_rows, own)
