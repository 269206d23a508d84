"""Word alignment over many sentences: error rates of layers and heads, by weight and by norm."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from headscope.errors import RecordError
from headscope.evidence import Statistic, parse_groups, redrawn_interval, redrawn_ratios
from headscope.evidence.groups import added
from headscope.measures.alignment import Link
from headscope.patterns.records import OneModelStudy
from headscope.record import Record
from headscope.results import Kept, Result, TextTable
from headscope.studies.alignment._best_layer_or_head import BestLayerOrHead, chosen_cells
from headscope.studies.alignment._counts import counts_of, diagonal_counts, rates_of
from headscope.studies.alignment._sums import AlignmentSums, Key
from headscope.studies.alignment._table import LEAST, blocks_of, columns_of, summary_of
from headscope.studies.alignment._word_alignment import (
    BY,
    STATES,
    check_links,
    words_of,
    written_words_of,
)
from headscope.studies.shared._held_out import SPLITS, halves_of


class AlignmentStudy(OneModelStudy, Result):
    """What was counted; prints itself as a table, is drawn, kept, and added to others of the same
    model.

    What was counted with random weights, where that was asked for, is in ``control``, a study of
    its own, which is kept by itself.

    Args:
        stack: which stack of the records.
        special: see `headscope.word_alignment`.
        confidence: of the intervals.

    Example:
        >>> AlignmentStudy()
        <AlignmentStudy of 0 sentences>
    """

    KIND: ClassVar[str] = "alignment study"

    def __init__(
        self, *, stack: str = "cross", special: bool = True, confidence: float = 0.95
    ) -> None:
        if not 0 < confidence < 1:
            raise RecordError(f"confidence is a number between 0 and 1, not {confidence}")
        self.stack: str = stack
        self.special: bool = special
        self.confidence: float = confidence
        self.model: str = ""
        self.layers: tuple[int, ...] = ()
        self.heads: int = 0
        self.left_out: dict[str, str] = {}
        self.refused: dict[int, str] = {}
        self.digests: dict[str, str] = {}
        self.lengths: dict[str, int] = {}
        self.fingerprint: str = ""
        self.statistic: Statistic = Statistic((2, len(STATES), len(BY), 0, 1))
        self.diagonal: Statistic = Statistic((2,))
        self.control: AlignmentStudy | None = None
        self.sums: AlignmentSums | None = None
        """Of a run over more than 2,000 sentences, in place of each."""

    def update(
        self,
        name: str,
        record: Record,
        sure: Iterable[Link],
        possible: Iterable[Link] = frozenset(),
        *,
        group: Any = None,
    ) -> None:
        """Count one sentence; it goes to ``left_out`` where its words are unknown.

        Args:
            name: its identifier.
            record: captured with ``keep=("weights", "norms")``; without norms only weights are
                counted.
            sure: links that must be found.
            possible: links that may be found.
            group: the document that it is of, for intervals and splits; None for a sentence that
                belongs to no other.

        Raises:
            RecordError: where it was counted before, layers differ, a link names a word that does
                not exist, or sums alone are known.
        """
        self._check_held("count others in a study of their own")
        stack = record[self.stack]
        layers, gold = tuple(layer.layer for layer in stack), (frozenset(sure), frozenset(possible))
        if self.layers and (layers, stack.heads) != (self.layers, self.heads):
            raise RecordError(
                f"Sentence {name!r} has layers {layers} of {stack.heads} heads, those before it "
                f"{self.layers} of {self.heads}; one model at a time"
            )
        self._check_model(name, record, stack)
        if name in self:
            raise RecordError(
                f"Sentence {name!r} was given before; give every one a name of its own, and each "
                "once"
            )
        try:
            source, target = words_of(stack.key), written_words_of(stack)
        except RecordError as error:
            self.left_out[name] = str(error)
            return
        sizes = len(source.names), len(target["input"].names)
        check_links(gold[0] | gold[1], *sizes)
        values, refused = counts_of(stack, source, target, gold, special=self.special)
        if not self.layers:
            self.layers, self.heads, self.model = layers, stack.heads, record.model.name
            self.statistic = Statistic(values.shape)
        # The same layers are refused for every sentence, and so are kept once by their number.
        self.refused |= refused
        self.statistic.update(name, values, group=group)
        self.diagonal.update(name, diagonal_counts(*sizes, gold), group=group)
        self.lengths[name] = len(stack.key)
        # A cached property lives in __dict__: what was drawn from fewer sentences is forgotten.
        self.__dict__.pop("_redrawn", None)

    def __contains__(self, name: str) -> bool:
        return name in self.left_out or name in self.statistic

    def __add__(self, other: AlignmentStudy) -> AlignmentStudy:
        """The sentences of both.

        Raises:
            RecordError: where they share a sentence, layers, heads or options differ, or sums
                alone are known of one.
        """
        if not isinstance(other, AlignmentStudy):
            return NotImplemented
        for each in (self, other):
            each._check_held("give all sentences to one run")
        self._check_models(other)
        if not self._can_be_added_to(other):
            raise RecordError(
                "These studies are of other models or options, or share a sentence; they cannot "
                "be added up"
            )
        both = AlignmentStudy(stack=self.stack, special=self.special, confidence=self.confidence)
        both._take_counts(self, other)
        both.left_out, both.refused = self.left_out | other.left_out, self.refused | other.refused
        both.digests, both.lengths = self.digests | other.digests, self.lengths | other.lengths
        if self.control is not None and other.control is not None:
            both.control = self.control + other.control
        return both

    def _can_be_added_to(self, other: AlignmentStudy) -> bool:
        if (self.stack, self.special) != (other.stack, other.special):
            return False
        if {*self.left_out, *self.statistic.texts} & {*other.left_out, *other.statistic.texts}:
            return False
        # A study that counted nothing has no layers yet, and one of records no fingerprint of the
        # weights: these fit any.
        if self.layers and other.layers and self.layers != other.layers:
            return False
        if self.heads and other.heads and self.heads != other.heads:
            return False
        return len({self.fingerprint, other.fingerprint} - {""}) < 2

    def _take_counts(self, first: AlignmentStudy, second: AlignmentStudy) -> None:
        full = [each for each in (first, second) if each.layers]
        if not full:
            return
        self.layers, self.heads, self.model = full[0].layers, full[0].heads, full[0].model
        self.fingerprint = first.fingerprint or second.fingerprint
        self.statistic = full[0].statistic
        if len(full) > 1:
            self.statistic = first.statistic + second.statistic
        self.diagonal = first.diagonal + second.diagonal

    def _check_held(self, instead: str) -> None:
        """Raise where single sentences are not known."""
        if self.sums is not None:
            raise RecordError(f"Of {self.sentences} sentences sums alone are known; {instead}")

    @property
    def sentences(self) -> int:
        """Number of sentences counted."""
        return len(self.statistic) if self.sums is None else self.sums.sentences

    def error_rates(self, by: str, state: str = "input") -> Float[np.ndarray, "layer head_and_all"]:
        """Alignment error rate of every head; in the last column of all heads of a layer together.

        Hits and links are summed over sentences before they are divided. NaN where nothing was
        counted.

        Raises:
            RecordError: where ``by`` or ``state`` is not what it may be.
        """
        counts = self.statistic.total if self.sums is None else self.sums.counts
        return rates_of(counts)[_index(by, state)]

    def intervals(self, by: str, state: str = "input") -> Float[np.ndarray, "layer head_and_all 2"]:
        """Interval of `error_rates` over sentences, or over their documents; NaN for fewer than
        two.
        """
        if self.sums is not None:
            return self.sums.ends[_index(by, state)]
        return self._quantiles(
            self._redrawn[(slice(None), *_index(by, state))], self._wholes[_whole(by, state)]
        )

    def difference(self, state: str = "input") -> Float[np.ndarray, "layer head_and_all 3"]:
        """How much lower the error rate is by norm than by weight (below 0), and its interval over
        the same draws.
        """
        # An error rate, and so below 0 where the norm aligns better.
        apart = self.error_rates("norm", state) - self.error_rates("weight", state)
        if self.sums is not None:
            ends = self.sums.apart[STATES.index(state)]
            return np.concatenate([apart[..., None], ends], axis=-1)
        # Both ways are of the same draws, so their difference is paired.
        drawn = [self._redrawn[(slice(None), *_index(by, state))] for by in BY]
        ends = self._quantiles(drawn[1] - drawn[0], self._wholes[_whole("norm", state)])
        return np.concatenate([apart[..., None], ends], axis=-1)

    @property
    def baseline(self) -> float:
        """Error rate of position alone: each target word linked to the source word at its relative
        place.
        """
        counts = self.diagonal.total if self.sums is None else self.sums.diagonal
        return float(rates_of(counts))

    @property
    def baseline_interval(self) -> tuple[float, float]:
        """Interval of `baseline` over sentences, or over their documents; NaN for fewer than
        two.
        """
        if self.sums is None:
            low, high = self._interval_of(self.diagonal.values)
        else:
            low, high = self.sums.diagonal_ends.tolist()
        return low, high

    def best(
        self,
        by: str,
        state: str = "input",
        *,
        of_heads: bool = False,
        seed: int = 0,
        splits: int = SPLITS,
    ) -> BestLayerOrHead:
        """The layer with the least error rate on half the documents, and its rate on the other
        half.

        Chosen on either half and measured on the other, over several splits: the rate is the mean
        over splits, each of which measures every sentence once.

        Args:
            by: ``"weight"`` or ``"norm"``.
            state: see `headscope.word_alignment`.
            of_heads: choose among single heads, not layers.
            seed: of the first split.
            splits: how many.

        Raises:
            RecordError: where there are fewer than four sentences, or two documents, or nothing was
                counted; or sums alone are known, of other splits.
        """
        if self.sums is not None:
            return self._best_of_sums((by, state, of_heads), (seed, splits))
        if self.sentences < LEAST or self.statistic.documents < 2:
            raise RecordError(
                f"There are {self.sentences} sentences; two halves to choose on and measure on "
                "need four, of two or more documents"
            )
        values = self._by_document(
            self.statistic.values[(slice(None), slice(None), *_index(by, state))]
        )
        # The last column is of all heads of a layer together.
        values = values[..., :-1] if of_heads else values[..., -1:]
        if np.isnan(rates_of(values.sum(axis=0))).all():
            raise RecordError(
                f"Nothing was counted by {by}: "
                f"{next(iter(self.refused.values()), 'no link at all')}"
            )
        cells, rates, held = chosen_cells(values, halves_of(len(values), seed, splits))
        if not cells:
            raise RecordError(
                f"Nothing was counted by {by} on one half of the sentences of any split; give more"
            )
        # Splits may choose different places: the most frequent is named, the rate is of all.
        (layer, head), times = Counter(cells).most_common(1)[0]
        each = rates_of(np.moveaxis(held.sum(axis=1), -1, 0))
        return BestLayerOrHead(
            layer=self.layers[layer],
            head=head if of_heads else None,
            chosen_at=float(np.mean(rates)),
            aer=float(each.mean()),
            interval=self._interval_of(held.mean(axis=0), grouped=True),
            sentences=(self.sentences // 2, self.sentences),
            spread=float(each.std()),
            chosen=times / len(cells),
        )

    def _best_of_sums(self, key: Key, drawn: tuple[int, int]) -> BestLayerOrHead:
        assert self.sums is not None, "that is asked before"
        _index(*key[:2])
        if drawn != (0, SPLITS):
            self._check_held("what was chosen is of the usual seed and splits")
        if key not in self.sums.best:
            raise RecordError(f"Nothing was counted by {key[0]} on both halves of any split")
        return self.sums.best[key]

    def columns(self) -> dict[str, list[Any]]:
        """Every rate with its interval as a table, one list for each column; head None is all heads
        together. ``held_out_aer`` and its like stand in the rows of what was chosen on one half of
        the sentences most often, see `best`.
        """
        return columns_of(self)

    def _kept(self) -> Kept:
        from headscope.studies.alignment._file import kept_of

        return kept_of(self)

    def __repr__(self) -> str:
        return f"<AlignmentStudy of {self.sentences} sentences>"

    @property
    def summary(self) -> str:
        """The least error rate of a layer by weight and by norm, and the diagonal's."""
        return summary_of(self)

    def _blocks(self) -> list[TextTable | str]:
        return blocks_of(self)

    @cached_property
    def _redrawn(self) -> Float[np.ndarray, "resample state by layer head_and_all"]:
        values = self.statistic.values
        parts, wholes = (values[:, part].reshape(len(values), -1) for part in (0, 1))
        drawn = redrawn_ratios(parts, wholes, groups=self.statistic.groups)
        # Och and Ney's AER is 1 less hits over links, and both sums are drawn together.
        return 1 - drawn.reshape(-1, *self.statistic.shape[1:])

    @cached_property
    def _wholes(self) -> Float[np.ndarray, "document state by layer head_and_all"]:
        """Links of each document, by which it weighs."""
        return self._by_document(self.statistic.values)[:, 1]

    def _by_document(
        self, values: Float[np.ndarray, "sentence ..."]
    ) -> Float[np.ndarray, "document ..."]:
        numbers = parse_groups(self.statistic.groups, len(values))
        if numbers is None:
            return np.nan_to_num(values)
        return added(np.nan_to_num(values).reshape(len(values), -1), numbers).reshape(
            -1, *values.shape[1:]
        )

    def _interval_of(
        self, counts: Float[np.ndarray, "text part_and_whole"], *, grouped: bool = False
    ) -> tuple[float, float]:
        """Of the error rate of sums of parts and wholes, of sentences, or of documents where these
        are summed.
        """
        counts = counts if grouped else self._by_document(counts)
        low, high = self._quantiles(
            1 - redrawn_ratios(counts[:, :1], counts[:, 1:]), counts[:, 1:]
        )[0]
        return float(low), float(high)

    def _quantiles(
        self, drawn: Float[np.ndarray, "resample ..."], wholes: Float[np.ndarray, "document ..."]
    ) -> Float[np.ndarray, "..."]:
        flat, sizes = drawn.reshape(len(drawn), -1), wholes.reshape(len(wholes), -1)
        ends = redrawn_interval(flat, sizes, confidence=self.confidence)
        return ends.reshape(*drawn.shape[1:], 2)


def _index(by: str, state: str) -> tuple[int, int]:
    if by not in BY or state not in STATES:
        raise RecordError(
            f"There is no {by!r} with {state!r}; there are {', '.join(BY)} with {', '.join(STATES)}"
        )
    return STATES.index(state), BY.index(by)


def _whole(by: str, state: str) -> tuple[slice, int, int]:
    return (slice(None), *_index(by, state))
