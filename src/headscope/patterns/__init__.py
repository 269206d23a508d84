"""Patterns of heads: definitions, labels over many texts, and the evidence for each label."""

from headscope.patterns._batch_values import BASELINES, BatchValues
from headscope.patterns._head_measures import CLASSES, MEASURES, Measure, kovaleva_class, strengths
from headscope.patterns._heads import Heads, check_heads_options, heads, levels_of
from headscope.patterns._heads_file import heads_of_kept, load_tally
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
from headscope.patterns._maps import AttentionMaps, QueryKeyTokens, maps_of
from headscope.patterns._pattern import PATTERNS, MissingFunction, Pattern
from headscope.patterns._related import named_related, related_patterns
from headscope.patterns._sketch import painted, sketch
from headscope.patterns._tally import Tally, TokenRuns, model_facts
from headscope.patterns.label import RUNS, HeadCard, Label
from headscope.patterns.neuron_groups import Group, Groups, Neuron

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
    "MissingFunction",
    "Neuron",
    "Pattern",
    "QueryKeyTokens",
    "Tally",
    "TextFacts",
    "TokenRuns",
    "check_heads_options",
    "head_kinds",
    "head_numbers",
    "heads",
    "heads_of_kept",
    "kept_of_heads",
    "kovaleva_class",
    "levels_of",
    "load_tally",
    "maps_of",
    "model_facts",
    "named_related",
    "numbers_of_heads",
    "painted",
    "related_patterns",
    "sketch",
    "strengths",
    "text_facts",
    "weights_together",
]
