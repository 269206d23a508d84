"""Studies over many texts: a corpus in parts, each a file, measured by one process or by many.

Nothing here knows of models: a job is given that makes what measures texts, and an engine that runs
it, any ``concurrent.futures.Executor``.
"""

import lazy_loader

__getattr__, __dir__, _names = lazy_loader.attach_stub(__name__, __file__)
__all__ = sorted(_names)  # noqa: PLE0605 -- the stub is the one list
