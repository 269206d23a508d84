"""Analyses end to end: from a model and texts, or from records, to a result that prints, plots and exports.

What changes a model while it runs (ablation, effects, faithfulness) or is trained (probes) is imported at its first
use, since it imports torch; records are studied without it.
"""

import importlib
from typing import TYPE_CHECKING, Any

from headscope.studies._ablation_result import Ablation
from headscope.studies._align import alignment_study
from headscope.studies._aligned_files import read_aligned_pairs
from headscope.studies._aligned_pair import AlignedPair
from headscope.studies._alignment import WordAlignment, word_alignment
from headscope.studies._alignment_file import load_alignment_study
from headscope.studies._alignment_study import AlignmentStudy
from headscope.studies._antecedent_head import AntecedentHead
from headscope.studies._best_place import BestPlace
from headscope.studies._canvas import check_plot
from headscope.studies._coref import coref
from headscope.studies._coref_file import load_coref
from headscope.studies._coref_result import Coreference
from headscope.studies._embedding_role import embedding_role
from headscope.studies._heads import heads
from headscope.studies._mechanism import mechanism
from headscope.studies._norms import NormStudy, load_norm_study, norm_study
from headscope.studies._relation_file import load_relations
from headscope.studies._relation_head import RelationHead
from headscope.studies._relation_result import Relations
from headscope.studies._relations import relations
from headscope.studies._statistic_file import load_of_statistic

if TYPE_CHECKING:
    from headscope.studies._ablation import AblationOptions, ablate
    from headscope.studies._effect import effect
    from headscope.studies._erasure import erasure
    from headscope.studies._explained import Explained
    from headscope.studies._faithfulness import Faithfulness, faithfulness
    from headscope.studies._tampering import Tampering
    from headscope.studies.probes import Probing, probe

_WITH_TORCH = {
    "AblationOptions": "headscope.studies._ablation",
    "ablate": "headscope.studies._ablation",
    "Explained": "headscope.studies._explained",
    "Faithfulness": "headscope.studies._faithfulness",
    "Probing": "headscope.studies.probes",
    "Tampering": "headscope.studies._tampering",
    "effect": "headscope.studies._effect",
    "erasure": "headscope.studies._erasure",
    "faithfulness": "headscope.studies._faithfulness",
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
