"""What a probe learnt, with its controls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from headscope.errors import RecordError
from headscope.results import Kept, Result, TextTable
from headscope.studies.probes._score import CONTROL, PROBE, SELECTIVITY, Score

FIELDS = ("probe", "task", "measure", "of", "value", "low", "high", "deviation", "sentences")
PER_LAYER = "layer"


@dataclass(frozen=True, eq=False, kw_only=True)
class Probing(Result):
    """Scores of a probe and its controls on sentences that it did not learn from; prints as tables
    with intervals.

    Args:
        kind: which probe.
        model: the name of what was probed.
        scores: each one's; the probe's is called ``"probe"``.
        sentences: how many were learnt from, set aside and reported on.
        seeds: the seeds that probes were trained with; scores are means over them.
        confidence: of the bootstrap intervals, over documents where sentences name theirs, else
            over sentences.
        facts: what else there is to say: epochs, layers, labels.
        left_out: sentences that could not be read, by name, and why.
        words: median length of the sentences reported on; None where it is not known.
    """

    KIND: ClassVar[str] = "probing"

    kind: str
    model: str
    scores: tuple[Score, ...]
    sentences: tuple[int, int, int]
    seeds: tuple[int, ...] = (0,)
    confidence: float = 0.95
    facts: Mapping[str, Any] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    words: float | None = None

    def score(
        self, of: str = PROBE, *, task: str | None = None, measure: str | None = None
    ) -> Score:
        """One of the scores; without task or measure the first.

        Args:
            of: whose: ``"probe"``, a control, or ``"selectivity"``, the probe's less the control
                task's.
            task: name of the probing task.
            measure: what is counted.

        Raises:
            RecordError: where there is none.
        """
        for each in (*self.scores, *self.selectivity):
            if each.of == of and task in (None, each.task) and measure in (None, each.measure):
                return each
        there = ", ".join(sorted({f"{each.of!r}" for each in (*self.scores, *self.selectivity)}))
        raise RecordError(
            f"There is no score of {of!r} for task {task!r} and measure {measure!r}; there are "
            f"{there}"
        )

    @cached_property
    def selectivity(self) -> tuple[Score, ...]:
        """Of each task and measure the probe's score less that of the control task (Hewitt and
        Liang 2019).
        """
        # A probe that does as well on labels drawn at random has learnt words by heart.
        known = {(each.task, each.measure, each.of): each for each in self.scores}
        pairs = [
            (each, known.get((each.task, each.measure, CONTROL)))
            for each in self.scores
            if each.of == PROBE
        ]
        return tuple(each.minus(less, SELECTIVITY) for each, less in pairs if less is not None)

    @property
    def tasks(self) -> tuple[str, ...]:
        """What was asked."""
        return tuple(dict.fromkeys(each.task for each in self.scores))

    def measures(self, task: str) -> tuple[str, ...]:
        """What is counted in a task."""
        return tuple(dict.fromkeys(each.measure for each in self.scores if each.task == task))

    def per_layer(self, task: str, measure: str) -> dict[int, Score]:
        """The scores of layers, or of the layers 0 to l, by the number of the (last) layer; empty
        where none were.
        """
        return {
            int(each.of.split()[-1]): each
            for each in self.scores
            if each.task == task and each.measure == measure and each.of.startswith(PER_LAYER)
        }

    def columns(self) -> dict[str, list[Any]]:
        """Every score with its interval as a table, one list for each column.

        ``deviation`` is over seeds; ``learnt_from`` and ``set_aside`` are sentences, ``words`` the
        median length of those that were scored, the same in every row.
        """
        rows = []
        for each in (*self.scores, *self.selectivity):
            deviation = float(np.std(each.seeds)) if len(each.seeds) > 1 else float("nan")
            named = (self.kind, each.task, each.measure, each.of)
            rows.append(
                (*named, each.value, *each.interval(self.confidence), deviation, len(each.hits))
            )
        columns: dict[str, list[Any]] = {
            name: [row[index] for row in rows] for index, name in enumerate(FIELDS)
        }
        learnt, aside, _ = self.sentences
        columns |= {"learnt_from": [learnt] * len(rows), "set_aside": [aside] * len(rows)}
        columns["words"] = [self.words] * len(rows)
        return columns

    def _kept(self) -> Kept:
        from headscope.studies.probes._file import kept_of

        return kept_of(self)

    def __repr__(self) -> str:
        return (
            f"<Probing ({self.kind}) of {self.model or 'a model'}: {sum(self.sentences)} sentences>"
        )

    @property
    def summary(self) -> str:
        """The probe's scores and those of its control task."""
        parts = []
        for task in self.tasks:
            measure = self.measures(task)[0]
            known = {
                each.of: each
                for each in self.scores
                if (each.task, each.measure) == (task, measure)
            }
            lines = [f"{of} {self._cell(known[of])}" for of in (PROBE, CONTROL) if of in known]
            if lines:
                parts.append(f"{task}, {measure}: {', '.join(lines)}")
        first = f"{self.kind} probe of {self.model or 'a model'}"
        return f"{first}. {'; '.join(parts)}" if parts else first

    def _blocks(self) -> list[TextTable | str]:
        learnt, aside, test = self.sentences
        trained = f"{'seed' if len(self.seeds) == 1 else 'seeds'} {', '.join(map(str, self.seeds))}"
        # Said because it changes the intervals: sentences of one document are alike.
        of = "documents" if any(each.groups for each in self.scores) else "sentences"
        length = "" if self.words is None else f" (median {self.words:.0f} words)"
        first = (
            f"learnt from {learnt} sentences, {aside} set aside, scores of {test} others{length}; "
            f"{trained}; [{self.confidence:.0%} interval over {of}]"
        )
        lines = [f"{name}: {_fact(value)}" for name, value in self.facts.items()]
        if self.left_out:
            name, why = next(iter(self.left_out.items()))
            lines.append(f"left out: {len(self.left_out)} of the sentences, such as {name}: {why}")
        return [first, *(self._table(task) for task in self.tasks), "\n".join(lines)]

    def _table(self, task: str) -> TextTable:
        measures = self.measures(task)
        scores = {
            (each.of, each.measure): each
            for each in (*self.scores, *self.selectivity)
            if each.task == task
        }
        # False sorts before True: layers stand below the probe and its controls.
        names = sorted(
            dict.fromkeys(of for of, _ in scores), key=lambda of: of.startswith(PER_LAYER)
        )
        rows = [[task, *measures]]
        for name in names:
            cells = [self._cell(scores.get((name, measure))) for measure in measures]
            rows.append([name, *cells])
        says = dict.fromkeys(measures, "% of all cases")
        for each in scores.values():
            if each.lengths is not None:
                says[each.measure] = "mean over lengths of sentences"
        return TextTable.of_rows(rows, align="right", says=says)

    def _cell(self, score: Score | None) -> str:
        if score is None or np.isnan(score.value):
            return "-"
        low, high = score.interval(self.confidence)
        # Means over lengths are of correlations (DSpr, NSpr), which are no shares.
        shown = _plain if score.lengths is not None else _percent
        ends = "" if np.isnan(low) else f" [{shown(low)}, {shown(high)}]"
        spread = f" ±{shown(float(np.std(score.seeds)))}" if len(score.seeds) > 1 else ""
        return f"{shown(score.value)}{spread}{ends}"


def _percent(value: float) -> str:
    return f"{100 * value:.1f}"


def _plain(value: float) -> str:
    return f"{value:.3f}"


def _fact(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_fact(part)}" for name, part in value.items())
    if isinstance(value, tuple | list):
        return ", ".join(map(_fact, value))
    return f"{value:.2f}" if isinstance(value, float) else str(value)
