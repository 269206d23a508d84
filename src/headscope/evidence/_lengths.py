"""How long the texts of a study are: most numbers of attention change with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np


def length_text(lengths: Iterable[int] | Iterable[float] | Counter[int]) -> str:
    """The length of texts as tables print it.

    Args:
        lengths: tokens of each text; NaN for one whose length is not known. Or how many texts have
            each length.

    Example:
        >>> length_text([12, 13, 40]), length_text([]), length_text(Counter({12: 1, 13: 2}))
        ('median 13 tokens', 'length not known', 'median 13 tokens')
    """
    if isinstance(lengths, Counter):
        middle = median_of({int(length): count for length, count in lengths.items()})
        return "length not known" if np.isnan(middle) else f"median {middle:.0f} tokens"
    known = [length for length in lengths if not np.isnan(length)]
    return f"median {np.median(known):.0f} tokens" if known else "length not known"


def median_of(counts: Mapping[int, int]) -> float:
    """Median of numbers with their frequencies; NaN for an empty mapping.

    Example:
        >>> median_of({3: 2, 9: 2})
        6.0
    """
    total, before = sum(counts.values()), 0
    middle: list[int] = []
    for number in sorted(counts):
        # For an even count the two in the middle; for an odd one the same number twice.
        for wanted in ((total - 1) // 2, total // 2):
            if before <= wanted < before + counts[number]:
                middle.append(number)
        before += counts[number]
    return float(np.mean(middle)) if middle else float("nan")
