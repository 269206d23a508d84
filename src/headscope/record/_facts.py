"""What is known about the model that a record comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class ModelFacts:
    """The model that a record comes from; all of it may be unknown, as for bare arrays.

    Args:
        name: hub name or folder.
        revision: commit of the hub repository, where known.
        model_type: as in the configuration, such as ``"bert"``.
        class_name: such as ``"BertModel"``.
        implementation: how the model computed attention: ``"sdpa"``, ``"eager"`` ...
        dtype: such as ``"float32"``.
        positions: how it tells positions apart: ``"absolute"``, ``"rotary"``, ``"alibi"`` or ``"relative"``.
        versions: the libraries that computed the record, such as ``{"torch": "2.13.0"}``.
    """

    name: str = ""
    revision: str | None = None
    model_type: str = ""
    class_name: str = ""
    implementation: str = ""
    dtype: str = ""
    positions: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
