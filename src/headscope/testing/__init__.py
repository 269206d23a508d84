"""What tests of headscope, ours and others', are made of.

The public names are listed in `__init__.pyi`, each once, and loaded on first use: a random record
needs no torch.
"""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, _names = lazy_loader.attach_stub(__name__, __file__)
__all__ = sorted(_names)  # noqa: PLE0605 -- the stub is the one list
