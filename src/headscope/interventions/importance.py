"""How much each head matters to a score."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import nn

from headscope.capturing.run import at_rest, unwrapped
from headscope.capturing.seam import CallPositions, Where
from headscope.errors import InterventionError
from headscope.evidence import interval
from headscope.interventions._intervention import Intervention, Make
from headscope.interventions._replaced import Zero
from headscope.interventions.plan import LayerPlace
from headscope.interventions.session import intervene, plan_on
from headscope.measures import confidence
from headscope.record import Record, warn_changed
from headscope.tasks import Task, parse_task

Cell = tuple[str, int, int]


@dataclass(frozen=True, eq=False)
class Importance:
    """How much each head matters, on each example.

    Args:
        cells: stack, layer and head of each value; the head is -1 where a whole layer is meant.
        values: ``[example cell]``.
        name: what the values are.
    """

    cells: tuple[Cell, ...]
    values: Float[np.ndarray, "example cell"]
    name: str

    @property
    def mean(self) -> Float[np.ndarray, " cell"]:
        """Mean over the examples."""
        return self.values.mean(axis=0)

    @property
    def normalised(self) -> Float[np.ndarray, " cell"]:
        """Mean over the examples, divided by the l2 norm of its layer (Michel et al. 2019, section
        4).
        """
        mean, normalised = self.mean, np.zeros(len(self.cells))
        layers = [cell[:2] for cell in self.cells]
        for layer in dict.fromkeys(layers):
            own = np.array([other == layer for other in layers])
            # A layer of which no head matters has a norm of 0, and stays at 0.
            normalised[own] = mean[own] / max(float(np.linalg.norm(mean[own])), 1e-30)
        return normalised

    @property
    def order(self) -> tuple[Cell, ...]:
        """The cells, that which matters least first."""
        return tuple(self.cells[at] for at in np.argsort(self.mean, kind="stable"))

    def intervals(self, **options: Any) -> Float[np.ndarray, "cell 2"]:
        """Bootstrap intervals of the means over examples; options as of
        `headscope.evidence.interval`.
        """
        return interval(self.values, **options)

    def grid(self, stack: str | None = None) -> Float[np.ndarray, "layer head"]:
        """Means of one stack as a heat map; NaN where a layer has fewer heads."""
        names = dict.fromkeys(cell[0] for cell in self.cells)
        stack = next(iter(names)) if stack is None else stack
        if stack not in names:
            raise InterventionError(f"There is no stack {stack!r}; there are {', '.join(names)}")
        means = dict(zip(self.cells, self.mean, strict=True))
        own = [cell for cell in self.cells if cell[0] == stack]
        layers = sorted({layer for _, layer, _ in own})
        grid = np.full((len(layers), max(head for *_, head in own) + 1), np.nan)
        for cell in own:
            grid[layers.index(cell[1]), cell[2]] = means[cell]
        return grid


def gradient_importance(model: nn.Module, task: Any) -> Importance:
    """Expected sensitivity of the score to a head: ``I_h = E_x |ds(x)/dxi_h|`` at ``xi = 1``.

    ``MHA = sum_h xi_h Att_h``; by the chain rule ``ds/dxi_h = <Att_h, ds/dAtt_h>``, so that one
    forward and one backward pass give all heads. The absolute value is taken for each example,
    before the mean.

    Source: Michel et al. 2019, section 4, equation 2, there of the loss, which is minus a score.

    Args:
        model: in evaluation mode meanwhile; no parameter gets a gradient.
        task: a `headscope.tasks.Task`, or a function of the model that gives a score for each
            example; of a model that is not fit for it, ``dataclasses.replace(task, asks="")``.

    Returns:
        In units of the score.

    Raises:
        InterventionError: where layers work on windows, so that examples cannot be separated, or
            the score has no gradient.
        ModelError: where the model is not fit for the task.

    Example:
        >>> importance = gradient_importance(model, headscope.tasks.next_word(tokenizer, texts))
        >>> importance.order[:3]  # the heads that matter least
    """
    task, model = _ready(model, task)
    cells, slopes = gate_slopes(model, task)
    return Importance(cells, np.abs(slopes), f"|d {task.metric} / d xi|")


def _ready(model: nn.Module, given: Any) -> tuple[Task, Any]:
    """A task, and a model that is fit for it."""
    task, model = parse_task(given), unwrapped(model)
    task.check(model)
    return task, model


def gate_slopes(
    model: nn.Module, task: Task, stacks: Sequence[str] | None = None
) -> tuple[tuple[Cell, ...], Float[np.ndarray, "example cell"]]:
    """How the score of each example changes with a factor ``xi = 1`` on the output of each head.

    One forward and one backward pass over the examples for all heads together.

    Args:
        model: in evaluation mode meanwhile; no parameter gets a gradient.
        task: that scores the examples.
        stacks: which stacks of the model; by default all.

    Returns:
        Stack, layer and head of each column, and the slopes.

    Raises:
        InterventionError: where layers work on windows, so that examples cannot be distinguished,
            or the score has no gradient.
    """
    batches: list[np.ndarray] = []
    cells: tuple[Cell, ...] = ()
    with at_rest(model), torch.enable_grad():
        names = stacks or plan_on(model, lambda: task.values(model, 0)).stacks
        gates = [_Gate(stack=stack) for stack in names]
        with intervene(model, *gates):
            for number in range(len(task.batches)):
                scores = task.slopes_from(model, number)
                made = {place: xi for gate in gates for place, xi in gate.made.items()}
                # Each example has gates of its own, so the slope of the sum over examples is that
                # of every single score: one backward pass for all of them.
                slopes = torch.autograd.grad(
                    scores.sum(), list(made.values()), allow_unused=True, materialize_grads=True
                )
                batches.append(torch.cat(slopes, dim=1).double().cpu().numpy())
                cells = tuple(
                    (*place, head) for place, xi in made.items() for head in range(xi.shape[1])
                )
    return cells, task.joined(batches)


def leave_one_out(
    model: nn.Module, task: Any, *, by: Callable[..., Intervention] = Zero, layers: bool = False
) -> Importance:
    """How far the score falls when one head is disabled and the others are left as they are: ``s -
    s(without h)``.

    Source: Michel et al. 2019, section 3 (by zero); Kovaleva et al. 2019, section 4.4 (by uniform
    attention).

    Args:
        model: in evaluation mode meanwhile.
        task: see `gradient_importance`.
        by: how heads are disabled: `Zero` or `Uniform`, or whatever makes an intervention of stack,
            layer and heads.
        layers: disable whole layers instead, one at a time.

    Returns:
        In units of the score; positive where the head helps.

    Example:
        >>> leave_one_out(model, task, by=Uniform).mean
    """
    task, model = _ready(model, task)
    with at_rest(model):
        intact = scores_of(model, task)
        cells: list[Cell] = []
        for place in plan_on(model, lambda: task.values(model, 0)).places:
            heads = [-1] if layers else range(place.heads)
            cells += [(place.stack, place.layer, head) for head in heads]
        falls = [intact - scores_of(model, task, [one_of(cell, by)]) for cell in cells]
    return Importance(tuple(cells), np.stack(falls, axis=1), f"fall of {task.metric}")


def confidence_importance(records: Iterable[Record]) -> Importance:
    """Confidence of each head on each text: mean over its queries of the largest weight, special
    tokens left out.

    Source: Voita et al. 2019, section 4, who leave out the end-of-sentence token; see
    `headscope.measures.confidence`.

    Args:
        records: of one model.

    Raises:
        InterventionError: where there is no record, or a text has nothing but special tokens.
    """
    rows, cells, changes = [], (), []
    for record in records:
        changes.append(record.changed)
        values: list[float] = []
        own: list[Cell] = []
        for name, stack in record.stacks.items():
            words = ~np.array([bool(mark) for mark in stack.query.special])
            if not words.any():
                raise InterventionError(
                    f"Text {len(rows)} has nothing but special tokens; leave it out"
                )
            for layer in stack:
                values += confidence(layer.weights_of(), queries=words).tolist()
                own += [(name, layer.layer, head) for head in range(layer.heads)]
        rows.append(values)
        cells = tuple(own)
    if not rows:
        raise InterventionError("No record was given; give at least one")
    warn_changed("confidence_importance", changes)
    return Importance(cells, np.array(rows), "confidence")


def scores_of(
    model: nn.Module, task: Task, interventions: Sequence[Intervention] = ()
) -> Float[np.ndarray, " example"]:
    """The score of each example under some interventions."""
    with torch.no_grad(), intervene(model, *interventions):
        values = [task.values(model, number) for number in range(len(task.batches))]
    return task.scores(task.joined(values))


def one_of(cell: Cell, by: Callable[..., Intervention]) -> Intervention:
    """The intervention that disables one head, or one layer."""
    stack, layer, head = cell
    return by(stack=stack, layer=layer, heads=None if head < 0 else head)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Gate(Intervention):
    """Outputs times ``xi = 1``, one for each example and head, which gradients can be asked for."""

    made: dict[tuple[str, int], torch.Tensor] = field(default_factory=dict)
    where: ClassVar[Where] = "output"
    does: ClassVar[str] = "output times a gate"
    alone: ClassVar[str] = "example"

    def maker(self, place: LayerPlace, heads: tuple[int, ...]) -> Make:
        """See `Intervention`."""

        def gated(old: torch.Tensor, at: CallPositions) -> torch.Tensor:
            xi = torch.ones_like(old[:, 0, :, 0]).requires_grad_()
            self.made[place.stack, place.layer] = xi
            return old * xi[:, None, :, None]

        return gated


@dataclass(frozen=True, eq=False)
class PruningCurve:
    """The score after each step of pruning.

    Args:
        order: the heads in the order in which they were taken away.
        counts: how many were away at each step, from 0 on.
        scores: ``[step example]``.
        name: of the score.
    """

    order: tuple[Cell, ...]
    counts: tuple[int, ...]
    scores: Float[np.ndarray, "step example"]
    name: str

    @property
    def mean(self) -> Float[np.ndarray, " step"]:
        """Mean score of each step."""
        return self.scores.mean(axis=1)


def pruning_curve(
    model: nn.Module,
    task: Any,
    order: Sequence[Cell],
    *,
    steps: int = 10,
    by: Callable[..., Intervention] = Zero,
) -> PruningCurve:
    """The score as heads are taken away in a given order, a share of all heads at each step.

    Source: Michel et al. 2019, section 4: in the order of `gradient_importance`, the least
    important first, 10 % a step.

    Args:
        model: in evaluation mode meanwhile.
        task: see `gradient_importance`.
        order: heads, such as ``importance.order``.
        steps: how many; the last one takes away all of them.
        by: how heads are disabled, see `leave_one_out`.

    Raises:
        InterventionError: where the order is empty or names a head twice.

    Example:
        >>> pruning_curve(model, task, gradient_importance(model, task).order).mean
    """
    order = tuple(order)
    if not order or len(set(order)) < len(order) or steps < 1:
        raise InterventionError("pruning_curve needs heads, each once, and at least one step")
    # Of few heads and many steps some round to the same number: each is run once.
    rounded = [round(len(order) * step / steps) for step in range(steps + 1)]
    counts = tuple(dict.fromkeys(rounded))
    task, model = _ready(model, task)
    with at_rest(model):
        scores = [scores_of(model, task, without(order[:count], by)) for count in counts]
    return PruningCurve(order, counts, np.stack(scores), task.metric)


def greedy_pruning(
    model: nn.Module, task: Any, *, heads: int | None = None, by: Callable[..., Intervention] = Zero
) -> PruningCurve:
    """Take away at each step the head without which the score is highest, the ones before staying
    away.

    That is the best next step, not the best set; with H heads it takes up to H (H + 1) / 2 runs of
    the task.

    Args:
        model: in evaluation mode meanwhile.
        task: see `gradient_importance`.
        heads: how many to take away; all by default.
        by: how heads are disabled, see `leave_one_out`.
    """
    task, model = _ready(model, task)
    with at_rest(model):
        scores = [scores_of(model, task)]
        left: list[Cell] = []
        for place in plan_on(model, lambda: task.values(model, 0)).places:
            left += [(place.stack, place.layer, head) for head in range(place.heads)]
        # Which head is best to lose depends on those that are gone, so all are tried again.
        gone: list[Cell] = []
        for _ in range(len(left) if heads is None else min(heads, len(left))):
            tried = [scores_of(model, task, without([*gone, cell], by)) for cell in left]
            best = int(np.argmax([own.mean() for own in tried]))
            gone.append(left.pop(best))
            scores.append(tried[best])
    return PruningCurve(tuple(gone), tuple(range(len(gone) + 1)), np.stack(scores), task.metric)


def without(cells: Sequence[Cell], by: Callable[..., Intervention]) -> list[Intervention]:
    """Interventions that disable these heads, one for each layer."""
    # One for each layer and not for each head, so that a layer is changed once.
    layers: dict[tuple[str, int], list[int]] = {}
    for stack, layer, head in cells:
        layers.setdefault((stack, layer), []).append(head)
    return [by(stack=stack, layer=layer, heads=heads) for (stack, layer), heads in layers.items()]
