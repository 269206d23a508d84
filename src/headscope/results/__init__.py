"""What results of studies have in common: tables, figures, pages."""

from headscope.results._registry import drawing_of, draws, shows, view_of
from headscope.results._result import Result, no_figure, no_page
from headscope.results._table import aligned

__all__ = ["Result", "aligned", "drawing_of", "draws", "no_figure", "no_page", "shows", "view_of"]
