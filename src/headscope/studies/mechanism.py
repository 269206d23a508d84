"""The neurons that carry what heads look at, over many texts (Vig 2019, part 2)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import chain
from operator import attrgetter
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from headscope.corpus import WHOLE, Counts
from headscope.errors import RecordError, check_count, listed
from headscope.evidence import interval_of_sums
from headscope.measures import carriers
from headscope.patterns import Pattern, QueryKeyTokens, maps_of
from headscope.patterns import neurons as by_neuron
from headscope.patterns.neuron_groups import (
    SHOWN,
    Group,
    Groups,
    Neuron,
    card_of,
    neurons_of,
    table_of,
)
from headscope.record import Record
from headscope.results import TextTable
from headscope.storage import PAIR, Finite
from headscope.studies.shared._fold import Fold, FoldResult, stack_of, taken, told_of
from headscope.studies.shared._folded import folded_texts

CARRYING = ("unit", "features", "adds", "low", "high", "share", "carries", "stable")
"""Columns for each neuron that carries the score; see `Neuron`."""
RANDOM = (
    *("mass", "neurons", "neurons_low", "neurons_high"),
    *("overlap", "overlap_low", "overlap_high", "chance"),
)
"""Columns that also exist for random weights, where these were run."""


def counts_of(
    text: Any,
    record: Record,
    *,
    at: Collection[tuple[int, int]] | None = None,
    pattern: Pattern | str | None = None,
    stack: str | None = None,
    share: float = 0.9,
) -> Counts:
    """What is counted of one text, of each head and reading.

    Args:
        text: that was read.
        record: captured with ``keep="qk"``.
        at: see `mechanism`.
        pattern: see `mechanism`.
        stack: see `mechanism`.
        share: see `mechanism`.

    Raises:
        RecordError: where there is no such head, or queries and keys were not kept.
    """
    own = stack_of(record, stack)
    cells = by_neuron.cells_of(own, at)
    units = by_neuron.units_by_layer(own, cells)
    width = max(map(len, units.values()), default=0)
    tokens = QueryKeyTokens(own.query, own.key)
    parsed = by_neuron.parse_pattern(pattern)
    wanted = None if parsed is None else parsed.wanted(tokens)
    layers = []
    for layer in own:
        heads = [head for number, head in cells if number == layer.layer]
        if heads:
            how = {"wanted": wanted, "units": units[layer.layer], "share": share, "width": width}
            layers.append(
                by_neuron.counts_of_layer(maps_of(own, layer, tokens), layer, heads, **how)
            )
    return {name: np.concatenate([counts[name] for counts in layers]) for name in layers[0]}


def _parsed(cell: Any) -> tuple[int, int]:
    """The layer and head of a head in ``at``."""
    numbers = listed(cell, "(layer, head) in at")
    if len(numbers) != 2:
        raise RecordError(f"Expected (layer, head) in at, got {cell!r}")
    return check_count("layer", numbers[0], 0), check_count("head", numbers[1], 0)


class Mechanism(FoldResult):
    """The neurons that carry the scores of heads; prints itself as a table, is added to others of
    the same model, saved and resumed.

    There are two readings. ``"margin"``: what a neuron adds to the score of the attended keys, less
    what it adds to all keys on average; only this difference changes the softmax. ``"score"``: what
    it adds to the score itself, as in Vig's neuron view.

    Args:
        at: layer and head of the heads to analyse; by default all.
        pattern: the keys to explain, see `mechanism`.
        stack: a stack of the records; by default the first.
        share: share of the positive score that the set must carry.
        confidence: of the intervals.

    Raises:
        RecordError: where there is no such pattern, or share or confidence are not what they may
            be.

    Example:
        >>> Mechanism([(0, 1)], pattern="sep")
        <Mechanism: 0 heads, 0 texts, looking at sep>
    """

    KIND: ClassVar[str] = "mechanism"
    HOW: ClassVar[dict[str, Any]] = {
        "at": ([PAIR], None),
        "pattern": (str, {}, None),
        "stack": (str, None),
        "share": Finite,
    }

    def __init__(
        self,
        at: Collection[tuple[int, int]] | None = None,
        *,
        pattern: Pattern | str | None = None,
        stack: str | None = None,
        share: float = 0.9,
        confidence: float = 0.95,
    ) -> None:
        if at is not None:
            at = tuple(dict.fromkeys(map(_parsed, listed(at, "at as [(layer, head)]"))))
        carriers(np.zeros(1), share=share)
        how = {"at": at, "pattern": pattern, "stack": stack, "share": share}
        super().__init__(how, {"confidence": confidence})
        self.pattern: Pattern | None = by_neuron.parse_pattern(pattern)

    @classmethod
    def _how_of(cls, told: dict[str, Any]) -> dict[str, Any]:
        pattern = told["pattern"]
        if isinstance(pattern, dict):
            return told | {"pattern": by_neuron.pattern_of_facts(pattern)}
        return told

    def _check_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        by_neuron.check_counts(self.sums, arrays)

    @property
    def cells(self) -> list[tuple[int, int]]:
        """Layer and head of the heads that were analysed."""
        return [(layer, head) for layer, head in self.sums.facts.get("cells", ())]

    @property
    def units(self) -> dict[int, by_neuron.Units]:
        """The units of each layer: neurons, or frequency pairs where positions are rotary."""
        return by_neuron.units_of_facts(self.sums.facts)

    @cached_property
    def _numbers(self) -> tuple[np.ndarray, np.ndarray]:
        """Sums over texts of `NUMBERS`, and how many texts have one: ``[group head reading
        number]``.
        """
        return self.sums["numbers"], self.sums["known"]

    @cached_property
    def _units(self) -> np.ndarray:
        """Sums over texts of `OF_UNITS`: ``[group head reading number unit]``."""
        return self.sums["units"]

    @cached_property
    def _ends(self) -> Float[np.ndarray, "head reading number 2"]:
        """Intervals of the means of `NUMBERS`."""
        return self._interval(*self._numbers)

    def _interval(self, sums: np.ndarray, sizes: np.ndarray) -> Float[np.ndarray, "*axes 2"]:
        """Intervals of means over texts, or over documents where these are known."""
        return interval_of_sums(sums, sizes, confidence=self.confidence)

    def columns(self) -> dict[str, list[Any]]:
        """One row for each head and reading: mass, neurons, overlap of their sets and chance, with
        intervals.

        ``texts`` is the number of texts that show something; ``low`` and ``high`` belong to the
        mean before them. ``carrying_unit``, ``carrying_adds`` ... are lists: the neurons that carry
        the score with certainty, see `Neuron`.
        """
        rows = []
        for row in chain.from_iterable(map(self._rows, by_neuron.READINGS)):
            known = self._known(row["layer"], row["head"], of=row["of"])
            carrying = list(filter(attrgetter("holds"), known))
            for name in CARRYING:
                values = [getattr(each, name) for each in carrying]
                row[f"carrying_{name}"] = [*map(list, values)] if name == "features" else values
            rows.append(row)
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        if self.control is not None:
            theirs = self.control.columns()
            columns |= {f"random_{name}": theirs[name] for name in RANDOM}
        return columns

    def _known(self, layer: int, head: int, *, of: by_neuron.Reading) -> tuple[Neuron, ...]:
        """The neurons of a head; empty where no text shows anything."""
        if not self._texts_of(self._cell(layer, head), of):
            return ()
        return self.neurons(layer, head, of=of)

    def neurons(
        self, layer: int, head: int, *, of: by_neuron.Reading = "margin"
    ) -> tuple[Neuron, ...]:
        """Every neuron of a head, the largest contribution first.

        With ``pattern="sep"`` these are the neurons that distinguish [SEP] from other keys.

        Raises:
            RecordError: where the head was not analysed, or the reading is unknown.
        """
        cell, number = self._cell(layer, head), by_neuron.number_of(of)
        shown = self.sums["shown"][:, cell]
        # Texts that show nothing are left out, and so are their documents.
        some = shown > 0
        if not some.any():
            raise RecordError(f"No text shows head {layer}-{head} anything of {self._looks_at}")
        sums, texts = self._units[some, cell, number, :, : len(self.units[layer])], shown[some]
        sizes = np.broadcast_to(texts[:, None], sums[:, 0].shape)
        ends = self._interval(sums[:, by_neuron.OF_UNITS.index("adds")], sizes)
        means = sums.sum(axis=0) / texts.sum()
        return neurons_of((layer, head), self.units[layer], means, ends, share=self.how["share"])

    def carried_at(
        self, layer: int, head: int, *, of: by_neuron.Reading = "margin"
    ) -> Float[np.ndarray, "position unit"]:
        """Share of texts in which a neuron carries the score of the query at each of the first 64
        positions; NaN where no text has a query there.

        Raises:
            RecordError: where the head was not analysed, or the reading is unknown.
        """
        cell, number = self._cell(layer, head), by_neuron.number_of(of)
        carried = self.sums.total(f"{WHOLE}carried")[cell, number, :, : len(self.units[layer])]
        texts = self.sums.total(f"{WHOLE}seen")[cell]
        shares = np.full((by_neuron.POSITIONS, carried.shape[1]), np.nan)
        seen = np.flatnonzero(texts)
        shares[seen] = carried[seen] / texts[seen, None]
        return shares

    def seen_often(self, layer: int, head: int) -> int:
        """Number of first positions to show: up to the last one that a tenth of the texts reach."""
        texts = self.sums.total(f"{WHOLE}seen")[self._cell(layer, head)]
        often = np.flatnonzero(texts >= max(1, 0.1 * self.texts))
        return int(often.max(initial=0)) + 1

    def grouped(
        self, labels: Mapping[str, Collection[tuple[int, int]]], *, of: by_neuron.Reading = "margin"
    ) -> Groups:
        """Heads by their labels: the number of neurons that carry each kind, and how fixed it is.

        Vig's claim is that delimiter and sentence patterns come from few fixed neurons, and that of
        the next word from many neurons that change with the position. This result shows whether it
        holds.

        Args:
            labels: layer and head of the heads with each label, as in `Heads.by_label`.
            of: the reading.
        """
        number, groups = by_neuron.number_of(of), []
        for label, cells in labels.items():
            chosen = [self.cells.index(cell) for cell in cells if cell in self.cells]
            if not chosen:
                continue
            # Each head weighs the same in each text that shows something of it.
            sums, known = (each[:, chosen, number].sum(axis=1) for each in self._numbers)
            means, ends = _means(sums.sum(axis=0), known.sum(axis=0)), self._interval(sums, known)
            values: dict[str, float] = {}
            for name in ("neurons", "fixed"):
                at = by_neuron.NUMBERS.index(name)
                ranged = (means[at], *ends[at])
                names = (name, f"{name}_low", f"{name}_high")
                values |= zip(names, map(float, ranged), strict=True)
            groups.append(Group(label=label, heads=len(chosen), **values))
        return Groups(tuple(groups), self.confidence)

    def __repr__(self) -> str:
        return (
            f"<Mechanism: {len(self.cells)} heads, {self.texts} texts, looking at {self._looks_at}>"
        )

    @property
    def summary(self) -> str:
        """Mean number of neurons that carry the margin of a query, of all neurons."""
        texts = f"{self.texts} text{'s' * (self.texts != 1)} ({self.length_text})"
        rows = self._rows("margin")
        known = [row["neurons"] for row in rows if not np.isnan(row["neurons"])]
        told = f"{self.model or 'a model'}: {len(self.cells)} heads, {texts}, {self._looks_at}"
        if not known:
            return told
        units = max(row["units"] for row in rows)
        mean = f"{np.mean(known):.1f} of {units} neurons"
        return f"{told}; {mean} carry a query's margin, mean over heads"

    def _blocks(self) -> list[TextTable | str]:
        cards: list[str] = []
        for layer, head in self.cells if len(self.cells) <= SHOWN else ():
            cards += card_of(layer, head, self._known(layer, head, of="margin"))
        blocks: list[TextTable | str] = [self._table(), "\n".join(cards)]
        if self.control is not None:
            blocks.append(replace(self.control._table(), title="The same with random weights:"))
        return blocks

    def _table(self) -> TextTable:
        return table_of(self._rows("margin"), self._rows("score"))

    @property
    def _looks_at(self) -> str:
        return "what each query looks at" if self.pattern is None else self.pattern.name

    def _texts_of(self, cell: int, of: by_neuron.Reading) -> int:
        """How many texts show something of a head."""
        known = self._numbers[1]
        return int(
            known[:, cell, by_neuron.number_of(of), by_neuron.NUMBERS.index("neurons")].sum()
        )

    def _rows(self, of: by_neuron.Reading) -> list[dict[str, Any]]:
        sums, known = self._numbers
        number, rows = by_neuron.number_of(of), []
        means = _means(sums.sum(axis=0), known.sum(axis=0))[:, number]
        for cell, (layer, head) in enumerate(self.cells):
            row: dict[str, Any] = {"layer": layer, "head": head}
            row["looks_at"] = "" if self.pattern is None else self.pattern.name
            row |= {"of": of, "texts": self._texts_of(cell, of), "mass": float(means[cell, 0])}
            row["units"] = len(self.units[layer])
            for name in ("neurons", "overlap"):
                at = by_neuron.NUMBERS.index(name)
                row[name] = float(means[cell, at])
                row[f"{name}_low"], row[f"{name}_high"] = self._ends[cell, number, at].tolist()
            rows.append(row | {"chance": float(means[cell, by_neuron.NUMBERS.index("chance")])})
        return rows

    def _cell(self, layer: int, head: int) -> int:
        if (layer, head) not in self.cells:
            there = ", ".join(f"{layer}-{head}" for layer, head in self.cells[:12])
            raise RecordError(
                f"Head {layer}-{head} was not looked into; there are "
                f"{there}{' ...' * (len(self.cells) > 12)}"
            )
        return self.cells.index((layer, head))


def _means(sums: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Means of what is known; NaN where nothing is."""
    return np.divide(sums, known, out=np.full(sums.shape, np.nan), where=known > 0)


def _told_of(record: Record, how: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
    length, facts = told_of(record, how)
    return length, facts | by_neuron.facts_of(stack_of(record, how["stack"]), how)


FOLD = Mechanism.FOLD = Fold(
    name="mechanism",
    what="text",
    counts_of=counts_of,
    result_of=Mechanism.of_sums,
    told_of=_told_of,
    keep="qk",
)


def mechanism(
    records: Any,
    tokenizer: Any = None,
    texts: Any = None,
    *,
    at: Collection[tuple[int, int]] | None = None,
    pattern: Pattern | str | None = None,
    random_weights: bool = False,
    **options: Any,
) -> Mechanism:
    """Which neurons carry what heads look at, over many texts (Vig 2019, part 2).

    For each word that looks: the fewest neurons that together make up 90 % of the positive score of
    what it looks at; how many these are, and how alike they are at different positions of a text.
    Rotary models have frequency pairs instead of neurons.

    Source: Vig 2019, part 2 (neuron view); the statistics are ours.

    Args:
        records: one record, one for each text, all of one model, with queries and keys; or a model,
            loaded, by name or folder, or None for the demo model.
        tokenizer: of the model; may be left out where that is named.
        texts: a text, or texts and pairs of them, for the model to read.
        at: layer and head of the heads to analyse, such as ``[(2, 0), (7, 3)]``; by default all.
        pattern: the keys to explain: a `Pattern`, the name of one, ``"sep"``, ``"cls"``, or a rule
            of `sketch`; by default all keys, in proportion to their weights.
        random_weights: whether the same architecture with random weights reads them, too:
            ``control`` of the result.
        **options: ``groups``, the document that each text is of, so that intervals are over
            documents; ``stack``, by default the first of the records; ``share`` of the positive
            score that the set must carry (0.9); ``confidence`` of the intervals (0.95); with a
            model ``truncate``, ``batch_tokens``, ``progress`` and ``on_error`` of `capture_many`;
            ``out``, ``workers``, ``executor`` and ``part_size`` of `headscope.corpus.RunOptions`,
            for a run in parts, see docs page "Over many texts".

    Raises:
        RunError: of a run, see `headscope.corpus.run`.
        RecordError: where there is no record, head or pattern, queries and keys were not kept, or
            random weights are asked for and no model is there.

    Example:
        >>> result = mechanism("bert-base-uncased", texts=texts, at=[(7, 3)], pattern="sep")
        >>> result.neurons(7, 3)[0]  # the neuron that tells [SEP] most
    """
    # Before the run: whatever is wrong with the options is said here.
    asked = Mechanism(at, pattern=pattern, **taken(options, ("stack", "share", "confidence")))
    readers = records, tokenizer
    return folded_texts(asked, readers, texts, options, random_weights=random_weights)
