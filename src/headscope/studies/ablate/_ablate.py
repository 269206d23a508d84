"""Does it matter? Every head and every layer disabled in turn, and what that does to a score."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, Unpack

import numpy as np
from jaxtyping import Float
from torch import nn

from headscope.capturing import LOADING, LoadOptions, random_twin
from headscope.capturing.run import unwrapped
from headscope.corpus import OPTIONS, WHOLE, RunOptions, asks_for_run
from headscope.errors import (
    HeadscopeError,
    InterventionError,
    RecordError,
    RunError,
    check_count,
    check_option_names,
    check_reading,
    listed,
)
from headscope.studies.ablate import _examples
from headscope.studies.ablate._result import Ablation, Cell
from headscope.studies.ablate._run import MEANS, By, DisabledHeads, means_of, undisturbed
from headscope.studies.shared._fold import taken
from headscope.studies.shared._fold_run import RANDOM, RESULT, KeptArrays, hashable, texts_in_parts
from headscope.tasks import Task, check_task, parse_task

FOR_RUNS = ("texts", "tokenizer", "truncate", "masked", *LOADING)
"""Options of runs in parts alone."""
TOP = 10


class AblationOptions(RunOptions, LoadOptions, total=False):
    """Options of `ablate`; those of `headscope.corpus.RunOptions` and `LoadOptions`, ``texts``,
    ``tokenizer``, ``truncate`` and ``masked`` are for runs in parts.
    """

    texts: Iterable[Any] | None
    """Examples of a run in parts: texts, pairs of them, or rows such as ``{"sentence1": ...,
    "sentence2": ..., "label": 1}`` with the fields of GLUE and the like, and ``group``.
    """
    tokenizer: Any
    """Tokenizer of a loaded model, for a run in parts."""
    truncate: bool
    """Cut examples that are too long, in a run in parts (False)."""
    masked: bool | None
    """For ``"minimal-pairs"`` in a run: whether the model predicts masked words; by default where
    its tokenizer has a mask token.
    """

    heads: bool | Collection[tuple[int, int]]
    """Layer and head of those that are disabled; all by default, none where False."""
    layers: bool | Collection[int]
    """Layers that are disabled as a whole; all by default, none where False."""
    stack: str | None
    """Of which stack; all by default."""
    screen: Literal["gradient"] | None
    """Disable only the heads whose effect is largest by a first estimate from one backward pass;
    none by default. The p-values are corrected for all heads that were screened.
    """
    top: int | None
    """How many heads a screen leaves, 10."""
    share: bool
    """Compute the layers below the changed one once (True), or run the whole model every time."""
    groups: Iterable[Any] | None
    """The document that each example is of, so that intervals and tests are over documents; by
    default the task's.
    """
    confidence: float
    """Of the intervals over examples, or over their documents, 0.95."""
    alpha: float
    """Chance of any false change that is accepted, 0.05."""
    correction: Literal["holm", "benjamini-hochberg"]
    """For trying many heads: ``"holm"``, or ``"benjamini-hochberg"`` for the share of false
    ones.
    """
    random_weights: bool
    """Do the same to this architecture with random weights, too: ``control`` of the result
    (False).
    """
    progress: bool
    """Whether to show a bar on terminals."""
    on_error: Callable[[int, HeadscopeError], None] | None
    """Is called with number and error of an example whose score is not finite: it is left out. By
    default a warning.
    """
    allow_unfit: bool
    """Take a model whose head was not trained, or that sees the word it is to predict, all the same
    (False).
    """


JUDGING = {"confidence": 0.95, "alpha": 0.05, "correction": "holm", "estimates": None}
"""Options of `Ablation` that the scores do not depend on."""
PLAIN = [own for own in AblationOptions.__annotations__ if own not in (*FOR_RUNS, *OPTIONS)]
"""Options of tasks that have their examples."""


def ablate(
    model: Any, task: Any, *, by: By | str = "zero", **options: Unpack[AblationOptions]
) -> Ablation:
    """Disable every head and every layer in turn and measure what that does to a score, example by
    example.

    ``change = mean_x score(x without the head) - score(x)``; negative where the head helps.
    Intervals are bootstrapped over examples, or over their documents (``groups``); each change is
    tested by flipping the signs of the paired differences, those of a document together, corrected
    over all heads, and over all layers by themselves.

    Batch by batch: the model is run as it is and what every layer is given and returns is kept;
    then, for each head, layers that would be given the same again are passed over. That is tried
    without any change on the first batch, and where what the model returns is not the same to the
    last bit it is run as a whole every time; the result reports it.

    Source: Michel et al. 2019, section 3 (zero); Kovaleva et al. 2019, section 4.4 (uniform; whole
    layers).

    With ``out``, ``workers`` or ``executor`` the examples of ``texts`` are scored in parts, by one
    process or by several, and the same call resumes after the parts that are finished. Numbers
    depend on batches, and on how the examples were cut, by no more than rounding.

    Args:
        model: with the head that the task needs; in evaluation mode meanwhile. In a run also its
            name or folder.
        task: a `headscope.tasks.Task`, or a function of the model that gives a score for each
            example, in one run or several; higher is better. In a run the name of a
            task, such as ``"next-word"``, or a function of model, tokenizer and a list of one
            example that gives one of these, where it can be imported.
        by: ``"zero"`` (`Zero`), ``"uniform"`` (`Uniform`), ``"mean attention"`` (`Mean`: the
            average map by position over examples of the task), ``"mean output"`` (`MeanOutput`, one
            vector over examples and tokens: what the field calls mean ablation), or whatever makes
            an intervention of stack, layer and heads. Means are taken over the examples that are
            scored.
        **options: see `AblationOptions`.

    Raises:
        InterventionError: a task, head, layer or stack that does not exist, or attention that
            cannot be changed.
        RecordError: an option that there is not.
        ModelError: a model that is not fit for the task: its head was not trained, or it sees what
            it is to predict.

    Example:
        >>> result = ablate(model, headscope.tasks.next_word(tokenizer, texts), by="uniform")
        >>> result.plot("ablation.pdf")
        >>> ablate("gpt2", "next-word", texts=texts, out="run", workers=2)
    """
    _check(task, by, options)
    if asks_for_run(options):
        return _ablated_over(model, task, by, dict(options))
    task, model = parse_task(task), unwrapped(model)
    if not options.get("allow_unfit", False):
        task.check(model)
    task = task.grouped(options.get("groups"))
    result = _ablated(model, task, by, options)
    if options.get("random_weights"):
        result.control = _ablated(random_twin(model), task, by, options, chosen=result.cells)
    return result


def _ablated(
    model: nn.Module,
    task: Task,
    by: By | str,
    options: Mapping[str, Any],
    *,
    chosen: tuple[Cell, ...] | None = None,
) -> Ablation:
    """The ablation of a model; of the cells that are given, where others chose them."""
    how = {**options, "by": by, "chosen": chosen}
    disabled = DisabledHeads(model, how, partial(means_of, model, task))
    judging = {**JUDGING, **options, "estimates": None}
    with undisturbed(model):
        if chosen is None and options.get("screen") is not None:
            slopes = disabled.slopes(task)
            # An example without a finite score is left out of the exact changes, too.
            slopes = np.nanmean(np.where(np.isfinite(slopes), slopes, np.nan), axis=0)
            named = f"{task.metric} of {task.name!r}"
            chosen_heads = screened(disabled.heads, slopes, named, options.get("top"))
            judging["estimates"], left = chosen_heads
            disabled.keep(left)
        values, shared = disabled.values(task, progress=options.get("progress", False))
    return _examples.ablation_of(
        task, values, judging, facts=disabled.facts_of(task), shared=shared
    )


def screened(
    heads: Iterable[Any], slopes: Float[np.ndarray, " head"], task: str, top: int | None
) -> tuple[list[Any], list[Cell]]:
    """Stack, layer, head and what the mean score would change by without each head, to first order;
    and the heads with the largest of these changes in either direction.

    Args:
        heads: stack, layer and head.
        slopes: see `DisabledHeads.slopes`, mean over examples.
        task: metric and name.
        top: how many are left.

    Raises:
        InterventionError: where the score moves with no head.
    """
    if not slopes.any():
        raise InterventionError(
            f"The {task} does not move with any head by a little, as a count of right answers does "
            "not; take a log likelihood or a loss, or leave the screen out"
        )
    estimates = [[*cell, -slope] for cell, slope in zip(heads, slopes.tolist(), strict=True)]
    ranked = sorted(estimates, key=lambda each: -abs(each[-1]))[: top or TOP]
    return estimates, sorted((stack, layer, head) for stack, layer, head, _ in ranked)


def check_screen(options: Mapping[str, Any], by: Any) -> None:
    """Raise where the options of a screen do not go together."""
    screen, top = options.get("screen"), options.get("top")
    if screen is None and top is not None:
        raise InterventionError(f"top={top} needs screen='gradient', which ranks the heads")
    if screen not in (None, "gradient"):
        raise InterventionError(f"Expected 'gradient' for screen, got {screen!r}")
    check_count("top", TOP if top is None else top, error=InterventionError)
    # The slope tells what happens when a head's output shrinks to zero, and to nothing else.
    if screen is not None and by != "zero":
        raise InterventionError(
            f"screen='gradient' estimates what zeros do, and by is {by!r}; give by='zero', or "
            "leave the screen out"
        )
    if screen is not None and options.get("heads", True) is not True:
        raise InterventionError(
            "screen='gradient' chooses the heads itself; leave heads out, or the screen"
        )


def _check(task: Any, by: Any, options: Mapping[str, Any]) -> None:
    """Raise where something cannot be done that was asked, before anything is read."""
    is_run = asks_for_run(options)
    check_option_names("ablate", options, (*PLAIN, *FOR_RUNS, *OPTIONS))
    for name, value in options.items():
        if name in FOR_RUNS and value not in (None, False) and not is_run:
            raise RecordError(
                f"{name} is for a run in parts; give out=, workers= or executor=, or leave it out: "
                "the task has its examples"
            )
    # It checks how the changes are judged.
    Ablation(**taken(dict(options), JUDGING))
    check_reading(options)
    _check_cells(options)
    check_screen(options, by)
    if is_run:
        _check_run(task)


def _check_cells(options: Mapping[str, Any]) -> None:
    for name in ("heads", "layers"):
        if not isinstance(options.get(name, True), bool):
            for each in listed(options[name], f"a list of {name}", InterventionError):
                for number in listed(each, "(layer, head)") if name == "heads" else [each]:
                    check_count(f"A number of {name}", number, 0, InterventionError)
    if not isinstance(options.get("stack") or "", str):
        raise InterventionError(f"stack is the name of a stack, not {options['stack']!r}")


def _check_run(task: Any) -> None:
    if isinstance(task, str) and ":" not in task:
        check_task(task, Path())
    elif not isinstance(task, str) and (isinstance(task, Task) or not callable(task)):
        raise RunError(
            f"A run in parts makes a task of each example in its workers, and was given "
            f"{type(task).__name__}; give the name of a task such as 'next-word', or a function of "
            "model, tokenizer and a list of one example, and the examples as texts="
        )


def _ablated_over(model: Any, task: Any, by: Any, options: dict[str, Any]) -> Ablation:
    """The ablation as a run."""
    judging = {**JUDGING, **taken(options, JUDGING)}
    how = {"task": task, "by": by, "chosen": None, "means": None}
    how |= {name: hashable(options.pop(name, True)) for name in ("heads", "layers")}
    how |= {"stack": options.pop("stack", None), "masked": options.pop("masked", None)}
    how["share"] = bool(options.pop("share", True))
    screen, top = options.pop("screen", None), options.pop("top", None)
    given = model, options.pop("tokenizer", None)
    texts = _examples.examples_of(options.pop("texts", None), options.pop("groups", None))
    has_control = options.pop("random_weights", False)
    takes_means = isinstance(by, str) and by in MEANS
    # A function of one's own takes the head that the model was saved with.
    needs = _examples.HEADS.get(str(task), "own")
    if needs == "sentences" and how["masked"] is not None:
        needs = "masked words" if how["masked"] else "next words"
    fold = replace(_examples.SCORE_FOLD, needs=needs)
    if takes_means or screen is not None:
        fold = replace(fold, stage=_examples.LATER)

    def result_of(*, random: bool) -> Ablation:
        if takes_means:
            # Heads of random weights do on average what random weights do.
            place = "random means" if random else "means"
            sums = parts.folded(_examples.MEAN_FOLD, how, {}, random=random, place=place)
            means = {name.removeprefix(WHOLE): sums.total(name) for name in sums.names}
            how["means"] = KeptArrays.saved(parts.folder / place / RESULT, means)
        place = RANDOM if random else ""
        return parts.folded(fold, how, judging, random=random, place=place)

    with texts_in_parts(fold, given, texts, options) as parts:
        if screen is not None:
            sums = parts.folded(_examples.SCREEN_FOLD, how, {}, place="screen")
            facts, slopes = sums.facts, sums.total("slopes") / len(sums)
            named = f"{facts['metric']} of {facts['task']!r}"
            judging["estimates"], left = screened(facts["cells"], slopes, named, top)
            how["chosen"] = tuple(left)
        result = result_of(random=False)
        if has_control:
            judging["estimates"] = how["means"] = None
            result.control = result_of(random=True)
            parts.keep(result)
    return result
