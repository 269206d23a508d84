"""What follows from the arrays of attention blocks, of one or of several of one shape."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from headscope.norms._lengths import (
    SUM_CANCELLED_IN_SINGLE,
    diagonal_lengths,
    is_removed,
    lengths_of_sums,
    sure_bounds,
)
from headscope.norms._norm import Norm
from headscope.norms._pairs import Pairs, pairs_of
from headscope.norms._products import ProjectionProducts

if TYPE_CHECKING:
    from headscope.norms._block import Block

BYTES_AT_ONCE = 2**25
Kinds = tuple[tuple[Norm, ...], ...]
"""The norms that the vectors of each kind of contributions go through."""


@dataclass(frozen=True, kw_only=True, eq=False)
class BlockArrays(ABC):
    """What follows from the arrays of a block, or of several blocks of one shape.

    Axes ``*text`` stand in front of those of one text: none, one of texts, or those of blocks and
    of texts. The arguments are those of `Block`.
    """

    weights: np.ndarray
    values: np.ndarray
    bias: np.ndarray | None = None
    residual: np.ndarray | None = None
    same: bool = True
    before: Norm | None = None
    beside: np.ndarray | None = None
    after: Norm | None = None
    second: Norm | None = None
    stream_again: np.ndarray | None = None

    @property
    @abstractmethod
    def size(self) -> tuple[int, int, int, int]:
        """Numbers of heads, queries, keys and features of the model."""

    @property
    @abstractmethod
    def dtype(self) -> np.dtype:
        """The precision in which it is worked out, but for what cancels too much."""

    @property
    @abstractmethod
    def in_double(self) -> BlockArrays:
        """The same in double precision, without products."""

    @property
    @abstractmethod
    def has_products(self) -> bool:
        """Whether scalar products follow from those of projections, without vectors as wide as the
        model.
        """

    @property
    @abstractmethod
    def is_short(self) -> bool:
        """Whether the vectors of all pairs of tokens are held, and no Gram matrices."""

    @abstractmethod
    def projected(
        self, contexts: Float[np.ndarray, "*text query head feature"]
    ) -> Float[np.ndarray, "*text query model"]:
        """The output projection of the heads' outputs, without b_O."""

    @abstractmethod
    def products_of(self, index: tuple[int, ...], kinds: Kinds) -> tuple[ProjectionProducts, Kinds]:
        """The products of one text, and its own norms of each kind.

        Raises:
            RecordError: where there are no products.
        """

    @abstractmethod
    def gram(
        self, keys: slice, kinds: Kinds
    ) -> tuple[
        Float[np.ndarray, "*text key kind head head"], Float[np.ndarray, "*text key kind head"]
    ]:
        """Scalar products of the vectors of each key's heads behind the linear parts of each kind's
        norms, and a bound of their lengths.
        """

    @abstractmethod
    def one(
        self, index: tuple[int, ...], norms: tuple[Norm, ...]
    ) -> tuple[Block, tuple[Norm, ...]]:
        """The block of one text, and its norms among these."""

    @cached_property
    def output(self) -> Float[np.ndarray, "*text query model"]:
        """The output of the attention, b_O included."""
        output = self.output_without_bias
        return output if self.bias is None else output + self.bias.astype(self.dtype, copy=False)

    @property
    def own_output(self) -> Float[np.ndarray, "*text query model"]:
        """What each token adds to its own output, ``sum_h a_ii f_h(x_i)``, without b_O."""
        return self._outputs[1]

    @property
    def output_of_others(self) -> Float[np.ndarray, "*text query model"]:
        """What all other tokens add to a token's output, without b_O."""
        return self._outputs[0]

    @cached_property
    def output_without_bias(self) -> Float[np.ndarray, "*text query model"]:
        """The output of the attention without b_O."""
        return self.output_of_others + self.own_output if self.same else self.output_of_others

    @cached_property
    def _outputs(self) -> tuple[np.ndarray, np.ndarray]:
        """The output without b_O and each token's own part in it, and this part, if it has one."""
        if self.is_short:
            self.measure(((),))
            return self._kept["others"], self._kept["own"]
        # Weights times values first: they are far fewer numbers than f(x_j) of all keys. Both are
        # written as the projection takes them, the heads of a query side by side.
        *texts, heads, queries, _ = self.weights.shape
        features = self.values.shape[-1]
        rows = 2 * queries if self.same else queries
        both = np.empty((*texts, rows, heads, features), self.dtype)
        by_head = np.swapaxes(both, -3, -2)
        others, own = by_head[..., :queries, :], by_head[..., queries:, :]
        np.matmul(self.weights, self.values_of_heads, out=others)
        if not self.same:
            output = self.projected(both)
            return output, np.zeros_like(output)
        own_weights = self.weights.diagonal(axis1=-2, axis2=-1)[..., None]
        np.multiply(own_weights, self.values_of_heads, out=own)
        # Here and not behind the projection: what looks at itself alone gets nothing from others.
        others -= own
        # Reading the projection from memory takes longer than multiplying the few rows of a short
        # text, so that both go through it together.
        outputs = self.projected(both)
        return outputs[..., :queries, :], outputs[..., queries:, :]

    @cached_property
    def values_of_heads(self) -> Float[np.ndarray, "*text head key feature"]:
        """Values, once for each head that uses them."""
        shared = self.weights.shape[-3] // self.values.shape[-3]
        return self.values if shared == 1 else np.repeat(self.values, shared, axis=-3)

    @cached_property
    def stream(self) -> Float[np.ndarray, "*text query model"]:
        """The attention's output with the residual."""
        stream = self.output
        if self.before is not None:
            stream = self.before(stream)
        for part in (self.residual, self.beside):
            stream = stream if part is None else stream + part
        return stream

    @cached_property
    def normed(self) -> Float[np.ndarray, "*text query model"]:
        """What the norm makes of that; without a norm, the same."""
        norm = self.after
        if norm is None:
            return self.stream
        normed, rows = norm.with_rows(self.stream)
        self.kept(("rows", norm), lambda: self._sure_rows(norm, rows, "stream"))
        return normed

    def rows_behind(self, norm: Norm, what: str) -> Float[np.ndarray, "*text query"]:
        """What a norm of the block multiplies a query's vectors by, besides its linear part: asked
        for by each kind of contribution that goes through it.

        Args:
            norm: the norm.
            what: it takes: the name of an attribute.
        """

        def made() -> Float[np.ndarray, "*text query"]:
            return self._sure_rows(norm, 1 / norm.deviation(getattr(self, what)), what)

        return self.kept(("rows", norm), made)

    def _sure_rows(
        self, norm: Norm, rows: Float[np.ndarray, "*text query"], what: str
    ) -> Float[np.ndarray, "*text query"]:
        """Rows in double precision where a sum is so small that its parts must have cancelled."""
        if self.dtype == np.float64 or not norm.divided or what == "stream_again":
            return rows
        before = self.before
        if before is None or before is norm:
            bounds = self.bounds_behind(())
        else:
            bounds = self.bounds_behind((before,)) * self.rows_behind(before, "output")
        again = np.sqrt(self.size[3]) < rows * (2 * SUM_CANCELLED_IN_SINGLE) * bounds
        if again.any():
            rows[again] = 1 / norm.deviation(getattr(self.in_double, what))[again]
        return rows

    @property
    def value_lengths(self) -> Float[np.ndarray, "*text head key"]:
        """``||f_h(x_j)||`` of each head."""
        return self.kept("values", self._value_lengths)

    def _value_lengths(self) -> Float[np.ndarray, "*text head key"]:
        lengths = np.empty((*self.weights.shape[:-2], self.size[2]), self.dtype)
        for tile in self.key_tiles(1):
            gram, longest = self.gram(tile, ((),))
            own = self._own_lengths(gram[..., 0, :, :], longest[..., 0, :], tile.start)
            lengths[..., tile] = np.swapaxes(own, -2, -1)
        return lengths

    def lengths_behind(self, norms: tuple[Norm, ...]) -> Float[np.ndarray, "*text query key"]:
        """``||sum_h a_ij linear(f_h(x_j))||`` behind the linear part of norms; see `measure`."""
        self.measure((norms,))
        return self._kept["lengths", norms]

    def bounds_behind(self, norms: tuple[Norm, ...]) -> Float[np.ndarray, "*text query"]:
        """``sum_jh a_ij ||linear(f_h(x_j))||``, what a query's vectors would add up to if none
        cancelled another.
        """
        self.measure((norms,))
        return self._kept["bounds", norms]

    def measure(self, kinds: Kinds) -> None:
        """Work out the lengths of `lengths_behind` and of `value_lengths`, several kinds together.

        They follow from the Gram matrix ``[head head]`` of each key's vectors. Where heads cancel
        each other, they follow from the root of it, ``||R_j a_ij||`` with R_j from QR of the
        vectors, which keeps the digits that the matrix itself loses. A length is so known to 1e-9
        of itself, unless the vector is lost in the rounding of its parts, to 1e-15 of what they
        would add up to if none cancelled another.

        With products in single precision (`ProjectionProducts`) a length is known to 1e-5 of
        itself, and most are to the rounding of single precision, 1e-7: keys of which a length is
        less than an eighth of what its parts could add up to are done again in double precision.
        Of a short text they then follow from the vectors themselves.

        Args:
            kinds: the norms of each kind.
        """
        kinds = tuple(norms for norms in kinds if ("lengths", norms) not in self._kept)
        if not kinds:
            return
        if self.is_short:
            self._measure_pairs(kinds)
        else:
            self._measure(kinds)

    def _measure_pairs(self, kinds: Kinds) -> None:
        """As `_measure`, of short texts; and what a token and all others add to an output."""
        texts = self.weights.shape[:-3]
        kinds = ((), *filter(None, kinds))  # the vectors themselves are measured in any case
        measured = [self._pairs_of(index, kinds) for index in np.ndindex(texts)]
        known = {}
        for name in ("lengths", "bounds", "values", "others", "own"):
            arrays = [getattr(one, name) for one in measured]
            known[name] = np.stack(arrays).reshape(*texts, *arrays[0].shape)
        for number, norms in enumerate(kinds):
            self._kept["lengths", norms] = known["lengths"][..., number, :, :]
            self._kept["bounds", norms] = known["bounds"][..., number, :]
        self._kept.update({name: known[name] for name in ("values", "others", "own")})

    def _pairs_of(self, index: tuple[int, ...], kinds: Kinds) -> Pairs:
        """Of one text, with what cancels worked out again in double precision."""
        products, own_kinds = self.products_of(index, kinds)
        weights, values = self.weights[index], self.values_of_heads[index]
        pairs = pairs_of(weights, values, products, own_kinds, same=self.same)
        for head in np.flatnonzero(pairs.removed.any(axis=-1)).tolist():
            keys = np.flatnonzero(pairs.removed[head])
            pairs.values[head, keys] = self._value_lengths_again(index, head, keys)
        for number in np.flatnonzero(pairs.cancelled.any(axis=0)).tolist():
            keys = np.flatnonzero(pairs.cancelled[:, number])
            again = self._lengths_again(index, kinds[number], keys)
            pairs.lengths[number, :, keys] = again
        return pairs

    def _measure(self, kinds: Kinds) -> None:
        """As `measure`, of kinds that are not known yet."""
        _, queries, keys, _ = self.size
        texts = self.weights.shape[:-3]
        values = np.empty((*self.weights.shape[:-2], keys), self.dtype)
        lengths = [np.empty((*texts, queries, keys), self.dtype) for _ in kinds]
        bounds = np.zeros((*texts, len(kinds), queries), self.dtype)
        for tile in self.key_tiles(len(kinds)):
            gram, longest = self.gram(tile, kinds)
            if () in kinds:
                at = kinds.index(())
                own = self._own_lengths(gram[..., at, :, :], longest[..., at, :], tile.start)
                values[..., tile] = np.swapaxes(own, -2, -1)
            longest = sure_bounds(gram, longest)
            bounds += self._bounds_of(tile, longest)
            of_keys = self._lengths_of(tile, kinds, gram, longest)
            for number, of_kind in enumerate(lengths):
                of_kind[..., tile] = np.swapaxes(of_keys[..., number, :], -2, -1)
        for number, norms in enumerate(kinds):
            self._kept["lengths", norms] = lengths[number]
            self._kept["bounds", norms] = bounds[..., number, :]
        if () in kinds:
            self._kept["values"] = values

    def _bounds_of(
        self, tile: slice, longest: Float[np.ndarray, "*text key kind head"]
    ) -> Float[np.ndarray, "*text kind query"]:
        """What the vectors of some keys would add up to if none cancelled another."""
        weights, by_kind = np.abs(self.weights_by_key(tile)), np.moveaxis(longest, -2, -3)
        *texts, keys, heads, queries = weights.shape
        # Keys and heads lie side by side in both, so that it is one product for each text.
        flat = by_kind.reshape(*texts, longest.shape[-2], keys * heads)
        return flat @ weights.reshape(*texts, keys * heads, queries)

    def _own_lengths(
        self,
        gram: Float[np.ndarray, "*text key head head"],
        longest: Float[np.ndarray, "*text key head"],
        first: int,
    ) -> Float[np.ndarray, "*text key head"]:
        """The lengths of each key's vectors themselves.

        Args:
            gram: their scalar products.
            longest: a bound of their lengths.
            first: which key is the first one.
        """
        own, removed = diagonal_lengths(gram), is_removed(gram, longest)
        # What is left of a value that W_h all but removes is known from the vector alone.
        for *text, head in np.argwhere(removed.any(axis=-2)).tolist():
            index = tuple(text)
            keys = np.flatnonzero(removed[index][:, head])
            own[index][keys, head] = self._value_lengths_again(index, head, keys + first)
        return own

    def _value_lengths_again(
        self, index: tuple[int, ...], head: int, keys: np.ndarray
    ) -> Float[np.ndarray, " key"]:
        """Lengths of a head's own vectors in double precision."""
        block, _ = self.one(index, ())
        vectors = block.values_of_heads[head, keys] @ block.projection[head]
        return np.linalg.norm(vectors, axis=-1)

    def _lengths_again(
        self, index: tuple[int, ...], norms: tuple[Norm, ...], keys: np.ndarray
    ) -> Float[np.ndarray, "key query"]:
        """Lengths of the sums of some keys in double precision."""
        block, own = self.one(index, norms)
        weights = np.moveaxis(block.weights[..., keys], -1, 0)
        parts = range(0, len(keys), block.keys_held)
        return np.concatenate(
            [
                block.lengths_of_vectors(
                    keys[first : first + block.keys_held],
                    own,
                    weights[first : first + block.keys_held],
                )
                for first in parts
            ]
        )

    def _lengths_of(
        self,
        tile: slice,
        kinds: Kinds,
        gram: Float[np.ndarray, "*text key kind head head"],
        longest: Float[np.ndarray, "*text key kind head"],
    ) -> Float[np.ndarray, "*text key kind query"]:
        """Lengths of the weighted sums of the vectors of some keys."""
        weights = self.weights_by_key(tile)
        lengths, cancelled = lengths_of_sums(
            gram, longest, weights, negative=self._has_negative_weights
        )
        for *text, number in np.argwhere(cancelled.any(axis=-2)).tolist():
            index = tuple(text)
            keys = np.flatnonzero(cancelled[index][:, number])
            again = self._lengths_again(index, kinds[number], keys + tile.start)
            lengths[index][keys, number] = again
        return lengths

    def weights_by_key(self, keys: slice) -> Float[np.ndarray, "*text key head query"]:
        """Weights of some keys, contiguous: those of a captured layer lie in memory like this."""
        return np.ascontiguousarray(np.moveaxis(self.weights[..., keys], -1, -3))

    @cached_property
    def _has_negative_weights(self) -> bool:
        """Whether a user gave weights that no softmax gives."""
        return bool(self.weights.size) and float(self.weights.min()) < 0

    def kept(
        self, what: Hashable, make: Callable[[], Float[np.ndarray, "..."]]
    ) -> Float[np.ndarray, "..."]:
        """What follows from the block, worked out once."""
        if what not in self._kept:
            self._kept[what] = make()
        return self._kept[what]

    @cached_property
    def _kept(self) -> dict[Hashable, np.ndarray]:
        return {}

    def key_tiles(self, kinds: int) -> list[slice]:
        """Keys, as many at a time as lengths of so many kinds are worked out of."""
        heads, queries, _, model = self.size
        features = 0 if self.has_products else 2 * model
        return self.tiles(8 * heads * (features + queries + kinds * heads))

    def tiles(self, bytes_of_key: int, most: int | None = None) -> list[slice]:
        """Keys, as many at a time as fit in the memory allowed, of all texts."""
        texts = int(np.prod(self.weights.shape[:-3]))
        step = max(1, (most or BYTES_AT_ONCE) // max(1, texts * bytes_of_key))
        return [slice(first, first + step) for first in range(0, self.size[2], step)]
