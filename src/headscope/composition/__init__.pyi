"""The public names of `headscope.composition`, each once; `lazy_loader` reads them from here."""

from ._attended import attended as attended
from ._composition import composition as composition
from ._result import Attended as Attended
from ._result import Composition as Composition
