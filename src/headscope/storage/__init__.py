"""Record and results to disk and back; loads without torch."""

import lazy_loader

# Not lazily: nnsight puts a method of this name on every object, modules too.
from headscope.storage._record_file import save as save

__getattr__, __dir__, _names = lazy_loader.attach_stub(__name__, __file__)
__all__ = sorted(_names)  # noqa: PLE0605 -- the stub is the one list
