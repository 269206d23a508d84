"""Studies over many texts: a corpus in parts, each a file, measured by one process or by many.

Nothing here knows of models: a job is given that makes what measures texts, and an engine that runs
it, any ``concurrent.futures.Executor``.
"""

from headscope.corpus._measurer import Measurer
from headscope.corpus._text import CorpusText, key_of

__all__ = ["CorpusText", "Measurer", "key_of"]
