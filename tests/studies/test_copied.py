"""Results can be pickled and copied: for other processes, for notebooks that keep them, for
caches.
"""

import copy
import pickle
from pathlib import Path

import pytest

import headscope as hs

KEPT = Path(__file__).parents[1] / "results" / "kept"


@pytest.mark.parametrize("path", sorted(KEPT.iterdir()), ids=lambda path: path.stem)
def test_a_result_is_copied(path):
    found = hs.load(path)
    for again in (pickle.loads(pickle.dumps(found)), copy.deepcopy(found)):
        assert type(again) is type(found)
        assert str(again) == str(found)
        assert again.columns() == found.columns() or "nan" in str(found.columns())
