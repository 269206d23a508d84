"""How positions turned the queries and keys of real tokens, read off what they were before and
after.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from headscope.capturing.building._cut import Cut
from headscope.capturing.watching._before import is_one
from headscope.record import Rotary
from headscope.record.rotary import LEADS_WITHIN, rotary_between

Pair = tuple[torch.Tensor, torch.Tensor]
"""Queries or keys ``[head token feature]`` before positions and after."""

HEADS_FITTED, TOKENS_FITTED = 4, 64
HALF_WITHIN = 2e-2
"""Differences, relative to the largest feature, that rounding to half precision makes."""
UNSEEN = "what made its queries and keys was not seen"
NO_LINE = "positions did not turn its queries and keys by one angle for each step along the tokens"


@dataclass(frozen=True, eq=False)
class Known:
    """A rotation, with the cosines and sines of its angles, ``[token pair]``."""

    rotary: Rotary
    cosines: np.ndarray
    sines: np.ndarray

    def leads(self, before: np.ndarray, after: np.ndarray, within: float) -> bool:
        """Whether it turns the one ``[head token feature]`` into the other."""
        if before.shape[1] != len(self.cosines) or before.shape[2] <= max(
            map(np.max, self.rotary.pairs)
        ):
            return False
        found = before.copy()
        self.rotary.turn(found, self.cosines, self.sines)
        return bool(np.abs(found - after).max() <= within * np.abs(after).max())


class Rotations:
    """Finds rotations, of which most layers of a model share one."""

    def __init__(self) -> None:
        self._known: list[Known] = []

    def of(self, cut: Cut) -> tuple[Rotary | None, str]:
        """How positions turned the real tokens of a call; and why that is not known, empty where it
        is.
        """
        call = cut.call
        if call.query is None or call.key is None:
            return None, ""
        if call.query_before is None or call.key_before is None:
            return None, UNSEEN
        if is_one(call.query_before, call.query) and is_one(call.key_before, call.key):
            return None, ""
        exact = {call.query.dtype, call.query_before.dtype} <= {torch.float32, torch.float64}
        within = LEADS_WITHIN if exact else HALF_WITHIN
        queries = cut.of_queries(call.query_before), cut.of_queries(call.query)
        keys = cut.of_keys(call.key_before), cut.of_keys(call.key)
        if all(_is_same(*map(_first_head, pair), within) for pair in (queries, keys)):
            return None, ""
        # keys of other places, such as a picture made coarser, are not turned by the angles of the
        # queries
        apart = call.cross or len(cut.queries) != len(cut.keys)
        found = None if apart else self._found(queries, keys, within)
        return found, "" if found else NO_LINE

    def _found(self, queries: Pair, keys: Pair, within: float) -> Rotary | None:
        """A rotation that is known from another call, or fitted; in any case it leads from all
        tokens to all.
        """
        before, after = (
            np.concatenate([_first_head(pair[at]) for pair in (queries, keys)]) for at in (0, 1)
        )
        for known in self._known:
            if known.leads(before, after, within):
                return known.rotary
        fitted = _fitted(queries, keys, within)
        if fitted is None:
            return None
        known = Known(
            fitted, *(turns.astype(np.float32) for turns in fitted.turns(before.shape[1]))
        )
        if not known.leads(before, after, within):
            return None
        self._known.append(known)
        return fitted


def _fitted(queries: Pair, keys: Pair, within: float) -> Rotary | None:
    """The rotation of the first tokens, where it is the same of queries and of keys."""
    first, second = (
        rotary_between(
            *(_plain(tensor[:HEADS_FITTED, :TOKENS_FITTED]) for tensor in pair), within=within
        )
        for pair in (queries, keys)
    )
    if first is None or second is None:
        return None
    alike = (first.style, first.start, first.first) == (second.style, second.start, second.first)
    return first if alike else None


def _is_same(before: np.ndarray, after: np.ndarray, within: float) -> bool:
    return bool(np.abs(before - after).max(initial=0) <= within * np.abs(after).max(initial=0))


def _first_head(vectors: torch.Tensor) -> np.ndarray:
    return _plain(vectors[:1])


def _plain(vectors: torch.Tensor) -> np.ndarray:
    return vectors.float().cpu().numpy()
