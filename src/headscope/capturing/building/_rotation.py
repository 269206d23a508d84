"""Rotary positions of queries and keys, found by comparing them before and after rotation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from headscope.capturing.building.padding import Sides
from headscope.capturing.calls.call import Call
from headscope.capturing.device import allowed_apart
from headscope.capturing.watching._before_positions import is_one
from headscope.record import Rotary
from headscope.record.rotary import STYLES, fitted

Pair = tuple[np.ndarray, np.ndarray]
"""Queries or keys ``[head token feature]`` before positions and after."""

HEADS_FITTED, TOKENS_FITTED = 4, 64
TOKENS_COMPARED = 128
"""From the first to the last of a text."""
TURNED_BEYOND = 1e-6
LEADS_WITHIN = 2e-4
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
        _, tokens, features = before.shape
        if features < self._features:
            return False
        at = _compared(tokens)
        if tokens not in self._turns:
            turns = self.rotary.turns(tokens)
            self._turns[tokens] = [angles[at].astype(np.float32) for angles in turns]
        turned = before[:, at]
        self.rotary.turn(turned, *self._turns[tokens])
        return _is_same(turned, after[:, at], within)


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
        both = query_before, query
        within = max(allowed_apart(each, LEADS_WITHIN, HALF_WITHIN) for each in both)
        # The first head of all texts, in one copy of each tensor.
        firsts = [[_plain(each[:, :1]) for each in pair] for pair in _pairs(call)]
        return [self._of_text(call, sides, text, firsts, within=within) for text in range(texts)]

    def _of_text(
        self, call: Call, sides: Sides, text: int, firsts: list[list[np.ndarray]], *, within: float
    ) -> dict[str, Any]:
        queries, keys = _of_real([[each[text] for each in pair] for pair in firsts], sides, text)
        if all(_is_same(*pair, within) for pair in (queries, keys)):
            return {"rotary": None, "turned": ""}
        # Keys at other positions than the queries, such as those of a coarser picture, have other
        # angles.
        if call.cross or queries[0].shape[1] != keys[0].shape[1]:
            return {"rotary": None, "turned": NO_LINE}
        before, after = (np.concatenate(pair) for pair in zip(queries, keys, strict=True))
        for known in self._known:
            if known.leads(before, after, within):
                return {"rotary": known.rotary, "turned": ""}
        some = [[_plain(each[text, :HEADS_FITTED]) for each in pair] for pair in _pairs(call)]
        # In half precision a few tokens do not show the angle of many.
        for first in (TOKENS_FITTED, None):
            fitting = _fitted(*_of_real(some, sides, text), within, slice(first))
            if fitting is not None and fitting.leads(before, after, within):
                self._known.append(fitting)
                return {"rotary": fitting.rotary, "turned": ""}
        return {"rotary": None, "turned": NO_LINE}


def _pairs(call: Call) -> tuple[tuple[Any, Any], ...]:
    """Queries and keys ``[text head token feature]``, each before positions and after."""
    return (call.query_before, call.query), (call.key_before, call.key)


def _of_real(pairs: list[list[np.ndarray]], sides: Sides, text: int) -> list[Pair]:
    """Queries and keys of the real tokens of a text."""
    places = (side.places[text] for side in sides)
    return [(one[:, at], other[:, at]) for (one, other), at in zip(pairs, places, strict=True)]


def _compared(tokens: int) -> np.ndarray:
    return np.linspace(0, tokens - 1, min(tokens, TOKENS_COMPARED)).round().astype(int)


def _fitted(queries: Pair, keys: Pair, within: float, first: slice) -> KnownRotation | None:
    """The rotation of the first tokens, where queries and keys have the same."""
    rotary = rotary_between(*(each[:, first] for each in queries), within=within)
    known = None if rotary is None else KnownRotation(rotary)
    if known is None or not known.leads(*(each[:, first] for each in keys), within):
        return None
    return known


def rotary_between(
    before: Float[np.ndarray, "head token feature"],
    after: Float[np.ndarray, "head token feature"],
    *,
    within: float = LEADS_WITHIN,
) -> Rotary | None:
    """The rotation that leads from vectors to the same vectors after positions were applied; None
    where there is none.

    A pair is found where its length stays; its frequency is what its angle grows by from one token
    to the next. The answer is checked on all of it: turned by it, ``before`` must be ``after``.

    Args:
        before: ``[head token feature]``, consecutive tokens.
        after: the same, turned.
        within: how far, relative to the largest feature, the answer may be off: more for numbers in
            half precision.
    """
    before, after = before.astype(np.float64), after.astype(np.float64)
    if before.shape != after.shape or before.shape[1] < 2:
        return None
    scale = np.abs(after).max(initial=1e-30)
    # The first token, at position 0, is never turned; a feature counts if any token of it moved.
    moved = np.flatnonzero(np.abs(before - after).max(axis=(0, 1)) > TURNED_BEYOND * scale)
    if not len(moved):
        return None
    for trial in _candidates(before, moved):
        rotary = fitted(trial, before, after)
        if _is_same(rotary.turned(before), after, within):
            return rotary
    return None


def _candidates(before: np.ndarray, moved: np.ndarray) -> Iterator[Rotary]:
    """Rotations that could be, without their frequencies: by style, and by how many features are
    turned, of which the slowest may not show.
    """
    start, seen = int(moved[0]), int(moved[-1] - moved[0]) + 1
    rest = before.shape[2] - start
    for style in STYLES:
        for width in dict.fromkeys([seen + seen % 2, rest // 2 * 2, rest // 2, rest // 4]):
            if width >= seen and not width % 2 and width <= rest:
                yield Rotary(frequencies=np.zeros(width // 2), style=style, start=start)


def _is_same(before: np.ndarray, after: np.ndarray, within: float) -> bool:
    apart = np.abs(before - after).max(initial=0)
    return bool(apart <= within * np.abs(after).max(initial=0))


def _plain(vectors: torch.Tensor) -> np.ndarray:
    return vectors.float().cpu().numpy()
