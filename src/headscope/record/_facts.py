"""What is known about the model of a record, and what its layers were checked against."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headscope.record._layer import Layer


SHORT = 12
"""So many characters of a commit are enough to find it."""


@dataclass(frozen=True, kw_only=True)
class ModelFacts:
    """The model that a record comes from; all of it may be unknown, as for bare arrays.

    Args:
        name: hub name or folder.
        revision: commit of the hub repository, where known.
        weights: tells its weights from those of other models of its name; empty where they were not
            looked at.
        model_type: as in the configuration, such as ``"bert"``.
        class_name: such as ``"BertModel"``.
        implementation: how the model computed attention: ``"sdpa"``, ``"eager"`` ...
        dtype: of its weights, such as ``"float32"``, and the autocast it ran under, if any:
            ``"float32, autocast bfloat16"``.
        device: where it ran, such as ``"cpu"`` or ``"cuda:0"``; of a model on several devices all
            of them.
        quantization: how its weights were quantised, such as ``"bitsandbytes"``; empty where they
            were not.
        positions: how it tells positions apart: ``"absolute"``, ``"rotary"``, ``"alibi"`` or
            ``"relative"``.
        called_with: what a capture added to the model's arguments, other than the model's own
            default, such as ``{"use_cache": False}``; empty where the model was called as its user
            would.
        unseen: names of modules whose attention ran and is not in the record, beside the layers of
            `Stack.others`; empty where there are none.
        versions: the libraries that computed the record, such as ``{"torch": "2.13.0"}``.
    """

    name: str = ""
    revision: str | None = None
    weights: str = ""
    model_type: str = ""
    class_name: str = ""
    implementation: str = ""
    dtype: str = ""
    device: str = ""
    quantization: str = ""
    positions: str = ""
    called_with: Mapping[str, bool] = field(default_factory=dict)
    unseen: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def ran(self) -> str:
        """Where and how it ran, such as ``"cpu, float32, sdpa attention"``; empty where nothing is
        known.
        """
        implementation = self.implementation and f"{self.implementation} attention"
        revision = f"revision {self.revision[:SHORT]}" if self.revision else ""
        parts = (self.device, self.dtype, self.quantization, implementation, revision)
        return ", ".join(part for part in parts if part)


NOTHING = "nothing"
AGAINST = (NOTHING, "", "itself", "attention output", "layer output")
"""From the weakest to the strongest: nothing (of queries and keys that were given alone), not
known (of files written before it was kept), weights times values that were seen as just this
product, what the model's attention handed on, and what came out of the output projection.
"""
CALLED = {
    "layer output": "the model's own layer outputs",
    "attention output": "the model's own attention outputs",
}


def unverified_of(layers: Iterable[Layer]) -> str:
    """That weights follow from queries and keys that nothing stands against, and by which scale;
    empty for other layers.
    """
    scales = {f"{each.scale:.4g}": None for each in layers if each.verified_against == NOTHING}
    told = "unverified: of queries and keys that nothing stands against, scale "
    return told + ", ".join(scales) if scales else ""


ITSELF = "Checked against itself only (weights times values, as they were multiplied)"
UNKNOWN = "Checked when it was captured, against what was not kept"


def verification_of(layers: Sequence[Layer]) -> str:
    """One sentence: against what layers were checked, and the largest difference; empty where none
    was checked.
    """
    checked = [layer for layer in layers if layer.verified is not None]
    if not checked:
        return ""
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
