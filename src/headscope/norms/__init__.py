"""What also needs values: how much each token adds, and where it comes from through the layers.

Pure functions of arrays in float64. A `Block` holds what one attention block computes with, as
NumPy arrays or as tensors on the model's own device; `headscope.capture` with ``keep="norms"``
finds all of it in the running model and keeps the maps.
"""

import lazy_loader

__getattr__, __dir__, _names = lazy_loader.attach_stub(__name__, __file__)
__all__ = sorted(_names)  # noqa: PLE0605 -- the stub is the one list
