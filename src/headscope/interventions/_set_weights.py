"""Heads whose attention is given from outside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch

from headscope.capturing.seam import CallPositions, Where
from headscope.errors import InterventionError
from headscope.interventions._intervention import Intervention, Make, needs_whole
from headscope.interventions._uniform import visible_of
from headscope.interventions.plan import LayerPlace

HIDDEN_AT_MOST = 1e-6
"""Weight on hidden keys that is taken for rounding, such as of another softmax."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SetWeights(Intervention):
    """The heads attend as given.

    Rows may sum to less than 1 (the rest goes nowhere), and must not put weight where the query may
    not look.

    Args:
        weights: ``[head query key]`` of the heads that are changed, in their order, or ``[query
            key]`` for each of them; over the text's own tokens, without padding. Or a list of
            these, one for each text of a batch. Or a function that makes them of the heads' own
            weights, called once for each text. Tensors keep their gradients.
        layer: see `Intervention`, as for the rest.

    Raises:
        InterventionError: in the run, where weights have another shape than the text, are negative,
            sum to more than 1 or lie on hidden keys.

    Example:
        >>> own = capture(model, tokenizer, text)["self"].weights(layer=3)
        >>> capture(
        ...     model, tokenizer, text, interventions=[SetWeights(own[::-1].copy(), layer=3)]
        ... )  # heads swapped
    """

    weights: Any
    where: ClassVar[Where] = "weights"
    does: ClassVar[str] = "attention given"

    def check(self, place: LayerPlace) -> None:
        """See `Intervention`."""
        needs_whole(place, "row")

    def maker(self, place: LayerPlace, heads: tuple[int, ...]) -> Make:
        """See `Intervention`."""
        return lambda old, at: laid(self._of, (old, at), place.name)

    def _of(self, own: torch.Tensor, example: int, count: int) -> torch.Tensor:
        given = self.weights
        if callable(given):
            given = given(own)
        elif isinstance(given, list | tuple):
            if len(given) != count:
                raise InterventionError(
                    f"Weights were given for {len(given)} texts, and the batch has {count}"
                )
            given = given[example]
        return given if isinstance(given, torch.Tensor) else torch.from_numpy(np.array(given))


def laid(
    given_for: Callable[[torch.Tensor, int, int], torch.Tensor],
    there: tuple[torch.Tensor, CallPositions],
    name: str,
) -> torch.Tensor:
    """Weights given for each text, laid where its tokens are; rows of padding stay as they are.

    Args:
        given_for: gives the weights ``[head query key]``, or ``[query key]``, of a text, from its
            own ones, its number in the batch and the number of texts.
        there: weights as they are ``[batch head query key]``, and the tokens.
        name: of the layer.

    Raises:
        InterventionError: where they do not fit.
    """
    old, at = there
    laid_out, visible = old.clone(), visible_of(at).expand_as(old)
    for example, (queries, keys) in enumerate(zip(at.queries, at.keys, strict=True)):
        own = old[example][:, queries[:, None], keys]
        given = given_for(own, example, len(at.queries)).to(old)
        shape = tuple(own.shape)
        if tuple(given.shape) not in (shape, shape[1:]):
            raise InterventionError(
                f"{name}: weights of shape {list(given.shape)} were given for text {example}; "
                f"expected [head query key] {list(shape)} or [query key] {list(shape[1:])}"
            )
        given = given.expand(shape)
        # Detached: only values are checked, and gradients must not run through the checks.
        _check(
            given.detach(), visible[example][:, queries[:, None], keys], f"{name}, text {example}"
        )
        # What is given is over the tokens of the text alone; keys of padding get nothing.
        row = torch.zeros_like(old[example])
        # A column of queries and a row of keys index the block of both, in whatever order they lie.
        row[:, queries[:, None], keys] = given
        padded = torch.ones(old.shape[2], dtype=torch.bool, device=old.device)
        padded[queries] = False
        laid_out[example] = old[example].where(padded[:, None], row)
    return laid_out


def _check(given: torch.Tensor, seen: torch.Tensor, name: str) -> None:
    if not torch.isfinite(given).all() or given.min() < 0 or given.sum(-1).max() > 1 + 1e-3:
        raise InterventionError(
            f"{name}: given weights must be from 0 to 1, and rows sum to no more than 1"
        )
    hidden = given.masked_fill(seen, 0.0)
    if hidden.max() > HIDDEN_AT_MOST:
        head, query, key = (hidden == hidden.max()).nonzero()[0].tolist()
        raise InterventionError(
            f"{name}: the weight {hidden.max().item():.3g} was given to row {head}, query "
            f"{query}, key {key}, which the query may not look at"
        )
