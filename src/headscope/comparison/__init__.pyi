"""The public names of `headscope.comparison`, each once; `lazy_loader` reads them from here."""

from ._alignment import Span as Span
from ._alignment import TokenAlignment as TokenAlignment
from ._alignment import align as align
from ._compare import Comparison as Comparison
from ._compare import compare as compare
from ._grid import Grid as Grid
from ._grid import grid_tokens as grid_tokens
from .effect import Effect as Effect
from .effect import OutputChange as OutputChange
from .stack import StackComparison as StackComparison
