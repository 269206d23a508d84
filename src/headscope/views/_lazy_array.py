"""A quantity of a layer that is computed when it is needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class LazyArray:
    """An array of known shape whose numbers are computed when NumPy converts it.

    Arrays ``[head query key]`` of all layers may take hundreds of megabytes together, and a live
    page needs only the layer that it shows.

    Args:
        shape: shape of the array.
        signed: whether some number may be below 0.
        make: computes the array again at each call.
    """

    shape: tuple[int, ...]
    signed: bool
    make: Callable[[], np.ndarray]

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.make(), dtype)
