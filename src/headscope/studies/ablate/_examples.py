"""The examples of `ablate`: in a run scored one by one, by one process or by many; and what all of
them say together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from headscope._progress import warn_left_out
from headscope.capturing.many import OF_ONE_INPUT, reason_of
from headscope.capturing.run import unwrapped
from headscope.corpus import EACH, WHOLE, CorpusText, Counted, Sums, documents_of, key_of
from headscope.errors import HeadscopeError, InterventionError, RecordError, TextError
from headscope.evidence import parse_groups
from headscope.evidence.groups import group_of
from headscope.interventions import RecordMeans
from headscope.record import part_of
from headscope.storage import read_groups
from headscope.studies.ablate._result import FOLD, SHARED, Ablation, counts_of, shared_of
from headscope.studies.ablate._run import DisabledHeads, means_of, undisturbed
from headscope.studies.shared._corpus_model import with_groups
from headscope.studies.shared._fold import Fold, Item, Readers, Reading
from headscope.studies.shared._fold_run import Stream, passed
from headscope.tasks import Task, function_of, judge_of, parse_task, task_of_rows

HEADS = {
    "next-word": "next words",
    "translation": "next words",
    "masked-word": "masked words",
    "minimal-pairs": "sentences",
    "classification": "classifier",
    "repeats": "next words",
}
"""What a task needs of a model."""


ONE_BY_ONE = ("masked-word", "repeats")
"""Tasks whose examples are drawn each by itself."""
AT_ONCE = 64
"""Examples that are read together, and scored in batches of those of like length."""
Found = Iterator[Counted | HeadscopeError]


def _task_of(
    readers: Readers, rows: Sequence[Any], how: Mapping[str, Any], reading: Reading
) -> Task:
    """The task of some examples.

    Raises:
        HeadscopeError: where none can be read.
    """
    name = how["task"]
    if callable(name) or ":" in name:
        make = name if callable(name) else function_of(name)
        task = parse_task(make(*readers, list(rows)))
        if task.finish is not None or task.totals:
            raise InterventionError(
                f"The task {task.name!r} has numbers of all examples together (finish, totals), "
                "which are not put together from parts; leave them out"
            )
        return task
    options: dict[str, Any] = {"truncate": reading["truncate"], "cuts": reading["cuts"]}
    options |= {"allow_unfit": reading["max_unknown"] >= 1, "on_error": passed}
    if name == "masked-word":
        # Drawn by what the text says, so that its place among the others decides nothing.
        options["seed"] = key_of("masked words", CorpusText(rows[0]).content, bits=56)
    if name == "minimal-pairs":
        options["masked"] = how["masked"]
    if name == "likeness":
        options["alone"] = True
    return task_of_rows(name, *readers, (list(map(row_of, rows)), "it"), **options)


def _means(disabled: DisabledHeads, task: Task, how: Mapping[str, Any]) -> Found:
    """What heads do on an example, which has a score: it may be too long for the model."""
    if not np.isfinite(task.values(disabled.model, 0)).all():
        yield _not_finite(task, "score")
        return
    means = RecordMeans(outputs=how["by"] == "mean output")
    arrays = means_of(disabled.model, task, means).arrays()
    yield Counted({f"{WHOLE}{name}": array for name, array in arrays.items()}, 0, {})


def _slopes(disabled: DisabledHeads, task: Task, _: Mapping[str, Any]) -> Found:
    """The slope of the score of each example in every head."""
    slopes = disabled.slopes(task)
    facts = {"task": task.name, "metric": task.metric, "cells": [*map(list, disabled.heads)]}
    for own in slopes:
        known = np.isfinite(own).all()
        yield Counted({"slopes": own}, 0, facts) if known else _not_finite(task, "slope")


def _scores(disabled: DisabledHeads, task: Task, _: Mapping[str, Any]) -> Found:
    """The values of each example by the intact model and without each cell; all examples are judged
    together, when all are known.
    """
    values, shared = disabled.values(task)
    facts = disabled.facts_of(task)
    for own, length in zip(values.swapaxes(0, 1), lengths_of(task, values.shape[1]), strict=True):
        counts = {f"{EACH}values": own, f"{SHARED}{shared}": np.array(1)}
        known = np.isfinite(own).all()
        yield Counted(counts, int(length), facts) if known else _not_finite(task, "score")


def _not_finite(task: Task, what: str) -> InterventionError:
    return InterventionError(f"The {what} of {task.name!r} is not finite")


def _records_of(
    readers: Readers,
    rows: Iterable[Any],
    how: Mapping[str, Any],
    reading: Reading,
    *,
    what: Callable[..., Found],
) -> Iterator[tuple[int, Counted]]:
    """What is found of each example: its means, slopes or scores."""

    def averaged(_: RecordMeans) -> RecordMeans:
        return RecordMeans.of_arrays(how["means"].load(), outputs=how["by"] == "mean output")

    readers = unwrapped(readers[0]), readers[1]
    disabled = DisabledHeads(readers[0], how, averaged)
    reading = {**reading, "cuts": []}  # one list for all examples: it warns once
    name, numbered = str(how["task"]), list(enumerate(rows))
    alone = callable(how["task"]) or ":" in name or name in ONE_BY_ONE or what is _means
    step = 1 if alone else AT_ONCE
    for first in range(0, len(numbered), step):
        some = dict(numbered[first : first + step])
        asked = readers, how, reading, partial(what, disabled)
        for number, each in _found(some, *asked):
            if isinstance(each, HeadscopeError):
                reading["on_error"](number, each)
            else:
                yield number, each


def _found(rows: dict[int, Any], *asked: Any) -> Iterator[tuple[int, Counted | HeadscopeError]]:
    """What is found of some examples, by number, or why nothing can be."""
    readers, how, reading, what = asked
    try:
        task = _task_of(readers, list(rows.values()), how, reading)
        with undisturbed(readers[0]):
            made = list(what(task, how))
        left = [number for at, number in enumerate(rows) if at not in task.left_out]
        if len(made) != len(left):
            raise InterventionError(
                f"The task {task.name!r} of {len(left)} examples has {len(made)} scores; give a "
                "task of the examples that it is given"
            )
    except OF_ONE_INPUT as error:
        if len(rows) == 1:
            yield next(iter(rows)), reason_of(error)
            return
        for number, row in rows.items():  # one of them may be the reason
            yield from _found({number: row}, *asked)
        return
    yield from ((list(rows)[at], TextError(why)) for at, why in task.left_out.items())
    yield from zip(left, made, strict=True)


def _check(
    readers: Readers,
    rows: Sequence[Any],
    how: Mapping[str, Any],
    *,
    allow_unfit: bool,
    truncate: bool,
    what: Callable[..., Found],
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
                _task_of(readers, [row], how, reading).check(unwrapped(readers[0]))
            return
    if errors:
        raise errors[0]


def _result_of(sums: Sums, how: Mapping[str, Any], judging: Mapping[str, Any]) -> Ablation:
    """The result of the values of all examples."""
    examples = sorted(sums.each.items())
    # [cell example column], the intact model first.
    values = np.stack([part_of(own["values"]) for _, own in examples], axis=1)
    groups = tuple(group for (_, group), _ in examples)
    task = replace(judge_of(how["task"], sums.facts, values[0]), groups=groups)
    facts = sums.facts | {"metric": task.metric}
    result = ablation_of(task, values, judging, facts=facts, shared=shared_of(sums))
    result.sums.lengths = sums.lengths
    return result


def _fold_of(what: Callable[..., Found], **more: Any) -> Fold:
    reading = partial(_records_of, what=what)
    check = partial(_check, what=what)
    return replace(FOLD, records_of=reading, check=check, reads_texts=False, **more)


MEAN_FOLD = _fold_of(_means, name="means of ablate", stage="1 of 2, what heads do on average")
SCREEN_FOLD = _fold_of(_slopes, name="screen of ablate", stage="1 of 2, gradients of all heads")
SCORE_FOLD = _fold_of(_scores, result_of=_result_of)
LATER = "2 of 2, without each head"


def examples_of(rows: Any, groups: Iterable[Any] | None) -> Stream:
    """What is given as examples, one by one; errors are inputs that are none.

    Args:
        rows: texts, pairs of them, or rows of a table.
        groups: the document of each; by default the field ``group`` of rows.

    Raises:
        RecordError: where there are none, or a single one was given.
    """
    if isinstance(rows, str | Mapping) or not isinstance(rows, Iterable):
        raise RecordError(
            "A run of ablate needs its examples: texts=, a list of texts, pairs or rows with labels"
        )
    for given, group in with_groups(rows, groups, "example"):
        row = row_of(given)
        if isinstance(given, HeadscopeError):
            yield given
        elif row is None:
            what = type(given).__name__
            yield TextError(f"An example is {what}; expected a text, pair or row")
        elif isinstance(given, Mapping):
            own = (read_groups([row]) or [None])[0] if groups is None else group
            # The document is no part of what an example says.
            row.pop("group", None)
            yield CorpusText(row, group_of(own))
        else:
            # As a file of JSON gives it back.
            yield CorpusText(list(given) if isinstance(given, tuple) else given, group_of(group))


def row_of(given: Any) -> dict[str, Any] | None:
    """An example as a row of a file has it; None where it is none."""
    if isinstance(given, Mapping):
        return dict(given)
    if isinstance(given, str):
        return {"text": given}
    if isinstance(given, tuple | list) and len(given) == 2:
        return {"text": given[0], "text_b": given[1]}
    return None


def ablation_of(
    task: Task,
    values: Float[np.ndarray, "cell example column"],
    options: Mapping[str, Any],
    *,
    facts: Mapping[str, Any],
    shared: str,
) -> Ablation:
    """The effects, from the examples that have a score with everything that was disabled.

    Args:
        task: that scored them.
        values: of the intact model, and without each cell.
        options: of `Ablation`, with ``on_error``.
        facts: that all examples share, see `DisabledHeads.facts_of`.
        shared: whether layers were passed over.

    Raises:
        InterventionError: where no example has a score.
    """
    if task.groups is not None:
        parse_groups(task.groups, values.shape[1], "example")
    groups = _copies_in(task, values.shape[1]) if task.groups is None else task.groups
    report = options.get("on_error") or partial(warn_left_out, what="example")
    scored = _scored(values, facts["cells"], task, report)
    # Differences are paired: an example without a score with one head disabled counts with none of
    # them.
    values[:, ~scored] = np.nan
    scores = np.stack([task.scores(own) for own in values])
    totals = {name: list(map(total, values)) for name, total in task.totals.items()}
    lengths = lengths_of(task, len(scored)).tolist()
    sums = Sums("example")
    sums.facts = {**facts, "totals": totals}
    for number in np.flatnonzero(scored).tolist():
        group = None if groups is None else group_of(groups[number])
        # Numbers of six digits sort as the examples were given.
        item = Item(f"{number:06}", group, None)
        counts = {**counts_of(scores[:, number]), f"{SHARED}{shared}": np.array(1)}
        sums.add(item.name, item.unit, counts, length=lengths[number])
    result = Ablation.of_sums(sums, {}, options)
    given = len(scored) + len(task.left_out)
    result.conserved(given, result.examples, given - int(scored.sum()), "examples")
    return result


def _copies_in(task: Task, examples: int) -> tuple[str, ...] | None:
    """The documents of the examples of a task that does not know them: copies are one. None where
    an example is something else than a row of a batch.
    """
    batches = [_rows_of(batch) for batch in task.batches if isinstance(batch, Mapping)]
    known = sum(map(len, batches)) == examples
    return documents_of(task.joined(batches)[:, 0].tolist()) if known else None


def _rows_of(batch: Mapping[str, Any]) -> np.ndarray:
    """A key of each row of a batch, without padding; none where it is not of tensors of rows."""
    tensors, rows = [batch[name] for name in sorted(batch)], []
    are_rows = all(isinstance(each, torch.Tensor) and each.ndim for each in tensors)
    if not are_rows or len(set(map(len, tensors))) != 1:
        return np.zeros((0, 1))
    mask = batch.get("attention_mask", torch.ones(0, 0))
    for at in range(len(tensors[0])):
        own = [x[at][mask[at] == 1] if x.shape == mask.shape else x[at] for x in tensors]
        says = [x.detach().cpu().flatten().view(torch.uint8).numpy().tobytes().hex() for x in own]
        rows.append([float(key_of("example", *says, bits=48))])  # such floats are exact
    return np.array(rows)


def _scored(
    values: Float[np.ndarray, "cell example column"],
    cells: Sequence[Any],
    task: Task,
    report: Callable[[int, HeadscopeError], None],
) -> np.ndarray:
    """Which examples have a finite score, whatever is disabled; the others are reported.

    Args:
        values: of the intact model, and without each cell.
        cells: stack, layer and head of what was disabled.
        task: that scored them.
        report: is called with the number of an example, as the task was given them, and why it is
            left out.

    Raises:
        InterventionError: where no example has one.
    """
    known = np.array(np.isfinite(values).all(axis=2))
    scored = np.array(known.all(axis=0))
    # The task may have left out examples before; users know the others by their first numbers.
    given = np.delete(np.arange(len(scored) + len(task.left_out)), list(task.left_out)).tolist()
    errors = {}
    for number in np.flatnonzero(~scored).tolist():
        # The first False: the intact model, or the first head without which the score is lost.
        cell = (None, *cells)[int(np.argmin(known[:, number]))]
        where = ""
        if cell is not None:
            named = f"layer {cell[1]}" if cell[2] < 0 else f"head {cell[1]}-{cell[2]}"
            where = f" with {named} disabled"
        errors[given[number]] = InterventionError(
            f"The score of {task.name!r} is not finite{where}"
        )
    if not scored.any():
        raise next(iter(errors.values()))
    for number, error in errors.items():
        report(number, error)
    return scored


def lengths_of(task: Task, examples: int) -> np.ndarray:
    """Lengths of the examples of a task, padding left out; 0 where they are no texts."""
    lengths = []
    for batch in task.batches:
        mask = batch.get("attention_mask") if isinstance(batch, Mapping) else None
        # Only a mask tells the length of a text in a padded batch.
        if not isinstance(mask, torch.Tensor) or mask.ndim != 2:
            return np.zeros(examples, int)
        lengths.append(mask.sum(dim=1).cpu().numpy())
    # An example may have several rows, as pairs have: the first of all examples come first.
    rows = sum(map(len, lengths)) // examples
    if rows * examples != sum(map(len, lengths)):
        return np.zeros(examples, int)
    middle = [np.median(own.reshape(rows, -1), axis=0)[:, None] for own in lengths]
    return task.joined(middle)[:, 0].astype(int)
