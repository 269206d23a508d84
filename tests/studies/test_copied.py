"""Results can be pickled and copied: for other processes, for notebooks that keep them, for
caches.
"""

import copy
import pickle

import pytest

from headscope.patterns import load_mechanism_tally
from headscope.studies import (
    Ablation,
    load_alignment_study,
    load_coref,
    load_norm_study,
    load_relations,
)

from ..storage.test_mutants import CASES

LOADERS = {
    "mechanism.npz": load_mechanism_tally,
    "norms.npz": load_norm_study,
    "relations.npz": load_relations,
    "coref.npz": load_coref,
    "alignment.npz": load_alignment_study,
    "ablation.npz": Ablation.load,
}


@pytest.mark.parametrize("name", LOADERS)
def test_a_result_is_copied(name, tmp_path):
    CASES[name][0](tmp_path / name)
    found = LOADERS[name](tmp_path / name)
    for again in (pickle.loads(pickle.dumps(found)), copy.deepcopy(found)):
        assert type(again) is type(found)
        if name == "mechanism.npz":
            assert again.row("mass", "margin").tolist() == found.row("mass", "margin").tolist()
        else:
            assert str(again) == str(found)
            assert again.columns() == found.columns() or "nan" in str(found.columns())
