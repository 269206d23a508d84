"""The vectors that keys add to queries, and their norms, without ever holding all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jaxtyping import Float

from headscope.errors import RecordError
from headscope.norms._block import Block
from headscope.norms._norm import Norm


@dataclass(frozen=True, eq=False)
class ContributionVectors:
    """Vectors ``P_ij = sum_h a_ij rows_i linear(f_h(x_j)) + [i = j] own_i``.

    Args:
        block: whose they are.
        norms: whose linear parts each f(x_j) goes through, one after the other.
        rows: ``[*text query]``, what a query's vectors are multiplied by; None for 1.
        own: ``[*text query model]``, what the residual adds; None for nothing.
    """

    block: Block
    norms: tuple[Norm, ...] = ()
    rows: Any = None
    own: Any = None

    def lengths(self) -> Float[Any, "*text query key"]:
        """Norms of all vectors."""
        lengths = self.block.lengths_behind(self.norms)
        lengths = lengths * (1 if self.rows is None else self.rows[..., None])
        if self.own is not None and self.block.same:
            # Only on the diagonal a residual is added, which needs the vectors themselves.
            queries = list(range(lengths.shape[-2]))
            keys = [self.block.first + query for query in queries]
            lengths[..., queries, keys] = _length(self.diagonal())
        return lengths

    def lengths_of_others_and_own(
        self,
    ) -> tuple[Float[Any, "*text query"], Float[Any, "*text query"]]:
        """``||sum_{j != i} P_ij||`` and ``||P_ii||``; where queries and keys are different tokens,
        all keys are others, and the residual is the token itself.

        Raises:
            RecordError: where the block's tokens differ and the vectors hold no residual.
        """
        own = self.diagonal() if self.block.same or self.own is None else self.own
        return _length(self._linear(self.block.output_of_others)), _length(own)

    def diagonal(self) -> Float[Any, "*text query model"]:
        """``P_ii``: what a token adds to itself, the residual included.

        Raises:
            RecordError: where queries and keys are different tokens.
        """
        if not self.block.same:
            raise RecordError("Queries and keys are different tokens; no token looks at itself")
        own = self._linear(self.block.own_output)
        return own if self.own is None else own + self.own

    def total(self) -> Float[Any, "*text query model"]:
        """``sum_j P_ij``, the residual included."""
        total = self._linear(self.block.output_of_others + self.block.own_output)
        return total if self.own is None else total + self.own

    def vectors(self, keys: slice) -> Float[Any, "*text key query model"]:
        """The vectors of some keys."""
        weights = self.block.weights[..., keys].swapaxes(-3, -1)  # [*text key query head]
        vectors = weights @ self.block.transformed(keys, self.norms).swapaxes(-3, -2)
        if self.rows is not None:
            vectors *= self.rows[..., None, :, None]
        if self.own is not None and self.block.same:
            first, count = self.block.first, self.block.size[1]
            which = [at for at in range(vectors.shape[-3]) if 0 <= keys.start + at - first < count]
            queries = [keys.start + at - first for at in which]
            vectors[..., which, queries, :] += self.own[..., queries, :]
        return vectors

    def through(self, norm: Norm, whole: Any) -> ContributionVectors:
        """Behind a norm that takes the whole: once its deviation is known, a norm is linear but for
        its shift, and so can be taken of each piece by itself.
        """
        rows = 1 / norm.deviation(whole)
        own = None if self.own is None else norm.linear(self.own) * rows[..., None]
        rows = rows if self.rows is None else rows * self.rows
        return ContributionVectors(self.block, (*self.norms, norm), rows, own)

    def _linear(self, vectors: Float[Any, "*text query model"]) -> Float[Any, "*text query model"]:
        """What becomes of vectors of the attention's output."""
        for norm in self.norms:
            vectors = norm.linear(vectors)
        return vectors if self.rows is None else vectors * self.rows[..., None]


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
    return residual_vectors(block).through(block.after, block.stream)


def globenc_vectors(block: Block) -> ContributionVectors:
    """Of the second norm's output, feed-forward part left out: ``U_ij = second(T_ij)``, deviation
    of the whole.
    """
    if block.second is None or block.stream_again is None:
        raise RecordError("This block has no second norm; give Block(second=..., stream_again=...)")
    return output_vectors(block).through(block.second, block.stream_again)


def _length(vectors: Float[Any, "*any model"]) -> Float[Any, "*any"]:
    return (vectors * vectors).sum(-1) ** 0.5
