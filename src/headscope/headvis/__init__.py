"""Trees of HeadVis (Luger et al. 2026): read from disk, and written of a model.

A tree is a folder of JSON: the metrics of every head, and for each head the texts on which it
attends in some five strengths, their rows cut to the largest weights. Reading needs NumPy only, and
writing what ``headscope[headvis]`` installs. Nothing else of headscope needs this package.
"""

from headscope.headvis._heads import strongest_of_rows
from headscope.headvis._page import headvis_page
from headscope.headvis._tree import (
    HeadvisHead,
    HeadvisPlot,
    HeadvisSequence,
    HeadvisTable,
    HeadvisTree,
    read_headvis,
)
from headscope.headvis._write import HeadvisOptions, check_tree_folder, write_headvis

__all__ = [
    "HeadvisHead",
    "HeadvisOptions",
    "HeadvisPlot",
    "HeadvisSequence",
    "HeadvisTable",
    "HeadvisTree",
    "check_tree_folder",
    "headvis_page",
    "read_headvis",
    "strongest_of_rows",
    "write_headvis",
]
