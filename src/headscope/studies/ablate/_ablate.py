"""Does it matter? Every head and every layer disabled in turn, and what that does to a score."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Unpack

import numpy as np
import torch
from jaxtyping import Float
from torch import nn

from headscope.capturing import LOADING, LoadOptions, random_twin
from headscope.capturing.facts import display_name, fingerprint_of
from headscope.capturing.run import at_rest, unwrapped
from headscope.capturing.threads import one_at_a_time
from headscope.corpus import OPTIONS, RunOptions, Sums, asks_for_run
from headscope.errors import HeadscopeError, InterventionError, RecordError
from headscope.evidence import parse_groups
from headscope.evidence.chance import CORRECTIONS
from headscope.evidence.groups import group_of
from headscope.interventions import Mean, MeanOutput, RecordMeans, Uniform, Zero
from headscope.interventions.plan import ModelPlan
from headscope.interventions.session import plan_on
from headscope.studies.ablate._result import Ablation, Cell, counts_of
from headscope.studies.ablate._run import (
    By,
    NotedValues,
    TaskRun,
    means_of,
    slopes_of,
    without_cache,
)
from headscope.studies.shared._fold import Item
from headscope.studies.shared._folded import taken
from headscope.tasks import Task, parse_task

WAYS: dict[str, By] = {"zero": Zero, "uniform": Uniform}
MEANS: dict[str, By] = {"mean attention": Mean, "mean output": MeanOutput}
FOR_RUNS = ("texts", "tokenizer", "truncate", "masked", *LOADING)
"""Options of runs in parts alone."""
RANDOM = ".random"
"""What stands before the suffix of the file that a run can go on from, for random weights."""
JUDGING = ("confidence", "alpha", "correction")
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
    resume: str | os.PathLike[str] | None
    """A ``.safetensors`` file that keeps what was found, layer by layer of each batch; a run that
    was killed resumes from it.
    """
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


def ablate(
    model: Any,
    task: Any,
    *,
    by: By | str = "zero",
    **options: Unpack[AblationOptions],
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
    last bit it is run as a whole every time; the result says so.

    Source: Michel et al. 2019, section 3 (zero); Kovaleva et al. 2019, section 4.4 (uniform; whole
    layers).

    With ``out``, ``workers`` or ``executor`` the examples of ``texts`` are scored one by one, in
    parts, by one process or by several, and the same call resumes after the parts that are
    finished. No number depends on a batch then, nor on how the examples were cut; against padded
    batches they differ in the last digits.

    Args:
        model: with the head that the task needs; in evaluation mode meanwhile. In a run also its
            name or folder.
        task: a `headscope.tasks.Task`, an `Objective`, or a function of the model that gives a
            score for each example, in one run or several; higher is better. In a run the name of a
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
        FileError: where the file to resume belongs to another model or task.
        RecordError: an option that there is not.
        ModelError: a model that is not fit for the task: its head was not trained, or it sees what
            it is to predict.

    Example:
        >>> result = ablate(
        ...     model,
        ...     headscope.tasks.next_word(tokenizer, texts),
        ...     by="uniform",
        ...     resume="part.safetensors",
        ... )
        >>> result.plot("ablation.pdf")
        >>> ablate("gpt2", "next-word", texts=texts, out="run", workers=2)
    """
    if asks_for_run(options):
        from headscope.studies.ablate._parts import ablated_over

        return ablated_over(model, task, by, dict(options))
    _check(options)
    check_screen(options, by)
    task, model = parse_task(task), unwrapped(model)
    if not options.get("allow_unfit", False):
        task.check(model)
    task = task.grouped(options.get("groups"))
    result = _ablated(model, task, by, options)
    if not options.get("random_weights"):
        return result
    # Another model, and so another file, which names the weights' fingerprint.
    beside = options.get("resume")
    if beside is not None:
        beside = Path(beside)
        beside = beside.with_name(f"{beside.stem}{RANDOM}{beside.suffix}")
    again = AblationOptions(**options | {"resume": beside})
    control = _ablated(random_twin(model), task, by, again, chosen=result.cells)
    return replace(result, control=replace(control, totals={}))


def _ablated(
    model: nn.Module,
    task: Task,
    by: By | str,
    options: AblationOptions,
    *,
    chosen: tuple[Cell, ...] | None = None,
) -> Ablation:
    """The ablation of a model; of the cells that are given, where others chose them."""
    with one_at_a_time(model), at_rest(model), without_cache(model):
        # One run of the first batch tells which layers there are and which modules compute them.
        plan = plan_on(model, lambda: task.values(model, 0))
        cells, estimates = chosen or cells_of(plan, options), None
        if chosen is None and options.get("screen") is not None:
            heads = [cell for cell in cells if cell[2] >= 0]
            slopes = slopes_of(model, task, heads)
            # An example without a finite score is left out of the exact changes, too.
            slopes = np.nanmean(np.where(np.isfinite(slopes), slopes, np.nan), axis=0)
            estimates = estimates_of(heads, slopes, task.name, task.metric)
            cells = left_by(estimates, cells, options.get("top"))
        make = parse_by(by, lambda means: means_of(model, task, means))
        done = make(stack=cells[0][0], layer=cells[0][1]).does
        header = {
            "model": fingerprint_of(model),
            "task": task.fingerprint,
            "way of disabling heads": done,
        }
        noted = NotedValues(options.get("resume"), header)
        shared = TaskRun(model, task, plan, make).all(
            cells,
            noted,
            share=options.get("share", True),
            progress=options.get("progress", False),
        )
    batches = range(len(task.batches))
    values = np.stack(
        [task.joined([noted[number, cell] for number in batches]) for cell in (None, *cells)]
    )
    facts = {"by": done, "model": display_name(model), "shared": shared, "estimates": estimates}
    return ablation_of(task, cells, values, options, facts=facts)


def ablation_of(
    task: Task,
    cells: tuple[Cell, ...],
    values: Float[np.ndarray, "cell example column"],
    options: Mapping[str, Any],
    *,
    facts: Mapping[str, Any],
    lengths: Iterable[int] | None = None,
) -> Ablation:
    """The effects, from the examples that have a score with everything that was disabled.

    Args:
        task: that scored them.
        cells: stack, layer and head of what was disabled.
        values: of the intact model, and without each cell.
        options: of `ablate`.
        facts: other fields of the result.
        lengths: of the examples in tokens; by default those of the task.

    Raises:
        InterventionError: where no example has a score.
    """
    if task.groups is not None:
        parse_groups(task.groups, values.shape[1], "example")
    scored = _scored(values, cells, task, options.get("on_error") or _warn)
    # Differences are paired: an example without a score with one head disabled counts with none of
    # them.
    values[:, ~scored] = np.nan
    scores = np.stack([task.scores(own) for own in values])
    totals = {name: tuple(total(own) for own in values) for name, total in task.totals.items()}
    listed = lengths_of(task, len(scored)).tolist() if lengths is None else list(lengths)
    sums = Sums("example")
    for number in np.flatnonzero(scored).tolist():
        group = None if task.groups is None else group_of(task.groups[number])
        # Numbers of six digits sort as the examples were given.
        item = Item(f"{number:06}", group, None)
        sums.add(item.name, item.unit, counts_of(scores[:, number]), length=listed[number])
    judging = taken(dict(options), JUDGING)
    names: dict[str, Any] = {"task": task.name, "metric": task.metric, "totals": totals}
    result = Ablation(cells, sums, **names, **judging, **facts)
    given = len(scored) + len(task.left_out)
    result.conserved(given, result.examples, given - int(scored.sum()), "examples")
    return result


def _scored(
    values: Float[np.ndarray, "cell example column"],
    cells: tuple[Cell, ...],
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


def _warn(number: int, error: HeadscopeError) -> None:
    warnings.warn(f"example {number} was left out: {error}", stacklevel=5)


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


def estimates_of(
    heads: Iterable[Cell], slopes: Float[np.ndarray, " head"], name: str, metric: str
) -> dict[Cell, float]:
    """What the mean score would change by without each head, to first order.

    Args:
        heads: stack, layer and head.
        slopes: see `slopes_of`, mean over examples.
        name: of the task.
        metric: of the task.

    Raises:
        InterventionError: where the score moves with no head.
    """
    if not slopes.any():
        raise InterventionError(
            f"The {metric} of {name!r} does not move with any head by a little, as a "
            "count of right answers does not; take a log likelihood or a loss, or leave the screen "
            "out"
        )
    return dict(zip(heads, (-slopes).tolist(), strict=True))


def left_by(
    estimates: Mapping[Cell, float], cells: tuple[Cell, ...], top: int | None
) -> tuple[Cell, ...]:
    """The heads with the largest estimated changes in either direction, and all whole layers, in
    their order.
    """
    ranked = sorted(estimates, key=lambda cell: -abs(estimates[cell]))
    left = set(ranked[: top or TOP])
    return tuple(cell for cell in cells if cell[2] < 0 or cell in left)


def check_screen(options: Mapping[str, Any], by: Any) -> None:
    """Raise where the options of a screen do not go together."""
    screen, top = options.get("screen"), options.get("top")
    if screen is None:
        if top is not None:
            raise InterventionError(f"top={top} needs screen='gradient', which ranks the heads")
        return
    if screen != "gradient":
        raise InterventionError(f"Expected 'gradient' for screen, got {screen!r}")
    if top is not None and (isinstance(top, bool) or not isinstance(top, int) or top < 1):
        raise InterventionError(f"Expected a number of heads of at least 1 for top, got {top!r}")
    # The slope tells what happens when a head's output shrinks to zero, and to nothing else.
    if by != "zero":
        raise InterventionError(
            f"screen='gradient' estimates what zeros do, and by is {by!r}; give by='zero', or "
            "leave the screen out"
        )
    if options.get("heads", True) is not True:
        raise InterventionError(
            "screen='gradient' chooses the heads itself; leave heads out, or the screen"
        )


def _check(options: Mapping[str, Any]) -> None:
    for name, value in options.items():
        if name not in AblationOptions.__annotations__:
            known = [
                own for own in AblationOptions.__annotations__ if own not in (*FOR_RUNS, *OPTIONS)
            ]
            raise RecordError(f"ablate has no option {name!r}; it has {', '.join(known)}")
        if name in FOR_RUNS and value not in (None, False):
            raise RecordError(
                f"{name} is for a run in parts; give out=, workers= or executor=, or leave it out: "
                "the task has its examples"
            )
        if name in ("confidence", "alpha") and not 0 < value < 1:
            raise RecordError(f"{name} is a number between 0 and 1, not {value}")
    if options.get("correction", "holm") not in CORRECTIONS:
        raise RecordError(
            f"correction is {options['correction']!r}; give {' or '.join(map(repr, CORRECTIONS))}"
        )


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
