"""How positions turned the queries and keys of real tokens, read off what they were before and after."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from headscope.capturing._cut import Cut
from headscope.record import Rotary
from headscope.record._rotary import LEADS_WITHIN, leads, rotary_between

HEADS_COMPARED = 4
TOKENS_FITTED = 64
HALF_WITHIN = 2e-2
"""Differences, relative to the largest feature, that rounding to half precision makes."""
UNSEEN = "what made its queries and keys was not seen"
NO_LINE = "positions did not turn its queries and keys by one angle for each step along the tokens"


@dataclass(frozen=True, eq=False)
class Sided:
    """Some heads of queries or keys ``[head token feature]`` before positions and after."""

    before: np.ndarray
    after: np.ndarray

    def is_same(self, within: float) -> bool:
        """Whether positions did nothing."""
        return bool(np.abs(self.before - self.after).max(initial=0) <= within * np.abs(self.after).max(initial=0))

    def rotation(self, within: float) -> Rotary | None:
        """The rotation of the first tokens."""
        return rotary_between(self.before[:, :TOKENS_FITTED], self.after[:, :TOKENS_FITTED], within=within)


def rotation_of(cut: Cut) -> tuple[Rotary | None, str]:
    """How positions turned the real tokens of a call; and why that is not known, empty where it is."""
    call = cut.call
    if call.query is None or call.key is None:
        return None, ""
    if call.query_before is None or call.key_before is None:
        return None, UNSEEN
    exact = {call.query.dtype, call.query_before.dtype} <= {torch.float32, torch.float64}
    within = LEADS_WITHIN if exact else HALF_WITHIN
    queries = Sided(*(_some(cut.of_queries(tensor)) for tensor in (call.query_before, call.query)))
    keys = Sided(*(_some(cut.of_keys(tensor)) for tensor in (call.key_before, call.key)))
    if queries.is_same(within) and keys.is_same(within):
        return None, ""
    if call.cross:
        return None, NO_LINE
    first, second = (sided.rotation(within) for sided in (queries, keys))
    if first is None or second is None or not _alike(first, second):
        return None, NO_LINE
    ends = (np.concatenate([getattr(side, name)[:1] for side in (queries, keys)]) for name in ("before", "after"))
    return (first, "") if leads(first, *ends, within=within) else (None, NO_LINE)


def _some(vectors: torch.Tensor) -> np.ndarray:
    return vectors[:HEADS_COMPARED].float().cpu().numpy()


def _alike(first: Rotary, second: Rotary) -> bool:
    return (first.style, first.start, first.first) == (second.style, second.start, second.first)
