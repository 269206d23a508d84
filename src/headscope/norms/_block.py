"""Everything of one attention block that its contributions follow from."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float

from headscope.errors import RecordError
from headscope.norms._norm import Norm
from headscope.norms._products import ProjectionProducts

BYTES_AT_ONCE = 2**25


@dataclass(frozen=True, kw_only=True, eq=False)
class Block:
    """Weights, values and output projection of an attention, and what is done to its output, in
    float64.

    ``output = sum_h weights_h (values_h projection_h) + bias``; ``stream = residual +
    before(output) + beside``; ``normed = after(stream)``; ``normed_again = second(stream_again)``.

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

    weights: np.ndarray
    values: np.ndarray
    projection: np.ndarray
    bias: np.ndarray | None = None
    residual: np.ndarray | None = None
    same: bool = True
    before: Norm | None = None
    beside: np.ndarray | None = None
    after: Norm | None = None
    second: Norm | None = None
    stream_again: np.ndarray | None = None
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
        return (*self.weights.shape, self.projection.shape[2])

    @cached_property
    def output(self) -> Float[np.ndarray, "query model"]:
        """The output of the attention, b_O included."""
        _, queries, _, model = self.size
        # Weights times values first: they are far fewer numbers than f(x_j) of all keys.
        contexts = (self.weights @ self.values_of_heads).transpose(1, 0, 2)
        output = contexts.reshape(queries, -1) @ self.projection.reshape(-1, model)
        return output if self.bias is None else output + self.bias

    @cached_property
    def values_of_heads(self) -> Float[np.ndarray, "head key feature"]:
        """Values, once for each head that uses them."""
        shared = len(self.weights) // len(self.values)
        return self.values if shared == 1 else np.repeat(self.values, shared, axis=0)

    @cached_property
    def own_output(self) -> Float[np.ndarray, "query model"]:
        """What each token adds to its own output, ``sum_h a_ii f_h(x_i)``, without b_O."""
        weights = self.weights.diagonal(axis1=1, axis2=2)  # [head query]
        contexts = (weights[..., None] * self.values_of_heads).transpose(1, 0, 2)
        return contexts.reshape(self.size[1], -1) @ self.projection.reshape(-1, self.size[3])

    def weights_by_key(self, keys: slice) -> Float[np.ndarray, "key head query"]:
        """Weights of some keys, contiguous."""

        def turned() -> Float[np.ndarray, "key head query"]:
            return np.ascontiguousarray(self.weights[:, :, keys].transpose(2, 0, 1))

        # Lengths of each kind ask for them again; a block of several tiles does not keep them.
        is_whole = keys.start in {None, 0} and (keys.stop or self.size[2]) >= self.size[2]
        return self.kept("weights by key", turned) if is_whole else turned()

    @cached_property
    def stream(self) -> Float[np.ndarray, "query model"]:
        """The attention's output with the residual."""
        stream = self.output if self.before is None else self.before(self.output)
        for part in (self.residual, self.beside):
            stream = stream if part is None else stream + part
        return stream

    @cached_property
    def normed(self) -> Float[np.ndarray, "query model"]:
        """What the norm makes of that; without a norm, the same."""
        return self.stream if self.after is None else self.after(self.stream)

    def transformed(
        self, keys: slice | np.ndarray = slice(None)
    ) -> Float[np.ndarray, "head key model"]:
        """``f(x_j)`` of each head: its value times its part of the output projection."""
        # Each kind of contribution asks for them again; what is small is computed once and kept.
        if isinstance(keys, np.ndarray) or not self.is_small:
            return self._transform(keys)
        return self._transformed[:, keys]

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

    @property
    def is_small(self) -> bool:
        """Whether f(x_j) of all heads and keys may be held."""
        heads, _, keys, model = self.size
        return 8 * heads * keys * model <= BYTES_AT_ONCE

    @cached_property
    def _transformed(self) -> Float[np.ndarray, "head key model"]:
        return self._transform(slice(None))

    def _transform(self, keys: slice | np.ndarray) -> Float[np.ndarray, "head key model"]:
        return self.values_of_heads[:, keys] @ self.projection

    def tiles(self, bytes_of_key: int, most: int | None = None) -> list[slice]:
        """Keys, as many at a time as fit in the memory allowed."""
        step = max(1, (most or BYTES_AT_ONCE) // max(1, bytes_of_key))
        return [slice(first, first + step) for first in range(0, self.size[2], step)]

    def _check(self) -> None:
        axes = {"weights": 3, "values": 3, "projection": 3}
        for name, count in axes.items():
            if getattr(self, name).ndim != count:
                raise RecordError(
                    f"{name} of a block has {getattr(self, name).ndim} axes, expected {count}"
                )
        heads, queries, keys, _ = self.size
        if len(self.projection) != heads or not len(self.values) or heads % len(self.values):
            raise RecordError(
                f"A block with {heads} heads cannot use {len(self.values)} heads of values and "
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
        wanted = {
            "values": (len(self.values), keys, self.projection.shape[1]),
            "bias": (model,),
            "residual": (queries, model),
            "beside": (queries, model),
            "stream_again": (queries, model),
        }
        for name, shape in wanted.items():
            array = getattr(self, name)
            if array is not None and array.shape != shape:
                raise RecordError(f"{name} of a block has shape {array.shape}; expected {shape}")
