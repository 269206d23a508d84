"""Figures for print: a view of a record as SVG, PDF or PNG, without a browser."""

from headscope.views.figures._figure import Figure, figure
from headscope.views.figures._options import FigureOptions
from headscope.views.figures._recipe import Recipe

__all__ = ["Figure", "FigureOptions", "Recipe", "figure"]
