"""Rotary positions of queries and keys, found by comparing them before and after rotation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from headscope.capturing.building._real_tokens import RealTokens
from headscope.capturing.watching._before_positions import is_one
from headscope.record import Rotary
from headscope.record.rotary import LEADS_WITHIN, rotary_between

Pair = tuple[torch.Tensor, torch.Tensor]
"""Queries or keys ``[head token feature]`` before positions and after."""

HEADS_FITTED, TOKENS_FITTED = 4, 64
HALF_WITHIN = 2e-2
"""Differences, relative to the largest feature, that rounding to half precision can cause."""
UNSEEN = "what made its queries and keys was not seen"
NO_LINE = "positions did not turn its queries and keys by one angle for each step along the tokens"


class KnownRotation:
    """A rotation, with its angles for each number of tokens that was needed so far."""

    def __init__(self, rotary: Rotary) -> None:
        self.rotary = rotary
        self._features = 1 + max(map(np.max, rotary.pairs))
        self._turns: dict[int, list[np.ndarray]] = {}

    def leads(self, before: np.ndarray, after: np.ndarray, within: float) -> bool:
        """Whether it rotates the first ``[head token feature]`` into the second."""
        tokens = before.shape[1]
        if before.shape[2] < self._features:
            return False
        if tokens not in self._turns:
            turns = self.rotary.turns(tokens)
            self._turns[tokens] = [angles.astype(np.float32) for angles in turns]
        turned = before.copy()
        self.rotary.turn(turned, *self._turns[tokens])
        return _is_same(turned, after, within)


class Rotations:
    """Finds rotations; most layers of a model share one."""

    def __init__(self) -> None:
        self._known: list[KnownRotation] = []

    def of(self, unpadded_texts: Sequence[RealTokens]) -> list[dict[str, Any]]:
        """The rotation of the real tokens of each text of a call, or why it is unknown.

        Returns:
            ``rotary`` and ``turned`` of a `Layer` for each text.
        """
        call = unpadded_texts[0].call
        query, key = call.query, call.key
        if query is None or key is None:
            return [{"rotary": None, "turned": ""}] * len(unpadded_texts)
        query_before, key_before = call.query_before, call.key_before
        if query_before is None or key_before is None:
            return [{"rotary": None, "turned": UNSEEN}] * len(unpadded_texts)
        if is_one(query_before, query) and is_one(key_before, key):
            return [{"rotary": None, "turned": ""}] * len(unpadded_texts)
        exact = {query.dtype, query_before.dtype} <= {torch.float32, torch.float64}
        within = LEADS_WITHIN if exact else HALF_WITHIN
        pairs = (query_before, query), (key_before, key)
        return [self._of_text(unpadded, pairs, within) for unpadded in unpadded_texts]

    def _of_text(
        self, unpadded: RealTokens, pairs: tuple[Pair, Pair], within: float
    ) -> dict[str, Any]:
        call = unpadded.call
        queries = unpadded.of_queries(pairs[0][0]), unpadded.of_queries(pairs[0][1])
        keys = unpadded.of_keys(pairs[1][0]), unpadded.of_keys(pairs[1][1])
        heads = [(_first_head(before), _first_head(after)) for before, after in (queries, keys)]
        if all(_is_same(before, after, within) for before, after in heads):
            return {"rotary": None, "turned": ""}
        # Keys at other positions than the queries, such as those of a coarser picture, have other
        # angles.
        if call.cross or len(unpadded.queries) != len(unpadded.keys):
            return {"rotary": None, "turned": NO_LINE}
        before, after = (np.concatenate([pair[at] for pair in heads]) for at in (0, 1))
        rotary = self._found(before, after, (queries, keys), within)
        return {"rotary": rotary, "turned": "" if rotary else NO_LINE}

    def _found(
        self, before: np.ndarray, after: np.ndarray, sides: tuple[Pair, Pair], within: float
    ) -> Rotary | None:
        """A rotation known from another call, or a fitted one, checked on all tokens."""
        for known in self._known:
            if known.leads(before, after, within):
                return known.rotary
        fitted = _fitted(*sides, within)
        known = None if fitted is None else KnownRotation(fitted)
        if known is None or not known.leads(before, after, within):
            return None
        self._known.append(known)
        return fitted


def _fitted(queries: Pair, keys: Pair, within: float) -> Rotary | None:
    """The rotation of the first tokens, where queries and keys have the same."""
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
