"""Two records side by side: a model before and after a change, two texts, two models."""

import lazy_loader

# What a file of a result is read with is entered on import.
from headscope.comparison.effect import Effect as Effect

__getattr__, __dir__, _names = lazy_loader.attach_stub(__name__, __file__)
__all__ = sorted(_names)  # noqa: PLE0605 -- the stub is the one list
