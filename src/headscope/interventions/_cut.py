"""Links between tokens that are cut."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from headscope.capturing.seam import CallPositions, Where, rows_of
from headscope.errors import InterventionError
from headscope.interventions._intervention import (
    Intervention,
    Make,
    Numbers,
    needs_whole,
    parse_numbers,
)
from headscope.interventions.plan import LayerPlace


@dataclass(frozen=True, kw_only=True, eq=False)
class Cut(Intervention):
    """The links from these queries to these keys carry nothing: ``A[q, k] = 0``.

    With the rest renormalised this is what the head would compute if the key had been hidden before
    the softmax; a row of which nothing is left is zero. Without, the rest stays as it is and the
    row sums to less than 1.

    Args:
        keys: positions of the tokens that are looked at.
        renormalise: whether the rest of the row is to sum to what the whole did.
        layer: see `Intervention`, as for the rest; ``queries`` are the tokens that look.

    Raises:
        InterventionError: where no key is given.

    Example:
        >>> capture(
        ...     model, tokenizer, text, interventions=[Cut(layer=5, heads=1, queries=4, keys=0)]
        ... )
    """

    keys: Numbers = None
    renormalise: bool = True
    where: ClassVar[Where] = "weights"
    does: ClassVar[str] = "links"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "keys", parse_numbers(self.keys, "Cut: keys"))
        if self.keys is None:
            raise InterventionError(
                "Cut needs the keys that are no longer to be looked at: Cut(queries=4, keys=0)"
            )

    def check(self, place: LayerPlace) -> None:
        """See `Intervention`."""
        needs_whole(place, "link")

    def maker(self, place: LayerPlace, heads: tuple[int, ...]) -> Make:
        """See `Intervention`."""
        return self._without

    def _without(self, old: torch.Tensor, at: CallPositions) -> torch.Tensor:
        cut = rows_of(self.keys, at.keys, old.shape[3], old.device)[:, None, None]  # ty: ignore[invalid-argument-type]
        kept = old.masked_fill(cut, 0.0)
        if not self.renormalise:
            return kept
        # Had the key been hidden before the softmax, its share would have gone to the other keys
        # and to a learned sink alike, which has what the row lacks of 1.
        rest, whole = kept.sum(-1, keepdim=True), old.sum(-1, keepdim=True)
        sink = (1 - whole).clamp(min=0) if at.sinks else torch.zeros_like(whole)
        factor = (whole + sink) / (rest + sink)
        return kept * factor.where(rest > 0, torch.zeros_like(factor))

    def description(self, heads: tuple[int, ...]) -> str:
        """See `Intervention`."""
        how = "renormalised" if self.renormalise else "not renormalised"
        keys = ", ".join(map(str, self.keys or ()))  # ty: ignore[invalid-argument-type]
        return (
            super()
            .description(heads)
            .replace("links", f"links to keys {keys} cut, the rest {how}", 1)
        )
