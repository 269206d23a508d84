"""An alignment study of more sentences than are kept, from sums over these.

Two readings of the parts: the first adds up hits and links of every head, on all sentences and on
one half of every split, by which the best are chosen; the second what these align on the other
half. Error rates are ratios, and have the Poisson bootstrap.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float, Int

from headscope.corpus import key_of
from headscope.evidence import PoissonSums, interval_of_draws
from headscope.evidence.groups import added
from headscope.studies.alignment._best_layer_or_head import BestLayerOrHead
from headscope.studies.alignment._counts import rates_of
from headscope.studies.alignment._word_alignment import BY, STATES
from headscope.studies.shared._held_out import SPLITS

if TYPE_CHECKING:
    from headscope.studies.alignment._result import AlignmentStudy

Key = tuple[str, str, bool]
"""By what, in which state, and whether a head is chosen and not a layer."""
BITS = 512
"""Halves of so many splits come from one hash."""
KEYS: tuple[Key, ...] = tuple(product(BY, STATES, (False, True)))


@dataclass(frozen=True, kw_only=True, eq=False)
class AlignmentSums:
    """What sentences say, none of which is kept.

    Args:
        sentences: how many.
        documents: that they are of; a sentence without one counts as its own.
        lengths: how many sentences have each number of tokens.
        counts: hits and links of every head; in the last column of all heads of a layer together.
        ends: intervals of the error rates.
        apart: of the rate by norm less that by weight.
        diagonal: hits and links of the diagonal.
        diagonal_ends: interval of its error rate.
        best: what is chosen on one half of the documents and measured on the other, by key.
    """

    sentences: int
    documents: int
    lengths: Counter[int]
    counts: Float[np.ndarray, "2 state by layer head_and_all"]
    ends: Float[np.ndarray, "state by layer head_and_all 2"]
    apart: Float[np.ndarray, "state layer head_and_all 2"]
    diagonal: Float[np.ndarray, " 2"]
    diagonal_ends: Float[np.ndarray, " 2"]
    best: Mapping[Key, BestLayerOrHead]


class RatioSums:
    """Hits and links, over all documents and over these drawn again.

    Args:
        shape: of what has hits and links.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._drawn = PoissonSums((2, *shape))
        # Links say what a document weighs. Sums of whole numbers in double precision are exact.
        self.groups: Float[np.ndarray, "..."] = np.zeros(shape)
        self._squares = np.zeros(shape)

    def update(self, documents: Iterable[str], values: Float[np.ndarray, "document 2 ..."]) -> None:
        """Count documents of which nothing else will come."""
        self._drawn.update_many([(name, 1) for name in documents], values)
        self.groups += (values[:, 1] > 0).sum(axis=0)
        self._squares += (values[:, 1] ** 2).sum(axis=0)

    @property
    def total(self) -> Float[np.ndarray, "2 ..."]:
        """Over all documents."""
        return self._drawn.total

    @property
    def rates(self) -> Float[np.ndarray, "draw ..."]:
        """The error rate of each draw."""
        return rates_of(np.moveaxis(self._drawn.redrawn, 1, 0))

    def interval(
        self, rates: Float[np.ndarray, "draw ..."], place: Any, confidence: float
    ) -> Float[np.ndarray, "... 2"]:
        """Of what is made of the rates.

        Args:
            rates: of each draw.
            place: of whose links say what documents weigh, such as ``...`` for all.
            confidence: of the interval.
        """
        squares = self._squares[place]
        wholes = self.total[1][place] ** 2
        effective = np.divide(wholes, squares, out=np.zeros(squares.shape), where=squares > 0)
        ends = interval_of_draws(
            rates.reshape(len(rates), -1),
            self.groups[place].ravel(),
            effective.ravel(),
            confidence=confidence,
        )
        return ends.reshape(*rates.shape[1:], 2)


class AlignmentTotals:
    """The first reading.

    Args:
        shape: of the counts of a sentence.
        splits: of documents into halves.
    """

    def __init__(self, shape: tuple[int, ...], splits: int) -> None:
        self.splits = splits
        self.sentences: int = 0
        self.documents: int = 0
        self.lengths: Counter[int] = Counter()
        self.heads = RatioSums(shape[1:])
        self.diagonal = RatioSums(())
        self.halves: Float[np.ndarray, "split 2 state by layer head_and_all"] = np.zeros(
            (splits, *shape)
        )

    def update(self, part: AlignmentStudy) -> None:
        """Add a part, whose documents have no other sentences."""
        names, values, diagonals = documents_of(part)
        self.sentences += part.sentences
        self.documents += len(names)
        self.lengths.update(part.lengths.values())
        self.heads.update(names, values)
        self.diagonal.update(names, diagonals)
        halves = hashed_halves(names, 0, self.splits).astype(np.float64)
        self.halves += np.tensordot(halves, values, axes=(1, 0))

    def choice(self, key: Key) -> HalvesChoice | None:
        """What is best on each half of every split; None where nothing was counted."""
        halves = _cells_of(self.halves, key)
        others = _cells_of(self.heads.total[None], key) - halves
        rates = [rates_of(np.moveaxis(each, 1, 0)) for each in (halves, others)]
        known = ~np.stack([np.isnan(each).all(axis=1) for each in rates])
        valid = np.flatnonzero(known.all(axis=0))
        if not len(valid):
            return None
        best = np.stack([np.nanargmin(each[valid], axis=1) for each in rates])
        rows = np.arange(len(valid))
        # What is chosen on one half is measured on the other.
        held = others[valid][rows, :, best[0]] + halves[valid][rows, :, best[1]]
        chosen_at = np.stack(
            [each[valid][rows, own] for each, own in zip(rates, best, strict=True)]
        )
        columns = halves.shape[-1] // self.halves.shape[-2]
        return HalvesChoice(valid, best, columns, float(chosen_at.T.mean()), rates_of(held.T))


@dataclass(frozen=True, eq=False)
class HalvesChoice:
    """What is best on each half of the documents.

    Args:
        valid: the splits with links on both halves.
        best: the cell of each; chosen on the half, and on the rest.
        columns: cells of a layer: its heads, or one.
        chosen_at: mean error rate where it was chosen.
        rates: error rate of every split where it was not.
    """

    valid: Int[np.ndarray, " split"]
    best: Int[np.ndarray, "2 split"]
    columns: int
    chosen_at: float
    rates: Float[np.ndarray, " split"]

    def elsewhere(
        self,
        cells: Float[np.ndarray, "document 2 cell"],
        halves: Bool[np.ndarray, "split document"],
    ) -> Float[np.ndarray, "document 2"]:
        """Hits and links of the chosen in each document, on the half that they were not chosen on;
        over all splits.
        """
        # [document 2 split]
        on_half, on_rest = cells[:, :, self.best[1]], cells[:, :, self.best[0]]
        return np.where(halves[self.valid].T[:, None], on_half, on_rest).sum(axis=2)

    def best_of(
        self,
        key: Key,
        layers: tuple[int, ...],
        interval: Float[np.ndarray, " 2"],
        sentences: int,
    ) -> BestLayerOrHead:
        """As `AlignmentStudy.best` gives it."""
        # Splits may choose different places: the most frequent is named, the rate is of all.
        listed = self.best.T.ravel().tolist()
        (cell, times), *_ = Counter(listed).most_common(1)
        layer, head = divmod(cell, self.columns)
        return BestLayerOrHead(
            layer=layers[layer],
            head=head if key[2] else None,
            chosen_at=self.chosen_at,
            aer=float(self.rates.mean()),
            interval=(float(interval[0]), float(interval[1])),
            sentences=(sentences // 2, sentences),
            spread=float(self.rates.std()),
            chosen=times / len(listed),
        )


def summed_alignment(
    parts: Callable[[], Iterable[AlignmentStudy]], layers: tuple[int, ...], confidence: float
) -> AlignmentSums:
    """What all parts say.

    Args:
        parts: gives them, twice, one after the other.
        layers: their numbers.
        confidence: of the intervals.
    """
    first: AlignmentTotals | None = None
    for part in parts():
        first = first or AlignmentTotals(part.statistic.shape, SPLITS)
        first.update(part)
    assert first is not None, "there are more sentences than are kept"
    rates = first.heads.rates
    weight, norm = (rates[:, :, BY.index(by)] for by in BY)
    of_norm = (slice(None), BY.index("norm"))
    return AlignmentSums(
        sentences=first.sentences,
        documents=first.documents,
        lengths=first.lengths,
        counts=first.heads.total,
        ends=first.heads.interval(rates, ..., confidence),
        # Both ways are of the same draws, so their difference is paired.
        apart=first.heads.interval(norm - weight, of_norm, confidence),
        diagonal=first.diagonal.total,
        diagonal_ends=first.diagonal.interval(first.diagonal.rates, ..., confidence),
        best=_best_of(parts, first, layers, confidence),
    )


def _best_of(
    parts: Callable[[], Iterable[AlignmentStudy]],
    first: AlignmentTotals,
    layers: tuple[int, ...],
    confidence: float,
) -> dict[Key, BestLayerOrHead]:
    """The second reading: how sure the rates of the chosen are."""
    every = {key: first.choice(key) for key in KEYS}
    choices = {key: choice for key, choice in every.items() if choice is not None}
    if not choices:
        return {}
    held = RatioSums((len(choices),))
    for part in parts():
        names, values, _ = documents_of(part)
        halves = hashed_halves(names, 0, first.splits)
        rows = [choice.elsewhere(_cells_of(values, key), halves) for key, choice in choices.items()]
        held.update(names, np.stack(rows, axis=2))
    ends = held.interval(held.rates, ..., confidence)
    return {
        key: choice.best_of(key, layers, own, first.sentences)
        for (key, choice), own in zip(choices.items(), ends, strict=True)
    }


def documents_of(
    study: AlignmentStudy,
) -> tuple[
    tuple[str, ...],
    Float[np.ndarray, "document 2 state by layer head_and_all"],
    Float[np.ndarray, "document 2"],
]:
    """Names of the documents of a part, and hits and links of each."""
    texts = study.statistic.texts
    groups = study.statistic.groups or (None,) * len(texts)
    units = [
        f"sentence {text}" if group is None else f"document {group}"
        for text, group in zip(texts, groups, strict=True)
    ]
    places = {name: number for number, name in enumerate(dict.fromkeys(units))}
    numbers = np.array([places[name] for name in units])
    values = np.nan_to_num(study.statistic.values)
    by_document = added(values.reshape(len(values), -1), numbers).reshape(-1, *values.shape[1:])
    return tuple(places), by_document, added(study.diagonal.values, numbers)


def _cells_of(
    values: Float[np.ndarray, "row 2 state by layer head_and_all"], key: Key
) -> Float[np.ndarray, "row 2 cell"]:
    """Single heads, or all heads of a layer together; one layer after the other."""
    by, state, of_heads = key
    chosen = values[:, :, STATES.index(state), BY.index(by)]
    chosen = chosen[..., :-1] if of_heads else chosen[..., -1:]
    return chosen.reshape(*values.shape[:2], -1)


def hashed_halves(
    documents: Sequence[str], seed: int, splits: int
) -> Bool[np.ndarray, "split document"]:
    """One half of the documents of every split, by their names alone: where a document belongs
    does not depend on the others.
    """
    halves = np.zeros((splits, len(documents)), bool)
    numbers = np.arange(seed, seed + splits)
    for block in np.unique(numbers // BITS).tolist():
        rows = np.flatnonzero(numbers // BITS == block)
        places = numbers[rows] % BITS
        for column, name in enumerate(documents):
            bits = key_of("half", str(block), name, bits=BITS).to_bytes(BITS // 8, "big")
            halves[rows, column] = np.unpackbits(np.frombuffer(bits, np.uint8))[places]
    return halves
