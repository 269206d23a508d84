"""What is computed of a call when it is checked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headscope.capturing.calls.call import Call
from headscope.record import Statistics


@dataclass(eq=False)
class ComputedEarly:
    """What is kept of a call and was computed when it was checked, so that nothing is computed
    twice.

    Args:
        call: the call.
        weights: of each text, and whether they are vouched for.
        statistics: of each text.
    """

    call: Call | None = None
    weights: tuple[list[np.ndarray], bool] | None = None
    statistics: list[Statistics] | None = None
