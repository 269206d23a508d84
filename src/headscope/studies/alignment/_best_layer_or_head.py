"""The layer or head that aligns best on some sentences, measured on the others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from headscope.studies.alignment._counts import rates_of


@dataclass(frozen=True)
class BestLayerOrHead:
    """A layer, or head, chosen on one half of the sentences and measured on the other, both ways,
    over several splits.

    Args:
        layer: its number; of that which was chosen most often.
        head: its number; None for all heads of the layer together.
        chosen_at: alignment error rate on the sentences that it was chosen on, of which it is the
            least; mean.
        aer: the rate on the others, mean over splits.
        interval: of ``aer``, over sentences or their documents, the choices held fixed.
        sentences: on how many each is chosen, and how many each split measures: all of them.
        spread: standard deviation of the rate over splits.
        chosen: how often this one was chosen, of two choices a split.
    """

    layer: int
    head: int | None
    chosen_at: float
    aer: float
    interval: tuple[float, float]
    sentences: tuple[int, int]
    spread: float = 0.0
    chosen: float = 1.0

    @property
    def place(self) -> str:
        """``"head 3.2"``, or ``"layer 3"``."""
        return f"layer {self.layer}" if self.head is None else f"head {self.layer}.{self.head}"


def chosen_cells(
    values: Float[np.ndarray, "document 2 layer head"], halves: Bool[np.ndarray, "split document"]
) -> tuple[list[tuple[int, int]], list[float], Float[np.ndarray, "split document 2"]]:
    """The best cell on each half of every split, its rate there, and what it got right on the
    other half.

    Splits of which one half has no link that was counted are left out.
    """
    cells: list[tuple[int, int]] = []
    rates: list[float] = []
    held = []
    for half in halves:
        counted = [rates_of(values[part].sum(axis=0)) for part in (half, ~half)]
        if any(np.isnan(each).all() for each in counted):
            continue
        # Chosen on one half, measured on the other, and the other way round: every document is
        # measured once in a split.
        row = np.zeros(values.shape[:2])
        for each, other in zip(counted, (~half, half), strict=True):
            best = np.unravel_index(np.nanargmin(each), each.shape)
            layer, head = int(best[0]), int(best[1])
            cells.append((layer, head))
            rates.append(float(each[layer, head]))
            row[other] = values[other][:, :, layer, head]
        held.append(row)
    return cells, rates, np.reshape(held, (len(held), *values.shape[:2]))
