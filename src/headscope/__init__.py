"""headscope: see what every attention head of a transformer does.

The public names stand in `__init__.pyi`, each once, and are loaded on first use, so that ``import
headscope`` loads neither torch nor transformers.
"""

from __future__ import annotations

import sys
import types
from typing import Any

import lazy_loader

from headscope._missing_packages import missing_package
from headscope._version import __version__ as __version__

from . import errors

_load, __dir__, _names = lazy_loader.attach_stub(__name__, __file__)
__all__ = sorted({*_names, "__version__"})  # noqa: PLE0605 -- the stub is the one list


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"headscope has no {name!r}; it has {', '.join(__all__)}")
    try:
        return _load(name)
    except ModuleNotFoundError as error:
        raise errors.HeadscopeError(missing_package(error)) from None


class _Package(types.ModuleType):
    """nnsight puts a method ``save`` on every object, modules too, which hides what ``__getattr__``
    would find.
    """

    def __getattribute__(self, name: str) -> Any:
        own = super().__getattribute__("__dict__")
        if name in own.get("__all__", ()) and name != "__version__":
            return own["__getattr__"](name)
        return super().__getattribute__(name)


sys.modules[__name__].__class__ = _Package
