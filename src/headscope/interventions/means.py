"""What heads do on average over many records, which are read one by one and not held."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from headscope.errors import InterventionError
from headscope.interventions._patch import outputs_of
from headscope.interventions.plan import LayerPlace
from headscope.record import Layer, Record

Key = tuple[str, int]


class RecordMeans:
    """Sums over records, and their means.

    Args:
        outputs: whether the means are of what heads output, over all tokens; else of what they look
            at, position by position.
    """

    def __init__(self, *, outputs: bool) -> None:
        self._outputs = outputs
        self._totals: dict[Key, np.ndarray] = {}
        self._counts: dict[Key, np.ndarray] = {}

    def update(self, record: Record) -> None:
        """Add a record of the same model on another text."""
        for name, stack in record.stacks.items():
            for layer in stack:
                if self._outputs:
                    self._add_outputs((name, layer.layer), layer)
                else:
                    self._add_map((name, layer.layer), layer)

    def of(self, place: LayerPlace, heads: tuple[int, ...]) -> Float[np.ndarray, "head ..."]:
        """The means of some heads: ``[head query key]``, or outputs ``[head feature]``.

        Raises:
            InterventionError: where no record had the layer.
        """
        key = place.stack, place.layer
        if key not in self._totals:
            raise InterventionError(f"The records do not fit the model: they have no {place.name}")
        return self._totals[key][list(heads)] / np.maximum(self._counts[key], 1)

    def _add_outputs(self, key: Key, layer: Layer) -> None:
        outputs = outputs_of(layer, tuple(range(layer.heads)))
        total = outputs.sum(axis=1, dtype=np.float64)
        self._totals[key] = self._totals.get(key, 0.0) + total
        self._counts[key] = self._counts.get(key, np.zeros(())) + outputs.shape[1]

    def _add_map(self, key: Key, layer: Layer) -> None:
        weights = layer.weights_of()
        if key not in self._totals:
            self._totals[key] = np.zeros((layer.heads, 0, 0))
            self._counts[key] = np.zeros((0, 0))
        larger = tuple(
            max(0, own - known)
            for own, known in zip(weights.shape[1:], self._counts[key].shape, strict=True)
        )
        more = tuple((0, size) for size in larger)
        self._totals[key] = np.pad(self._totals[key], ((0, 0), *more))
        self._counts[key] = np.pad(self._counts[key], more)
        inside = np.s_[: weights.shape[1], : weights.shape[2]]
        self._totals[key][:, *inside] += weights
        self._counts[key][inside] += 1
