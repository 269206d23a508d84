"""Common parts of all results of studies: tables, files, figures, pages."""

from headscope.results._file import load, save
from headscope.results._registry import EVERY_KIND, drawing_of, draws, reads, shows, view_of
from headscope.results._result import Kept, Result, check_conserved, no_figure
from headscope.results._table import WIDTH, Column, TextTable, wrapped

__all__ = [
    "EVERY_KIND",
    "WIDTH",
    "Column",
    "Kept",
    "Result",
    "TextTable",
    "check_conserved",
    "drawing_of",
    "draws",
    "load",
    "no_figure",
    "reads",
    "save",
    "shows",
    "view_of",
    "wrapped",
]
