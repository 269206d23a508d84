"""Record to something to look at."""

from headscope.views._page import PageOptions, ViewerPage, page

__all__ = ["PageOptions", "ViewerPage", "page"]
