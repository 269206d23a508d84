"""What `ablate` counts of one example of a run, and what a part keeps of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.capturing.loading.fingerprint import display_name
from headscope.capturing.many import OF_ONE_INPUT, reason_of
from headscope.capturing.run import at_rest
from headscope.capturing.threads import one_at_a_time
from headscope.corpus import WHOLE, CorpusText, Counted, Kept, Sums
from headscope.errors import InterventionError
from headscope.interventions import RecordMeans
from headscope.interventions.plan import ModelPlan
from headscope.interventions.session import plan_on
from headscope.storage import load_kept
from headscope.studies.ablate._ablate import cells_of, lengths_of, parse_by
from headscope.studies.ablate._result import Ablation, Cell, counts_of
from headscope.studies.ablate._run import NotedValues, TaskRun, means_of, slopes_of, without_cache
from headscope.studies.shared._corpus_model import one_thread, state_of
from headscope.studies.shared._corpus_run import RESULT
from headscope.studies.shared._fold import Fold, input_as_given
from headscope.studies.shared._fold_run import named
from headscope.tasks import Task, total_counts, totals_of_counts

if TYPE_CHECKING:
    from headscope.studies.ablate._job import AblateJob

MEANS_KIND = "means of ablate"


def parse_cells(listed: Iterable[Any]) -> tuple[Cell, ...]:
    """Cells as a file of JSON gives them back."""
    return tuple((stack, layer, head) for stack, layer, head in listed)


def result_of(sums: Sums, how: Mapping[str, Any], judging: Mapping[str, Any]) -> Ablation:
    """The result of the sums of all examples, and of what the trial of the model said."""
    words = dict(judging)
    columns, cells = words.pop("columns"), parse_cells(words.pop("cells"))
    counts = {each: sums.total(each) for each in sums.names}
    totals = totals_of_counts(how["name"], columns, counts, len(sums))
    return Ablation(cells, sums, totals=totals, **words)


FOLD = Fold(
    name="ablate",
    what="example",
    counts_of=counts_of,
    result_of=result_of,
    input_of=input_as_given,
)


class AblateMeasurer:
    """A model, and what disables its heads.

    Args:
        job: says what is disabled.
        model: with the head that the task needs.
        tokenizer: its tokenizer.
    """

    def __init__(self, job: AblateJob, model: Any, tokenizer: Any) -> None:
        self.model, self.tokenizer = model, tokenizer
        self._job = job
        self._plan: ModelPlan | None = None
        self._run: TaskRun | None = None
        self._cells: tuple[Cell, ...] = ()
        self._does, self._known, self.cuts = "", {}, list[int]()

    def values_of(
        self, texts: Sequence[CorpusText], failed: Callable[[int, Exception], None]
    ) -> Iterator[tuple[int, Any]]:
        """What is counted of each example; see `headscope.corpus.Measurer`."""
        ways = {"means": self._means, "screen": self._slopes}
        for number, text in enumerate(texts):
            try:
                task = self._job.task_of(self, text)
                with (
                    one_thread(),
                    one_at_a_time(self.model),
                    at_rest(self.model),
                    without_cache(self.model),
                ):
                    counted = ways.get(self._job.run, self._scores)(task)
            except OF_ONE_INPUT as error:
                failed(number, reason_of(error))
            else:
                yield number, counted

    def check(self, text: CorpusText) -> dict[str, Any]:
        """Count one example; what a result says of its task and of what was disabled."""
        errors: list[Exception] = []
        for _ in self.values_of([text], lambda _, error: errors.append(error)):
            pass
        if errors:
            raise errors[0]
        return self._known

    def _find(self, task: Task) -> ModelPlan:
        """The layers of the model, found on the first example."""
        if self._plan is None:
            self._plan = plan_on(self.model, lambda: task.values(self.model, 0))
            cells = cells_of(self._plan, dict(self._job.disabled))
            left = self._job.chosen
            self._cells = tuple(
                cell for cell in cells if left is None or cell[2] < 0 or cell in left
            )
        return self._plan

    def _means(self, task: Task) -> Counted:
        """What heads do on an example, which has a score: it may be too long for the model."""
        means = RecordMeans(outputs=self._job.by == "mean output")
        _check_finite(task, task.values(self.model, 0))
        arrays = means_of(self.model, task, means).arrays()
        return Counted({f"{WHOLE}{name}": array for name, array in arrays.items()}, 0, {})

    def _slopes(self, task: Task) -> Counted:
        """The slope of the score of an example in every head."""
        self._find(task)
        heads = [cell for cell in self._cells if cell[2] >= 0]
        slopes = slopes_of(self.model, task, heads)
        if len(slopes) != 1 or not np.isfinite(slopes).all():
            raise InterventionError(f"The score of {task.name!r} has no finite slope")
        self._known = {"name": task.name, "metric": task.metric, "cells": self._cells}
        return Counted({"slopes": slopes[0]}, 0, {})

    def _scores(self, task: Task) -> Counted | ScoredPair:
        """The scores of an example by the intact model and without each cell."""
        job, plan = self._job, self._find(task)
        if self._run is None:
            path = Path(job.averaged) / replace(job, run="means").folder / RESULT
            outputs = job.by == "mean output"
            make = parse_by(job.by, lambda _: _averaged(str(path), state_of(path), outputs))
            self._run = TaskRun(self.model, task, plan, make)
            self._does = make(stack=self._cells[0][0], layer=self._cells[0][1]).does
        # What was found out about the model on the first example is not tried again.
        noted = NotedValues(None, {})
        share = dict(job.disabled).get("share", True)
        shared = self._run.of(task).all(self._cells, noted, share=share)
        values = np.stack([noted[0, cell] for cell in (None, *self._cells)])
        if len(task.batches) != 1 or values.shape[1] != 1:
            raise InterventionError(
                f"The task {task.name!r} of one example has {values.shape[1]} scores in "
                f"{len(task.batches)} batches; give a task of the examples that it is given"
            )
        _check_finite(task, values)
        self._known = {
            "task": task.name,
            "metric": task.metric,
            "columns": task.columns,
            "cells": self._cells,
            "by": self._does,
            "model": display_name(self.model),
            "shared": shared,
        }
        own, length = values[:, 0], int(lengths_of(task, 1)[0])
        if job.judges_pairs:
            return ScoredPair(own, length)
        counts = {**counts_of(own[:, 0]), **total_counts(str(job.task), own)}
        return Counted(counts, length, {})


@dataclass(frozen=True, eq=False)
class ScoredPair:
    """Values ``[cell column]`` of a pair that is judged together with others, and its length."""

    values: np.ndarray
    length: int


class PairsPart:
    """The pairs of a part, which are judged when all are known."""

    def __init__(self) -> None:
        self._rows: list[tuple[str, str | None, ScoredPair]] = []

    def update(self, text: CorpusText, values: ScoredPair) -> None:
        """Count a pair, as often as it is there."""
        for number in range(text.times):
            self._rows.append((named(FOLD, text, number)[0], text.group, values))

    def kept(self) -> Kept:
        """Names, documents, lengths, and values ``[pair cell column]``."""
        names, groups, scored = zip(*self._rows, strict=True) if self._rows else ((), (), ())
        pairs = names, groups, [pair.length for pair in scored]
        return {"pairs": pairs}, {"values": np.array([pair.values for pair in scored])}


@lru_cache(maxsize=1)
def _averaged(path: str, _: tuple[Any, ...], outputs: bool) -> RecordMeans:
    """What heads do on average, read once in a process."""
    sums = Sums.of_kept(load_kept(path, MEANS_KIND))
    arrays = {name.removeprefix(WHOLE): sums.total(name) for name in sums.names}
    return RecordMeans.of_arrays(arrays, outputs=outputs)


def _check_finite(task: Task, values: np.ndarray) -> None:
    if not np.isfinite(values).all():
        raise InterventionError(f"The score of {task.name!r} is not finite")
