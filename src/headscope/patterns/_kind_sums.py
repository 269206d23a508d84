"""The sums over the rows of words that the numbers of heads on one text are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from headscope.patterns._text_facts import TextFacts

WINDOW = 2
"""Number of tokens on either side that are near."""

BY_CHANCE = 0.01
"""Accepted probability of a kind under random order, over all targets that were tried: short texts
have patterns by chance.
"""


class KeyShare(NamedTuple):
    """How much of each row of a head goes to some of the keys, and how much would by chance.

    By chance means: the weights of a row lie in any order on the keys that it could look at. Then
    what falls on ``k`` of ``K`` keys has mean ``k`` times that of the row and the variance of
    drawing without replacement.
    """

    got: float
    mass: float
    expected: float
    variance: float
    reach: float
    rows: int

    @property
    def mean(self) -> float:
        """Mean over the rows."""
        return part(self.got, self.rows)

    @property
    def even(self) -> float:
        """The same by chance."""
        return part(self.expected, self.rows)

    @property
    def share(self) -> float:
        """Share of the rows' weight on visible keys."""
        return part(self.got, self.mass)

    @property
    def even_share(self) -> float:
        """The same by chance."""
        return part(self.expected, self.mass)

    def is_clear(self, tried: float | int) -> bool:
        """Whether so much weight is improbable by chance, where so many targets were tried."""
        return bool(self.surprise >= np.log(tried / BY_CHANCE))

    @property
    def surprise(self) -> float:
        """``-ln`` of a bound on the probability of so much weight in random order (Bennett 1962),
        with rows taken as independent.
        """
        above = self.got - self.expected
        if above <= 0 or self.reach <= 0:
            return 0.0
        spread = max(self.variance, 1e-12)
        ratio = above * self.reach / spread
        return spread / self.reach**2 * ((1 + ratio) * np.log1p(ratio) - ratio)


class KeyShares:
    """Sums of a `KeyShare` of several heads, all of the same rows.

    Args:
        heads: how many.
    """

    def __init__(self, heads: int) -> None:
        self.got, self.mass, self.expected = (np.zeros(heads) for _ in range(3))
        self.variance, self.reach = (np.zeros(heads) for _ in range(2))
        self.rows = 0

    def add(
        self, row: RowBlock, got: Float[np.ndarray, "head query"], keys: Float[np.ndarray, " query"]
    ) -> None:
        """Add rows: what goes to the target, and how many keys of each row it has; rows with none,
        or with no other key, do not count.
        """
        used = (keys > 0) & (keys < row.count)
        if not used.any():
            return
        self.rows += int(used.sum())
        keys, count = keys[used], row.count[used]
        mass, mean = row.mass[:, used], row.mean[:, used]
        self.got += got[:, used].sum(axis=1)
        self.mass += mass.sum(axis=1)
        self.expected += mean @ keys
        self.variance += row.variance[:, used] @ (keys * (count - keys) / np.maximum(1, count - 1))
        self.reach = np.maximum(self.reach, (mass - keys * mean).max(axis=1))

    def of_each(self) -> list[KeyShare]:
        """The share of each head."""
        sums = (self.got, self.mass, self.expected, self.variance, self.reach)
        columns = (each.tolist() for each in sums)
        return [KeyShare(*own, self.rows) for own in zip(*columns, strict=True)]


@dataclass(frozen=True)
class RowBlock:
    """What rows of heads give to the keys that they could look at."""

    count: Float[np.ndarray, " query"]
    mass: Float[np.ndarray, "head query"]
    mean: Float[np.ndarray, "head query"]
    variance: Float[np.ndarray, "head query"]

    @classmethod
    def of(
        cls, weights: Float[np.ndarray, "head query key"], keys: Float[np.ndarray, "query key"]
    ) -> RowBlock:
        """Statistics over the keys that are 1; the weights of all others must be 0."""
        count = keys.sum(axis=1)
        least = np.maximum(1, count)
        mass = weights.sum(axis=2)
        mean = mass / least
        return cls(count, mass, mean, np.maximum(0.0, (weights**2).sum(axis=2) / least - mean**2))


TARGETS = ("next", "previous", "itself", "same", "special", "own", "near", "top")
LINKS = ("link", "same_link", "leaver")


class StrongestLinks:
    """The strongest link of each of several heads; query and key are -1 where there is none."""

    def __init__(self, heads: int) -> None:
        self.query, self.key = (np.full(heads, -1) for _ in range(2))
        self.weight = np.full(heads, -1.0)

    def add(
        self, values: Float[np.ndarray, "head query key"], queries: Int[np.ndarray, " query"]
    ) -> None:
        """Look at more rows; what is below 0 is no link."""
        heads, _, keys = values.shape
        flat = values.reshape(heads, -1)
        best = flat.argmax(axis=1)
        weight = flat[np.arange(heads), best]
        better = weight > self.weight
        self.weight[better] = weight[better]
        self.query[better] = queries[best // keys][better]
        self.key[better] = (best % keys)[better]


class HeadSums:
    """The sums over word rows that the numbers of heads on one text are made of.

    Of several heads at once: on a text of a sentence, the calls of NumPy take longer than the sums.

    Args:
        facts: what the tokens say.
        heads: how many.
        keys: of each query.
    """

    def __init__(self, facts: TextFacts, heads: int, keys: int) -> None:
        self.facts = facts
        self.columns = np.zeros((heads, keys))
        names = ("keys", "sharpness", "between", "by_distance")
        self.sums = {name: np.zeros(heads) for name in names}
        self.seen = 0.0
        self.rows = 0
        self.targets = {name: KeyShares(heads) for name in TARGETS}
        self.links = {name: StrongestLinks(heads) for name in LINKS}

    def add(
        self,
        weights: Float[np.ndarray, "head query key"],
        visible: Bool[np.ndarray, "query key"],
        queries: Int[np.ndarray, " query"],
    ) -> None:
        """Add the rows of the queries at these positions."""
        facts = self.facts
        # Only rows of words count below. Of special tokens the strongest link to another token is
        # kept, for the sentence about the head.
        seen = visible.any(axis=1)
        leaving = ~facts.words[queries] & (queries > 0) & seen
        if facts.alone and leaving.any():
            self.links["leaver"].add(weights[:, leaving], queries[leaving])
        used = facts.words[queries] & seen
        if not used.any():
            return
        weights, sees, queries = weights[:, used], visible[used].astype(float), queries[used]
        self.rows += len(queries)
        self.columns += weights.sum(axis=1)
        self.seen += float(sees.sum())
        self.sums["sharpness"] += weights.max(axis=2).sum(axis=1)
        logs = np.log(weights, out=np.zeros_like(weights), where=weights > 0)
        # exp of the entropy: over how many keys a uniform row of this entropy would spread.
        self.sums["keys"] += np.exp(-(weights * logs).sum(axis=2)).sum(axis=1)
        row = RowBlock.of(weights, sees)
        special = (~facts.key_words).astype(float)
        self.targets["special"].add(row, weights @ special, sees @ special)
        # Which key gets most is known only at the end, so nothing is added yet; by chance any
        # single key has the same mean and variance.
        self.targets["top"].add(row, np.zeros(row.mass.shape), np.ones(len(queries)))
        # Patterns are judged among words alone: weight that rests on a special token says nothing
        # about them.
        words = sees * facts.key_words
        between = weights * facts.key_words
        row = RowBlock.of(between, words)
        self._same(weights, words, queries, row)
        if facts.alone:
            self._neighbours(weights, words, queries, row)
            self._between_words(between, words, queries, row)
            # Only now, because `_neighbours` above measures the token itself, and the strongest
            # link must go to another token.
            words[np.arange(len(queries)), queries] = 0.0
        self.links["link"].add(np.where(words > 0, weights, -1.0), queries)

    def _same(
        self, weights: np.ndarray, visible: np.ndarray, queries: np.ndarray, row: RowBlock
    ) -> None:
        """Add the weight on other occurrences of the same word."""
        of_query, of_key = self.facts.names
        same = (
            (of_query[queries][:, None] == of_key[None, :])
            & (of_query[queries] >= 0)[:, None]
            & (visible > 0)
        )
        if self.facts.alone:
            same[np.arange(len(queries)), queries] = False
        if same.any():
            on_same = (weights * same).sum(axis=2)
            self.targets["same"].add(row, on_same, same.sum(axis=1).astype(float))
            self.links["same_link"].add(np.where(same, weights, -1.0), queries)

    def _neighbours(
        self, weights: np.ndarray, visible: np.ndarray, queries: np.ndarray, row: RowBlock
    ) -> None:
        """Add the weight on the token itself and on its neighbours in the same text."""
        # The last token has no next one.
        neighbours = np.append(self.facts.neighbours, False)
        beside = {"next": neighbours[queries], "previous": (queries > 0) & neighbours[queries - 1]}
        beside["itself"] = np.ones(len(queries), bool)
        rows = np.arange(len(queries))
        for name, step in (("next", 1), ("previous", -1), ("itself", 0)):
            # Where there is no neighbour, index 0 keeps the lookup inside the row, and `there`
            # removes the result.
            at = np.where(beside[name], queries + step, 0)
            there = beside[name] & (visible[rows, at] > 0)
            got = np.where(there, weights[:, rows, at], 0.0)
            self.targets[name].add(row, got, there.astype(float))

    def _between_words(
        self, weights: np.ndarray, visible: np.ndarray, queries: np.ndarray, row: RowBlock
    ) -> None:
        """Add the weight between words that stays near, and that stays in one text."""
        facts = self.facts
        rows, keys = np.arange(len(queries)), weights.shape[2]
        near, near_keys = np.zeros(row.mass.shape), np.zeros(len(queries))
        for step in range(-WINDOW, WINDOW + 1):
            there = (queries + step >= 0) & (queries + step < keys)
            at = np.where(there, queries + step, 0)
            near += there * weights[:, rows, at]
            near_keys += there * visible[rows, at]
        self.targets["near"].add(row, near, near_keys)
        self.sums["between"] += weights.sum(axis=(1, 2))
        if facts.pair:
            segments = np.array(facts.query.segments)
            inside = (segments[queries][:, None] == segments[None, :]).astype(float)
            own = np.einsum("hqk,qk->hq", weights, inside)
            self.targets["own"].add(row, own, (visible * inside).sum(axis=1))
            distance = np.abs(queries[:, None] - np.arange(keys)[None, :])
            self.sums["by_distance"] += np.einsum("hqk,qk->h", weights, facts.own_at[distance])


def part(amount: float, of: float | int) -> float:
    return amount / of if of else np.nan
