"""What disabling each head does to a score."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Bool, Float

from headscope.errors import RecordError
from headscope.evidence import interval, least_p, p_flipped, p_text, parse_groups
from headscope.evidence.correction import CORRECTIONS
from headscope.results import Kept, Result, TextTable
from headscope.studies.ablation._sums import AblationSums

FIELDS = (
    "stack",
    "layer",
    "head",
    "score",
    "change",
    "low",
    "high",
    "p",
    "corrected",
    "significant",
)
MOST_COLUMNS = 16
NAMED = 8
"""Heads that the printed table names at either end."""
LEAST_FLIPS = 9999
SAYS = {
    "disabled": "layer-head, both from 0",
    "change": "of the mean score without it",
    "p": "of such a change by chance",
    "corrected": "p corrected for all that were tried; * where it is significant",
}
"""The legend of the tables."""

Cell = tuple[str, int, int]


@dataclass(frozen=True, eq=False)
class Ablation(Result):
    """The score of a model as it is and without each head and each layer; prints itself as tables.

    Args:
        cells: stack, layer and head that were disabled; the head is -1 where the whole layer was.
        scores: ``[example cell]``, higher is better; of no example where ``sums`` are known.
        intact: ``[example]`` of the model as it is; the same.
        task: name of the task.
        metric: what the mean score is.
        by: what was done to the heads.
        model: name of the model.
        totals: other numbers, by name: of the intact model and then of each cell.
        shared: whether layers below the changed one were computed once; where not, why.
        confidence: of the intervals over examples, or over their documents.
        alpha: chance of any false change among the heads, and among the layers, that is accepted.
        correction: ``"holm"`` or ``"benjamini-hochberg"``, over all heads; over all layers by
            themselves.
        control: the same with random weights, where that was run.
        groups: the document that each example is of; None where nobody knows.
        tokens: median length of the examples; None where they are no tokens, or it was not kept.
        estimates: where heads were screened, the change of every one of them to first order, by
            stack, layer and head; else None.
        sums: of a run over more than 2,000 examples, in place of the score of each; else None.
        left_out_of: how many of the examples were left out, in words; not kept in a file.
    """

    KIND: ClassVar[str] = "ablation"

    cells: tuple[Cell, ...]
    scores: Float[np.ndarray, "example cell"]
    intact: Float[np.ndarray, " example"]
    task: str
    metric: str
    by: str
    model: str = ""
    totals: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    shared: str = ""
    confidence: float = 0.95
    alpha: float = 0.05
    correction: str = "holm"
    control: Ablation | None = None
    groups: tuple[str | None, ...] | None = None
    tokens: float | None = None
    estimates: Mapping[Cell, float] | None = None
    sums: AblationSums | None = None
    left_out_of: str = ""

    @property
    def documents(self) -> int:
        """Number of documents that the examples are of; an example without one counts as its
        own.
        """
        if self.sums is not None:
            return self.sums.documents
        numbers = parse_groups(self.groups, self.examples)
        return self.examples if numbers is None else len(np.unique(numbers))

    @property
    def examples(self) -> int:
        """Number of examples."""
        return len(self.intact) if self.sums is None else self.sums.examples

    @property
    def baseline(self) -> float:
        """Mean score of the intact model."""
        if self.sums is not None:
            return float(self.sums.intact.mean[0])
        return float(self.intact.mean())

    @cached_property
    def baseline_interval(self) -> Float[np.ndarray, " 2"]:
        """Interval of `baseline` over examples, or over their documents; Wilson's where answers are
        right or wrong.
        """
        if self.sums is not None:
            return self.sums.intact.interval(self.confidence)[0]
        return interval(self.intact[:, None], groups=self.groups, confidence=self.confidence)[0]

    @property
    def stacks(self) -> tuple[str, ...]:
        """Names of the stacks."""
        return tuple(dict.fromkeys(stack for stack, _, _ in self.cells))

    @cached_property
    def changes(self) -> Float[np.ndarray, "example cell"]:
        """Change of each example's score; negative where what was disabled helps.

        Raises:
            RecordError: where sums alone are known.
        """
        if self.sums is not None:
            raise RecordError(
                f"Of {self.examples} examples sums alone are known; give fewer examples to have "
                "the change of each, or leave out=, workers= and executor= out"
            )
        return self.scores - self.intact[:, None]

    @cached_property
    def change(self) -> Float[np.ndarray, " cell"]:
        """Mean change of the score."""
        if self.sums is not None:
            return self.sums.changes.mean
        return self.changes.mean(axis=0)

    @cached_property
    def intervals(self) -> Float[np.ndarray, "cell 2"]:
        """Intervals of `change`: examples, or documents, are resampled, with and without the head
        together. Of `sums` Student's, see `headscope.evidence.GroupSums`.
        """
        if self.sums is not None:
            return self.sums.changes.interval(self.confidence, shares=False)
        return interval(
            self.changes, groups=self.groups, method="expanded", confidence=self.confidence
        )

    @cached_property
    def p(self) -> Float[np.ndarray, " cell"]:
        """Paired test of each change by flipping signs, two-sided; see
        `headscope.evidence.p_flipped`. Of `sums` a paired t-test over examples, or documents.
        """
        if self.sums is not None:
            return self.sums.changes.p_apart()
        return p_flipped(self.changes, groups=self.groups, flips=self._flips)

    @property
    def least_p(self) -> float:
        """The least that `p` can be: of few documents, or by the number of random flips."""
        if self.sums is not None:
            return 2.0 ** (1 - self.documents)
        return least_p(self.documents, flips=self._flips)

    @property
    def test(self) -> str:
        """What `p` is of."""
        return "paired sign-flip test" if self.sums is None else "paired t-test"

    @property
    def _flips(self) -> int:
        # Holm multiplies the least p by the number of cells: with 1 / (1 + flips) for the least,
        # so many flips keep it four times below alpha.
        most = max(len(self.cells), len(self.estimates or ()))
        return max(LEAST_FLIPS, int(4 * most / self.alpha))

    @cached_property
    def corrected(self) -> Float[np.ndarray, " cell"]:
        """`p` corrected for the number of heads, and for that of layers. Heads that a screen left
        out count as tried, with a p of 1: the others were chosen on the same examples.
        """
        corrected = np.full(len(self.cells), np.nan)
        for family in (self.of_layers, ~self.of_layers):
            own = self.p[family]
            left_out = np.ones(self._family(family) - len(own))
            corrected[family] = CORRECTIONS[self.correction](np.concatenate([own, left_out]))[
                : len(own)
            ]
        return corrected

    def _family(self, family: Bool[np.ndarray, " cell"]) -> int:
        """How many heads, or layers, were tried; with a screen, all heads that it ranked."""
        screened = self.estimates is not None and not self.of_layers[family].any()
        return len(self.estimates or ()) if screened else int(family.sum())

    @property
    def significant(self) -> Bool[np.ndarray, " cell"]:
        """Where `corrected` is at most alpha."""
        return self.corrected <= self.alpha

    @property
    def of_layers(self) -> Bool[np.ndarray, " cell"]:
        """Which cells are whole layers."""
        return np.array([head < 0 for _, _, head in self.cells])

    def grid(
        self, what: str = "change", stack: str | None = None
    ) -> Float[np.ndarray, "layer head"]:
        """Heads of a stack as a heat map; NaN where one was not disabled.

        Args:
            what: ``"change"``, ``"score"`` or ``"significant"`` (0 or 1).
            stack: by default the first.

        Raises:
            RecordError: where there is no such stack or value.
        """
        rows, layers = self._values(what), self.layers(stack)
        chosen = self._stack(stack)
        own = [at for at, cell in enumerate(self.cells) if cell[0] == chosen and cell[2] >= 0]
        grid = np.full(
            (len(layers), max((self.cells[at][2] for at in own), default=-1) + 1), np.nan
        )
        for at in own:
            grid[layers.index(self.cells[at][1]), self.cells[at][2]] = rows[at]
        return grid

    def by_layer(
        self, what: str = "change", stack: str | None = None
    ) -> Float[np.ndarray, " layer"]:
        """Whole layers of a stack, as `grid`."""
        rows, layers, chosen = self._values(what), self.layers(stack), self._stack(stack)
        values = np.full(len(layers), np.nan)
        for (name, layer, head), value in zip(self.cells, rows, strict=True):
            if name == chosen and head < 0:
                values[layers.index(layer)] = value
        return values

    def layers(self, stack: str | None = None) -> list[int]:
        """Numbers of the layers of a stack."""
        chosen = self._stack(stack)
        return sorted({layer for name, layer, _ in self.cells if name == chosen})

    def columns(self) -> dict[str, list[Any]]:
        """One row for each head and layer; the head of a layer is -1. The score of the intact model
        and its interval stand in every row.
        """
        stacks, layers, heads = map(list, zip(*self.cells, strict=True))
        columns: dict[str, list[Any]] = {"stack": stacks, "layer": layers, "head": heads}
        values = (
            self._values("score"),
            self.change,
            *self.intervals.T,
            self.p,
            self.corrected,
            self.significant,
        )
        columns |= {name: value.tolist() for name, value in zip(FIELDS[3:], values, strict=True)}
        columns |= _intact_columns("intact", self)
        if self.estimates is not None:
            columns["estimate"] = [self.estimates.get(cell, np.nan) for cell in self.cells]
        if self.control is not None:
            columns["random_change"] = self.control.change.tolist()
            columns |= _intact_columns("random_intact", self.control)
        return columns | {name: list(values[1:]) for name, values in self.totals.items()}

    def in_sums(self) -> Ablation:
        """The same without the scores of single examples: sums, which do not grow with the
        examples, Student's intervals and t-tests.
        """
        control = None if self.control is None else self.control.in_sums()
        if self.sums is not None:
            return replace(self, control=control)
        sums = AblationSums.of(self.scores, self.intact, self.groups)
        nothing = np.empty((0, len(self.cells)))
        return replace(
            self, scores=nothing, intact=nothing[:, 0], groups=None, sums=sums, control=control
        )

    def _kept(self) -> Kept:
        from headscope.studies.ablation._file import kept_of

        return kept_of(self)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Ablation:
        """A result that was kept.

        Raises:
            FileError: where the file does not exist, is cut, or is none of ours.
        """
        from headscope.studies.ablation._file import load_ablation

        return load_ablation(path)

    def counts(self) -> dict[str, int]:
        """How many heads raise the score or lower it, and how many of these do so significantly."""
        heads = ~self.of_layers
        up, down, sure = heads & (self.change > 0), heads & (self.change < 0), self.significant
        return {
            "heads": int(heads.sum()),
            "raise": int(up.sum()),
            "lower": int(down.sum()),
            "raise significantly": int((up & sure).sum()),
            "lower significantly": int((down & sure).sum()),
        }

    def __repr__(self) -> str:
        counts = self.counts()
        return f"<Ablation: {self.task}, {counts['heads']} heads, {self.examples} examples>"

    def _blocks(self) -> list[TextTable | str]:
        grids = [self._grid(stack) for stack in self.stacks]
        tables = [*grids, self._ends(), self._layers()]
        return [*(table for table in tables if table is not None), self._control(), self._notes()]

    def _values(self, what: str) -> np.ndarray:
        values = {"change": self.change, "score": self.baseline + self.change, "significant": None}
        if what not in values:
            raise RecordError(f"An ablation has no {what!r}; it has {', '.join(values)}")
        values_of = values[what]
        return self.significant.astype(float) if values_of is None else values_of

    def _stack(self, stack: str | None) -> str:
        if stack is not None and stack not in self.stacks:
            raise RecordError(f"There is no stack {stack!r}; there are {', '.join(self.stacks)}")
        return self.stacks[0] if stack is None else stack

    @property
    def summary(self) -> str:
        """The score of the intact model, and for how many heads it falls or rises without them."""
        low, high = self.baseline_interval
        ends = "" if np.isnan(low) else f" [{low:.4g}, {high:.4g}]"
        examples = f"{self.examples} examples{self._of}{self._long}"
        lines = [
            f"{self.model or 'a model'}: {self.task}, {examples}; disabled: {self.by}",
            f"intact: {self.metric} {self.baseline:.4g}{ends}"
            + "".join(f", {name} {values[0]:.4g}" for name, values in self.totals.items()),
        ]
        counts = self.counts()
        if counts["heads"]:
            lines.append(
                f"{counts['heads']} heads: without them the score falls for {counts['lower']} "
                f"(significantly for {counts['lower significantly']}) and rises for "
                f"{counts['raise']} (significantly for {counts['raise significantly']})"
            )
        if self.estimates is not None:
            lines.append(
                f"disabled are the {counts['heads']} of {len(self.estimates)} heads with the "
                "largest change by a first estimate (gradient)"
            )
        return "\n".join(lines)

    @property
    def _of(self) -> str:
        return f" of {self.documents} documents" if self._has_groups else ""

    @property
    def _has_groups(self) -> bool:
        return self.groups is not None if self.sums is None else self.sums.has_groups

    @property
    def _long(self) -> str:
        return "" if self.tokens is None else f", median {self.tokens:.0f} tokens"

    def _grid(self, stack: str) -> TextTable | None:
        grid, bars = self.grid(stack=stack), self.by_layer(stack=stack)
        if not 0 < grid.shape[1] <= MOST_COLUMNS:
            return None
        marks, whole = self.grid("significant", stack), self.by_layer("significant", stack)
        shown = ~np.isnan(bars).all()
        rows = [("layer", *map(str, range(grid.shape[1])), *(["all"] if shown else []))]
        for at, layer in enumerate(self.layers(stack)):
            cells = [
                self._cell(value, mark) for value, mark in zip(grid[at], marks[at], strict=True)
            ]
            rows.append((str(layer), *cells, *([self._cell(bars[at], whole[at])] if shown else [])))
        of = f", {stack}" if len(self.stacks) > 1 else ""
        title = f"change of {self.metric} by layer and head{of}"
        return TextTable.of_rows(
            rows, title=title, align="right", says={"all": "without the whole layer"}
        )

    def _cell(self, value: float, mark: float) -> str:
        if np.isnan(value):
            return "-"
        return f"{self._short(value)}{'*' if mark == 1 else ' '}"

    def _short(self, value: float) -> str:
        """All changes with as many digits as show the largest of a head with two."""
        heads = self.change[~self.of_layers] if not self.of_layers.all() else self.change
        largest = float(np.abs(heads).max(initial=0.0))
        digits = int(np.clip(1 - np.floor(np.log10(largest)), 1, 6)) if largest > 0 else 1
        # Adding 0.0 makes 0.0 of the -0.0 that rounding leaves of a small negative number.
        return f"{round(value, digits) + 0.0:+.{digits}f}"

    def _ends(self) -> TextTable | None:
        heads = np.flatnonzero(~self.of_layers)
        order = heads[np.argsort(self.change[heads], kind="stable")]
        if not len(order):
            return None
        chosen = order
        if len(order) > 2 * NAMED:
            chosen = np.concatenate([order[:NAMED], order[-NAMED:]])
        lines = self._rows(chosen)
        if len(chosen) < len(order):
            lines.insert(1 + NAMED, ("...", "", "", "", ""))
        return TextTable.of_rows(lines, says=SAYS)

    def _layers(self) -> TextTable | None:
        """Whole layers with their evidence."""
        layers = np.flatnonzero(self.of_layers)
        return TextTable.of_rows(self._rows(layers), says=SAYS) if len(layers) else None

    def _rows(self, chosen: np.ndarray) -> list[tuple[str, ...]]:
        kind = "interval" if self.sums is None else "t interval"
        rows = [("disabled", "change", f"{self.confidence:.0%} {kind}", "p", "corrected")]
        for at in chosen:
            stack, layer, head = self.cells[at]
            name = f"{layer}-{head}" if head >= 0 else f"layer {layer}"
            low, high = self.intervals[at]
            ends = "-" if np.isnan(low) else f"[{low:+.2g}, {high:+.2g}]"
            mark = " *" if self.significant[at] else ""
            least = self.least_p
            family = self._family(self.of_layers == self.of_layers[at])
            # Holm's least is that of the test times the number of tests; Benjamini and Hochberg's
            # may be the least itself, where all of them reach it.
            times = family if self.correction == "holm" else 1
            corrected = p_text(self.corrected[at], least * times)
            numbers = (
                f"{self.change[at]:+.2g}",
                ends,
                p_text(self.p[at], least),
                f"{corrected}{mark}",
            )
            rows.append((name if len(self.stacks) == 1 else f"{stack} {name}", *numbers))
        return rows

    def _control(self) -> str:
        """How far the score moves where nothing was learnt."""
        if self.control is None:
            return ""
        heads = ~self.of_layers
        family, kind = (heads, "head") if heads.any() else (~heads, "layer")
        largest, here = (float(np.abs(each.change[family]).max()) for each in (self.control, self))
        _, *lines = self.control.summary.splitlines()
        comparison = f"largest change of a {kind} there {largest:.2g}, here {here:.2g}"
        return "\n".join(["The same architecture with random weights:", *lines, comparison])

    def _notes(self) -> str:
        over = "documents" if self._has_groups else "examples"
        test = (
            f"*: {self.test} over {over}, {self.correction} over all heads (and over all layers), "
        )
        return f"{test}alpha {self.alpha:g}" + (f"; {self.shared}" if self.shared else "")


def _intact_columns(name: str, ablation: Ablation) -> dict[str, list[Any]]:
    """The score of the intact model and the ends of its interval, in every row."""
    numbers = (ablation.baseline, *ablation.baseline_interval.tolist())
    names = (name, f"{name}_low", f"{name}_high")
    rows = len(ablation.cells)
    return {of: [number] * rows for of, number in zip(names, numbers, strict=True)}
