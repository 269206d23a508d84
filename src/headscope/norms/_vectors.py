"""The vectors that keys add to queries, and their norms, without ever holding all of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float

from headscope.errors import RecordError
from headscope.norms._block import Block
from headscope.norms._block_arrays import BlockArrays
from headscope.norms._lengths import SUM_CANCELLED_IN_SINGLE
from headscope.norms._norm import Norm


@dataclass(frozen=True, eq=False)
class ContributionVectors:
    """Vectors ``P_ij = sum_h a_ij rows_i linear(f_h(x_j)) + [i = j] own_i``.

    Args:
        block: whose they are; `BlockArrays` says which axes ``*text`` may be in front.
        norms: whose linear parts each f(x_j) goes through, one after the other, the same for all
            queries.
        rows: ``[*text query]``, what a query's vectors are multiplied by; None for 1.
        residual: ``[*text query model]``, what the residual adds; None for nothing.
        inner: the vectors that the last norm takes, residual included; None where the residual is
            added behind the norms.
        scale: ``[*text query]``, what of ``rows`` the residual is multiplied by, too.
    """

    block: BlockArrays
    norms: tuple[Norm, ...] = ()
    rows: np.ndarray | None = None
    residual: np.ndarray | None = None
    inner: ContributionVectors | None = None
    scale: np.ndarray | None = None

    def linear(self, vectors: Float[np.ndarray, "... model"]) -> Float[np.ndarray, "... model"]:
        """The linear parts of the norms."""
        for norm in self.norms:
            vectors = norm.linear(vectors)
        return vectors

    def lengths(self) -> Float[np.ndarray, "*text query key"]:
        """Norms of all vectors (see `BlockArrays.measure`)."""
        known = self.block.lengths_behind(self.norms)
        # With the residual and without it they are the same but for the diagonal.
        lengths = known.copy() if self.rows is None else known * self.rows[..., None]
        # Only on the diagonal a residual is added, which needs the vectors themselves.
        if self.residual is not None and self.block.same:
            diagonal = np.arange(lengths.shape[-1])
            lengths[..., diagonal, diagonal] = self._lengths_of_diagonal()
        return lengths

    def _lengths_of_diagonal(self) -> Float[np.ndarray, "*text query"]:
        lengths = self._scaled_lengths(self._unscaled_diagonal())
        again = self._that_cancel(lengths)
        if again is not None:
            lengths[again] = self._in_double._lengths_of_diagonal()[again]
        return lengths

    def lengths_of_others_and_own(
        self,
    ) -> tuple[Float[np.ndarray, "*text query"], Float[np.ndarray, "*text query"]]:
        """``||sum_{j != i} P_ij||`` and ``||P_ii||``; where queries and keys are different tokens,
        all keys are others, and the residual is the token itself.

        Raises:
            RecordError: where the block's tokens differ and the vectors hold no residual.
        """
        residual = self.residual
        if self.block.same or residual is None:
            own = self._unscaled_diagonal()
        else:
            own = self._unscaled_residual(residual)
        others, own = self._scaled_lengths(self._unscaled_others()), self._scaled_lengths(own)
        again = self._that_cancel(others + own)
        if again is not None:
            in_double = self._in_double.lengths_of_others_and_own()
            others[again], own[again] = (lengths[again] for lengths in in_double)
        return others, own

    def _that_cancel(
        self, lengths: Float[np.ndarray, "*text query"]
    ) -> Bool[np.ndarray, "*text query"] | None:
        """True for queries of which sums of so small lengths need double precision; None where
        there are none.
        """
        if self.block.dtype == np.float64:
            return None
        bounds = self.block.bounds_behind(self.norms)
        bounds = bounds if self.rows is None else bounds * self.rows
        # A residual that is longer than twice this cannot cancel.
        again = lengths < 2 * SUM_CANCELLED_IN_SINGLE * bounds
        return again if again.any() else None

    @property
    def _in_double(self) -> ContributionVectors:
        inner = None if self.inner is None else self.inner._in_double
        return replace(self, block=self.block.in_double, inner=inner)

    @property
    def own(self) -> Float[np.ndarray, "*text query model"] | None:
        """What the residual adds; None for nothing."""
        residual = self.residual
        if residual is None:
            return None
        # Tiles of vectors ask for it again.
        return self.block.kept(
            ("own", self.norms), lambda: self._scaled(self._unscaled_residual(residual))
        )

    def diagonal(self) -> Float[np.ndarray, "*text query model"]:
        """``P_ii``: what a token adds to itself, the residual included."""
        return self._scaled(self._unscaled_diagonal())

    def total(self) -> Float[np.ndarray, "*text query model"]:
        """``sum_j P_ij``, the residual included."""
        # linear is a linear map, so that of the sum it is the sum: the output without b_O.
        total = self.linear(self.block.output_without_bias)
        if self.rows is not None:
            total = total * self.rows[..., None]
        return total if self.own is None else total + self.own

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
        own = self.own
        if own is not None and block.same:
            # Key `at` of the tile is token `at + start`, whose own row gets its residual.
            at = np.arange(len(vectors))
            vectors[at, at + (tile.start or 0)] += own[tile]
        return vectors

    # What a norm divides by comes last: lengths are multiplied by it instead of vectors, and the
    # next norm takes the vectors as they are. What several kinds ask for is kept.

    def _unscaled_diagonal(self) -> Float[np.ndarray, "*text query model"]:
        block, residual = self.block, self.residual
        if not block.same:
            raise RecordError("Queries and keys are different tokens; no token looks at itself")

        def made() -> Float[np.ndarray, "*text query model"]:
            if self.inner is not None:
                return self.norms[-1].linear(self.inner._unscaled_diagonal())
            own = self._through_first(block.own_output)
            return own if residual is None else own + residual

        return block.kept(("diagonal", self.norms, residual is None), made)

    def _unscaled_others(self) -> Float[np.ndarray, "*text query model"]:
        block = self.block

        def made() -> Float[np.ndarray, "*text query model"]:
            if self.inner is not None:
                return self.norms[-1].linear(self.inner._unscaled_others())
            return self._through_first(block.output_of_others)

        # No residual is among them.
        return block.kept(("others", self.norms), made)

    def _unscaled_residual(
        self, residual: Float[np.ndarray, "*text query model"]
    ) -> Float[np.ndarray, "*text query model"]:
        if self.inner is None:
            return residual
        return self.norms[-1].linear(self.inner._unscaled_residual(residual))

    def _through_first(
        self, vectors: Float[np.ndarray, "*text query model"]
    ) -> Float[np.ndarray, "*text query model"]:
        """Vectors of the attention's output where the residual is added to them."""
        vectors = self.linear(vectors)
        return vectors if self.rows is None else vectors * self.rows[..., None]

    def _scaled(
        self, vectors: Float[np.ndarray, "*text query model"]
    ) -> Float[np.ndarray, "*text query model"]:
        return vectors if self.scale is None else vectors * self.scale[..., None]

    def _scaled_lengths(
        self, vectors: Float[np.ndarray, "*text query model"]
    ) -> Float[np.ndarray, "*text query"]:
        lengths = np.sqrt(np.einsum("...m,...m->...", vectors, vectors))
        return lengths if self.scale is None else lengths * self.scale


def attention_vectors(block: BlockArrays) -> ContributionVectors:
    """Of the attention's output: ``S_ij = sum_h a_ij f_h(x_j)``."""
    return ContributionVectors(block)


def residual_vectors(block: BlockArrays) -> ContributionVectors:
    """Of the residual stream after the attention: ``R_ij = before(S_ij) + [i = j] x_i``."""
    if block.residual is None:
        raise RecordError("This block has no residual; give Block(residual=...)")
    if block.before is None:
        return ContributionVectors(block, residual=block.residual)
    rows = block.rows_behind(block.before, "output")
    return ContributionVectors(block, (block.before,), rows, block.residual)


def output_vectors(block: BlockArrays) -> ContributionVectors:
    """Of the norm's output: ``T_ij = after(R_ij)`` with the deviation of the whole."""
    if block.after is None:
        raise RecordError("This block has no norm after it; give Block(after=...)")
    return _through(residual_vectors(block), block.after, "stream")


def globenc_vectors(block: BlockArrays) -> ContributionVectors:
    """Of the second norm's output, feed-forward part left out: ``U_ij = second(T_ij)``, deviation
    of the whole.
    """
    if block.second is None or block.stream_again is None:
        raise RecordError("This block has no second norm; give Block(second=..., stream_again=...)")
    return _through(output_vectors(block), block.second, "stream_again")


def _through(vectors: ContributionVectors, norm: Norm, what: str) -> ContributionVectors:
    # Once the deviation of the whole is known, a norm is linear but for its shift, and so can be
    # taken of each piece by itself.
    own = vectors.block.rows_behind(norm, what)
    rows = own if vectors.rows is None else own * vectors.rows
    scale = own if vectors.scale is None else own * vectors.scale
    return ContributionVectors(
        vectors.block, (*vectors.norms, norm), rows, vectors.residual, inner=vectors, scale=scale
    )
