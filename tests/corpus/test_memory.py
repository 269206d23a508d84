"""What a part took is given back before the next one."""

import sys
from pathlib import Path

import numpy as np
import pytest
from words_job import WordsJob, ran

STATUS = Path("/proc/self/status")
MIB = 2**20


def held():
    """Bytes of memory of this process that no file is behind."""
    lines = STATUS.read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("RssAnon")).split()[1])


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is trimmed on Linux alone")
def test_gaps_are_given_back_within_a_part(corpus):
    there, sizes = [], []

    class Gaps(WordsJob):
        def values_of(self, loaded, texts, failed):
            there.extend([np.ones(8_000) for _ in range(1_000)][::4])
            for measured in super().values_of(loaded, texts, failed):
                sizes.append(held())
                yield measured

    with ran(corpus, Gaps(), part_size=1000):
        # Of some 80 texts that differ: gaps that the first one left are gone before the last.
        assert sizes[0] - sizes[-1] > 20 * MIB
        assert len(there) == 250
