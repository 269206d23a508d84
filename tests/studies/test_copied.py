"""Results can be pickled and copied: for other processes, for notebooks that keep them, for
caches.
"""

import copy
import pickle

import pytest

from headscope.studies import (
    Ablation,
    AlignmentStudy,
    Coreference,
    Mechanism,
    NormStudy,
    Relations,
)

from ..storage.test_mutants import CASES

LOADERS = {
    "mechanism.safetensors": Mechanism.load,
    "norms.safetensors": NormStudy.load,
    "relations.safetensors": Relations.load,
    "coref.safetensors": Coreference.load,
    "alignment.safetensors": AlignmentStudy.load,
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
