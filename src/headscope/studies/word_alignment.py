"""Word alignment: which source word each target word was written from, and how often that is right
in one sentence.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int, Real

from headscope.corpus import REFUSED, Counts
from headscope.errors import RecordError
from headscope.evidence.choice import Choices, split_error, student_reach
from headscope.linguistics import Words
from headscope.linguistics.words import words_of_spans
from headscope.measures import aligned_words, alignment_counts, alignment_error_rate
from headscope.measures.alignment import Link
from headscope.record import Layer, Record, Stack, Tokens, warn_changed, word_maps

BY = ("weight", "norm")
STATES = ("output", "input")


@dataclass(frozen=True)
class WordAlignment:
    """Links between the words of a source and its translation; prints as ``0-1 1-0``, source first,
    from 0.

    Args:
        source: the source words.
        target: the target words.
        links: numbers of a source word and a target word.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    links: frozenset[Link]

    def error_rate(
        self, sure: AbstractSet[Link], possible: AbstractSet[Link] = frozenset()
    ) -> float:
        """Alignment error rate; see `headscope.measures.alignment_error_rate`.

        Raises:
            RecordError: where a link names a word that does not exist.
        """
        check_links(sure | possible, len(self.source), len(self.target))
        return alignment_error_rate(sure, possible, self.links)

    def __str__(self) -> str:
        return " ".join(f"{source}-{target}" for source, target in sorted(self.links))


def word_alignment(
    record: Record,
    *,
    layer: int,
    head: int | None = None,
    by: str = "weight",
    state: str = "input",
    special: bool = True,
    stack: str = "cross",
) -> WordAlignment:
    """Link each target word to the source word that it takes most from.

    Rows of a word's tokens are averaged, columns summed (`headscope.record.word_maps`), and the
    largest is taken. Words are what white space separates in the text; where a record has no text
    or offsets, what its word numbers say.

    Source: Kobayashi et al. 2020, section 5. There the token that ends the source may be looked at
    most, and the word is then linked to none, as here.

    Args:
        record: of an encoder-decoder that reads its target (``hs.capture(..., target=...)``).
        layer: number of the decoder's layer.
        head: one head; None for all together, by the mean of the weights or by ``||sum_h a
            f_h(x_j)||``.
        by: ``"weight"`` a, or ``"norm"`` ``||a f(x_j)||``, for which norms must be kept.
        state: the decoder's state that is asked: the one that is to write a token (``"output"``,
            AWO in the paper), or the one a step later, which reads it (``"input"``, AWI).
        special: whether tokens that belong to no word may be looked at most; False lets words alone
            compete.
        stack: which stack of the record.

    Raises:
        RecordError: where words are unknown, an option is not what it may be, or norms were not
            kept.

    Example:
        >>> record = capture(
        ...     model, tokenizer, "das Haus", target="the house", keep=("weights", "norms")
        ... )
        >>> print(word_alignment(record, layer=3, by="norm"))
        0-0 1-1
    """
    for name, given, known in (("by", by, BY), ("state", state, STATES)):
        if given not in known:
            raise RecordError(f"{name} is {given!r}; it may be {' or '.join(map(repr, known))}")
    if not isinstance(record, Record):
        raise RecordError(f"word_alignment takes a record, and was given {repr(record)[:60]}")
    warn_changed("word_alignment", [record.changed])
    chosen = record[stack]
    source, target = words_of(chosen.key), written_words_of(chosen)[state]
    asked = chosen.layer(layer)
    if head is not None:
        one = asked.weights_of(head) if by == "weight" else asked.head_contributions_of(head)
        maps = np.asarray(one)[None]
    elif by == "weight":
        maps = np.asarray(asked.weights_of(), np.float64).mean(axis=0, keepdims=True)
    else:
        maps = np.asarray(asked.contributions_of("attention"))[None]
    links = links_of(maps, source, target, special=special)[0]
    return WordAlignment(source.names, target.names, links)


def links_of(
    maps: Float[np.ndarray, "head query key"], source: Words, target: Words, *, special: bool = True
) -> tuple[frozenset[Link], ...]:
    """The links of each head; see `word_alignment`."""
    # Special tokens come behind the words, as words of their own: one that is looked at most takes
    # the link, and `aligned_words` then gives none.
    columns = (*source.tokens, *((position,) for position in source.rest if special))
    return aligned_words(word_maps(maps, target.tokens, columns), words=len(source.tokens))


def written_words_of(stack: Stack) -> dict[str, Words]:
    """The target's words, with the rows that read them and those that write them.

    Raises:
        RecordError: where words are unknown, or the first token is part of a word, which then no
            row writes.
    """
    read = words_of(stack.query)
    if any(position == 0 for tokens in read.tokens for position in tokens):
        raise RecordError(
            f"The first token of the target, {stack.query.pieces[0]!r}, is part of a word, and no "
            "row writes it; give what the decoder reads, which begins with a start token"
        )
    # The state at position t - 1 writes token t.
    writing = tuple(tuple(position - 1 for position in tokens) for tokens in read.tokens)
    return {"input": read, "output": Words(read.names, writing, ())}


def words_of(tokens: Tokens) -> Words:
    """The words of a side: runs without white space in its texts, else what its word numbers say.

    A token that is nothing but white space belongs to the word after it.

    Raises:
        RecordError: where neither is known, a token is part of several words, or the text goes on
            after the tokens.
    """
    if tokens.texts and tokens.offsets is not None:
        return _by_space(tokens, tokens.offsets)
    if tokens.words is None:
        raise RecordError(
            f"It is unknown which of the tokens {' '.join(tokens.pieces[:4])} ... make a word; "
            "expected texts with offsets, or word numbers (a fast tokenizer gives them, and "
            "for a target it must be given: target=)"
        )
    whole, numbers = tokens.whole_words, tokens.words
    words = zip(whole.names, whole.tokens, strict=True)
    named = [(name, run) for name, run in words if numbers[run[0]] is not None]
    rest = tuple(position for position, number in enumerate(numbers) if number is None)
    return Words(tuple(name for name, _ in named), tuple(run for _, run in named), rest)


def check_links(links: AbstractSet[Link], source: int, target: int) -> None:
    """Raise where a link names a word that does not exist.

    Raises:
        RecordError: with the link.
    """
    for link in sorted(links):
        if not (0 <= link[0] < source and 0 <= link[1] < target):
            raise RecordError(
                f"The link {link[0]}-{link[1]} leaves the {source} source and {target} target "
                "words; words are counted from 0, the source first"
            )


def _by_space(tokens: Tokens, offsets: Sequence[tuple[int, int] | None]) -> Words:
    spans = []
    for segment, text in enumerate(tokens.texts):
        placed = zip(tokens.segments, offsets, strict=True)
        ends = [offset[1] for own, offset in placed if offset is not None and own == segment]
        after = text[max(ends, default=0) :]
        # Accents that a tokenizer strips belong to no token; else a word was cut off or through.
        if any(not (letter.isspace() or unicodedata.combining(letter)) for letter in after):
            raise RecordError(
                f"The text continues after its last token with {after.strip()[:20]!r}; a decoder "
                "reads all but the last token of its target, so the tokenizer must end it with "
                "one of its own, and nothing may be cut off"
            )
        spans += [(segment, *match.span()) for match in re.finditer(r"\S+", text)]
    names = tuple(tokens.texts[segment][start:stop] for segment, start, stop in spans)
    return Words(names, *words_of_spans(tokens, spans))


def counts_of(
    pair: Any, record: Record, *, stack: str = "cross", special: bool = True, **_: Any
) -> Counts:
    """Hits and links of one sentence (`alignment_counts`), ``[2 state by layer head_and_all]``, of
    the diagonal ``[2]``, and which layers have no norms.

    Args:
        pair: an `AlignedPair`.
        record: captured with ``keep=("weights", "norms")``; without norms only weights are counted.
        stack: which stack of the record.
        special: see `headscope.word_alignment`.

    Raises:
        RecordError: where words are unknown, or a link names one that does not exist.
    """
    own = record[stack]
    source, target = words_of(own.key), written_words_of(own)
    sizes = len(source.names), len(target["input"].names)
    check_links(pair.sure | pair.possible, *sizes)
    diagonal = alignment_counts(pair.sure, pair.possible, diagonal_links(*sizes))
    values = np.zeros((2, len(STATES), len(BY), len(own), own.heads + 1), np.int64)
    counts = {"counts": values, "diagonal": np.array(diagonal, np.int64)}
    for (number, layer), (way, by) in product(enumerate(own), enumerate(BY)):
        maps_of_layer = _maps(layer, by)
        # One map for the heads and one for all together; by norm either may be missing.
        if len(maps_of_layer) < 2:
            added = layer.contributions
            why = "norms were not kept" if added is None else added.missing.get("attention", "")
            counts[f"{REFUSED}{layer.layer}/{why}"] = np.array(1)
        for (maps, heads), (index, state) in product(maps_of_layer, enumerate(STATES)):
            links = links_of(maps, source, target[state], special=special)
            hits = [alignment_counts(pair.sure, pair.possible, each) for each in links]
            # From a pair for each head to a row of hits and a row of links.
            values[:, index, way, number, heads] = np.transpose(hits)
    return counts


def diagonal_links(source: int, target: int) -> frozenset[Link]:
    """Each of so many target words linked to the source word at its relative place: what position
    alone can do.

    ``i = floor((j + 1/2) source / target)``.

    Source: Dyer et al. 2013, section 2, where links near the diagonal are preferred.
    """
    # In whole numbers, since rounding would decide where the product falls on an integer.
    return frozenset(
        ((2 * number + 1) * source // (2 * target), number) for number in range(target) if source
    )


def _maps(layer: Layer, by: str) -> list[tuple[np.ndarray, slice]]:
    """Maps ``[head query key]`` and where their counts go: those of heads, and that of all heads
    together.
    """
    heads, together = slice(0, layer.heads), slice(-1, None)
    if by == "weight":
        weights = np.asarray(layer.weights_of(), np.float64)
        return [(weights, heads), (weights.mean(axis=0, keepdims=True), together)]
    added = layer.contributions
    maps = []
    if layer.has("value_norms"):
        maps.append((np.asarray(layer.head_contributions_of()), heads))
    # Not the sum over heads of their norms: vectors of heads may cancel, see `attention_norms`.
    if added is not None and added.attention is not None:
        maps.append((np.asarray(added.attention)[None], together))
    return maps


def rates_of(counts: Real[np.ndarray, "2 ..."]) -> Any:
    """``1 - hits / links``; NaN where there are none."""
    hits, size = counts
    return 1 - np.divide(hits, size, out=np.full(np.shape(hits), np.nan), where=size > 0)


@dataclass(frozen=True)
class BestLayerOrHead:
    """A layer, or head, chosen on one half of the sentences and measured on the other, both ways,
    over several splits.

    Args:
        layer: its number; of that which was chosen most often.
        head: its number; None for all heads of the layer together.
        chosen_at: alignment error rate on the sentences that it was chosen on, of which it is the
            least; mean.
        aer: the rate on the others, mean over splits.
        interval: of ``aer``, over sentences or their documents; it allows for the choice.
        sentences: on how many each is chosen, and how many each split measures: all of them.
        spread: standard deviation of the rate over splits.
        chosen: how often this one was chosen, of two choices a split.
        p: of what is chosen aligning no better than the diagonal, see
            `headscope.evidence.choice.chosen`.
        p_corrected: the same, corrected for layers and heads by each way and state.
    """

    layer: int
    head: int | None
    chosen_at: float
    aer: float
    interval: tuple[float, float]
    sentences: tuple[int, int]
    spread: float = 0.0
    chosen: float = 1.0
    p: float = float("nan")
    p_corrected: float = float("nan")

    @property
    def place(self) -> str:
        """``"head 3.2"``, or ``"layer 3"``."""
        return f"layer {self.layer}" if self.head is None else f"head {self.layer}.{self.head}"


def chosen_cells(
    values: Int[np.ndarray, "document 2 layer head"], halves: Bool[np.ndarray, "split document"]
) -> tuple[
    Int[np.ndarray, "used 2"],
    Float[np.ndarray, "used 2"],
    Int[np.ndarray, "used document 2"],
    Bool[np.ndarray, " split"],
]:
    """The number of the best cell on each half of every split and its rate there, what it got right
    on the other half, and which splits could be used: those with links that were counted on both
    halves.
    """
    cells = values.reshape(*values.shape[:2], -1)
    on = np.tensordot(halves.astype(np.int64), cells, 1)
    rates = rates_of(np.stack([on, cells.sum(axis=0) - on], axis=1).swapaxes(0, 2))
    used = ~np.isnan(rates).all(axis=2).any(axis=0)
    best = np.nanargmin(rates[:, used], axis=2)
    # Chosen on one half, measured on the other, and the other way round: every document is measured
    # once in a split.
    first, second = cells[:, :, best].transpose(2, 3, 0, 1)
    held = np.where(halves[used][..., None], second, first)
    return best.T, np.nanmin(rates[:, used], axis=2).T, held, used


def above_diagonal(
    values: Int[np.ndarray, "document 2 layer head"], diagonal: Int[np.ndarray, "document 2"]
) -> Choices:
    """Cells beside the diagonal, all with one denominator: hits as if each made as many links, what
    is missing being right as often as the diagonal is.
    """
    own, size = np.moveaxis(values.reshape(*values.shape[:2], -1), 0, -1)
    hits, links = diagonal.T.astype(np.float64)
    scores = own + hits.sum() / links.sum() * (links - size)
    return Choices(wholes=links, scores=scores, baselines=hits[None])


def reach_of(
    held: Real[np.ndarray, "split document 2"],
    half: Bool[np.ndarray, "split document"],
    count: int,
    confidence: float,
) -> float:
    """How far the interval of the mean rate over the first splits reaches; see `split_error`."""
    there = held[..., 1].any(axis=0)
    hits, links = np.moveaxis(held[:, there], -1, 0)
    error = split_error(hits, links, half[:, there], count)
    return student_reach(error, links.mean(axis=0), confidence)
