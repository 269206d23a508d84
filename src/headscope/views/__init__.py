"""Record to something to look at.

Loaded on first use: the command line takes the names of views and quantities from `_contract` for
its help, which is read more often than anything is drawn.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headscope.views._result_page import ResultPage
    from headscope.views.opening import (
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
    from headscope.views.opening import view as page
    from headscope.views.options import PageOptions

__all__ = [
    "PageOptions",
    "ResultPage",
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

PLACES = {"PageOptions": "options", "ResultPage": "_result_page"}
"""All else is in `opening`."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"headscope.views has no {name!r}; it has {', '.join(__all__)}")
    place = PLACES.get(name, "opening")
    module = importlib.import_module(f"headscope.views.{place}")
    return getattr(module, "view" if name == "page" else name)


def __dir__() -> list[str]:
    return __all__
