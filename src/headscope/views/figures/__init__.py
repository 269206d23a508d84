"""Figures for print: a view of a record as SVG, PDF or PNG, without a browser."""

from importlib import import_module
from pkgutil import iter_modules

from headscope.views.figure_options import FigureOptions
from headscope.views.figures._ablation_figure import ablation_figure
from headscope.views.figures._alignment_figure import alignment_figure
from headscope.views.figures._answer_figure import answer_figure
from headscope.views.figures._best_heads_figure import (
    coreference_figure,
    groups_figure,
    relations_figure,
)
from headscope.views.figures._difference_figure import difference_figure
from headscope.views.figures._faithfulness_figure import faithfulness_figure
from headscope.views.figures._figure import FORMATS, Figure, figure
from headscope.views.figures._heads_figure import heads_figure
from headscope.views.figures._mechanism_figure import mechanism_figure
from headscope.views.figures._norms_figure import norms_figure
from headscope.views.figures._probing_figure import probing_figure
from headscope.views.figures._recipe import Recipe
from headscope.views.figures._result import ResultOptions

__all__ = [
    "FORMATS",
    "Figure",
    "FigureOptions",
    "Recipe",
    "ResultOptions",
    "ablation_figure",
    "alignment_figure",
    "answer_figure",
    "coreference_figure",
    "difference_figure",
    "faithfulness_figure",
    "figure",
    "groups_figure",
    "heads_figure",
    "mechanism_figure",
    "norms_figure",
    "probing_figure",
    "relations_figure",
]

# What draws a kind of result enters itself with `headscope.results.draws`: a new `_x_figure.py` is
# found here, and needs no line in a list.
for _module in iter_modules(__path__):
    if _module.name.endswith("_figure"):
        import_module(f"{__name__}.{_module.name}")
