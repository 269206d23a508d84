"""Rotary positions of queries and keys, found by comparing them before and after rotation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
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
        """Whether it rotates the first ``[head token feature]`` into the second; of several texts
        ``[text head token feature]`` in each.
        """
        *_, tokens, features = before.shape
        if features < self._features:
            return False
        if tokens not in self._turns:
            turns = self.rotary.turns(tokens)
            self._turns[tokens] = [angles.astype(np.float32) for angles in turns]
        turned = before.copy()
        self.rotary.turn(turned, *self._turns[tokens])
        return bool(_is_same(turned, after, within).all())


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
        seen = query_before.shape[2], key_before.shape[2]
        if seen != call.size[2:]:
            # Of a generation, what the first step read.
            unpadded_texts = [
                replace(
                    text,
                    queries=text.queries[text.queries < seen[0]],
                    keys=text.keys[text.keys < seen[1]],
                )
                for text in unpadded_texts
            ]
        if is_one(query_before, query) and is_one(key_before, key):
            return [{"rotary": None, "turned": ""}] * len(unpadded_texts)
        exact = {query.dtype, query_before.dtype} <= {torch.float32, torch.float64}
        within = LEADS_WITHIN if exact else HALF_WITHIN
        pairs = (query_before, query), (key_before, key)
        first = self._of_text(unpadded_texts[0], pairs, within)
        if first["rotary"] is not None and self._lead_all(unpadded_texts, pairs, within):
            return [first] * len(unpadded_texts)
        return [first, *(self._of_text(text, pairs, within) for text in unpadded_texts[1:])]

    def _lead_all(
        self, unpadded_texts: Sequence[RealTokens], pairs: tuple[Pair, Pair], within: float
    ) -> bool:
        """Whether the rotation of the first text is that of all, none of which has padding."""
        size = unpadded_texts[0].call.size
        if any((len(text.queries), len(text.keys)) != size[2:] for text in unpadded_texts):
            return False
        # ``[text side token feature]`` of the first head of queries and of keys
        before, after = (
            np.stack([_plain(side[at][:, 0]) for side in pairs], axis=1) for at in (0, 1)
        )
        sides = before.shape[0] * 2, 1, *before.shape[2:]
        moved = ~_is_same(before.reshape(sides), after.reshape(sides), within).reshape(-1, 2)
        if not moved.any(axis=1).all():
            return False
        # the one that was taken for the first text is the first that leads
        known = next(
            (each for each in self._known if each.leads(before[0], after[0], within)), None
        )
        return known is not None and known.leads(before, after, within)

    def _of_text(
        self, unpadded: RealTokens, pairs: tuple[Pair, Pair], within: float
    ) -> dict[str, Any]:
        call = unpadded.call
        queries = unpadded.of_queries(pairs[0][0]), unpadded.of_queries(pairs[0][1])
        keys = unpadded.of_keys(pairs[1][0]), unpadded.of_keys(pairs[1][1])
        heads = [(_first_head(before), _first_head(after)) for before, after in (queries, keys)]
        if all(_is_same(before, after, within).all() for before, after in heads):
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
        if fitted is None or not fitted.leads(before, after, within):
            return None
        self._known.append(fitted)
        return fitted.rotary


def _fitted(queries: Pair, keys: Pair, within: float) -> KnownRotation | None:
    """The rotation of the first tokens, where queries and keys have the same."""
    few_queries, few_keys = (
        tuple(_plain(tensor[:HEADS_FITTED, :TOKENS_FITTED]) for tensor in pair)
        for pair in (queries, keys)
    )
    rotary = rotary_between(*few_queries, within=within)
    fitted = None if rotary is None else KnownRotation(rotary)
    if fitted is None or not fitted.leads(*few_keys, within):
        return None
    return fitted


def _is_same(before: np.ndarray, after: np.ndarray, within: float) -> np.ndarray:
    """Whether vectors ``[... head token feature]`` are the same, ``[...]``."""
    axes = (-3, -2, -1)
    apart = np.abs(before - after).max(axis=axes, initial=0)
    return np.asarray(apart <= within * np.abs(after).max(axis=axes, initial=0))


def _first_head(vectors: torch.Tensor) -> np.ndarray:
    return _plain(vectors[:1])


def _plain(vectors: torch.Tensor) -> np.ndarray:
    return vectors.float().cpu().numpy()
