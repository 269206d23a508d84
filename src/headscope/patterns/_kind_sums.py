"""The sums over the rows of words that the numbers of heads on one text are made of."""

from __future__ import annotations

from collections.abc import Callable
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


AROUND = 16
"""Words that each row is read as if it had, however long the text is: half on either side, or all
before it in a causal model.
"""
LEAST_AROUND = 4
"""Words around a query from which its row counts."""
LEAST_BESIDE = 3
"""Words around a query besides the target."""
TINY = 1e-12


class RowsAround:
    """The rows of several heads as if special tokens and `AROUND` words stood around each query.

    Weights between two keys have the same ratio whatever else the row sees, so that these shares do
    not depend on the length of a text: the words around a query count ``AROUND`` over their number.
    With ``s`` on special tokens, ``m`` the mean weight of the words around and ``t`` that of a
    target, a target has ``t / (t + 15 m + s)``, special tokens have ``s / (s + 16 m)``.

    Args:
        facts: what the tokens say.
        heads: how many.
        keys: of each query.
    """

    def __init__(self, facts: TextFacts, heads: int, keys: int) -> None:
        self.facts = facts
        self.rows: dict[str, list[Float[np.ndarray, "head row"]]] = {}
        self.near = KeyShares(heads)
        self._single, self._seen = np.zeros((heads, keys)), np.zeros(keys)

    def add(
        self,
        weights: Float[np.ndarray, "head query key"],
        words: Float[np.ndarray, "query key"],
        visible: Float[np.ndarray, "query key"],
        queries: Int[np.ndarray, " query"],
        *,
        same: Float[np.ndarray, "query key"],
    ) -> None:
        """Add rows of words; ``words`` are the visible keys that are words."""
        at, around = self._around(words, queries)
        used = around.sum(axis=1) >= LEAST_AROUND
        if not used.any():
            return
        weights, visible, queries, same = weights[:, used], visible[used], queries[used], same[used]
        at, around = at[used], around[used]
        close = weights[:, np.arange(len(at))[:, None], at] * around
        count, inside = around.sum(axis=1), close.sum(axis=2)
        mean = inside / count
        special = weights @ (~self.facts.key_words).astype(float)
        self._put("special", special / (special + AROUND * mean + TINY))
        parts = close / (inside[..., None] + TINY)
        logs = np.log(parts, out=np.zeros_like(parts), where=parts > 0)
        self._put("broad", np.exp(-(parts * logs).sum(axis=2)) / count)
        single = weights + (AROUND * mean[..., None] + TINY)
        self._single += np.divide(weights, single, out=single).sum(axis=1)
        del single
        self._seen += visible.sum(axis=0)
        got, keys = np.einsum("hqk,qk->hq", weights, same), same.sum(axis=1)
        rows = _Around(close, around, special)
        self._target("same", rows, np.take_along_axis(same, at, axis=1), (got, keys))
        if not self.facts.alone:
            return
        apart = at - queries[:, None]
        segments = np.array(self.facts.query.segments)
        own = (segments[at] == segments[queries][:, None]) * around
        for name, step in (("next", 1), ("previous", -1), ("itself", 0)):
            target = own * (apart == step)
            self._target(name, rows, target, ((close * target).sum(axis=2), target.sum(axis=1)))
        self._near(rows, np.abs(apart) <= WINDOW)

    def _around(
        self, words: Float[np.ndarray, "query key"], queries: Int[np.ndarray, " query"]
    ) -> tuple[Int[np.ndarray, "query place"], Float[np.ndarray, "query place"]]:
        """The keys around each query, and 1 for those of them that are words; where queries and
        keys are different tokens, all keys.
        """
        keys = words.shape[1]
        if not self.facts.alone:
            return np.broadcast_to(np.arange(keys), words.shape), words
        first, last = (-AROUND, 0) if self.facts.causal else (-(AROUND // 2), AROUND // 2)
        at = queries[:, None] + np.arange(first, last + 1)
        there = (at >= 0) & (at < keys)
        at = np.clip(at, 0, keys - 1)
        return at, np.take_along_axis(words, at, axis=1) * there

    def of_each(self, name: str) -> list[float]:
        """The mean over the rows of each head; NaN where no row has the target."""
        return self._over_rows(name, np.mean)

    def median(self, name: str) -> list[float]:
        """The same of the median row."""
        return self._over_rows(name, np.median)

    def count(self, name: str) -> int:
        """How many rows have the target."""
        return sum(each.shape[1] for each in self.rows.get(name, []))

    @property
    def single(self) -> Float[np.ndarray, " head"]:
        """The largest share of one word, of those that half of the rows see."""
        least = max(LEAST_AROUND, self.count("special") // 2)
        kept = (self._seen >= least) & self.facts.key_words
        shares = np.where(kept, self._single / np.maximum(1, self._seen), 0.0)
        return np.asarray(shares.max(axis=1, initial=0.0))

    def _put(self, name: str, values: Float[np.ndarray, "head row"]) -> None:
        self.rows.setdefault(name, []).append(values)

    def _over_rows(self, name: str, over: Callable[..., np.ndarray]) -> list[float]:
        if not self.count(name):
            return [np.nan] * len(self._single)
        return np.asarray(over(np.concatenate(self.rows[name], axis=1), axis=1)).tolist()

    def _target(
        self,
        name: str,
        rows: _Around,
        inside: Float[np.ndarray, "query place"],
        whole: tuple[Float[np.ndarray, "head query"], Float[np.ndarray, " query"]],
    ) -> None:
        """Add what goes to a target: the part of it around each query, and the weight on all of it
        with its number of keys.
        """
        got, keys = whole
        beside = (rows.around - inside).sum(axis=1)
        there = (keys > 0) & (beside >= LEAST_BESIDE)
        if not there.any():
            return
        rest = (rows.weights * (rows.around - inside)).sum(axis=2)[:, there] / beside[there]
        mean = got[:, there] / keys[there]
        beside_rest = mean + (AROUND - 1) * rest + TINY
        self._put(name, mean / (beside_rest + rows.special[:, there]))
        self._put(f"{name} beside rest", mean / beside_rest)

    def _near(self, rows: _Around, close: Bool[np.ndarray, "query place"]) -> None:
        inside, outside = rows.around * close, rows.around * ~close
        there = (outside.sum(axis=1) >= LEAST_BESIDE) & (inside.sum(axis=1) > 0)
        if not there.any():
            return
        weights, inside, outside = rows.weights[:, there], inside[there], outside[there]
        got = (weights * inside).sum(axis=2)
        near = got / inside.sum(axis=1)
        far = (weights * outside).sum(axis=2) / outside.sum(axis=1)
        keys = WINDOW + 1 if self.facts.causal else 2 * WINDOW + 1
        self._put("near", keys * near / (keys * near + (AROUND + 1 - keys) * far + TINY))
        self.near.add(RowBlock.of(weights, inside + outside), got, inside.sum(axis=1))


class _Around(NamedTuple):
    """Weights on the words around queries, 1 for each of these, and what special tokens get."""

    weights: Float[np.ndarray, "head query place"]
    around: Float[np.ndarray, "query place"]
    special: Float[np.ndarray, "head query"]


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
        self.around = RowsAround(facts, heads, keys)
        self.even = 0.0

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
        self.even += float((1 / sees.sum(axis=1)).sum())
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
        same = self._same(words, queries)
        self.around.add(weights, words, sees, queries, same=same)
        between = weights * facts.key_words
        row = RowBlock.of(between, words)
        if same.any():
            self.targets["same"].add(row, (weights * same).sum(axis=2), same.sum(axis=1))
            self.links["same_link"].add(np.where(same > 0, weights, -1.0), queries)
        if facts.alone:
            self._neighbours(weights, words, queries, row)
            self._between_words(between, words, queries, row)
            # Only now, because `_neighbours` above measures the token itself, and the strongest
            # link must go to another token.
            words[np.arange(len(queries)), queries] = 0.0
        self.links["link"].add(np.where(words > 0, weights, -1.0), queries)

    def _same(self, words: np.ndarray, queries: np.ndarray) -> Float[np.ndarray, "query key"]:
        """1 for other occurrences of each query's word."""
        of_query, of_key = self.facts.names
        named = (of_query[queries] >= 0)[:, None]
        same = ((of_query[queries][:, None] == of_key) & named) * words
        if self.facts.alone:
            same[np.arange(len(queries)), queries] = 0.0
        return same

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
