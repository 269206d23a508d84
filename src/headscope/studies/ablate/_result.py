"""What disabling each head does to a score."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from math import ceil, log2
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Bool, Float

from headscope.corpus import WHOLE, Counts, Sums
from headscope.errors import RecordError
from headscope.evidence import interval_of_sums, judged, median_of, p_text, wilson
from headscope.evidence.chance import check_correction
from headscope.evidence.groups import check_confidence
from headscope.results import TextTable
from headscope.storage import Finite, array_of, check_document
from headscope.studies.shared._fold import Fold, FoldResult

MOST_COLUMNS = 16
FLIPS = 8191
NAMED = 8
"""Heads that the printed table names at either end."""
TEST = "paired sign-flip test"
SAYS = {
    "disabled": "layer-head, both from 0",
    "change": "of the mean score without it",
    "p": "of such a change by chance",
    "corrected": "p corrected for all that were tried; * where it is significant",
}
"""The legend of the tables."""
SHARED = f"{WHOLE}shared/"
"""Prefix of a count of examples: whether layers were passed over; where not, why."""

Cell = tuple[str, int, int]
"""Stack, layer and head that were disabled; the head is -1 where the whole layer was."""
MOST_NUMBERED = 2**14
"""Layers and heads of a file; maps of them are as large as their largest number."""
CELL = [str, int, int]
FACTS = {"cells": [CELL], "task": str, "metric": str, "by": str, "totals": {str: [float]}}
FOLD = Fold(name="ablate", what="example")


def counts_of(scores: Float[np.ndarray, " cell"]) -> Counts:
    """What is counted of an example, from its scores by the intact model, and without each cell."""
    intact = scores[0]
    return {
        "examples": np.ones((), np.int64),
        "intact": np.array(intact),
        "graded": np.array(intact not in (0, 1), np.int64),
        "changes": scores[1:] - intact,
    }


def shared_of(sums: Sums) -> str:
    """Whether layers were passed over; where not, why."""
    told = (name.removeprefix(SHARED) for name in sums.names if name.startswith(SHARED))
    return min(told, default="")


class Ablation(FoldResult):
    """The score of a model as it is and without each head and each layer; prints itself as tables.

    ``sums`` are of the `counts_of` the examples, by document; an example without one is its own. Of
    more than 512 documents there is a row for each of 512 groups of them. ``control`` is the same
    with random weights, where that was run.

    Args:
        confidence: of the intervals over documents.
        alpha: chance of any false change among the heads, and among the layers, that is accepted.
        correction: ``"holm"`` or ``"benjamini-hochberg"``, over all heads, and over all layers.
        estimates: where heads were screened, stack, layer, head and change to first order of every
            one of them.

    Raises:
        RecordError: where an option is not what it may be.
    """

    KIND: ClassVar[str] = "ablation"
    FOLD: ClassVar[Fold] = FOLD
    JUDGING: ClassVar[dict[str, Any]] = {
        "confidence": Finite,
        "alpha": Finite,
        "correction": str,
        "estimates": ([[*CELL, float]], None),
    }

    def __init__(
        self,
        confidence: float = 0.95,
        alpha: float = 0.05,
        correction: str = "holm",
        estimates: list[Any] | None = None,
    ) -> None:
        check_confidence(alpha, "alpha")
        check_correction(correction)
        own = {"confidence": confidence, "alpha": alpha, "correction": correction}
        super().__init__({}, own | {"estimates": estimates})

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """Stack, layer and head that were disabled; the head is -1 where the whole layer was."""
        return tuple((stack, layer, head) for stack, layer, head in self.sums.facts["cells"])

    @property
    def task(self) -> str:
        """Name of the task."""
        return self.sums.facts.get("task", "")

    @property
    def metric(self) -> str:
        """What the mean score is; higher is better."""
        return self.sums.facts.get("metric", "")

    @property
    def by(self) -> str:
        """What was done to the heads."""
        return self.sums.facts.get("by", "")

    @property
    def totals(self) -> Mapping[str, list[float]]:
        """Other numbers, by name: of the intact model and then of each cell."""
        return self.sums.facts.get("totals", {})

    @property
    def shared(self) -> str:
        """Whether layers below the changed one were computed once; where not, why."""
        return shared_of(self.sums)

    @property
    def alpha(self) -> float:
        """Chance of any false change that is accepted."""
        return self.judging["alpha"]

    @property
    def correction(self) -> str:
        """For trying many heads, and many layers."""
        return self.judging["correction"]

    @property
    def estimates(self) -> dict[Cell, float] | None:
        """Where heads were screened, the change of every one of them to first order, by stack,
        layer and head; else None.
        """
        listed = self.judging["estimates"]
        return None if listed is None else {(*cell,): change for *cell, change in listed}

    @property
    def documents(self) -> int:
        """Number of documents; an example without one counts as its own."""
        return self.sums.documents

    @property
    def examples(self) -> int:
        """Number of examples."""
        return len(self.sums)

    @property
    def tokens(self) -> float | None:
        """Median length of the examples; None where they are no tokens."""
        return median_of(self.sums.lengths) if 0 not in self.sums.lengths else None

    @cached_property
    def _sizes(self) -> Float[np.ndarray, "document 1"]:
        """How many examples each document has."""
        return self.sums["examples"][:, None].astype(np.float64)

    @property
    def intact(self) -> Float[np.ndarray, " document"]:
        """Mean score of the intact model in each document, or group of documents."""
        return self.sums["intact"] / self._sizes[:, 0]

    @cached_property
    def changes(self) -> Float[np.ndarray, "document cell"]:
        """Mean change of each document, or group; negative where what was disabled helps."""
        return self.sums["changes"] / self._sizes

    @property
    def scores(self) -> Float[np.ndarray, "document cell"]:
        """Mean score without each cell in each document, or group of documents."""
        return self.intact[:, None] + self.changes

    @property
    def baseline(self) -> float:
        """Mean score of the intact model."""
        return float(self.sums.total("intact")) / self.examples

    @cached_property
    def baseline_interval(self) -> Float[np.ndarray, " 2"]:
        """Interval of `baseline` over documents; Wilson's where answers are right or wrong."""
        sums, sizes = self.sums["intact"][:, None], self._sizes
        are_shares = sums.any() or self.metric == "accuracy"  # else 0 may be all that there is
        if len(sizes) < 2 or self.sums.total("graded") or not are_shares:
            return interval_of_sums(sums, sizes, confidence=self.confidence)[0]
        return wilson(sums, sizes, confidence=self.confidence, grouped=self._has_groups)[0]

    @cached_property
    def change(self) -> Float[np.ndarray, " cell"]:
        """Mean change of the score."""
        return self.sums.total("changes") / self.examples

    @cached_property
    def intervals(self) -> Float[np.ndarray, "cell 2"]:
        """Intervals of `change`: documents are resampled, with and without the head together."""
        changes = self.sums["changes"]
        sizes = np.repeat(self._sizes, len(self.cells), axis=1)
        return interval_of_sums(changes, sizes, confidence=self.confidence)

    @property
    def p(self) -> Float[np.ndarray, " cell"]:
        """Paired test of each change by flipping signs of documents, two-sided; see `p_flipped`. Of
        heads that a screen left it allows for their choice on the same examples.
        """
        return self._tests[0]

    @property
    def stacks(self) -> tuple[str, ...]:
        """Names of the stacks."""
        return tuple(dict.fromkeys(stack for stack, _, _ in self.cells))

    @property
    def corrected(self) -> Float[np.ndarray, " cell"]:
        """`p` corrected for the number of heads, and for that of layers. Heads that a screen left
        out count as tried, with a p of 1: the others were chosen on the same examples.
        """
        return self._tests[1]

    @cached_property
    def _tests(self) -> Float[np.ndarray, "2 cell"]:
        tests = np.full((2, len(self.cells)), np.nan)
        for family in (self.of_layers, ~self.of_layers):
            sums, tried = self.sums["changes"][:, family], self._family(family)
            flips = FLIPS
            if self.correction != "holm" or tried > sums.shape[1]:
                # A product of p and of how many were tried: its least is four times below alpha.
                flips |= 2 ** int(np.ceil(np.log2(4 * tried / self.alpha))) - 1
            sizes = np.repeat(self._sizes, sums.shape[1], axis=1)
            how: dict[str, Any] = {"correction": self.correction, "tried": tried, "flips": flips}
            tests[:, family] = judged([(sums, sizes)], two_sided=True, **how)[0]
        return tests

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
        return self._map(what, stack)[:, :-1]

    def by_layer(
        self, what: str = "change", stack: str | None = None
    ) -> Float[np.ndarray, " layer"]:
        """Whole layers of a stack, as `grid`."""
        return self._map(what, stack)[:, -1]

    def layers_of(self, stack: str | None = None) -> list[int]:
        """Numbers of the layers of a stack."""
        chosen = self._stack(stack)
        return sorted({layer for name, layer, _ in self.cells if name == chosen})

    def columns(self) -> dict[str, list[Any]]:
        """One row for each head and layer; the head of a layer is -1. The score of the intact model
        and its interval stand in every row.
        """
        stacks, layers, heads = map(list, zip(*self.cells, strict=True))
        columns: dict[str, list[Any]] = {"stack": stacks, "layer": layers, "head": heads}
        values = {"score": self._values("score"), "change": self.change}
        values |= {"low": self.intervals[:, 0], "high": self.intervals[:, 1], "p": self.p}
        values |= {"corrected": self.corrected, "significant": self.significant}
        columns |= {name: column.tolist() for name, column in values.items()}
        if self.estimates is not None:
            columns["estimate"] = [self.estimates.get(cell, np.nan) for cell in self.cells]
        if self.control is not None:
            columns["random_change"] = self.control.change.tolist()
        for name, of in (("intact", self), ("random_intact", self.control)):
            if of is not None:
                numbers = {"": of.baseline}
                numbers["_low"], numbers["_high"] = of.baseline_interval.tolist()
                columns |= {f"{name}{end}": [own] * len(heads) for end, own in numbers.items()}
        return columns | {name: list(values[1:]) for name, values in self.totals.items()}

    @classmethod
    def _of_kept(cls, document: dict[str, Any], arrays: dict[str, np.ndarray]) -> Ablation:
        result = super()._of_kept(document, arrays)
        if not result.texts or (result.control and result.control.cells != result.cells):
            raise ValueError("it has no examples, or other heads with random weights")
        return result

    def _check_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        check_document(self.sums.facts, FACTS)
        self._check_cells()
        # A total is one number of the intact model and one without each cell.
        if any(len(each) != len(self.cells) + 1 for each in self.totals.values()):
            raise ValueError("its totals are not of its heads")
        rows = len(self.sums.rows)
        array_of(arrays, "counts.changes", "f", (rows, len(self.cells)))
        array_of(arrays, "counts.intact", "f", (rows,))
        for name in ("examples", "graded"):
            array_of(arrays, f"counts.{name}", "i", (rows,))
        if (self.sums["examples"] < 1).any() or self.sums.total("examples") != self.examples:
            raise ValueError("its examples are not those of its documents")

    def _check_cells(self) -> None:
        cells = self.cells
        if not cells or len(set(cells)) < len(cells):
            raise ValueError("its heads are not of one ablation")
        if any(max(numbers) >= MOST_NUMBERED for _, *numbers in cells):
            raise ValueError("its layers and heads have numbers that no model has")
        if not {cell for cell in cells if cell[2] >= 0} <= set(self.estimates or cells):
            raise ValueError("it has heads that its screen does not have")

    def counts(self) -> dict[str, int]:
        """How many heads raise the score or lower it, and how many of these do so significantly."""
        heads = ~self.of_layers
        up, down, sure = heads & (self.change > 0), heads & (self.change < 0), self.significant
        counts = {"heads": heads, "raise": up, "lower": down}
        counts |= {"raise significantly": up & sure, "lower significantly": down & sure}
        return {name: int(which.sum()) for name, which in counts.items()}

    def __repr__(self) -> str:
        counts = self.counts()
        return f"<Ablation: {self.task}, {counts['heads']} heads, {self.examples} examples>"

    def _blocks(self) -> list[TextTable | str]:
        tables = [self._grid(stack) for stack in self.stacks]
        heads, layers = np.flatnonzero(~self.of_layers), np.flatnonzero(self.of_layers)
        if len(heads):
            order = heads[np.argsort(self.change[heads], kind="stable")]
            lines = self._rows(order)
            if len(order) > 2 * NAMED:
                lines[1 + NAMED : -NAMED] = [("...", "", "", "", "")]
            tables.append(TextTable.of_rows(lines, says=SAYS))
        if len(layers):
            tables.append(TextTable.of_rows(self._rows(layers), says=SAYS))
        return [*(table for table in tables if table is not None), self._control(), self._notes()]

    def _values(self, what: str) -> np.ndarray:
        if what == "significant":
            return self.significant.astype(float)
        values = {"change": self.change, "score": self.baseline + self.change}
        if what not in values:
            raise RecordError(f"An ablation has no {what!r}; it has change, score, significant")
        return values[what]

    def _map(self, what: str, stack: str | None) -> Float[np.ndarray, "layer column"]:
        """Heads of a stack by layer, and whole layers in the last column, which the head -1 is."""
        values, layers, chosen = self._values(what), self.layers_of(stack), self._stack(stack)
        pairs = zip(self.cells, values, strict=True)
        own = [(cell[1:], value) for cell, value in pairs if cell[0] == chosen]
        columns = np.full((len(layers), max(head for (_, head), _ in own) + 2), np.nan)
        for (layer, head), value in own:
            columns[layers.index(layer), head] = value
        return columns

    def _stack(self, stack: str | None) -> str:
        if stack is not None and stack not in self.stacks:
            raise RecordError(f"There is no stack {stack!r}; there are {', '.join(self.stacks)}")
        return self.stacks[0] if stack is None else stack

    @property
    def summary(self) -> str:
        """The score of the intact model, and for how many heads it falls or rises without them."""
        low, high = self.baseline_interval
        ends = "" if np.isnan(low) else f" [{low:.4g}, {high:.4g}]"
        examples = self.sums.counted
        if self.tokens is not None:
            examples += f", median {self.tokens:.0f} tokens"
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
        needed = ceil(1 - log2(self.alpha))
        if self.documents < needed:
            lines.append(
                f"Too few to tell from chance: {self.sums.counted}; a p of {self.alpha:g} takes "
                f"{needed} at least"
            )
        return "\n".join(lines)

    @property
    def _has_groups(self) -> bool:
        return self.documents != self.examples

    def _grid(self, stack: str) -> TextTable | None:
        changes, marks = self._map("change", stack), self._map("significant", stack)
        heads = changes.shape[1] - 1
        if not 0 < heads <= MOST_COLUMNS:
            return None
        rows = [["layer", *map(str, range(heads)), "all"]]
        if np.isnan(changes[:, -1]).all():
            rows, changes = [rows[0][:-1]], changes[:, :-1]
        for layer, *own in zip(self.layers_of(stack), changes, marks, strict=True):
            rows.append([str(layer), *map(self._cell, *own)])
        of = f", {stack}" if len(self.stacks) > 1 else ""
        title = f"change of {self.metric} by layer and head{of}"
        says = {"all": "without the whole layer"}
        return TextTable.of_rows(rows, title=title, align="right", says=says)

    def _cell(self, value: float, mark: float) -> str:
        if np.isnan(value):
            return "-"
        # All changes with as many digits as show the largest of a head with two.
        heads = self.change[~self.of_layers] if not self.of_layers.all() else self.change
        largest = float(np.abs(heads).max(initial=0.0))
        digits = int(np.clip(1 - np.floor(np.log10(largest)), 1, 6)) if largest > 0 else 1
        # Adding 0.0 makes 0.0 of the -0.0 that rounding leaves of a small negative number.
        return f"{round(value, digits) + 0.0:+.{digits}f}{'*' if mark == 1 else ' '}"

    def _rows(self, chosen: np.ndarray) -> list[tuple[str, ...]]:
        rows = [("disabled", "change", f"{self.confidence:.0%} interval", "p", "corrected")]
        for at in chosen:
            stack, layer, head = self.cells[at]
            name = f"{layer}-{head}" if head >= 0 else f"layer {layer}"
            low, high = self.intervals[at]
            ends = "-" if np.isnan(low) else f"[{low:+.2g}, {high:+.2g}]"
            mark = " *" if self.significant[at] else ""
            numbers = f"{self.change[at]:+.2g}", ends, p_text(self.p[at])
            name = name if len(self.stacks) == 1 else f"{stack} {name}"
            rows.append((name, *numbers, f"{p_text(self.corrected[at])}{mark}"))
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
        test = f"*: {TEST} over {over}, {self.correction} over all heads (and over all layers), "
        return f"{test}alpha {self.alpha:g}" + (f"; {self.shared}" if self.shared else "")
