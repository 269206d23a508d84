"""The effect of an intervention on patterns: scores on the same texts before and after."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from headscope.errors import RecordError
from headscope.evidence import effect_size, interval
from headscope.patterns._heads import Heads
from headscope.patterns._pattern import Pattern
from headscope.patterns._tally_sums import TallySums
from headscope.results import Kept, Result, TextTable

SAYS = {
    "head": "layer-head, both from 0",
    "before": "mean score of the pattern over texts",
    "after": "the same of the changed model",
    "change": "after less before, texts paired",
}
"""The legend of the table."""


@dataclass(frozen=True, kw_only=True)
class Change:
    """How far a head follows a pattern before and after an intervention, on the same texts.

    Args:
        layer: number of the layer, from 0.
        head: number of the head, from 0.
        pattern: name of the pattern.
        before: mean score over texts.
        before_low: lower end of its bootstrap interval over texts; NaN for one text.
        before_high: upper end.
        after: mean score of the changed model on the same texts.
        after_low: lower end.
        after_high: upper end.
        change: mean over texts of after less before.
        change_low: lower end of the bootstrap interval, texts paired.
        change_high: upper end.
        effect: Cohen's d of after and before, paired by text.
        texts: number of texts that show the pattern before and after.
        held: whether the label held before.
        gone: whether it held, and the whole interval is below the threshold now.
    """

    layer: int
    head: int
    pattern: str
    before: float
    before_low: float
    before_high: float
    after: float
    after_low: float
    after_high: float
    change: float
    change_low: float
    change_high: float
    effect: float
    texts: int
    held: bool
    gone: bool


@dataclass(frozen=True, eq=False)
class Changes(Result):
    """Patterns before and after an intervention; prints those that held before as a table.

    Args:
        before: heads of the intact model.
        after: heads of the changed model on the same texts.
        what: the change, in words.
        control: the same with random weights, where that was run.

    Raises:
        RecordError: where both do not have the same texts, heads and patterns.
    """

    KIND: ClassVar[str] = "changes"

    before: Heads
    after: Heads
    what: str = "changed"
    control: Changes | None = None

    def __post_init__(self) -> None:
        mine, theirs = self.before.tally, self.after.tally
        if isinstance(mine, TallySums) or isinstance(theirs, TallySums):
            raise RecordError(
                "Changes compare single texts, and a run keeps sums only; give heads that keep "
                "their texts: heads(model, tokenizer, texts) without out=, workers= and executor="
            )
        if (
            mine.rows != theirs.rows
            or mine.cells != theirs.cells
            or mine.statistic.texts != theirs.statistic.texts
        ):
            raise RecordError(
                "Before and after are not of the same texts, heads and patterns; capture both alike"
            )

    @cached_property
    def all(self) -> tuple[Change, ...]:
        """Every pattern of every head that some text can show."""
        return tuple(
            change for pattern in self.before.tally.patterns for change in self._of(pattern)
        )

    @property
    def held(self) -> tuple[Change, ...]:
        """The patterns that held before, the largest fall first."""
        return tuple(sorted((each for each in self.all if each.held), key=lambda each: each.change))

    def columns(self) -> dict[str, list[Any]]:
        """Every pattern of every head as a table, one list for each column."""
        return {
            field.name: [getattr(each, field.name) for each in self.all] for field in fields(Change)
        }

    def _kept(self) -> Kept:
        from headscope.patterns._change_file import kept_of

        return kept_of(self)

    def __repr__(self) -> str:
        gone = sum(each.gone for each in self.held)
        return (
            f"<Changes: {len(self.held)} labels held, {gone} are gone, {self.before.texts} texts, "
            f"{self.what}>"
        )

    def summary(self) -> str:
        """How many of the labels that held before are gone."""
        return f"{self.before.tally.model or 'a model'}, {self.what}: {self._count()}"

    def _blocks(self) -> list[TextTable | str]:
        beside = (
            []
            if self.control is None
            else [f"The same with random weights: {self.control._count()}"]
        )
        if not self.held:
            return ["\n".join([*self._notes(), *beside])]
        rows = [
            (
                f"{each.layer}-{each.head}",
                each.pattern,
                f"{each.before:.2f} [{each.before_low:.2f}, {each.before_high:.2f}]",
                f"{each.after:.2f} [{each.after_low:.2f}, {each.after_high:.2f}]",
                f"{each.change:+.2f} [{each.change_low:+.2f}, {each.change_high:+.2f}]",
                "gone" if each.gone else "",
            )
            for each in self.held
        ]
        note = (
            f"[{self.before.confidence:.0%} bootstrap interval over texts]; gone: all of it below "
            "the threshold"
        )
        table = TextTable.of_rows(
            [("head", "pattern", "before", "after", "change", ""), *rows], says=SAYS
        )
        return [table, "\n".join([note, *self._notes(), *beside])]

    def _notes(self) -> list[str]:
        """How long the texts are, and why labels cannot be given where they cannot."""
        length = (
            []
            if np.isnan(self.before.tokens)
            else [f"Texts of {self.before.tokens:.0f} tokens (median)"]
        )
        return [*length, *([self.before.caution] if self.before.caution else [])]

    def _count(self) -> str:
        gone = sum(each.gone for each in self.held)
        return f"of {len(self.held)} labels over {self.before.texts} texts, {gone} are gone"

    def _of(self, pattern: Pattern) -> Iterator[Change]:
        row = self.before.tally.rows.index(pattern.name)
        scores = [each.tally.statistic.values[:, row] for each in (self.before, self.after)]
        # Texts that show the pattern only once, before or after, cannot be paired.
        known = ~np.isnan(scores[0] + scores[1])
        before, after = (np.where(known, each, np.nan) for each in scores)
        groups = self.before.tally.statistic.groups
        values = {"before": before, "after": after, "change": after - before}
        ends = {
            name: interval(
                each, groups=groups, method="expanded", confidence=self.before.confidence
            )
            for name, each in values.items()
        }
        effects = effect_size(after, before)
        held = {
            (label.layer, label.head)
            for label in self.before.labels
            if label.pattern == pattern.name
        }
        for column, (layer, head) in enumerate(self.before.cells):
            on = known[:, column]
            if not on.any():
                continue
            numbers: dict[str, float] = {}
            for name, each in values.items():
                low, high = ends[name][column]
                numbers |= {
                    name: float(each[on, column].mean()),
                    f"{name}_low": float(low),
                    f"{name}_high": float(high),
                }
            yield Change(
                layer=layer,
                head=head,
                pattern=pattern.name,
                **numbers,
                effect=float(effects[column]),
                texts=int(on.sum()),
                held=(layer, head) in held,
                gone=(layer, head) in held and numbers["after_high"] < pattern.threshold,
            )
