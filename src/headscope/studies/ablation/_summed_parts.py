"""An ablation put together from its parts, one after the other, so that none is kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from headscope.corpus import Kept
from headscope.evidence import median_of
from headscope.studies.ablation._sums import AblationSums
from headscope.tasks import TotalSums


def summed_parts(
    parts: Iterable[Kept], name: str, columns: Sequence[str]
) -> tuple[AblationSums, dict[str, Any]]:
    """Sums over the examples of all parts, one after the other; and totals and the median length
    of these, as fields of an `Ablation`.

    Args:
        parts: what files of parts hold, some examples in each.
        name: of the task, see `headscope.tasks.whole_task`.
        columns: of the task of one example.
    """
    whole: AblationSums | None = None
    totals: TotalSums | None = None
    # A median of two rows may lie halfway between whole numbers.
    halves: Counter[int] = Counter()
    has_lengths = True
    for state, arrays in parts:
        values, lengths = arrays["values"], arrays["tokens"]
        intact = values[:, 0, 0]
        own = AblationSums.of(values[:, 1:, 0], intact, state["groups"])
        whole = own if whole is None else whole + own
        totals = totals or TotalSums(name, columns, values.shape[1])
        totals.update(values)
        has_lengths = has_lengths and not np.isnan(lengths).any()
        if has_lengths:
            halves.update((2 * lengths).astype(int).tolist())
    assert whole is not None, "there are more examples than are kept"
    assert totals is not None, "there are more examples than are kept"
    tokens = median_of(halves) / 2 if has_lengths else None
    return whole, {"totals": totals.totals(), "tokens": tokens}
