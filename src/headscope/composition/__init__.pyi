"""The public names of `headscope.composition`, each once; `lazy_loader` reads them from here."""

from ._attended import attended as attended
from ._result import Attended as Attended
