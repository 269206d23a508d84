"""Figures for print: a view of a record as SVG, PDF or PNG, without a browser."""

from headscope.views.figures._ablation_figure import ablation_figure
from headscope.views.figures._alignment_figure import alignment_figure
from headscope.views.figures._faithfulness_figure import faithfulness_figure
from headscope.views.figures._figure import FORMATS, Figure, figure
from headscope.views.figures._heads_figure import heads_figure
from headscope.views.figures._mechanism_figure import mechanism_figure
from headscope.views.figures._options import FigureOptions
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
    "faithfulness_figure",
    "figure",
    "heads_figure",
    "mechanism_figure",
]
