"""Record to disk and back; loads without torch."""

from headscope.storage._atomic import written_whole
from headscope.storage._record_file import load, save

__all__ = ["load", "save", "written_whole"]
