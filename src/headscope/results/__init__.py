"""Common parts of all results of studies: tables, files, figures, pages."""

from headscope.results._registry import EVERY_KIND, drawing_of, draws, shows, view_of
from headscope.results._result import Kept, Result, check_conserved, load, no_figure, save
from headscope.results._table import Column, TextTable, wrapped

__all__ = [
    "EVERY_KIND",
    "Column",
    "Kept",
    "Result",
    "TextTable",
    "check_conserved",
    "drawing_of",
    "draws",
    "load",
    "no_figure",
    "save",
    "shows",
    "view_of",
    "wrapped",
]
