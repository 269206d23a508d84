"""Analyses end to end: from a model and texts, or from records, to a result that prints, plots and
exports.

What changes a model while it runs (ablation, effects, faithfulness) or is trained (probes) is
imported at its first use, since it imports torch; records are studied without it.
"""

import importlib
from typing import TYPE_CHECKING, Any

from headscope.measures.erasure import erasure
from headscope.studies._aligned_pairs import AlignedPair, read_aligned_pairs
from headscope.studies.ablate._result import Ablation
from headscope.studies.alignment import AlignmentStudy, alignment_study
from headscope.studies.answers import Answers, answers
from headscope.studies.atlas import atlas
from headscope.studies.coref import AntecedentHead, Coreference, coref
from headscope.studies.faithfulness import Faithfulness, faithfulness
from headscope.studies.heads import heads
from headscope.studies.mechanism import Mechanism, mechanism
from headscope.studies.norm_study import NormStudy, norm_study
from headscope.studies.probe._result import Probing
from headscope.studies.relations import RelationHead, Relations, relations
from headscope.studies.word_alignment import BestLayerOrHead, WordAlignment, word_alignment

# Folders have the names of the functions, which are imported at their first use.
del ablate, probe  # noqa: F821

if TYPE_CHECKING:
    from headscope.studies._explainer import CounterfactualAttention, ExplainedText
    from headscope.studies.ablate._ablate import AblationOptions, ablate
    from headscope.studies.probe import probe
    from headscope.studies.runs import effect

_WITH_TORCH = {
    "AblationOptions": "headscope.studies.ablate._ablate",
    "ablate": "headscope.studies.ablate._ablate",
    "effect": "headscope.studies.runs",
    "CounterfactualAttention": "headscope.studies._explainer",
    "ExplainedText": "headscope.studies._explainer",
    "probe": "headscope.studies.probe",
}

__all__ = [
    "Ablation",
    "AblationOptions",
    "AlignedPair",
    "AlignmentStudy",
    "Answers",
    "AntecedentHead",
    "BestLayerOrHead",
    "Coreference",
    "CounterfactualAttention",
    "ExplainedText",
    "Faithfulness",
    "Mechanism",
    "NormStudy",
    "Probing",
    "RelationHead",
    "Relations",
    "WordAlignment",
    "ablate",
    "alignment_study",
    "answers",
    "atlas",
    "coref",
    "effect",
    "erasure",
    "faithfulness",
    "heads",
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
