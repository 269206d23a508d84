"""Everything of one attention block that its contributions follow from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

from jaxtyping import Float

from headscope.errors import RecordError
from headscope.norms._norm import Norm, in_double, in_numpy_double

BYTES_AT_ONCE = {True: 2**21, False: 2**28}
"""How much is made at once for some keys: on a processor what its cache holds."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Block:
    """Weights, values and output projection of an attention, and what is done to its output: NumPy
    arrays, in float64, or torch tensors on one device, in their own precision.

    ``output = sum_h weights_h (values_h projection_h) + bias``; ``stream = residual +
    before(output) + beside``; ``normed = after(stream)``; ``normed_again = second(stream_again)``.
    Texts of the same length may share a block: axes ``*text`` then stand in front of the axes of
    weights, values, residual, beside and stream_again. A block may hold some queries of a text.

    Args:
        weights: ``[head query key]``.
        values: ``[kv_head key feature]``, with the bias of values in them; several heads may share
            one.
        projection: ``[head feature model]``, each head's part of W_O.
        bias: ``[model]``, b_O.
        residual: ``[query model]``, what the block's input adds to the attention's output.
        same: whether queries and keys are the same tokens, so that the residual is key ``i``'s own.
        first: which key is the first query, where they are the same tokens.
        before: norm or scale of the attention's output, before the residual is added.
        beside: ``[query model]``, what else is added in the same place (a feed-forward part that
            runs in parallel).
        after: the norm that takes the sum.
        second: in post-norm models the norm after the feed-forward part.
        stream_again: ``[query model]``, what the second norm takes.
        grams: what `gram` has given, shared by the blocks of other queries.

    Raises:
        RecordError: where the arrays do not fit.
    """

    weights: Any
    values: Any
    projection: Any
    bias: Any = None
    residual: Any = None
    same: bool = True
    first: int = 0
    before: Norm | None = None
    beside: Any = None
    after: Norm | None = None
    second: Norm | None = None
    stream_again: Any = None
    grams: dict[tuple[Norm, ...], Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in (each.name for each in fields(self) if each.type == "Any"):
            given = getattr(self, name)
            if given is not None:
                object.__setattr__(self, name, in_numpy_double(given))
        self._check()

    @property
    def in_double(self) -> Block:
        """The same in float64."""
        known = {each.name: getattr(self, each.name) for each in fields(self)}
        given = {name: array for name, array in known.items() if hasattr(array, "dtype")}
        parts: dict[str, Any] = {name: in_double(array) for name, array in given.items()}
        for name, norm in known.items():
            if isinstance(norm, Norm):
                parts[name] = replace(norm, gain=in_double(norm.gain), shift=in_double(norm.shift))
        return replace(self, **parts, grams={})

    @property
    def size(self) -> tuple[int, int, int, int]:
        """Numbers of heads, queries, keys and features of the model."""
        return (*self.weights.shape[-3:], self.projection.shape[2])

    @cached_property
    def output(self) -> Float[Any, "*text query model"]:
        """The output of the attention, b_O included."""
        output = self.output_of_others + self.own_output
        return output if self.bias is None else output + self.bias

    @property
    def output_of_others(self) -> Float[Any, "*text query model"]:
        """What all other tokens add to a token's output, without b_O."""
        return self._outputs[0]

    @property
    def own_output(self) -> Float[Any, "*text query model"]:
        """What each token adds to its own output, ``sum_h a_ii f_h(x_i)``, without b_O."""
        return self._outputs[1]

    @cached_property
    def _outputs(self) -> tuple[Any, Any]:
        # Weights times values first: they are far fewer numbers than f(x_j) of all keys.
        others = self.weights @ self.values_of_heads
        own = others * 0
        if self.same:
            keys = slice(self.first, self.first + self.size[1])
            diagonal = self.weights.diagonal(self.first, -2, -1)
            own = diagonal[..., None] * self.values_of_heads[..., keys, :]
            # Here and not behind the projection: what attends to itself alone gets nothing from
            # others.
            others = others - own
        return self._projected(others), self._projected(own)

    def _projected(
        self, contexts: Float[Any, "*text head query feature"]
    ) -> Float[Any, "*text query model"]:
        rows = contexts.swapaxes(-3, -2)
        inputs = self.projection.shape[0] * self.projection.shape[1]
        return rows.reshape(*rows.shape[:-2], inputs) @ self.projection.reshape(inputs, -1)

    @cached_property
    def values_of_heads(self) -> Float[Any, "*text head key feature"]:
        """Values, once for each head that uses them."""
        heads, shared = self.size[0], self.values.shape[-3]
        if heads == shared:
            return self.values
        return self.values[..., [head * shared // heads for head in range(heads)], :, :]

    @cached_property
    def stream(self) -> Float[Any, "*text query model"]:
        """The attention's output with the residual."""
        stream = self.output if self.before is None else self.before(self.output)
        for part in (self.residual, self.beside):
            stream = stream if part is None else stream + part
        return stream

    @cached_property
    def normed(self) -> Float[Any, "*text query model"]:
        """What the norm makes of that; without a norm, the same."""
        return self.stream if self.after is None else self.after(self.stream)

    @cached_property
    def value_lengths(self) -> Float[Any, "*text head key"]:
        """``||f_h(x_j)||`` of each head."""
        squares = self.gram(()).diagonal(0, -2, -1).clip(0)
        heads, _, keys, _ = self.size
        return squares.reshape(*self.weights.shape[:-3], keys, heads).swapaxes(-2, -1) ** 0.5

    def gram(self, norms: tuple[Norm, ...]) -> Float[Any, "text_and_key head head"]:
        """Scalar products of the vectors of each key's heads behind the linear parts of norms.

        They are in float64, as a square has half the digits of a length.
        """
        if norms not in self.grams:
            heads, _, _, model = self.size
            by_key = self.values_of_heads.swapaxes(-3, -2).reshape(-1, heads, self.values.shape[-1])
            first = in_double(by_key[..., 0])
            whole = first[..., None] * first[..., None, :]  # room for the products
            for tile in self.tiles(len(by_key), 2 * heads * model):
                vectors = by_key[tile].swapaxes(0, 1) @ self.projection
                vectors = in_double(self._linear(vectors, norms)).swapaxes(0, 1)
                whole[tile] = vectors @ vectors.swapaxes(-2, -1)
            self.grams[norms] = whole
        return self.grams[norms]

    def lengths_behind(self, norms: tuple[Norm, ...]) -> Float[Any, "*text query key"]:
        """``||sum_h a_ij linear(f_h(x_j))||`` behind the linear parts of norms.

        They follow from `gram`, so that no vector of a pair of tokens is made. A length is known to
        1e-8 of what the lengths of the heads' vectors add up to, or to the rounding of the vectors.
        """
        if norms in self._lengths:
            return self._lengths[norms]
        gram, by_key = self.gram(norms), self._weights_by_key
        heads, queries, keys, _ = self.size
        lengths = by_key[:, 0] * 0
        for tile in self.tiles(len(by_key), 3 * heads * queries):
            weights = in_double(by_key[tile])
            squares = ((gram[tile] @ weights) * weights).sum(-2)
            lengths[tile] = squares.clip(0) ** 0.5
        lengths = lengths.reshape(*self.weights.shape[:-3], keys, queries).swapaxes(-2, -1)
        self._lengths[norms] = lengths
        return lengths

    @cached_property
    def _lengths(self) -> dict[tuple[Norm, ...], Any]:
        return {}

    @cached_property
    def _weights_by_key(self) -> Float[Any, "text_and_key head query"]:
        heads, queries = self.size[:2]
        # In two steps: one would write numbers that are far apart in memory.
        turned = self.weights.swapaxes(-2, -1)
        turned = turned.reshape(-1).reshape(turned.shape)
        return turned.swapaxes(-3, -2).reshape(-1, heads, queries)

    def transformed(
        self, keys: slice = slice(None), norms: tuple[Norm, ...] = ()
    ) -> Float[Any, "*text head key model"]:
        """``f(x_j)`` of each head, its value times its part of the output projection, behind the
        linear parts of norms.
        """
        return self._linear(self.values_of_heads[..., keys, :] @ self.projection, norms)

    @staticmethod
    def _linear(vectors: Float[Any, "*any"], norms: tuple[Norm, ...]) -> Float[Any, "*any"]:
        for norm in norms:
            vectors = norm.linear(vectors)
        return vectors

    def tiles(self, count: int, numbers_of_each: int) -> Iterator[slice]:
        """So many keys, as many at a time as fit in a processor's cache, or more on a card."""
        is_cpu = str(getattr(self.weights, "device", "cpu")) == "cpu"
        step = max(1, BYTES_AT_ONCE[is_cpu] // max(1, 8 * numbers_of_each))
        for first in range(0, count, step):
            yield slice(first, first + step)

    def _check(self) -> None:
        for name in ("weights", "values", "projection"):
            axes = getattr(self, name).ndim
            if axes < 3 or (name == "projection" and axes > 3):
                raise RecordError(f"{name} of a block has {axes} axes, expected 3")
        heads, queries, keys, model = self.size
        shared, texts = self.values.shape[-3], tuple(self.weights.shape[:-3])
        if len(self.projection) != heads or not shared or heads % shared:
            raise RecordError(
                f"A block with {heads} heads cannot use {shared} heads of values and "
                f"{len(self.projection)} of the output projection"
            )
        row = (*texts, queries, model)
        wanted = {"values": (*texts, shared, keys, self.projection.shape[1]), "bias": (model,)}
        wanted |= dict.fromkeys(("residual", "beside", "stream_again"), row)
        for name, shape in wanted.items():
            array = getattr(self, name)
            if array is not None and tuple(array.shape) != shape:
                raise RecordError(
                    f"{name} of a block has shape {tuple(array.shape)}; expected {shape}"
                )
        if self.same and self.first + queries > keys:
            raise RecordError(
                f"A block of {queries} queries and {keys} keys cannot have the same tokens on "
                "both sides"
            )
