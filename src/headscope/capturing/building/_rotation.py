"""Rotary positions of queries and keys, found by comparing them before and after rotation."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from headscope.capturing.building.padding import Sides
from headscope.capturing.calls.call import Call
from headscope.capturing.device import allowed_apart
from headscope.capturing.watching._before_positions import is_one
from headscope.record import Rotary
from headscope.record.rotary import LEADS_WITHIN, rotary_between

Pair = tuple[np.ndarray, np.ndarray]
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

    def of(self, call: Call, sides: Sides) -> list[dict[str, Any]]:
        """The rotation of the real tokens of each text of a call, or why it is unknown.

        Returns:
            ``rotary`` and ``turned`` of a `Layer` for each text.
        """
        texts, (query, key) = call.size[0], (call.query, call.key)
        if query is None or key is None:
            return [{"rotary": None, "turned": ""}] * texts
        query_before, key_before = call.query_before, call.key_before
        if query_before is None or key_before is None:
            return [{"rotary": None, "turned": UNSEEN}] * texts
        if is_one(query_before, query) and is_one(key_before, key):
            return [{"rotary": None, "turned": ""}] * texts
        own = allowed_apart(query_before, LEADS_WITHIN, HALF_WITHIN)
        within = max(own, allowed_apart(query, LEADS_WITHIN, HALF_WITHIN))
        first = self._of_text(call, sides, 0, within)
        if first["rotary"] is not None and self._leads_all(call, sides, first["rotary"], within):
            return [first] * texts
        return [first, *(self._of_text(call, sides, text, within) for text in range(1, texts))]

    def _leads_all(self, call: Call, sides: Sides, rotary: Rotary, within: float) -> bool:
        """Whether the rotation of the first text is that of all, none of which has padding."""
        if {len(at) for side in sides for at in side.positions} != {call.size[2]}:
            return False
        # ``[text side token feature]`` of the first head of queries and of keys
        before, after = (
            np.stack([_plain(pair[at][:, 0]) for pair in _pairs(call)], axis=1) for at in (0, 1)
        )
        known = next(each for each in self._known if each.rotary is rotary)
        return known.leads(before, after, within)

    def _of_text(self, call: Call, sides: Sides, example: int, within: float) -> dict[str, Any]:
        queries, keys = _vectors(call, sides, example, 1)
        if all(_is_same(*pair, within).all() for pair in (queries, keys)):
            return {"rotary": None, "turned": ""}
        # Keys at other positions than the queries, such as those of a coarser picture, have other
        # angles.
        if call.cross or queries[0].shape[1] != keys[0].shape[1]:
            return {"rotary": None, "turned": NO_LINE}
        before, after = (np.concatenate(pair) for pair in zip(queries, keys, strict=True))
        for known in self._known:
            if known.leads(before, after, within):
                return {"rotary": known.rotary, "turned": ""}
        fitted = _fitted(*_vectors(call, sides, example, HEADS_FITTED), within)
        if fitted is None or not fitted.leads(before, after, within):
            return {"rotary": None, "turned": NO_LINE}
        self._known.append(fitted)
        return {"rotary": fitted.rotary, "turned": ""}


def _pairs(call: Call) -> tuple[tuple[Any, Any], ...]:
    """Queries and keys ``[text head token feature]``, each before positions and after."""
    return (call.query_before, call.query), (call.key_before, call.key)


def _vectors(call: Call, sides: Sides, example: int, heads: int) -> list[Pair]:
    """Queries and keys of the real tokens of a text in the first heads."""
    vectors = []
    for side, pair in zip(sides, _pairs(call), strict=True):
        at = side.places[example]
        one, other = (_plain(each[example, :heads][:, at]) for each in pair)
        vectors.append((one, other))
    return vectors


def _fitted(queries: Pair, keys: Pair, within: float) -> KnownRotation | None:
    """The rotation of the first tokens, where queries and keys have the same."""
    first = slice(TOKENS_FITTED)
    rotary = rotary_between(*(each[:, first] for each in queries), within=within)
    fitted = None if rotary is None else KnownRotation(rotary)
    if fitted is None or not fitted.leads(*(each[:, first] for each in keys), within):
        return None
    return fitted


def _is_same(before: np.ndarray, after: np.ndarray, within: float) -> np.ndarray:
    """Whether vectors ``[... head token feature]`` are the same, ``[...]``."""
    axes = (-3, -2, -1)
    apart = np.abs(before - after).max(axis=axes, initial=0)
    return np.asarray(apart <= within * np.abs(after).max(axis=axes, initial=0))


def _plain(vectors: torch.Tensor) -> np.ndarray:
    return vectors.float().cpu().numpy()
