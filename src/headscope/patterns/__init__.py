"""Patterns of heads: definitions, labels over many texts, and the evidence for each label."""

from headscope.patterns._batch_values import BASELINES, BatchValues
from headscope.patterns._card import HeadCard
from headscope.patterns._groups import Group, Groups
from headscope.patterns._head_measures import MEASURES, Measure
from headscope.patterns._heads import Heads, check_heads_options, heads, levels_of
from headscope.patterns._heads_file import heads_of_kept, load_heads
from headscope.patterns._heads_file import kept_of as kept_of_heads
from headscope.patterns._kinds import (
    COLUMNS,
    KINDS,
    PLACES,
    HeadKinds,
    KindOfHead,
    TextFacts,
    head_kinds,
    head_numbers,
    numbers_of_heads,
    text_facts,
    weights_together,
)
from headscope.patterns._kovaleva import CLASSES, kovaleva_class, strengths
from headscope.patterns._maps import AttentionMaps, QueryKeyTokens, maps_of
from headscope.patterns._mechanism import Mechanism, mechanism
from headscope.patterns._mechanism_file import load_groups, load_mechanism_tally
from headscope.patterns._mechanism_tally import MechanismTally, Reading
from headscope.patterns._neuron import Neuron
from headscope.patterns._pattern import PATTERNS, MissingFunction, Pattern
from headscope.patterns._related import named_related, related_patterns
from headscope.patterns._sketch import painted, sketch
from headscope.patterns._tally import Tally, load_tally
from headscope.patterns._tally_sums import TallySums
from headscope.patterns._units import Units, units_of
from headscope.patterns.label import RUNS, Label

__all__ = [
    "BASELINES",
    "CLASSES",
    "COLUMNS",
    "KINDS",
    "MEASURES",
    "PATTERNS",
    "PLACES",
    "RUNS",
    "AttentionMaps",
    "BatchValues",
    "Group",
    "Groups",
    "HeadCard",
    "HeadKinds",
    "Heads",
    "KindOfHead",
    "Label",
    "Measure",
    "Mechanism",
    "MechanismTally",
    "MissingFunction",
    "Neuron",
    "Pattern",
    "QueryKeyTokens",
    "Reading",
    "Tally",
    "TallySums",
    "TextFacts",
    "Units",
    "check_heads_options",
    "head_kinds",
    "head_numbers",
    "heads",
    "heads_of_kept",
    "kept_of_heads",
    "kovaleva_class",
    "levels_of",
    "load_groups",
    "load_heads",
    "load_mechanism_tally",
    "load_tally",
    "maps_of",
    "mechanism",
    "named_related",
    "numbers_of_heads",
    "painted",
    "related_patterns",
    "sketch",
    "strengths",
    "text_facts",
    "units_of",
    "weights_together",
]
