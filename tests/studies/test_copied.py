"""Results can be pickled and copied: for other processes, for notebooks that keep them, for
caches.
"""

import copy
import pickle

import pytest

from headscope.studies import (
    Ablation,
    load_alignment_study,
    load_coref,
    load_mechanism,
    load_norm_study,
    load_relations,
)

from ..storage.test_mutants import CASES

LOADERS = {
    "mechanism.safetensors": load_mechanism,
    "norms.safetensors": load_norm_study,
    "relations.safetensors": load_relations,
    "coref.safetensors": load_coref,
    "alignment.safetensors": load_alignment_study,
    "ablation.safetensors": Ablation.load,
}


@pytest.mark.parametrize("name", LOADERS)
def test_a_result_is_copied(name, tmp_path):
    CASES[name][0](tmp_path / name)
    found = LOADERS[name](tmp_path / name)
    for again in (pickle.loads(pickle.dumps(found)), copy.deepcopy(found)):
        assert type(again) is type(found)
        assert str(again) == str(found)
        assert again.columns() == found.columns() or "nan" in str(found.columns())
