"""The examples of a run in parts over which means are taken, chosen before heads are disabled."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch

from headscope.capturing.many import OF_ONE_INPUT, reason_of
from headscope.capturing.run import at_rest
from headscope.capturing.threads import one_at_a_time
from headscope.corpus import CorpusText, FinishedRun, Kept, RunFolder, key_of
from headscope.errors import InterventionError
from headscope.studies.ablation._averaged import AVERAGED
from headscope.studies.ablation._in_parts_job import AblationJob, AblationMeasurer
from headscope.studies.ablation._study import median_length
from headscope.studies.shared._corpus_job import check_measured
from headscope.studies.shared._corpus_model import one_thread
from headscope.studies.shared._corpus_run import RunSettings, Stream
from headscope.studies.shared._counted_texts import row_name
from headscope.tasks import Task

MEANS_FOLDER = "means"
"""Folder of the run that chooses examples, in that of the run."""
DRAWN = "mean ablation"

Row = tuple[float, int, Any]
"""Length of an example, the number that it is drawn by, and the example."""


@dataclass(frozen=True, kw_only=True)
class AveragedJob(AblationJob):
    """Chooses the examples of a run of `ablate` whose mean is taken."""

    STUDY: ClassVar[str] = "means of ablate"

    @property
    def stage(self) -> str:
        """The first of two."""
        return "1 of 2, examples for the means"

    def begin(self) -> LengthMeasurer:
        """The model, which reads every example once."""
        return LengthMeasurer(self, *self.loaded())

    def tally(self, measurer: Any) -> ChosenExamples:
        """No example."""
        return ChosenExamples()

    def made(self, finished: FinishedRun, judging: Mapping[str, Any]) -> tuple[Any, ...]:
        """The examples."""
        rows: list[Row] = []
        for state, _ in finished.parts():
            rows = chosen_of([*rows, *map(tuple, state["rows"])])
        check_measured(finished, any_text=bool(rows))
        return tuple(given for _, _, given in rows)

    def write(self, result: tuple[Any, ...], path: Path) -> None:
        """The parts hold all that there is; they are put together again."""


class LengthMeasurer(AblationMeasurer):
    """A model, and how many tokens it reads of an example."""

    def values_of(
        self, texts: Sequence[CorpusText], failed: Callable[[int, Exception], None]
    ) -> Iterator[tuple[int, np.ndarray]]:
        """The length ``[1]`` of each example; see `headscope.corpus.Measurer`."""
        for number, text in enumerate(texts):
            try:
                length = self._length(self._job.task_of(self, text))
            except OF_ONE_INPUT as error:
                failed(number, reason_of(error))
                continue
            yield number, np.array([length])

    def task_facts(self, task: Task) -> dict[str, Any]:
        """What the examples are for."""
        return {"name": task.name}

    def _length(self, task: Task) -> float:
        """How many tokens an example has; 0 where it is no text.

        Raises:
            InterventionError: where it has no score, so that no mean is to be taken over it.
        """
        model = self.model
        # It may be read and still be too long for the model: then it would fail every example.
        with one_thread(), one_at_a_time(model), at_rest(model), torch.no_grad():
            values = task.values(model, 0)
        if not np.isfinite(values).all():
            raise InterventionError(f"The score of {task.name!r} is not finite")
        return median_length(task) or 0.0


class ChosenExamples:
    """The examples of a part that may be among those of the whole run."""

    def __init__(self) -> None:
        # Nothing is kept of a document beside its examples, so that all may be open at once.
        self.most_open: int = sys.maxsize
        self._rows: list[Row] = []

    def update(self, text: CorpusText, values: np.ndarray) -> None:
        """Count an example, as often as it is there."""
        for number in range(text.times):
            key = key_of(DRAWN, row_name(text, number), bits=56)
            self._rows.append((float(values[0]), key, text.given))
        if len(self._rows) > 2 * AVERAGED:
            self._rows = chosen_of(self._rows)

    def close(self) -> None:
        """Nothing is open."""

    def kept(self) -> Kept:
        """Length, number and words of each."""
        return {"rows": chosen_of(self._rows)}, {"none": np.zeros(0)}


def chosen_of(rows: Iterable[Row]) -> list[Row]:
    """The longest example, since none may be longer than a mean map, and those with the lowest
    numbers; the same of any parts of them.
    """
    drawn = sorted(rows, key=lambda row: (row[1], row[0]))
    if not drawn:
        return []
    longest = max(drawn, key=lambda row: (row[0], -row[1]))
    drawn.remove(longest)
    return [longest, *drawn[: AVERAGED - 1]]


def averaged_job(
    job: AblationJob, texts: Stream, running: RunSettings
) -> tuple[AblationJob, Stream]:
    """Choose the examples whose mean is taken.

    Args:
        job: of the run.
        texts: its examples.
        running: with a folder.

    Returns:
        The job with these examples, and all examples once more.
    """
    folder = RunFolder(running.out or "")
    folder.begin()
    own = {field.name: getattr(job, field.name) for field in fields(job)}
    # Examples that cannot be read are told of once, by the run itself.
    beside = replace(running, out=folder.path / MEANS_FOLDER, on_error=lambda *_: None)
    chosen = beside.result(AveragedJob(**own), texts, {})
    return replace(job, averaged=chosen), RunFolder(folder.path / MEANS_FOLDER).texts()
