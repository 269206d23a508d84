"""The square of a vector's length behind the linear parts of norms, as a form of the vector."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from headscope.norms._norm import Norm


class SquareForm(NamedTuple):
    """``||A v||^2 = gains . v^2 + m . (K m - 2 b)`` with ``m = means v`` and ``b = offsets v``, so
    that no vector behind the norms is needed.

    Norms multiply features and take means off, which are numbers of v themselves: ``A v = g v -
    sum_c m_c u_c``, m_c the mean that norm c takes off, and u_c what later norms make of ones. So
    ``gains = g^2``, ``offsets_c = g u_c`` and ``K = U U^T``.

    Args:
        gains: of the squares of features.
        means: of each mean that is taken off.
        offsets: the same number.
        gram: K.
    """

    gains: Float[np.ndarray, " model"]
    means: Float[np.ndarray, "step model"]
    offsets: Float[np.ndarray, "step model"]
    gram: Float[np.ndarray, "step step"]

    @classmethod
    def behind(cls, norms: tuple[Norm, ...], width: int) -> SquareForm:
        """The form of norms, one after the other."""
        gains, means, ones = np.ones(width), np.empty((0, width)), np.empty((0, width))
        for norm in norms:
            if norm.centred:
                mean = (gains - ones.sum(axis=1) @ means) / width
                means, ones = np.vstack([means, mean]), np.vstack([ones, np.ones(width)])
            gains, ones = gains * norm.gain, ones * norm.gain
        return cls(gains**2, means, gains * ones, ones @ ones.T)
