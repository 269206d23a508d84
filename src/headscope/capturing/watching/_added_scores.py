"""What goes into the scores of a layer besides the product of its queries and keys."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from headscope.capturing.watching._score_trace import Product

BESIDE_REMEMBERED = 2
"""Of layers that differ in what they add, such as in a window, most models have two kinds."""
NEGLIGIBLE = {torch.float64: 1e-9, torch.float32: 1e-5}
NEGLIGIBLE_HALF = 2e-2
HIDES = -5000.0
"""Scores below, that weigh nothing, are hidden ones of models that do not use the lowest number
there is (-1e4).
"""


@dataclass(frozen=True, eq=False)
class AddedScores:
    """What goes into the scores of a layer besides the product of its queries and keys.

    Args:
        added: to the scaled product, broadcast to ``[batch head query key]``: bias and mask in one.
        mask: of a `Call`.
        bias: of a `Call`.
        steps: that led from the product to the scores; None where they are not known.
        held: tensors that were added in these steps: no others may come to lie in their place.
    """

    added: torch.Tensor
    mask: torch.Tensor | None
    bias: torch.Tensor | None
    steps: tuple[Any, ...] | None
    held: tuple[torch.Tensor, ...]

    def fits(self, scores: torch.Tensor) -> bool:
        """Whether it can be added to a product of these sizes."""
        sizes = zip(self.added.shape, scores.shape, strict=True)
        return self.added.dtype == scores.dtype and all(own in (1, size) for own, size in sizes)

    def leads(self, product: torch.Tensor, scores: torch.Tensor) -> bool:
        """Whether it leads from a scaled product to these scores, every one of them."""
        low, high = torch.stack(torch.aminmax((product + self.added).sub_(scores))).tolist()
        within = NEGLIGIBLE.get(scores.dtype, NEGLIGIBLE_HALF)
        return -within <= low and high <= within


class ScoresAndWeights(NamedTuple):
    """What went into a softmax, and what came out.

    Args:
        scores: ``[batch head query key]``.
        weights: likewise.
        steps: that led from the product of queries and keys to the scores; None where they are not
            known.
        held: tensors that were added in these steps.
    """

    scores: torch.Tensor
    weights: torch.Tensor
    steps: tuple[Any, ...] | None
    held: tuple[torch.Tensor, ...]


def queries_and_keys(
    products: Sequence[Product], softmax: ScoresAndWeights, known: list[AddedScores]
) -> dict[str, Any]:
    """Queries, keys, scale, mask and bias from which the scores follow, as arguments of a `Call`;
    {} if they do not.

    Whatever was done to the product besides multiplying it with a number (ALiBi, relative
    positions, a soft cap) is left as bias: scores minus scaled product. So the scores are exact for
    every chain of operations.

    Args:
        products: that the scores may come from.
        softmax: the scores and their weights.
        known: what other layers added, which is tried first; what this one adds is put to it.
    """
    weights = softmax.weights
    for product in products:
        query, key = product.query, product.key
        fits = (
            query.shape[:3] == weights.shape[:3]
            and key.shape[2] == weights.shape[3]
            and not weights.shape[1] % key.shape[1]
        )
        if not fits or key.shape[0] != weights.shape[0]:
            continue
        beside = _known_or_new(product, softmax, known)
        if beside is not None:
            operands = {"query": query, "key": key, "scale": product.scale}
            return operands | {"mask": beside.mask, "bias": beside.bias}
    return {}


def visible_in(softmax: ScoresAndWeights) -> torch.Tensor | None:
    """True where a query may look, broadcast to the weights ``[batch head query key]``; None for
    everywhere.
    """
    visible = _visible(softmax)
    return None if _all(visible) else _alike(visible)


def _known_or_new(
    product: Product, softmax: ScoresAndWeights, known: list[AddedScores]
) -> AddedScores | None:
    """What was added to a product: what another layer added, if that leads to the same scores."""
    fitting = [each for each in known if each.fits(softmax.scores)]
    for each in fitting:
        # The same steps add the same tensors, so that no number need be compared.
        if each.steps is not None and each.steps == softmax.steps:
            return each
    query, key = product.query, product.key
    # Heads that share their keys are one product with more rows.
    shared = query.reshape(len(query), key.shape[1], -1, query.shape[-1])
    raw = (shared @ key.transpose(-1, -2)).view(*query.shape[:3], -1)
    raw = raw.mul_(product.scale)
    for each in fitting:
        if each.leads(raw, softmax.scores):
            return each
    new = _new(raw, softmax)
    if new is not None:
        known[:] = [new, *known][:BESIDE_REMEMBERED]
    return new


def _visible(softmax: ScoresAndWeights) -> torch.Tensor:
    """True where neither the lowest number was added, nor another so low that nothing is weighed
    (or all is weighed alike, in rows where everything is hidden).
    """
    return softmax.scores > max(HIDES, torch.finfo(softmax.scores.dtype).min / 2)


def _new(raw: torch.Tensor, softmax: ScoresAndWeights) -> AddedScores | None:
    """What must be added to a scaled product to make these scores; None where they are no
    numbers.
    """
    scores, visible = softmax.scores, _visible(softmax)
    added = scores - raw
    left, largest = added.where(visible, 0.0), _largest(scores.where(visible, 0.0))
    if not math.isfinite(largest):
        return None
    allowed = NEGLIGIBLE.get(scores.dtype, NEGLIGIBLE_HALF) * max(1.0, largest)
    mask = None if _all(visible) else _alike(visible)
    steps, held = softmax.steps, softmax.held
    if _largest(left) <= allowed:
        return AddedScores(_alike(added.masked_fill(visible, 0)), mask, None, steps, held)
    return AddedScores(added, mask, _alike(left), steps, held)


def _largest(tensor: torch.Tensor) -> float:
    """The largest absolute number, or NaN."""
    low, high = torch.stack(tensor.aminmax()).tolist()
    return max(high, -low)


def _all(marked: torch.Tensor) -> bool:
    """Whether all are marked: as bytes, fifty times faster than ``Tensor.all`` on a CPU."""
    return bool(marked.view(torch.uint8).amin())


def _alike(tensor: torch.Tensor) -> torch.Tensor:
    """Without the batch and the head axis where all entries of it are the same."""
    for axis in (0, 1):
        first = tensor.narrow(axis, 0, 1)
        if tensor.shape[axis] > 1 and torch.equal(tensor, first.expand_as(tensor)):
            tensor = first
    return tensor
