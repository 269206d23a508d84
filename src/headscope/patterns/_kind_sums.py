"""The sums over the rows of words that the numbers of a head on one text are made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from headscope.patterns._text_facts import TextFacts

WINDOW = 2
"""Tokens on either side that are near."""
BY_CHANCE = 0.01
"""Chance of a kind in random order that is accepted, over all that was tried for it: short texts
have patterns by chance.
"""


class KeyShare:
    """How much of each row goes to some of the keys, and how much would by chance.

    By chance means: the weights of a row lie in any order on the keys that it could look at. Then
    what falls on ``k`` of ``K`` keys has mean ``k`` times that of the row and the variance of
    drawing without replacement.
    """

    def __init__(self) -> None:
        self.got = self.expected = self.variance = self.mass = 0.0
        self.reach = 0.0
        self.rows = 0

    def add(self, row: RowBlock, got: np.ndarray, keys: np.ndarray) -> None:
        """Add rows: what goes to the target, and how many keys of each row it has; rows without any
        do not count.
        """
        used = (keys > 0) & (keys < row.count)
        keys, count, mean = keys[used], row.count[used], row.mean[used]
        self.rows += int((keys > 0).sum())
        self.got += float(got[used].sum())
        self.mass += float(row.mass[used].sum())
        self.expected += float((keys * mean).sum())
        self.variance += float(
            (keys * (count - keys) / np.maximum(1, count - 1) * row.variance[used]).sum()
        )
        if used.any():
            self.reach = max(self.reach, float((row.mass[used] - keys * mean).max()))

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
        """Part of what the rows give to the keys that they could look at."""
        return part(self.got, self.mass)

    @property
    def even_share(self) -> float:
        """The same by chance."""
        return part(self.expected, self.mass)

    def is_clear(self, tried: float | int) -> bool:
        """Whether chance hardly gives as much, where so many targets were tried."""
        return bool(self.surprise >= np.log(tried / BY_CHANCE))

    @property
    def surprise(self) -> float:
        """``-ln`` of a bound on the chance of as much in random order (Bennett 1962), rows taken as
        independent.
        """
        above = self.got - self.expected
        if above <= 0 or self.reach <= 0:
            return 0.0
        spread = max(self.variance, 1e-12)
        ratio = above * self.reach / spread
        return spread / self.reach**2 * ((1 + ratio) * np.log1p(ratio) - ratio)


@dataclass(frozen=True)
class RowBlock:
    """What rows give to the keys that they could look at."""

    count: Float[np.ndarray, " query"]
    mass: Float[np.ndarray, " query"]
    mean: Float[np.ndarray, " query"]
    variance: Float[np.ndarray, " query"]

    @classmethod
    def of(
        cls, weights: Float[np.ndarray, "query key"], keys: Float[np.ndarray, "query key"]
    ) -> RowBlock:
        """Of the keys that are 1; all else must weigh nothing."""
        count = keys.sum(axis=1)
        least = np.maximum(1, count)
        mass = weights.sum(axis=1)
        mean = mass / least
        return cls(count, mass, mean, np.maximum(0.0, (weights**2).sum(axis=1) / least - mean**2))


TARGETS = ("next", "previous", "itself", "same", "special", "own", "near", "top")


class HeadSums:
    """The sums over word rows that the numbers of one head are made of."""

    def __init__(self, facts: TextFacts, keys: int) -> None:
        self.facts = facts
        self.columns = np.zeros(keys)
        self.sums = dict.fromkeys(("keys", "sharpness", "seen", "between", "by_distance"), 0.0)
        self.rows = 0
        self.targets = {name: KeyShare() for name in TARGETS}
        self.links = {"link": (-1, -1, -1.0), "same_link": (-1, -1, -1.0), "leaver": (-1, -1, -1.0)}

    def add(
        self,
        weights: Float[np.ndarray, "query key"],
        visible: Bool[np.ndarray, "query key"],
        first: int,
    ) -> None:
        """Add the rows of the queries from ``first`` on."""
        facts = self.facts
        queries = np.arange(first, first + len(weights))
        # Word rows alone count below; what leaves special tokens is kept as one link, to name the
        # head.
        seen = visible.sum(axis=1)
        leaving = ~facts.words[queries] & (queries > 0) & (seen > 0)
        if facts.alone and leaving.any():
            self._strongest("leaver", weights[leaving], queries[leaving])
        used = facts.words[queries] & (seen > 0)
        if not used.any():
            return
        weights, visible, queries = weights[used], visible[used].astype(float), queries[used]
        self.rows += len(queries)
        self.columns += weights.sum(axis=0)
        self.sums["seen"] += float(visible.sum())
        self.sums["sharpness"] += float(weights.max(axis=1).sum())
        logs = np.log(weights, out=np.zeros_like(weights), where=weights > 0)
        # exp of the entropy: how many keys a row would spread over evenly.
        self.sums["keys"] += float(np.exp(-(weights * logs).sum(axis=1)).sum())
        row = RowBlock.of(weights, visible)
        special = (~facts.key_words).astype(float)
        self.targets["special"].add(row, weights @ special, visible @ special)
        # Which key gets most is known at the end only; any one key has the same mean and variance
        # by chance.
        self.targets["top"].add(row, np.zeros(len(queries)), np.ones(len(queries)))
        # Patterns are compared with other words alone: what rests on a special token says nothing
        # of them.
        words = visible * facts.key_words
        row = RowBlock.of(weights * facts.key_words, words)
        self._same(weights, words, queries, row)
        if facts.alone:
            self._neighbours(weights, words, queries, row)
            self._between_words(weights * facts.key_words, words, queries, row)
            # Here, since `_neighbours` above measures the token itself, and the strongest link is
            # to another.
            words[np.arange(len(queries)), queries] = 0.0
        self._strongest("link", np.where(words > 0, weights, -1.0), queries)

    def _same(
        self, weights: np.ndarray, visible: np.ndarray, queries: np.ndarray, row: RowBlock
    ) -> None:
        """Other places of the same word that a query sees."""
        of_query, of_key = self.facts.names
        same = (
            (of_query[queries][:, None] == of_key[None, :])
            & (of_query[queries] >= 0)[:, None]
            & (visible > 0)
        )
        if self.facts.alone:
            same[np.arange(len(queries)), queries] = False
        if same.any():
            self.targets["same"].add(row, (weights * same).sum(axis=1), same.sum(axis=1))
            self._strongest("same_link", np.where(same, weights, -1.0), queries)

    def _neighbours(
        self, weights: np.ndarray, visible: np.ndarray, queries: np.ndarray, row: RowBlock
    ) -> None:
        """The token itself and those beside it, inside one text."""
        # The last token has none after it.
        neighbours = np.append(self.facts.neighbours, False)
        beside = {"next": neighbours[queries], "previous": (queries > 0) & neighbours[queries - 1]}
        beside["itself"] = np.ones(len(queries), bool)
        for name, step in (("next", 1), ("previous", -1), ("itself", 0)):
            # Index 0 stands for no neighbour: it keeps the lookup inside the row, and `there` takes
            # it out.
            at = np.where(beside[name], queries + step, 0)
            there = beside[name] & (visible[np.arange(len(queries)), at] > 0)
            got = np.where(there, weights[np.arange(len(queries)), at], 0.0)
            self.targets[name].add(row, got, there.astype(float))

    def _between_words(
        self, weights: np.ndarray, visible: np.ndarray, queries: np.ndarray, row: RowBlock
    ) -> None:
        """Of the weight between words: what stays near, and what stays in one text."""
        facts = self.facts
        near, near_keys = np.zeros(len(queries)), np.zeros(len(queries))
        for step in range(-WINDOW, WINDOW + 1):
            there = (queries + step >= 0) & (queries + step < weights.shape[1])
            at = np.where(there, queries + step, 0)
            near += there * weights[np.arange(len(queries)), at]
            near_keys += there * visible[np.arange(len(queries)), at]
        self.targets["near"].add(row, near, near_keys)
        self.sums["between"] += float(weights.sum())
        if facts.pair:
            segments = np.array(facts.query.segments)
            inside = (segments[queries][:, None] == segments[None, :]).astype(float)
            self.targets["own"].add(
                row, (weights * inside).sum(axis=1), (visible * inside).sum(axis=1)
            )
            distance = np.abs(queries[:, None] - np.arange(weights.shape[1])[None, :])
            self.sums["by_distance"] += float((weights * facts.own_at[distance]).sum())

    def _strongest(self, name: str, values: np.ndarray, queries: np.ndarray) -> None:
        row, key = np.unravel_index(int(values.argmax()), values.shape)
        if values[row, key] > self.links[name][2]:
            self.links[name] = (int(queries[row]), int(key), float(values[row, key]))


def part(amount: float, of: float | int) -> float:
    return amount / of if of else np.nan
