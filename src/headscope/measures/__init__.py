"""Per-head statistics of attention weights: pure functions of arrays.

Weights are ``A[head, query, key]``, row = the token that looks; values come in float64, NaN where a
measure does not apply to a text. The weights of a layer are ``record["self"].weights(layer)``.
"""

from headscope.measures._carriers import carriers, chance_overlap, neuron_scores, set_overlap
from headscope.measures._confidence import confidence
from headscope.measures._copying import copying
from headscope.measures._distance import mean_distance
from headscope.measures._divergence import head_distances, jensen_shannon, jensen_shannon_parts
from headscope.measures._effective import effective_attention, null_dimension
from headscope.measures._entropy import CLARK_SMOOTHING, entropy, row_entropy
from headscope.measures._evenness import evenness
from headscope.measures._head_map import head_map, stress
from headscope.measures._induction import prefix_matching, prefix_targets, repeated_tokens
from headscope.measures._mass import mass_on, mass_on_pairs, property_share, strongest_column
from headscope.measures._offsets import OFFSETS, mass_at_offsets, peak_at_offset, row_peaks
from headscope.measures._pairs import (
    form,
    other_segment,
    related,
    same_form,
    same_segment,
    same_token,
    word_forms,
    words,
)
from headscope.measures._rank import kendall, spearman
from headscope.measures._rows import with_missing_mass
from headscope.measures._sink import sink_rate, sink_strength
from headscope.measures._token_class import TokenClass, token_class
from headscope.measures._variability import first_tokens, variability
from headscope.measures._word_class import word_classes
from headscope.measures.alignment import (
    aligned_words,
    alignment_counts,
    alignment_error_rate,
)
from headscope.record import word_maps

__all__ = [
    "CLARK_SMOOTHING",
    "OFFSETS",
    "TokenClass",
    "aligned_words",
    "alignment_counts",
    "alignment_error_rate",
    "carriers",
    "chance_overlap",
    "confidence",
    "copying",
    "effective_attention",
    "entropy",
    "evenness",
    "first_tokens",
    "form",
    "head_distances",
    "head_map",
    "jensen_shannon",
    "jensen_shannon_parts",
    "kendall",
    "mass_at_offsets",
    "mass_on",
    "mass_on_pairs",
    "mean_distance",
    "neuron_scores",
    "null_dimension",
    "other_segment",
    "peak_at_offset",
    "prefix_matching",
    "prefix_targets",
    "property_share",
    "related",
    "repeated_tokens",
    "row_entropy",
    "row_peaks",
    "same_form",
    "same_segment",
    "same_token",
    "set_overlap",
    "sink_rate",
    "sink_strength",
    "spearman",
    "stress",
    "strongest_column",
    "token_class",
    "variability",
    "with_missing_mass",
    "word_classes",
    "word_forms",
    "word_maps",
    "words",
]
