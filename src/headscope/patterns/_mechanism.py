"""Mechanisms of heads: the neurons that carry their scores, over many texts (Vig 2019, part 2)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from headscope.errors import RecordError
from headscope.evidence import length_text
from headscope.measures import carriers
from headscope.patterns._groups import Group, Groups
from headscope.patterns._mechanism_tally import READINGS, SUMMARY, MechanismTally, Reading
from headscope.patterns._mechanism_texts import HeldTexts, SummedTexts, mean_of
from headscope.patterns._neuron import Neuron
from headscope.patterns._pattern import Pattern
from headscope.patterns.records import with_groups
from headscope.results import Kept, Result, TextTable

CARRYING = ("unit", "features", "adds", "low", "high", "share", "carries", "stable")
"""Columns for each neuron that carries the score; see `Neuron`."""
RANDOM = (
    "mass",
    "neurons",
    "neurons_low",
    "neurons_high",
    "overlap",
    "overlap_low",
    "overlap_high",
    "chance",
)
"""Columns that also exist for random weights, where these were run."""
SHOWN = 8
"""Number of neurons in the table of one head."""


@dataclass(frozen=True, eq=False)
class Mechanism(Result):
    """The neurons that carry the scores of heads; prints itself as a table.

    There are two readings. ``"margin"``: what a neuron adds to the score of the attended keys, less
    what it adds to all keys on average; only this difference changes the softmax. ``"score"``: what
    it adds to the score itself, as in Vig's neuron view.

    Args:
        tally: the counted values.
        confidence: confidence level of the intervals.
        control: the same with random weights, where that was run.
    """

    KIND: ClassVar[str] = "mechanism"

    tally: MechanismTally
    confidence: float = 0.95
    control: Mechanism | None = None

    @property
    def texts(self) -> int:
        """Number of texts."""
        return len(self.tally.statistic)

    @property
    def cells(self) -> list[tuple[int, int]]:
        """Layer and head of the heads that were analysed."""
        return self.tally.cells

    def columns(self) -> dict[str, list[Any]]:
        """One row for each head and reading: mass, neurons, overlap of their sets and chance, with
        intervals.

        ``texts`` is the number of texts that show something; ``low`` and ``high`` belong to the
        mean before them. ``carrying_unit``, ``carrying_adds`` ... are lists: the neurons that carry
        the score with certainty, see `Neuron`.
        """
        rows = [row for of in READINGS for row in self._rows(of)]
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        columns |= self._carrying
        if self.control is not None:
            theirs = self.control.columns()
            columns |= {f"random_{name}": theirs[name] for name in RANDOM}
        return columns

    @cached_property
    def _carrying(self) -> dict[str, list[Any]]:
        """The neurons that certainly carry the score of each head and reading, in lists, the
        largest contribution first.
        """
        columns: dict[str, list[Any]] = {f"carrying_{name}": [] for name in CARRYING}
        for of in READINGS:
            for cell in self.cells:
                held = [neuron for neuron in self._known(*cell, of=of) if neuron.holds]
                for name in CARRYING:
                    columns[f"carrying_{name}"].append([getattr(each, name) for each in held])
                columns["carrying_features"][-1] = [list(each.features) for each in held]
        return columns

    def _known(self, layer: int, head: int, *, of: Reading) -> tuple[Neuron, ...]:
        """The neurons of a head; empty where no text shows anything."""
        if not self._texts.count(of)[self._cell(layer, head)]:
            return ()
        return self.neurons(layer, head, of=of)

    def neurons(self, layer: int, head: int, *, of: Reading = "margin") -> tuple[Neuron, ...]:
        """Every neuron of a head, the largest contribution first.

        With ``pattern="sep"`` these are the neurons that distinguish [SEP] from other keys.

        Raises:
            RecordError: where the head was not analysed, or the reading is unknown.
        """
        cell, of = self._cell(layer, head), _parse_reading(of)
        units = self.tally.units[layer]
        numbers = self._texts.units(cell, of)
        if numbers is None:
            raise RecordError(f"No text shows head {layer}-{head} anything of {self._looks_at}")
        mean, ends = numbers.adds, numbers.ends
        positive = np.maximum(mean, 0).sum()
        carrying = carriers(mean, share=self.tally.share)
        neurons = [
            Neuron(
                layer=layer,
                head=head,
                unit=unit,
                features=units.members[unit],
                frequency=units.frequencies[unit],
                adds=float(mean[unit]),
                low=float(ends[unit, 0]),
                high=float(ends[unit, 1]),
                share=float(max(0.0, mean[unit]) / positive) if positive else 0.0,
                carries=float(numbers.carries[unit]),
                stable=float(numbers.stable[unit]),
                holds=bool(carrying[unit] and ends[unit, 0] > 0),
            )
            for unit in range(len(units))
        ]
        return tuple(sorted(neurons, key=lambda neuron: -neuron.adds))

    def carried_at(
        self, layer: int, head: int, *, of: Reading = "margin"
    ) -> Float[np.ndarray, "position unit"]:
        """Share of texts in which a neuron carries the score of the query at each of the first 64
        positions.

        Raises:
            RecordError: where the head was not analysed, or the reading is unknown.
        """
        return self.tally.carried_at(self._cell(layer, head), _parse_reading(of))

    def grouped(
        self, labels: Mapping[str, Collection[tuple[int, int]]], *, of: Reading = "margin"
    ) -> Groups:
        """Heads by their labels: the number of neurons that carry each kind, and how fixed it is.

        Vig's claim is that delimiter and sentence patterns come from few fixed neurons, and that of
        the next word from many neurons that change with the position. This result shows whether it
        holds.

        Args:
            labels: layer and head of the heads with each label, as in `Heads.by_label`.
            of: the reading.
        """
        groups = []
        for label, cells in labels.items():
            chosen = [self.cells.index(cell) for cell in cells if cell in self.cells]
            if chosen:
                groups.append(self._group(label, chosen, _parse_reading(of)))
        return Groups(tuple(groups), self.confidence)

    def _kept(self) -> Kept:
        from headscope.patterns._mechanism_file import kept_of

        return kept_of(self)

    def __repr__(self) -> str:
        return (
            f"<Mechanism: {len(self.cells)} heads, {self.texts} texts, looking at {self._looks_at}>"
        )

    @property
    def summary(self) -> str:
        """Mean number of neurons that carry the margin of a query, of all neurons."""
        model = self.tally.model or "a model"
        texts = (
            f"{self.texts} text{'s' * (self.texts != 1)} "
            f"({length_text(self.tally.statistic.lengths)})"
        )
        rows = self._rows("margin")
        known = [row["neurons"] for row in rows if not np.isnan(row["neurons"])]
        carried = ""
        if known:
            units = max(row["units"] for row in rows)
            carried = (
                f"; {np.mean(known):.1f} of {units} neurons carry a query's margin, mean over heads"
            )
        return f"{model}: {len(self.cells)} heads, {texts}, {self._looks_at}{carried}"

    @property
    def model(self) -> str:
        """Name of the model; empty where nobody knows."""
        return self.tally.model

    def _blocks(self) -> list[TextTable | str]:
        cards = (
            [line for cell in self.cells for line in self._card(*cell)]
            if len(self.cells) <= SHOWN
            else []
        )
        blocks: list[TextTable | str] = [self._table(), "\n".join(cards)]
        if self.control is not None:
            blocks.append(replace(self.control._table(), title="The same with random weights:"))
        return blocks

    def _table(self) -> TextTable:
        rows = [HEADER, *map(self._line, self._rows("margin"), self._rows("score"))]
        return TextTable.of_rows(rows, says=SAYS)

    @property
    def _looks_at(self) -> str:
        return "what each query looks at" if self.tally.pattern is None else self.tally.pattern.name

    def _card(self, layer: int, head: int) -> list[str]:
        if not self._texts.count("margin")[self._cell(layer, head)]:
            return []
        contributing = [neuron for neuron in self.neurons(layer, head) if neuron.holds]
        lines = [f"  {neuron}" for neuron in contributing[:SHOWN]]
        more = [f"  and {len(contributing) - SHOWN} more"] if len(contributing) > SHOWN else []
        return [f"Head {layer}-{head}:", *(lines or ["  no neuron adds to it for certain"]), *more]

    def _line(self, margin: dict[str, Any], score: dict[str, Any]) -> tuple[str, ...]:
        return (
            f"{margin['layer']}-{margin['head']}",
            f"{margin['mass']:.2f}",
            *(
                text
                for row in (margin, score)
                for text in (
                    f"{row['neurons']:.1f} [{row['neurons_low']:.1f}, {row['neurons_high']:.1f}] "
                    f"of {row['units']}",
                    f"{row['overlap']:.2f} [{row['overlap_low']:.2f}, {row['overlap_high']:.2f}] "
                    f"({row['chance']:.2f})",
                )
            ),
        )

    def _rows(self, of: Reading) -> list[dict[str, Any]]:
        texts = self._texts
        mass, counts = texts.mean("mass", of), texts.count(of)
        means = {name: texts.mean(name, of) for name in SUMMARY}
        ends = {name: texts.ends(name, of) for name in ("neurons", "overlap")}
        return [
            {
                "layer": layer,
                "head": head,
                "looks_at": "" if self.tally.pattern is None else self.tally.pattern.name,
                "of": of,
                "texts": int(counts[cell]),
                "mass": float(mass[cell]),
                "units": len(self.tally.units[layer]),
                **_with_ends("neurons", means, ends, cell),
                **_with_ends("overlap", means, ends, cell),
                "chance": float(means["chance"][cell]),
            }
            for cell, (layer, head) in enumerate(self.cells)
        ]

    def _group(self, label: str, chosen: list[int], of: Reading) -> Group:
        neurons, overlap, chance = self._texts.group(chosen, of).values()
        fixed = np.divide(
            overlap - chance, 1 - chance, out=np.full(overlap.shape, np.nan), where=chance < 1
        )
        means = {"neurons": mean_of(neurons.T), "fixed": mean_of(fixed.T)}
        numbers: dict[str, float] = {}
        for name, texts in means.items():
            ends = self._texts.interval(texts[:, None])[0]
            numbers |= {
                name: float(mean_of(texts[:, None])[0]),
                f"{name}_low": float(ends[0]),
                f"{name}_high": float(ends[1]),
            }
        return Group(label=label, heads=len(chosen), **numbers)

    @cached_property
    def _texts(self) -> HeldTexts | SummedTexts:
        kind = SummedTexts if self.tally.is_summed else HeldTexts
        return kind(self.tally, self.confidence)

    def _cell(self, layer: int, head: int) -> int:
        if (layer, head) not in self.cells:
            there = ", ".join(f"{layer}-{head}" for layer, head in self.cells[:12])
            raise RecordError(
                f"Head {layer}-{head} was not looked into; there are "
                f"{there}{' ...' * (len(self.cells) > 12)}"
            )
        return self.cells.index((layer, head))


HEADER = (
    "head",
    "mass",
    "neurons (margin)",
    "Jaccard (chance)",
    "neurons (score)",
    "Jaccard (chance) by score",
)
SAYS = {
    "head": "layer-head, both from 0",
    "mass": "weight on what is looked at",
    "neurons (margin)": (
        "the fewest that make up most of the positive score of a query, mean over queries and "
        "texts [interval], where the margin is the score less its mean over all keys"
    ),
    "Jaccard (chance)": (
        "how alike their sets are at two positions of a text, and how alike sets of that size "
        "are by chance"
    ),
    "neurons (score)": "the same of the score itself",
}
"""The legend of the table."""


def mechanism(
    records: Any,
    at: Collection[tuple[int, int]] | None = None,
    *,
    groups: Iterable[Any] | None = None,
    pattern: Pattern | str | None = None,
    stack: str | None = None,
    share: float = 0.9,
    confidence: float = 0.95,
) -> Mechanism:
    """The neurons that carry the scores of heads, over many texts.

    For each query word: the smallest set of neurons that makes up 90 % of the positive score of its
    attended keys; the size of this set, and how similar the sets are at different positions of a
    text. Rotary models have frequency pairs instead of neurons.

    Source: Vig 2019, part 2 (neuron view); the statistics are ours.

    Args:
        records: one record, or one for each text, all of one model, with queries and keys.
        at: layer and head of the heads to analyse, such as ``[(2, 0), (7, 3)]``; by default all.
        groups: the document of each text, by name or number: intervals are then over documents.
        pattern: the keys to explain: a `Pattern`, the name of one, ``"sep"``, ``"cls"``, or a rule
            of `sketch`; by default all keys, in proportion to their weights.
        stack: a stack of the records; by default the first.
        share: share of the positive score that the set must carry.
        confidence: confidence level of the intervals.

    Raises:
        RecordError: where there is no record, head or pattern, or queries and keys were not kept.

    Example:
        >>> from headscope.record import Layer, Record, Stack, Tokens
        >>> layer = Layer(layer=0, queries=np.eye(3, 4)[None], keys=np.eye(3, 4)[None])
        >>> tokens = Tokens(pieces=("the", "cat", "sat"))
        >>> record = Record(
        ...     stacks={"self": Stack(name="self", query=tokens, key=tokens, layers=(layer,))}
        ... )
        >>> mechanism(record)
        <Mechanism: 1 heads, 1 texts, looking at what each query looks at>
    """
    tally = MechanismTally(at, pattern=pattern, stack=stack, share=share)
    for number, (record, group) in enumerate(with_groups(records, groups, "mechanism")):
        tally.update(f"{number:06}", record, group=group)
    if not tally.cells:
        raise RecordError("mechanism was given no record; capture at least one text")
    return Mechanism(tally, confidence)


def _parse_reading(of: str) -> Reading:
    if of not in READINGS:
        raise RecordError(f"There is no reading {of!r}; there are {' and '.join(READINGS)}")
    return of


def _with_ends(
    name: str, means: dict[str, np.ndarray], ends: dict[str, np.ndarray], cell: int
) -> dict[str, float]:
    """The mean of one number of a head, and the ends of its interval."""
    low, high = ends[name][cell]
    return {name: float(means[name][cell]), f"{name}_low": float(low), f"{name}_high": float(high)}
