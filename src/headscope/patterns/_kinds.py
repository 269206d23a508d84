"""The kind of each head on one text: ten numbers, and the first of seven kinds whose rule holds.

A kind is a description of one text, not a label: labels need many texts, baselines and intervals
(`heads`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from jaxtyping import Float, Int

from headscope.patterns._kind_sums import HeadSums, KeyShare, part
from headscope.patterns._text_facts import TextFacts, text_facts
from headscope.record import Layer, Mask, Stack, WeightBlock, sampled_queries

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
"""Means over the queries that are words: shares of the weight, except for ``keys``, a number of
keys.
"""

KINDS = ("next", "previous", "same", "own", "near", "broad", "resting", "none")
"""All kinds in the order of lists; their rules are tried in the order of `_kind_of`."""

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
"""Positions of tokens that a sentence about the head names, -1 where one is missing; the head rests
on ``rest_key`` and ``rest_other``.
"""

REST = ("link", "same_link", "leaver", "own_by_distance", "own_even", "seen")
"""Weights of the links, ``own`` as it would be by distance alone and by chance, and the number of
keys that a query sees.
"""

COLUMNS = (*NUMBERS, *PLACES, *REST, "kind", "score")
"""All numbers of one head on one text."""

BLOCK = 256
"""Number of queries that are measured at a time, so that only the weights themselves grow with the
square of the number of tokens.
"""

FEW = 32
"""The same for one head of a long text."""

MOST_AT_ONCE = 2**17
"""Weights of the heads that are measured at a time: 1 MiB in double precision, and some times that
while they are summed.
"""

SPECIAL_ROWS = 64
"""Special tokens that are measured besides the queries that were drawn."""

PATTERN = 0.3
"""Mean share from which a pattern is named, as if `AROUND` words stood around each query."""
PATTERN_BESIDE_REST = 0.15
"""Lower limit where it is at least half of the share on words: such a head rests otherwise."""
MEDIAN = 0.2
"""Share on words of the median row from which a pattern is named."""
LEAST_ROWS = 3
RESTING = 0.5
RESTING_ON_ONE = 0.3
TIMES_EVEN = 3.0
"""The one word that a head rests on must also get many times its even share."""
OWN = 0.8
OWN_BEYOND_DISTANCE = 0.1
"""Excess over ``own`` by distance alone: neighbours mostly share a sentence, so a local head stays
inside without distinguishing sentences.
"""
NEAR = 0.6
MOST_RESTING = 0.6
"""Largest share on special tokens for ``own`` and ``near``, which are shares of the rest."""
RESTING_TOO = 0.2
"""Share of the weight on special tokens from which a second one is named."""
BROAD = 0.5
"""Spread over at least this part of the words around a query, by exp(entropy)."""


def head_numbers(
    weights: Float[np.ndarray, "query key"], visible: Mask | None, facts: TextFacts
) -> dict[str, float]:
    """The numbers and the kind of one head on one text.

    Args:
        weights: weights of the head.
        visible: the keys that each query may look at; None for all.
        facts: facts about the stack, by `text_facts`.

    Returns:
        A number for each name of `COLUMNS`; NaN where it has no meaning on this text (``same``
        where no word occurs twice, positions where queries and keys are different tokens, ``own``
        where there is one text), -1 for missing positions.
    """
    (values,) = numbers_of_heads(weights[None], visible, facts)
    return dict(zip(COLUMNS, values.tolist(), strict=True))


def numbers_of_heads(
    weights: Float[np.ndarray, "head query key"], visible: Mask | None, facts: TextFacts
) -> Float[np.ndarray, "head column"]:
    """What several heads of one layer do with one text: `head_numbers` of each, in the order of
    `COLUMNS`.
    """
    heads, queries, keys = weights.shape
    sums = HeadSums(facts, heads, keys)
    visible = _mask(visible, facts, (queries, keys))
    for first in range(0, queries, BLOCK):
        rows = np.arange(first, min(first + BLOCK, queries))
        block = np.asarray(weights[:, rows], np.float64)
        sums.add(block, visible.rows(rows), rows)
    return _numbers(sums)


def weights_together(
    layer: Layer, heads: Sequence[int]
) -> Float[np.ndarray, "head query key"] | None:
    """The weights of several heads of a layer, where those that it holds are not large together;
    else None, and `Layer.weight_blocks` of each is for them.
    """
    held = list(layer.head_numbers)
    if len(held) * prod(layer.size) > MOST_AT_ONCE:
        return None
    return layer.held_weights()[[held.index(head) for head in heads]]


class KindOfHead:
    """The numbers and the kind of one head of a long text, from blocks of its rows.

    Args:
        layer: the layer.
        facts: facts about the stack, by `text_facts`.
        most: how many queries are measured at most, drawn at random beside the special tokens;
            None for all.
    """

    def __init__(self, layer: Layer, facts: TextFacts, most: int | None = None) -> None:
        queries, keys = layer.size
        self._sums = HeadSums(facts, 1, keys)
        self._visible = _mask(layer.visible, facts, layer.size)
        self._measured = np.ones(queries, bool)
        if most is not None and queries > most:
            self._measured[:] = False
            self._measured[sampled_queries(queries, most)] = True
            # Special tokens are few, add to no mean, and one of them may have the strongest link.
            self._measured[np.flatnonzero(~facts.words)[:SPECIAL_ROWS]] = True

    @property
    def queries(self) -> Int[np.ndarray, " query"]:
        """Positions of the queries that are measured."""
        return np.flatnonzero(self._measured)

    def add(self, block: WeightBlock) -> None:
        """Add the rows of a block that are to be measured."""
        there = np.flatnonzero(self._measured[block.queries])
        for first in range(0, len(there), FEW):
            rows = there[first : first + FEW]
            weights = np.zeros((1, len(rows), self._visible.shape[1]))
            weights[0][:, block.keys] = block.weights[rows]
            self._sums.add(weights, self._visible.rows(block.queries[rows]), block.queries[rows])

    @property
    def numbers(self) -> Float[np.ndarray, " column"]:
        """The numbers of the head, in the order of `COLUMNS`."""
        return _numbers(self._sums)[0]


def _mask(visible: Mask | None, facts: TextFacts, size: tuple[int, int]) -> Mask:
    """What each query may look at; of bare weights, which come without a mask, a causal one where
    their zeros above the diagonal show that they are causal.
    """
    if visible is not None and not (visible.is_full and facts.causal):
        return visible
    return Mask.causal(*size) if facts.causal else Mask.full(*size)


def _numbers(sums: HeadSums) -> Float[np.ndarray, "head column"]:
    sums.targets["top"].got = sums.columns.max(axis=1, initial=0)
    shares = {name: each.of_each() for name, each in sums.targets.items()}
    near, around = sums.around.near.of_each(), _around(sums)
    values = np.full((len(sums.columns), len(COLUMNS)), np.nan)
    for head in range(len(values)):
        targets = {name: each[head] for name, each in shares.items()}
        numbers = _numbers_of(sums, head, targets)
        as_if = {name: each[head] for name, each in around.items()}
        kind, score = _kind_of(numbers, as_if, targets | {"near": near[head]})
        numbers["kind"], numbers["score"] = KINDS.index(kind), 0.0 if np.isnan(score) else score
        values[head] = [numbers[name] for name in COLUMNS]
    return values


def _around(sums: HeadSums) -> dict[str, list[float]]:
    """What each head has as if `AROUND` words stood around each query."""
    around = sums.around
    values = {name: around.of_each(name) for name in ("special", "near", "broad")}
    if not around.count("broad"):
        # Of a few tokens no row has enough words around it: then all that it sees counts.
        values["broad"] = (sums.sums["keys"] / (sums.seen or np.nan)).tolist()
    for name in ("next", "previous", "itself", "same"):
        enough = around.count(name) >= LEAST_ROWS
        values[name] = around.of_each(name) if enough else [np.nan] * len(sums.columns)
        values[f"{name} of words"] = around.of_each(f"{name} beside rest")
        values[f"{name} median"] = around.median(f"{name} beside rest")
    words = np.where(sums.facts.key_words, sums.columns, 0.0)
    most = words.max(axis=1, initial=0.0) / max(1, sums.rows)
    least = max(RESTING_ON_ONE, TIMES_EVEN * sums.even / max(1, sums.rows))
    values["one word"] = np.where(most >= least, around.single, 0.0).tolist()
    return values


def _numbers_of(sums: HeadSums, head: int, targets: Mapping[str, KeyShare]) -> dict[str, float]:
    rows, columns = sums.rows, sums.columns[head]
    numbers = {name: part(float(each[head]), rows) for name, each in sums.sums.items()}
    numbers["seen"] = part(sums.seen, rows)
    numbers |= {name: targets[name].mean for name in ("next", "previous", "itself", "same")}
    numbers["special"] = 0.0 if rows else np.nan
    if targets["special"].rows:
        numbers["special"] = targets["special"].mean
    numbers["near"], numbers["own"] = targets["near"].share, targets["own"].share
    numbers["own_even"] = targets["own"].even_share
    between, by_distance = sums.sums["between"][head], sums.sums["by_distance"][head]
    numbers["own_by_distance"] = part(float(by_distance), float(between))
    top = int(columns.argmax()) if rows else -1
    numbers["top"], numbers["top_key"] = part(targets["top"].got, rows), float(top)
    for name, links in sums.links.items():
        short = name.removesuffix("_link")
        query = float(links.query[head])
        numbers[f"{short}_query"], numbers[f"{short}_key"] = query, float(links.key[head])
        numbers[name] = float(links.weight[head]) if query >= 0 else np.nan
    numbers["rest_key"], numbers["rest_other"] = map(float, _resting_places(sums.facts, columns))
    return numbers


def _resting_places(facts: TextFacts, columns: Float[np.ndarray, " key"]) -> tuple[int, int]:
    """First positions of the special token that gets most weight, over all its positions, and of
    the second one.
    """
    labels = facts.key.labels
    weight: dict[str, float] = {}
    first_position: dict[str, int] = {}
    for key in np.flatnonzero(~facts.key_words).tolist():
        weight[labels[key]] = weight.get(labels[key], 0.0) + float(columns[key])
        first_position.setdefault(labels[key], key)
    ranked = sorted(weight, key=lambda label: -weight[label])
    total = sum(weight.values())
    if total <= 0:
        return -1, -1
    second = len(ranked) > 1 and weight[ranked[1]] >= RESTING_TOO * total
    return first_position[ranked[0]], first_position[ranked[1]] if second else -1


def _kind_of(
    numbers: Mapping[str, float], around: Mapping[str, float], targets: Mapping[str, KeyShare]
) -> tuple[str, float]:
    """The first kind whose rule holds, and its score."""
    # A pattern between words says more than where a head rests, and locality is tried last.
    names = ("next", "previous", "same", "itself")
    name = max(names, key=lambda each: np.nan_to_num(around[each], nan=-1.0))
    score = around[name]
    beside_rest = score >= PATTERN_BESIDE_REST and around[f"{name} of words"] >= 0.5
    in_most_rows = around[f"{name} median"] >= MEDIAN
    if (score >= PATTERN or beside_rest) and in_most_rows and targets[name].is_clear(4):
        return "same" if name == "itself" else name, score
    special = around["special"]
    if _over(special, RESTING) and targets["special"].is_clear(1):
        return "resting", special
    if _over(around["one word"], RESTING_ON_ONE):
        return "resting", around["one word"]
    local = _local(numbers, around, targets) if _over(MOST_RESTING, special) else None
    if local is not None:
        return local
    if _over(around["broad"], BROAD):
        return "broad", min(1.0, around["broad"])
    return "none", numbers["sharpness"]


def _local(
    numbers: Mapping[str, float], around: Mapping[str, float], targets: Mapping[str, KeyShare]
) -> tuple[str, float] | None:
    beyond = numbers["own"] - numbers["own_by_distance"]
    stays = _over(numbers["own"], OWN) and _over(beyond, OWN_BEYOND_DISTANCE)
    if stays and targets["own"].is_clear(2):
        return "own", numbers["own"]
    if _over(around["near"], NEAR) and targets["near"].is_clear(2):
        return "near", around["near"]
    return None


def _over(value: float, least: float) -> bool:
    """Whether a value reaches a limit; False where either is NaN."""
    return bool(value >= least)


@dataclass(frozen=True, repr=False)
class HeadKinds:
    """Kinds and numbers of the heads of a stack on one text; made by `head_kinds`.

    Args:
        layers: numbers of the layers.
        values: axes layer, head, column of `COLUMNS`; NaN in all columns where a layer does not
            have a head.
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
        """Number of heads of each kind."""
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
    """Kinds and numbers of every head of a stack on the one text of its record.

    This describes one text. Whether a head is of a kind in general needs `heads` over many texts.

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
        held = list(layer.head_numbers)
        weights = weights_together(layer, held)
        if weights is not None:
            values[row, held] = numbers_of_heads(weights, layer.visible, facts)
            continue
        for head in held:
            kind = KindOfHead(layer, facts)
            for block in layer.weight_blocks(head):
                kind.add(block)
            values[row, head] = kind.numbers
    return HeadKinds(tuple(layer.layer for layer in layers), values)
