"""What is known about the model that a record comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

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
        dtype: of its weights, such as ``"float32"``.
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
