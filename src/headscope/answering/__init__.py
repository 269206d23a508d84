"""Ask a model, and see which parts of the prompt its answer looked at and needed.

``retrieval_tiny`` is a small model that answers from documents, made for headscope by
``benchmarks/make_retrieval_tiny.py``; licence CC0 1.0.
"""

import lazy_loader

# What a file of an answer is read with is entered on import; the model is what needs torch.
from headscope.answering._result import Answer as Answer

__getattr__, __dir__, _names = lazy_loader.attach_stub(__name__, __file__)
__all__ = sorted(_names)  # noqa: PLE0605 -- the stub is the one list
