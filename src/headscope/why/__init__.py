"""Why a model said a word: from the answer back through layers and heads to the words."""

import lazy_loader

# What a file of a result is read with is entered on import; the model is what needs torch.
from headscope.why._result import Why as Why

__getattr__, __dir__, _names = lazy_loader.attach_stub(__name__, __file__)
__all__ = sorted(_names)  # noqa: PLE0605 -- the stub is the one list
