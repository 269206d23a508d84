"""The layer or head that aligns best on some sentences, measured on the others."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class BestPlace:
    """A layer, or head, chosen on some sentences and measured on the others.

    Args:
        layer: its number.
        head: its number; None for all heads of the layer together.
        chosen_at: alignment error rate on the sentences it was chosen on, of which it is the least.
        aer: the rate on the others.
        interval: of ``aer``, over these sentences.
        sentences: how many it was chosen on, and how many were left.
    """

    layer: int
    head: int | None
    chosen_at: float
    aer: float
    interval: tuple[float, float]
    sentences: tuple[int, int]

    @property
    def place(self) -> str:
        """``"head 3.2"``, or ``"layer 3"``."""
        return f"layer {self.layer}" if self.head is None else f"head {self.layer}.{self.head}"
