"""Does it matter? Every head and every layer disabled in turn, and what that does to a score."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any, Literal, TypedDict

import numpy as np
from torch import nn
from typing_extensions import Unpack

from headscope.capturing import random_twin
from headscope.capturing._load import display_name
from headscope.capturing._run import at_rest, unwrapped
from headscope.errors import InterventionError, RecordError
from headscope.evidence._correction import CORRECTIONS
from headscope.interventions import Intervention, Mean, Uniform, Zero
from headscope.interventions._plan import Plan
from headscope.interventions._session import plan_on
from headscope.studies._ablation_journal import Journal, fingerprint_of
from headscope.studies._ablation_mean import averaged
from headscope.studies._ablation_result import Ablation, Cell
from headscope.studies._ablation_run import Run
from headscope.tasks import Task, parse_task

By = Callable[..., Intervention]
WAYS: dict[str, By] = {"zero": Zero, "uniform": Uniform}
RANDOM = ".random"
"""What the name of the file that a run can go on from ends in, for random weights."""


class AblationOptions(TypedDict, total=False):
    """Options of `ablate`."""

    heads: bool | Collection[tuple[int, int]]
    """Layer and head of those that are disabled; all by default, none where False."""
    layers: bool | Collection[int]
    """Layers that are disabled as a whole; all by default, none where False."""
    stack: str | None
    """Of which stack; all by default."""
    resume: str | os.PathLike | None
    """A file in which every value is kept as it is found; a run that was killed goes on from it."""
    share: bool
    """Compute the layers below the changed one once (True), or run the whole model every time."""
    confidence: float
    """Of the bootstrap intervals over examples, 0.95."""
    alpha: float
    """Chance of any false change that is accepted, 0.05."""
    correction: Literal["holm", "benjamini-hochberg"]
    """For trying many heads: ``"holm"``, or ``"benjamini-hochberg"`` for the share of false ones."""
    random_weights: bool
    """Do the same to this architecture with random weights, too: ``control`` of the result (False)."""
    progress: bool
    """Whether to show a bar on terminals."""


def ablate(
    model: Any,
    task: Any,
    *,
    by: By | str = "zero",
    **options: Unpack[AblationOptions],
) -> Ablation:
    """Disable every head and every layer in turn and measure what that does to a score, example by example.

    ``change = mean_x score(x without the head) - score(x)``; negative where the head helps. Intervals are bootstrapped
    over examples; each change is tested by flipping the signs of the paired differences, corrected over all heads, and
    over all layers by themselves.

    Batch by batch: the model is run as it is and what every layer is given and returns is kept; then, for each head,
    layers that would be given the same again are passed over. That is tried without any change on the first batch, and
    where what the model returns is not the same to the last bit it is run as a whole every time; the result says so.

    Source: Michel et al. 2019, section 3 (zero); Kovaleva et al. 2019, section 4.4 (uniform; whole layers).

    Args:
        model: with the head that the task needs; in evaluation mode meanwhile.
        task: a `headscope.tasks.Task`, an `Objective`, or a function of the model that gives a score for each example,
            in one run or several; higher is better.
        by: ``"zero"`` (`Zero`), ``"uniform"`` (`Uniform`), ``"mean"`` (`Mean` over examples of the task), or whatever
            makes an intervention of stack, layer and heads.
        **options: see `AblationOptions`.

    Raises:
        InterventionError: a task, head, layer or stack that is not there, or attention that cannot be changed.
        FileError: where a file to go on with belongs to another model or task.
        RecordError: an option that there is not.

    Example:
        >>> found = ablate(model, headscope.tasks.next_word(tokenizer, texts), by="uniform", resume="ablation.jsonl")
        >>> found.plot("ablation.pdf")
    """
    _check(options)
    task, model = parse_task(task), unwrapped(model)
    found = _ablated(model, task, by, options)
    if not options.get("random_weights"):
        return found
    beside = options.get("resume")
    again = AblationOptions(**options | {"resume": None if beside is None else f"{os.fspath(beside)}{RANDOM}"})
    return replace(found, control=replace(_ablated(random_twin(model), task, by, again), totals={}))


def _ablated(model: nn.Module, task: Task, by: By | str, options: AblationOptions) -> Ablation:
    with at_rest(model), _without_cache(model):
        plan = plan_on(model, lambda: task.values(model, 0))
        cells = _cells(plan, options)
        make = _parse_by(by, model, task)
        done = make(stack=cells[0][0], layer=cells[0][1]).does
        header = {"model": fingerprint_of(model), "task": task.fingerprint, "way of disabling heads": done}
        run = Run(model, task, plan, make)
        with closing(Journal(options.get("resume"), header)) as journal:
            shared = run.all(cells, journal, share=options.get("share", True), progress=options.get("progress", False))
            intact, *others = (
                task.joined([journal[number, cell] for number in range(len(task.batches))]) for cell in (None, *cells)
            )
    return Ablation(
        cells,
        np.stack([task.scores(values) for values in others], axis=1),
        task.scores(intact),
        task=task.name,
        metric=task.metric,
        by=done,
        model=display_name(model),
        totals={name: tuple(total(values) for values in (intact, *others)) for name, total in task.totals.items()},
        shared=shared,
        confidence=options.get("confidence", 0.95),
        alpha=options.get("alpha", 0.05),
        correction=options.get("correction", "holm"),
    )


def _check(options: Mapping[str, Any]) -> None:
    unknown = [name for name in options if name not in AblationOptions.__annotations__]
    if unknown:
        raise RecordError(f"ablate has no option {unknown[0]!r}; it has {', '.join(AblationOptions.__annotations__)}")
    for name, usual in (("confidence", 0.95), ("alpha", 0.05)):
        if not 0 < options.get(name, usual) < 1:
            raise RecordError(f"{name} is a number between 0 and 1, not {options[name]}")
    if options.get("correction", "holm") not in CORRECTIONS:
        raise RecordError(f"correction is {options['correction']!r}; give {' or '.join(map(repr, CORRECTIONS))}")


def _cells(plan: Plan, options: Mapping[str, Any]) -> tuple[Cell, ...]:
    """What is disabled, one after the other.

    Raises:
        InterventionError: where a head, layer or stack is not there, or nothing is left.
    """
    stack, heads, layers = options.get("stack"), options.get("heads", True), options.get("layers", True)
    places = [place for name in ([stack] if stack else plan.stacks) for place in plan.chosen(name, None)]
    single = [(place.stack, place.layer, head) for place in places for head in range(place.heads)]
    whole = [(place.stack, place.layer, -1) for place in places]
    if not isinstance(heads, bool):
        wanted = {(int(layer), int(head)) for layer, head in heads}
        missing = sorted(wanted - {cell[1:] for cell in single})
        if missing:
            raise InterventionError(f"There is no head {missing[0][0]}-{missing[0][1]}; there are {_said(single)}")
        single = [cell for cell in single if cell[1:] in wanted]
    if not isinstance(layers, bool):
        missing = sorted(set(layers) - {cell[1] for cell in whole})
        if missing:
            raise InterventionError(f"There is no layer {missing[0]}; there are {sorted({c[1] for c in whole})}")
        whole = [cell for cell in whole if cell[1] in set(layers)]
    found = (*(single if heads is not False else ()), *(whole if layers is not False else ()))
    if not found:
        raise InterventionError("Nothing is to be disabled; leave heads or layers as True, or name some")
    return found


def _said(cells: list[Cell]) -> str:
    return f"{cells[0][1]}-{cells[0][2]} to {cells[-1][1]}-{cells[-1][2]}"


def _parse_by(by: Any, model: nn.Module, task: Task) -> By:
    """What makes the intervention of stack, layer and heads.

    Raises:
        InterventionError: where there is no such way.
    """
    if by == "mean":
        records = averaged(model, task)
        return lambda **where: Mean(records=records, **where)
    if isinstance(by, str) and by in WAYS:
        return WAYS[by]
    if isinstance(by, str) or not callable(by):
        raise InterventionError(f"by is {by!r}; give 'zero', 'uniform', 'mean', or what makes an intervention")
    return by


@contextmanager
def _without_cache(model: nn.Module) -> Generator[None]:
    """No cache while the block is open: layers that write to one cannot be passed over."""
    config: Any = getattr(model, "config", None)
    before = getattr(config, "use_cache", None)
    if before is None:
        yield
        return
    config.use_cache = False
    try:
        yield
    finally:
        config.use_cache = before
