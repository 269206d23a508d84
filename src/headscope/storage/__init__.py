"""Record and results to disk and back; loads without torch."""

from headscope.storage._atomic import written_whole
from headscope.storage._kept import load_kept, save_kept
from headscope.storage._record_file import load, save

__all__ = ["load", "load_kept", "save", "save_kept", "written_whole"]
