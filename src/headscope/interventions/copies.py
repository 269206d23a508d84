"""Several changes of one layer made in one pass, each in its own copy of the batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from headscope.capturing.seam import Copies, LayerChange
from headscope.interventions._intervention import Intervention, Make
from headscope.interventions._replaced import Mean, MeanOutput, Uniform, Zero
from headscope.interventions.plan import LayerPlace, ModelPlan

SEPARATE: tuple[type[Intervention], ...] = (Zero, Uniform, Mean, MeanOutput)
"""Changes of weights or outputs that depend on their own copy alone. A class of one's own may draw
random numbers, which must come in the order of the heads.
"""


def may_be_copied(change: Intervention, place: LayerPlace) -> bool:
    """Whether a change of a place may be made in one copy of a batch of several."""
    # A copy is a part of the batch axis, which torch's operators and windows do not show.
    is_seen = place.route == "interface" and place.whole and not place.visit
    return is_seen and type(change) in SEPARATE


def in_copies(changes: Sequence[Intervention], copies: Copies) -> list[Intervention]:
    """The changes, each of one copy of the batch, in this order."""
    return [
        _InCopy(change=change, copies=copies, number=number)
        for number, change in enumerate(changes)
    ]


@dataclass(frozen=True, kw_only=True, eq=False)
class _InCopy(Intervention):
    """A change of one copy of the batch."""

    change: Intervention
    copies: Copies
    number: int

    def parts(self, plan: ModelPlan) -> Iterator[tuple[LayerPlace, LayerChange]]:
        """See `Intervention`."""
        for place, part in self.change.parts(plan):
            yield place, replace(part, copy=(self.copies, self.number))

    def maker(self, place: LayerPlace, heads: tuple[int, ...]) -> Make:
        """See `Intervention`."""
        return self.change.maker(place, heads)
