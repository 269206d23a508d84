"""Zeros that take no memory before something is written to them."""

from __future__ import annotations

import math
import mmap

import numpy as np


def untouched_zeros(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Zeros in pages that the system gives one by one, each at its first number.

    ``np.zeros`` asks for huge pages of 2 MiB, each of which holds parts of many rows: of the
    weights of a causal model, zero after each query, all of it would be taken, and the system may
    spend longer finding such pages than the capture takes.
    """
    size = math.prod(shape) * dtype.itemsize
    if not size:
        return np.zeros(shape, dtype)
    private = (
        {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
    )
    return np.frombuffer(mmap.mmap(-1, size, **private), dtype).reshape(shape)
