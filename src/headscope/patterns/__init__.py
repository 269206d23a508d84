"""Heads that do something: patterns by definition, found over many texts, with evidence for each label."""

from headscope.patterns._card import HeadCard
from headscope.patterns._heads import Heads, heads
from headscope.patterns._kovaleva import CLASSES, kovaleva_class, strengths
from headscope.patterns._label import Label
from headscope.patterns._maps import Maps, Sides, maps_of
from headscope.patterns._pattern import PATTERNS, Pattern
from headscope.patterns._predictive import predictive
from headscope.patterns._sketch import painted, sketch
from headscope.patterns._tally import BASELINES, Tally, load_tally

__all__ = [
    "BASELINES",
    "CLASSES",
    "PATTERNS",
    "HeadCard",
    "Heads",
    "Label",
    "Maps",
    "Pattern",
    "Sides",
    "Tally",
    "heads",
    "kovaleva_class",
    "load_tally",
    "maps_of",
    "painted",
    "predictive",
    "sketch",
    "strengths",
]
