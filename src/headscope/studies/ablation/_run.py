"""Running a task without each head, batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
from torch import nn

from headscope._progress import Progress
from headscope.errors import FileError
from headscope.interventions import Intervention, intervene
from headscope.interventions.importance import one_of
from headscope.interventions.plan import ModelPlan
from headscope.studies.ablation._journal import Journal
from headscope.studies.ablation._result import Cell
from headscope.studies.ablation.prefix import Prefix
from headscope.tasks import Task

SHARED = "layers below the changed one were computed once"
WHOLE = "the whole model was run every time"
CLOSE = 1e-3
"""How far scores of the same model may lie apart on another machine."""


class TaskRun:
    """A task on a model.

    Args:
        model: in evaluation mode.
        task: what it is to be good at.
        plan: its attention layers.
        make: makes the intervention of stack, layer and heads.
    """

    def __init__(
        self, model: nn.Module, task: Task, plan: ModelPlan, make: Callable[..., Intervention]
    ) -> None:
        self._model, self._task, self._make = model, task, make
        self._places = {(place.stack, place.layer): place for place in plan.places}
        self._prefix = Prefix(model, plan.places)

    def all(self, cells: Sequence[Cell], journal: Journal, *, share: bool, progress: bool) -> str:
        """Find what is not in the journal yet; tell whether layers were passed over.

        Raises:
            FileError: where the intact model does not give what the journal holds.
        """
        shares, is_checked = share, False
        with _bar(len(self._task.batches) * len(cells), journal, progress) as step:
            for number in range(len(self._task.batches)):
                missing = [cell for cell in cells if (number, cell) not in journal]
                if _is_done(number, missing, journal):
                    continue
                if shares and not is_checked:
                    shares, is_checked = self._can_share(number), True
                self._intact(number, journal, shares=shares and bool(missing))
                for cell in missing:
                    journal.add(number, cell, self._without(number, cell, shares=shares))
                    step()
        self._prefix.forget()
        return _sharing_text(self._prefix.reason, asked=share, shares=shares)

    def _can_share(self, number: int) -> bool:
        """Whether passing over layers leaves what the model returns as it is, tried on a batch."""
        self._prefix.check(lambda: self._task.values(self._model, number), self._places.values())
        return self._prefix.works

    def _intact(self, number: int, journal: Journal, *, shares: bool) -> None:
        with self._prefix.recording() if shares else nullcontext():
            scores = self._task.values(self._model, number)
        if (number, None) not in journal:
            journal.add(number, None, scores)
            return
        kept = journal[number, None]
        if kept.shape != scores.shape or not np.allclose(
            kept, scores, rtol=CLOSE, atol=CLOSE, equal_nan=True
        ):
            raise FileError(
                "The file to resume holds other scores of the intact model on batch "
                f"{number}; was the score changed? Name another file"
            )

    def _without(self, number: int, cell: Cell, *, shares: bool) -> np.ndarray:
        place = self._places[cell[:2]]
        with (
            intervene(self._model, one_of(cell, self._make)),
            self._prefix.sharing(place) if shares else nullcontext(),
        ):
            return self._task.values(self._model, number)


def _sharing_text(reason: str, *, asked: bool, shares: bool) -> str:
    if not asked:
        return WHOLE
    return SHARED if shares else f"{WHOLE}: {reason}"


def _is_done(number: int, missing: list[Cell], journal: Journal) -> bool:
    # Batch 0 is run in any case: its intact scores show whether the file to resume from is of this
    # model and task.
    return number > 0 and not missing and (number, None) in journal


@contextmanager
def _bar(total: int, journal: Journal, progress: bool) -> Generator[Callable[[], Any]]:
    """How far it has come, where that is to be shown; gives what is called at every step."""
    with Progress("Disabling heads", "run", total, done=journal.changed, shows=progress) as shown:
        yield shown.step
