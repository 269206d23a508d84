"""What a classifier's answer loses when tokens are taken out of a text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from jaxtyping import Float

SHARES = (0.01, 0.05, 0.10, 0.20, 0.50)
Row = Float[np.ndarray, " token"]


def erasure(
    probability: Callable[[Sequence[int]], float], signal: Row, shares: Sequence[float] = SHARES
) -> tuple[float, float]:
    """Comprehensiveness and sufficiency: ``p(x) - p(x without top k)`` and ``p(x) - p(top k
    alone)``, mean over k.

    Source: DeYoung et al. 2020, section 4. At least one token is in the top; it never is all of
    them.

    Args:
        probability: of the class in question, given the numbers of the ranked tokens that are kept.
        signal: how much each token matters.
        shares: of the tokens, k.
    """
    without, alone = erasure_curves(probability, signal, shares).mean(axis=1)
    return float(without), float(alone)


def erasure_curves(
    probability: Callable[[Sequence[int]], float], signal: Row, shares: Sequence[float] = SHARES
) -> Float[np.ndarray, "2 share"]:
    """``p(x) - p(x without top k)`` and ``p(x) - p(top k alone)`` for each k; see `erasure`."""
    everything = probability(range(len(signal)))
    without, alone = [], []
    for rest, top in kept_tokens(signal, shares):
        without.append(everything - probability(rest))
        alone.append(everything - probability(top))
    return np.array([without, alone])


def kept_tokens(
    signal: Row, shares: Sequence[float] = SHARES
) -> Iterator[tuple[list[int], list[int]]]:
    """Numbers of the tokens that `erasure` keeps for each k: all but the top k, and the top k."""
    count = len(signal)
    order = np.argsort(-np.asarray(signal), kind="stable").tolist()
    for share in shares:
        # At least one token, and never all of them.
        erased = min(count - 1, max(1, round(share * count)))
        yield sorted(order[erased:]), sorted(order[:erased])
