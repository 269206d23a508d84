"""Probes: what can be learnt of syntax from attention and hidden states, each with its controls.

A probe is trained with torch, in minutes on a processor, and imported at its first use; what it
found is read without torch. What is pure about it is in `headscope.linguistics`.
"""

import lazy_loader

__getattr__, __dir__, _names = lazy_loader.attach_stub(__name__, __file__)
__all__ = sorted(_names)  # noqa: PLE0605 -- the stub is the one list
