"""The average map of a head by position, added up exactly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from jaxtyping import Bool, Float

from headscope.errors import RecordError
from headscope.storage import array_of

STEP = 2.0**30


class MapSum:
    """Attention maps of many texts added up place by place, for the map that positions alone would
    give.

    Each weight is kept as a whole number of 2^-60 in two 64-bit integers, so that the sum does not
    depend on order, batch or machine; up to 2^33 texts.

    Args:
        heads: number of heads.
        length: how many tokens of each text are added up; later ones are left out.

    Example:
        >>> maps = MapSum(1, 2)
        >>> maps.update("a", np.array([[[1.0, 0.0], [0.5, 0.5]]]))
        >>> maps.update("b", np.array([[[1.0]]]))
        >>> maps.mean.tolist()
        [[[1.0, 0.0], [0.5, 0.5]]]
    """

    def __init__(self, heads: int, length: int) -> None:
        self.heads: int = heads
        self.length: int = length
        self.texts: frozenset[str] = frozenset()
        self._whole, self._rest = (np.zeros((heads, length, length), np.int64) for _ in range(2))
        self._count = np.zeros((length, length), np.int64)

    def update(
        self, text: str | None, weights: Float[np.ndarray, "head query key"], *, times: int = 1
    ) -> None:
        """Add the map of one text.

        Args:
            text: its identifier; None for a text of a run, which keeps nothing of single texts.
            weights: its map.
            times: how often it is there.

        Raises:
            RecordError: where the text was counted before, or has another number of heads.
        """
        if text in self.texts:
            raise RecordError(
                f"Text {text!r} was counted before; give every text a name of its own, and each "
                "one once"
            )
        if len(weights) != self.heads:
            raise RecordError(
                f"Text {text!r} has {len(weights)} heads, and maps of {self.heads} are added up"
            )
        raised = np.asarray(weights[:, : self.length, : self.length], np.float64) * STEP
        region = np.s_[: raised.shape[1], : raised.shape[2]]
        # Both parts are at most 2^30 for a weight up to 1, so that 2^33 of them just fill the 63
        # bits of an integer; sums of integers do not depend on their order.
        whole = np.floor(raised)
        self._whole[:, *region] += times * whole.astype(np.int64)
        self._rest[:, *region] += times * np.rint((raised - whole) * STEP).astype(np.int64)
        self._count[region] += times
        if text is not None:
            self.texts |= {text}

    def __add__(self, other: MapSum) -> MapSum:
        """The texts of both.

        Raises:
            RecordError: where they share a text or differ in heads or length.
        """
        if not isinstance(other, MapSum):
            return NotImplemented
        if (self.heads, self.length) != (other.heads, other.length):
            raise RecordError(
                f"Maps of {self.heads} heads, {self.length} tokens cannot be added to "
                f"{other.heads}, {other.length}"
            )
        shared = sorted(self.texts & other.texts)
        if shared:
            raise RecordError(
                f"Text {shared[0]!r} was counted in both; each text may be counted once"
            )
        both = MapSum(self.heads, self.length)
        for name in ("_whole", "_rest", "_count"):
            setattr(both, name, getattr(self, name) + getattr(other, name))
        both.texts = self.texts | other.texts
        return both

    def padded(self, length: int) -> MapSum:
        """The same sum with room for longer texts, or itself where there is room.

        Args:
            length: how many tokens of each text there is to be room for. What was left out of
                longer texts before stays out, so that a sum should be as long as its longest text.
        """
        if length <= self.length:
            return self
        longer = MapSum(self.heads, length)
        longer.texts = self.texts
        room = ((0, length - self.length),) * 2
        longer._count = np.pad(self._count, room)
        longer._whole, longer._rest = (
            np.pad(each, ((0, 0), *room)) for each in (self._whole, self._rest)
        )
        return longer

    @property
    def count(self) -> int:
        """Number of texts."""
        return int(self._count[0, 0])

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """What `MapSum.of_arrays` makes the same sum of; the names of the texts are left out."""
        return {"whole": self._whole, "rest": self._rest, "count": self._count}

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, np.ndarray], texts: Iterable[str]) -> MapSum:
        """The sum that was taken apart by `arrays`, of these texts.

        Raises:
            ValueError: where the arrays are not of one sum.
        """
        heads, length, _ = arrays["whole"].shape
        for name, shape in (
            ("whole", (heads, length, length)),
            ("rest", (heads, length, length)),
            ("count", (length,) * 2),
        ):
            array_of(arrays, name, "i", shape)
        maps = cls(heads, length)
        maps._whole, maps._rest, maps._count = (
            arrays[name].copy() for name in ("whole", "rest", "count")
        )
        maps.texts = frozenset(texts)
        return maps

    @property
    def mean(self) -> Float[np.ndarray, "head query key"]:
        """Mean over the texts that are long enough for a place; NaN where none is."""
        sums = self._whole / STEP + self._rest / STEP**2
        return np.divide(sums, self._count, out=np.full(sums.shape, np.nan), where=self._count > 0)


def position_map(
    mean: Float[np.ndarray, "head length length"], visible: Bool[np.ndarray, "query key"]
) -> Float[np.ndarray, "head query key"]:
    """The map that positions alone would give on a text: the average one, cut to it, its rows made
    to sum to 1.

    Args:
        mean: `MapSum.mean`.
        visible: True where a query of the text may look.

    Raises:
        RecordError: where the text is longer than the average map.

    Example:
        >>> position_map(
        ...     np.array([[[0.5, 0.5], [0.25, 0.75]]]), np.array([[True, False], [True, True]])
        ... ).tolist()
        [[[1.0, 0.0], [0.25, 0.75]]]
    """
    queries, keys = visible.shape
    if max(queries, keys) > mean.shape[1]:
        raise RecordError(
            f"The text has {max(queries, keys)} tokens, the average map {mean.shape[1]}; cut the "
            "text"
        )
    cut = np.where(visible, np.nan_to_num(mean[:, :queries, :keys]), 0.0)
    sums = cut.sum(axis=-1, keepdims=True)
    return np.divide(cut, sums, out=np.zeros_like(cut), where=sums > 0)
