"""What heads read of what earlier heads wrote: on a text (`attended`), and by their weights."""

import lazy_loader

# What a file of a result is read with is entered on import; the models are what needs torch.
from headscope.composition._result import Attended as Attended
from headscope.composition._result import Composition as Composition

__getattr__, __dir__, _names = lazy_loader.attach_stub(__name__, __file__)
__all__ = sorted(_names)  # noqa: PLE0605 -- the stub is the one list
