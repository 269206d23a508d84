"""The public names of `headscope.results`, each once; `lazy_loader` reads them from here."""

from ._result import EVERY_KIND as EVERY_KIND
from ._result import Kept as Kept
from ._result import Result as Result
from ._result import check_conserved as check_conserved
from ._result import drawing_of as drawing_of
from ._result import draws as draws
from ._result import load as load
from ._result import no_figure as no_figure
from ._result import save as save
from ._result import shows as shows
from ._result import view_of as view_of
from ._table import Column as Column
from ._table import TextTable as TextTable
from ._table import wrapped as wrapped
