"""What attention is here: the data, frozen and checked; NumPy only."""

from headscope.record._facts import ModelFacts
from headscope.record._from_weights import from_weights
from headscope.record._layer import ARRAYS, Layer
from headscope.record._record import Record
from headscope.record._stack import Stack
from headscope.record._statistics import OFFSETS, STATISTICS, Statistics, statistics_of
from headscope.record._tokens import Tokens

__all__ = [
    "ARRAYS",
    "OFFSETS",
    "STATISTICS",
    "Layer",
    "ModelFacts",
    "Record",
    "Stack",
    "Statistics",
    "Tokens",
    "from_weights",
    "statistics_of",
]
