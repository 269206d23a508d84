"""What kept statistics are the results of: tallies of heads and studies of norms of headscope
0.1.
"""

from __future__ import annotations

import os

from headscope.errors import FileError
from headscope.evidence import load_statistic
from headscope.patterns import Heads, load_tally
from headscope.results import Result, reads
from headscope.storage import STATISTIC
from headscope.studies.norms._file import load_norm_study
from headscope.studies.norms._values import FIRST_ROWS

TALLY_ROW = "measure entropy"
"""A row that every tally of heads has, and nothing else."""


@reads(STATISTIC)
def load_of_statistic(path: str | os.PathLike[str]) -> Result:
    """The result that a statistic is of, by the names of its rows.

    Raises:
        FileError: where the file does not exist, is cut, or holds a statistic of something else.
        RecordError: where it is a tally of patterns of one's own.
    """
    # A bare statistic does not say what it is of; its rows have names that no other result has.
    names = load_statistic(path).names
    if TALLY_ROW in names:
        return Heads(load_tally(path))
    if names[: len(FIRST_ROWS)] == FIRST_ROWS:
        return load_norm_study(path)
    raise FileError(
        f"{path} holds a statistic of your own; headscope.evidence.load_statistic reads it"
    )
