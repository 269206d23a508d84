"""Two records side by side: a model before and after a change, two texts, two models."""

from headscope.comparison._alignment import Span, TokenAlignment, align
from headscope.comparison._compare import Comparison, compare
from headscope.comparison._grid import Grid, grid_tokens
from headscope.comparison.effect import Effect, OutputChange
from headscope.comparison.stack import StackComparison

__all__ = [
    "Comparison",
    "Effect",
    "Grid",
    "OutputChange",
    "Span",
    "StackComparison",
    "TokenAlignment",
    "align",
    "compare",
    "grid_tokens",
]
