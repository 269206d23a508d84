"""Attention rollout."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from headscope.norms._maps import Quantity, steps_of


def rollout(
    source: Any,
    quantity: Quantity = "weights",
    *,
    residual: bool | None = None,
    stack: str | None = None,
) -> Float[np.ndarray, "layer query key"]:
    """How much of each input token is in each token after every layer, if layers pass on what they
    look at.

    ``R_0 = B_0``, ``R_l = B_l R_{l-1}`` with ``B_l = A_l + I``, rows divided by their sums; A_l is
    the mean over heads. Rows sum to 1. Of ``output`` with no I added it is what Kobayashi's norms
    give rolled out; of ``globenc`` it is GlobEnc, of ``alti`` it is ALTI: their maps hold the
    residual already.

    Source: Abnar and Zuidema 2020, section 3; Modarressi et al. 2022; Ferrando et al. 2022.

    Args:
        source: a record, a stack, or maps ``[layer query key]``.
        quantity: ``"weights"``, or a kind of contributions, for which the record was captured with
            ``keep="norms"``.
        residual: whether I is added; by default where the quantity does not hold the residual.
            Norms (``attention``) are first divided by the sums of rows then, so that I weighs as
            much as all of them.
        stack: name of a stack of the record; may be left out where it has one alone.

    Raises:
        RecordError: where there is no map for each layer, or queries and keys are different tokens.

    Example:
        >>> rollout(np.array([[[1.0, 0.0], [0.5, 0.5]], [[1.0, 0.0], [1.0, 0.0]]]))[1].tolist()
        [[1.0, 0.0], [0.625, 0.375]]
    """
    steps = steps_of(source, quantity, residual, stack)
    rolled = np.empty_like(steps)
    whole = np.eye(steps.shape[1])
    # The later layer stands on the left: its queries look at what the layers before handed on.
    for layer, step in enumerate(steps):
        rolled[layer] = whole = step @ whole
    return rolled
