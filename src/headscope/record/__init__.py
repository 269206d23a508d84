"""What attention is here: the data, frozen and checked; NumPy only."""

from headscope.record._batch import BatchLayer, BatchStack, TextBatch
from headscope.record._checks import check_finite
from headscope.record._contributions import (
    CONTRIBUTION_KINDS,
    CONTRIBUTIONS,
    ContributionKind,
    Contributions,
)
from headscope.record._facts import AGAINST, ModelFacts, weakest
from headscope.record._from_nnsight import from_nnsight
from headscope.record._from_transformer_lens import from_transformer_lens
from headscope.record._generation import Candidate, Generation
from headscope.record._held_heads import HeldHeads
from headscope.record._layer import Layer
from headscope.record._layer_checks import ARRAYS
from headscope.record._mask import Mask
from headscope.record._record import Record
from headscope.record._stack import Stack
from headscope.record._statistics import OFFSETS, STATISTICS, Statistics, statistics_of
from headscope.record._stored import Array, StoredArray, StoredArrays, array_field, held, part_of
from headscope.record._tokens import Tokens
from headscope.record._weight_blocks import WeightBlock, sampled_queries
from headscope.record._words import Words, word_maps
from headscope.record.bare_arrays import from_weights
from headscope.record.rotary import Rotary

__all__ = [
    "AGAINST",
    "ARRAYS",
    "CONTRIBUTIONS",
    "CONTRIBUTION_KINDS",
    "OFFSETS",
    "STATISTICS",
    "Array",
    "BatchLayer",
    "BatchStack",
    "Candidate",
    "ContributionKind",
    "Contributions",
    "Generation",
    "HeldHeads",
    "Layer",
    "Mask",
    "ModelFacts",
    "Record",
    "Rotary",
    "Stack",
    "Statistics",
    "StoredArray",
    "StoredArrays",
    "TextBatch",
    "Tokens",
    "WeightBlock",
    "Words",
    "array_field",
    "check_finite",
    "from_nnsight",
    "from_transformer_lens",
    "from_weights",
    "held",
    "part_of",
    "sampled_queries",
    "statistics_of",
    "weakest",
    "word_maps",
]
