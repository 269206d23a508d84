"""Atlases: statistics of every head of a model over many texts, in sums that can be merged.

NumPy only; a model is run by `headscope.studies.atlas`.
"""

import lazy_loader

__getattr__, __dir__, _names = lazy_loader.attach_stub(__name__, __file__)
__all__ = sorted(_names)  # noqa: PLE0605 -- the stub is the one list
