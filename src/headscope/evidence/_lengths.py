"""How long the texts of a study are: most numbers of attention change with it."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np


def length_text(lengths: Iterable[int] | Iterable[float]) -> str:
    """The length of texts as tables print it.

    Args:
        lengths: tokens of each text; NaN for one whose length is not known.

    Example:
        >>> length_text([12, 13, 40]), length_text([])
        ('median 13 tokens', 'length not known')
    """
    known = [length for length in lengths if not np.isnan(length)]
    return f"median {np.median(known):.0f} tokens" if known else "length not known"
