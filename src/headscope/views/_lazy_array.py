"""A quantity of a layer that is computed when it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class LazyArray:
    """Stands for an array where its shape is enough. NumPy makes the array of it.

    Arrays ``[head query key]`` of all layers at once may be hundreds of megabytes, of which a page
    that asks for what it shows needs one layer.

    Args:
        shape: of the array.
        signed: whether something in it may be below 0.
        make: computes it, anew at each call.
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
