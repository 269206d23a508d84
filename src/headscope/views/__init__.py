"""Records and results as pages and live views.

Submodules are loaded on first use: the command line reads the names of views and quantities for its
help, which is asked for more often than anything is drawn.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headscope.views._result_page import ResultPage
    from headscope.views.opening import View, view
    from headscope.views.options import PageOptions

__all__ = ["PageOptions", "ResultPage", "View", "view"]

MODULES = {"PageOptions": "options", "ResultPage": "_result_page"}
"""The submodule of each name; all others are in `opening`."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"headscope.views has no {name!r}; it has {', '.join(__all__)}")
    return getattr(importlib.import_module(f"headscope.views.{MODULES.get(name, 'opening')}"), name)


def __dir__() -> list[str]:
    return __all__
