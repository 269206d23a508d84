"""Trees of HeadVis (Luger et al. 2026): read from disk, and written of a model.

A tree is a folder of JSON: the metrics of every head, and for each head the texts on which it
attends in some five strengths, their rows cut to the largest weights. Reading needs NumPy only, and
writing what ``headscope[headvis]`` installs. Nothing else of headscope needs this package.
"""

import lazy_loader

# What a tree is read with, and what shows it, is entered on import.
from headscope.headvis._page import headvis_page as headvis_page

__getattr__, __dir__, _names = lazy_loader.attach_stub(__name__, __file__)
__all__ = sorted(_names)  # noqa: PLE0605 -- the stub is the one list
