"""Atlases: statistics of every head of a model over many texts, in sums that can be merged.

NumPy only; a model is run by `headscope.studies.atlas`.
"""

from headscope.atlases._atlas import CONFIDENCE, Atlas, AtlasHead, Neighbour
from headscope.atlases._classes import CLASSES, RELATIONS
from headscope.atlases._comparison import AtlasComparison, HeadPair, ScoreDifference
from headscope.atlases._file import atlas_of, load_atlas
from headscope.atlases._frequent_pairs import FrequentPair
from headscope.atlases._offset_bins import SIDE, bin_names, offset_bins
from headscope.atlases._sample import SampledText
from headscope.atlases._similarity import PARTS
from headscope.atlases._strata import Example, Stratum
from headscope.atlases._sums import STEP, AtlasSums, MeasuredText

__all__ = [
    "CLASSES",
    "CONFIDENCE",
    "PARTS",
    "RELATIONS",
    "SIDE",
    "STEP",
    "Atlas",
    "AtlasComparison",
    "AtlasHead",
    "AtlasSums",
    "Example",
    "FrequentPair",
    "HeadPair",
    "MeasuredText",
    "Neighbour",
    "SampledText",
    "ScoreDifference",
    "Stratum",
    "atlas_of",
    "bin_names",
    "load_atlas",
    "offset_bins",
]
