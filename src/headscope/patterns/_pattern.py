"""Patterns of heads, by definition."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from headscope.errors import RecordError
from headscope.evidence import uniform_map
from headscope.measures import (
    evenness,
    mass_at_offsets,
    mass_on,
    mass_on_pairs,
    peak_at_offset,
    prefix_targets,
    sink_strength,
)
from headscope.patterns._maps import AttentionMaps, BatchWords, QueryKeyTokens
from headscope.storage import Finite, check_document

SINK_LENGTH = 64
LEAST_PEAKS = 4
"""Smallest number of words with a neighbour for a share of peaks. With one or two the share is 0 or
1, and heads with random weights would get the label on texts of 4 tokens.
"""
LEAST_LOOKING = 8
"""Smallest number of queries that can look at a token for it to count as a sink. Few queries see
the last tokens of a causal text, and a mean over few rows is high by chance.
"""

FACTS: dict[str, Any] = {
    "name": str,
    "says": str,
    "source": str,
    "threshold": Finite,
    "by_place": bool,
    "by_word": bool,
}
"""Of a pattern, what a file can hold."""


@dataclass(frozen=True, kw_only=True)
class Pattern:
    """A pattern that heads may follow: a score from 0 to 1 for each text, and its threshold.

    Give either ``score``, or ``pairs`` for patterns of content, whose score is `mass_on_pairs` of
    them. These are also compared with the same pairs after shuffling the words.

    Args:
        name: name in tables and labels.
        says: what the head does, in a few words.
        source: who described it, and how ours differs.
        threshold: smallest mean score over texts for the label.
        score: one value for each head of some maps; NaN where the text cannot show the pattern.
        pairs: True where a head of this pattern should look.
        by_position: the score on some maps of attention that depends on positions alone, for the
            baseline of that name; for patterns with a score of their own.
        by_place: whether the pairs do not depend on the words; shuffled words then show nothing.
        by_word: whether the pattern is about single words and not kinds of words; it is then also
            compared with words shuffled within their kind.
        by_layout: whether the score depends on the tokens only through `QueryKeyTokens.layout`;
            texts of one layout are then scored together, as heads of one map.
        by_sinks: the same for a score that depends on `QueryKeyTokens.later_sinks`, too.
        moved: the pairs of several texts after their words were put into other orders, for
            patterns of what occurs twice; this is faster than finding them in each order of each
            text. It is not called for texts in which nothing occurs twice, which have no pairs.
            None where no text has any.

    Raises:
        RecordError: unless one of score and pairs is given and the threshold is between 0 and 1.
    """

    name: str
    says: str
    source: str
    threshold: float
    score: Callable[[AttentionMaps], np.ndarray] | None = None
    pairs: Callable[[QueryKeyTokens], np.ndarray] | None = None
    by_position: Callable[[AttentionMaps], np.ndarray] | None = None
    by_place: bool = False
    by_word: bool = False
    by_layout: bool = False
    by_sinks: bool = False
    moved: Callable[[BatchWords, np.ndarray], np.ndarray | None] | None = None

    def __post_init__(self) -> None:
        if (self.score is None) == (self.pairs is None):
            raise RecordError(f"Pattern {self.name!r} needs score or pairs, one of them")
        if not 0 < self.threshold < 1:
            raise RecordError(
                f"Pattern {self.name!r} has the threshold {self.threshold}; give one within 0..1"
            )

    @property
    def facts(self) -> dict[str, Any]:
        """What a file can hold of it, for `of_facts`: all but its functions."""
        return {name: getattr(self, name) for name in FACTS}

    @classmethod
    def of_facts(cls, facts: Mapping[str, Any]) -> Pattern:
        """The built-in pattern of these facts; else one whose function is missing.

        Raises:
            TypeError: where one is of another type.
            ValueError: where one is not what it may be.
        """
        check_document(facts, FACTS)
        for pattern in PATTERNS:
            if (pattern.name, pattern.threshold) == (facts["name"], facts["threshold"]):
                return pattern
        return cls(**{name: facts[name] for name in FACTS}, score=MissingFunction(facts["name"]))

    def __deepcopy__(self, memo: dict[Any, Any]) -> Pattern:
        # Frozen, and found by identity among the built-in ones in `__reduce__`.
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Built-in patterns are pickled by name. For others, functions that cannot be pickled are
        replaced by ones that raise when they are called.
        """
        if any(self is each for each in PATTERNS):
            return _by_name, (self.name,)
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        for name in ("score", "pairs", "by_position", "moved"):
            if not _can_be_pickled(values[name]):
                values[name] = MissingFunction(self.name)
        return _made, (values,)

    def of(self, maps: AttentionMaps) -> Float[np.ndarray, " head"]:
        """The score of every head; NaN where the text cannot show the pattern."""
        if self.score is not None:
            return self.score(maps)
        return self.on_pairs(maps, self.wanted(maps.tokens))

    def wanted(self, tokens: QueryKeyTokens) -> Bool[np.ndarray, "query key"]:
        """True where a head of this pattern should look."""
        if self.pairs is None:
            raise RecordError(f"Pattern {self.name!r} is not made of pairs")
        return self.pairs(tokens)

    @staticmethod
    def on_pairs(
        maps: AttentionMaps, pairs: Bool[np.ndarray, "query key"]
    ) -> Float[np.ndarray, " head"]:
        """Mean mass on the visible pairs, over the queries that have one."""
        return mass_on_pairs(maps.weights, pairs & maps.visible)


@dataclass(frozen=True)
class MissingFunction:
    """Replaces a function of a pattern that could not be pickled; results do not need it."""

    name: str

    def __call__(self, *_: Any) -> Any:
        raise RecordError(
            f"Pattern {self.name!r} was kept without its functions; make it again to count more "
            "texts"
        )


def _can_be_pickled(function: Any) -> bool:
    try:
        pickle.dumps(function)
    # The errors of lambdas, of functions inside functions, and of objects such as open files.
    except (pickle.PicklingError, AttributeError, TypeError):
        return False
    return True


def _by_name(name: str) -> Pattern:
    return next(each for each in PATTERNS if each.name == name)


def _made(values: dict[str, Any]) -> Pattern:
    return Pattern(**values)


def _at(offset: int, *, inside: bool) -> Callable[[AttentionMaps], np.ndarray]:
    def score(maps: AttentionMaps) -> np.ndarray:
        if not maps.tokens.is_self:
            return _none(maps)
        pairs = maps.visible & maps.tokens.own_sentence if inside else maps.visible
        return mass_at_offsets(maps.weights, [offset], pairs=pairs)[:, 0]

    return score


def _peak(offset: int) -> Callable[[AttentionMaps], np.ndarray]:
    def score(maps: AttentionMaps) -> np.ndarray:
        if not maps.tokens.is_self:
            return _none(maps)
        pairs = maps.visible & maps.tokens.own_sentence
        if np.diagonal(pairs, offset).sum() < LEAST_PEAKS:
            return _none(maps)
        return peak_at_offset(maps.weights, offset, pairs=pairs, peaks=maps.peaks)

    return score


def _delimiter(maps: AttentionMaps) -> np.ndarray:
    if not maps.tokens.delimiters.any():
        return _none(maps)
    return mass_on(maps.weights, maps.tokens.delimiters, queries=maps.seeing)


def _bag(maps: AttentionMaps) -> np.ndarray:
    if not maps.tokens.is_pair:
        return _none(maps)
    own = maps.tokens.own_sentence & maps.visible
    even = mass_on_pairs(uniform_map(maps.visible), own)
    # Uniform rows have about half of their mass inside the sentence already, so what counts is the
    # excess of a head over them.
    beyond = (mass_on_pairs(maps.weights, own) - even) / np.maximum(
        1 - even, np.finfo(np.float64).eps
    )
    # This is negative where a head prefers the other sentence. If it were cut off at zero, random
    # heads would score above uniform rows on average.
    return beyond * evenness(maps.weights, own)


def _first_token(maps: AttentionMaps) -> np.ndarray:
    if min(maps.visible.shape) < 2 or maps.visible.shape[0] >= SINK_LENGTH:
        return _none(maps)
    return sink_strength(maps.weights)


def _sink(maps: AttentionMaps) -> np.ndarray:
    if maps.visible.shape[0] < SINK_LENGTH:
        return _none(maps)
    return sink_strength(maps.weights[:, :SINK_LENGTH])


def _sink_elsewhere(maps: AttentionMaps) -> np.ndarray:
    looking = maps.visible.sum(axis=0)
    sinks = maps.tokens.later_sinks & (looking >= LEAST_LOOKING)
    if not sinks.any():
        return _none(maps)
    # All sinks together: the strongest of several would exceed uniform rows by chance alone.
    return mass_on(maps.weights, sinks, queries=np.asarray(maps.visible[:, sinks].any(axis=1)))


def _induction(tokens: QueryKeyTokens) -> np.ndarray:
    if not tokens.is_self:
        return np.zeros_like(tokens.words)
    names = tokens.names.tolist()
    # A shortcut: most short texts have no token twice.
    if len(set(names)) == len(names):
        return np.zeros_like(tokens.words)
    return prefix_targets(names) & tokens.words


def _same_other(tokens: QueryKeyTokens) -> np.ndarray:
    return tokens.same_word & tokens.other_sentence


def _moved_same_other(
    words: BatchWords, orders: Int[np.ndarray, "text draw token"]
) -> Bool[np.ndarray, "text draw token token"] | None:
    # Most texts are no pairs.
    return words.same(orders) & words.other_text[:, None] if words.other_text.any() else None


def _none(maps: AttentionMaps) -> np.ndarray:
    return np.full(len(maps.weights), np.nan)


TOLD = """
next: looks at the next word
VIG: mean of A[i, i+1] inside a sentence; threshold of Clark et al. 2019
previous: looks at the previous word
VIG: mean of A[i, i-1] inside a sentence; threshold of Clark et al. 2019
same: looks at the same word elsewhere
VIG: mass on the same form, of words that occur more than once; threshold ours
same-other: looks at the same word in the other sentence
VIG: the same with the other segment; threshold ours
delimiter: rests on [CLS] and [SEP]
VIG: mass on both; threshold of Clark et al. 2019
bag: looks evenly at the words of the same sentence
VIG: mass inside the sentence beyond even rows, times its evenness; threshold ours
positional-next: has its peak on the next word
Voita et al. 2019: the largest weight is there at least 90 % of the time
positional-previous: has its peak on the previous word
Voita et al. 2019: the largest weight is there at least 90 % of the time
first-token: rests on the first token, in texts of fewer than 64 tokens
as sink, which needs longer texts; ours
sink: rests on the first token, in texts of 64 tokens or more
Gu et al. 2025: mean mass on it of the first 64 queries; theirs compares with > 0.3 text by text
sink-elsewhere: rests on the first full stop, the first line break, or tokens that end a text
Sun et al. 2024, section 2, say where; mean mass on them together, threshold of Gu
induction: looks at what followed the same token before
Olsson et al. 2022: prefix matching, mass summed over earlier places; threshold ours
previous-token: looks back one token
Olsson et al. 2022: mean of A[i, i-1] over all tokens; threshold ours, lower than Clark's
"""
"""A line with the name of each pattern and what its heads do, and one with its source."""


def _known() -> Iterator[Pattern]:
    """The patterns of `TOLD`, with how they are found."""
    how: dict[str, tuple[float, dict[str, Any]]] = {
        "next": (0.5, {"score": _at(1, inside=True)}),
        "previous": (0.5, {"score": _at(-1, inside=True)}),
        "same": (0.3, {"pairs": lambda tokens: tokens.same_word, "moved": BatchWords.same}),
        "same-other": (0.3, {"pairs": _same_other, "moved": _moved_same_other}),
        "delimiter": (0.6, {"score": _delimiter}),
        "bag": (0.3, {"score": _bag}),
        "positional-next": (0.9, {"score": _peak(1)}),
        "positional-previous": (0.9, {"score": _peak(-1)}),
        "first-token": (0.3, {"score": _first_token}),
        "sink": (0.3, {"score": _sink}),
        "sink-elsewhere": (0.3, {"score": _sink_elsewhere, "by_sinks": True}),
        "induction": (0.3, {"pairs": _induction, "moved": BatchWords.followed}),
        "previous-token": (0.3, {"score": _at(-1, inside=False)}),
    }
    lines = TOLD.replace("VIG", "Vig 2019; statistic ours").strip().splitlines()
    for line, source in zip(lines[::2], lines[1::2], strict=True):
        name, _, says = line.partition(": ")
        threshold, finders = how[name]
        # Scores depend on the layout of the tokens, or on sinks too; pairs on the words.
        by = {"by_word": "pairs" in finders, "by_layout": {*finders} == {"score"}}
        yield Pattern(name=name, says=says, source=source, threshold=threshold, **finders, **by)


PATTERNS: tuple[Pattern, ...] = tuple(_known())
"""The patterns that `heads` looks for by default."""
