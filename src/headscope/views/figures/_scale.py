"""From numbers to colours, and the bar that explains them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, UInt8

from headscope.views.figures._palette import Colours, parse_hex
from headscope.views.figures._words import short_score, short_weight

WEIGHT_TICKS = (0.01, 0.05, 0.1, 0.2, 0.5, 1.0)
CLOSEST_TICKS = 0.16


@dataclass(frozen=True, eq=False)
class Scale:
    """Colours of weights (from 0, on a square-root scale) or of signed numbers (both sides alike).

    Args:
        colours: of the whole range, from its lower to its upper end.
        largest: the number that gets the last colour.
        signed: whether the range begins at ``-largest`` instead of 0.
        masked: colour of NaN: where a query may not look.
    """

    colours: Colours
    largest: float
    signed: bool
    masked: str

    @property
    def power(self) -> float:
        """Colour moves with ``|number| ** power``."""
        return 0.7 if self.signed else 0.5

    def place(self, values: np.ndarray | float) -> np.ndarray:
        """Where numbers stand on the bar, 0 to 1."""
        size = np.clip(np.abs(values) / (self.largest or 1.0), 0, 1) ** self.power
        return 0.5 + 0.5 * np.sign(values) * size if self.signed else size

    def rgb(self, values: Float[np.ndarray, "*axes"]) -> UInt8[np.ndarray, "*axes 3"]:
        """Red, green, blue of each number."""
        hidden = np.isnan(values)
        steps = np.rint(255 * self.place(np.where(hidden, 0.0, values))).astype(int)
        return np.where(hidden[..., None], parse_hex(self.masked), self.colours[steps])

    def ticks(self) -> list[tuple[float, str]]:
        """Place on the bar and words of the numbers that are written below it."""
        if self.signed:
            marks = (-self.largest, 0.0, self.largest)
            return [(float(self.place(mark)), short_score(mark)) for mark in marks]
        found = [(0.0, "0")]
        for mark in WEIGHT_TICKS:
            place = float(self.place(mark))
            if mark < self.largest and CLOSEST_TICKS < place - found[-1][0] and place < 1 - CLOSEST_TICKS:
                found.append((place, short_weight(mark)))
        return [*found, (1.0, short_weight(self.largest))]
