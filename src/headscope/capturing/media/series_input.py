"""A time series as it is given: numbers for each step of one channel or of several."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float32

from headscope.errors import CaptureError


def parse_series(series: Any) -> Float32[np.ndarray, "time channel"]:
    """A time series from numbers ``[time]`` or ``[time channel]``.

    Raises:
        CaptureError: where it is none, is empty, or holds values that are not finite.
    """
    try:
        values = np.asarray(series, dtype=np.float32)
    except (TypeError, ValueError):
        raise CaptureError(
            "series must be numbers [time] or [time channel], not "
            f"{type(series).__name__} of something else"
        ) from None
    if values.ndim not in (1, 2) or not values.size:
        raise CaptureError(
            f"series must be numbers with the axes [time] or [time channel], not {values.ndim} "
            f"axes {list(values.shape)}"
        )
    if not np.isfinite(values).all():
        raise CaptureError("The time series holds values that are not finite; fill them first")
    return values.reshape(len(values), -1)
