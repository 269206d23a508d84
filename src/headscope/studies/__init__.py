"""Analyses end to end: from a model and texts, or from records, to a result that prints, plots and exports."""

from headscope.studies._embedding_role import embedding_role
from headscope.studies._explained import Explained, Tampering, erasure
from headscope.studies._faithfulness import Faithfulness, faithfulness
from headscope.studies._heads import heads
from headscope.studies._mechanism import mechanism
from headscope.studies._norm_plot import check_plot
from headscope.studies._norms import NormStudy, load_norm_study, norm_study

__all__ = [
    "Explained",
    "Faithfulness",
    "NormStudy",
    "Tampering",
    "check_plot",
    "embedding_role",
    "erasure",
    "faithfulness",
    "heads",
    "load_norm_study",
    "mechanism",
    "norm_study",
]
