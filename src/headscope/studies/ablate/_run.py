"""Running a task without each head, batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import nn

from headscope._progress import Progress
from headscope.capturing import capture_encoded
from headscope.capturing.device import one_at_a_time
from headscope.capturing.observers import hook_before
from headscope.capturing.run import at_rest, uncompiled
from headscope.errors import CaptureError, InterventionError
from headscope.interventions import (
    Intervention,
    Mean,
    MeanOutput,
    RecordMeans,
    Uniform,
    Zero,
    intervene,
)
from headscope.interventions.importance import gate_slopes, one_of
from headscope.interventions.plan import LayerPlace, ModelPlan
from headscope.interventions.session import plan_on
from headscope.studies.ablate._result import Cell
from headscope.studies.ablate.sharing import Sharing
from headscope.studies.shared._corpus_model import changed_name
from headscope.tasks import Task

SHARED = "layers below the changed one were computed once"
WHOLE = "the whole model was run every time"
Values = Float[np.ndarray, "example column"]
By = Callable[..., Intervention]
WAYS: dict[str, By] = {"zero": Zero, "uniform": Uniform}
MEANS: dict[str, By] = {"mean attention": Mean, "mean output": MeanOutput}


class DisabledHeads:
    """A model without each of its heads and layers, on one task or several; what is found out about
    it on the first is not tried again.

    Args:
        model: with the head that the tasks need.
        how: ``by``, ``heads``, ``layers``, ``stack`` and ``share`` of `ablate`; ``chosen``, the
            heads that were left, or None.
        averaged: adds what heads do on all examples.
    """

    def __init__(
        self, model: Any, how: Mapping[str, Any], averaged: Callable[[RecordMeans], RecordMeans]
    ) -> None:
        self.model, self.cells, self.does = model, (), ""
        self._how, self._averaged = how, averaged
        self._places: dict[tuple[str, int], LayerPlace] = {}
        self._make: By | None = None

    @property
    def heads(self) -> list[Cell]:
        """Those that are no whole layers."""
        return [cell for cell in self.cells if cell[2] >= 0]

    def facts_of(self, task: Task) -> dict[str, Any]:
        """What all examples of an ablation share."""
        named = {"task": task.name, "metric": task.metric, "columns": list(task.columns)}
        named |= {"by": self.does, "model": changed_name(self.model)}
        return named | {"cells": [*map(list, self.cells)]}

    def find(self, task: Task) -> None:
        """Find which layers there are and which modules compute them, by one run."""
        if self._places:
            return
        plan, chosen = plan_on(self.model, lambda: task.values(self.model, 0)), self._how["chosen"]
        self._places = {(place.stack, place.layer): place for place in plan.places}
        self._sharing = Sharing(self.model, plan.places)
        if not self._how.get("share", True):
            self._sharing.reason, self._sharing.is_checked = WHOLE, True
        self.cells = cells_of(plan, self._how)
        if chosen is not None:
            self.keep(chosen)

    def keep(self, heads: Iterable[Any]) -> None:
        """Leave these heads, and all whole layers."""
        left = set(map(tuple, heads))
        self.cells = tuple(cell for cell in self.cells if cell[2] < 0 or cell in left)

    def slopes(self, task: Task) -> Float[np.ndarray, "example head"]:
        """The slope of each example's score with the output of each head times ``xi``, at ``xi =
        1``: minus what the score would change by without it, to first order. One forward and one
        backward pass for all heads together.

        Source: Michel et al. 2019, section 4, equation 2, without the absolute value; the same
        idea as attribution patching (Syed et al. 2023).

        Raises:
            InterventionError: where the score has no gradient.
        """
        self.find(task)
        stacks = tuple(dict.fromkeys(stack for stack, _, _ in self.heads))
        cells, slopes = gate_slopes(self.model, task, stacks)
        return slopes[:, [cells.index(cell) for cell in self.heads]]

    def values(
        self, task: Task, *, progress: bool = False
    ) -> tuple[Float[np.ndarray, "cell example column"], str]:
        """The values of a task by the intact model and without each cell, and whether layers were
        passed over.

        Args:
            task: that scores the examples.
            progress: whether to show a bar on terminals.
        """
        self.find(task)
        if self._make is None:
            self._make = parse_by(self._how["by"], self._averaged)
            self.does = self._make(stack=self.cells[0][0], layer=self.cells[0][1]).does
        every: dict[Cell | None, list[Values]] = {cell: [] for cell in (None, *self.cells)}
        runs = len(task.batches) * len(self.cells)
        bar = Progress("Disabling heads", "run", runs, shows=progress)
        # A compiled layer would not ask for what stands in the place of its forward.
        with uncompiled(self.model), bar:
            for number in range(len(task.batches)):
                every[None].append(self._intact(task, number))
                for cell in self.cells:
                    place, change = self._places[cell[:2]], one_of(cell, self._make)
                    with intervene(self.model, change), self._sharing.sharing(place):
                        every[cell].append(task.values(self.model, number))
                    bar.step()
        self._sharing.forget()
        reason = self._sharing.reason
        shared = {"": SHARED, WHOLE: WHOLE}.get(reason, f"{WHOLE}: {reason}")
        return np.stack([task.joined(own) for own in every.values()]), shared

    def _intact(self, task: Task, number: int) -> Values:
        """The values of the intact model; what its layers are given and return is kept."""

        def act() -> np.ndarray:
            return task.values(self.model, number)

        if not self._sharing.is_checked:
            return self._sharing.check(act, self._places.values())
        with self._sharing.recording():
            return act()


@contextmanager
def undisturbed(model: nn.Module) -> Generator[None]:
    """A model for this thread alone, in evaluation mode and without a cache: layers that write to
    one cannot be passed over.
    """
    config: Any = getattr(model, "config", None)
    before = getattr(config, "use_cache", None)
    with one_at_a_time(model), at_rest(model):
        if before is None:
            yield
            return
        config.use_cache = False
        try:
            yield
        finally:
            config.use_cache = before


def means_of(model: nn.Module, task: Task, means: RecordMeans) -> RecordMeans:
    """Add what heads do on every example of a task.

    Args:
        model: in evaluation mode.
        task: whose examples it reads.
        means: what is added to.

    Raises:
        InterventionError: where what the task runs cannot be captured.
    """
    for number in range(len(task.batches)):
        for arguments in _arguments(model, task, number):
            try:
                records = capture_encoded(model, None, arguments, keep=("weights", "values"))
            except CaptureError as error:
                raise InterventionError(
                    f"The attention of the examples cannot be averaged: {error}; give "
                    "by=functools.partial(headscope.interventions.Mean, records=...) with "
                    "records that you captured"
                ) from error
            for record in records:
                means.update(record)
    return means


def _arguments(model: nn.Module, task: Task, number: int) -> list[dict[str, torch.Tensor]]:
    """The tensors that the model is given by name on a batch, run by run; none where no example of
    it has a score.
    """
    arguments: list[dict[str, torch.Tensor]] = []

    def note(_: nn.Module, args: tuple, options: dict[str, Any]) -> None:
        given = options.items()
        arguments.append(
            {name: each for name, each in given if isinstance(each, torch.Tensor) and each.ndim}
        )

    with hook_before(model, note):
        values = task.values(model, number)
    return arguments if np.isfinite(values).any() else []


def cells_of(plan: ModelPlan, options: Mapping[str, Any]) -> tuple[Cell, ...]:
    """What is disabled, one after the other.

    Raises:
        InterventionError: where a head, layer or stack does not exist, or nothing is left.
    """
    stack = options.get("stack")
    names = [stack] if stack else plan.stacks
    places = [place for name in names for place in plan.chosen(name, None)]
    heads = [(place.stack, place.layer, head) for place in places for head in range(place.heads)]
    # A layer as a whole has the head -1.
    layers = [(place.stack, place.layer, -1) for place in places]
    cells = _among(heads, options.get("heads", True), "head")
    cells += _among(layers, options.get("layers", True), "layer")
    if not cells:
        raise InterventionError(
            "Nothing is to be disabled; leave heads or layers as True, or name some"
        )
    return tuple(cells)


def _among(cells: list[Cell], wanted: Any, what: str) -> list[Cell]:
    """The heads, or whole layers, that are wanted: all, none, or by layer and head, or by layer."""
    if isinstance(wanted, bool):
        return cells if wanted else []
    names = [f"{layer}-{head}" if head >= 0 else str(layer) for _, layer, head in cells]
    asked = ["-".join(map(str, each)) if what == "head" else str(each) for each in wanted]
    missing = sorted(set(asked) - set(names))
    if missing:
        raise InterventionError(
            f"There is no {what} {missing[0]}; there are {names[0]} to {names[-1]}"
        )
    return [cell for cell, name in zip(cells, names, strict=True) if name in asked]


def parse_by(by: Any, averaged: Callable[[RecordMeans], RecordMeans]) -> By:
    """What makes the intervention of stack, layer and heads.

    Args:
        by: see `ablate`.
        averaged: adds what heads do on all examples.
    """
    if isinstance(by, str) and by in MEANS:
        means = averaged(RecordMeans(outputs=by == "mean output"))
        return lambda **where: MEANS[by](records=means, **where)
    if isinstance(by, str) and by in WAYS:
        return WAYS[by]
    if isinstance(by, str) or not callable(by):
        ways = ", ".join(map(repr, (*WAYS, *MEANS)))
        raise InterventionError(f"by is {by!r}; give {ways}, or what makes an intervention")
    return by
