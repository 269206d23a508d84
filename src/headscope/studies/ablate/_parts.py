"""`ablate` over a corpus: its examples scored one by one, by one process or by many."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from headscope.capturing.facts import display_name
from headscope.capturing.many import OF_ONE_INPUT, reason_of
from headscope.capturing.run import at_rest, unwrapped
from headscope.capturing.threads import one_at_a_time
from headscope.corpus import EACH, WHOLE, CorpusText, Counts, Sums, key_of
from headscope.errors import HeadscopeError, InterventionError, RecordError, RunError, TextError
from headscope.evidence.chance import CORRECTIONS
from headscope.evidence.groups import group_of
from headscope.interventions import RecordMeans
from headscope.interventions.plan import ModelPlan
from headscope.interventions.session import plan_on
from headscope.record import part_of
from headscope.storage import read_groups
from headscope.studies.ablate._ablate import (
    JUDGING,
    MEANS,
    ablation_of,
    cells_of,
    check_screen,
    estimates_of,
    left_by,
    lengths_of,
    parse_by,
)
from headscope.studies.ablate._result import Ablation, Cell, counts_of
from headscope.studies.ablate._run import NotedValues, TaskRun, means_of, slopes_of, without_cache
from headscope.studies.shared._fold import Fold, Readers, Reading, input_as_given
from headscope.studies.shared._fold_run import (
    RANDOM,
    RESULT,
    KeptArrays,
    Stream,
    texts_in_parts,
)
from headscope.studies.shared._folded import taken
from headscope.tasks import (
    Task,
    check_task,
    function_of,
    judged_pairs,
    parse_task,
    task_of_rows,
    total_counts,
    totals_of_counts,
)

ALIKE = "likeness"
"""The task whose pairs are judged together."""
SHARED = f"{WHOLE}shared/"
"""Prefix of a count of examples: whether layers were passed over; where not, why."""
HEADS = {
    "next-word": "next words",
    "translation": "next words",
    "masked-word": "masked words",
    "minimal-pairs": "sentences",
    "classification": "classifier",
    "repeats": "next words",
}
"""What a task needs of a model."""


@dataclass(frozen=True, eq=False)
class Scored:
    """What was found of one example: its counts, its length, and what all examples share."""

    counts: Counts
    length: int = 0
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(eq=False)
class Before:
    """What a fold gives that comes before the scores: arrays, and why examples were left out."""

    arrays: dict[str, np.ndarray]
    facts: dict[str, Any]
    left_out: dict[str, str] = field(default_factory=dict)


def _task_of(readers: Readers, row: Any, how: Mapping[str, Any], reading: Reading) -> Task:
    """The task of one example.

    Raises:
        HeadscopeError: where it cannot be read.
    """
    name = how["task"]
    if callable(name) or ":" in name:
        make = name if callable(name) else function_of(name)
        task = parse_task(make(*readers, [row]))
        if task.finish is not None or task.totals:
            raise InterventionError(
                f"The task {task.name!r} has numbers of all examples together (finish, totals), "
                "which are not put together from parts; leave them out"
            )
        return task
    options = {"truncate": reading["truncate"], "cuts": reading["cuts"]}
    options["allow_unfit"] = reading["max_unknown"] >= 1
    if name == "masked-word":
        # Drawn by what the text says, so that its place among the others decides nothing.
        options["seed"] = key_of("masked words", CorpusText(row).content, bits=56)
    if name == "minimal-pairs":
        options["masked"] = how["masked"]
    return task_of_rows(name, *readers, ([row_of(row)], "it"), **options)


class DisabledHeads:
    """A model whose heads are disabled, and what was found out about it on the first example.

    Args:
        model: with the head that the task needs.
        how: options of the fold.
    """

    def __init__(self, model: Any, how: Mapping[str, Any]) -> None:
        self.model, self._how = model, how
        self._cells: tuple[Cell, ...] = ()
        self._run: TaskRun | None = None
        self._does = ""

    def _plan(self, task: Task) -> ModelPlan:
        plan, left = plan_on(self.model, lambda: task.values(self.model, 0)), self._how["chosen"]
        cells = cells_of(plan, self._how)
        self._cells = tuple(
            cell for cell in cells if left is None or cell[2] < 0 or cell in parse_cells(left)
        )
        return plan

    def means(self, task: Task) -> Scored:
        """What heads do on an example, which has a score: it may be too long for the model."""
        means = RecordMeans(outputs=self._how["by"] == "mean output")
        _check_finite(task, task.values(self.model, 0))
        arrays = means_of(self.model, task, means).arrays()
        return Scored({f"{WHOLE}{name}": array for name, array in arrays.items()})

    def slopes(self, task: Task) -> Scored:
        """The slope of the score of an example in every head."""
        if not self._cells:
            self._plan(task)
        heads = [cell for cell in self._cells if cell[2] >= 0]
        slopes = slopes_of(self.model, task, heads)
        if len(slopes) != 1 or not np.isfinite(slopes).all():
            raise InterventionError(f"The score of {task.name!r} has no finite slope")
        facts = {"task": task.name, "metric": task.metric, "cells": [list(cell) for cell in heads]}
        return Scored({"slopes": slopes[0]}, 0, facts)

    def scores(self, task: Task) -> Scored:
        """The scores of an example by the intact model and without each cell."""
        if self._run is None:
            plan = self._plan(task)
            make = parse_by(self._how["by"], self._averaged)
            self._run = TaskRun(self.model, task, plan, make)
            self._does = make(stack=self._cells[0][0], layer=self._cells[0][1]).does
        # What was found out about the model on the first example is not tried again.
        noted = NotedValues(None, {})
        shared = self._run.of(task).all(self._cells, noted, share=self._how["share"])
        values = np.stack([noted[0, cell] for cell in (None, *self._cells)])
        if len(task.batches) != 1 or values.shape[1] != 1:
            raise InterventionError(
                f"The task {task.name!r} of one example has {values.shape[1]} scores in "
                f"{len(task.batches)} batches; give a task of the examples that it is given"
            )
        _check_finite(task, values)
        facts = {
            "task": task.name,
            "metric": task.metric,
            "columns": list(task.columns),
            "cells": [list(cell) for cell in self._cells],
            "by": self._does,
            "model": display_name(self.model),
        }
        own, length = values[:, 0], int(lengths_of(task, 1)[0])
        counts: dict[str, Any] = {f"{SHARED}{shared}": np.array(1)}
        if self._how["task"] == ALIKE:
            # Pairs are judged together, when all are known.
            counts |= {f"{EACH}values": own, f"{EACH}length": np.array([length])}
        else:
            counts |= {**counts_of(own[:, 0]), **total_counts(str(self._how["task"]), own)}
        return Scored(counts, length, facts)

    def _averaged(self, _: RecordMeans) -> RecordMeans:
        outputs = self._how["by"] == "mean output"
        return RecordMeans.of_arrays(self._how["means"].load(), outputs=outputs)


def _records_of(
    readers: Readers, rows: Iterable[Any], how: Mapping[str, Any], reading: Reading, *, what: str
) -> Iterator[tuple[int, Scored]]:
    """What is found of each example: ``"means"``, ``"slopes"`` or ``"scores"``."""
    readers = unwrapped(readers[0]), readers[1]
    disabled = DisabledHeads(readers[0], how)
    # One list of cuts for all examples: it warns once.
    reading = reading | {"cuts": []}
    for number, row in enumerate(rows):
        try:
            task, model = _task_of(readers, row, how, reading), readers[0]
            with one_at_a_time(model), at_rest(model), without_cache(model):
                scored = getattr(disabled, what)(task)
        except OF_ONE_INPUT as error:
            reading["on_error"](number, reason_of(error))
        else:
            yield number, scored


def _check(
    readers: Readers,
    rows: Sequence[Any],
    how: Mapping[str, Any],
    *,
    allow_unfit: bool,
    truncate: bool,
    what: str,
) -> None:
    """Raise where the model is not fit for the task, or none of some examples can be read.

    Raises:
        HeadscopeError: of the first of them.
    """
    errors: list[HeadscopeError] = []
    reading: Reading = {"truncate": truncate, "max_unknown": float(allow_unfit), "cuts": []}
    reading["on_error"] = lambda _, error: errors.append(error)
    for row in rows:
        for _ in _records_of(readers, [row], how, reading, what=what):
            if not allow_unfit:
                _task_of(readers, row, how, reading).check(unwrapped(readers[0]))
            return
    if errors:
        raise errors[0]


def _counts_of(_: Any, scored: Scored, **__: Any) -> Counts:
    return scored.counts


def _told_of(scored: Scored, _: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
    return scored.length, scored.facts


def _means_of_sums(sums: Sums, *_: Any) -> Before:
    return Before({name.removeprefix(WHOLE): sums.total(name) for name in sums.names}, {})


def _slopes_of_sums(sums: Sums, *_: Any) -> Before:
    return Before({"slopes": sums.total("slopes") / len(sums)}, sums.facts)


def _result_of(sums: Sums, how: Mapping[str, Any], judging: Mapping[str, Any]) -> Ablation:
    """The result of the sums of all examples."""
    known, cells = sums.facts, parse_cells(sums.facts["cells"])
    shared = min(name.removeprefix(SHARED) for name in sums.names if name.startswith(SHARED))
    facts = {"by": known["by"], "model": known["model"], "shared": shared}
    if how["task"] == ALIKE:
        pairs = sorted(sums.each.items())
        # [cell example column], the intact model first.
        values = np.stack([part_of(own["values"]) for _, own in pairs], axis=1)
        lengths = [int(part_of(own["length"])[0]) for _, own in pairs]
        groups = [group for (_, group), _ in pairs]
        if len(set(groups)) == len(groups):
            groups = None
        task = replace(judged_pairs(values[0]), groups=groups)
        return ablation_of(task, cells, values, judging, facts=facts, lengths=lengths)
    counts = {each: sums.total(each) for each in sums.names}
    name = how["task"] if isinstance(how["task"], str) else ""
    totals = totals_of_counts(name, known["columns"], counts, len(sums))
    named = {"task": known["task"], "metric": known["metric"]}
    return Ablation(cells, sums, totals=totals, **named, **facts, **judging)


def parse_cells(listed: Iterable[Any]) -> tuple[Cell, ...]:
    """Cells as a file of JSON gives them back."""
    return tuple((stack, layer, head) for stack, layer, head in listed)


def _fold_of(name: str, what: str, result_of: Callable[..., Any], stage: str) -> Fold:
    return Fold(
        name=name,
        what="example",
        counts_of=_counts_of,
        result_of=result_of,
        input_of=input_as_given,
        records_of=partial(_records_of, what=what),
        told_of=_told_of,
        reads_texts=False,
        check=partial(_check, what=what),
        stage=stage,
    )


MEAN_FOLD = _fold_of("means of ablate", "means", _means_of_sums, "1 of 2, what heads do on average")
SCREEN_FOLD = _fold_of(
    "screen of ablate", "slopes", _slopes_of_sums, "1 of 2, gradients of all heads"
)
FOLD = _fold_of("ablate", "scores", _result_of, "")
LATER = "2 of 2, without each head"


def ablated_over(model: Any, task: Any, by: Any, options: dict[str, Any]) -> Ablation:
    """`headscope.ablate` as a run.

    Args:
        model: its name or folder, or loaded.
        task: name of a task, or a function that makes one.
        by: see `ablate`.
        options: see `AblationOptions`.

    Raises:
        RunError: an option that runs do not have, or a task that they cannot cut; and as of
            `headscope.corpus.run`.
        RecordError: where there are no examples.
        TextError: where there is no such task.
    """
    _check_asked(task, by, options)
    judging = taken(options, JUDGING)
    how = {"task": task, "by": by, "chosen": None, "means": None}
    defaults = {"heads": True, "layers": True, "stack": None, "share": True, "masked": None}
    for name, default in defaults.items():
        how[name] = _settled(options.pop(name, default))
    screen, top = options.pop("screen", None), options.pop("top", None)
    given = model, options.pop("tokenizer", None)
    texts = examples_of(options.pop("texts", None), options.pop("groups", None))
    has_control = options.pop("random_weights", False)
    takes_means = isinstance(by, str) and by in MEANS
    # A function of one's own takes the head that the model was saved with.
    fold = replace(FOLD, needs=HEADS.get(str(task), "own"))
    if takes_means or screen is not None:
        fold = replace(fold, stage=LATER)

    def result_of(*, random: bool) -> Ablation:
        if takes_means:
            # Heads of random weights do on average what random weights do.
            place = "random means" if random else "means"
            means = parts.folded(MEAN_FOLD, how, {}, random=random, place=place)
            how["means"] = KeptArrays.saved(parts.folder / place / RESULT, means.arrays)
        place = RANDOM if random else ""
        return parts.folded(fold, how, judging, random=random, place=place)

    with texts_in_parts(fold, given, texts, options, again=True) as parts:
        if screen is not None:
            screened = parts.folded(SCREEN_FOLD, how, {}, place="screen")
            facts, slopes = screened.facts, screened.arrays["slopes"]
            heads = parse_cells(facts["cells"])
            estimates = estimates_of(heads, slopes, facts["task"], facts["metric"])
            judging["estimates"] = estimates
            how["chosen"] = left_by(estimates, tuple(sorted(estimates)), top)
        result = result_of(random=False)
        if has_control:
            judging.pop("estimates", None)
            how["means"] = None
            control = replace(result_of(random=True), totals={})
            result = replace(result, control=control)
            parts.keep(result)
    return result


def _check_finite(task: Task, values: np.ndarray) -> None:
    if not np.isfinite(values).all():
        raise InterventionError(f"The score of {task.name!r} is not finite")


def _check_asked(task: Any, by: Any, options: dict[str, Any]) -> None:
    """Raise where a run cannot do what was asked, before anything is read."""
    if options.pop("resume", None) is not None:
        raise RunError(
            "resume is not for runs in parts, which go on by themselves in the folder out=; leave "
            "it out, or leave out=, workers= and executor= out"
        )
    if options.get("correction", "holm") not in CORRECTIONS:
        raise RunError(
            f"correction is {options['correction']!r}; give one of {', '.join(CORRECTIONS)}"
        )
    check_screen(options, by)
    if isinstance(task, str) and ":" not in task:
        check_task(task, Path())
    elif not isinstance(task, str) and (isinstance(task, Task) or not callable(task)):
        raise RunError(
            f"A run in parts makes a task of each example in its workers, and was given "
            f"{type(task).__name__}; give the name of a task such as 'next-word', or a function of "
            "model, tokenizer and a list of one example, and the examples as texts="
        )


def examples_of(rows: Any, groups: Iterable[Any] | None) -> Stream:
    """What is given as examples, one by one; errors are inputs that are none.

    Args:
        rows: texts, pairs of them, or rows of a table.
        groups: the document of each; by default the field ``group`` of rows.

    Raises:
        RecordError: where there are none, or a single one was given.
    """
    if rows is None or isinstance(rows, str | Mapping):
        raise RecordError(
            "A run of ablate needs its examples: texts=, a list of texts, pairs or rows with labels"
        )
    return _stream(rows, groups)


def _stream(rows: Iterable[Any], groups: Iterable[Any] | None) -> Stream:
    rest = None if groups is None else iter(groups)
    for number, given in enumerate(rows):
        row = row_of(given)
        if rest is not None:
            group = next(rest, rest)
        else:
            group = None if row is None else (read_groups([row]) or [None])[0]
        if group is rest and rest is not None:
            raise RecordError(
                f"{number} groups were given for more examples; give one for each example"
            )
        yield _example(given, row, group)


def _example(given: Any, row: dict[str, Any] | None, group: Any) -> CorpusText | HeadscopeError:
    if isinstance(given, HeadscopeError):
        return given
    if row is None:
        return TextError(f"An example is {type(given).__name__}; expected a text, pair or row")
    if isinstance(given, Mapping):
        # The document is no part of what an example says.
        row.pop("group", None)
        return CorpusText(row, group_of(group))
    # As a file of JSON gives it back.
    return CorpusText(list(given) if isinstance(given, tuple) else given, group_of(group))


def row_of(given: Any) -> dict[str, Any] | None:
    """An example as a row of a file has it; None where it is none."""
    if isinstance(given, Mapping):
        return dict(given)
    if isinstance(given, str):
        return {"text": given}
    if isinstance(given, tuple | list) and len(given) == 2:
        return {"text": given[0], "text_b": given[1]}
    return None


def _settled(chosen: Any) -> Any:
    """Heads or layers as a job holds them: in one order, and hashable."""
    if isinstance(chosen, str | bool | None):
        return chosen
    return tuple(
        sorted(tuple(map(int, one)) if isinstance(one, Iterable) else one for one in chosen)
    )
