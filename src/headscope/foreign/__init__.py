"""Records from what other libraries and engines kept: TransformerLens, nnsight, queries and keys
alone. None of them is imported; NumPy only.
"""

import lazy_loader

__getattr__, __dir__, _names = lazy_loader.attach_stub(__name__, __file__)
__all__ = sorted(_names)  # noqa: PLE0605 -- the stub is the one list
