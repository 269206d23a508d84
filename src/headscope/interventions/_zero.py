"""Heads that hand on nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from headscope.capturing.seam import Where
from headscope.interventions._intervention import Intervention, Make
from headscope.interventions.plan import LayerPlace


@dataclass(frozen=True, kw_only=True, eq=False)
class Zero(Intervention):
    """The heads output zeros: ``xi_h = 0`` in ``MHA = sum_h xi_h Att_h``, the same as zeros in the
    output projection.

    The projection's bias stays. In the record the rows of such a head are zero: nothing it looked
    at went further.

    Source: Michel et al. 2019, section 2.3. Kovaleva et al. 2019 disable heads otherwise: see
    `Uniform`.

    Args:
        layer: see `Intervention`, as for the rest.

    Example:
        >>> capture(model, tokenizer, "The cat sat.", interventions=[Zero(layer=2, heads=[0, 3])])
    """

    where: ClassVar[Where] = "output"
    does: ClassVar[str] = "output set to zero"

    def maker(self, place: LayerPlace, heads: tuple[int, ...]) -> Make:
        """See `Intervention`."""
        return lambda old, at: torch.zeros_like(old)
