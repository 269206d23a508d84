"""Everything of one attention block that its contributions follow from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Float

from headscope.errors import RecordError
from headscope.norms._block_arrays import BYTES_AT_ONCE, BlockArrays, Kinds
from headscope.norms._lengths import diagonal_lengths, lengths_of_sums
from headscope.norms._norm import Norm
from headscope.norms._pairs import PAIRS_HELD
from headscope.norms._products import ProjectionProducts

OF_TEXT = ("weights", "values", "residual", "beside", "stream_again")
"""The arrays of a block that each text has for itself."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Block(BlockArrays):
    """Weights, values and output projection of an attention, and what is done to its output, in
    float64, or in the precision of its products.

    ``output = sum_h weights_h (values_h projection_h) + bias``; ``stream = residual +
    before(output) + beside``; ``normed = after(stream)``; ``normed_again = second(stream_again)``.
    Texts of the same length may share a block: an axis of texts then stands in front of the axes of
    weights, values, residual, beside and stream_again.

    Args:
        weights: ``[head query key]``.
        values: ``[kv_head key feature]``, with the bias of values in them; several heads may share
            one.
        projection: ``[head feature model]``, each head's part of W_O.
        bias: ``[model]``, b_O.
        residual: ``[query model]``, what the block's input adds to the attention's output.
        same: whether queries and keys are the same tokens, so that the residual is key ``i``'s own.
        before: norm or scale of the attention's output, before the residual is added.
        beside: ``[query model]``, what else is added in the same place (a feed-forward part that
            runs in parallel).
        after: the norm that takes the sum.
        second: in post-norm models the norm after the feed-forward part.
        stream_again: ``[query model]``, what the second norm takes.
        products: of this projection, shared by the blocks of a layer; lengths follow from them
            faster. None works without.

    Raises:
        RecordError: where the arrays do not fit.
    """

    projection: np.ndarray
    products: ProjectionProducts | None = None

    def __post_init__(self) -> None:
        for name in (
            "weights",
            "values",
            "projection",
            "bias",
            "residual",
            "beside",
            "stream_again",
        ):
            given = getattr(self, name)
            if given is not None:
                # What is done again in double precision needs the digits that were given.
                is_enough = name != "projection" and getattr(given, "dtype", None) == self.dtype
                dtype = self.dtype if is_enough else np.float64
                object.__setattr__(self, name, np.asarray(given, dtype))
        self._check()

    @property
    def dtype(self) -> np.dtype:
        """The precision of its products, or float64."""
        return np.dtype(np.float64) if self.products is None else self.products.dtype

    @cached_property
    def in_double(self) -> Block:
        """The same in double precision, without products."""
        return replace(self, products=None)

    @property
    def size(self) -> tuple[int, int, int, int]:
        """Numbers of heads, queries, keys and features of the model."""
        return (*self.weights.shape[-3:], self.projection.shape[2])

    @property
    def has_products(self) -> bool:
        """Whether scalar products follow from those of the projection."""
        return self.products is not None

    @property
    def is_short(self) -> bool:
        """Whether the vectors of all pairs of tokens are held, and no Gram matrices."""
        return self.dtype == np.float32 and self.weights[..., 0, :, :].size <= PAIRS_HELD

    def projected(
        self, contexts: Float[np.ndarray, "*text query head feature"]
    ) -> Float[np.ndarray, "*text query model"]:
        """The output projection of the heads' outputs, without b_O."""
        inputs = self.projection.shape[0] * self.projection.shape[1]
        projection = self.projection if self.products is None else self.products.projection
        outputs = contexts.reshape(-1, inputs) @ projection.reshape(inputs, -1)
        return outputs.reshape(*contexts.shape[:-2], self.size[3])

    def products_of(self, index: tuple[int, ...], kinds: Kinds) -> tuple[ProjectionProducts, Kinds]:
        """Those of all texts."""
        if self.products is None:
            raise RecordError("This block has no products; give Block(products=...)")
        return self.products, kinds

    def gram(
        self, keys: slice, kinds: Kinds
    ) -> tuple[
        Float[np.ndarray, "*text key kind head head"], Float[np.ndarray, "*text key kind head"]
    ]:
        """Scalar products of the vectors of each key's heads behind the linear parts of each kind's
        norms, and a bound of their lengths.
        """
        if self.products is not None:
            return self.products.gram(self.values_of_heads[..., keys, :], kinds)
        grams = []
        for norms in kinds:
            vectors = np.swapaxes(self.transformed(keys, norms), -3, -2)
            grams.append(vectors @ np.swapaxes(vectors, -2, -1))
        gram = np.stack(grams, axis=-3)
        return gram, np.sqrt(np.einsum("...hh->...h", gram))

    @property
    def keys_held(self) -> int:
        """Of how many keys the vectors of all heads may be held."""
        heads, _, _, model = self.size
        return max(1, BYTES_AT_ONCE // (8 * heads * max(1, model)))

    def lengths_of_vectors(
        self,
        keys: np.ndarray,
        norms: tuple[Norm, ...],
        weights: Float[np.ndarray, "key head query"],
    ) -> Float[np.ndarray, "key query"]:
        """As `lengths_behind`, of some keys of one text, from their vectors in double precision."""
        vectors = self.transformed(keys, norms).swapaxes(0, 1)
        gram = (vectors @ vectors.swapaxes(-2, -1))[:, None]
        longest = diagonal_lengths(gram)
        known, cancelled = lengths_of_sums(
            gram, longest, weights, negative=self._has_negative_weights
        )
        lengths, again = known[:, 0], np.flatnonzero(cancelled)
        if len(again):
            # Q keeps lengths, so that ||V a|| = ||Q R a|| = ||R a||
            roots = np.linalg.qr(vectors[again].swapaxes(-2, -1), mode="r")  # [key _ head]
            lengths[again] = np.linalg.norm(roots @ weights[again], axis=1)
        return lengths

    def one(
        self, index: tuple[int, ...], norms: tuple[Norm, ...]
    ) -> tuple[Block, tuple[Norm, ...]]:
        """The block of one text, and the norms, which all texts share."""
        if not index:
            return self, norms
        parts = {name: getattr(self, name) for name in OF_TEXT}
        own = {name: part[index] for name, part in parts.items() if part is not None}
        return replace(self, **own), norms

    def transformed(
        self, keys: slice | np.ndarray = slice(None), norms: tuple[Norm, ...] = ()
    ) -> Float[np.ndarray, "*text head key model"]:
        """``f(x_j)`` of each head, its value times its part of the output projection, behind the
        linear part of norms.
        """
        # Each kind of contribution asks for them again; what is small is computed once and kept.
        if isinstance(keys, np.ndarray) or not self.is_small:
            return self._transform(keys, norms)
        vectors = self.kept(("transformed", norms), lambda: self._transform(slice(None), norms))
        return vectors[..., keys, :]

    @property
    def is_small(self) -> bool:
        """Whether f(x_j) of all heads and keys may be held."""
        heads, _, _, model = self.size
        return 8 * heads * model * self.values[..., 0, :, 0].size <= BYTES_AT_ONCE

    def _transform(
        self, keys: slice | np.ndarray, norms: tuple[Norm, ...]
    ) -> Float[np.ndarray, "*text head key model"]:
        vectors = self.values_of_heads[..., keys, :] @ self.projection
        for norm in norms:
            vectors = norm.linear(vectors)
        return vectors

    def _check(self) -> None:
        for name, least in {"weights": 3, "values": 3}.items():
            if getattr(self, name).ndim < least:
                raise RecordError(
                    f"{name} of a block has {getattr(self, name).ndim} axes, expected {least}"
                )
        if self.projection.ndim != 3:
            raise RecordError(f"projection of a block has {self.projection.ndim} axes, expected 3")
        heads, queries, keys, _ = self.size
        shared = self.values.shape[-3]
        if len(self.projection) != heads or not shared or heads % shared:
            raise RecordError(
                f"A block with {heads} heads cannot use {shared} heads of values and "
                f"{len(self.projection)} of the output projection"
            )
        self._check_shapes()
        if self.same and queries != keys:
            raise RecordError(
                f"A block of {queries} queries and {keys} keys cannot have the same tokens on "
                "both sides"
            )

    def _check_shapes(self) -> None:
        _, queries, keys, model = self.size
        texts = self.weights.shape[:-3]
        wanted = {
            "values": (*texts, self.values.shape[-3], keys, self.projection.shape[1]),
            "bias": (model,),
            "residual": (*texts, queries, model),
            "beside": (*texts, queries, model),
            "stream_again": (*texts, queries, model),
        }
        for name, shape in wanted.items():
            array = getattr(self, name)
            if array is not None and array.shape != shape:
                raise RecordError(f"{name} of a block has shape {array.shape}; expected {shape}")
