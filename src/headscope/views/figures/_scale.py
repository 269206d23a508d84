"""Scales from numbers to colours, and the colour bar that explains them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, UInt8

from headscope.views.figures._palette import Colours, parse_hex
from headscope.views.figures._words import short_score, short_weight, times, two_digits

WEIGHT_TICKS = (0.01, 0.05, 0.1, 0.2, 0.5, 1.0)
CLOSEST_TICKS = 0.16


@dataclass(frozen=True, eq=False)
class Scale:
    """Colours of weights (from 0) or of signed numbers (symmetric around 0).

    Args:
        colours: colours of the whole range, from its lower to its upper end.
        largest: the number that gets the last colour.
        signed: whether the range begins at ``-largest`` instead of 0.
        power: colour moves with ``|number| ** power``.
        masked: colour of NaN: where a query may not look.
        lifts: whether the numbers are multiples of the even share, coloured by their doublings from
            1 on.
        written: writes numbers from 0 below the bar.
    """

    colours: Colours
    largest: float
    signed: bool
    power: float
    masked: str
    written: Callable[[float], str] = short_weight
    lifts: bool = False

    @property
    def words(self) -> str:
        """A note about the scale besides its bar."""
        if self.lifts:
            return "even: the same weight on every key that a query may attend to"
        return "colour on a square-root scale" if self.power == 0.5 else ""

    def position(self, values: np.ndarray) -> np.ndarray:
        """Positions of numbers on the bar, from 0 to 1."""
        if self.lifts:
            return np.log2(np.clip(values, 1, self.largest)) / np.log2(self.largest)
        size = np.clip(np.abs(values) / (self.largest or 1.0), 0, 1) ** self.power
        return np.asarray(0.5 + 0.5 * np.sign(values) * size if self.signed else size)

    def rgb(self, values: Float[np.ndarray, "*axes"]) -> UInt8[np.ndarray, "*axes 3"]:
        """Red, green, blue of each number."""
        hidden = np.isnan(values)
        steps = np.rint(255 * self.position(np.where(hidden, 0.0, values))).astype(int)
        return np.where(hidden[..., None], parse_hex(self.masked), self.colours[steps])

    def bar(self, squares: int) -> UInt8[np.ndarray, "row column 3"]:
        """Red, green, blue of the bar that explains it, from its lower to its upper end.

        Args:
            squares: how many squares of half its height go into its length.
        """
        # Only a scale over a picture draws squares below its bar; callers need not know which it
        # is.
        del squares
        return self.colours[np.linspace(0, 255, 128).astype(int)][None]

    def ticks(self) -> list[tuple[float, str]]:
        """Position on the bar and text of each number that is written below it."""
        if self.lifts:
            marks = (1.0, 2.0 ** round(np.log2(self.largest) / 2), self.largest)
            return [(float(self.position(np.array([mark]))[0]), times(mark)) for mark in marks]
        if self.signed:
            return [(0.0, short_score(-self.largest)), (0.5, "0"), (1.0, short_score(self.largest))]
        if self.largest == 0:
            return [(0.0, "0")]
        if self.written is not short_weight or self.power == 1:
            written = two_digits if self.written is short_weight else self.written
            # The number whose colour is in the middle of the bar.
            middle = 0.5 ** (1 / self.power) * self.largest
            return [(0.0, "0"), (0.5, written(middle)), (1.0, written(self.largest))]
        return self._ticks_of_weights()

    def _ticks_of_weights(self) -> list[tuple[float, str]]:
        """Round weights that stand far enough from each other and from the ends."""
        ticks = [(0.0, "0")]
        for mark in WEIGHT_TICKS:
            share = float(self.position(np.array([mark]))[0])
            if (
                mark < self.largest
                and share - ticks[-1][0] > CLOSEST_TICKS
                and share < 1 - CLOSEST_TICKS
            ):
                ticks.append((share, short_weight(mark)))
        return [*ticks, (1.0, two_digits(self.largest))]
