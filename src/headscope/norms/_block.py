"""Everything of one attention block that its contributions follow from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Float

from headscope.errors import RecordError
from headscope.norms._lengths import diagonal_lengths, is_removed, lengths_of_sums
from headscope.norms._norm import Norm
from headscope.norms._products import ProjectionProducts

BYTES_AT_ONCE = 2**25
PART_BYTES = 2**19
"""How large each array of vectors is that a `Block.parts` works with: several of them are in the
processor's cache at a time."""
OF_TEXT = ("weights", "values", "residual", "beside", "stream_again")
"""The arrays of a block that each text has for itself."""
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
    def has_products(self) -> bool:
        """Whether scalar products follow from those of projections, without vectors as wide as the
        model.
        """

    @abstractmethod
    def projected(
        self, contexts: Float[np.ndarray, "*text query head feature"]
    ) -> Float[np.ndarray, "*text query model"]:
        """The output projection of the heads' outputs, without b_O."""

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
        output = self._outputs[0]
        return output if self.bias is None else output + self.bias

    @property
    def own_output(self) -> Float[np.ndarray, "*text query model"]:
        """What each token adds to its own output, ``sum_h a_ii f_h(x_i)``, without b_O."""
        return self._outputs[1]

    @property
    def output_without_bias(self) -> Float[np.ndarray, "*text query model"]:
        """The output of the attention without b_O."""
        return self._outputs[0]

    @cached_property
    def _outputs(self) -> tuple[np.ndarray, np.ndarray]:
        """The output without b_O, and each token's own part in it, if it has one."""
        # Weights times values first: they are far fewer numbers than f(x_j) of all keys. Both are
        # written as the projection takes them, the heads of a query side by side.
        *texts, heads, queries, _ = self.weights.shape
        features = self.values.shape[-1]
        rows = 2 * queries if self.same else queries
        both = np.empty((*texts, rows, heads, features))
        by_head = np.swapaxes(both, -3, -2)
        np.matmul(self.weights, self.values_of_heads, out=by_head[..., :queries, :])
        if not self.same:
            output = self.projected(both)
            return output, np.zeros_like(output)
        own_weights = self.weights.diagonal(axis1=-2, axis2=-1)[..., None]
        np.multiply(own_weights, self.values_of_heads, out=by_head[..., queries:, :])
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
        if self.after is None:
            return self.stream
        normed, rows = self.after.with_rows(self.stream)
        self.kept(("rows", self.after), lambda: rows)
        return normed

    @property
    def value_lengths(self) -> Float[np.ndarray, "*text head key"]:
        """``||f_h(x_j)||`` of each head."""
        return self.kept("values", self._value_lengths)

    def _value_lengths(self) -> Float[np.ndarray, "*text head key"]:
        lengths = np.empty((*self.weights.shape[:-2], self.size[2]))
        for tile in self.key_tiles(1):
            gram, longest = self.gram(tile, ((),))
            own = self._own_lengths(gram[..., 0, :, :], longest[..., 0, :], tile.start)
            lengths[..., tile] = np.swapaxes(own, -2, -1)
        return lengths

    def lengths_behind(self, norms: tuple[Norm, ...]) -> Float[np.ndarray, "*text query key"]:
        """``||sum_h a_ij linear(f_h(x_j))||`` behind the linear part of norms; see `measure`."""
        self.measure((norms,))
        return self._kept["lengths", norms]

    def measure(self, kinds: Kinds) -> None:
        """Work out the lengths of `lengths_behind` and of `value_lengths`, several kinds together.

        They follow from the Gram matrix ``[head head]`` of each key's vectors. Where heads cancel
        each other, they follow from the root of it, ``||R_j a_ij||`` with R_j from QR of the
        vectors, which keeps the digits that the matrix itself loses. A length is so known to 1e-9
        of itself, unless the vector is lost in the rounding of its parts, to 1e-15 of what they
        would add up to if none cancelled another.

        With products in single precision (`ProjectionProducts`) a length is known to 1e-5 of
        itself, and most are to the rounding of single precision, 1e-7: keys of which a length is
        less than a tenth of what its parts could add up to are done again in double precision.

        Args:
            kinds: the norms of each kind.
        """
        kinds = tuple(norms for norms in kinds if ("lengths", norms) not in self._kept)
        if not kinds:
            return
        _, queries, keys, _ = self.size
        texts = self.weights.shape[:-3]
        values = np.empty((*self.weights.shape[:-2], keys)) if () in kinds else None
        lengths = [np.empty((*texts, queries, keys)) for _ in kinds]
        for tile in self.key_tiles(len(kinds)):
            gram, longest = self.gram(tile, kinds)
            if values is not None:
                at = kinds.index(())
                own = self._own_lengths(gram[..., at, :, :], longest[..., at, :], tile.start)
                values[..., tile] = np.swapaxes(own, -2, -1)
            of_keys = self._lengths_of(tile, kinds, gram, longest)
            for number, of_kind in enumerate(lengths):
                of_kind[..., tile] = np.swapaxes(of_keys[..., number, :], -2, -1)
        for norms, of_kind in zip(kinds, lengths, strict=True):
            self._kept["lengths", norms] = of_kind
        if values is not None:
            self._kept["values"] = values

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
        own, removed = diagonal_lengths(gram).astype(np.float64), is_removed(gram, longest)
        # What is left of a value that W_h all but removes is known from the vector alone.
        for *text, head in np.argwhere(removed.any(axis=-2)).tolist():
            index = tuple(text)
            block, _ = self.one(index, ())
            keys = np.flatnonzero(removed[index][:, head])
            vectors = block.values_of_heads[head, keys + first] @ block.projection[head]
            own[index][keys, head] = np.linalg.norm(vectors, axis=-1)
        return own

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
            block, own = self.one(index, kinds[number])
            again = np.flatnonzero(cancelled[index][:, number])
            for keys in np.split(again, range(block.keys_held, len(again), block.keys_held)):
                known = block.lengths_of_vectors(keys + tile.start, own, weights[index][keys])
                lengths[index][keys, number] = known
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


@dataclass(frozen=True, kw_only=True, eq=False)
class Block(BlockArrays):
    """Weights, values and output projection of an attention, and what is done to its output, in
    float64.

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
            if getattr(self, name) is not None:
                object.__setattr__(self, name, np.asarray(getattr(self, name), np.float64))
        self._check()

    @property
    def size(self) -> tuple[int, int, int, int]:
        """Numbers of heads, queries, keys and features of the model."""
        return (*self.weights.shape[-3:], self.projection.shape[2])

    @property
    def has_products(self) -> bool:
        """Whether scalar products follow from those of the projection."""
        return self.products is not None

    def projected(
        self, contexts: Float[np.ndarray, "*text query head feature"]
    ) -> Float[np.ndarray, "*text query model"]:
        """The output projection of the heads' outputs, without b_O."""
        inputs = self.projection.shape[0] * self.projection.shape[1]
        outputs = contexts.reshape(-1, inputs) @ self.projection.reshape(inputs, -1)
        return outputs.reshape(*contexts.shape[:-2], self.size[3])

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
        longest = np.sqrt(np.einsum("...hh->...h", gram))
        known, cancelled = lengths_of_sums(
            gram, longest, weights, negative=self._has_negative_weights
        )
        lengths, again = known[:, 0], np.flatnonzero(cancelled)
        if len(again):
            # Q keeps lengths, so that ||V a|| = ||Q R a|| = ||R a||
            roots = np.linalg.qr(vectors[again].swapaxes(-2, -1), mode="r")  # [key _ head]
            lengths[again] = np.linalg.norm(roots @ weights[again], axis=1)
        return lengths

    def parts(self) -> Iterator[tuple[slice, Block]]:
        """A block of several texts as blocks of a few, whose arrays stay in the processor's cache;
        with what was worked out of all of them together.
        """
        _, queries, _, model = self.size
        step = max(1, PART_BYTES // (8 * max(1, queries * model)))
        if self.weights.ndim != 4 or len(self.weights) <= step:
            yield slice(None), self
            return
        for first in range(0, len(self.weights), step):
            some = slice(first, first + step)
            own, _ = self.one((some,), ())
            own.__dict__["_outputs"] = tuple(output[some] for output in self._outputs)
            own.__dict__["_kept"] = {what: array[some] for what, array in self._kept.items()}
            yield some, own

    def one(
        self, index: tuple[int | slice, ...], norms: tuple[Norm, ...]
    ) -> tuple[Block, tuple[Norm, ...]]:
        """The block of one text, or of some, and the norms, which all texts share."""
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
