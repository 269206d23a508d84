"""Which keys a query may look at, as runs."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Int32


def runs_of(visible: Bool[np.ndarray, "query key"]) -> Int32[np.ndarray, "run bound"]:
    """For each stretch of visible keys: the query, its first key, and the key after its last one."""
    edges = np.diff(np.pad(visible.astype(np.int8), ((0, 0), (1, 1))), axis=1)
    query, start = np.nonzero(edges == 1)
    stop = np.nonzero(edges == -1)[1]
    return np.stack([query, start, stop], axis=1).astype(np.int32)
