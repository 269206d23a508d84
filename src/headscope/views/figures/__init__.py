"""Figures for print: a view of a record as SVG, PDF or PNG, without a browser."""

from importlib import import_module
from pkgutil import iter_modules

from headscope.views.figure_options import FigureOptions, ResultOptions
from headscope.views.figures._figure import FORMATS, Figure, Recipe, figure

__all__ = ["FORMATS", "Figure", "FigureOptions", "Recipe", "ResultOptions", "figure"]

# What draws a kind of result enters itself with `headscope.results.draws`: a new `_x_figure.py` is
# found here, and needs no line in a list.
for _module in iter_modules(__path__):
    if _module.name.endswith("_figure"):
        import_module(f"{__name__}.{_module.name}")
