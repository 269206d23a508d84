"""What the layers of a record were checked against, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headscope.record._layer import Layer

AGAINST = ("", "itself", "attention output", "layer output")
"""From what says least to what says most: not known (of files written before it was kept), weights
times values that were seen as just this product, what the model's attention handed on, and what
came out of the output projection.
"""
CALLED = {
    "layer output": "the model's own layer outputs",
    "attention output": "the model's own attention outputs",
}


ITSELF = "Checked against itself only (weights times values, as they were multiplied)"
UNKNOWN = "Checked when it was captured, against what was not kept"


def weakest(against: Iterable[str]) -> str:
    """What says least; nothing where there is none."""
    return min(against, key=AGAINST.index, default="")


def verification_of(layers: Sequence[Layer]) -> str:
    """One sentence: against what layers were checked, and the largest difference; empty where none
    was checked.
    """
    checked = [layer for layer in layers if layer.verified is not None]
    return _sentence(checked) if checked else ""


def _sentence(checked: Sequence[Layer]) -> str:
    counts = Counter(layer.verified_against for layer in checked)
    numbers = _numbers(checked)
    compared = [against for against in counts if against in CALLED]
    if not compared:
        return f"{ITSELF if counts['itself'] else UNKNOWN}: {numbers}"
    rest = len(checked) - sum(counts[against] for against in compared)
    alone = f"; {rest} of {len(checked)} layers against themselves only" if rest else ""
    names = " and ".join(_named(against, counts) for against in compared)
    return f"Checked against {names}: {numbers}{alone}"


def _named(against: str, counts: Counter[str]) -> str:
    if len(counts) == 1:
        return CALLED[against]
    return f"{CALLED[against]} ({counts[against]} of {counts.total()} layers)"


def _numbers(layers: Sequence[Layer]) -> str:
    """The difference that comes nearest to its limit."""
    # Files written before the limit was kept have none; then only the difference can be given.
    limited = [layer for layer in layers if layer.verified_limit]
    if len(limited) < len(layers):
        return f"largest difference {max(layer.verified or 0.0 for layer in layers):.1e}"
    worst = max(limited, key=lambda layer: (layer.verified or 0.0) / (layer.verified_limit or 1.0))
    return f"largest difference {worst.verified:.1e} (passes; limit {worst.verified_limit:.1e})"
