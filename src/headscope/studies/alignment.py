"""How well layers and heads of a translation model align words, by weight and by norm."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float, Int

from headscope.errors import RecordError
from headscope.evidence import p_text, redrawn_interval, redrawn_ratios
from headscope.evidence.choice import ERROR_SPLITS, SPLITS, chosen, halves_of
from headscope.evidence.groups import group_of
from headscope.record import Record
from headscope.results import TextTable
from headscope.storage import array_of
from headscope.studies import _aligned_pairs
from headscope.studies.shared._fold import Fold, FoldResult, Item, taken
from headscope.studies.shared._folded import folded
from headscope.studies.shared._head_answers import left_out_lines, percent
from headscope.studies.word_alignment import (
    BY,
    STATES,
    BestLayerOrHead,
    above_diagonal,
    chosen_cells,
    counts_of,
    rates_of,
    reach_of,
)

LEAST = 4
"""Sentences that make two halves, to choose on and to measure on."""
HELD_OUT = tuple(f"held_out_{name}" for name in ("aer", "low", "high", "spread", "chosen"))
HELD_OUT += ("p", "p_corrected")
"""Only in the rows of the layer and of the head that were chosen most often; None in others."""
FIELDS = ("state", "by", "layer", "head", "aer", "low", "high")
FIELDS += ("baseline", "baseline_low", "baseline_high", "sentences", *HELD_OUT)
SAYS = {
    "weight, output": "by attention weight, of the step that writes the target word",
    "norm, output": "by the norm of what is added, of that step",
    "weight, input": "by attention weight, of the step that reads the target word",
    "norm, input": "by the norm of what is added, of that step",
}
"""The legend of the table."""


class AlignmentStudy(FoldResult):
    """What was counted; prints itself as a table, is drawn, kept, and added to others of the same
    model.

    Args:
        stack: which stack of the records.
        special: see `headscope.word_alignment`.
        confidence: of the intervals.

    Example:
        >>> AlignmentStudy()
        <AlignmentStudy of 0 sentences>
    """

    KIND: ClassVar[str] = "alignment study"
    HOW: ClassVar[dict[str, Any]] = {"stack": str, "special": bool}

    def __init__(
        self, *, stack: str = "cross", special: bool = True, confidence: float = 0.95
    ) -> None:
        super().__init__({"stack": stack, "special": special}, {"confidence": confidence})

    def update(
        self, pair: _aligned_pairs.AlignedPair, record: Record, /, *, group: Any = None
    ) -> None:
        """Count one sentence; it goes to ``left_out`` where its words are unknown.

        Args:
            pair: the sentence with its links, and a name of its own.
            record: captured with ``keep=("weights", "norms")``; without norms only weights are
                counted.
            group: the document that it is of, for intervals and splits, where it does not say so
                itself.

        Raises:
            RecordError: where it was counted before, or is of another model.
        """
        document = group_of(pair.group if group is None else group)
        self._add_text(Item(pair.name, document, pair), record, or_leave_out=True)

    @property
    def sentences(self) -> int:
        """Number of sentences counted."""
        return len(self.sums)

    @property
    def heads(self) -> int:
        """Number of heads in each of them."""
        return len(self.sums.facts.get("heads", ())) // max(1, len(self.layers))

    @property
    def refused(self) -> dict[int, str]:
        """The layers that had no norms, and why."""
        return {int(layer): reason for layer, reason in self.sums.refused.items()}

    def error_rates(self, by: str, state: str = "input") -> Float[np.ndarray, "layer head_and_all"]:
        """Alignment error rate of every head; in the last column of all heads of a layer together.

        Sums over sentences are divided. NaN where nothing was counted.

        Raises:
            RecordError: where ``by`` or ``state`` is not what it may be.
        """
        return rates_of(self._counts.sum(axis=0))[_index(by, state)]

    def intervals(self, by: str, state: str = "input") -> Float[np.ndarray, "layer head_and_all 2"]:
        """Interval of `error_rates` over documents; NaN for fewer than two."""
        place = _index(by, state)
        return self._ends(self._redrawn[:, *place], self._counts[:, 1, *place])

    def difference(self, state: str = "input") -> Float[np.ndarray, "layer head_and_all 3"]:
        """How much lower the error rate is by norm than by weight (below 0), and its interval over
        the same draws.
        """
        # An error rate, and so below 0 where the norm aligns better.
        apart = self.error_rates("norm", state) - self.error_rates("weight", state)
        # Both ways are of the same draws, so their difference is paired.
        weight, norm = (self._redrawn[:, *_index(by, state)] for by in BY)
        ends = self._ends(norm - weight, self._counts[:, 1, *_index("norm", state)])
        return np.concatenate([apart[..., None], ends], axis=-1)

    @property
    def baseline(self) -> float:
        """Error rate of position alone: each word linked to the one at its relative place."""
        return float(rates_of(self._diagonal.sum(axis=0)))

    @property
    def baseline_interval(self) -> tuple[float, float]:
        """Interval of `baseline` over documents; NaN for fewer than two."""
        hits, links = self._diagonal.T
        low, high = self._ends(1 - redrawn_ratios(hits, links), links).tolist()
        return low, high

    def _ends(self, drawn: np.ndarray, links: np.ndarray) -> Float[np.ndarray, "*axes 2"]:
        return redrawn_interval(drawn, links, confidence=self.confidence)

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

        Chosen on either half and measured on the other: the rate is the mean over splits.

        Args:
            by: ``"weight"`` or ``"norm"``.
            state: see `headscope.word_alignment`.
            of_heads: choose among single heads, not layers.
            seed: of the first split.
            splits: how many.

        Raises:
            RecordError: where there are fewer than four sentences, or two documents, or nothing was
                counted.
        """
        if self.sentences < LEAST or self.sums.documents < 2:
            few = f"There are {self.sentences} sentences; two halves to choose on and measure on"
            raise RecordError(f"{few} need four, of two or more documents")
        values = self._cells(by, state, of_heads)
        if np.isnan(rates_of(values.sum(axis=0))).all():
            why = next(iter(self.refused.values()), "no link at all")
            raise RecordError(f"Nothing was counted by {by}: {why}")
        halves = halves_of(len(values), seed, max(splits, ERROR_SPLITS))
        best, least, held, used = chosen_cells(values, halves)
        count = int(used[:splits].sum())
        if not count:
            raise RecordError(f"Nothing was counted by {by} on one half of any split; give more")
        # The most frequent place is named; the rate is of all that splits choose.
        place, times = Counter(best[:count].ravel().tolist()).most_common(1)[0]
        layer, head = divmod(place, values.shape[-1])
        each = rates_of(np.moveaxis(held[:count].sum(axis=1), -1, 0))
        rate, reach = float(each.mean()), reach_of(held, halves[used], count, self.confidence)
        return BestLayerOrHead(
            layer=self.layers[layer],
            head=head if of_heads else None,
            chosen_at=float(least[:count].mean()),
            aer=rate,
            interval=(max(0.0, rate - reach), min(1.0, rate + reach)),
            sentences=(self.sentences // 2, self.sentences),
            spread=float(each.std()),
            chosen=times / (2 * count),
            **self._tests[by, state, of_heads],
        )

    def _cells(self, by: str, state: str, of_heads: bool) -> Int[np.ndarray, "group 2 layer head"]:
        # The last column is of all heads of a layer together.
        place = slice(-1) if of_heads else slice(-1, None)
        return self._counts[:, :, *_index(by, state)][..., place]

    @cached_property
    def _tests(self) -> dict[tuple[str, str, bool], dict[str, float]]:
        """P of each way, state, and layers or heads, corrected for all of them."""
        ways = list(product(BY, STATES, (False, True)))
        judged = chosen([above_diagonal(self._cells(*way), self._diagonal) for way in ways])
        p = [{name: each[name] for name in ("p", "p_corrected")} for each in judged]
        return dict(zip(ways, p, strict=True))

    def columns(self) -> dict[str, list[Any]]:
        """Every rate with its interval as a table, one list for each column; head None is all heads
        together. ``held_out_aer`` and its like stand in the rows of what was chosen on one half of
        the sentences most often, see `best`.
        """
        rows: list[tuple[Any, ...]] = []
        baseline = (self.baseline, *self.baseline_interval)
        for state, by in product(STATES, BY):
            rates, ends = self.error_rates(by, state), self.intervals(by, state)
            best = {(each.layer, each.head): each for each in self.bests(by, state)}
            for number, head in np.ndindex(rates.shape):
                # The last column of the rates is of all heads of the layer together.
                place = (self.layers[number], head if head < self.heads else None)
                held: tuple[float | None, ...] = (None,) * len(HELD_OUT)
                if (top := best.get(place)) is not None:
                    held = (top.aer, *top.interval, top.spread, top.chosen, top.p, top.p_corrected)
                numbers = rates[number, head].item(), *ends[number, head].tolist()
                rows.append((state, by, *place, *numbers, *baseline, self.sentences, *held))
        columns = {name: [row[at] for row in rows] for at, name in enumerate(FIELDS)}
        if self.control is not None:
            theirs = self.control.columns()
            columns |= {f"random_{key}": theirs[key] for key in ("aer", "low", "high", *HELD_OUT)}
        return columns

    def __repr__(self) -> str:
        return f"<AlignmentStudy of {self.sentences} sentences>"

    @property
    def summary(self) -> str:
        """The least error rate of a layer by weight and by norm, and the diagonal's."""
        if not self.sentences:
            return repr(self)
        parts = []
        for by in BY:
            rates = np.array([self.error_rates(by, state)[:, -1] for state in STATES])
            if not np.isnan(rates).all():
                parts.append(f"{percent(float(np.nanmin(rates)))} by {by}")
        return (
            f"{self.model or 'a model'}: {self.sentences} sentences "
            f"({self.length_text} of the source). "
            f"The least alignment error rate of a layer is {' and '.join(parts) or 'not known'} "
            "(in %, chosen on these sentences); the diagonal, without any attention, has "
            f"{percent(self.baseline)}"
        )

    def _blocks(self) -> list[TextTable | str]:
        lines = [f"norms of layer {at} are left out: {why}" for at, why in self.refused.items()]
        left_out = "\n".join(lines + left_out_lines(self.left_out, "sentences are"))
        if not self.sentences:
            return [left_out]
        title = (
            f"Alignment error rate in % [{self.confidence:.0%} interval over sentences], all heads "
            "of a layer together:"
        )
        rate = percent(self.baseline, self.baseline_interval)
        diagonal = f"the diagonal, without any attention: {rate}"
        blocks = [self._table(title), "\n".join([diagonal, *self._best_lines()])]
        if self.control is not None:
            table = self.control._table("the same with random weights:")
            blocks += [table, "\n".join(self.control._best_lines())]
        return [*blocks, left_out]

    def _table(self, title: str) -> TextTable:
        columns = [["layer", *map(str, self.layers)]]
        for state, by in product(STATES, BY):
            rates, ends = self.error_rates(by, state)[:, -1], self.intervals(by, state)[:, -1]
            cells = [percent(*each) for each in zip(rates.tolist(), ends.tolist(), strict=True)]
            columns.append([f"{by}, {state}", *cells])
        return TextTable.of_rows(list(zip(*columns, strict=True)), title=title, says=SAYS)

    def _best_lines(self) -> list[str]:
        return [
            f"best by {by}, {state}: {best.place} ({best.chosen:.0%} of the choices), "
            f"{percent(best.aer, best.interval)} held out, {100 * best.spread:.1f} over splits, "
            f"p {p_text(best.p_corrected)}"
            for state, by in product(STATES, BY)
            for best in self.bests(by, state)
        ]

    def bests(self, by: str, state: str) -> list[BestLayerOrHead]:
        """The best layer and the best head, where there are enough sentences to tell."""
        bests = []
        for of_heads in (False, True):
            try:
                bests.append(self.best(by, state, of_heads=of_heads))
            except RecordError:
                continue
        return bests

    def _check_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        shape = len(self.sums.rows), 2, len(STATES), len(BY), len(self.layers)
        array_of(arrays, "counts.counts", "i", (*shape, self.heads + 1))
        array_of(arrays, "counts.diagonal", "i", shape[:2])

    @cached_property
    def _counts(self) -> Int[np.ndarray, "group 2 state by layer head_and_all"]:
        if not self.sentences:
            return np.zeros((0, 2, len(STATES), len(BY), 0, 1), np.int64)
        return self.sums["counts"]

    @property
    def _diagonal(self) -> Int[np.ndarray, "group 2"]:
        return self.sums["diagonal"] if self.sentences else np.zeros((0, 2), np.int64)

    @cached_property
    def _redrawn(self) -> Float[np.ndarray, "resample state by layer head_and_all"]:
        # Och and Ney's AER is 1 less hits over links, and both sums are drawn together.
        return 1 - redrawn_ratios(self._counts[:, 0], self._counts[:, 1])


def _index(by: str, state: str) -> tuple[int, int]:
    if by not in BY or state not in STATES:
        raise RecordError(
            f"There is no {by!r} with {state!r}; there are {', '.join(BY)} with {', '.join(STATES)}"
        )
    return STATES.index(state), BY.index(by)


FOLD = AlignmentStudy.FOLD = Fold(
    name="alignment_study",
    what="sentence",
    counts_of=counts_of,
    result_of=AlignmentStudy.of_sums,
    given_of=_aligned_pairs.given_of,
    item_of=_aligned_pairs.pair_of,
    input_of=_aligned_pairs.input_of,
    keep=("weights", "norms"),
    records_of=_aligned_pairs.records_of,
    told_of=_aligned_pairs.told_of,
    check=_aligned_pairs.check_model,
)


def alignment_study(
    model: Any,
    tokenizer: Any,
    pairs: Iterable[_aligned_pairs.AlignedPair] | str | Path,
    *,
    target_tokenizer: Any = None,
    random_weights: bool = False,
    **options: Any,
) -> AlignmentStudy:
    """How well every layer and head of an encoder-decoder aligns words, by weight and by norm.

    Of each layer and head `headscope.word_alignment` against the gold links, for both states; error
    rates of all sentences together with bootstrap intervals over sentences, and the diagonal's;
    the best layer and head, chosen on one half of the sentences and measured on the other. A
    sentence that cannot be captured or whose words are unknown is left out and named.

    Source: Kobayashi et al. 2020, section 5; there the best layer is chosen and measured on the
    same sentences.

    Args:
        model: an encoder-decoder: loaded, its name or folder.
        tokenizer: of the model; None where that is named.
        pairs: a file that `read_aligned_pairs` reads, or sentences with their translations and
            links.
        target_tokenizer: of the target side, where it is another: loaded, or its name.
        random_weights: whether the same architecture with random weights reads them, too:
            ``control`` of the result.
        **options: ``groups``, the document of each pair where it does not say so itself;
            ``special``, ``stack`` and ``confidence`` of `AlignmentStudy`; ``progress``, for a bar
            on terminals (False); ``allow_unfit``, for sentences that are mostly unknown tokens, of
            which one is left out and most are refused otherwise (False); ``out``, ``workers``,
            ``executor`` and ``part_size`` of `headscope.corpus.RunOptions`, for a run in parts, see
            docs page "Over many texts".

    Raises:
        FileError: where the file cannot be read.
        RunError: of a run, see `headscope.corpus.run`.
        ModelError: a model that is not an encoder-decoder.
        TextError: where the tokenizer does not know most of what is in the sentences.
        RecordError: where no sentence is left, two have one name, or what was kept is of another
            model, other weights, other options or other sentences.

    Example:
        >>> alignment_study(model, tokenizer, [AlignedPair.of("das Haus", "the house", "0-0 1-1")])
        <AlignmentStudy of 1 sentences>
    """
    if not isinstance(target_tokenizer, str):
        from headscope.capturing import check_reader

        check_reader(target_tokenizer, "alignment_study")
    listed = _aligned_pairs.parse_pairs(pairs)
    named = [pair.name or f"{number:06}" for number, pair in enumerate(listed)]
    if options.get("truncate"):
        raise RecordError("truncate would cut words off; sentences that are too long are left out")
    # Before the run: whatever is wrong with the options is said here.
    asked = AlignmentStudy(**taken(options, ("stack", "special", "confidence")))
    pairs_of = zip(named, listed, strict=True)
    items = [Item(name, group_of(pair.group), pair) for name, pair in pairs_of]
    how = {"random_weights": random_weights, "target_tokenizer": target_tokenizer}
    return folded(asked, (model, tokenizer), items, options, **how)
