"""Arrays of zeros that take no memory until something is written to them."""

from __future__ import annotations

import math
import mmap

import numpy as np


def untouched_zeros(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Zeros in small pages of memory, each of which the system provides at its first write.

    ``np.zeros`` requests huge pages of 2 MiB, each of which holds parts of many rows. The weights
    of a causal model, which are zero after each query, would then take all of their memory, and
    finding such pages may take the system longer than the capture.

    Raises:
        MemoryError: where there is not as much.
    """
    size = math.prod(shape) * dtype.itemsize
    if not size:
        return np.zeros(shape, dtype)
    # On Windows there are no flags, and memory is private without them.
    flags = getattr(mmap, "MAP_PRIVATE", 0) | getattr(mmap, "MAP_ANONYMOUS", 0)
    private = {"flags": flags} if flags else {}
    try:
        return np.frombuffer(mmap.mmap(-1, size, **private), dtype).reshape(shape)
    except OSError as error:
        raise MemoryError(f"Unable to allocate {size:,} bytes") from error
