"""Tasks by name, from files: what the command line gives."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from headscope.errors import FileError, HeadscopeError, TextError
from headscope.storage import given_labels, given_pairs, place_of, read_groups, read_rows
from headscope.tasks import _loss
from headscope.tasks._classification import (
    OF_LIKENESS,
    classification,
    judged_by,
    likeness,
    not_alone,
    totals_of,
)
from headscope.tasks._names import NAMES, check_task
from headscope.tasks._task import Task, Values, parse_task

RUN = "run"
"""The field of an example of repeated tokens."""


def named_task(
    name: str,
    model: Any,
    tokenizer: Any,
    path: str | Path | None,
    *,
    limit: int | None = None,
    **options: Any,
) -> Task:
    """A task by its name, on the examples of a file.

    Args:
        name: one of `NAMES`, or ``file.py:function``: called with model and tokenizer, it gives a
            `Task` or a function as `headscope.ablate` takes it.
        model: that will be run.
        tokenizer: of the model.
        path: of the examples; see `read_rows`.
        limit: how many examples are read at most.
        **options: of the task, which also say what becomes of a row without text.

    Raises:
        TextError: where there is no such task, it needs a file, or no row can be read.
        FileError: where the file cannot be read.
    """
    if ":" in name:
        return parse_task(function_of(name)(model, tokenizer))
    check_task(name, path)
    if name == "repeats":
        count = {"count": limit} if limit else {}
        return _repeats(model, tokenizer, **count, **options)
    path = Path(path or "")  # `check_task` refuses a task without its file
    rows = read_rows(path)[:limit]
    return task_of_rows(name, model, tokenizer, (rows, str(path)), **options)


def task_of_rows(
    name: str, model: Any, tokenizer: Any, examples: tuple[list[Any], str], **options: Any
) -> Task:
    """A task by its name, on rows; of a row of ``"repeats"``, which names the run of the draw it
    is, see `repeated_runs`.

    Args:
        name: one of `NAMES`.
        model: see `named_task`.
        tokenizer: see `named_task`.
        examples: rows as of `read_rows`, and where they are from, for messages.
        **options: see `named_task`.

    Raises:
        TextError: where no row can be read.
        FileError: where the rows lack a field.
    """
    rows, path = examples
    if name == "repeats":
        # One after the other as they are drawn, of which the last is wanted.
        drawn = _repeats(model, tokenizer, batch=1, **_run_of(rows))
        return replace(drawn, batches=drawn.batches[-1:])
    given: list[Any] = [given_pairs(rows, path)]
    if name in ("next-word", "masked-word"):
        given = [_singles(given[0])]
    elif name == "classification":
        given.append(_classes(rows, path, model))
    elif not any(isinstance(text, tuple) for text in given[0]):
        raise TextError(f"{path} has texts without a second one; {name} reads {NAMES[name]}")
    if name == "likeness":
        given.append(given_labels(rows, path))
    return MAKERS[name](tokenizer, *given, **options).grouped(read_groups(rows))


MAKERS: dict[str, Callable[..., Task]] = {
    "next-word": _loss.next_word,
    "masked-word": _loss.masked_word,
    "classification": classification,
    "likeness": likeness,
    "minimal-pairs": _loss.minimal_pairs,
    "translation": _loss.translation,
}


def repeated_runs(
    count: int = 64, *, period: int = 20, times: int = 3, seed: int = 0
) -> list[dict[str, int]]:
    """The examples of the task ``"repeats"`` for a run in parts: which of its draw each is.

    Args:
        count: how many.
        period: see `repeats`.
        times: see `repeats`.
        seed: see `repeats`.

    Raises:
        TextError: where there is none.

    Example:
        >>> repeated_runs(1)
        [{'run': 0, 'period': 20, 'times': 3, 'seed': 0}]
    """
    if count < 1:
        raise TextError(f"Expected one run of repeated tokens at least, got {count}")
    how = {"period": period, "times": times, "seed": seed}
    return [{RUN: number} | how for number in range(count)]


def _run_of(rows: list[Any]) -> dict[str, int]:
    """What `repeats` takes for the one run that a row names."""
    (row,) = rows
    wanted = repeated_runs(1)[0].keys()
    if row.keys() != wanted or any(type(row[name]) is not int for name in wanted) or row[RUN] < 0:
        raise TextError(
            f"An example of repeats is {dict(row)}; give headscope.tasks.repeated_runs(64)"
        )
    how = {name: row[name] for name in wanted if name != RUN}
    return how | {"count": 1 + row[RUN]}


def _repeats(model: Any, tokenizer: Any, **options: Any) -> Task:
    special = set(tokenizer.all_special_ids)
    tokens = [number for number in range(model.config.vocab_size) if number not in special]
    return _loss.repeats(tokens, start=tokenizer.bos_token_id, **options)


def _singles(texts: list) -> list[Any]:
    """Pairs joined to one text; what is not a text stays as it is, and is left out where it is
    read.
    """
    # The second text of a pair is a string, the first may be a list of messages.
    pairs = [isinstance(text, tuple) and isinstance(text[0], str) for text in texts]
    return [" ".join(text) if joins else text for joins, text in zip(pairs, texts, strict=True)]


def _classes(rows: list, path: str, model: Any) -> list[Any]:
    """The class of each row; the error in place of one that the model does not have."""
    names = getattr(model.config, "label2id", None) or {}
    count = getattr(model.config, "num_labels", None) or math.inf
    labels = given_labels(rows, path, names)
    for number, label in enumerate(labels):
        if isinstance(label, float) and not (label.is_integer() and 0 <= label < count):
            place = place_of(rows[number], path, number + 1)
            labels[number] = FileError(
                f"{place} has the label {label:g}; the model has {count} classes"
            )
    return labels


def function_of(name: str) -> Callable[..., Any]:
    """A function of a file of the user's own.

    Args:
        name: ``file.py:function``.

    Raises:
        FileError: where there is no such file or function, or the file cannot be run.
    """
    path, _, function = name.rpartition(":")
    spec = None
    if Path(path).is_file():
        spec = importlib.util.spec_from_file_location("headscope_task", path)
    if spec is None or spec.loader is None or not path.endswith(".py"):
        raise FileError(
            f"The task {name!r} is to be a function of {path!r}, which is not a file of Python"
        )
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except HeadscopeError:
        raise
    except (ImportError, SyntaxError) as error:
        raise FileError(f"{path} cannot be run: {error}") from error
    maker = getattr(module, function, None)
    if not callable(maker):
        raise FileError(f"{path} has no function {function!r}")
    return maker


def judge_of(name: Any, facts: Mapping[str, Any], values: Values) -> Task:
    """What judges the examples of a task that were scored one by one; it cannot score any.

    Args:
        name: one of `NAMES`; whatever a function of one's own is called has no totals.
        facts: ``task``, ``metric`` and ``columns`` of the task of one example.
        values: of every example, by the intact model.

    Raises:
        TextError: where all pairs of a likeness are as alike.
    """
    finish, metric, columns = None, facts.get("metric", ""), tuple(facts.get("columns", ()))
    totals: Any = {"minimal-pairs": _loss.OF_PAIRS, "likeness": OF_LIKENESS}
    totals = (dict.fromkeys(NAMES, _loss.TOTALS) | totals).get(name, {})
    if name == "likeness":
        metric, finish = judged_by(values[:, 1])
    elif name == "classification":
        totals = totals_of(columns[0], int(values[:, 3].max()))
    return Task(
        ({},), not_alone, facts.get("task", ""), metric, columns, finish=finish, totals=totals
    )
