"""What heads do on average over many records, which are read one by one and not held."""

from __future__ import annotations

from collections.abc import Mapping

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
                self.add((name, layer.layer), layer)

    def add(self, key: Key, layer: Layer) -> None:
        """Add one layer of a record, by stack and number."""
        if self._outputs:
            outputs = outputs_of(layer, tuple(range(layer.heads)))
            total, count = outputs.sum(axis=1, dtype=np.float64), np.array(float(outputs.shape[1]))
        else:
            total = layer.weights_of().astype(np.float64)
            count = np.ones(total.shape[1:])
        # A text may be longer or shorter than those before.
        known = self._totals.get(key, np.zeros_like(total)), self._counts.get(key, count * 0)
        shape = tuple(map(max, total.shape[1:], known[0].shape[1:]))
        self._totals[key] = _padded(known[0], shape) + _padded(total, shape)
        self._counts[key] = _padded(known[1], shape) + _padded(count, shape)

    def of(self, place: LayerPlace, heads: tuple[int, ...]) -> Float[np.ndarray, "head ..."]:
        """The means of some heads: ``[head query key]``, or outputs ``[head feature]``.

        Raises:
            InterventionError: where no record had the layer.
        """
        key = place.stack, place.layer
        if key not in self._totals:
            raise InterventionError(f"The records do not fit the model: they have no {place.name}")
        return self._totals[key][list(heads)] / np.maximum(self._counts[key], 1)

    def arrays(self) -> dict[str, np.ndarray]:
        """The sums by name; those of several texts are added up from their beginning."""
        arrays = {}
        for (stack, layer), total in self._totals.items():
            arrays[f"total {stack} {layer}"] = total
            arrays[f"count {stack} {layer}"] = np.atleast_1d(self._counts[stack, layer])
        return arrays

    @staticmethod
    def of_arrays(arrays: Mapping[str, np.ndarray], *, outputs: bool) -> RecordMeans:
        """What `arrays` gave, or sums of it."""
        means = RecordMeans(outputs=outputs)
        for name, array in arrays.items():
            kind, stack, layer = name.split(" ")
            sums = means._totals if kind == "total" else means._counts
            sums[stack, int(layer)] = array
        return means


def _padded(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """An array with zeros behind its last axes, as large as these; a single number stays one."""
    last = array.ndim - len(shape)
    if last < 0:
        return array
    more = [(0, wanted - size) for wanted, size in zip(shape, array.shape[last:], strict=True)]
    return np.pad(array, [(0, 0)] * last + more)
