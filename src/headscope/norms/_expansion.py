"""How much the value transform stretches vectors, from weights alone."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from headscope.errors import RecordError


def expansion_rate(
    value: Float[np.ndarray, "model feature"],
    projection: Float[np.ndarray, "feature out"],
    value_bias: Float[np.ndarray, " feature"] | None = None,
    bias: Float[np.ndarray, " out"] | None = None,
    *,
    released: bool = False,
) -> float:
    """``||M||_F / sqrt(d + 1)``: the root mean square of the singular values of f, all heads
    together.

    ``M = [[W_V, 0], [b_V, 1]] [[W_O, 0], [b_O, 1]]`` for row vectors ``[x, 1]``, d the width of the
    input.

    Source: Kobayashi et al. 2021, section 5. Their released code puts b_O into the last column of
    the second factor; ``released=True`` does so, for their published numbers.

    Args:
        value: W_V, all heads side by side.
        projection: W_O.
        value_bias: b_V.
        bias: b_O.
        released: as the released code has it.

    Raises:
        RecordError: where the matrices do not fit.

    Example:
        >>> expansion_rate(2 * np.eye(3), np.eye(3)) == (13 / 4) ** 0.5
        True
    """
    inner, out = projection.shape
    if value.shape[1] != inner:
        raise RecordError(
            f"W_V of shape {value.shape} and W_O of shape {projection.shape} do not fit"
        )
    if released and bias is not None and len(bias) != inner:
        raise RecordError(
            "The released form puts b_O beside W_O's rows, which needs as many features as outputs"
        )
    # A row more and a column more than W_V and W_O: [x, 1] carries the biases along.
    first = np.zeros((len(value) + 1, inner + 1))
    first[:-1, :-1], first[-1, -1] = value, 1.0
    second = np.zeros((inner + 1, out + 1))
    second[:-1, :-1], second[-1, -1] = projection, 1.0
    if value_bias is not None:
        first[-1, :-1] = value_bias
    if bias is not None and released:
        second[:-1, -1] = bias
    elif bias is not None:
        second[-1, :-1] = bias
    return float(np.linalg.norm(first @ second) / np.sqrt(len(first)))
