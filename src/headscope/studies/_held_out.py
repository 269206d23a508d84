"""Heads chosen on one half of the texts and measured on the other: halves, shares, intervals and tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from headscope.evidence import p_above, redrawn_ratios
from headscope.evidence._correction import CORRECTIONS


def half_of(count: int, seed: int) -> Bool[np.ndarray, " text"]:
    """The half of the texts that heads are chosen on; of an odd number the smaller one."""
    found = np.zeros(count, bool)
    found[np.random.default_rng(seed).permutation(count)[: count // 2]] = True
    return found


@dataclass(frozen=True, kw_only=True, eq=False)
class Counts:
    """What was right in each text, a row for everything that was asked.

    Args:
        wholes: how much was asked.
        same: right by the head that is best on all texts.
        held: right by the head that is best on one half of them; 0 where it holds nothing to choose by.
        baseline: right without any head.
        chosen: whether there was anything to choose by.
    """

    wholes: Float[np.ndarray, "text row"]
    same: Float[np.ndarray, "text row"]
    held: Float[np.ndarray, "text row"]
    baseline: Float[np.ndarray, "text row"]
    chosen: Bool[np.ndarray, " row"]


def measured(
    counts: Counts, choosing: Bool[np.ndarray, " text"], *, confidence: float, correction: str
) -> tuple[list[dict[str, Any]], Float[np.ndarray, " row"]]:
    """The numbers of every row by their names in results, and the share of the baseline on the other half.

    Args:
        counts: of all texts.
        choosing: the half that heads were chosen on.
        confidence: of the bootstrap intervals over texts.
        correction: for the number of rows.
    """
    other = ~choosing
    wholes, held, baseline = counts.wholes[other], counts.held[other], counts.baseline[other]
    there = np.where(wholes > 0, 1.0, np.nan)
    p = p_above(held * there, baseline * there)
    ends, held_ends = _intervals(counts.same, counts.wholes, confidence), _intervals(held, wholes, confidence)
    columns = {
        "count": counts.wholes.sum(axis=0).astype(int),
        "accuracy": _shares(counts.same, counts.wholes),
        "low": ends[:, 0],
        "high": ends[:, 1],
        "held_out_count": wholes.sum(axis=0).astype(int),
        "held_out_accuracy": np.where(counts.chosen, _shares(held, wholes), np.nan),
        "held_out_low": held_ends[:, 0],
        "held_out_high": held_ends[:, 1],
        "p": p,
        "p_corrected": CORRECTIONS[correction](p),
    }
    rows = zip(*(values.tolist() for values in columns.values()), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows], _shares(baseline, wholes)


def _shares(parts: np.ndarray, wholes: np.ndarray) -> Float[np.ndarray, " row"]:
    sums = wholes.sum(axis=0)
    return np.divide(parts.sum(axis=0), sums, out=np.full(sums.shape, np.nan), where=sums > 0)


def _intervals(parts: np.ndarray, wholes: np.ndarray, confidence: float) -> Float[np.ndarray, "row 2"]:
    """Bootstrap intervals of shares over texts; NaN for a row that fewer than two of them have."""
    tails = ((1 - confidence) / 2, (1 + confidence) / 2)
    found = np.full((parts.shape[1], 2), np.nan)
    many = np.flatnonzero((wholes > 0).sum(axis=0) > 1)
    if len(many):
        found[many] = np.nanquantile(redrawn_ratios(parts[:, many], wholes[:, many]), tails, axis=0).T
    return found
