"""The screen of a run in parts: one backward pass over every example, then heads are disabled."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from headscope.capturing.many import OF_ONE_INPUT, reason_of
from headscope.capturing.run import at_rest
from headscope.capturing.threads import one_at_a_time
from headscope.corpus import CorpusText, FinishedRun, Kept, RunFolder
from headscope.errors import InterventionError
from headscope.evidence import GroupSums
from headscope.interventions.importance import gate_slopes
from headscope.interventions.session import plan_on
from headscope.studies.ablation._in_parts_job import AblationJob, AblationMeasurer
from headscope.studies.ablation._result import Cell
from headscope.studies.ablation._screen import NO_SLOPE, strongest
from headscope.studies.ablation._study import cells_of, without_cache
from headscope.studies.shared._corpus_job import check_measured
from headscope.studies.shared._corpus_model import one_thread
from headscope.studies.shared._corpus_run import RunSettings, Stream
from headscope.tasks import Task

SCREEN = "screen"
"""Folder of the run of the screen, in that of the run."""


@dataclass(frozen=True, kw_only=True)
class ScreenJob(AblationJob):
    """What the screen of a run of `ablate` does to each example."""

    STUDY: ClassVar[str] = "screen of ablate"

    @property
    def stage(self) -> str:
        """The first of two."""
        return "1 of 2, gradients of all heads"

    def begin(self) -> ScreenMeasurer:
        """The model, loaded once in a process, and what takes the slopes of its heads."""
        return ScreenMeasurer(self, *self.loaded())

    def tally(self, measurer: Any) -> SlopeSums:
        """No example."""
        return SlopeSums()

    def made(self, finished: FinishedRun, judging: Mapping[str, Any]) -> dict[Cell, float]:
        """Of each head, what the mean score would change by without it, to first order.

        Raises:
            InterventionError: where the score moves with no head.
        """
        sums = None
        for state, arrays in finished.parts():
            if not state["is_empty"]:
                part = GroupSums.of_arrays(arrays)
                sums = part if sums is None else sums + part
        check_measured(finished, any_text=sums is not None)
        assert sums is not None, "that was checked"
        slopes = sums.mean
        if not slopes.any():
            metric, name = finished.checked["metric"], finished.checked["name"]
            raise InterventionError(NO_SLOPE.format(metric=metric, name=name))
        heads = [(stack, layer, head) for stack, layer, head in finished.checked["heads"]]
        return {cell: -float(slope) for cell, slope in zip(heads, slopes, strict=True)}

    def write(self, result: dict[Cell, float], path: Path) -> None:
        """The parts hold all that there is; they are added up again."""


class ScreenMeasurer(AblationMeasurer):
    """A model, and the slopes of its heads."""

    def values_of(
        self, texts: Sequence[CorpusText], failed: Callable[[int, Exception], None]
    ) -> Iterator[tuple[int, np.ndarray]]:
        """The slope ``[head]`` of each example's score; see `headscope.corpus.Measurer`."""
        for number, text in enumerate(texts):
            try:
                yield number, self._slopes(self._job.task_of(self, text))[1]
            except OF_ONE_INPUT as error:
                failed(number, reason_of(error))

    def task_facts(self, task: Task) -> dict[str, Any]:
        """What the estimates are of."""
        cells, _ = self._slopes(task)
        heads = [list(cell) for cell in cells]
        return {"name": task.name, "metric": task.metric, "heads": heads}

    def _slopes(self, task: Task) -> tuple[list[Cell], np.ndarray]:
        model = self.model
        with one_thread(), one_at_a_time(model), at_rest(model), without_cache(model):
            if self._plan is None:
                self._plan = plan_on(model, lambda: task.values(model, 0))
                self._cells = cells_of(self._plan, dict(self._job.disabled))
            wanted = [cell for cell in self._cells if cell[2] >= 0]
            cells, slopes = gate_slopes(
                model,
                lambda: task.values(model, 0),
                lambda: iter([task.slopes_from(model, 0)]),
                tuple(dict.fromkeys(stack for stack, _, _ in wanted)),
            )
        if len(slopes) != 1 or not np.isfinite(slopes).all():
            raise InterventionError(f"The score of {task.name!r} has no finite slope")
        at = {cell: number for number, cell in enumerate(cells)}
        return wanted, slopes[0, [at[cell] for cell in wanted]]


class SlopeSums:
    """The slopes of a part, added up exactly."""

    def __init__(self) -> None:
        # Documents do not matter for a mean over examples.
        self.most_open: int = sys.maxsize
        self._sums: GroupSums | None = None

    def update(self, text: CorpusText, values: np.ndarray) -> None:
        """Count an example, as often as it is there."""
        self._sums = self._sums or GroupSums(values.shape)
        self._sums.update(values, group=None, times=text.times)

    def close(self) -> None:
        """The documents so far have no more examples."""
        if self._sums is not None:
            self._sums.close()

    def kept(self) -> Kept:
        """The sums."""
        if self._sums is None:
            return {"is_empty": True}, {"none": np.zeros(0)}
        return {"is_empty": False}, self._sums.arrays


def screened_job(
    job: AblationJob, texts: Stream, running: RunSettings, top: int
) -> tuple[AblationJob, Stream, dict[Cell, float]]:
    """Estimate every head, and choose those that are disabled.

    Args:
        job: of the run.
        texts: its examples.
        running: with a folder.
        top: how many heads are chosen.

    Returns:
        The job for these heads alone, the examples once more, and all estimates.
    """
    folder = RunFolder(running.out or "")
    folder.begin()
    own = {field.name: getattr(job, field.name) for field in fields(job)}
    # Examples that cannot be read are told of once, by the run itself.
    beside = replace(running, out=folder.path / SCREEN, on_error=lambda *_: None)
    estimates = beside.result(ScreenJob(**own), texts, {})
    chosen = tuple(sorted(strongest(estimates, top)))
    return replace(job, chosen=chosen), RunFolder(folder.path / SCREEN).texts(), estimates
