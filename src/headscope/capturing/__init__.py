"""Model to record; with interventions the only place that knows torch.

The public names are listed in `__init__.pyi`, each once, and loaded on first use, so that mistakes
in a text or a name are reported before torch is imported.
"""

from __future__ import annotations

from typing import Any

import lazy_loader

from headscope._missing_packages import missing_package
from headscope.errors import HeadscopeError

_load, __dir__, _names = lazy_loader.attach_stub(__name__, __file__)
__all__ = sorted(_names)  # noqa: PLE0605 -- the stub is the one list


def __getattr__(name: str) -> Any:
    if name not in _names:
        raise AttributeError(f"{__name__} has no {name!r}; it has {', '.join(__all__)}")
    try:
        return _load(name)
    except ModuleNotFoundError as error:
        raise HeadscopeError(missing_package(error)) from None
