"""The public names of `headscope.why`, each once; `lazy_loader` reads them from here."""

from ._result import Why as Why
from ._why import why as why
