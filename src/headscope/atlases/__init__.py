"""Atlases: statistics of every head of a model over many texts, in sums that can be merged.

NumPy only; a model is run by `headscope.studies.atlas`.
"""

from headscope.atlases._atlas import CONFIDENCE, Atlas, AtlasHead, Neighbour, atlas_of
from headscope.atlases._comparison import PARTS, AtlasComparison, HeadPair, ScoreDifference
from headscope.atlases._counts import (
    ATLAS,
    CLASSES,
    RELATIONS,
    SIDE,
    STEP,
    bin_names,
    offset_bins,
    text_counts,
)
from headscope.atlases._examples import Example, FrequentPair, SampledText, Stratum

__all__ = [
    "ATLAS",
    "CLASSES",
    "CONFIDENCE",
    "PARTS",
    "RELATIONS",
    "SIDE",
    "STEP",
    "Atlas",
    "AtlasComparison",
    "AtlasHead",
    "Example",
    "FrequentPair",
    "HeadPair",
    "Neighbour",
    "SampledText",
    "ScoreDifference",
    "Stratum",
    "atlas_of",
    "bin_names",
    "offset_bins",
    "text_counts",
]
