"""What each head does on one text: ten numbers, and the first of seven kinds whose rule holds.

A kind is a description of one text, not a label: labels need many texts, baselines and intervals
(`heads`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int

from headscope.record import Layer, Mask, Stack, Tokens

NUMBERS = (
    "next",
    "previous",
    "itself",
    "same",
    "special",
    "top",
    "own",
    "near",
    "keys",
    "sharpness",
)
"""Means over the queries that are words. Shares of the weight, but for ``keys``, which counts
keys.
"""

KINDS = ("next", "previous", "same", "own", "near", "broad", "resting", "none")
"""In the order in which they are listed; the rules are tried in the order of `kind_of`."""

PLACES = (
    "rest_key",
    "rest_other",
    "top_key",
    "link_query",
    "link_key",
    "same_query",
    "same_key",
    "leaver_query",
    "leaver_key",
)
"""Positions of tokens that a sentence about the head names, -1 where there is none; ``rest_key``
and ``rest_other`` are where it rests.
"""

REST = ("link", "same_link", "leaver", "own_by_distance", "own_even", "seen")
"""Weights of these links, what ``own`` would be by distance alone and by chance, and how many keys
a query sees.
"""

COLUMNS = (*NUMBERS, *PLACES, *REST, "kind", "score")
"""All that is known of one head on one text."""

WINDOW = 2
"""Tokens on either side that are near."""
BLOCK = 256
"""Queries that are measured at a time, so that nothing but the weights grows with the square of the
tokens.
"""

PATTERN = 0.3
"""A pattern is named from this mean weight on."""
PATTERN_BESIDE_REST = 0.15
"""Or from this on, where it is at least half of what does not rest on special tokens: such a head
idles else.
"""
TIMES_EVEN = 3.0
"""And it has at least so many times what even attention would give."""
BY_CHANCE = 0.01
"""Chance of a kind in random order that is accepted, over all that was tried for it: short texts
have patterns by chance.
"""
RESTING = 0.5
RESTING_ON_ONE = 0.3
BEYOND_EVEN = 0.2
"""Resting and near must lie this far above what even attention would give: texts of a few tokens
are half special.
"""
OWN = 0.8
OWN_BEYOND_DISTANCE = 0.1
"""Neighbours mostly share a sentence, so a local head stays inside without knowing of sentences."""
NEAR = 0.6
BETWEEN_WORDS = 0.4
"""Least share of the weight between words for ``own`` and ``near``, which are shares of it."""
RESTING_TOO = 0.2
"""A second special token is named from this part of the weight on all of them on."""
BROAD = 0.5
"""Spread over at least this part of the keys that a query sees, by exp(entropy)."""


@dataclass(frozen=True)
class TextFacts:
    """Which tokens and pairs the numbers speak of; the same for all layers and heads of a stack.

    Args:
        query: the tokens of the queries.
        key: the tokens of the keys.
        causal: True where a query sees no later key; then the first token counts as special, as it
            takes the rest.
        alone: True where both sides are the same tokens; else positions cannot be compared.
    """

    query: Tokens
    key: Tokens
    causal: bool
    alone: bool

    @cached_property
    def words(self) -> Bool[np.ndarray, " query"]:
        """Queries that are no special token; all where every one is special."""
        return self._words(self.query)

    @cached_property
    def key_words(self) -> Bool[np.ndarray, " key"]:
        """Keys that are no special token."""
        return self._words(self.key)

    @cached_property
    def neighbours(self) -> Bool[np.ndarray, " query"]:
        """True for each token whose next one is a word of the same text, as it is itself."""
        segments = np.array(self.query.segments)
        return self.words[:-1] & self.words[1:] & (segments[:-1] == segments[1:])

    @cached_property
    def pair(self) -> bool:
        """Whether there are two texts, so that a head can stay in one of them."""
        return self.alone and len({*np.array(self.query.segments)[self.words]}) > 1

    @cached_property
    def names(self) -> tuple[Int[np.ndarray, " query"], Int[np.ndarray, " key"]]:
        """A number for each token, equal where the tokens are, letter case ignored; -1 where it
        stands for no text.
        """
        numbers: dict[str, int] = {}
        sides = []
        for tokens, words in ((self.query, self.words), (self.key, self.key_words)):
            counts = np.array(tokens.worded, bool) & words
            labels = [label.strip().lower() for label in tokens.labels]
            side = [
                numbers.setdefault(label, len(numbers)) if counts[at] else -1
                for at, label in enumerate(labels)
            ]
            sides.append(np.array(side, int))
        return sides[0], sides[1]

    @cached_property
    def own_at(self) -> Float[np.ndarray, " distance"]:
        """How likely two words that are so many tokens apart stand in one text."""
        segments = np.where(self.words, self.query.segments, -1)
        count, own = np.zeros(len(segments)), np.zeros(len(segments))
        for distance in range(len(segments)):
            left, right = segments[: len(segments) - distance], segments[distance:]
            words = (left >= 0) & (right >= 0)
            count[distance] = words.sum()
            own[distance] = (words & (left == right)).sum()
        return np.divide(own, count, out=np.zeros_like(own), where=count > 0)

    def _words(self, tokens: Tokens) -> Bool[np.ndarray, " token"]:
        words = ~np.array(tokens.special, bool)
        if self.causal and len(words) > 1:
            words[0] = False
        return words if words.any() else np.ones(len(words), bool)


def text_facts(stack: Stack) -> TextFacts:
    """What a stack's tokens say of every layer."""
    alone = stack.query.pieces == stack.key.pieces
    causal = alone and all(_is_causal(layer) for layer in stack)
    return TextFacts(stack.query, stack.key, causal, alone)


def _is_causal(layer: Layer) -> bool:
    """Whether no query sees a later key: by the mask, or by the weights where there are only
    weights.
    """
    if layer.visible is not None and not layer.visible.is_full:
        queries = np.repeat(np.arange(layer.visible.shape[0]), np.diff(layer.visible.firsts))
        return len(queries) > 0 and bool((layer.visible.runs[:, 1] <= queries + 1).all())
    if layer.weights is None or layer.size[0] < 2:
        return False
    later = np.arange(layer.size[1])[None, :] > np.arange(layer.size[0])[:, None]
    return not any((np.asarray(weights)[later] > 0).any() for weights in layer.weights)


class _Target:
    """How much of each row goes to some of the keys, and how much would by chance.

    By chance means: the weights of a row lie in any order on the keys that it could look at. Then
    what falls on ``k`` of ``K`` keys has mean ``k`` times that of the row and the variance of
    drawing without replacement.
    """

    def __init__(self) -> None:
        self.got = self.expected = self.variance = self.mass = 0.0
        self.reach = 0.0
        self.rows = 0

    def add(self, row: _Rows, got: np.ndarray, keys: np.ndarray) -> None:
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
        return _part(self.got, self.rows)

    @property
    def even(self) -> float:
        """The same by chance."""
        return _part(self.expected, self.rows)

    @property
    def share(self) -> float:
        """Part of what the rows give to the keys that they could look at."""
        return _part(self.got, self.mass)

    @property
    def even_share(self) -> float:
        """The same by chance."""
        return _part(self.expected, self.mass)

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
class _Rows:
    """What rows give to the keys that they could look at."""

    count: Float[np.ndarray, " query"]
    mass: Float[np.ndarray, " query"]
    mean: Float[np.ndarray, " query"]
    variance: Float[np.ndarray, " query"]

    @classmethod
    def of(
        cls, weights: Float[np.ndarray, "query key"], keys: Float[np.ndarray, "query key"]
    ) -> _Rows:
        """Of the keys that are 1; all else must weigh nothing."""
        count = keys.sum(axis=1)
        least = np.maximum(1, count)
        mass = weights.sum(axis=1)
        mean = mass / least
        return cls(count, mass, mean, np.maximum(0.0, (weights**2).sum(axis=1) / least - mean**2))


TARGETS = ("next", "previous", "itself", "same", "special", "own", "near", "top")


class _Sums:
    """The sums over word rows that the numbers of one head are made of."""

    def __init__(self, facts: TextFacts, keys: int) -> None:
        self.facts = facts
        self.columns = np.zeros(keys)
        self.sums = dict.fromkeys(("keys", "sharpness", "seen", "between", "by_distance"), 0.0)
        self.rows = 0
        self.targets = {name: _Target() for name in TARGETS}
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
        self.sums["keys"] += float(np.exp(-(weights * logs).sum(axis=1)).sum())
        row = _Rows.of(weights, visible)
        special = (~facts.key_words).astype(float)
        self.targets["special"].add(row, weights @ special, visible @ special)
        # Which key gets most is known at the end only; any one key has the same mean and variance
        # by chance.
        self.targets["top"].add(row, np.zeros(len(queries)), np.ones(len(queries)))
        # Patterns are compared with other words alone: what rests on a special token says nothing
        # of them.
        words = visible * facts.key_words
        row = _Rows.of(weights * facts.key_words, words)
        self._same(weights, words, queries, row)
        if facts.alone:
            self._neighbours(weights, words, queries, row)
            self._between_words(weights * facts.key_words, words, queries, row)
            words[np.arange(len(queries)), queries] = 0.0
        self._strongest("link", np.where(words > 0, weights, -1.0), queries)

    def _same(
        self, weights: np.ndarray, visible: np.ndarray, queries: np.ndarray, row: _Rows
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
        self, weights: np.ndarray, visible: np.ndarray, queries: np.ndarray, row: _Rows
    ) -> None:
        """The token itself and those beside it, inside one text."""
        neighbours = np.append(self.facts.neighbours, False)
        beside = {"next": neighbours[queries], "previous": (queries > 0) & neighbours[queries - 1]}
        beside["itself"] = np.ones(len(queries), bool)
        for name, step in (("next", 1), ("previous", -1), ("itself", 0)):
            at = np.where(beside[name], queries + step, 0)
            there = beside[name] & (visible[np.arange(len(queries)), at] > 0)
            got = np.where(there, weights[np.arange(len(queries)), at], 0.0)
            self.targets[name].add(row, got, there.astype(float))

    def _between_words(
        self, weights: np.ndarray, visible: np.ndarray, queries: np.ndarray, row: _Rows
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


def head_numbers(
    weights: Float[np.ndarray, "query key"], visible: Mask | None, facts: TextFacts
) -> dict[str, float]:
    """What one head does with one text.

    Args:
        weights: of the head.
        visible: which keys each query may look at; None for all.
        facts: of the stack, by `text_facts`.

    Returns:
        For each name of `COLUMNS` a number; NaN where it has no meaning on this text (``same``
        where no word comes twice, positions where queries and keys are other tokens, ``own`` where
        there is one text), -1 for places that there are not.
    """
    sums = _Sums(facts, weights.shape[1])
    if facts.causal and (visible is None or visible.is_full):  # bare weights, without a mask
        visible = Mask.causal(*weights.shape)
    for first in range(0, len(weights), BLOCK):
        rows = slice(first, first + BLOCK)
        block = np.asarray(weights[rows], np.float64)
        sums.add(
            block, np.ones(block.shape, bool) if visible is None else visible.dense(rows), first
        )
    return _numbers(sums)


def _numbers(sums: _Sums) -> dict[str, float]:
    targets, rows = sums.targets, sums.rows
    numbers = {name: _part(sums.sums[name], rows) for name in ("keys", "sharpness", "seen")}
    numbers |= {name: targets[name].mean for name in ("next", "previous", "itself", "same")}
    numbers["special"] = 0.0 if rows else np.nan
    if targets["special"].rows:
        numbers["special"] = targets["special"].mean
    numbers["near"], numbers["own"] = targets["near"].share, targets["own"].share
    numbers["own_even"] = targets["own"].even_share
    numbers["own_by_distance"] = _part(sums.sums["by_distance"], sums.sums["between"])
    top = int(sums.columns.argmax()) if rows else -1
    targets["top"].got = float(sums.columns.max(initial=0))
    numbers["top"], numbers["top_key"] = _part(targets["top"].got, rows), float(top)
    for name, (query, key, weight) in sums.links.items():
        short = name.removesuffix("_link")
        numbers[f"{short}_query"], numbers[f"{short}_key"] = float(query), float(key)
        numbers[name] = weight if query >= 0 else np.nan
    numbers["rest_key"], numbers["rest_other"] = map(float, _resting_places(sums))
    top_special = rows > 0 and not bool(sums.facts.key_words[top])
    numbers["kind"], numbers["score"] = _kind_of(numbers, targets, top_special=top_special)
    return {name: float(numbers[name]) for name in COLUMNS}


def _resting_places(sums: _Sums) -> tuple[int, int]:
    """The first place of the special token with most of the weight, all of its places together, and
    of the second.
    """
    labels = sums.facts.key.labels
    weight: dict[str, float] = {}
    place: dict[str, int] = {}
    for key in np.flatnonzero(~sums.facts.key_words).tolist():
        weight[labels[key]] = weight.get(labels[key], 0.0) + float(sums.columns[key])
        place.setdefault(labels[key], key)
    ranked = sorted(weight, key=lambda label: -weight[label])
    total = sum(weight.values())
    if total <= 0:
        return -1, -1
    second = len(ranked) > 1 and weight[ranked[1]] >= RESTING_TOO * total
    return place[ranked[0]], place[ranked[1]] if second else -1


def _part(amount: float, of: float | int) -> float:
    return amount / of if of else np.nan


def _kind_of(
    numbers: dict[str, float], targets: dict[str, _Target], *, top_special: bool
) -> tuple[int, float]:
    """The first kind whose rule holds, as place in `KINDS`, and how clearly."""
    kind, score = _pattern(numbers, targets)
    if kind is None:
        kind, score = _resting(numbers, targets, top_special=top_special)
    if kind is None:
        kind, score = _local(numbers, targets)
    if kind is None and _over(numbers["keys"] / numbers["seen"], BROAD):
        kind, score = "broad", min(1.0, numbers["keys"] / numbers["seen"])
    if kind is None:
        kind, score = "none", numbers["sharpness"]
    return KINDS.index(kind), 0.0 if np.isnan(score) else score


def _pattern(numbers: dict[str, float], targets: dict[str, _Target]) -> tuple[str | None, float]:
    """Next, previous, or the same word (the token itself counts as that)."""
    names = [name for name in ("next", "previous", "same", "itself") if targets[name].rows > 0]
    if not names:
        return None, np.nan
    name = max(names, key=lambda each: targets[each].mean)
    score, even = targets[name].mean, targets[name].even
    beside_rest = score >= PATTERN_BESIDE_REST and score >= 0.5 * (1 - numbers["special"])
    strong = score >= PATTERN or beside_rest
    if strong and score >= min(TIMES_EVEN * even, (1 + even) / 2) and targets[name].is_clear(4):
        return "same" if name == "itself" else name, score
    return None, np.nan


def _resting(
    numbers: dict[str, float], targets: dict[str, _Target], *, top_special: bool
) -> tuple[str | None, float]:
    special, top = targets["special"], targets["top"]
    least = max(RESTING, special.even + BEYOND_EVEN) if special.rows else np.inf
    if _over(numbers["special"], least) and special.is_clear(1):
        return "resting", max(numbers["special"], numbers["top"])
    tried = max(1.0, numbers["seen"])  # the key was chosen among so many because it gets most
    on_one = not top_special and _over(numbers["top"], max(RESTING_ON_ONE, TIMES_EVEN * top.even))
    if on_one and top.is_clear(tried):
        return "resting", max(numbers["special"], numbers["top"])
    return None, np.nan


def _local(numbers: dict[str, float], targets: dict[str, _Target]) -> tuple[str | None, float]:
    if 1 - numbers["special"] < BETWEEN_WORDS:
        return None, np.nan
    own, near = targets["own"], targets["near"]
    beyond = numbers["own"] - numbers["own_by_distance"]
    if _over(numbers["own"], OWN) and _over(beyond, OWN_BEYOND_DISTANCE) and own.is_clear(2):
        return "own", numbers["own"]
    if _over(numbers["near"], max(NEAR, near.even_share + BEYOND_EVEN)) and near.is_clear(2):
        return "near", numbers["near"]
    return None, np.nan


def _over(value: float, least: float) -> bool:
    """False for NaN on either side."""
    return bool(value >= least)


@dataclass(frozen=True, repr=False)
class HeadKinds:
    """What the heads of a stack do on one text; made by `head_kinds`.

    Args:
        layers: numbers of the layers.
        values: axes layer, head, column of `COLUMNS`; NaN in all columns for heads that a layer
            does not have.
    """

    layers: tuple[int, ...]
    values: Float[np.ndarray, "layer head column"]

    def number(self, name: str) -> Float[np.ndarray, "layer head"]:
        """One of `COLUMNS` for every head."""
        return self.values[..., COLUMNS.index(name)]

    def kind(self, layer: int, head: int) -> str:
        """The kind of one head."""
        return KINDS[int(self.values[self.layers.index(layer), head, COLUMNS.index("kind")])]

    @property
    def counts(self) -> dict[str, int]:
        """How many heads are of each kind."""
        kinds = self.number("kind")
        return {name: int((kinds == at).sum()) for at, name in enumerate(KINDS)}

    @property
    def clearest(self) -> tuple[int, int]:
        """Layer and head with the clearest pattern: the highest score among next, previous and
        same, else among all.
        """
        kinds, scores = self.number("kind"), np.nan_to_num(self.number("score"), nan=-1.0)
        patterns = kinds <= KINDS.index("same")
        chosen = np.where(patterns, scores, -1.0) if patterns.any() else scores
        row, head = np.unravel_index(int(chosen.argmax()), chosen.shape)
        return self.layers[row], int(head)

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} {name}" for name, count in self.counts.items() if count)
        return f"<HeadKinds on one text: {counts}>"


def head_kinds(stack: Stack) -> HeadKinds:
    """What every head of a stack does on the one text of its record.

    This describes one text. That a head is of a kind in general takes `heads` over many texts.

    Raises:
        RecordError: a layer with neither weights nor queries and keys.

    Example:
        >>> from headscope import from_weights
        >>> weights = np.zeros((1, 2, 9, 9))
        >>> weights[..., 0] = 1  # every query looks at the first token
        >>> kinds = head_kinds(from_weights(weights, list("abcdefghi"))["self"])
        >>> kinds.kind(0, 1), kinds.counts["resting"]
        ('resting', 2)
        >>> kinds.number("top")
        array([[1., 1.]])
    """
    layers = list(stack)
    values = np.full((len(layers), stack.heads, len(COLUMNS)), np.nan)
    facts = text_facts(stack)
    for row, layer in enumerate(layers):
        for head in layer.head_numbers:
            values[row, head] = list(
                head_numbers(layer.weights_of(head), layer.visible, facts).values()
            )
    return HeadKinds(tuple(layer.layer for layer in layers), values)
