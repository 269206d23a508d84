"""What a run of `ablate` does to each example, and the result of its parts."""

from __future__ import annotations

import hashlib
import inspect
import json
import pickle
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from headscope.capturing.loading.load import display_name
from headscope.capturing.many import OF_ONE_INPUT, reason_of
from headscope.capturing.run import at_rest, unwrapped
from headscope.capturing.threads import one_at_a_time
from headscope.corpus import CorpusText, Engine, FinishedRun, Kept, PartTally, key_of, this_process
from headscope.errors import InterventionError, RunError
from headscope.interventions.means import RecordMeans
from headscope.interventions.plan import ModelPlan
from headscope.interventions.session import plan_on
from headscope.studies.ablation._averaged import averaged
from headscope.studies.ablation._examples import row_of
from headscope.studies.ablation._journal import Journal
from headscope.studies.ablation._result import Ablation, Cell
from headscope.studies.ablation._run import TaskRun
from headscope.studies.ablation._study import (
    MEANS,
    By,
    ablation_of,
    cells_of,
    median_length,
    parse_by,
    without_cache,
)
from headscope.studies.ablation._summed_parts import summed_likeness, summed_parts
from headscope.studies.shared._corpus_job import ModelJob, as_given, check_measured
from headscope.studies.shared._corpus_model import one_thread
from headscope.studies.shared._counted_texts import NONE, has_many, row_name
from headscope.tasks import Task, function_of, parse_task, task_of_rows, whole_task

JUDGED = ("confidence", "alpha", "correction")
"""Options of a result that its examples are judged by."""
TRIED = 2
"""Examples that are tried out before a run: each is scored alone, so that nothing can depend on its
company.
"""


@dataclass(frozen=True, kw_only=True)
class AblationJob(ModelJob):
    """What a run of `ablate` does to each example.

    Args:
        task: name of a task, or a function that makes one.
        by: see `ablate`.
        disabled: heads, layers, stack and whether layers are shared, by name.
        masked: see `AblationOptions`.
        chosen: the heads that a screen left, of all that were to be disabled; None without one.
        averaged: the examples whose mean takes the place of what a head does, where one does.
    """

    STUDY: ClassVar[str] = "ablate"
    task: str | Callable[..., Any]
    by: str | By
    disabled: tuple[tuple[str, Any], ...] = ()
    masked: bool | None = None
    chosen: tuple[Cell, ...] | None = None
    averaged: tuple[Any, ...] = ()

    @property
    def stage(self) -> str:
        """After a screen, or the choice of examples for a mean, the second of two."""
        if self.averaged:
            return "2 of 2, without each head"
        return "" if self.chosen is None else "2 of 2, without each chosen head"

    @property
    def takes_means(self) -> bool:
        """Whether heads do what they do on average over examples."""
        return isinstance(self.by, str) and self.by in MEANS

    def options(self) -> dict[str, Any]:
        """What the numbers depend on, known before a model is loaded."""
        disabled = {name: _listed(chosen) for name, chosen in self.disabled if name != "share"}
        over = _digest(self.averaged) if self.averaged else None
        return super().options() | {
            "task": _called(self.task),
            "code of the task": _code_of(self.task),
            "by": _called(self.by),
            "masked": self.masked,
            "means over": over,
            "screened": None if self.chosen is None else [list(cell) for cell in self.chosen],
            **disabled,
        }

    def begin(self) -> AblationMeasurer:
        """The model, loaded once in a process, and what disables its heads."""
        return AblationMeasurer(self, *self.loaded())

    def loaded(self) -> tuple[Any, Any]:
        """The model that is run, and its tokenizer."""
        model, tokenizer = self.model.load()
        return unwrapped(model), tokenizer

    def check(self, measurer: Any, texts: Sequence[CorpusText]) -> dict[str, Any]:
        """Raise where the model is not fit for the task, or no example of the sample can be read;
        what the task says of itself.
        """
        errors: list[Exception] = []
        for text in texts:
            try:
                task = self.task_of(measurer, text)
                known = measurer.task_facts(task)
            except OF_ONE_INPUT as error:
                errors.append(reason_of(error))
                continue
            if not self.allow_unfit:
                task.check(measurer.model)
            return known
        if errors:
            raise errors[0]
        return {}

    def check_engine(self, engine: Engine) -> None:
        """Raise where a function could not go to the processes of an engine."""
        if engine.name == this_process().name:
            return
        for what, given in (("task", self.task), ("by", self.by)):
            try:
                pickle.dumps(given)
            except (pickle.PicklingError, AttributeError, TypeError) as error:
                raise RunError(
                    f"The function given as {what} cannot go to other processes ({error}); define "
                    "it in a module, with def and not as a lambda, or leave workers= and "
                    "executor= out"
                ) from None

    def task_of(self, measurer: Any, text: CorpusText) -> Task:
        """The task of one example.

        Raises:
            HeadscopeError: where it cannot be read.
        """
        example, name = text.given, self.task
        if callable(name) or ":" in name:
            make = name if callable(name) else function_of(name)
            task = parse_task(make(measurer.model, measurer.tokenizer, [as_given(example)]))
            if task.finish is not None or task.totals:
                raise InterventionError(
                    f"The task {task.name!r} has numbers of all examples together (finish, "
                    "totals), which are not put together from parts; leave them out"
                )
            return task
        options: dict[str, Any] = {"truncate": self.truncate, "allow_unfit": self.allow_unfit}
        if name == "masked-word":
            # Drawn by what the text says, so that its place among the others decides nothing.
            options["seed"] = key_of("masked words", text.content, bits=56)
        if name == "minimal-pairs":
            options["masked"] = self.masked
        rows = [row_of(example)]
        return task_of_rows(name, measurer.model, measurer.tokenizer, (rows, "it"), **options)

    def tally(self, measurer: Any) -> PartTally:
        """No example."""
        return ScoredPart()

    def made(self, finished: FinishedRun, judging: Mapping[str, Any]) -> Any:
        """The `Ablation` of all parts; examples in the order of their names."""
        if has_many(finished):
            return self._of_many(finished, judging)
        kept = [part for part in finished.parts() if "none" not in part[0]]
        check_measured(finished, any_text=bool(kept))
        names: list[str] = []
        groups: list[str | None] = []
        for state, _ in kept:
            names += state["names"]
            groups += state["groups"]
        order = sorted(range(len(names)), key=names.__getitem__)
        # [example cell column], the intact model first.
        values = np.concatenate([arrays["values"] for _, arrays in kept])[order]
        lengths = np.concatenate([arrays["tokens"] for _, arrays in kept])
        known = finished.checked
        name = self.task if isinstance(self.task, str) else ""
        description = known["name"], known["metric"], known["columns"]
        task = whole_task(name, description, values[:, 0])
        # They are numbered after the others, as their places in the data are not kept.
        lost = sum(each.get("times", 0) for each in finished.failed)
        task = replace(task, left_out=dict.fromkeys(range(len(names), len(names) + lost), ""))
        if any(group is not None for group in groups):
            task = replace(task, groups=tuple(groups[at] for at in order))
        facts = _facts_of(known, judging)
        facts["tokens"] = None if np.isnan(lengths).any() else float(np.median(lengths))
        by_cell = values.transpose(1, 0, 2).copy()
        return ablation_of(task, _cells_of(known), by_cell, dict(judging), facts=facts)

    def _of_many(self, finished: FinishedRun, judging: Mapping[str, Any]) -> Ablation:
        """The `Ablation` of more examples than are held: their sums, one part after the other."""
        known = finished.checked
        name = self.task if isinstance(self.task, str) else ""

        def parts() -> Iterator[Kept]:
            return (part for part in finished.parts() if "none" not in part[0])

        if name == "likeness":
            sums, totals = summed_likeness(parts)
        else:
            sums, totals = summed_parts(parts(), name, known["columns"])
        cells, nothing = _cells_of(known), np.empty(0)
        facts = {"metric": known["metric"]} | _facts_of(known, judging) | totals
        return Ablation(
            cells,
            np.empty((0, len(cells))),
            nothing,
            task=known["name"],
            sums=sums,
            **{name: judging[name] for name in JUDGED if name in judging},
            **facts,
        )

    def with_control(self, result: Ablation, control: Ablation) -> Ablation:
        """The result with that of random weights beside it."""
        # One of them may have left out more examples than the other.
        if result.sums is not None or control.sums is not None:
            result, control = result.in_sums(), control.in_sums()
        return replace(result, control=replace(control, totals={}, estimates=None))


class AblationMeasurer:
    """A model, and what disables its heads.

    Args:
        job: says what is disabled.
        model: with the head that the task needs.
        tokenizer: its tokenizer.
    """

    most_tried: int = TRIED

    def __init__(self, job: AblationJob, model: Any, tokenizer: Any) -> None:
        self.model, self.tokenizer = model, tokenizer
        self._job = job
        self._plan: ModelPlan | None = None
        self._run: TaskRun | None = None
        self._cells: tuple[Cell, ...] = ()
        self._shared = ""
        self._means: RecordMeans | None = None

    def values_of(
        self, texts: Sequence[CorpusText], failed: Callable[[int, Exception], None]
    ) -> Iterator[tuple[int, np.ndarray]]:
        """Of each example, the values ``[cell column]`` of the intact model and without each cell,
        and its length as one row more; see `headscope.corpus.Measurer`.
        """
        for number, text in enumerate(texts):
            try:
                task = self._job.task_of(self, text)
                values = self._values(task)
            except OF_ONE_INPUT as error:
                failed(number, reason_of(error))
                continue
            length = median_length(task)
            row = np.full((1, values.shape[1]), np.nan if length is None else length)
            yield number, np.concatenate([values, row])

    def task_facts(self, task: Task) -> dict[str, Any]:
        """What a result says of the task and of what was disabled."""
        self._values(task)
        way = self._make(task)(stack=self._cells[0][0], layer=self._cells[0][1]).does
        return {
            "name": task.name,
            "metric": task.metric,
            "columns": list(task.columns),
            "cells": [list(cell) for cell in self._cells],
            "by": way,
            "model": display_name(self.model),
            "shared": self._shared,
        }

    def _values(self, task: Task) -> np.ndarray:
        with (
            one_thread(),
            one_at_a_time(self.model),
            at_rest(self.model),
            without_cache(self.model),
        ):
            if self._plan is None:
                self._plan = plan_on(self.model, lambda: task.values(self.model, 0))
                self._cells = self._chosen(cells_of(self._plan, dict(self._job.disabled)))
            make = self._make(task)
            if self._run is None:
                self._run = TaskRun(self.model, task, self._plan, make)
            # What was found out about the model on the first example is not tried again.
            run = self._run.of(task, make)
            with closing(Journal(None, {})) as journal:
                share = dict(self._job.disabled).get("share", True)
                self._shared = run.all(self._cells, journal, share=share, progress=False)
                values = np.stack([journal[0, cell] for cell in (None, *self._cells)])
        if len(task.batches) != 1 or values.shape[1] != 1:
            raise InterventionError(
                f"The task {task.name!r} of one example has {values.shape[1]} scores in "
                f"{len(task.batches)} batches; give a task of the examples that it is given"
            )
        if not np.isfinite(values).all():
            raise InterventionError(f"The score of {task.name!r} is not finite")
        return values[:, 0]

    def _chosen(self, cells: tuple[Cell, ...]) -> tuple[Cell, ...]:
        """Of these, whole layers and the heads that a screen left."""
        if self._job.chosen is None:
            return cells
        left = set(self._job.chosen)
        return tuple(cell for cell in cells if cell[2] < 0 or cell in left)

    def _make(self, task: Task) -> By:
        if not self._job.takes_means:
            return parse_by(self._job.by, self.model, task)
        means, change = self._averaged(), MEANS[str(self._job.by)]
        return lambda **where: change(records=means, **where)

    def _averaged(self) -> RecordMeans:
        """What heads do on average, taken once in a process: every one finds the same."""
        if self._means is None:
            means = RecordMeans(outputs=self._job.by == "mean output")
            for given in self._job.averaged:
                for record in averaged(self.model, self._job.task_of(self, CorpusText(given))):
                    means.update(record)
            self._means = means
        return self._means


class ScoredPart:
    """The examples of a part, each with its scores."""

    def __init__(self) -> None:
        # Nothing is kept of a document beside its examples, so that all may be open at once.
        self.most_open: int = sys.maxsize
        self._rows: dict[str, tuple[str | None, np.ndarray]] = {}

    def update(self, text: CorpusText, values: np.ndarray) -> None:
        """Count an example, as often as it is there."""
        for number in range(text.times):
            self._rows[row_name(text, number)] = text.group, values

    def close(self) -> None:
        """Nothing is open."""

    def kept(self) -> Kept:
        """Names, documents, values ``[example cell column]`` and lengths ``[example]``."""
        if not self._rows:
            return NONE
        names = sorted(self._rows)
        rows = np.stack([self._rows[name][1] for name in names])
        groups = [self._rows[name][0] for name in names]
        arrays = {"values": rows[:, :-1].copy(), "tokens": rows[:, -1, 0].copy()}
        return {"names": names, "groups": groups}, arrays


def _cells_of(known: Mapping[str, Any]) -> tuple[Cell, ...]:
    return tuple((stack, layer, head) for stack, layer, head in known["cells"])


def _facts_of(known: Mapping[str, Any], judging: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a result that do not come from its examples."""
    facts = {name: known[name] for name in ("by", "model", "shared")}
    return facts | {"estimates": judging.get("estimates")}


def _listed(chosen: Any) -> Any:
    if not isinstance(chosen, tuple):
        return chosen
    return [list(one) if isinstance(one, tuple) else one for one in chosen]


def _called(given: Any) -> str:
    """What tells one task, or one way of disabling heads, from another."""
    if isinstance(given, str):
        return given
    return f"{getattr(given, '__module__', '')}.{getattr(given, '__qualname__', repr(given))}"


def _digest(examples: tuple[Any, ...]) -> str:
    return hashlib.sha256(json.dumps(examples, sort_keys=True).encode()).hexdigest()[:16]


def _code_of(task: Any) -> str:
    """A short name of the code of one's own task; empty for those of the library, or where it is
    not known.
    """
    if isinstance(task, str):
        code = Path(task.rpartition(":")[0]).read_bytes() if ":" in task else b""
    else:
        try:
            code = inspect.getsource(task).encode()
        except (OSError, TypeError):
            code = b""
    return hashlib.sha256(code).hexdigest()[:8] if code else ""
