"""The public names of `headscope.headvis`, each once; `lazy_loader` reads them from here."""

from ._heads import strongest_of_rows as strongest_of_rows
from ._page import headvis_page as headvis_page
from ._tree import HeadvisHead as HeadvisHead
from ._tree import HeadvisPlot as HeadvisPlot
from ._tree import HeadvisSequence as HeadvisSequence
from ._tree import HeadvisTable as HeadvisTable
from ._tree import HeadvisTree as HeadvisTree
from ._tree import read_headvis as read_headvis
from ._write import HeadvisOptions as HeadvisOptions
from ._write import check_tree_folder as check_tree_folder
from ._write import write_headvis as write_headvis
