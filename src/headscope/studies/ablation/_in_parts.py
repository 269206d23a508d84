"""`ablate` over a corpus: its examples scored one by one, by one process or by many."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from headscope.errors import RunError
from headscope.studies.ablation._averaged_in_parts import averaged_job
from headscope.studies.ablation._examples import examples_of
from headscope.studies.ablation._in_parts_job import AblationJob
from headscope.studies.ablation._result import Ablation
from headscope.studies.ablation._screen import TOP, check_screen
from headscope.studies.ablation._screen_in_parts import screened_job
from headscope.studies.shared._corpus_run import (
    RunSettings,
    check_correction,
    check_no_more,
    parse_job,
    taken,
)
from headscope.tasks import Task, check_task

JUDGING = ("confidence", "alpha", "correction")
WHAT = ("heads", "layers", "stack", "share")
HEADS = {
    "next-word": "next words",
    "translation": "next words",
    "masked-word": "masked words",
    "minimal-pairs": "sentences",
    "classification": "classifier",
    "repeats": "next words",
}
"""What a task needs of a model."""


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
    _check(task, by, options)
    judging = taken(options, JUDGING)
    check_correction(judging)
    disabled = {name: _settled(chosen) for name, chosen in taken(options, WHAT).items()}
    screen, top = options.pop("screen", None), options.pop("top", None)
    given = model, options.pop("tokenizer", None)
    texts = examples_of(options.pop("texts", None), options.pop("groups", None))
    running = RunSettings.taken(options)
    job = AblationJob(
        task=task,
        by=by,
        disabled=tuple(sorted(disabled.items())),
        masked=options.pop("masked", None),
        **parse_job(given, options, running, needs=_needs_of(task)),
    )
    job.check_engine(running.engine)
    has_control = options.pop("random_weights", False)
    check_no_more(job.study, options)
    if screen is None and not job.takes_means:
        ran = running.with_control if has_control else running.result
        return ran(job, texts, judging)
    with running.with_folder() as running:
        if job.takes_means:
            job, texts = averaged_job(job, texts, running)
        else:
            job, texts, judging["estimates"] = screened_job(job, texts, running, top or TOP)
        ran = running.with_control if has_control else running.result
        return ran(job, texts, judging)


def _needs_of(task: Any) -> str:
    """What the model must have: for a function of one's own, the head that it was saved with."""
    return HEADS[task] if isinstance(task, str) and task in HEADS else "own"


def _check(task: Any, by: Any, options: dict[str, Any]) -> None:
    """Raise where a run cannot do what was asked, before anything is read."""
    if options.pop("resume", None) is not None:
        raise RunError(
            "resume is not for runs in parts, which go on by themselves in the folder out=; leave "
            "it out, or leave out=, workers= and executor= out"
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


def _settled(chosen: Any) -> Any:
    """Heads or layers as a job holds them: in one order, and hashable."""
    if isinstance(chosen, str | bool | None):
        return chosen
    return tuple(
        sorted(tuple(map(int, one)) if isinstance(one, Iterable) else one for one in chosen)
    )
