"""Tiny configurations of many architectures."""

from __future__ import annotations

from headscope.testing._architectures_media import PAIRS, PICTURES, SERIES, SEVERAL, SOUNDS, VIDEOS
from headscope.testing._architectures_text import (
    DECODERS,
    ENCODER_DECODERS,
    ENCODERS,
    VOCABULARY,
    Sizes,
)

KINDS: dict[str, dict[str, Sizes]] = {
    "Text": ENCODERS | DECODERS | ENCODER_DECODERS,
    "Pictures": PICTURES,
    "Video": VIDEOS,
    "Sound": SOUNDS,
    "Time series": SERIES,
    "Pictures and text": SEVERAL,
    "Pairs of models": PAIRS,
}
"""The architectures by what they read."""

ARCHITECTURES: dict[str, Sizes] = {
    name: sizes for kind in KINDS.values() for name, sizes in kind.items()
}
"""By model type (and variant), what the configuration says: sizes that differ, so that no mixed-up
axis goes unseen.
"""

__all__ = ["ARCHITECTURES", "KINDS", "VOCABULARY", "Sizes"]
