"""Arrays and tokens as other libraries hold them, without importing these."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headscope.errors import RecordError, check_count, listed
from headscope.record import ROW_SUM_TOLERANCE, Layer, Stack, Tokens
from headscope.record.bare_arrays import Pieces, parse_tokens, plain

Positions = slice | Sequence[int]


@dataclass(frozen=True, kw_only=True)
class BatchPart:
    """Which part of a batch is wanted.

    Args:
        example: which text; None where there is but one.
        positions: where its tokens are in a padded row; None for everywhere.
    """

    example: int | None = None
    positions: Positions | None = None

    def check_stacks(self, names: Iterable[str]) -> None:
        """Raise where positions were given for several stacks, which have tokens of their own."""
        if self.positions is not None and set(names) != {"self"}:
            raise RecordError(
                "positions are for models with one stack; cut what an encoder-decoder model gave "
                "yourself"
            )

    def of(self, value: Any, axes: str, name: str) -> np.ndarray:
        """A float array with these axes of our own; the value may have a batch axis before them.

        Raises:
            RecordError: where it is no array, has other axes, or holds several texts and none was
                chosen.
        """
        array = plain(value, name)
        wanted = len(axes.split())
        if array.ndim == wanted + 1:
            array = array[self._example(array.shape[0], name)]
        elif array.ndim != wanted:
            raise RecordError(
                f"{name} has shape {array.shape}; expected the axes [{axes}], after a batch "
                "axis or not"
            )
        if self.positions is None:
            return array
        chosen = _indices(self.positions)
        for axis, kind in enumerate(axes.split()):
            if kind in ("query", "key"):
                try:
                    array = array[(slice(None),) * axis + (chosen,)]
                except IndexError as error:
                    raise RecordError(f"{name} has no such positions: {error}") from None
        return np.ascontiguousarray(array)

    def of_weights(self, value: Any, axes: str, name: str) -> np.ndarray:
        """The same of attention weights, none of which may lie outside the positions.

        Raises:
            RecordError: where some do, besides.
        """
        ours = self.of(value, axes, name)
        if self.positions is None:
            return ours
        queries = replace(self, positions=None).of(value, axes, name)[:, _indices(self.positions)]
        lost = queries.sum(axis=-1, dtype=np.float64) - ours.sum(axis=-1, dtype=np.float64)
        if (lost > ROW_SUM_TOLERANCE).any():
            head, query = (int(i) for i in np.unravel_index(np.argmax(lost), lost.shape))
            raise RecordError(
                f"{name}: head {head} gives {lost[head, query]:.2g} of the weight of query "
                f"{query} to keys that positions leave out; positions must be those of the whole "
                "text, without padding alone"
            )
        return ours

    def _example(self, size: int, name: str) -> int:
        if self.example is None and size != 1:
            raise RecordError(
                f"{name} holds a batch of {size} texts; say which with example=0, example=1 ..."
            )
        if check_count("example", self.example or 0, 0) >= size:
            raise RecordError(
                f"{name} holds a batch of {size} texts, numbered from 0; there is no {self.example}"
            )
        return self.example or 0


def _indices(positions: Positions) -> slice | np.ndarray:
    if isinstance(positions, slice):
        return positions
    return np.array([check_count("a position", each, 0) for each in listed(positions, "positions")])


def tokens_of(tokens: Pieces, text: str | None = None) -> Tokens:
    """Tokens from strings, with the text that they come from."""
    parsed = parse_tokens(tokens)
    if text is None:
        return parsed
    if parsed.texts:
        raise RecordError("text was given, but the tokens hold theirs already; leave it out")
    return replace(parsed, texts=(text,))


def stacks_of(
    layers: Mapping[str, tuple[Layer, ...]], first: Tokens, second: Pieces | None
) -> dict[str, Stack]:
    """The stacks of layers by name.

    Args:
        layers: of each stack.
        first: tokens of the model, or of its encoder.
        second: tokens of its decoder.

    Raises:
        RecordError: where they do not fit, or those of a decoder are missing.
    """
    written = None if second is None else tokens_of(second)
    stacks = {}
    for name, own in layers.items():
        query = written if name in ("decoder", "cross") else first
        if query is None:
            raise RecordError(
                f"There is attention of {name!r}; give decoder_tokens, the tokens that the decoder "
                "was run on"
            )
        key = first if name == "cross" else query
        stacks[name] = Stack(name=name, query=query, key=key, layers=own)
    return stacks
