"""Record to something to look at."""

from headscope.views._options import PageOptions
from headscope.views._page import ViewerPage, page
from headscope.views._page import page as view

__all__ = ["PageOptions", "ViewerPage", "page", "view"]
