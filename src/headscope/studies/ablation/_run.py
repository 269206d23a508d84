"""Running a task without each head, batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from copy import copy
from typing import Any

import numpy as np
from torch import nn

from headscope._progress import Progress
from headscope.capturing.run import uncompiled
from headscope.capturing.seam import Copies, sessions
from headscope.capturing.walk import one_pass
from headscope.capturing.watching.modes import mode_off
from headscope.errors import FileError
from headscope.interventions import Intervention, intervene
from headscope.interventions.copies import in_copies, may_be_copied
from headscope.interventions.importance import one_of
from headscope.interventions.plan import LayerPlace, ModelPlan
from headscope.studies.ablation._journal import Journal
from headscope.studies.ablation._result import Cell
from headscope.studies.ablation._stacks import StackedPass, Stacks
from headscope.studies.ablation.prefix import Prefix
from headscope.tasks import Task

Add = Callable[[Cell, np.ndarray], None]
"""Is told of the scores without a cell."""
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
        self._stacks = Stacks(self._prefix)

    def of(self, task: Task, make: Callable[..., Intervention]) -> TaskRun:
        """The same for another task: what was found out about the model is not tried again."""
        other = copy(self)
        other._task, other._make = task, make
        return other

    def all(self, cells: Sequence[Cell], journal: Journal, *, share: bool, progress: bool) -> str:
        """Find what is not in the journal yet; tell whether layers were passed over.

        Raises:
            FileError: where the intact model does not give what the journal holds.
        """
        total = len(self._task.batches) * len(cells)
        # A compiled layer would not ask for what stands in the place of its forward.
        with one_pass(), uncompiled(self._model), _bar(total, journal, progress) as step:
            for number in range(len(self._task.batches)):
                missing = [cell for cell in cells if (number, cell) not in journal]
                if _is_done(number, missing, journal):
                    continue
                scores = self._intact(number, shares=share, records=bool(missing))
                _add_intact(number, journal, scores)
                shares = share and self._prefix.works

                def add(cell: Cell, values: np.ndarray, number: int = number) -> None:
                    journal.add(number, cell, values)
                    step()

                for own in _by_place(missing).values():
                    self._change(number, own, add, shares=shares)
        self._prefix.forget()
        return _sharing_text(self._prefix.reason, asked=share)

    def _intact(self, number: int, *, shares: bool, records: bool) -> np.ndarray:
        """The scores of the intact model; layers are kept where they are needed.

        The first time it is found out whether passing over layers, and running copies, leaves what
        the model returns as it is.
        """

        def act() -> np.ndarray:
            return self._task.values(self._model, number)

        if shares and not self._prefix.is_checked:
            return self._prefix.check(act, self._places.values())
        with self._prefix.recording() if shares and records else nullcontext():
            return act()

    def _change(self, number: int, cells: Sequence[Cell], add: Add, *, shares: bool) -> None:
        """Find the scores of a batch without each of the cells of one layer."""
        place = self._places[cells[0][:2]]
        changes = [one_of(cell, self._make) for cell in cells]
        # Changes that a user makes meanwhile are of the batch as it is.
        if sessions() or not all(may_be_copied(change, place) for change in changes):
            for cell, change in zip(cells, changes, strict=True):
                with intervene(self._model, change):
                    add(cell, self._without(number, place, shares=shares))
            return
        copies, rest = Copies(), range(len(cells))
        with ExitStack() as block:
            session = block.enter_context(intervene(self._model, *in_copies(changes, copies)))
            if session.operators is not None:
                # None of these changes is made in torch's functions: none need be told of.
                block.enter_context(mode_off(session.operators))
            while rest:
                size = self._stacks.size(place, len(rest)) if shares else 1
                stacked = self._stacks.stacked(place, copies, rest[:size])
                for at in rest[:size]:
                    add(cells[at], self._of_copy(number, stacked, at, shares=shares))
                rest = rest[size:]

    def _of_copy(self, number: int, stacked: StackedPass, at: int, *, shares: bool) -> np.ndarray:
        """The scores of a batch with one of several changes of a layer."""
        if stacked.count > 1 and not stacked.is_missed:
            with stacked.of_copy(at):
                values = self._task.values(self._model, number)
            if not stacked.is_missed:
                return values
            self._stacks.is_given_up = True
        stacked.copies.numbers = (at,)
        return self._without(number, stacked.place, shares=shares)

    def _without(self, number: int, place: LayerPlace, *, shares: bool) -> np.ndarray:
        """The scores of a batch with what a place is changed in now."""
        with self._prefix.sharing(place) if shares else nullcontext():
            return self._task.values(self._model, number)


def _add_intact(number: int, journal: Journal, scores: np.ndarray) -> None:
    """Note the scores of the intact model, or compare them with those that were noted."""
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


def _by_place(cells: Sequence[Cell]) -> dict[tuple[str, int], list[Cell]]:
    """The heads of each layer, and the layer as a whole."""
    places: dict[tuple[str, int], list[Cell]] = {}
    for cell in cells:
        places.setdefault(cell[:2], []).append(cell)
    return places


def _sharing_text(reason: str, *, asked: bool) -> str:
    if not asked:
        return WHOLE
    return f"{WHOLE}: {reason}" if reason else SHARED


def _is_done(number: int, missing: list[Cell], journal: Journal) -> bool:
    # Batch 0 is run in any case: its intact scores show whether the file to resume from is of this
    # model and task.
    return number > 0 and not missing and (number, None) in journal


@contextmanager
def _bar(total: int, journal: Journal, progress: bool) -> Generator[Callable[[], Any]]:
    """How far it has come, where that is to be shown; gives what is called at every step."""
    with Progress("Disabling heads", "run", total, done=journal.changed, shows=progress) as shown:
        yield shown.step
