"""Studies over many texts: a corpus in parts, each a file, measured by one process or by many.

Nothing here knows of models: a job is given that makes what measures texts, and an engine that runs
it, any ``concurrent.futures.Executor``.
"""

from headscope.corpus._engines import (
    Engine,
    RayExecutor,
    dask_cluster,
    given,
    pool,
    this_process,
    worker_number,
)
from headscope.corpus._folder import RunFolder
from headscope.corpus._run import (
    OPTIONS,
    FinishedRun,
    RunOptions,
    asks_for_run,
    engine_of,
    run,
)
from headscope.corpus._sums import EACH, EXAMPLE, FILE, REFUSED, WHOLE, Counted, Counts, Sums
from headscope.corpus._text import ALONE, CorpusText, Kept, TextNames, documents_of, key_of

__all__ = [
    "ALONE",
    "EACH",
    "EXAMPLE",
    "FILE",
    "OPTIONS",
    "REFUSED",
    "WHOLE",
    "CorpusText",
    "Counted",
    "Counts",
    "Engine",
    "FinishedRun",
    "Kept",
    "RayExecutor",
    "RunFolder",
    "RunOptions",
    "Sums",
    "TextNames",
    "asks_for_run",
    "dask_cluster",
    "documents_of",
    "engine_of",
    "given",
    "key_of",
    "pool",
    "run",
    "this_process",
    "worker_number",
]
