"""Per-head statistics of attention weights: pure functions of arrays.

Weights are ``A[head, query, key]``, row = the token that looks; values come in float64, NaN where a
measure does not apply to a text. The weights of a layer are ``record["self"].weights(layer)``.
"""

import lazy_loader

__getattr__, __dir__, _names = lazy_loader.attach_stub(__name__, __file__)
__all__ = sorted(_names)  # noqa: PLE0605 -- the stub is the one list
