"""Analyses end to end: from a model and texts, or from records, to a result that prints, plots and
exports.

What changes a model while it runs (ablation, effects, faithfulness) or is trained (probes) is
imported at its first use, since it imports torch; records are studied without it.
"""

import importlib
from typing import TYPE_CHECKING, Any

from headscope.studies._embedding_role import embedding_role
from headscope.studies._heads import heads
from headscope.studies._mechanism import mechanism
from headscope.studies._statistic_file import load_of_statistic
from headscope.studies.ablation._result import Ablation
from headscope.studies.alignment._best_place import BestPlace
from headscope.studies.alignment._file import load_alignment_study
from headscope.studies.alignment._pair import AlignedPair
from headscope.studies.alignment._pair_files import read_aligned_pairs
from headscope.studies.alignment._result import AlignmentStudy
from headscope.studies.alignment._study import alignment_study
from headscope.studies.alignment._word_alignment import WordAlignment, word_alignment
from headscope.studies.coreference._file import load_coref
from headscope.studies.coreference._head import AntecedentHead
from headscope.studies.coreference._result import Coreference
from headscope.studies.coreference._study import coref
from headscope.studies.dependencies._file import load_relations
from headscope.studies.dependencies._head import RelationHead
from headscope.studies.dependencies._result import Relations
from headscope.studies.dependencies._study import relations
from headscope.studies.norms._study import NormStudy, load_norm_study, norm_study
from headscope.studies.shared._canvas import check_plot

if TYPE_CHECKING:
    from headscope.studies._effect import effect
    from headscope.studies.ablation._study import AblationOptions, ablate
    from headscope.studies.explaining._erasure import erasure
    from headscope.studies.explaining._explained import Explained
    from headscope.studies.explaining._study import Faithfulness, faithfulness
    from headscope.studies.explaining._tampering import Tampering
    from headscope.studies.probes import Probing, probe

_WITH_TORCH = {
    "AblationOptions": "headscope.studies.ablation._study",
    "ablate": "headscope.studies.ablation._study",
    "Explained": "headscope.studies.explaining._explained",
    "Faithfulness": "headscope.studies.explaining._study",
    "Probing": "headscope.studies.probes",
    "Tampering": "headscope.studies.explaining._tampering",
    "effect": "headscope.studies._effect",
    "erasure": "headscope.studies.explaining._erasure",
    "faithfulness": "headscope.studies.explaining._study",
    "probe": "headscope.studies.probes",
}

__all__ = [
    "Ablation",
    "AblationOptions",
    "AlignedPair",
    "AlignmentStudy",
    "AntecedentHead",
    "BestPlace",
    "Coreference",
    "Explained",
    "Faithfulness",
    "NormStudy",
    "Probing",
    "RelationHead",
    "Relations",
    "Tampering",
    "WordAlignment",
    "ablate",
    "alignment_study",
    "check_plot",
    "coref",
    "effect",
    "embedding_role",
    "erasure",
    "faithfulness",
    "heads",
    "load_alignment_study",
    "load_coref",
    "load_norm_study",
    "load_of_statistic",
    "load_relations",
    "mechanism",
    "norm_study",
    "probe",
    "read_aligned_pairs",
    "relations",
    "word_alignment",
]


def __getattr__(name: str) -> Any:
    if name not in _WITH_TORCH:
        raise AttributeError(f"headscope.studies has no {name!r}; it has {', '.join(__all__)}")
    return getattr(importlib.import_module(_WITH_TORCH[name]), name)
