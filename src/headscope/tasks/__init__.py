"""What a model is to be good at: texts, and a score for each example of which more is better.

Everything here needs torch, which is loaded at the first use of a name.
"""

import lazy_loader

__getattr__, __dir__, _names = lazy_loader.attach_stub(__name__, __file__)
__all__ = sorted(_names)  # noqa: PLE0605 -- the stub is the one list
