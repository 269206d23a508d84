"""Record to something to look at."""

from headscope.views._options import PageOptions
from headscope.views._view import (
    View,
    head_view,
    matrix_view,
    model_view,
    neuron_view,
    pair_view,
    scatter_view,
    text_view,
    view,
)
from headscope.views._view import view as page

__all__ = [
    "PageOptions",
    "View",
    "head_view",
    "matrix_view",
    "model_view",
    "neuron_view",
    "page",
    "pair_view",
    "scatter_view",
    "text_view",
    "view",
]
