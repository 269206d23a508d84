"""How the loss grows as heads are taken away one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from torch import nn

from headscope.capturing.run import at_rest, unwrapped
from headscope.errors import InterventionError
from headscope.interventions._intervention import Intervention
from headscope.interventions._replaced import Zero
from headscope.interventions.importance import Cell, losses_of
from headscope.interventions.objective import Objective
from headscope.interventions.session import plan_on


@dataclass(frozen=True, eq=False)
class PruningCurve:
    """The loss after each step of pruning.

    Args:
        order: the heads in the order in which they were taken away.
        counts: how many were away at each step, from 0 on.
        losses: ``[step example]``.
        name: of the loss.
    """

    order: tuple[Cell, ...]
    counts: tuple[int, ...]
    losses: Float[np.ndarray, "step example"]
    name: str

    @property
    def mean(self) -> Float[np.ndarray, " step"]:
        """Mean loss of each step."""
        return self.losses.mean(axis=1)


def pruning_curve(
    model: nn.Module,
    objective: Objective,
    order: Sequence[Cell],
    *,
    steps: int = 10,
    by: Callable[..., Intervention] = Zero,
) -> PruningCurve:
    """The loss as heads are taken away in a given order, a share of all heads at each step.

    Source: Michel et al. 2019, section 4: in the order of `gradient_importance`, the least
    important first, 10 % a step.

    Args:
        model: in evaluation mode meanwhile.
        objective: the loss.
        order: heads, such as ``importance.order``.
        steps: how many; the last one takes away all of them.
        by: how heads are disabled, see `leave_one_out`.

    Raises:
        InterventionError: where the order is empty or names a head twice.

    Example:
        >>> pruning_curve(model, objective, gradient_importance(model, objective).order).mean
    """
    order = tuple(order)
    if not order or len(set(order)) < len(order) or steps < 1:
        raise InterventionError("pruning_curve needs heads, each once, and at least one step")
    # Of few heads and many steps some round to the same number: each is run once.
    rounded = [round(len(order) * step / steps) for step in range(steps + 1)]
    counts = tuple(dict.fromkeys(rounded))
    model = unwrapped(model)
    objective.check(model)
    with at_rest(model):
        losses = [losses_of(model, objective, without(order[:count], by)) for count in counts]
    return PruningCurve(order, counts, np.stack(losses), objective.name)


def greedy_pruning(
    model: nn.Module,
    objective: Objective,
    *,
    heads: int | None = None,
    by: Callable[..., Intervention] = Zero,
) -> PruningCurve:
    """Take away at each step the head without which the loss is least, the ones before staying
    away.

    That is the best next step, not the best set; with H heads it takes up to H (H + 1) / 2 runs of
    the objective.

    Args:
        model: in evaluation mode meanwhile.
        objective: the loss.
        heads: how many to take away; all by default.
        by: how heads are disabled, see `leave_one_out`.
    """
    model = unwrapped(model)
    objective.check(model)
    with at_rest(model):
        losses = [losses_of(model, objective)]
        left = [
            (place.stack, place.layer, head)
            for place in plan_on(model, objective.probe(model)).places
            for head in range(place.heads)
        ]
        # Which head is best to lose depends on those that are gone, so all are tried again.
        gone: list[Cell] = []
        for _ in range(len(left) if heads is None else min(heads, len(left))):
            tried = [losses_of(model, objective, without([*gone, cell], by)) for cell in left]
            best = int(np.argmin([loss.mean() for loss in tried]))
            gone.append(left.pop(best))
            losses.append(tried[best])
    return PruningCurve(tuple(gone), tuple(range(len(gone) + 1)), np.stack(losses), objective.name)


def without(cells: Sequence[Cell], by: Callable[..., Intervention]) -> list[Intervention]:
    """Interventions that disable these heads, one for each layer."""
    # One for each layer and not for each head, so that a layer is changed once.
    layers: dict[tuple[str, int], list[int]] = {}
    for stack, layer, head in cells:
        layers.setdefault((stack, layer), []).append(head)
    return [by(stack=stack, layer=layer, heads=heads) for (stack, layer), heads in layers.items()]
