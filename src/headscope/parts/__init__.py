"""Parts of what a model reads, such as turns and documents: found in conversations, texts, pictures
and sounds.
"""

import lazy_loader

__getattr__, __dir__, _names = lazy_loader.attach_stub(__name__, __file__)
__all__ = sorted(_names)  # noqa: PLE0605 -- the stub is the one list
