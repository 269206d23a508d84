"""Figures for print: a view of a record as SVG, PDF or PNG, without a browser."""

from headscope.views.figures._figure import FORMATS, Figure, figure
from headscope.views.figures._options import FigureOptions
from headscope.views.figures._recipe import Recipe

__all__ = ["FORMATS", "Figure", "FigureOptions", "Recipe", "figure"]
