"""Everything of one attention block that its contributions follow from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float

from headscope.errors import RecordError
from headscope.norms._norm import Norm
from headscope.norms._products import CANCELLED, ProjectionProducts

BYTES_AT_ONCE = 2**25
CACHED_BYTES = 2**20
"""What is written and read at once of the products with all weights of a key, so that it stays in
the processor's cache."""
FEW_ROWS = 64
"""Up to how many queries two products with the projection are one."""
OF_TEXT = ("weights", "values", "residual", "beside", "stream_again")
"""The arrays of a block that each text has for itself."""


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
        self, contexts: Float[np.ndarray, "*text head query feature"]
    ) -> Float[np.ndarray, "*text query model"]:
        """The output projection of the heads' outputs, without b_O."""

    @abstractmethod
    def gram(
        self, keys: slice, norms: tuple[Norm, ...]
    ) -> tuple[Float[np.ndarray, "*text key head head"], Float[np.ndarray, "*text key head"]]:
        """Scalar products of the vectors of each key's heads behind the linear part of norms, and a
        bound of their lengths.
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

    @cached_property
    def _outputs(self) -> tuple[np.ndarray, np.ndarray]:
        """The output without b_O, and each token's own part in it, if it has one."""
        # Weights times values first: they are far fewer numbers than f(x_j) of all keys.
        contexts = self.weights @ self.values_of_heads
        queries = contexts.shape[-2]
        if not self.same:
            output = self.projected(contexts)
            return output, np.zeros_like(output)
        own = self.weights.diagonal(axis1=-2, axis2=-1)[..., None] * self.values_of_heads
        if queries > FEW_ROWS:
            return self.projected(contexts), self.projected(own)
        # Reading the projection from memory takes longer than multiplying the few rows of a short
        # text, so that both go through it together.
        both = self.projected(np.concatenate([contexts, own], axis=-2))
        return both[..., :queries, :], both[..., queries:, :]

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
        rows = self.kept(("rows", norm), lambda: 1 / norm.deviation(self.stream))
        return norm.linear(self.stream) * rows[..., None] + norm.shift

    @cached_property
    def value_lengths(self) -> Float[np.ndarray, "*text head key"]:
        """``||f_h(x_j)||`` of each head."""
        _, _, keys, _ = self.size
        lengths = np.empty((*self.weights.shape[:-2], keys))
        for tile in self.key_tiles():
            gram, longest = self._gram_of(tile, ())
            own = np.sqrt(np.maximum(np.einsum("...hh->...h", gram), 0))
            # What is left of a value that W_h all but removes is known from the vector alone.
            for *text, key, head in np.argwhere(own < CANCELLED * longest).tolist():
                block, _ = self.one(tuple(text), ())
                value = block.values_of_heads[head, key + (tile.start or 0)]
                own[(*text, key, head)] = np.linalg.norm(value @ block.projection[head])
            lengths[..., tile] = np.swapaxes(own, -2, -1)
        return lengths

    def lengths_behind(self, norms: tuple[Norm, ...]) -> Float[np.ndarray, "*text query key"]:
        """``||sum_h a_ij linear(f_h(x_j))||`` behind the linear part of norms.

        From the Gram matrix ``[head head]`` of each key's vectors. Of keys where heads cancel each
        other, from the root of it, ``||R_j a_ij||`` with R_j from QR of the vectors, which keeps
        the digits that the matrix itself loses.
        """
        _, queries, keys, _ = self.size
        lengths = np.empty((*self.weights.shape[:-3], queries, keys))
        for tile in self.key_tiles():
            weights = self.weights_by_key(tile)
            of_keys, cancelled = _lengths(
                *self._gram_of(tile, norms), weights, negative=self._has_negative_weights
            )
            for text in np.argwhere(cancelled.any(axis=-1)):
                index = tuple(text.tolist())
                of_text = np.flatnonzero(np.asarray(cancelled[index]))
                block, own = self.one(index, norms)
                vectors = block.transformed(of_text + (tile.start or 0), own).transpose(1, 2, 0)
                # Q keeps lengths, so that ||V a|| = ||Q R a|| = ||R a||
                roots = np.linalg.qr(vectors, mode="r")  # [key _ head]
                of_keys[index][of_text] = np.linalg.norm(roots @ weights[index][of_text], axis=1)
            lengths[..., tile] = np.swapaxes(of_keys, -2, -1)
        return lengths

    def weights_by_key(self, keys: slice) -> Float[np.ndarray, "*text key head query"]:
        """Weights of some keys, contiguous."""

        def turned() -> Float[np.ndarray, "*text key head query"]:
            return np.ascontiguousarray(np.moveaxis(self.weights[..., keys], -1, -3))

        # Lengths of each kind ask for them again; a block of several tiles does not keep them.
        return self.kept("weights by key", turned) if self._is_whole(keys) else turned()

    def _gram_of(
        self, keys: slice, norms: tuple[Norm, ...]
    ) -> tuple[Float[np.ndarray, "*text key head head"], Float[np.ndarray, "*text key head"]]:
        """As `gram`. What no norm changes gives the lengths of values and those of their sums."""
        if norms or not self._is_whole(keys):
            return self.gram(keys, norms)
        return self._whole_gram

    @cached_property
    def _whole_gram(
        self,
    ) -> tuple[Float[np.ndarray, "*text key head head"], Float[np.ndarray, "*text key head"]]:
        return self.gram(slice(None), ())

    @cached_property
    def _has_negative_weights(self) -> bool:
        """Whether a user gave weights that no softmax gives."""
        return bool(self.weights.size) and float(self.weights.min()) < 0

    def _is_whole(self, keys: slice) -> bool:
        """Whether a tile holds all keys."""
        return keys.start in {None, 0} and (keys.stop or self.size[2]) >= self.size[2]

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

    def key_tiles(self) -> list[slice]:
        """Keys, as many at a time as lengths are worked out of."""
        heads, queries, _, model = self.size
        features = 0 if self.has_products else 2 * model
        return self.tiles(8 * heads * (features + queries + heads))

    def tiles(self, bytes_of_key: int, most: int | None = None) -> list[slice]:
        """Keys, as many at a time as fit in the memory allowed, of all texts."""
        texts = int(np.prod(self.weights.shape[:-3]))
        step = max(1, (most or BYTES_AT_ONCE) // max(1, texts * bytes_of_key))
        return [slice(first, first + step) for first in range(0, self.size[2], step)]


def _lengths(
    gram: Float[np.ndarray, "*text key head head"],
    longest: Float[np.ndarray, "*text key head"],
    weights: Float[np.ndarray, "*text key head query"],
    *,
    negative: bool,
) -> tuple[Float[np.ndarray, "*text key query"], Bool[np.ndarray, "*text key"]]:
    """Lengths of the weighted sums of each key's vectors, and True for keys where some of them are
    far shorter than if the vectors all pointed the same way.
    """
    *texts_and_keys, heads, queries = weights.shape
    weights = weights.reshape(-1, heads, queries)
    gram, longest = gram.reshape(-1, heads, heads), longest.reshape(-1, 1, heads)
    lengths, cancelled = np.empty((len(weights), queries)), np.empty(len(weights), bool)
    # Fresh memory costs more than arithmetic: what lies between is written to the same few tiles.
    step = min(max(1, CACHED_BYTES // (16 * heads * max(1, queries))), max(1, len(weights)))
    scratch, straight = np.empty((step, heads, queries)), np.empty((step, 1, queries))
    for first in range(0, len(weights), step):
        some = slice(first, first + step)
        own, of_keys = weights[some], lengths[some]
        products = np.matmul(gram[some], own, out=scratch[: len(own)])
        np.einsum("khq,khq->kq", products, own, out=of_keys)
        np.sqrt(np.maximum(of_keys, 0, out=of_keys), out=of_keys)
        sizes = np.abs(own) if negative else own
        bound = np.matmul(longest[some], sizes, out=straight[: len(own)])
        bound *= CANCELLED
        cancelled[some] = (of_keys < bound[:, 0]).any(axis=-1)
    return lengths.reshape(*texts_and_keys, queries), cancelled.reshape(texts_and_keys)


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
        self, contexts: Float[np.ndarray, "*text head query feature"]
    ) -> Float[np.ndarray, "*text query model"]:
        """The output projection of the heads' outputs, without b_O."""
        by_query = np.swapaxes(contexts, -3, -2)
        rows = by_query.reshape(-1, self.projection.shape[0] * self.projection.shape[1])
        outputs = rows @ self.projection.reshape(-1, self.size[3])
        return outputs.reshape(*by_query.shape[:-2], self.size[3])

    def gram(
        self, keys: slice, norms: tuple[Norm, ...]
    ) -> tuple[Float[np.ndarray, "*text key head head"], Float[np.ndarray, "*text key head"]]:
        """Scalar products of the vectors of each key's heads behind the linear part of norms, and a
        bound of their lengths.
        """
        if self.products is not None:
            return self.products.gram(self.values_of_heads[..., keys, :], norms)
        vectors = np.swapaxes(self.transformed(keys, norms), -3, -2)
        gram = vectors @ np.swapaxes(vectors, -2, -1)
        return gram, np.sqrt(np.einsum("...hh->...h", gram))

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
