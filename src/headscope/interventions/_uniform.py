"""Heads that look at every token alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from headscope.capturing.seam import CallPositions, Where
from headscope.interventions._intervention import Intervention, Make
from headscope.interventions.plan import LayerPlace


@dataclass(frozen=True, kw_only=True, eq=False)
class Uniform(Intervention):
    """The heads spread their attention evenly: ``A[q, k] = 1 / L`` over the ``L`` tokens that the
    query may look at.

    Padding is none of them, nor is what a causal mask or a window hides; learned sinks get nothing.
    Over all heads of a layer its output is the mean of the visible values, projected.

    Source: Kovaleva et al. 2019, section 4.4 ("disabling"), with ``L`` the non-padding tokens.
    Michel et al. 2019 disable heads otherwise: see `Zero`.

    Args:
        layer: see `Intervention`, as for the rest.

    Example:
        >>> with intervene(model, Uniform(layer=4)):
        ...     model(**inputs)
    """

    where: ClassVar[Where] = "weights"
    does: ClassVar[str] = "attention made uniform"

    def maker(self, place: LayerPlace, heads: tuple[int, ...]) -> Make:
        """See `Intervention`."""
        return _even


def _even(old: torch.Tensor, at: CallPositions) -> torch.Tensor:
    visible = visible_of(at).to(old.dtype)
    return (visible / visible.sum(-1, keepdim=True).clamp(min=1)).expand_as(old)


def visible_of(at: CallPositions) -> torch.Tensor:
    """Where a query may look; always there while weights are changed."""
    if at.visible is None:
        raise ValueError("weights are changed by a part that changes something else")
    return at.visible
