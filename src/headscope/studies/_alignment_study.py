"""Word alignment over many sentences: error rates of layers and heads, by weight and by norm."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float

from headscope.errors import HeadscopeError, RecordError
from headscope.evidence import Statistic, redrawn_ratios
from headscope.measures import alignment_counts
from headscope.measures._alignment import Link
from headscope.record import Layer, Record, Stack
from headscope.studies._alignment import (
    BY,
    STATES,
    Words,
    check_links,
    links_of,
    words_of,
    written_words_of,
)

FIELDS = ("state", "by", "layer", "head", "aer", "low", "high", "sentences")
LINK = re.compile(r"(\d+)([-p])(\d+)")


@dataclass(frozen=True)
class AlignedPair:
    """A sentence, its translation, and which words belong together; words are what white space separates, from 0.

    Args:
        source: the sentence.
        target: its translation.
        sure: links that must be found, ``(source word, target word)``.
        possible: links that may be found.

    Raises:
        RecordError: where a link names a word that is not there.

    Example:
        >>> AlignedPair.of("das Haus da", "the house", "0-0 1-1 2p1").possible
        frozenset({(2, 1)})
    """

    source: str
    target: str
    sure: frozenset[Link]
    possible: frozenset[Link] = frozenset()

    def __post_init__(self) -> None:
        check_links(self.sure | self.possible, len(self.source.split()), len(self.target.split()))

    @classmethod
    def of(cls, source: str, target: str, links: str) -> AlignedPair:
        """From links as files have them: ``0-1`` is sure, ``0p1`` possible, the source first, from 0.

        Raises:
            RecordError: where a link is written otherwise, or names a word that is not there.
        """
        found: dict[str, set[Link]] = {"-": set(), "p": set()}
        for each in links.split():
            match = LINK.fullmatch(each)
            if match is None:
                raise RecordError(f"{each!r} is no link; they are written 0-1 (sure) or 0p1 (possible), from 0")
            found[match[2]].add((int(match[1]), int(match[3])))
        return cls(source, target, frozenset(found["-"]), frozenset(found["p"]))


@dataclass(frozen=True)
class BestPlace:
    """A layer, or head, chosen on some sentences and measured on the others.

    Args:
        layer: its number.
        head: its number; None for all heads of the layer together.
        chosen_at: alignment error rate on the sentences it was chosen on, of which it is the least.
        aer: the rate on the others.
        interval: of ``aer``, over these sentences.
        sentences: how many it was chosen on, and how many were left.
    """

    layer: int
    head: int | None
    chosen_at: float
    aer: float
    interval: tuple[float, float]
    sentences: tuple[int, int]


class AlignmentStudy:
    """What was counted; prints itself as a table, and is added to others of the same model.

    Args:
        stack: which stack of the records.
        special: see `headscope.word_alignment`.
        confidence: of the intervals.

    Example:
        >>> AlignmentStudy()
        <AlignmentStudy of 0 sentences>
    """

    def __init__(self, *, stack: str = "cross", special: bool = True, confidence: float = 0.95) -> None:
        if not 0 < confidence < 1:
            raise RecordError(f"confidence is a number between 0 and 1, not {confidence}")
        self.stack, self.special, self.confidence, self.model = stack, special, confidence, ""
        self.layers: tuple[int, ...] = ()
        self.heads = 0
        self.left_out: dict[str, str] = {}
        self.refused: dict[int, str] = {}
        self.statistic = Statistic((2, len(STATES), len(BY), 0, 1))

    def update(self, name: str, record: Record, sure: Iterable[Link], possible: Iterable[Link] = frozenset()) -> None:
        """Count one sentence; it goes to ``left_out`` where its words cannot be told.

        Args:
            name: what tells it from all others.
            record: captured with ``keep=("weights", "norms")``; without norms only weights are counted.
            sure: links that must be found.
            possible: links that may be found.

        Raises:
            RecordError: where it was counted before, layers differ, or a link names a word that is not there.
        """
        stack = record[self.stack]
        layers, gold = tuple(layer.layer for layer in stack), (frozenset(sure), frozenset(possible))
        if self.layers and (layers, stack.heads) != (self.layers, self.heads):
            raise RecordError(
                f"Sentence {name!r} has layers {layers} of {stack.heads} heads, those before it {self.layers} of "
                f"{self.heads}; one model at a time"
            )
        if name in self.left_out or name in self.statistic:
            raise RecordError(f"Sentence {name!r} was given before; give every one a name of its own, and each once")
        try:
            source, target = words_of(stack.key), written_words_of(stack)
        except RecordError as error:
            self.left_out[name] = str(error)
            return
        check_links(gold[0] | gold[1], len(source.names), len(target["input"].names))
        values = self._counts(stack, source, target, gold)
        if not self.layers:
            self.layers, self.heads, self.model = layers, stack.heads, record.model.name
            self.statistic = Statistic(values.shape)
        self.statistic.update(name, values)
        self.__dict__.pop("_redrawn", None)

    def _counts(
        self, stack: Stack, source: Words, target: dict[str, Words], gold: tuple[frozenset[Link], frozenset[Link]]
    ) -> Float[np.ndarray, "2 state by layer head_and_all"]:
        """`alignment_counts` of one sentence; NaN where there is no map."""
        found = np.full((2, len(STATES), len(BY), len(stack), stack.heads + 1), np.nan)
        for number, layer in enumerate(stack):
            for way, by in enumerate(BY):
                for maps, heads in self._maps(layer, by):
                    for place, state in enumerate(STATES):
                        links = links_of(maps, source, target[state], special=self.special)
                        counts = [alignment_counts(*gold, each) for each in links]
                        found[:, place, way, number, heads] = np.transpose(counts)
        return found

    def _maps(self, layer: Layer, by: str) -> list[tuple[np.ndarray, slice]]:
        """Maps ``[head query key]`` and where their counts go: those of heads, and that of all heads together."""
        heads, together = slice(0, layer.heads), slice(-1, None)
        if by == "weight":
            weights = np.asarray(layer.weights_of(), np.float64)
            return [(weights, heads), (weights.mean(axis=0, keepdims=True), together)]
        added = layer.contributions
        found = [] if layer.value_norms is None else [(np.asarray(layer.head_contributions_of()), heads)]
        if added is not None and added.attention is not None:
            found.append((np.asarray(added.attention)[None], together))
        if len(found) < 2:
            self.refused[layer.layer] = "norms were not kept" if added is None else added.missing.get("attention", "")
        return found

    def __add__(self, other: AlignmentStudy) -> AlignmentStudy:
        """The sentences of both.

        Raises:
            RecordError: where they share a sentence, or layers, heads or options differ.
        """
        if not isinstance(other, AlignmentStudy):
            return NotImplemented
        sides = [
            (each.stack, each.special, each.layers or self.layers, each.heads or self.heads) for each in (self, other)
        ]
        shared = {*self.left_out, *self.statistic.texts} & {*other.left_out, *other.statistic.texts}
        if (self.layers and sides[0] != sides[1]) or sides[0][:2] != sides[1][:2] or shared:
            raise RecordError(
                "These studies are of other models or options, or share a sentence; they cannot be added up"
            )
        found = AlignmentStudy(stack=self.stack, special=self.special, confidence=self.confidence)
        full = [each for each in (self, other) if each.layers]
        if full:
            found.layers, found.heads, found.model = full[0].layers, full[0].heads, full[0].model
            found.statistic = full[0].statistic if len(full) == 1 else self.statistic + other.statistic
        found.left_out, found.refused = self.left_out | other.left_out, self.refused | other.refused
        return found

    @property
    def sentences(self) -> int:
        """Number of sentences counted."""
        return len(self.statistic)

    def error_rates(self, by: str, state: str = "input") -> Float[np.ndarray, "layer head_and_all"]:
        """Alignment error rate of every head; in the last column of all heads of a layer together.

        Hits and links are summed over sentences before they are divided. NaN where nothing was counted.

        Raises:
            RecordError: where ``by`` or ``state`` is not what it may be.
        """
        return _rates(self.statistic.total)[_place(by, state)]

    def intervals(self, by: str, state: str = "input") -> Float[np.ndarray, "layer head_and_all 2"]:
        """Bootstrap interval of `error_rates` over sentences; NaN for fewer than two."""
        return self._quantiles(self._redrawn[(slice(None), *_place(by, state))])

    def difference(self, state: str = "input") -> Float[np.ndarray, "layer head_and_all 3"]:
        """How much lower the error rate is by norm than by weight (below 0), and its interval over the same draws."""
        apart = self.error_rates("norm", state) - self.error_rates("weight", state)
        drawn = [self._redrawn[(slice(None), *_place(by, state))] for by in BY]
        return np.concatenate([apart[..., None], self._quantiles(drawn[1] - drawn[0])], axis=-1)

    def best(self, by: str, state: str = "input", *, of_heads: bool = False, seed: int = 0) -> BestPlace:
        """The layer with the least error rate on half the sentences, and its rate on the other half.

        Args:
            by: ``"weight"`` or ``"norm"``.
            state: see `headscope.word_alignment`.
            of_heads: choose among single heads, not layers.
            seed: of how the sentences are split.

        Raises:
            RecordError: where there are fewer than four sentences, or nothing was counted.
        """
        if self.sentences < 4:
            raise RecordError(f"There are {self.sentences} sentences; two halves to choose on and measure on need four")
        order = np.random.default_rng(seed).permutation(self.sentences)
        values = self.statistic.values[(slice(None), slice(None), *_place(by, state))]
        values = values[..., :-1] if of_heads else values[..., -1:]
        choosing, measuring = values[order[: len(order) // 2]], values[order[len(order) // 2 :]]
        rates = _rates(choosing.sum(axis=0))
        if np.isnan(rates).all():
            raise RecordError(f"Nothing was counted by {by}: {next(iter(self.refused.values()), 'no link at all')}")
        layer, head = np.unravel_index(np.nanargmin(rates), rates.shape)
        place = measuring[:, :, layer, head]
        low, high = self._quantiles(1 - redrawn_ratios(place[:, :1], place[:, 1:]))[0]
        return BestPlace(
            layer=self.layers[layer],
            head=int(head) if of_heads else None,
            chosen_at=float(rates[layer, head]),
            aer=float(_rates(place.sum(axis=0))),
            interval=(float(low), float(high)),
            sentences=(len(choosing), len(measuring)),
        )

    def columns(self) -> dict[str, list]:
        """Every rate with its interval as a table, one list for each column; head None is all heads together."""
        found: dict[str, list] = {name: [] for name in FIELDS}
        for state in STATES:
            for by in BY:
                rates, ends = self.error_rates(by, state), self.intervals(by, state)
                for layer, head in np.ndindex(rates.shape):
                    name = head if head < self.heads else None
                    cells = (
                        state,
                        by,
                        self.layers[layer],
                        name,
                        rates[layer, head],
                        *ends[layer, head],
                        self.sentences,
                    )
                    for field, cell in zip(FIELDS, cells, strict=True):
                        found[field].append(cell.item() if isinstance(cell, np.generic) else cell)
        return found

    def to_arrow(self) -> Any:
        """The table as an Arrow table."""
        import pyarrow as pa

        return pa.table(self.columns())

    def __repr__(self) -> str:
        return f"<AlignmentStudy of {self.sentences} sentences>"

    def __str__(self) -> str:
        if not self.sentences:
            return "\n".join([repr(self), *self._said()])
        title = f"{self.model or 'a model'}: {self.sentences} sentences; alignment error rate in %"
        return "\n".join([title, *self._table(), *self._chosen(), *self._said()])

    def _table(self) -> list[str]:
        header = ["layer", *(f"{by}, {state}" for state in STATES for by in BY)]
        rows = [header]
        for number, layer in enumerate(self.layers):
            cells = [
                _cell(self.error_rates(by, state)[number, -1], self.intervals(by, state)[number, -1])
                for state in STATES
                for by in BY
            ]
            rows.append([str(layer), *cells])
        widths = [max(len(row[place]) for row in rows) for place in range(len(header))]
        return ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]

    def _chosen(self) -> list[str]:
        lines = []
        for state, by in ((state, by) for state in STATES for by in BY):
            for of_heads in (False, True):
                counted = self.error_rates(by, state)
                if self.sentences < 4 or np.isnan(counted[:, :-1] if of_heads else counted[:, -1:]).all():
                    continue
                best = self.best(by, state, of_heads=of_heads)
                where = f"head {best.layer}.{best.head}" if of_heads else f"layer {best.layer}"
                rate = _cell(best.aer, best.interval)
                lines.append(f"best by {by}, {state}: {where}, {rate} on {best.sentences[1]} sentences held out")
        return lines

    def _said(self) -> list[str]:
        layers = [f"norms of layer {layer} are left out: {reason}" for layer, reason in self.refused.items()]
        many = [f"{len(self.left_out)} sentences are left out:"] if self.left_out else []
        return [*layers, *many, *(f"  {name}: {reason}" for name, reason in self.left_out.items())]

    @cached_property
    def _redrawn(self) -> Float[np.ndarray, "resample state by layer head_and_all"]:
        values = self.statistic.values
        parts, wholes = (values[:, part].reshape(len(values), -1) for part in (0, 1))
        return 1 - redrawn_ratios(parts, wholes).reshape(-1, *self.statistic.shape[1:])

    def _quantiles(self, drawn: Float[np.ndarray, "resample ..."]) -> Float[np.ndarray, "..."]:
        tails = ((1 - self.confidence) / 2, (1 + self.confidence) / 2)
        if self.sentences < 2:
            return np.full((*drawn.shape[1:], 2), np.nan)
        return np.moveaxis(np.quantile(drawn, tails, axis=0), 0, -1)


def alignment_study(
    model: Any,
    tokenizer: Any,
    pairs: Iterable[AlignedPair],
    *,
    target_tokenizer: Any = None,
    special: bool = True,
    confidence: float = 0.95,
) -> AlignmentStudy:
    """How well every layer and head of an encoder-decoder aligns words, by weight and by norm.

    Of each layer and head `headscope.word_alignment` against the gold links, for both states; error rates of all
    sentences together with bootstrap intervals over sentences; the best layer and head, chosen on one half of the
    sentences and measured on the other. A sentence that cannot be captured or whose words cannot be told is left out
    and named.

    Source: Kobayashi et al. 2020, section 5; there the best layer is chosen and measured on the same sentences.

    Args:
        model: an encoder-decoder, loaded.
        tokenizer: its tokenizer.
        pairs: sentences with their translations and links.
        target_tokenizer: of the target side, where it is another.
        special: whether tokens that belong to no word may be looked at most.
        confidence: of the intervals.

    Raises:
        RecordError: where no sentence is left.

    Example:
        >>> alignment_study(model, tokenizer, [AlignedPair.of("das Haus", "the house", "0-0 1-1")])
        <AlignmentStudy of 1 sentences>
    """
    from headscope.capturing import capture

    found = AlignmentStudy(special=special, confidence=confidence)
    more = {} if target_tokenizer is None else {"target_tokenizer": target_tokenizer}
    for number, pair in enumerate(pairs):
        name = f"{number:06}"
        try:
            record = capture(model, tokenizer, pair.source, target=pair.target, keep=("weights", "norms"), **more)
        except HeadscopeError as error:
            found.left_out[name] = str(error)
            continue
        found.update(name, record, pair.sure, pair.possible)
    if not found.sentences:
        reason = next(iter(found.left_out.values()), "none was given")
        raise RecordError(f"alignment_study has no sentence left: {reason}")
    return found


def _place(by: str, state: str) -> tuple[int, int]:
    if by not in BY or state not in STATES:
        raise RecordError(f"There is no {by!r} with {state!r}; there are {', '.join(BY)} with {', '.join(STATES)}")
    return STATES.index(state), BY.index(by)


def _rates(counts: Float[np.ndarray, "2 ..."]) -> Any:
    """``1 - hits / links``; NaN where there are none."""
    hits, size = counts
    return 1 - np.divide(hits, size, out=np.full(np.shape(hits), np.nan), where=size > 0)


def _cell(rate: float, ends: Any) -> str:
    if np.isnan(rate):
        return "-"
    return f"{100 * rate:.1f}" + ("" if np.isnan(ends[0]) else f" [{100 * ends[0]:.1f}, {100 * ends[1]:.1f}]")
