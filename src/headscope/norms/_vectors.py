"""The vectors that keys add to queries, and their norms, without ever holding all of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from headscope.errors import RecordError
from headscope.norms._block import Block, BlockArrays
from headscope.norms._norm import Norm


@dataclass(frozen=True, eq=False)
class ContributionVectors:
    """Vectors ``P_ij = sum_h a_ij rows_i linear(f_h(x_j)) + [i = j] own_i``.

    Args:
        block: whose they are; `BlockArrays` says which axes ``*text`` may be in front.
        norms: whose linear parts each f(x_j) goes through, one after the other, the same for all
            queries.
        rows: ``[*text query]``, what a query's vectors are multiplied by; None for 1.
        own: ``[*text query model]``, what the residual adds.
    """

    block: BlockArrays
    norms: tuple[Norm, ...] = ()
    rows: np.ndarray | None = None
    own: np.ndarray | None = None

    def linear(self, vectors: Float[np.ndarray, "... model"]) -> Float[np.ndarray, "... model"]:
        """The linear parts of the norms."""
        for norm in self.norms:
            vectors = norm.linear(vectors)
        return vectors

    def lengths(self) -> Float[np.ndarray, "*text query key"]:
        """Norms of all vectors (see `BlockArrays.lengths_behind`)."""
        lengths = self.block.lengths_behind
        if self.norms:
            known = lengths(self.norms)
        else:
            # With the residual and without it they are the same but for the diagonal.
            known = self.block.kept("lengths", lambda: lengths(())).copy()
        if self.rows is not None:
            known *= self.rows[..., None]
        # Only on the diagonal a residual is added, which needs the vectors themselves.
        if self.own is not None and self.block.same:
            diagonal = np.arange(known.shape[-1])
            known[..., diagonal, diagonal] = np.linalg.norm(self.diagonal(), axis=-1)
        return known

    def diagonal(self) -> Float[np.ndarray, "*text query model"]:
        """``P_ii``: what a token adds to itself, the residual included."""
        if not self.block.same:
            raise RecordError("Queries and keys are different tokens; no token looks at itself")
        # Lengths and the mixing ratio ask for it; all else that it depends on is the block's own.
        what = "diagonal", self.norms, self.own is None
        return self.block.kept(what, lambda: self._with_own(self.linear(self.block.own_output)))

    def total(self) -> Float[np.ndarray, "*text query model"]:
        """``sum_j P_ij``, the residual included."""
        # linear is a linear map, so that of the sum it is the sum: the output without b_O.
        output = self.block.output
        if self.block.bias is not None:
            output = output - self.block.bias
        return self._with_own(self.linear(output))

    def vectors(self, tile: slice) -> Float[np.ndarray, "key query model"]:
        """The vectors of some keys, of one text.

        Raises:
            RecordError: where the block is of several texts.
        """
        block = self.block
        if not isinstance(block, Block) or block.weights.ndim != 3:
            raise RecordError("Vectors are those of one text; give a block without further axes")
        weights = block.weights[:, :, tile].transpose(2, 1, 0)  # [key query head]
        # Lengths of a block without products have asked for the same vectors.
        vectors = weights @ block.transformed(tile, self.norms).transpose(1, 0, 2)
        if self.rows is not None:
            vectors *= self.rows[:, None]
        if self.own is not None and block.same:
            # Key `at` of the tile is token `at + start`, whose own row gets its residual.
            at = np.arange(len(vectors))
            vectors[at, at + (tile.start or 0)] += self.own[tile]
        return vectors

    def _with_own(
        self, vectors: Float[np.ndarray, "*text query model"]
    ) -> Float[np.ndarray, "*text query model"]:
        if self.rows is not None:
            vectors = vectors * self.rows[..., None]
        return vectors if self.own is None else vectors + self.own


def attention_vectors(block: BlockArrays) -> ContributionVectors:
    """Of the attention's output: ``S_ij = sum_h a_ij f_h(x_j)``."""
    return ContributionVectors(block)


def residual_vectors(block: BlockArrays) -> ContributionVectors:
    """Of the residual stream after the attention: ``R_ij = before(S_ij) + [i = j] x_i``."""
    if block.residual is None:
        raise RecordError("This block has no residual; give Block(residual=...)")
    if block.before is None:
        return ContributionVectors(block, own=block.residual)
    rows = _rows_behind(block, block.before, block.output)
    return ContributionVectors(block, (block.before,), rows, block.residual)


def output_vectors(block: BlockArrays) -> ContributionVectors:
    """Of the norm's output: ``T_ij = after(R_ij)`` with the deviation of the whole."""
    if block.after is None:
        raise RecordError("This block has no norm after it; give Block(after=...)")
    return _through(residual_vectors(block), block.after, block.stream)


def globenc_vectors(block: BlockArrays) -> ContributionVectors:
    """Of the second norm's output, feed-forward part left out: ``U_ij = second(T_ij)``, deviation
    of the whole.
    """
    if block.second is None or block.stream_again is None:
        raise RecordError("This block has no second norm; give Block(second=..., stream_again=...)")
    return _through(output_vectors(block), block.second, block.stream_again)


def _through(vectors: ContributionVectors, norm: Norm, whole: np.ndarray) -> ContributionVectors:
    # Once the deviation of the whole is known, a norm is linear but for its shift, and so can be
    # taken of each piece by itself.
    rows = _rows_behind(vectors.block, norm, whole)
    own = vectors.own
    if own is not None:
        residual = own
        own = vectors.block.kept(
            ("own", vectors.norms, norm), lambda: norm.linear(residual) * rows[..., None]
        )
    all_rows = rows if vectors.rows is None else rows * vectors.rows
    return ContributionVectors(vectors.block, (*vectors.norms, norm), all_rows, own)


def _rows_behind(
    block: BlockArrays, norm: Norm, whole: Float[np.ndarray, "*text query model"]
) -> Float[np.ndarray, "*text query"]:
    """What a norm multiplies a query's vectors by, besides its linear part: asked for by each kind
    of contribution that goes through it.
    """
    return block.kept(("rows", norm), lambda: 1 / norm.deviation(whole))
