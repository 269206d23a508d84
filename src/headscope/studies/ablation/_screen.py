"""Which heads are worth disabling: a first estimate of every head from one backward pass."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import nn

from headscope.errors import InterventionError
from headscope.interventions.importance import gate_slopes
from headscope.studies.ablation._result import Cell
from headscope.tasks import Task

SCREENS = ("gradient",)
TOP = 10
"""Default for the number of heads that are disabled after a screen."""
NO_SLOPE = (
    "The {metric} of {name!r} does not move with any head by a little, as a count of right answers "
    "does not; take a log likelihood or a loss, or leave the screen out"
)


def check_screen(options: Mapping[str, Any], by: Any) -> None:
    """Raise where the options of a screen do not go together.

    Raises:
        InterventionError: saying which.
    """
    screen, top = options.get("screen"), options.get("top")
    if screen is None:
        if top is not None:
            raise InterventionError(f"top={top} needs screen='gradient', which ranks the heads")
        return
    if screen not in SCREENS:
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


def estimated_changes(model: nn.Module, task: Task, heads: Collection[Cell]) -> dict[Cell, float]:
    """What the mean score would change by without each head, to first order: minus its slope with
    the head's output times ``xi``, at ``xi = 1``.

    Exact where the score is linear in the head's output; an estimate everywhere else. One forward
    and one backward pass over the examples for all heads together.

    Source: Michel et al. 2019, section 4, equation 2, without the absolute value; the same idea as
    attribution patching (Syed et al. 2023).

    Args:
        model: in evaluation mode.
        task: whose score has a gradient.
        heads: stack, layer and head of those wanted.

    Raises:
        InterventionError: where the score has no gradient.
    """

    def scores() -> Iterator[torch.Tensor]:
        for number in range(len(task.batches)):
            yield task.slopes_from(model, number)

    stacks = tuple(dict.fromkeys(stack for stack, _, _ in heads))
    cells, slopes = gate_slopes(model, lambda: task.values(model, 0), scores, stacks)
    if not slopes.any():
        raise InterventionError(NO_SLOPE.format(metric=task.metric, name=task.name))
    # An example without a finite score is left out of the exact changes, too.
    means = np.nanmean(np.where(np.isfinite(slopes), slopes, np.nan), axis=0)
    wanted = set(heads)
    return {cell: float(-mean) for cell, mean in zip(cells, means, strict=True) if cell in wanted}


def screened(
    model: nn.Module, task: Task, cells: tuple[Cell, ...], top: int
) -> tuple[tuple[Cell, ...], dict[Cell, float]]:
    """The heads with the largest estimated changes in either direction, and all whole layers, in
    their order; and the estimates of all heads.
    """
    heads = [cell for cell in cells if cell[2] >= 0]
    estimates = estimated_changes(model, task, heads)
    left = strongest(estimates, top)
    return tuple(cell for cell in cells if cell[2] < 0 or cell in left), estimates


def strongest(estimates: Mapping[Cell, float], top: int) -> set[Cell]:
    """The heads with the largest estimated changes in either direction."""
    ranked = sorted(estimates, key=lambda cell: -abs(estimates[cell]))
    return set(ranked[:top])
